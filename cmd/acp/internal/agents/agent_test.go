package agents

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp/registry"
	"github.com/acpgo/sdk/cmd/acp/internal/config"
	"github.com/acpgo/sdk/internal/test/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testRegistry serves a registry with agents of the given ids, each a program without an archive.
func testRegistry(t *testing.T, ids ...string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			fmt.Fprintln(w, "#!/bin/sh")
			return
		}
		var entries []string
		for _, id := range ids {
			entries = append(entries, fmt.Sprintf(`{"id":%q,"name":%[1]q,"version":"1.2.3","description":"It writes code.",
				"distribution":{"binary":{%q:{"archive":"http://%s/1.2.3/%[1]s","cmd":"./%[1]s","args":["--acp"]}}}}`, id, registry.Platform(), r.Host))
		}
		fmt.Fprintf(w, `{"version":"1.0.0","agents":[%s]}`, strings.Join(entries, ","))
	}))
	t.Cleanup(func() { http.DefaultClient.CloseIdleConnections(); server.Close() })
	return server
}

// resolver returns a resolver with a registry and a configuration.
func resolver(t *testing.T, registry *httptest.Server, file string) *Resolver {
	t.Helper()
	f := must.Get(config.Parse("config.toml", []byte(file)))(t)
	cfg := &config.Config{File: f}
	cfg.RegistryURL, cfg.RegistryDir, cfg.RegistryPrefer = registry.URL, t.TempDir(), []string{"binary"}
	return New(cfg)
}

// yes consents, and records what was asked.
func yes(asked *[]string) func(context.Context, string) (bool, error) {
	return func(_ context.Context, question string) (bool, error) {
		*asked = append(*asked, question)
		return true, nil
	}
}

func TestResolve(t *testing.T) {
	r := resolver(t, testRegistry(t, "claude-code-acp", "codex-acp", "codex-other", "gemini", "my-claude-tool"), `
		[agents.mine]
		command = ["my-agent", "--acp"]
		[agents.gemini]
		command = ["my-gemini"]
		[agents.far]
		url = "wss://user:secret@agent.example/acp"
		[agents.cc]
		registry = "claude-code-acp"
	`)
	for _, name := range []string{"claude", "cc"} {
		if _, err := r.Resolve(t.Context(), name); !errors.As(err, new(*NotInstalledError)) || !strings.Contains(err.Error(), "acp agents install claude-code-acp") {
			t.Errorf("%s, without anybody to ask: %v", name, err)
		}
	}
	r.Ask = func(context.Context, string) (bool, error) { return false, nil }
	if _, err := r.Resolve(t.Context(), "claude"); !errors.Is(err, ErrRefused) {
		t.Errorf("a user who says no: %v", err)
	}
	var asked, said []string
	r.Ask = yes(&asked)
	r.Say = func(line string) { said = append(said, line) }
	for _, test := range []struct{ name, called, command string }{
		{"mine", "mine", "my-agent --acp"},
		{"gemini", "gemini", "my-gemini"}, // the user's own ones take precedence
		{"claude", "claude-code-acp", "claude-code-acp --acp"},
		{"claude-code-acp", "claude-code-acp", "claude-code-acp --acp"},
		{"cc", "cc", "claude-code-acp --acp"},
		{"tool", "my-claude-tool", "my-claude-tool --acp"},
		{"far", "far", ""},
		{"ws://user:secret@127.0.0.1:1/acp?token=x", "127.0.0.1:1", ""},
	} {
		a, err := r.Resolve(t.Context(), test.name)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		command := ""
		if a.Command != nil {
			command = strings.Join(append([]string{filepath.Base(a.Command.Program)}, a.Command.Args...), " ")
		}
		if a.Name != test.called || command != test.command || (a.URL == "") != (command != "") || a.Connect == nil {
			t.Errorf("%s: %+v, %s", test.name, a, command)
		}
		for range 2 { // a transport for each connection
			if transport, err := a.Connect(t.Context()); err != nil || transport == nil {
				t.Errorf("%s: %v", test.name, err)
			}
		}
	}
	if len(asked) != 2 || !strings.Contains(asked[0], "claude-code-acp") || !strings.Contains(asked[0], "fetches: http://") {
		t.Errorf("asked: %q", asked)
	}
	if len(said) != 4 || said[0] != "installing claude-code-acp 1.2.3" || said[1] != "installed claude-code-acp 1.2.3" {
		t.Errorf("said: %q", said)
	}
	// Installed agents need no network, and are found before those that are not installed.
	r.Registry.URL, r.Registry.Offline, r.Ask = "http://127.0.0.1:1/", true, nil
	if a, err := r.Resolve(t.Context(), "claude"); err != nil || a.Installed.ID() != "claude-code-acp" {
		t.Errorf("offline: %v", err)
	}
	if want := []string{"cc", "claude-code-acp", "far", "gemini", "mine", "my-claude-tool"}; !slices.Equal(r.Names(), want) {
		t.Errorf("got %v, want %v", r.Names(), want)
	}
}

func TestResolveErrors(t *testing.T) {
	r := resolver(t, testRegistry(t, "codex-acp", "codex-other", "gemini", "two--hyphens"), "[agents.mine]\ncommand = [\"a\"]\n[agents.gone]\nregistry = \"gone\"")
	for name, want := range map[string]string{
		"codex":              `"codex" matches several agents: codex-acp or codex-other`,
		"gemni":              `there is no agent "gemni"; did you mean gemini?`,
		"min":                `there is no agent "min"; did you mean mine?`,
		"sh":                 `there is no agent "sh"; to run it as a command, use -- sh`,
		"../../etc":          `there is no agent "../../etc"`,
		"":                   `there is no agent ""`,
		"\x1b[2J":            `there is no agent "\x1b[2J"`,
		"ftp://host":         `the URL of an agent must begin with ws, wss, http or https, not "ftp"`,
		"ws://":              `not a URL`,
		"wss://h:secret\x7f": `not a URL`,
		"gone":               `the agent gone of the configuration: the agent gone is not installed; install it first: acp agents install gone`,
	} {
		if a, err := r.Resolve(t.Context(), name); err == nil || err.Error() != want {
			t.Errorf("%q: %v\n got %v\nwant %s", name, a, err, want)
		}
	}
	r.Registry.URL, r.Registry.Dir = "http://127.0.0.1:1/", t.TempDir()
	if _, err := r.Resolve(t.Context(), "gemini"); !errors.As(err, new(*UnknownError)) || !strings.HasPrefix(err.Error(), `no agent "gemini" was found; the registry could not be searched`) {
		t.Errorf("without a registry: %v", err)
	}
	if _, err := r.Command(nil); err == nil {
		t.Error("no command is taken")
	}
	if a, err := r.Command([]string{"a", "-b"}); err != nil || a.Name != "a" || a.Command.String() != "a -b" {
		t.Errorf("%v, %v", a, err)
	}
}

// An agent whose record is damaged is not confused with another one.
func TestResolveDamaged(t *testing.T) {
	var asked []string
	r := resolver(t, testRegistry(t, "gemini"), "")
	r.Ask = yes(&asked)
	must.Get(r.Resolve(t.Context(), "gemini"))(t)
	record := filepath.Join(r.Registry.Dir, "agents", "gemini", "installed.json")
	must.Do(t, os.WriteFile(record, []byte(`{"entry":`), 0o600))
	if _, err := r.Resolve(t.Context(), "gemini"); err == nil || !strings.Contains(err.Error(), "install it again") {
		t.Errorf("got %v", err)
	}
	if names := r.Names(); len(names) > 0 {
		t.Errorf("names: %v", names)
	}
}

func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	t.Setenv("MY_TOKEN", "from-env")
	t.Setenv("MY_KEY", "key")
	long := strings.Repeat("x", 100_000)
	c := Credentials{TokenFile: write("token", "# mine\nfrom-file\n"), TokenEnv: "MY_TOKEN", HeaderFile: write("headers", "X-One: 1\n\nx-long:"+long), HeaderEnv: []string{"X-Key=MY_KEY"}}
	header, err := c.Header()
	if err != nil || header.Get("Authorization") != "Bearer from-file" || header.Get("X-One") != "1" || header.Get("X-Key") != "key" || header.Get("X-Long") != long {
		t.Errorf("%.200q, %v", header, err)
	}
	c.TokenFile = ""
	if header, err := c.Header(); err != nil || header.Get("Authorization") != "Bearer from-env" {
		t.Errorf("%.200q, %v", header, err)
	}
	for want, c := range map[string]Credentials{
		"expected one token": {TokenFile: write("two", "ada a\nbob b\n")}, "contains no token": {TokenFile: write("none", "\n")},
		"two-alike:2: duplicate token name": {TokenFile: write("two-alike", "a\nb\n")}, "three:1: expected TOKEN": {TokenFile: write("three", "a b c")},
		"headers-bad:1: expected NAME: VALUE": {HeaderFile: write("headers-bad", "secret")}, "expected NAME=VARIABLE": {HeaderEnv: []string{"X-Key"}},
		"$NOT_THERE is not set": {HeaderEnv: []string{"X-Key=NOT_THERE"}}, "missing": {TokenFile: filepath.Join(dir, "missing")},
	} {
		if _, err := c.Header(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestCredentialsOfOtherEditors: Windows line endings, a byte order mark and white space around a value are ignored, in
// files and in variables.
func TestCredentialsOfOtherEditors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	t.Setenv("MY_TOKEN", " t0ken\r\n")
	t.Setenv("MY_BLANK", "\n")
	t.Setenv("MY_KEY", "key\n")
	for name, c := range map[string]Credentials{
		"files":     {TokenFile: write("token", "\ufeff# mine\r\nt0ken\r\n"), HeaderFile: write("headers", "\ufeffX-Key: key\r\n")},
		"variables": {TokenEnv: "MY_TOKEN", HeaderEnv: []string{"X-Key=MY_KEY"}},
	} {
		header, err := c.Header()
		if err != nil || header.Get("Authorization") != "Bearer t0ken" || header.Get("X-Key") != "key" {
			t.Errorf("%s: %q, %v", name, header, err)
		}
	}
	for want, c := range map[string]Credentials{
		"$MY_BLANK contains no token": {TokenEnv: "MY_BLANK"},
		"shared:2: duplicate token":   {TokenFile: write("shared", "ada t0ken\nbob t0ken\n")},
	} {
		if _, err := Tokens(c.TokenFile, c.TokenEnv); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "t0ken") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
