package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/internal/test/must"
)

// load runs a command with arguments, and returns its configuration.
func load(t *testing.T, file string, env map[string]string, args ...string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	must.Do(t, os.WriteFile(path, []byte(file), 0o600))
	t.Setenv("ACP_CONFIG", path)
	for name, value := range env {
		t.Setenv(name, value)
	}
	c := &cobra.Command{Use: "run", SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error { return nil }}
	cfg := Bind(c)
	c.SetArgs(args)
	return cfg, c.Execute()
}

// The order of precedence is flag, variable, file, default.
func TestOrder(t *testing.T) {
	const file = "registry.max-age = \"2h\"\nagent = \"a\"\nregistry.prefer = [\"npx\", \"uvx\"]\nallow-insecure = true"
	for _, test := range []struct {
		name   string
		file   string
		env    map[string]string
		args   []string
		age    time.Duration
		agent  string
		kinds  []string
		secure bool
		source Source
	}{
		{name: "nothing", age: time.Hour, kinds: []string{"binary", "npx", "uvx"}, secure: true, source: FromDefault},
		{name: "file", file: file, age: 2 * time.Hour, agent: "a", kinds: []string{"npx", "uvx"}, source: FromFile},
		{
			name: "variable", file: file, env: map[string]string{"ACP_REGISTRY_MAX_AGE": "3h", "ACP_AGENT": "c", "ACP_REGISTRY_PREFER": "uvx, npx", "ACP_ALLOW_INSECURE": "0"},
			age: 3 * time.Hour, agent: "c", kinds: []string{"uvx", "npx"}, secure: true, source: FromVariable,
		},
		{
			name: "flag", file: file, env: map[string]string{"ACP_REGISTRY_MAX_AGE": "3h", "ACP_AGENT": "c"}, source: FromFlag,
			args: []string{"--registry-max-age=4h", "--agent=e", "--registry-prefer=npx,binary", "--registry-prefer=uvx", "--allow-insecure=false"}, age: 4 * time.Hour, agent: "e", kinds: []string{"npx", "binary", "uvx"}, secure: true,
		},
		{
			name: "an empty variable", file: file, env: map[string]string{"ACP_REGISTRY_MAX_AGE": ""},
			age: 2 * time.Hour, agent: "a", kinds: []string{"npx", "uvx"}, source: FromFile,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg, err := load(t, test.file, test.env, test.args...)
			must.Do(t, err)
			if cfg.RegistryMaxAge != test.age || cfg.Agent != test.agent || !slices.Equal(cfg.RegistryPrefer, test.kinds) || cfg.AllowInsecure == test.secure {
				t.Errorf("%+v", cfg.Settings)
			}
			if got := cfg.Sources["registry.max-age"]; got != test.source {
				t.Errorf("from %s, want %s", got, test.source)
			}
		})
	}
}

// Lists whose values may contain commas take one value from each flag; in a variable, commas separate the values.
func TestLists(t *testing.T) {
	cfg, err := load(t, "", nil, "--header-env=A=B,C", "--header-env=D=E", "--registry-prefer=npx,binary", "--registry-prefer=uvx")
	must.Do(t, err)
	if !slices.Equal(cfg.HeaderEnv, []string{"A=B,C", "D=E"}) || !slices.Equal(cfg.RegistryPrefer, []string{"npx", "binary", "uvx"}) {
		t.Errorf("%+v", cfg.Settings)
	}
	t.Setenv("HOME", "/home/me")
	t.Setenv("USERPROFILE", "/home/me")
	t.Setenv("ACP_MCP", "far=https://h/, ~/mcp.json")
	cfg, err = load(t, `mcp = ["near=go run", "~/mcp.json"]`, nil)
	if want := []string{"far=https://h/", "~/mcp.json"}; err != nil || !slices.Equal(cfg.MCP, want) {
		t.Errorf("the variable: %q, %v", cfg.MCP, err)
	}
	t.Setenv("ACP_MCP", "")
	cfg, err = load(t, `mcp = ["near=go run a,b", "~/mcp.json"]`, nil)
	if want := []string{"near=go run a,b", filepath.Join("/home/me", "mcp.json")}; err != nil || !slices.Equal(cfg.MCP, want) {
		t.Errorf("the file: %q, %v", cfg.MCP, err)
	}
	row := Setting{Path: true}
	var dirs []string
	if err := row.parse(&dirs, strings.Join([]string{"a,b", "c"}, string(filepath.ListSeparator))); err != nil || !slices.Equal(dirs, []string{"a,b", "c"}) {
		t.Errorf("%q, %v", dirs, err)
	}
	if err := row.set(&dirs, []any{"~/a", "b"}); err != nil || !slices.Equal(dirs, []string{filepath.Join("/home/me", "a"), "b"}) {
		t.Errorf("%q, %v", dirs, err)
	}
}

// An agent's own settings take precedence over those at the top of the file, but not over flags and variables.
func TestFor(t *testing.T) {
	const file = "mode = \"ask\"\nmodel = \"large\"\noption = \"a=1\"\n[agents.x]\nurl = \"ws://h\"\nmode = \"plan\"\nmodel = \"small\"\noption = [\"b=2\"]\n"
	cfg, err := load(t, file, map[string]string{"ACP_MODEL": "middle"}, "--option=c=3")
	must.Do(t, err)
	if s := cfg.For(cfg.File.Agents["x"]); s.Mode != "plan" || s.Model != "middle" || !slices.Equal(s.Options, []string{"c=3"}) {
		t.Errorf("%+v", s)
	}
	if cfg.Mode != "ask" {
		t.Errorf("the settings of all are now %+v", cfg.Settings)
	}
	if cfg, err = load(t, file, map[string]string{"ACP_MODEL": ""}); err != nil {
		t.Fatal(err)
	}
	if s := cfg.For(cfg.File.Agents["x"]); s.Mode != "plan" || s.Model != "small" || !slices.Equal(s.Options, []string{"b=2"}) {
		t.Errorf("%+v", s)
	}
}

func TestLoadErrors(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		env  map[string]string
		args []string
		want string
	}{
		"flag":     {args: []string{"--registry-prefer=docker"}, want: `"docker": expected binary, npx or uvx`},
		"variable": {env: map[string]string{"ACP_REGISTRY_OFFLINE": "maybe"}, want: "$ACP_REGISTRY_OFFLINE: expected true or false"},
		"file":     {file: "\nagent = 1", want: "config.toml:2:1: agent: expected a string"},
		"no file":  {args: []string{"--config=missing.toml"}, want: "missing.toml"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := load(t, test.file, test.env, test.args...); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// Each row has its own field, and its flag, variable and key accept the same values.
func TestTable(t *testing.T) {
	fields := map[uintptr]string{}
	names := map[string]bool{}
	for i := range Table {
		row := &Table[i]
		var s Settings
		p := reflect.ValueOf(row.field(&s)).Pointer() - reflect.ValueOf(&s).Pointer()
		if other := fields[p]; other != "" {
			t.Errorf("%s has the field of %s", row.Key, other)
		}
		fields[p] = row.Key
		if names[row.Flag()] || names[row.Variable()] {
			t.Errorf("%s has the flag of another one", row.Key)
		}
		names[row.Flag()], names[row.Variable()] = true, true
		if len(row.Commands) == 0 || row.Usage == "" || !slices.IsSorted(row.Commands) {
			t.Errorf("%s: no command, or no usage", row.Key)
		}
		if err := row.parse(row.field(&s), row.Default()); err != nil && row.Default() != "" {
			t.Errorf("%s: the default %q: %v", row.Key, row.Default(), err)
		}
	}
	if n := reflect.TypeFor[Settings]().NumField(); n != len(Table) {
		t.Errorf("%d fields, %d rows", n, len(Table))
	}
}

func TestNearest(t *testing.T) {
	known := []string{"claude-code-acp", "codex-acp", "gemini", "goose", "opencode"}
	for name, want := range map[string][]string{
		"gemni": {"gemini"}, "geminii": {"gemini"}, "goosee": {"goose"}, "claude": {"claude-code-acp"}, "GOSE": {"goose"}, "egmini": {"gemini"},
		"x": nil, "nothing-like-it": nil, "": nil, strings.Repeat("a", 1000): nil,
	} {
		if got := Nearest(name, known); !slices.Equal(got, want) {
			t.Errorf("%.20s: got %q, want %q", name, got, want)
		}
	}
}
