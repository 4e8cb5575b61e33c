//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// What is not a regular file is not waited for, and not replaced.
func TestPipesInTheState(t *testing.T) {
	state := t.TempDir()
	h := connect(t, setup{state: state, requireAuth: true})
	pipes := []string{fileOf(state, "sess_pipe", ".json"), filepath.Join(state, loginFile)}
	for _, path := range pipes {
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/dev/zero", fileOf(state, "sess_link", ".json")); err != nil {
		t.Fatal(err)
	}
	_, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: h.dir})
	wantCode(t, err, acp.ErrAuthRequired) // a pipe is no login
	if err := logIn(state, strings.NewReader("Ada\n"), t.Output()); err == nil {
		t.Error("the login replaced a pipe")
	}
	if _, err := h.Authenticate(t.Context(), &acp.AuthenticateRequest{MethodID: authAgent}); err != nil {
		t.Fatal(err)
	}
	s := h.session(t)
	if got := list(t, h, ""); len(got) != 1 || got[0].SessionID != s.ID() {
		t.Errorf("listed are %v", got)
	}
	for _, id := range []acp.SessionID{"sess_pipe", "sess_link"} {
		_, err = h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: id, Cwd: h.dir})
		wantCode(t, err, rpc.ErrInternal)
	}
	for _, path := range pipes {
		if info, err := os.Lstat(path); err != nil || info.Mode().Type() != os.ModeNamedPipe {
			t.Errorf("%s is now %v, %v", path, info.Mode(), err)
		}
	}
}

// Others could plant sessions in a directory that everyone can write to.
func TestSharedState(t *testing.T) {
	state := t.TempDir()
	if err := os.Chmod(state, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if _, err := newAgent(config{state: state}); err == nil || !strings.Contains(err.Error(), "can write") {
		t.Errorf("got %v", err)
	}
	state = filepath.Join(t.TempDir(), "state")
	a, err := newAgent(config{state: state})
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	if info, err := os.Stat(state); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has the mode %v, %v", info.Mode(), err)
	}
	if err := keepLogin(a.dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(state, loginFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the login has the mode %v, %v", info.Mode(), err)
	}
}
