package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/sessionstore"
)

// config configures an agent.
type config struct {
	state       string // the directory for sessions
	requireAuth bool
	pageSize    int           // sessions in one answer to session/list; 0 means agentkit's default
	commandTime time.Duration // for a command in a terminal; 0 means defaultCommandTime
	maxSessions int           // open sessions; 0 means agentkit's default
	maxServers  int           // MCP servers of all sessions; 0 means defaultMaxServers
	log         *slog.Logger
}

// agent serves one client.
type agent struct {
	config
	dir      *os.Root // the state directory
	store    *sessionstore.Dir
	sessions *agentkit.Sessions[*state]
	running  slots // running MCP servers
	starting slots // starting MCP servers

	mu            sync.Mutex
	authenticated bool
	prompts       map[*prompt]bool // prompts in progress
}

func newAgent(c config) (*agent, error) {
	c.commandTime = cmp.Or(c.commandTime, defaultCommandTime)
	c.maxServers = cmp.Or(c.maxServers, defaultMaxServers)
	c.log = cmp.Or(c.log, slog.Default())
	a := &agent{
		config:   c,
		running:  make(slots, c.maxServers),
		starting: make(slots, maxStarting),
		prompts:  map[*prompt]bool{},
	}
	var err error
	a.store, err = sessionstore.Open(filepath.Join(c.state, "sessions"), &sessionstore.Options{
		Damaged: func(damage sessionstore.Damage) {
			a.log.Warn("a part of a session was left out", "error", damage)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("opening the state: %w", err)
	}
	if a.dir, err = openState(c.state); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the state: %w", err), a.store.Close())
	}
	a.sessions = agentkit.NewSessions(agentkit.Config[*state]{
		Store: a.store, Open: a.open, Close: a.ended, SetOption: setOption,
		Prompt:      a.answer,
		Title:       func([]acp.ContentBlock) string { return "" }, // see finish
		PageSize:    c.pageSize,
		MaxSessions: c.maxSessions,
		Logger:      c.log,
	})
	return a, nil
}

// close ends the sessions that are still open. The connection must be over.
func (a *agent) close() error {
	a.sessions.Close()
	return errors.Join(a.store.Close(), a.dir.Close())
}

// handlers returns the agent's handlers; all but authenticate require a login. session/cancel needs no handler: it ends
// the context of the prompt.
func (a *agent) handlers() acp.AgentHandlers {
	h := a.sessions.Handlers()
	return acp.AgentHandlers{
		Authenticate:           a.authenticate,
		Logout:                 authorized(a, a.logout),
		NewSession:             authorized(a, h.NewSession),
		LoadSession:            authorized(a, h.LoadSession),
		ResumeSession:          authorized(a, h.ResumeSession),
		ListSessions:           authorized(a, h.ListSessions),
		CloseSession:           authorized(a, h.CloseSession),
		DeleteSession:          authorized(a, h.DeleteSession),
		SetSessionMode:         authorized(a, h.SetSessionMode),
		SetSessionConfigOption: authorized(a, h.SetSessionConfigOption),
		Prompt:                 whileAuthorized(a, h.Prompt),
	}
}

// options returns what the agent advertises in addition to its handlers.
func (a *agent) options() *acp.AgentOptions {
	return a.sessions.Options(&acp.AgentOptions{
		Info: acp.Implementation{Name: "acp-example-agent", Title: acp.Some("Example agent"),
			Version: "1.0.0"},
		AuthMethods:           authMethods(),
		Prompt:                acp.PromptCapabilities{Image: true, Audio: true, EmbeddedContext: true},
		MCP:                   acp.MCPCapabilities{HTTP: true},
		AdditionalDirectories: true,
	})
}

// answer answers a prompt. If the turn was cancelled, it returns the resulting error, and the runtime answers with the
// stop reason cancelled (PRM-11, PRM-12).
func (a *agent) answer(ctx context.Context, kit *agentkit.Turn[*state], req *acp.PromptRequest) (*acp.PromptResponse,
	error) {
	t := &turn{Turn: kit, commandTime: a.commandTime, log: a.log.With("session", kit.ID()), stop: acp.StopReasonEndTurn}
	for _, block := range req.Prompt {
		t.take(block)
	}
	err := t.play(ctx)
	if errors.Is(err, agentkit.ErrDismissed) {
		t.stop, err = acp.StopReasonCancelled, nil
	}
	if err := t.finish(ctx); err != nil {
		t.log.Error("turn not kept or not reported", "error", err)
	}
	if err == nil && ctx.Err() != nil { // cancelled just now
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &acp.PromptResponse{StopReason: t.stop}, nil
}
