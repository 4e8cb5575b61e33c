package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/acme/vendoracp"
	"github.com/acpgo/sdk/acp"
)

// Folders and sessions come from the client: only what is in the directory of a session is indexed.
func TestFoldersOutside(t *testing.T) {
	outside := t.TempDir()
	cwd := filepath.Join(outside, "cwd")
	if err := os.Mkdir(cwd, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(cwd, "link")); err != nil {
		t.Skip(err)
	}
	a := &agent{sessions: map[acp.SessionID]*session{}}
	s, err := a.newSession(t.Context(), nil, &acp.NewSessionRequest{Cwd: cwd})
	if err != nil {
		t.Fatal(err)
	}
	id := vendoracp.SessionID(s.SessionID)
	for _, root := range []string{outside, filepath.Join(cwd, ".."), filepath.Join(cwd, "link"), ".", ""} {
		if _, err := a.index(t.Context(), nil, &vendoracp.IndexRequest{SessionID: id, Root: root}); err == nil {
			t.Errorf("%q was indexed", root)
		}
	}
	if _, err := a.index(t.Context(), nil, &vendoracp.IndexRequest{SessionID: "other", Root: cwd}); !errors.Is(err, acp.ErrResourceNotFound) {
		t.Errorf("an unknown session: %v", err)
	}
	if _, err := a.index(t.Context(), nil, &vendoracp.IndexRequest{SessionID: id, Root: cwd}); err != nil {
		t.Error(err)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	a := &agent{sessions: map[acp.SessionID]*session{}}
	for range maxSessions {
		if _, err := a.newSession(t.Context(), nil, &acp.NewSessionRequest{Cwd: "/"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.newSession(t.Context(), nil, &acp.NewSessionRequest{Cwd: "/"}); !errors.Is(err, acp.ErrInvalidRequest) {
		t.Errorf("got %v", err)
	}
}

// Nothing of the agent's reaches the terminal as it is.
func TestHostileText(t *testing.T) {
	var out strings.Builder
	const hostile = "a\x1b[2J\n\u202eb"
	if err := show(&out, vendoracp.FileIndexed(hostile, hostile)); err != nil {
		t.Fatal(err)
	}
	const want = `indexed a\x1b[2J\n\u202eb a\x1b[2J\n\u202eb` + "\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
