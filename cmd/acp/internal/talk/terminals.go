package talk

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/internal/plain"
)

// Terminal is a command that runs or ran for the agent.
type Terminal struct {
	ID      acp.TerminalID
	Session acp.SessionID
	Command string
	Args    []string
	Cwd     string // "" means that of the session
	// Output is the end of the output, and Dropped the number of bytes before it.
	Output  []byte
	Dropped int
	// Ended says that the command has ended, and Exit how. Released says that the agent has released the terminal.
	Ended    bool
	Exit     acp.WaitForTerminalExitResponse
	Released bool
	// Own says that it is a terminal of the agent's own, whose Command is a line. The agent may say anything of it.
	Own bool
	// Version is incremented with every change.
	Version uint64
}

// How much of terminals is kept: bytes of the output of one and of all, and how many terminals.
const (
	maxOutput    = 256 << 10
	maxAllOutput = 64 << 20
	maxTerminals = 4096
)

// terminals stores what is shown of terminals.
type terminals struct {
	changed func(acp.SessionID, acp.TerminalID) // may be nil

	mu    sync.Mutex
	byID  map[acp.TerminalID]*Terminal
	order []*Terminal // the oldest first
	bytes int
}

// change changes a terminal, which is created if it does not exist.
func (t *terminals) change(session acp.SessionID, id acp.TerminalID, change func(*Terminal)) {
	t.mu.Lock()
	term := t.byID[id]
	if term == nil {
		if t.byID == nil {
			t.byID = map[acp.TerminalID]*Terminal{}
		}
		term = &Terminal{ID: id, Session: session}
		t.byID[id] = term
		t.order = append(t.order, term)
	}
	before := len(term.Output)
	change(term)
	if extra := len(term.Output) - maxOutput; extra > 0 {
		term.Dropped += extra
		term.Output = slices.Clone(term.Output[extra:])
	}
	t.bytes += len(term.Output) - before
	term.Version++
	t.forget()
	t.mu.Unlock()
	if t.changed != nil {
		t.changed(session, id)
	}
}

// showAgentTerminal processes the _meta of a tool call about one of the agent's own terminals. This is a convention of
// the adapters of Codex and Claude Code and not part of the protocol. Other values of these members are ignored.
func (c *Client) showAgentTerminal(session acp.SessionID, meta acp.Meta) {
	var info struct {
		ID      acp.TerminalID `json:"terminal_id"`
		Command string         `json:"command"`
		Cwd     string         `json:"cwd"`
	}
	var output struct {
		ID   acp.TerminalID `json:"terminal_id"`
		Data string         `json:"data"`
	}
	var exit struct {
		ID     acp.TerminalID `json:"terminal_id"`
		Code   *int           `json:"exit_code"`
		Signal *string        `json:"signal"`
	}
	if ok, err := meta.Get(plain.TerminalInfoKey, &info); ok && err == nil {
		c.shown.changeAgents(session, info.ID, func(t *Terminal) { // what is left out is as before
			t.Command, t.Cwd = cmp.Or(info.Command, t.Command), cmp.Or(info.Cwd, t.Cwd)
		})
	}
	if ok, err := meta.Get(plain.TerminalKey, &output); ok && err == nil {
		c.shown.changeAgents(session, output.ID, func(t *Terminal) { t.Output = append(t.Output, output.Data...) })
	}
	if ok, err := meta.Get(plain.TerminalExitKey, &exit); ok && err == nil {
		c.shown.changeAgents(session, exit.ID, func(t *Terminal) {
			t.Ended, t.Released = true, true
			if exit.Code != nil && *exit.Code >= 0 {
				t.Exit.ExitCode = acp.Some(uint32(*exit.Code))
			}
			if exit.Signal != nil {
				t.Exit.Signal = acp.Some(*exit.Signal)
			}
		})
	}
}

// changeAgents changes one of the agent's own terminals. It ignores terminals of this client and of other sessions.
func (t *terminals) changeAgents(session acp.SessionID, id acp.TerminalID, change func(*Terminal)) {
	t.mu.Lock()
	known := t.byID[id]
	t.mu.Unlock()
	if id != "" && (known == nil || known.Own && known.Session == session) {
		t.change(session, id, func(t *Terminal) {
			t.Own = true
			change(t)
		})
	}
}

// forget removes ended terminals, the oldest first, while there are too many; mu must be held.
func (t *terminals) forget() {
	if t.bytes <= maxAllOutput && len(t.order) <= maxTerminals {
		return
	}
	t.order = slices.DeleteFunc(t.order, func(term *Terminal) bool {
		if !term.Released && !term.Own || t.bytes <= maxAllOutput && len(t.byID) <= maxTerminals {
			return false
		}
		t.bytes -= len(term.Output)
		delete(t.byID, term.ID)
		return true
	})
}

// Terminal returns what is known of a terminal. It remains available after the agent has released it, until very many
// others follow.
func (c *Client) Terminal(id acp.TerminalID) (Terminal, bool) {
	c.shown.mu.Lock()
	defer c.shown.mu.Unlock()
	term := c.shown.byID[id]
	if term == nil {
		return Terminal{}, false
	}
	shown := *term
	shown.Output = slices.Clone(term.Output)
	return shown, true
}

// registerFiles registers the handlers for files.
func (c *Client) registerFiles(h *acp.ClientHandlers, approval *local.Approval) {
	local.NewFiles(c.roots, approval, nil).Register(h)
	h.ReadTextFile = rooted(c, h.ReadTextFile)
	h.WriteTextFile = rooted(c, h.WriteTextFile)
}

// rooted wraps a handler so that it knows the directories of a session that has its own.
func rooted[P, R any](
	c *Client, inner func(context.Context, *acp.ClientSession, *P) (*R, error),
) func(context.Context, *acp.ClientSession, *P) (*R, error) {
	return func(ctx context.Context, session *acp.ClientSession, req *P) (*R, error) {
		if err := c.root(session); err != nil {
			return nil, err
		}
		return inner(ctx, session, req)
	}
}

// root sets the directories of a session on its connection.
func (c *Client) root(session *acp.ClientSession) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, key := c.ownerOf(session.ID()), rootKey{session.RPC(), session.ID()}
	if s == nil || !s.own || c.rooted[key] {
		return nil
	}
	if err := c.roots.SetSession(session, s.cwd, s.dirs...); err != nil {
		return err
	}
	for other := range c.rooted { // of connections that are over
		if other.conn != key.conn {
			delete(c.rooted, other)
		}
	}
	c.rooted[key] = true
	return nil
}

// registerTerminals registers the handlers for terminals.
func (c *Client) registerTerminals(h *acp.ClientHandlers, approval *local.Approval) {
	c.terminals = local.NewTerminals(c.roots, approval, &local.TerminalsOptions{
		Shell: local.DefaultShell(),
		Env:   c.opts.Environ,
		OnOutput: func(session local.Session, id acp.TerminalID, output []byte) {
			c.shown.change(session.ID(), id, func(t *Terminal) { t.Output = append(t.Output, output...) })
		},
	})
	c.terminals.Register(h)
	h.CreateTerminal = rooted(c, c.createTerminal)
	release := h.ReleaseTerminal
	h.ReleaseTerminal = func(ctx context.Context, session *acp.ClientSession,
		req *acp.ReleaseTerminalRequest) (*acp.ReleaseTerminalResponse, error) {
		res, err := release(ctx, session, req)
		if err == nil {
			c.shown.change(session.ID(), req.TerminalID, func(t *Terminal) { t.Ended, t.Released = true, true })
		}
		return res, err
	}
}

func (c *Client) createTerminal(ctx context.Context, session *acp.ClientSession,
	req *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
	res, err := c.terminals.CreateTerminal(ctx, session, req)
	if err != nil {
		return nil, err
	}
	id := res.TerminalID
	c.shown.change(session.ID(), id, func(t *Terminal) {
		if t.Own { // the agent has used the id before
			*t = Terminal{ID: id, Session: session.ID(), Version: t.Version}
		}
		t.Command, t.Args, t.Cwd = req.Command, req.Args, req.Cwd.Value()
	})
	c.running.Go(func() {
		exit, err := c.terminals.WaitForTerminalExit(c.life, session,
			&acp.WaitForTerminalExitRequest{SessionID: session.ID(), TerminalID: id})
		c.shown.change(session.ID(), id, func(t *Terminal) {
			if t.Ended = true; err == nil {
				t.Exit = *exit
			}
		})
	})
	if s := c.owner(session.ID()); s != nil && s.makes(session, id) {
		c.kill(session, id)
	}
	return res, nil
}

// kill ends a command. The terminal stays, so that the agent can read its output.
func (c *Client) kill(session *acp.ClientSession, id acp.TerminalID) {
	// It fails if the terminal was released.
	_, _ = c.terminals.KillTerminal(c.life, session, &acp.KillTerminalRequest{SessionID: session.ID(), TerminalID: id})
}

// makes records a terminal of the turns in progress, and reports whether they were cancelled.
func (s *Session) makes(session *acp.ClientSession, id acp.TerminalID) (cancelled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.turns) == 0 {
		return false
	}
	s.made[id] = session
	return s.cancelled
}

// tellTime is how long sending the cancellation of a turn may take.
const tellTime = time.Second

// endTurn ends what the cancelled turns in progress have started on this machine. It notifies the agent first: an agent
// that reads the answer to a form before the cancellation might end its turn in another way.
func (s *Session) endTurn() {
	ctx, cancel := context.WithTimeout(s.client.life, tellTime)
	defer cancel()
	if current, err := s.conn.Live(ctx); err == nil {
		_ = current.Cancel(ctx) // it fails if the connection is lost, and then the turn is over too
	}
	s.mu.Lock()
	s.cancelled = true
	s.over(ErrCancelled)
	made := s.made
	s.made = map[acp.TerminalID]*acp.ClientSession{}
	s.mu.Unlock()
	var killing sync.WaitGroup
	for id, session := range made {
		killing.Go(func() { s.client.kill(session, id) })
	}
	killing.Wait()
}
