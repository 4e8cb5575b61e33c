package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/registry"
)

func TestMatch(t *testing.T) {
	ids := []string{"claude-code-acp", "codex-acp", "codex-other", "codex", "gemini", "my-gemini", "my-claude-tool", "go-go"}
	for name, want := range map[string]string{
		"gemini": "gemini", "claude": "claude-code-acp", "claude-code": "claude-code-acp", "codex": "codex", "tool": "my-claude-tool",
		"go": "go-go", "code": "claude-code-acp",
		"my": "my-claude-tool my-gemini", "acp": "claude-code-acp codex-acp", "other": "codex-other",
		"gem": "", "": "", "-": "", "Gemini": "", "claude-": "", "\x1b[2J": "",
	} {
		got, err := registry.Match(name, ids)
		switch ambiguous, is := errors.AsType[*registry.AmbiguousError](err); {
		case is:
			got = strings.Join(ambiguous.IDs, " ")
			if ambiguous.Name != name || !strings.Contains(err.Error(), strings.Join(ambiguous.IDs, " or ")) {
				t.Errorf("%q: %v", name, err)
			}
		case err != nil && !errors.Is(err, registry.ErrUnknownAgent):
			t.Errorf("%q: %v", name, err)
		}
		if got != want || (err == nil) != (want != "" && !strings.Contains(want, " ")) {
			t.Errorf("%q: got %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestResolveNames(t *testing.T) {
	s := newServer(t)
	entry := func(id string) string {
		return fmt.Sprintf(`{"id":%q,"name":"A","version":"1.0.0","description":"D","distribution":{"binary":{%q:{"archive":%q,"cmd":"./run","args":["--acp"]}}}}`,
			id, registry.Platform(), s.file("/1.0.0/run", []byte("#!/bin/sh\n")))
	}
	s.set(entry("one-acp"), entry("two-acp"))
	asked := 0
	c := &registry.Client{URL: s.URL + "/registry.json", Dir: t.TempDir(), Consent: func(context.Context, *registry.Plan) error { asked++; return nil }}
	if _, err := c.Resolve(t.Context(), "acp"); !errors.As(err, new(*registry.AmbiguousError)) || asked > 0 {
		t.Errorf("two: %v", err)
	}
	fails(t, registry.ErrUnknownAgent)(c.Resolve(t.Context(), "three"))
	fails(t, registry.ErrNotInstalled)(c.FindName("one"))
	installed, err := c.Resolve(t.Context(), "one")
	if err != nil || installed.ID() != "one-acp" || asked != 1 {
		t.Fatalf("got %v, %v, asked %d times", installed, err, asked)
	}
	// What is installed comes first, and needs neither network nor consent.
	s.Close()
	c.Offline, c.Consent = true, nil
	for _, name := range []string{"one", "one-acp", "acp"} {
		if again, err := c.Resolve(t.Context(), name); err != nil || again.ID() != "one-acp" {
			t.Errorf("%s: %v", name, err)
		}
	}
	// New agents are found, though the list is cached.
	s = newServer(t)
	s.set(entry("one-acp"), entry("new-acp"))
	c.URL, c.Offline = s.URL+"/registry.json", false
	fails(t, registry.ErrNoConsent)(c.Resolve(t.Context(), "new-acp"))
}

func TestAmbiguousError(t *testing.T) {
	for want, ids := range map[string][]string{
		`"x" matches several agents`: nil, `"x" matches several agents: a`: {"a"}, `"x" matches several agents: a or b`: {"a", "b"},
		`"x" matches several agents: a, b or c`: {"a", "b", "c"},
	} {
		if got := (&registry.AmbiguousError{Name: "x", IDs: ids}).Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
