package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

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
	cfg, err := load(t, file, map[string]string{"ACP_MODEL": "middle", "ACP_OPTION": "d=4"}, "--option=c=3")
	must.Do(t, err)
	if s := cfg.For(cfg.File.Agents["x"]); s.Mode != "plan" || s.Model != "middle" || !slices.Equal(s.Options, []string{"c=3"}) {
		t.Errorf("%+v", s)
	}
	if cfg.Mode != "ask" {
		t.Errorf("the settings of all are now %+v", cfg.Settings)
	}
	if cfg, err = load(t, file, map[string]string{"ACP_MODEL": "", "ACP_OPTION": ""}); err != nil {
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
