package talk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/reconnect"
	"github.com/acpgo/sdk/acp/view"
)

// SessionOptions say where a session works. Nil, and the zero value of each field, mean those of the Client.
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
	own    bool // the folders are not those of the Client

	mu        sync.Mutex
	turns     map[*turn]struct{} // in progress
	made      map[acp.TerminalID]*acp.ClientSession
	cancelled bool // a turn of those in progress was cancelled
	stopped   chan struct{}
}

// turn is a prompt in progress.
type turn struct{ cancel context.CancelCauseFunc }

// ErrCancelled is why a turn ends that Session.Cancel has cancelled, if the agent gives no answer in time.
var ErrCancelled = errors.New("the turn was cancelled")

// place is where a session works.
func (c *Client) place(o *SessionOptions) (cwd string, dirs []string, servers []acp.MCPServer, own bool, err error) {
	if o == nil {
		o = &SessionOptions{}
	}
	cwd, dirs, servers = c.opts.Cwd, c.opts.Dirs, c.opts.MCPServers
	if o.Cwd != "" {
		if cwd, err = filepath.Abs(o.Cwd); err != nil {
			return "", nil, nil, false, err
		}
		own = cwd != c.opts.Cwd
	}
	if o.Dirs != nil {
		own, dirs = true, nil
		for _, dir := range o.Dirs {
			if dir, err = filepath.Abs(dir); err != nil {
				return "", nil, nil, false, err
			}
			dirs = append(dirs, dir)
		}
	}
	if o.MCPServers != nil {
		servers = o.MCPServers
	}
	if len(dirs) == 0 {
		dirs = nil // even an empty list is sent, and needs a capability
	}
	return cwd, dirs, servers, own, nil
}

// keep makes a session known that was opened.
func (c *Client) keep(ctx context.Context, conn *reconnect.Session, cwd string, dirs []string, own bool) (*Session, error) {
	s := &Session{client: c, conn: conn, state: c.states.Of(conn.ID()), cwd: cwd, dirs: dirs, own: own, turns: map[*turn]struct{}{}}
	current, err := conn.Current(ctx)
	if err != nil {
		return nil, err
	}
	s.state.Opened(current)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions[conn.ID()] = s
	return s, nil
}

// NewSession creates a session. The error matches a *LoginError if the user has to log in first.
func (c *Client) NewSession(ctx context.Context, o *SessionOptions) (*Session, error) {
	cwd, dirs, servers, own, err := c.place(o)
	if err != nil {
		return nil, err
	}
	conn, err := c.conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: cwd, AdditionalDirectories: dirs, MCPServers: servers})
	if err != nil {
		return nil, c.asLogin(err)
	}
	return c.keep(ctx, conn, cwd, dirs, own)
}

// Load loads a session: its history comes anew.
func (c *Client) Load(ctx context.Context, id acp.SessionID, o *SessionOptions) (*Session, error) {
	cwd, dirs, servers, own, err := c.place(o)
	if err != nil {
		return nil, err
	}
	c.states.Of(id).Reset()
	conn, err := c.conn.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: id, Cwd: cwd, AdditionalDirectories: dirs, MCPServers: servers})
	if err != nil {
		return nil, c.asLogin(err)
	}
	return c.keep(ctx, conn, cwd, dirs, own)
}

// Resume goes on with a session without its history.
func (c *Client) Resume(ctx context.Context, id acp.SessionID, o *SessionOptions) (*Session, error) {
	cwd, dirs, servers, own, err := c.place(o)
	if err != nil {
		return nil, err
	}
	conn, err := c.conn.ResumeSession(ctx, &acp.ResumeSessionRequest{SessionID: id, Cwd: cwd, AdditionalDirectories: dirs, MCPServers: servers})
	if err != nil {
		return nil, c.asLogin(err)
	}
	return c.keep(ctx, conn, cwd, dirs, own)
}

// Fork makes a copy of a session that goes its own way, and opens it. It fails with acp.ErrUnsupported if the agent cannot.
func (c *Client) Fork(ctx context.Context, id acp.SessionID, o *SessionOptions) (*Session, error) {
	cwd, dirs, servers, own, err := c.place(o)
	if err != nil {
		return nil, err
	}
	agent, err := c.agentConn(ctx)
	if err != nil {
		return nil, err
	}
	forked, err := agent.ForkSession(ctx, &acp.ForkSessionRequest{SessionID: id, Cwd: cwd, AdditionalDirectories: dirs, MCPServers: servers})
	if err != nil {
		return nil, c.asLogin(err)
	}
	conn, err := c.conn.KeepSession(ctx, &acp.LoadSessionRequest{
		SessionID: forked.ID(), Cwd: cwd, AdditionalDirectories: dirs, MCPServers: servers,
	})
	if err != nil {
		return nil, err
	}
	return c.keep(ctx, conn, cwd, dirs, own)
}

// Rename gives a session a title. It fails with acp.ErrUnsupported if the agent cannot.
func (c *Client) Rename(ctx context.Context, id acp.SessionID, title string) error {
	agent, err := c.agentConn(ctx)
	if err != nil {
		return err
	}
	_, err = agent.Session(id).SetTitle(ctx, title)
	return err
}

// Delete removes a session from the agent's list. It fails with acp.ErrUnsupported if the agent cannot.
func (c *Client) Delete(ctx context.Context, id acp.SessionID) error {
	agent, err := c.agentConn(ctx)
	if err != nil {
		return err
	}
	return agent.Session(id).Delete(ctx)
}

// List returns a page of the agent's sessions: those of a folder, unless that is "", from a cursor on.
func (c *Client) List(ctx context.Context, cwd, cursor string) (*acp.ListSessionsResponse, error) {
	agent, err := c.agentConn(ctx)
	if err != nil {
		return nil, err
	}
	req := &acp.ListSessionsRequest{}
	if cwd != "" {
		req.Cwd = acp.Some(cwd)
	}
	if cursor != "" {
		req.Cursor = acp.Some(cursor)
	}
	res, err := agent.ListSessions(ctx, req)
	if err != nil {
		return nil, c.asLogin(err)
	}
	return res, nil
}

// Sessions yields the agent's sessions, of all pages: those of a folder, unless that is "".
func (c *Client) Sessions(ctx context.Context, cwd string) iter.Seq2[acp.SessionInfo, error] {
	return func(yield func(acp.SessionInfo, error) bool) {
		agent, err := c.agentConn(ctx)
		if err != nil {
			yield(acp.SessionInfo{}, err)
			return
		}
		for info, err := range agent.Sessions(ctx, cwd) {
			if !yield(info, err) {
				return
			}
		}
	}
}

// Session returns a session that was opened and not closed, or nil.
func (c *Client) Session(id acp.SessionID) *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessions[id]
}

// maxParents bounds the subagents of which it is known whose they are.
const maxParents = 10_000

// adopt notes whose a session of a subagent is, if a line says so. It reads the line itself, before the connection does: a
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

// maxDepth is how many subagents are followed to the session that they work for.
const maxDepth = 100

// owner is the session that a session is, or works for as that of a subagent; nil if it is neither.
func (c *Client) owner(id acp.SessionID) *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ownerOf(id)
}

// ownerOf is owner; mu is held.
func (c *Client) ownerOf(id acp.SessionID) *Session {
	for range maxDepth {
		if s := c.sessions[id]; s != nil {
			return s
		}
		id = c.parents[id]
	}
	return nil
}

// ID is the session's id.
func (s *Session) ID() acp.SessionID { return s.conn.ID() }

// State is the conversation.
func (s *Session) State() *view.State { return s.state }

// Cwd is the folder in which the session works, and Dirs are further ones.
func (s *Session) Cwd() string { return s.cwd }

// Dirs are further folders of the session.
func (s *Session) Dirs() []string { return s.dirs }

// Prompt runs a turn and waits for its end. When ctx ends, or by Cancel, the turn is cancelled: its terminals end, the agent
// is told, and its answer is waited for. An error is a *reconnect.InterruptedError if the connection was lost meanwhile.
func (s *Session) Prompt(ctx context.Context, prompt ...acp.ContentBlock) (*acp.PromptResponse, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := &turn{cancel}
	s.mu.Lock()
	if len(s.turns) == 0 {
		s.cancelled, s.made, s.stopped = false, map[acp.TerminalID]*acp.ClientSession{}, make(chan struct{})
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
	delete(s.turns, t)
	s.mu.Unlock()
	return res, s.client.asLogin(err)
}

// Cancel cancels the turns in progress, and does not wait for their end.
func (s *Session) Cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.turns {
		t.cancel(ErrCancelled)
	}
}

// Running reports whether a turn is in progress.
func (s *Session) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.turns) > 0
}

// untilCancelled ends a context when a turn of the session is cancelled.
func (s *Session) untilCancelled(ctx context.Context) (context.Context, func()) {
	s.mu.Lock()
	stopped, idle := s.stopped, len(s.turns) == 0
	s.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	if idle {
		return ctx, func() { cancel(nil) }
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-stopped:
			cancel(ErrCancelled)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}

// SetMode chooses one of the session's modes.
func (s *Session) SetMode(ctx context.Context, mode acp.SessionModeID) error {
	return s.set(ctx, func(current *acp.ClientSession) error { return current.SetMode(ctx, mode) })
}

// SetOption chooses a value of one of the session's config options; "true" and "false" are those of one that is on or off.
func (s *Session) SetOption(ctx context.Context, option acp.SessionConfigID, value string) error {
	return s.set(ctx, func(current *acp.ClientSession) error {
		for _, o := range s.state.Snapshot().ConfigOptions.Value() {
			if _, boolean := o.Variant.(*acp.SessionConfigOptionBoolean); boolean && o.ID == option {
				on, err := strconv.ParseBool(value)
				if err != nil {
					return fmt.Errorf("%w: option %s: want true or false, not %q", acp.ErrInvalidParams, option, value)
				}
				return current.SetBooleanConfigOption(ctx, option, on)
			}
		}
		return current.SetConfigOption(ctx, option, acp.SessionConfigValueID(value))
	})
}

func (s *Session) set(ctx context.Context, set func(*acp.ClientSession) error) error {
	current, err := s.conn.Current(ctx)
	if err != nil {
		return err
	}
	if err := set(current); err != nil {
		return err
	}
	s.state.Opened(current)
	return nil
}

// Close cancels what runs, ends the session's terminals, and ends the session at the agent if it can.
func (s *Session) Close(ctx context.Context) error {
	s.Cancel()
	c := s.client
	c.mu.Lock()
	delete(c.sessions, s.ID())
	c.mu.Unlock()
	if memory, ok := c.memory.(*policy.SessionMemory); ok {
		memory.Forget(s.ID())
	}
	current, err := s.conn.Current(ctx)
	if err == nil {
		err = s.conn.Close(ctx)
		if c.terminals != nil {
			err = errors.Join(err, c.terminals.CloseSession(current))
		}
		c.roots.RemoveSession(current)
	}
	return err
}

// Title is the session's title, or its id.
func (s *Session) Title() string { return cmp.Or(s.state.Snapshot().Title.Value(), string(s.ID())) }
