// This file has the state of sessions: what the agent stores about one in addition to the conversation, and what it has
// while the session is open. Package agentkit does the rest.

package main

import (
	"context"
	"errors"
	"path/filepath"
	"sync"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
)

// state is the state of a session. Fields with a JSON name are stored.
type state struct {
	Settings settings `json:"settings"`
	Titled   bool     `json:"titled"`
	Used     uint64   `json:"used"` // approximate size of the conversation in bytes

	mu      sync.Mutex            // guards everything except servers
	allowed map[acp.ToolKind]bool // kinds of tools that the user has always allowed
	servers []*mcpServer          // not changed while the session is open
}

// session is an open session.
type session = agentkit.Session[*state]

// open prepares a session that is new, loaded or resumed. It starts and initializes the session's MCP servers; the
// session is not refused if some do not start.
func (a *agent) open(ctx context.Context, s *session, o *agentkit.Opening) error {
	if s.State == nil {
		s.State = &state{Settings: defaultSettings}
	}
	s.State.allowed = map[acp.ToolKind]bool{}
	o.Modes, o.ConfigOptions, o.Commands = modes, s.State.Settings.options(s.Conn()), commands()
	servers, broken := a.startServers(ctx, s.Cwd(), o.MCPServers)
	s.State.servers = servers
	if len(broken) == 0 {
		return nil
	}
	// Clients drop messages about a session that they do not know yet (SES-31).
	acp.AfterResponse(ctx, func(ctx context.Context) {
		for _, err := range broken {
			a.log.Warn("MCP server did not start", "session", s.ID(), "error", err)
			err := s.Update(ctx, acp.NewSessionUpdateNotice(acp.Notice{
				Severity: acp.NoticeSeverityWarning, Title: "An MCP server did not start", Description: acp.Some(err.Error()),
			}))
			if err != nil && !errors.Is(err, acp.ErrUnsupported) { // not every client shows notices
				a.log.Warn("notice not sent", "session", s.ID(), "error", err)
			}
		}
	})
	return nil
}

// ended releases the resources of a closed session.
func (a *agent) ended(s *session) {
	if err := stopServers(s.State.servers); err != nil {
		a.log.Warn("MCP servers did not end", "session", s.ID(), "error", err)
	}
}

// change changes the state, and stores it.
func change(ctx context.Context, s *session, do func(*state) error) error {
	s.State.mu.Lock()
	defer s.State.mu.Unlock()
	if err := do(s.State); err != nil {
		return err
	}
	return s.SaveState(ctx)
}

// settings returns the current settings.
func (s *state) settings() settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Settings
}

// allows reports whether the user has always allowed tools of a kind.
func (s *state) allows(kind acp.ToolKind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allowed[kind]
}

// allow records that the user always allows tools of a kind.
func (s *state) allow(kind acp.ToolKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed[kind] = true
}

// absolute makes a path absolute: it is relative to the session's directory (SES-22).
func (t *turn) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(t.Cwd(), path)
}

// locate finds the directory of the session that contains an absolute path (SES-24), and the path relative to it. ok is
// false for a path outside all of them.
func (t *turn) locate(path string) (root, rel string, ok bool) {
	for _, root := range append([]string{t.Cwd()}, t.AdditionalDirectories()...) {
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			return root, rel, true
		}
	}
	return "", "", false
}
