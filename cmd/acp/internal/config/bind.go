package config

import (
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Source is where a value comes from.
type Source string

// The sources, in order of precedence.
const (
	FromFlag     Source = "flag"
	FromVariable Source = "variable"
	FromFile     Source = "file"
	FromDefault  Source = "default"
)

// Config is the configuration of a command: its settings and the file. It is filled before the command runs.
type Config struct {
	Settings
	// File is the parsed file.
	File *File
	// Sources says where each value comes from, by the key of the setting.
	Sources map[string]Source
	// Preview takes the preview versions of agents of the registry. It is not a setting: it is said for each start.
	Preview bool

	path  string
	flags *pflag.FlagSet
	rows  []*Setting
}

// Bind gives a command and its subcommands the flags of its settings, which are loaded before it runs. The table says
// which settings a command has, by the command's name.
func Bind(c *cobra.Command) *Config {
	cfg := &Config{Settings: defaults(), flags: c.PersistentFlags()}
	for i := range Table {
		if slices.Contains(Table[i].Commands, c.Name()) {
			cfg.rows = append(cfg.rows, &Table[i])
		}
	}
	cfg.flags.SortFlags = false
	for _, row := range cfg.rows {
		flag := cfg.flags.VarPF(&value{row: row, field: row.field(&cfg.Settings)}, row.Flag(), "", row.Usage)
		if _, isBool := row.field(&cfg.Settings).(*bool); isBool {
			flag.NoOptDefVal = "true"
		}
		if row.Path || row.Agents {
			continue // the shell itself completes file names
		}
		if err := c.RegisterFlagCompletionFunc(row.Flag(),
			cobra.FixedCompletions(row.Values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // registered twice
		}
	}
	cfg.flags.StringVar(&cfg.path, "config", "",
		"the configuration `FILE`; default: acp/config.toml in the user's configuration directory")
	c.PersistentPreRunE = func(*cobra.Command, []string) error { return cfg.Load() }
	return cfg
}

// Path returns the path of the file, and whether the user named it. The file need not exist.
func (cfg *Config) Path() (path string, named bool) { return Path(cfg.path) }

// Value is a setting with its value.
type Value struct {
	*Setting
	// Text is the value as text; Value is a string, bool or list of strings.
	Text   string
	Value  any
	Source Source
}

// Values returns all settings, with the values that commands without flags get.
func (cfg *Config) Values() ([]Value, error) {
	all := defaults()
	var values []Value
	for i := range Table {
		row := &Table[i]
		field := row.field(&all)
		source, err := row.load(field, cfg.File)
		if err != nil {
			return nil, err
		}
		v := Value{Setting: row, Text: textOf(field), Value: textOf(field), Source: source}
		switch p := field.(type) {
		case *bool:
			v.Value = *p
		case *[]string:
			v.Value = append([]string{}, *p...)
		}
		values = append(values, v)
	}
	return values, nil
}

// Load loads the settings. It is called before the command runs; completion functions call it themselves.
func (cfg *Config) Load() (err error) {
	if cfg.File, err = Read(Path(cfg.path)); err != nil {
		return err
	}
	cfg.Sources = map[string]Source{}
	for _, row := range cfg.rows {
		if cfg.flags.Changed(row.Flag()) {
			cfg.Sources[row.Key] = FromFlag
			continue
		}
		if cfg.Sources[row.Key], err = row.load(row.field(&cfg.Settings), cfg.File); err != nil {
			return err
		}
	}
	return nil
}

// For returns the settings for an agent of the file. Settings in the agent's table take precedence over those at the
// top of the file.
func (cfg *Config) For(own *Agent) Settings {
	s := cfg.Settings
	for key, v := range own.settings {
		row := Find(key)
		if from := cfg.Sources[key]; from == FromFlag || from == FromVariable {
			continue
		}
		if err := row.set(row.field(&s), v); err != nil {
			panic(err) // it was checked before
		}
	}
	return s
}

// Environ returns the environment for programs that run for agents: that of this process without the variables whose
// values are sent to agents at URLs.
func (cfg *Config) Environ() []string {
	var secret []string
	add := func(s *Settings) {
		secret = append(secret, s.TokenEnv)
		for _, pair := range s.HeaderEnv {
			_, variable, _ := strings.Cut(pair, "=")
			secret = append(secret, variable)
		}
	}
	add(&cfg.Settings)
	for _, a := range cfg.File.Agents {
		add(&a.Sent)
	}
	return slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.ContainsFunc(secret, func(s string) bool {
			return s == name || runtime.GOOS == "windows" && strings.EqualFold(s, name)
		})
	})
}

// load sets a field to the value of the variable or the file, if one has it.
func (s *Setting) load(field any, file *File) (Source, error) {
	if text := os.Getenv(s.Variable()); text != "" {
		if err := s.parse(field, text); err != nil {
			return "", &Error{Path: s.Variable(), Err: err}
		}
		return FromVariable, nil
	}
	if v, ok := file.values[s.Key]; ok {
		if err := s.set(field, v); err != nil {
			return "", file.wrong(s.Key, "%w", err)
		}
		return FromFile, nil
	}
	return FromDefault, nil
}
