package config

import (
	"fmt"
	"strings"
	"time"
)

// Settings are the values of all settings. A command sees only those that the table gives it; the others are zero.
type Settings struct {
	Agents []string

	RegistryURL     string
	RegistryDir     string
	RegistryPrefer  []string
	RegistryMaxAge  time.Duration
	RegistryOffline bool

	// What acp exec and acp run have agents do, and how.
	Policy               string
	Mode, Model          string
	Options, Dirs        []string
	MCP                  string
	NoFiles, NoTerminals bool
	Allow, Deny          bool
	Format               string
	Timeout              time.Duration
	Notify               string
	ForgetPrompts        bool

	TokenFile     string
	TokenEnv      string
	HeaderFile    string
	HeaderEnv     []string
	AllowInsecure bool
}

// Setting is a row of the table.
type Setting struct {
	// Key is the key in the file; a dot begins the key in a table. The flag is the key with hyphens for dots, see Flag,
	// and the variable is in capitals, see Variable.
	Key string
	// Short is the letter of the flag, or "".
	Short string
	// Usage says what it is. A word in backquotes stands for the value in the help.
	Usage string
	// Commands are the commands that have it, by their first word.
	Commands []string
	// Values are all values that it may have; nil for any.
	Values []string
	// Path says that the value is the path of a file or folder: "~/" at its beginning in the file is the user's.
	Path bool
	// Agents says that its values are names of agents, which the command completes.
	Agents bool
	// Each says that an agent of the file may have a value of its own, in its table.
	Each bool

	// check, if it is set, says what is wrong with a value of a text or list.
	check func(string) error
	// field is where its value is: a *string, *bool, *int, *time.Duration or *[]string. What is there already is the
	// default.
	field func(*Settings) any
}

// The commands that talk to agents, those for scripts, those for people, and those that start agents.
var (
	talking  = []string{"exec", "run"}
	scripts  = []string{"exec"}
	people   = []string{"run"}
	starting = []string{"agents", "exec", "run"}
)

// Table are all settings, in the order of the help. To add one, add a row and its field.
var Table = []Setting{
	{
		Key: "agent", Agents: true, Commands: talking, field: func(s *Settings) any { return &s.Agents },
		Usage: "the `AGENT`: a name of the configuration or of the registry, or a URL",
	},
	{
		Key: "policy", Path: true, Commands: talking, field: func(s *Settings) any { return &s.Policy },
		Usage: "a `FILE` of rules about what agents may do without a question",
	},
	{
		Key: "allow", Commands: scripts, field: func(s *Settings) any { return &s.Allow },
		Usage: "allow what no rule covers",
	},
	{
		Key: "deny", Commands: scripts, field: func(s *Settings) any { return &s.Deny },
		Usage: "reject what no rule allows, without asking, as happens without a terminal",
	},
	{
		Key: "mode", Each: true, Commands: talking, field: func(s *Settings) any { return &s.Mode },
		Usage: "the `MODE` of new sessions, by its id or name",
	},
	{
		Key: "model", Each: true, Commands: talking, field: func(s *Settings) any { return &s.Model },
		Usage: "the `MODEL` of new sessions, by its id or name",
	},
	{
		Key: "option", Each: true, Commands: talking, check: pair("OPTION=VALUE"), field: func(s *Settings) any { return &s.Options },
		Usage: "an option of new sessions and its value, as `OPTION=VALUE`",
	},
	{
		Key: "dir", Path: true, Commands: talking, field: func(s *Settings) any { return &s.Dirs },
		Usage: "a further `FOLDER` in which agents may work",
	},
	{
		Key: "mcp", Path: true, Commands: talking, field: func(s *Settings) any { return &s.MCP },
		Usage: "a `FILE` of MCP servers, as editors have it, for agents to use",
	},
	{
		Key: "no-files", Commands: talking, field: func(s *Settings) any { return &s.NoFiles },
		Usage: "do not read and write files for agents; most have their own tools for it",
	},
	{
		Key: "no-terminals", Commands: talking, field: func(s *Settings) any { return &s.NoTerminals },
		Usage: "do not run commands for agents; most have their own tools for it",
	},
	{
		Key: "format", Commands: scripts, Values: []string{"text", "json", "quiet"}, field: func(s *Settings) any { return &s.Format },
		Usage: "what is printed, a `NAME`: text, json or quiet",
	},
	{
		Key: "timeout", Commands: scripts, field: func(s *Settings) any { return &s.Timeout },
		Usage: "cancel the turn after this `TIME`, such as 90s or 10m",
	},
	{
		Key: "notify", Commands: people, Values: []string{"unfocused", "always", "never"}, field: func(s *Settings) any { return &s.Notify },
		Usage: "`WHEN` the terminal's bell rings at the end of a turn and at a question: unfocused (the window has not the focus), always or never",
	},
	{
		Key: "forget-prompts", Commands: people, field: func(s *Settings) any { return &s.ForgetPrompts },
		Usage: "do not keep your prompts for later runs in the same folder",
	},
	{
		Key: "token-file", Path: true, Commands: starting, field: func(s *Settings) any { return &s.TokenFile },
		Usage: "for an agent at a URL: a `FILE` with the token",
	},
	{
		Key: "token-env", Commands: starting, field: func(s *Settings) any { return &s.TokenEnv },
		Usage: "for an agent at a URL: the `VARIABLE` of the environment that has the token",
	},
	{
		Key: "header-file", Path: true, Commands: starting, field: func(s *Settings) any { return &s.HeaderFile },
		Usage: "for an agent at a URL: a `FILE` of headers for every request, one a line, as \"NAME: VALUE\"",
	},
	{
		Key: "header-env", Commands: starting, check: pair("NAME=VARIABLE"), field: func(s *Settings) any { return &s.HeaderEnv },
		Usage: "for an agent at a URL: a header whose value is in the environment, as `NAME=VARIABLE`",
	},
	{
		Key: "allow-insecure", Commands: starting, field: func(s *Settings) any { return &s.AllowInsecure },
		Usage: "for an agent at a URL: send the token without TLS",
	},
	{
		Key: "registry.url", Commands: starting, field: func(s *Settings) any { return &s.RegistryURL },
		Usage: "the `ADDRESS` of the registry's list of agents, if it is another one than the public registry",
	},
	{
		Key: "registry.dir", Path: true, Commands: starting, field: func(s *Settings) any { return &s.RegistryDir },
		Usage: "the `FOLDER` of the agents that are installed; default: acp in the folder for data of the user",
	},
	{
		Key: "registry.prefer", Commands: starting, Values: []string{"binary", "npx", "uvx"}, field: func(s *Settings) any { return &s.RegistryPrefer },
		Usage: "the `KINDS` in which agents are installed, the preferred one first: binary, npx (npm), uvx (PyPI)",
	},
	{
		Key: "registry.max-age", Commands: starting, field: func(s *Settings) any { return &s.RegistryMaxAge },
		Usage: "the `TIME` after which the registry is asked for its list again",
	},
	{
		Key: "registry.offline", Commands: starting, field: func(s *Settings) any { return &s.RegistryOffline },
		Usage: "do not use the network for the registry: what is kept is used",
	},
}

// pair checks that a value is a name, an equals sign, and something.
func pair(form string) func(string) error {
	return func(text string) error {
		if name, _, ok := strings.Cut(text, "="); !ok || name == "" {
			return fmt.Errorf("%q: want %s", text, form)
		}
		return nil
	}
}

// defaults are the values of settings that nobody has set.
func defaults() Settings {
	return Settings{
		Format:         "text",
		Notify:         "unfocused",
		TokenEnv:       "ACP_TOKEN",
		RegistryPrefer: []string{"binary", "npx", "uvx"},
		RegistryMaxAge: time.Hour,
	}
}

// Flag is the name of the flag, without the hyphens in front.
func (s *Setting) Flag() string { return strings.ReplaceAll(s.Key, ".", "-") }

// Variable is the name of the variable of the environment.
func (s *Setting) Variable() string {
	return "ACP_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(s.Key))
}

// Find returns the row of a key; nil if there is none.
func Find(key string) *Setting {
	for i := range Table {
		if Table[i].Key == key {
			return &Table[i]
		}
	}
	return nil
}

// Default is the default as text.
func (s *Setting) Default() string {
	values := defaults()
	return textOf(s.field(&values))
}

// Template is the text of a new file: all settings as comments.
func Template() string {
	var b strings.Builder
	b.WriteString("# The configuration of acp: see acp help config. All settings are commented out, with their defaults.\n")
	table := ""
	for i := range Table {
		row := &Table[i]
		key := row.Key
		if before, after, ok := strings.Cut(key, "."); ok {
			key = after
			if before != table {
				fmt.Fprintf(&b, "\n# [%s]\n", before)
				table = before
			}
		}
		values := defaults()
		fmt.Fprintf(&b, "\n# %s\n# %s = %s\n", strings.ReplaceAll(row.Usage, "`", ""), key, row.example(&values))
	}
	b.WriteString(`
# An agent of your own: "acp run mine" starts it.
# [agents.mine]
# command = ["my-agent", "--acp"]
# env = { NAME = "value" }
# dir = "~/work"

# One at a URL; its token is in the environment.
# [agents.far]
# url = "wss://agent.example/acp"
# token-env = "FAR_TOKEN"

# Another name for one of the registry.
# [agents.c]
# registry = "claude-code-acp"
`)
	return b.String()
}

// example is the value of a setting as the file has it.
func (s *Setting) example(values *Settings) string {
	switch p := s.field(values).(type) {
	case *bool, *int:
		return textOf(p)
	case *[]string:
		text, err := tomlOf(array(*p))
		if err != nil {
			panic(err) // a default of ours
		}
		return text
	default:
		return quoted(textOf(p))
	}
}

// Manual is the list of settings as a table of Markdown.
func Manual() string {
	var b strings.Builder
	b.WriteString("| key in the file | flag | variable | default | what it is | commands |\n| --- | --- | --- | --- | --- | --- |\n")
	for i := range Table {
		row := &Table[i]
		value := row.Default()
		if value != "" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `--%s` | `%s` | %s | %s | %s |\n", row.Key, row.Flag(), row.Variable(), value,
			strings.ReplaceAll(strings.ReplaceAll(row.Usage, "`", ""), "|", "\\|"), strings.Join(row.Commands, ", "))
	}
	return b.String()
}
