// This file owns the agent as a whole: what it serves, what it says of itself, which sessions are active.

package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
)

// config says how an agent is set up.
type config struct {
	state       string // the directory that sessions are kept in
	requireAuth bool
	pageSize    int           // sessions in one answer to session/list; 0 is defaultPageSize
	commandTime time.Duration // for a command in a terminal; 0 is defaultCommandTime
	log         *slog.Logger
}

// agent serves one client.
type agent struct {
	config
	store *store

	mu            sync.Mutex
	authenticated bool
	active        map[acp.SessionID]*session
}

func newAgent(c config) (*agent, error) {
	c.pageSize = cmp.Or(c.pageSize, defaultPageSize)
	c.commandTime = cmp.Or(c.commandTime, defaultCommandTime)
	store, err := openStore(c.state)
	if err != nil {
		return nil, fmt.Errorf("opening the state: %w", err)
	}
	return &agent{config: c, store: store, active: map[acp.SessionID]*session{}}, nil
}

// close ends the sessions that are still active. The connection must be over.
func (a *agent) close() error {
	var ends sync.WaitGroup
	for _, s := range a.active {
		ends.Go(func() {
			if err := s.end(); err != nil {
				s.log.Error("not ended", "error", err)
			}
		})
	}
	ends.Wait()
	return a.store.close()
}

// handlers are what the agent serves. session/cancel needs no handler: it ends the context of the prompt.
func (a *agent) handlers() acp.AgentHandlers {
	return acp.AgentHandlers{
		Authenticate:           a.authenticate,
		Logout:                 a.logout,
		NewSession:             a.newSession,
		LoadSession:            a.loadSession,
		ResumeSession:          a.resumeSession,
		ListSessions:           a.listSessions,
		CloseSession:           a.closeSession,
		DeleteSession:          a.deleteSession,
		SetSessionMode:         a.setMode,
		SetSessionConfigOption: a.setConfigOption,
		Prompt:                 a.prompt,
	}
}

// options are what the agent says of itself beyond what its handlers show.
func (a *agent) options() *acp.AgentOptions {
	return &acp.AgentOptions{
		Info:                  acp.Implementation{Name: "acp-example-agent", Title: acp.Some("Example agent"), Version: "1.0.0"},
		AuthMethods:           authMethods(),
		Prompt:                acp.PromptCapabilities{Image: true, Audio: true, EmbeddedContext: true},
		AdditionalDirectories: true,
	}
}

// session finds an active session.
func (a *agent) session(id acp.SessionID) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.active[id]; s != nil {
		return s, nil
	}
	return nil, acp.SessionNotFound(id)
}

// put makes a session active and returns the one that was so under its id, or nil.
func (a *agent) put(s *session) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.active[s.id]
	a.active[s.id] = s
	return old
}
