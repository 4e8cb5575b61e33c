package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Settings are the values of all settings. A command sees only those that the table assigns to it; the others are zero.
type Settings struct {
	Agent string

	RegistryURL     string
	RegistryDir     string
	RegistryPrefer  []string
	RegistryMaxAge  time.Duration
	RegistryOffline bool

	// What agents do for acp exec and acp run, and how.
	Policy               string
	Mode, Model          string
	Options, Dirs, MCP   []string
	NoFiles, NoTerminals bool
	RemoteFiles          bool
	RemoteTerminals      bool
	Protocol             string
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

// Version returns the only version of the protocol that agents are offered, or 0 for both.
func (s *Settings) Version() int {
	version, _ := strconv.Atoi(s.Protocol) // "auto" is not a number
	return version
}

// Setting is a row of the table.
type Setting struct {
	// Key is the key in the file; a dot separates a table from the key in it. The flag and the variable are derived
	// from it; see Flag and Variable.
	Key string
	// Usage describes the setting. A word in backquotes stands for the value in the help.
	Usage string
	// Commands lists the commands that have the setting, by their first word.
	Commands []string
	// Values lists all possible values; nil means any.
	Values []string
	// Path says that the value is the path of a file or directory: in the file, a leading "~/" stands for the user's
	// home directory.
	Path bool
	// Commas says that a list of paths in a variable has commas, because its elements may also be something else.
	Commas bool
	// Agents says that the value is the name of an agent, which the shell completes.
	Agents bool
	// Each says that an agent of the file may have its own value in its table.
	Each bool

	// check, if set, checks a value of a text or list.
	check func(string) error
	// field returns where the value is stored: a *string, *bool, *time.Duration or *[]string. The value that it
	// already has is the default.
	field func(*Settings) any
}

// The commands that talk to agents, those that talk to them or pass messages on, those for scripts and for people, and
// those that start agents.
var (
	talking  = []string{"exec", "run"}
	reaching = []string{"conduct", "exec", "run"}
	scripts  = []string{"exec"}
	people   = []string{"run"}
	starting = []string{"agents", "conduct", "exec", "run"}
)

// Table lists all settings in the order of the help. To add a setting, add a row and its field.
var Table = []Setting{
	{
		Key: "agent", Agents: true, Commands: talking, field: func(s *Settings) any { return &s.Agent },
		Usage: "the `AGENT`: a name from the configuration or the registry, or a URL",
	},
	{
		Key: "policy", Path: true, Commands: talking, field: func(s *Settings) any { return &s.Policy },
		Usage: "a `FILE` of rules for what agents may do without asking",
	},
	{
		Key: "allow", Commands: scripts, field: func(s *Settings) any { return &s.Allow },
		Usage: "allow requests that no rule covers",
	},
	{
		Key: "deny", Commands: scripts, field: func(s *Settings) any { return &s.Deny },
		Usage: "reject requests that no rule allows, without asking, as is done without a terminal",
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
		Key: "option", Each: true, Commands: talking, check: pair("OPTION=VALUE"),
		field: func(s *Settings) any { return &s.Options },
		Usage: "an option of new sessions and its value, as `OPTION=VALUE`",
	},
	{
		Key: "dir", Path: true, Commands: talking, field: func(s *Settings) any { return &s.Dirs },
		Usage: "another `DIR` in which agents may work",
	},
	{
		Key: "mcp", Path: true, Commas: true, Commands: talking, field: func(s *Settings) any { return &s.MCP },
		Usage: "an MCP `SERVER` for agents to use, as NAME=COMMAND or NAME=URL, or a file of them, as editors have it",
	},
	{
		Key: "no-files", Commands: talking, field: func(s *Settings) any { return &s.NoFiles },
		Usage: "do not read or write files for agents; most have their own tools for it",
	},
	{
		Key: "no-terminals", Commands: talking, field: func(s *Settings) any { return &s.NoTerminals },
		Usage: "do not run commands for agents; most have their own tools for it",
	},
	{
		Key: "remote-files", Each: true, Commands: reaching, field: func(s *Settings) any { return &s.RemoteFiles },
		Usage: "for an agent at a URL: let it read files, and ask you before each write",
	},
	{
		Key: "remote-terminals", Each: true, Commands: reaching, field: func(s *Settings) any { return &s.RemoteTerminals },
		Usage: "for an agent at a URL: let it run commands, each of which you are asked about",
	},
	{
		Key: "protocol", Each: true, Commands: reaching, Values: []string{"auto", "1", "2"},
		field: func(s *Settings) any { return &s.Protocol },
		Usage: "the `VERSION` of the protocol: 1, 2, or auto, which leaves it to the agent",
	},
	{
		Key: "format", Commands: scripts, Values: []string{"text", "json", "quiet"},
		field: func(s *Settings) any { return &s.Format },
		Usage: "what is printed, a `NAME`: text, json or quiet",
	},
	{
		Key: "timeout", Commands: scripts, field: func(s *Settings) any { return &s.Timeout },
		Usage: "cancel the turn after this `TIME`, such as 90s or 10m, without the time in which you are asked; 0s: never",
	},
	{
		Key: "notify", Commands: people, Values: []string{"unfocused", "always", "never"},
		field: func(s *Settings) any { return &s.Notify },
		Usage: "`WHEN` to ring the terminal's bell at the end of a turn and at a question: unfocused (if the window does " +
			"not have the focus), always or never",
	},
	{
		Key: "forget-prompts", Commands: people, field: func(s *Settings) any { return &s.ForgetPrompts },
		Usage: "do not keep your prompts for later runs in the same directory",
	},
	{
		Key: "token-file", Path: true, Commands: starting, field: func(s *Settings) any { return &s.TokenFile },
		Usage: "for an agent at a URL: a `FILE` with the token",
	},
	{
		Key: "token-env", Commands: starting, field: func(s *Settings) any { return &s.TokenEnv },
		Usage: "for an agent at a URL: the environment `VARIABLE` that has the token",
	},
	{
		Key: "header-file", Path: true, Commands: starting, field: func(s *Settings) any { return &s.HeaderFile },
		Usage: "for an agent at a URL: a `FILE` of headers for every request, one per line as \"NAME: VALUE\"",
	},
	{
		Key: "header-env", Commands: starting, check: pair("NAME=VARIABLE"),
		field: func(s *Settings) any { return &s.HeaderEnv },
		Usage: "for an agent at a URL: a header whose value is in the environment, as `NAME=VARIABLE`",
	},
	{
		Key: "allow-insecure", Commands: starting, field: func(s *Settings) any { return &s.AllowInsecure },
		Usage: "for an agent at a URL: send the token without TLS",
	},
	{
		Key: "registry.url", Commands: starting, field: func(s *Settings) any { return &s.RegistryURL },
		Usage: "the `ADDRESS` of the registry's list of agents, if not the public registry",
	},
	{
		Key: "registry.dir", Path: true, Commands: starting, field: func(s *Settings) any { return &s.RegistryDir },
		Usage: "the `DIR` of the installed agents; default: acp in the user's data directory",
	},
	{
		Key: "registry.prefer", Commands: starting, Values: []string{"binary", "npx", "uvx"},
		field: func(s *Settings) any { return &s.RegistryPrefer },
		Usage: "the `KINDS` of packages to install agents from, preferred ones first: binary, npx (npm), uvx (PyPI)",
	},
	{
		Key: "registry.max-age", Commands: starting, field: func(s *Settings) any { return &s.RegistryMaxAge },
		Usage: "the `TIME` after which the registry's list is fetched again",
	},
	{
		Key: "registry.offline", Commands: starting, field: func(s *Settings) any { return &s.RegistryOffline },
		Usage: "do not use the network for the registry; use the stored list",
	},
}

// pair returns a check that a value is a name, an equals sign, and something.
func pair(form string) func(string) error {
	return func(text string) error {
		if name, _, ok := strings.Cut(text, "="); !ok || name == "" {
			return fmt.Errorf("%q: expected %s", text, form)
		}
		return nil
	}
}

// defaults returns the defaults of all settings.
func defaults() Settings {
	return Settings{
		Format:         "text",
		Protocol:       "auto",
		Notify:         "unfocused",
		TokenEnv:       "ACP_TOKEN",
		RegistryPrefer: []string{"binary", "npx", "uvx"},
		RegistryMaxAge: time.Hour,
	}
}

// Flag returns the name of the flag without the leading hyphens.
func (s *Setting) Flag() string { return strings.ReplaceAll(s.Key, ".", "-") }

// Variable returns the name of the environment variable.
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

// Default returns the default as text.
func (s *Setting) Default() string {
	values := defaults()
	return textOf(s.field(&values))
}

// Template returns the text of a new file: all settings as comments.
func Template() string {
	var b strings.Builder
	b.WriteString("# The configuration of acp: see acp help config. All settings are commented out, with their " +
		"defaults.\n")
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
		fmt.Fprintf(&b, "\n# %s\n# %s\n", strings.ReplaceAll(row.Usage, "`", ""), row.example(key, &values))
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

// example returns a line that sets the setting in TOML.
func (s *Setting) example(key string, values *Settings) string {
	var v any
	switch p := s.field(values).(type) {
	case *bool:
		v = *p
	case *[]string:
		v = array(*p)
	default:
		v = textOf(p)
	}
	line, err := assignment(key, v)
	if err != nil {
		panic(err) // a default of ours
	}
	return line
}
