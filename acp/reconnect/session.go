package reconnect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/acpgo/sdk/acp"
)

// Session is a session that outlives its connection. Its methods are safe for concurrent use.
type Session struct {
	client  *Client
	id      acp.SessionID
	crashes int // how often in a row the connection has ended while the session was being restored; owned by the client's goroutine

	// Guarded by the client's mu.
	load    acp.LoadSessionRequest // the request that restores it
	current *acp.ClientSession
	err     error // why it cannot be used any more
}

// NewSession creates a session (session/new), which from then on is restored with the directories, the MCP servers and
// the system prompt of req.
func (c *Client) NewSession(ctx context.Context, req *acp.NewSessionRequest) (*Session, error) {
	if req == nil {
		req = &acp.NewSessionRequest{}
	}
	conn, err := c.Conn(ctx)
	if err != nil {
		return nil, err
	}
	current, err := conn.NewSession(ctx, req)
	if err != nil {
		return nil, err
	}
	return c.keep(conn, current, &acp.LoadSessionRequest{
		Cwd: req.Cwd, AdditionalDirectories: req.AdditionalDirectories, MCPServers: req.MCPServers,
		SystemPrompt: req.SystemPrompt, Meta: req.Meta,
	})
}

// LoadSession loads a session (session/load), which is restored from then on.
func (c *Client) LoadSession(ctx context.Context, req *acp.LoadSessionRequest) (*Session, error) {
	return c.open(ctx, req, func(conn *acp.ClientConn) (*acp.ClientSession, error) { return conn.LoadSession(ctx, req) })
}

// ResumeSession continues a session without its history (session/resume). The session is restored from then on.
func (c *Client) ResumeSession(ctx context.Context, req *acp.ResumeSessionRequest) (*Session, error) {
	if req == nil {
		req = &acp.ResumeSessionRequest{}
	}
	load := &acp.LoadSessionRequest{
		SessionID: req.SessionID, Cwd: req.Cwd, AdditionalDirectories: req.AdditionalDirectories, MCPServers: req.MCPServers,
		SystemPrompt: req.SystemPrompt, Meta: req.Meta,
	}
	return c.open(ctx, load, func(conn *acp.ClientConn) (*acp.ClientSession, error) { return conn.ResumeSession(ctx, req) })
}

// KeepSession keeps a session that was opened on the current connection with another call, such as session/fork. The
// session is restored from then on, with the id, the directories, the MCP servers and the system prompt of req.
// KeepSession itself sends nothing.
func (c *Client) KeepSession(ctx context.Context, req *acp.LoadSessionRequest) (*Session, error) {
	if req == nil {
		req = &acp.LoadSessionRequest{}
	}
	return c.open(ctx, req, func(conn *acp.ClientConn) (*acp.ClientSession, error) { return conn.Session(req.SessionID), nil })
}

func (c *Client) open(
	ctx context.Context, req *acp.LoadSessionRequest, open func(*acp.ClientConn) (*acp.ClientSession, error),
) (*Session, error) {
	conn, err := c.Conn(ctx)
	if err != nil {
		return nil, err
	}
	current, err := open(conn)
	if err != nil {
		return nil, err
	}
	if req == nil {
		req = &acp.LoadSessionRequest{}
	}
	return c.keep(conn, current, req)
}

// keep adds a session to those that are restored, or changes how it is restored if it is one of them. If its connection
// is already lost, the session is restored on the next one, unless that was made in the meantime.
func (c *Client) keep(conn *acp.ClientConn, current *acp.ClientSession, load *acp.LoadSessionRequest) (*Session, error) {
	id := current.ID()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || c.conn != nil && c.conn != conn {
		return nil, fmt.Errorf("session %s was opened, but its connection was lost: %w", id, acp.ErrClosed)
	}
	i := slices.IndexFunc(c.sessions, func(s *Session) bool { return s.id == id })
	if i < 0 {
		i = len(c.sessions)
		c.sessions = append(c.sessions, &Session{client: c, id: id})
	}
	s := c.sessions[i]
	s.load, s.current = *load, current
	s.load.SessionID = id
	s.load.AdditionalDirectories = slices.Clone(load.AdditionalDirectories)
	s.load.MCPServers = slices.Clone(load.MCPServers)
	return s, nil
}

// forget removes a session from those that are restored.
func (c *Client) forget(s *Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions = slices.DeleteFunc(c.sessions, func(other *Session) bool { return other == s })
}

// become sets the session's handle on the current connection, or the reason why there is none, which is final. It
// returns the differences from its previous state.
func (s *Session) become(current *acp.ClientSession, err error) []Difference {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	before := s.current
	s.current, s.err = current, cmp.Or(s.err, err)
	if before == nil || current == nil {
		return nil
	}
	return differences(before, current)
}

// differences compares the modes and options of a session before and after. Settings that the agent does not report
// count as unknown.
func differences(before, now *acp.ClientSession) []Difference {
	var list []Difference
	was, is := before.Modes(), now.Modes()
	if was, is := was.Value().CurrentModeID, is.Value().CurrentModeID; was != "" && is != "" && was != is {
		list = append(list, Difference{Mode: true, Was: string(was), Is: string(is)})
	}
	values := map[acp.SessionConfigID]string{}
	for _, option := range before.ConfigOptions().Value() {
		values[option.ID] = valueOf(&option)
	}
	for _, option := range now.ConfigOptions().Value() {
		if was, is := values[option.ID], valueOf(&option); was != "" && is != "" && was != is {
			list = append(list, Difference{Option: option.ID, Was: was, Is: is})
		}
	}
	return list
}

// valueOf returns the value of an option, or "" if it is of an unknown kind.
func valueOf(option *acp.SessionConfigOption) string {
	switch v := option.Variant.(type) {
	case *acp.SessionConfigOptionSelect:
		return string(v.CurrentValue)
	case *acp.SessionConfigOptionBoolean:
		return strconv.FormatBool(v.CurrentValue)
	default:
		return ""
	}
}

// restore restores the session on a new connection.
func (s *Session) restore(ctx context.Context, conn *acp.ClientConn) (*acp.ClientSession, error) {
	caps := conn.Capabilities()
	s.client.mu.Lock()
	load := s.load
	s.client.mu.Unlock()
	switch {
	case caps.SessionCapabilities.Resume.Present():
		return conn.ResumeSession(ctx, &acp.ResumeSessionRequest{
			SessionID: s.id, Cwd: load.Cwd, AdditionalDirectories: load.AdditionalDirectories, MCPServers: load.MCPServers,
			SystemPrompt: load.SystemPrompt, Meta: load.Meta,
		})
	case caps.LoadSession:
		s.client.notify(Event{Kind: Replaying, Session: s.id})
		return conn.LoadSession(ctx, &load)
	}
	return nil, errors.New("the agent can neither resume nor load sessions")
}

// ID returns the session's id.
func (s *Session) ID() acp.SessionID { return s.id }

// Current returns the handle of the session on the current connection, for everything except prompts; while the
// connection is lost, it waits for a new one. Calls on the handle fail with acp.ErrClosed once its connection is lost.
func (s *Session) Current(ctx context.Context) (current *acp.ClientSession, err error) {
	lost := s.client.await(ctx, func() bool {
		current, err = s.current, s.err
		return err != nil || s.client.conn != nil && current != nil && current.Conn() == s.client.conn
	})
	if lost != nil {
		return nil, lost
	}
	if err != nil {
		return nil, err
	}
	return current, nil
}

// Prompt runs a turn and waits for its end; see acp.ClientSession.Prompt. If the connection is already lost, it waits
// for the next one before it sends the prompt. If it is lost later, Prompt returns an *InterruptedError: the prompt is
// not sent again.
func (s *Session) Prompt(ctx context.Context, prompt ...acp.ContentBlock) (*acp.PromptResponse, error) {
	current, err := s.Current(ctx)
	if err != nil {
		return nil, err
	}
	res, err := current.Prompt(ctx, prompt...)
	if errors.Is(err, acp.ErrClosed) {
		return nil, &InterruptedError{s.id, err}
	}
	return res, err
}

// Close ends the session at the agent (session/close), if the agent supports that, and no longer restores it. Later calls
// of the session's methods fail with an error that matches acp.ErrResourceNotFound.
func (s *Session) Close(ctx context.Context) error {
	current, err := s.Current(ctx)
	if err != nil {
		return err
	}
	s.client.forget(s)
	defer s.become(current, fmt.Errorf("session %s was closed: %w", s.id, acp.ErrResourceNotFound))
	if err := current.Close(ctx); !errors.Is(err, acp.ErrUnsupported) {
		return err
	}
	return nil
}
