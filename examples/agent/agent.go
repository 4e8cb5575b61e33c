// This file owns the agent as a whole: what it serves, what it says of itself, which sessions are active.

package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/acp"
)

// config says how an agent is set up.
type config struct {
	state       string // the directory that sessions are kept in
	requireAuth bool
	pageSize    int           // sessions in one answer to session/list; 0 is defaultPageSize
	commandTime time.Duration // for a command in a terminal; 0 is defaultCommandTime
	maxHistory  int           // bytes of conversations in memory; 0 is defaultMaxHistory
	maxServers  int           // MCP servers of all sessions; 0 is defaultMaxServers
	log         *slog.Logger
}

// agent serves one client.
type agent struct {
	config
	store    *store
	running  slots        // for MCP servers
	starting slots        // for those that start
	kept     atomic.Int64 // bytes of the conversations of all active sessions

	mu            sync.Mutex
	authenticated bool
	active        map[acp.SessionID]*session
	changing      map[acp.SessionID]bool // sessions that are being opened, closed or deleted
}

// maxSessions is how many sessions may be active at once.
const maxSessions = 256

func newAgent(c config) (*agent, error) {
	c.pageSize = cmp.Or(c.pageSize, defaultPageSize)
	c.commandTime = cmp.Or(c.commandTime, defaultCommandTime)
	c.maxHistory = cmp.Or(c.maxHistory, defaultMaxHistory)
	c.maxServers = cmp.Or(c.maxServers, defaultMaxServers)
	store, err := openStore(c.state)
	if err != nil {
		return nil, fmt.Errorf("opening the state: %w", err)
	}
	return &agent{
		config:   c,
		store:    store,
		running:  make(slots, c.maxServers),
		starting: make(slots, maxStarting),
		active:   map[acp.SessionID]*session{},
		changing: map[acp.SessionID]bool{},
	}, nil
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

// handlers are what the agent serves; all but authenticate is for who is logged in. session/cancel needs no handler: it
// ends the context of the prompt.
func (a *agent) handlers() acp.AgentHandlers {
	return acp.AgentHandlers{
		Authenticate:           a.authenticate,
		Logout:                 authorized(a, a.logout),
		NewSession:             authorized(a, a.newSession),
		LoadSession:            authorized(a, a.loadSession),
		ResumeSession:          authorized(a, a.resumeSession),
		ListSessions:           authorized(a, a.listSessions),
		CloseSession:           authorized(a, a.closeSession),
		DeleteSession:          authorized(a, a.deleteSession),
		SetSessionMode:         authorized(a, a.setMode),
		SetSessionConfigOption: authorized(a, a.setConfigOption),
		Prompt:                 authorized(a, a.prompt),
	}
}

// options are what the agent says of itself beyond what its handlers show.
func (a *agent) options() *acp.AgentOptions {
	return &acp.AgentOptions{
		Info:                  acp.Implementation{Name: "acp-example-agent", Title: acp.Some("Example agent"), Version: "1.0.0"},
		AuthMethods:           authMethods(),
		Prompt:                acp.PromptCapabilities{Image: true, Audio: true, EmbeddedContext: true},
		MCP:                   acp.MCPCapabilities{HTTP: true},
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

// change keeps others from opening, closing or deleting a session until done is called.
func (a *agent) change(id acp.SessionID) (done func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.changing[id] {
		return nil, acp.ErrInvalidRequest.WithMessagef("the session is being opened, closed or deleted")
	}
	a.changing[id] = true
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.changing, id)
	}, nil
}

// room refuses one session too many, and any while the conversations of those that are active fill their room. Those
// that are being opened count.
func (a *agent) room() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.active)+len(a.changing) > maxSessions {
		return acp.ErrInvalidRequest.WithMessagef("%d sessions are open, which is the most: close one", len(a.active))
	}
	if a.kept.Load() > int64(a.maxHistory) {
		return errFull
	}
	return nil
}

// put makes a session active.
func (a *agent) put(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active[s.id] = s
}
