package registry_test

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/acp/registry"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/npmtest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// nodeAgent is an agent for Node.js that says its version.
const nodeAgent = `#!/usr/bin/env node
const version = require('./package.json').version
require('readline').createInterface({input: process.stdin}).on('line', line => {
	const m = JSON.parse(line)
	const result = m.method === 'initialize' ? {protocolVersion: 1, agentInfo: {name: process.argv.slice(2).join(' '), version}, agentCapabilities: {}} : {sessionId: 's'}
	if (m.id !== undefined) console.log(JSON.stringify({jsonrpc: '2.0', id: m.id, result}))
})
`

// npmServer is a registry of npm with packages that have the agent, each published at a time.
func npmServer(t *testing.T, published time.Time, bins map[string]string, versions ...string) string {
	t.Helper()
	files := map[string][]byte{} // by path; that of a scoped package has its slash escaped in the request
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, ok := files[r.URL.Path]; ok {
			w.Write(text)
		} else {
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	for name, bin := range bins {
		all, times := map[string]any{}, map[string]any{}
		for _, version := range versions {
			manifest := fmt.Sprintf(`{"name":%q,"version":%q,"bin":%s}`, name, version, bin)
			archive := tgz(t, item{name: "package/package.json", text: manifest, mode: 0o644}, item{name: "package/agent.js", text: nodeAgent, mode: 0o755})
			path := "/-/" + strings.ReplaceAll(name, "/", "-") + "-" + version + ".tgz"
			files[path] = archive
			sum := sha512.Sum512(archive)
			all[version] = map[string]any{
				"name": name, "version": version, "bin": json.RawMessage(bin),
				"dist": map[string]any{"tarball": srv.URL + path, "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:])},
			}
			times[version] = published.UTC().Format(time.RFC3339)
		}
		times["created"], times["modified"] = published.UTC().Format(time.RFC3339), published.UTC().Format(time.RFC3339)
		packument := must.Get(json.Marshal(map[string]any{"name": name, "dist-tags": map[string]string{"latest": versions[len(versions)-1]}, "versions": all, "time": times}))(t)
		files["/"+name] = packument
	}
	return srv.URL
}

// npmEnviron is the environment for npm: a home of its own, and our registry.
func npmEnviron(t *testing.T, address string, more ...string) []string {
	t.Helper()
	home := t.TempDir()
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "USERPROFILE=" + home, "npm_config_registry=" + address,
		"npm_config_cache=" + filepath.Join(home, "cache"), "npm_config_fetch_retries=0", "npm_config_update_notifier=false",
	}
	return append(env, more...)
}

// npmEntry is the entry of a package.
func npmEntry(id, version, pkg, cmd string) *registry.Entry {
	return &registry.Entry{
		ID: id, Name: id, Version: version, Description: "x",
		Distribution: registry.Distribution{NPX: &registry.Package{Package: pkg, Cmd: cmd, Args: []string{"--acp", "a b"}, Env: map[string]string{"A": "b"}}},
	}
}

// TestREG7_NPM installs packages with npm, and starts them without it.
func TestREG7_NPM(t *testing.T) {
	npmtest.Need(t)
	s := newServer(t)
	address := npmServer(t, time.Now().AddDate(-1, 0, 0), map[string]string{
		"@me/agent": `{"agent":"agent.js"}`, "single": `"agent.js"`, "alone": `{"other":"./agent.js"}`,
		"several": `{"x":"agent.js","y":"package.json"}`, "outside": `{"outside":"../../../../bin/sh"}`,
	}, "1.0.0", "2.0.0")
	c := s.client(t)
	c.Environ = npmEnviron(t, address)
	// The settings of a project where the client happens to be are not read: they may be of others.
	project := t.TempDir()
	for name, text := range map[string]string{".npmrc": "script-shell=/no/such/shell\nprefix=/no/such/folder\nglobal=true\n", "package.json": `{"name":"project"}`} {
		must.Do(t, os.WriteFile(filepath.Join(project, name), []byte(text), 0o600))
	}
	t.Chdir(project)
	for _, x := range []struct{ id, pkg, cmd, want string }{
		{"scoped", "@me/agent@1.0.0", "", ""},
		{"single", "single@1.0.0", "", ""},
		{"alone", "alone@1.0.0", "", ""},
		{"named", "several@1.0.0", "x", ""},
		{"several", "several@1.0.0", "", `has no command of the same name, only ["x" "y"]`},
		{"missing", "several@1.0.0", "z", `has no command "z"`},
		{"outside", "outside@1.0.0", "", "outside its directory"},
	} {
		t.Run(x.id, func(t *testing.T) {
			s.set(npmEntry(x.id, "1.0.0", x.pkg, x.cmd))
			var plan *registry.Plan
			c.Consent = func(_ context.Context, p *registry.Plan) error { plan = p; return nil }
			i, err := c.Install(t.Context(), x.id, nil)
			if text := plan.String(); !strings.Contains(text, x.pkg+", and what it depends on") || !strings.Contains(text, "--save-exact -- "+x.pkg) || !strings.Contains(text, "A=b") {
				t.Errorf("the plan is\n%s", text)
			}
			if x.want != "" {
				if err == nil || !strings.Contains(err.Error(), x.want) {
					t.Errorf("got %v, want %q", err, x.want)
				}
				if _, err := os.Stat(filepath.Join(c.Dir, "agents", x.id)); err == nil {
					t.Error("something is left")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			d := launch.Doctor(t.Context(), i.Command(), nil)
			if info := d.Agent; !d.OK() || info.AgentInfo.Value().Version != "1.0.0" || info.AgentInfo.Value().Name != "--acp a b" {
				t.Error(d)
			}
		})
	}
	s.set(npmEntry("scoped", "2.0.0", "@me/agent@2.0.0", ""))
	is(t, "2.0.0")(c.Update(t.Context(), "scoped", nil))
}

// TestREG13_MinReleaseAge: a version that is too new for npm's settings is explained, and what is installed stays.
func TestREG13_MinReleaseAge(t *testing.T) {
	npmtest.Need(t)
	s := newServer(t)
	old := npmServer(t, time.Now().AddDate(-1, 0, 0), map[string]string{"agent": `"agent.js"`}, "1.0.0")
	c := s.client(t)
	c.Environ = npmEnviron(t, old, "npm_config_min_release_age=7")
	s.set(npmEntry("agent", "1.0.0", "agent@1.0.0", ""))
	must.Get(c.Install(t.Context(), "agent", nil))(t)
	now := npmServer(t, time.Now().Add(-time.Hour), map[string]string{"agent": `"agent.js"`}, "2.0.0")
	c.Environ = npmEnviron(t, now, "npm_config_min_release_age=7")
	s.set(npmEntry("agent", "2.0.0", "agent@2.0.0", ""))
	i, err := c.Update(t.Context(), "agent", nil)
	failed, ok := errors.AsType[*registry.InstallError](err)
	if !ok || failed.Problem.Kind != launch.TooNew || !strings.Contains(err.Error(), "min-release-age") || !strings.Contains(err.Error(), "AnyAge") {
		t.Errorf("got %v", err)
	}
	if i.Entry.Version != "1.0.0" {
		t.Errorf("got %+v", i)
	}
	is(t, "2.0.0")(c.Update(t.Context(), "agent", &registry.InstallOptions{AnyAge: true}))
}

// TestNPMFails: what npm says is put in words.
func TestNPMFails(t *testing.T) {
	npmtest.Need(t)
	s := newServer(t)
	address := npmServer(t, time.Now().AddDate(-1, 0, 0), map[string]string{"agent": `"agent.js"`}, "1.0.0")
	for _, x := range []struct {
		pkg, address string
		kind         launch.ProblemKind
	}{
		{"agent@3.0.0", address, launch.NotPublished},
		{"no-such-agent@3.0.0", address, launch.NotPublished},
		{"agent@3.0.0", "http://127.0.0.1:1", launch.DownloadFailed},
	} {
		c := s.client(t)
		c.Environ = npmEnviron(t, x.address)
		s.set(npmEntry("agent", "3.0.0", x.pkg, ""))
		_, err := c.Install(t.Context(), "agent", nil)
		if failed, ok := errors.AsType[*registry.InstallError](err); !ok || failed.Problem.Kind != x.kind || failed.Output == "" {
			t.Errorf("%s: got %v, want %s", x.pkg, err, x.kind)
		}
	}
}

// TestDoctorNPX: an agent that npx fetches at its start, and why that fails.
func TestDoctorNPX(t *testing.T) {
	npmtest.Need(t)
	new := npmServer(t, time.Now().Add(-time.Hour), map[string]string{"agent": `"agent.js"`}, "1.0.0")
	for _, x := range []struct {
		name, address, more string
		kind                launch.ProblemKind
		want                string
	}{
		{"good", new, "A=b", "", "answered after"},
		{"too new", new, "npm_config_min_release_age=7", launch.TooNew, "agent@1.0.0 is newer"},
		{"no network", "http://127.0.0.1:1", "A=b", launch.DownloadFailed, "cannot reach its registry (ECONNREFUSED)"},
		{"no command", npmServer(t, time.Now(), map[string]string{"agent": `{"x":"agent.js","y":"package.json"}`}, "1.0.0"), "A=b", launch.NoCommand, "no command"},
	} {
		t.Run(x.name, func(t *testing.T) {
			command := launch.New("npx", "--yes", "agent@1.0.0")
			command.Environ = npmEnviron(t, x.address, x.more)
			d := launch.Doctor(t.Context(), command, nil)
			if d.OK() != (x.kind == "") || x.kind != "" && !d.Has(x.kind) || !strings.Contains(d.String(), x.want) {
				t.Errorf("want %q with %q:\n%s", x.kind, x.want, d)
			}
		})
	}
}

// TestREG8_Exact: a package that is not one version by name is not handed to npm or uv, and nobody is asked.
func TestREG8_Exact(t *testing.T) {
	requireShell(t)
	s := newServer(t)
	c := s.client(t)
	c.Environ = fakeTools(t, "echo called >&2; exit 1")
	c.Consent = func(context.Context, *registry.Plan) error {
		t.Error("the user is asked")
		return errors.New("no")
	}
	// refused offers an entry of npm, or of PyPI, which must not be installed.
	refused := func(what string, e *registry.Entry, uvx bool, want string) {
		t.Helper()
		if uvx {
			e.Distribution.UVX, e.Distribution.NPX = e.Distribution.NPX, nil
		}
		s.set(e)
		if _, err := c.Install(t.Context(), "agent", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q, uvx %v: got %v", what, uvx, err)
		}
	}
	for _, pkg := range []string{
		"agent", "agent@latest", "agent@^1.0.0", "agent@1.0.0 || 2", "agent@1", "agent@2.0.0", "--global@1.0.0", "-g@1.0.0", "file:/etc@1.0.0", "../x@1.0.0",
		"git+https://example.com/x@1.0.0", "https://example.com/x.tgz@1.0.0", "agent@npm:evil@1.0.0", "@/x@1.0.0", "a b@1.0.0", "", "Agent\n@1.0.0",
	} {
		refused(pkg, npmEntry("agent", "1.0.0", pkg, ""), false, "the entry of agent")
		refused(pkg, npmEntry("agent", "1.0.0", pkg, ""), true, "the entry of agent")
	}
	for _, version := range []string{"1.2.3.4", "01.2.3", "1.2.3_1", "1.2.3rc1"} { // npm takes them for names
		refused(version, npmEntry("agent", version, "agent@"+version, ""), false, "is not exact")
	}
	for _, cmd := range []string{"../sh", "-x", "a b", "/bin/sh"} {
		refused(cmd, npmEntry("agent", "1.0.0", "agent@1.0.0", cmd), false, "the entry of agent")
	}
	for _, name := range []string{"", "A=B", "A\x00", "A\nB", "A\u202eB"} {
		e := npmEntry("agent", "1.0.0", "agent@1.0.0", "")
		e.Distribution.NPX.Env = map[string]string{name: "c"}
		refused(name, e, false, "is not a valid variable name")
	}
}

// fakeTools is an environment with npm and uv of our own.
func fakeTools(t *testing.T, script string) []string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"npm", "uv"} {
		must.Do(t, buildtest.WriteFile(filepath.Join(dir, name), "#!/bin/sh\n"+script+"\n", 0o700))
	}
	return []string{"PATH=" + dir + ":/usr/bin:/bin"}
}

// TestUVX installs a package of PyPI by uv, into its folder.
func TestUVX(t *testing.T) {
	tier.Need(t, tier.Normal)
	requireShell(t)
	s := newServer(t)
	c := s.client(t)
	c.Environ = fakeTools(t, `[ "$*" = "tool install --no-config my-agent[x]==1.0.0" ] || { echo "called with $*" >&2; exit 1; }
mkdir -p "$UV_TOOL_BIN_DIR" "$UV_TOOL_DIR"
printf '%s' '`+strings.ReplaceAll(script("1.0.0"), "'", `'\''`)+`' >"$UV_TOOL_BIN_DIR/my-agent"
cp "$UV_TOOL_BIN_DIR/my-agent" "$UV_TOOL_BIN_DIR/other"
chmod +x "$UV_TOOL_BIN_DIR"/*`)
	for _, cmd := range []string{"", "other", "none"} {
		e := npmEntry("agent", "1.0.0", "my-agent[x]==1.0.0", cmd)
		e.Distribution.UVX, e.Distribution.NPX = e.Distribution.NPX, nil
		s.set(e)
		i, err := c.Install(t.Context(), "agent", &registry.InstallOptions{Again: true})
		if cmd == "none" {
			if err == nil || !strings.Contains(err.Error(), `no command "none"`) {
				t.Errorf("got %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if d := launch.Doctor(t.Context(), i.Command(), &launch.DoctorOptions{NoSession: true}); !d.OK() || !strings.HasPrefix(d.Program, i.Folder()) {
			t.Error(d)
		}
	}
}

// TestInstallErrorIsClean: nothing that npm writes reaches the terminal as it is.
func TestInstallErrorIsClean(t *testing.T) {
	for _, e := range []*registry.InstallError{
		{Package: "a\x1b[2J", Err: errors.New("exit status 1"), Output: "x\n\x1b]0;title\x07\r\u202e"},
		{Package: "a", Problem: launch.Problem{Kind: launch.NotPublished, Text: "npm knows \x1b[2J", Advice: "no\x07"}, Err: errors.New("x")},
	} {
		if text := e.Error(); strings.ContainsAny(text, "\x1b\x07\r\u202e") || !strings.Contains(text, "package a") {
			t.Errorf("%q", text)
		}
	}
}

// TestInstallerIsEnded: npm, and what it has started, end with the time, and nothing is left.
func TestInstallerIsEnded(t *testing.T) {
	t.Parallel()
	tier.Need(t, tier.Normal)
	requireShell(t)
	s := newServer(t)
	c := s.client(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if out, err := exec.Command("mkfifo", fifo).CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	opened, ended := make(chan struct{}), make(chan error, 1)
	go func() { // the end of the file comes when nobody has it open any more
		f, err := os.Open(fifo)
		close(opened)
		if err == nil {
			_, err = io.Copy(io.Discard, f)
			err = errors.Join(err, f.Close())
		}
		ended <- err
	}()
	c.Environ = fakeTools(t, "exec 9>"+fifo+"; sleep 1000 & wait")
	s.set(npmEntry("agent", "1.0.0", "agent@1.0.0", ""))
	for started, limit := false, 300*time.Millisecond; !started; limit *= 2 { // a busy machine may not start it in time
		c.Limits.InstallTime = limit
		if _, err := c.Install(t.Context(), "agent", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("after %v: got %v", limit, err)
		}
		select {
		case <-opened:
			started = true
		default:
		}
	}
	must.Do(t, <-ended)
	if _, err := os.Stat(filepath.Join(c.Dir, "agents", "agent")); err == nil {
		t.Error("something is left")
	}
}

// TestREG13_Choice: which kind is taken, and why none can be.
func TestREG13_Choice(t *testing.T) {
	requireShell(t)
	s := newServer(t)
	s.file("/a.tgz", tgz(t, item{name: "agent", text: script("1.0.0")}))
	both := npmEntry("agent", "1.0.0", "agent@1.0.0", "")
	both.Distribution.Binary = s.binary("agent", "1.0.0", "/a.tgz", true).Distribution.Binary
	only := npmEntry("only", "1.0.0", "agent@1.0.0", "")
	other := s.binary("other", "1.0.0", "/a.tgz", true)
	other.Distribution.Binary = map[string]registry.Archive{"windows-aarch64": {Archive: "https://example.com/x.zip", Cmd: "x"}}
	s.set(both, only, other)
	tools, none := fakeTools(t, "exit 1"), []string{"PATH=/none"}
	for _, x := range []struct {
		id      string
		environ []string
		prefer  []registry.Kind
		kind    registry.Kind
		want    string // the kind, or a part of the error
	}{
		{"agent", tools, nil, "", "binary"},
		{"agent", tools, []registry.Kind{registry.NPX, registry.Binary}, "", "npx"},
		{"agent", none, []registry.Kind{registry.NPX, registry.Binary}, "", "binary"},
		{"agent", tools, nil, registry.NPX, "npx"},
		{"agent", none, nil, registry.NPX, "for npx the program npm is needed, which comes with Node.js"},
		{"agent", tools, nil, registry.UVX, "it has no uvx for linux-x86_64, but [binary npx]"},
		{"agent", tools, []registry.Kind{registry.UVX}, "", "none is preferred"},
		{"only", none, nil, "", "npm is needed"},
		{"other", tools, nil, "", "nothing for linux-x86_64"},
	} {
		c := s.client(t)
		c.Environ, c.Prefer = x.environ, x.prefer
		p, err := c.Plan(t.Context(), x.id, &registry.InstallOptions{Kind: x.kind})
		got := ""
		if err != nil {
			if _, ok := errors.AsType[*registry.UnavailableError](err); !ok {
				t.Errorf("got %v", err)
			}
			got = err.Error()
		} else {
			got = string(p.Kind)
		}
		if !strings.Contains(got, x.want) || err == nil && got != x.want {
			t.Errorf("%s %v %s: got %s, want %s", x.id, x.prefer, x.kind, got, x.want)
		}
	}
}

var realAgents = flag.Bool("real.agents", false, "install and start agents from npm")

// TestRealAgents installs agents from npm that people use, by a registry on this machine, and starts them when it is gone:
// they answer initialize, and session/new or that the user has to log in.
func TestRealAgents(t *testing.T) {
	npmtest.Need(t)
	if !*realAgents {
		t.Skip("it fetches some 60 MB; -real.agents does that")
	}
	s := newServer(t)
	entry := func(id, name, version, pkg string, args ...string) *registry.Entry {
		return &registry.Entry{
			ID: id, Name: name, Version: version, Description: name,
			Distribution: registry.Distribution{NPX: &registry.Package{Package: pkg, Args: args}},
		}
	}
	s.set(entry("gemini", "Gemini CLI", "0.61.0", "@google/gemini-cli@0.61.0", "--acp"), entry("qwen-code", "Qwen Code", "0.24.4", "@qwen-code/qwen-code@0.24.4", "--acp"))
	c := s.client(t)
	for _, id := range []string{"gemini", "qwen-code"} {
		// Nothing that the packages would run is needed.
		must.Get(c.Install(t.Context(), id, &registry.InstallOptions{NoScripts: true}))(t)
	}
	s.Close()
	c.Offline = true
	all, err := c.Installed()
	if err != nil || len(all) != 2 {
		t.Fatalf("got %v, %v", all, err)
	}
	for _, i := range all {
		home := t.TempDir()
		command := i.Command()
		command.Environ = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "USERPROFILE=" + home, "TERM=dumb"}
		d := launch.Doctor(t.Context(), command, nil)
		t.Log(d)
		if d.Agent == nil || d.Agent.AgentInfo.Value().Version != i.Entry.Version {
			t.Errorf("%s does not answer initialize:\n%s", i.ID(), d)
		} else if !d.Session && !d.Has(launch.LoginRequired) {
			t.Errorf("%s opens no session, and asks for no login:\n%s", i.ID(), d)
		}
	}
	if got := s.requests(); slices.ContainsFunc(got, func(path string) bool { return path != "/registry.json" }) {
		t.Errorf("asked for %q", got)
	}
}
