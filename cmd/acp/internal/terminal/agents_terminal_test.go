//go:build linux || darwin

package terminal

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/acpgo/sdk/acp/registry"
	"github.com/acpgo/sdk/cmd/acp/internal/test/screen"
	"github.com/acpgo/sdk/internal/test/must"
)

// asked starts acp in a terminal, with a registry that has one agent, which is not installed. fetched counts the
// downloads of its program.
func asked(t *testing.T, args ...string) (x *screen.Terminal, dir string, fetched *atomic.Int64) {
	t.Helper()
	t.Parallel()
	fetched = &atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			fetched.Add(1)
			fmt.Fprint(w, "#!/bin/sh\nexec stage\n")
			return
		}
		fmt.Fprintf(w, `{"version":"1.0.0","agents":[{"id":"code-acp","name":"Code \u001b[2Jagent","version":"1.2.0","description":"It writes code.",
			"distribution":{"binary":{%q:{"archive":"http://%s/1.2.0/code-acp","cmd":"./code-acp","args":["--acp"]}}}}]}`, registry.Platform(), r.Host)
	}))
	t.Cleanup(server.Close)
	home := t.TempDir()
	cmd := exec.Command(acpPath(t), args...)
	cmd.Dir = t.TempDir()
	cmd.Env = screen.Env("HOME="+home, "ACP_REGISTRY_URL="+server.URL, "ACP_REGISTRY_DIR="+filepath.Join(home, "agents"))
	x = screen.Start(t, cmd, 100, 30)
	x.Wait(`agent:   Code \x1b[2Jagent (code-acp) 1.2.0`, "fetches: http://127.0.0.1:", "the registry has no checksum", "starts:  ./code-acp --acp", "Install it? [y/N]")
	return x, filepath.Join(home, "agents", "agents", "code-acp"), fetched
}

// installed reports whether any files of the agent exist.
func installed(t *testing.T, dir string) bool {
	t.Helper()
	files := must.Get(filepath.Glob(filepath.Join(dir, "*")))(t)
	return len(files) > 0
}

func TestInstallNo(t *testing.T) {
	x, dir, fetched := asked(t, "agents", "install", "code")
	x.Press("enter")
	x.Wait("acp: installing code-acp: declined by the user")
	x.Leave(statusFailed)
	if fetched.Load() != 0 || installed(t, dir) {
		t.Error("it was fetched")
	}
}

func TestInstallInterrupted(t *testing.T) {
	x, dir, fetched := asked(t, "agents", "install", "code")
	x.Press("ctrl+c")
	x.Wait("acp: interrupted")
	x.Leave(statusBySignal + 2)
	if fetched.Load() != 0 || installed(t, dir) {
		t.Error("it was fetched")
	}
}

func TestInstallYes(t *testing.T) {
	x, dir, fetched := asked(t, "agents", "install", "code")
	x.Type("y\r")
	x.Wait("installing code-acp 1.2.0", "code-acp 1.2.0")
	x.Leave(statusOK)
	if fetched.Load() != 1 || !installed(t, dir) {
		t.Error("it is not installed")
	}
}

// acp run asks before its own screen appears, and then the agent is installed.
func TestRunInstalls(t *testing.T) {
	x, dir, fetched := asked(t, "run", "code")
	x.Type("yes\r")
	x.Wait(" ready ")
	x.Press("ctrl+d")
	x.Leave(statusOK)
	if fetched.Load() != 1 || !installed(t, dir) {
		t.Error("it is not installed")
	}
}
