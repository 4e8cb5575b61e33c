package talk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/reconnect"
	"github.com/acpgo/sdk/acp/view"
)

// SessionOptions say where a session works. Nil, and the zero value of each field, mean the value of the Client.
type SessionOptions struct {
	Cwd        string
	Dirs       []string
	MCPServers []acp.MCPServer
}

// Session is a session of the agent. Its methods are safe for concurrent use.
type Session struct {
	client *Client
	conn   *reconnect.Session
	state  *view.State
	cwd    string
	dirs   []string
	own    bool // the directories differ from those of the Client

	mu        sync.Mutex
	turns     map[*turn]struct{} // in progress
	made      map[acp.TerminalID]*acp.ClientSession
	cancelled bool            // one of the turns in progress was cancelled
	work      context.Context // ends when the turns in progress are over or cancelled
	over      context.CancelCauseFunc
}

// turn is a prompt in progress.
type turn struct{ cancel context.CancelCauseFunc }

// ErrCancelled is the error of a turn that Session.Cancel cancelled if the agent does not respond in time.
var ErrCancelled = errors.New("the turn was cancelled")

var errTurnOver = errors.New("the turn is over")

// place is where a session works.
type place struct {
	cwd     string
	dirs    []string
	servers []acp.MCPServer
	own     bool // the directories differ from those of the Client
}

// place returns where a session works.
func (c *Client) place(ctx context.Context, o *SessionOptions) (p place, err error) {
	if o == nil {
		o = &SessionOptions{}
	}
	p = place{cwd: c.opts.Cwd, dirs: c.opts.Dirs, servers: c.opts.MCPServers}
	if o.Cwd != "" {
		if p.cwd, err = filepath.Abs(o.Cwd); err != nil {
			return p, err
		}
		p.own = p.cwd != c.opts.Cwd
	}
	if o.Dirs != nil {
		p.own, p.dirs = true, nil
		for _, dir := range o.Dirs {
			if dir, err = filepath.Abs(dir); err != nil {
				return p, err
			}
			p.dirs = append(p.dirs, dir)
		}
	}
	if o.MCPServers != nil {
		p.servers = o.MCPServers
	}
	if len(p.servers) > 0 {
		agent, err := c.agentConn(ctx)
		if err == nil {
			err = accepts(agent.Capabilities().MCPCapabilities, p.servers)
		}
		if err != nil {
			return p, err
		}
	}
	if len(p.dirs) == 0 {
		p.dirs = nil // even an empty list is sent and needs a capability
	}
	return p, nil
}

// open opens a session by a method, and registers it.
func (c *Client) open(ctx context.Context, o *SessionOptions, method string,
	open func(context.Context, place) (*reconnect.Session, error)) (*Session, error) {
	p, err := c.place(ctx, o)
	if err != nil {
		return nil, err
	}
	conn, err := step(ctx, c, method,
		func(ctx context.Context) (*reconnect.Session, error) { return open(ctx, p) })
	if err != nil {
		return nil, c.asLogin(err)
	}
	s := &Session{client: c, conn: conn, state: c.states.Of(conn.ID()), cwd: p.cwd, dirs: p.dirs, own: p.own,
		turns: map[*turn]struct{}{}}
	current, err := conn.Live(ctx)
	if err != nil {
		return nil, err
	}
	s.state.SetSession(current)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions[conn.ID()] = s
	return s, nil
}

// NewSession creates a session. The error matches a *LoginError if the user has to log in first.
func (c *Client) NewSession(ctx context.Context, o *SessionOptions) (*Session, error) {
	return c.open(ctx, o, acp.MethodNewSession, func(ctx context.Context, p place) (*reconnect.Session, error) {
		return c.conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: p.cwd, AdditionalDirectories: p.dirs,
			MCPServers: p.servers})
	})
}

// Load loads a session and its history.
func (c *Client) Load(ctx context.Context, id acp.SessionID, o *SessionOptions) (*Session, error) {
	return c.open(ctx, o, acp.MethodLoadSession, func(ctx context.Context, p place) (*reconnect.Session, error) {
		c.states.Of(id).Reset()
		return c.conn.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: id, Cwd: p.cwd, AdditionalDirectories: p.dirs,
			MCPServers: p.servers})
	})
}

// Resume continues a session without its history.
func (c *Client) Resume(ctx context.Context, id acp.SessionID, o *SessionOptions) (*Session, error) {
	return c.open(ctx, o, acp.MethodResumeSession, func(ctx context.Context, p place) (*reconnect.Session, error) {
		return c.conn.ResumeSession(ctx, &acp.ResumeSessionRequest{SessionID: id, Cwd: p.cwd,
			AdditionalDirectories: p.dirs, MCPServers: p.servers})
	})
}

// Fork copies a session and opens the copy. It fails with acp.ErrUnsupported if the agent does not support it.
func (c *Client) Fork(ctx context.Context, id acp.SessionID, o *SessionOptions) (*Session, error) {
	return c.open(ctx, o, acp.MethodForkSession, func(ctx context.Context, p place) (*reconnect.Session, error) {
		agent, err := c.agentConn(ctx)
		if err != nil {
			return nil, err
		}
		forked, err := agent.ForkSession(ctx, &acp.ForkSessionRequest{SessionID: id, Cwd: p.cwd,
			AdditionalDirectories: p.dirs, MCPServers: p.servers})
		if err != nil {
			return nil, err
		}
		return c.conn.Adopt(ctx, &acp.LoadSessionRequest{SessionID: forked.ID(), Cwd: p.cwd,
			AdditionalDirectories: p.dirs, MCPServers: p.servers})
	})
}

// Rename sets the title of a session. It fails with acp.ErrUnsupported if the agent does not support it.
func (c *Client) Rename(ctx context.Context, id acp.SessionID, title string) error {
	agent, err := c.agentConn(ctx)
	if err != nil {
		return err
	}
	_, err = agent.Session(id).SetTitle(ctx, title)
	return err
}

// Delete removes a session from the agent's list. It fails with acp.ErrUnsupported if the agent does not support it.
func (c *Client) Delete(ctx context.Context, id acp.SessionID) error {
	agent, err := c.agentConn(ctx)
	if err != nil {
		return err
	}
	return agent.Session(id).Delete(ctx)
}

// Sessions yields the agent's sessions of all pages: those in the directory cwd, unless it is "". An agent may have
// been told the directory's path with or without symbolic links, and compares paths as text, so it is asked for both.
func (c *Client) Sessions(ctx context.Context, cwd string) iter.Seq2[acp.SessionInfo, error] {
	return func(yield func(acp.SessionInfo, error) bool) {
		agent, err := c.agentConn(ctx)
		if err != nil {
			yield(acp.SessionInfo{}, err)
			return
		}
		spellings := []string{cwd}
		if real, err := filepath.EvalSymlinks(cwd); err == nil && cwd != "" && real != cwd {
			spellings = append(spellings, real)
		}
		seen := map[acp.SessionID]bool{}
		for _, spelling := range spellings {
			for info, err := range agent.Sessions(ctx, spelling) {
				if err == nil && seen[info.SessionID] {
					continue
				}
				seen[info.SessionID] = true
				if !yield(info, err) {
					return
				}
			}
		}
	}
}

// Session returns a session that is open, or nil.
func (c *Client) Session(id acp.SessionID) *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[id]
}

// maxParents is the maximum number of subagents whose parent is remembered.
const maxParents = 10_000

// adopt records the parent of a subagent's session if a line names it. It reads the line before the connection does: a
// handler of the update would be too late, because the requests of one session do not wait for the updates of another.
func (c *Client) adopt(line []byte) {
	var m struct {
		Params struct {
			SessionID acp.SessionID `json:"sessionId"`
			Update    struct {
				Kind      string        `json:"sessionUpdate"`
				SessionID acp.SessionID `json:"sessionId"`
			} `json:"update"`
		} `json:"params"`
	}
	if json.Unmarshal(line, &m) != nil || m.Params.Update.Kind != "subagent_update" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.parents) < maxParents && m.Params.Update.SessionID != m.Params.SessionID {
		c.parents[m.Params.Update.SessionID] = m.Params.SessionID
	}
}

// maxDepth is how many levels of subagents are followed to the session that they work for.
const maxDepth = 100

// owner returns the session with this id, or the one that it works for as a subagent; nil if there is none.
func (c *Client) owner(id acp.SessionID) *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ownerOf(id)
}

// ownerOf is owner with mu held.
func (c *Client) ownerOf(id acp.SessionID) *Session {
	for range maxDepth {
		if s := c.sessions[id]; s != nil {
			return s
		}
		id = c.parents[id]
	}
	return nil
}

// ID returns the session's id.
func (s *Session) ID() acp.SessionID { return s.conn.ID() }

// State returns the conversation.
func (s *Session) State() *view.State { return s.state }

// Cwd returns the directory in which the session works.
func (s *Session) Cwd() string { return s.cwd }

// Prompt runs a turn and waits for its end. If ctx ends or Cancel is called, the turn is cancelled: its terminals end,
// the agent is notified, and Prompt waits for its response. The error is a *reconnect.InterruptedError if the
// connection was lost meanwhile.
func (s *Session) Prompt(ctx context.Context, prompt ...acp.ContentBlock) (*acp.PromptResponse, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := &turn{cancel}
	s.mu.Lock()
	if len(s.turns) == 0 {
		s.cancelled, s.made = false, map[acp.TerminalID]*acp.ClientSession{}
		s.work, s.over = context.WithCancelCause(context.WithoutCancel(ctx))
	}
	s.turns[t] = struct{}{}
	s.mu.Unlock()
	var ending sync.WaitGroup
	ending.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer ending.Done()
		s.endTurn()
	})
	res, err := view.Prompt(ctx, s.state, s.conn, prompt...)
	if stop() {
		ending.Done()
	}
	ending.Wait()
	s.mu.Lock()
	if delete(s.turns, t); len(s.turns) == 0 {
		s.over(errTurnOver)
	}
	s.mu.Unlock()
	return res, s.client.asLogin(err)
}

// Cancel cancels the turns in progress. It does not wait for their end.
func (s *Session) Cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.turns {
		t.cancel(ErrCancelled)
	}
}

// turnOf returns a context that ends when the turns now in progress in a session, or in the one that it works for, are
// over or cancelled. Nobody must answer then what was asked in them. For an id that no session has, which an agent
// could choose to outlive its turn, any session with a turn in progress counts.
func (c *Client) turnOf(id acp.SessionID) context.Context {
	sessions := []*Session{c.owner(id)}
	if sessions[0] == nil {
		c.mu.Lock()
		sessions = slices.Collect(maps.Values(c.sessions))
		c.mu.Unlock()
	}
	for _, s := range sessions {
		s.mu.Lock()
		work, working := s.work, len(s.turns) > 0
		s.mu.Unlock()
		if working {
			return work
		}
	}
	return context.Background()
}

// Close cancels the turns in progress, ends the session's terminals, and closes the session at the agent if the agent
// supports it.
func (s *Session) Close(ctx context.Context) error {
	s.Cancel()
	c := s.client
	c.mu.Lock()
	delete(c.sessions, s.ID())
	c.mu.Unlock()
	if memory, ok := c.memory.(*policy.SessionMemory); ok {
		memory.Forget(s.ID())
	}
	current, err := s.conn.Live(ctx)
	if err == nil {
		err = s.conn.Close(ctx)
		if c.terminals != nil {
			err = errors.Join(err, c.terminals.CloseSession(current))
		}
		c.roots.RemoveSession(current)
	}
	return err
}

// Title returns the session's title, or else its id.
func (s *Session) Title() string { return cmp.Or(s.state.Snapshot().Title.Value(), string(s.ID())) }
