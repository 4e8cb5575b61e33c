package reconnect

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/translate"
)

// Session is a session that outlives its connection. Its methods are safe for concurrent use.
type Session struct {
	client *Client
	id     acp.SessionID
	// how often in a row the connection has ended while the session was being restored; owned by the client's goroutine
	crashes int

	// Guarded by the client's mu.
	load    acp.LoadSessionRequest // the request that restores it
	current *acp.ClientSession
	err     error // why it cannot be used any more
	keyed   int   // prompts in progress that can be sent again
}

// NewSession creates a session (session/new), which from then on is restored with the directories, the MCP servers and
// the system prompt of req.
func (c *Client) NewSession(ctx context.Context, req *acp.NewSessionRequest) (*Session, error) {
	req = cmp.Or(req, &acp.NewSessionRequest{})
	load := &acp.LoadSessionRequest{
		Cwd: req.Cwd, AdditionalDirectories: req.AdditionalDirectories, MCPServers: req.MCPServers,
		SystemPrompt: req.SystemPrompt, Meta: req.Meta,
	}
	return c.open(ctx, load, func(l *link) (*acp.ClientSession, error) {
		made := *req
		made.MCPServers = l.with(req.MCPServers)
		return l.conn.NewSession(ctx, &made)
	})
}

// LoadSession loads a session (session/load), which is restored from then on.
func (c *Client) LoadSession(ctx context.Context, req *acp.LoadSessionRequest) (*Session, error) {
	req = cmp.Or(req, &acp.LoadSessionRequest{})
	return c.open(ctx, req, func(l *link) (*acp.ClientSession, error) { return l.load(ctx, req) })
}

// ResumeSession continues a session without its history (session/resume). The session is restored from then on.
func (c *Client) ResumeSession(ctx context.Context, req *acp.ResumeSessionRequest) (*Session, error) {
	req = cmp.Or(req, &acp.ResumeSessionRequest{})
	load := &acp.LoadSessionRequest{
		SessionID: req.SessionID, Cwd: req.Cwd, AdditionalDirectories: req.AdditionalDirectories, MCPServers: req.MCPServers,
		SystemPrompt: req.SystemPrompt, Meta: req.Meta,
	}
	return c.open(ctx, load, func(l *link) (*acp.ClientSession, error) { return l.resume(ctx, load) })
}

// Adopt adds a session that was opened on the current connection with another call, such as session/fork. The session
// is restored from then on, with the id, the directories, the MCP servers and the system prompt of req. Adopt itself
// sends nothing.
func (c *Client) Adopt(ctx context.Context, req *acp.LoadSessionRequest) (*Session, error) {
	req = cmp.Or(req, &acp.LoadSessionRequest{})
	return c.open(ctx, req, func(l *link) (*acp.ClientSession, error) { return l.conn.Session(req.SessionID), nil })
}

// load loads a session with the servers of the link.
func (l *link) load(ctx context.Context, load *acp.LoadSessionRequest) (*acp.ClientSession, error) {
	req := *load
	req.MCPServers = l.with(load.MCPServers)
	return l.conn.LoadSession(ctx, &req)
}

// resume resumes a session with the servers of the link.
func (l *link) resume(ctx context.Context, load *acp.LoadSessionRequest) (*acp.ClientSession, error) {
	return l.conn.ResumeSession(ctx, &acp.ResumeSessionRequest{
		SessionID: load.SessionID, Cwd: load.Cwd, AdditionalDirectories: load.AdditionalDirectories,
		MCPServers: l.with(load.MCPServers), SystemPrompt: load.SystemPrompt, Meta: load.Meta,
	})
}

func (c *Client) open(
	ctx context.Context, load *acp.LoadSessionRequest, open func(*link) (*acp.ClientSession, error),
) (*Session, error) {
	l, err := c.connected(ctx)
	if err != nil {
		return nil, err
	}
	current, err := open(l)
	if login := c.options.Login; login != nil && errors.Is(err, acp.ErrAuthRequired) {
		if err = login(ctx, l.conn); err != nil {
			return nil, err
		}
		if l, err = c.connected(ctx); err != nil {
			return nil, err
		}
		current, err = open(l)
	}
	if err != nil {
		return nil, err
	}
	return c.keep(l, current, load)
}

// keep adds a session to those that are restored, or changes how it is restored if it is one of them. If its connection
// is already lost, the session is restored on the next one, unless that was made in the meantime.
func (c *Client) keep(l *link, current *acp.ClientSession, load *acp.LoadSessionRequest) (*Session, error) {
	id := current.ID()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || c.link != nil && c.link != l {
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
func (s *Session) restore(ctx context.Context, l *link) (*acp.ClientSession, error) {
	caps := l.conn.Capabilities()
	s.client.mu.Lock()
	load, keyed := s.load, s.keyed > 0
	s.client.mu.Unlock()
	honours, replay := honoursKeys(l.conn)
	replay = replay && honours && keyed && caps.LoadSession // it shows whether the agent has the prompts
	switch {
	case caps.SessionCapabilities.Resume.Present() && !replay:
		return l.resume(ctx, &load)
	case caps.LoadSession:
		s.client.notify(Event{Kind: Replaying, Session: s.id})
		return l.load(ctx, &load)
	}
	return nil, errors.New("the agent can neither resume nor load sessions")
}

// ID returns the session's id.
func (s *Session) ID() acp.SessionID { return s.id }

// Live returns the handle of the session on the current connection, for what Session has no method for; while the
// connection is lost, it waits for a new one. Calls on the handle fail with acp.ErrClosed once its connection is lost.
func (s *Session) Live(ctx context.Context) (*acp.ClientSession, error) { return s.after(ctx, nil) }

// after returns the handle of the session on another connection than that of old, which may be nil.
func (s *Session) after(ctx context.Context, old *acp.ClientSession) (live *acp.ClientSession, err error) {
	lost := s.client.await(ctx, func() bool {
		live, err = s.current, s.err
		return err != nil || s.client.link != nil && live != nil && live.Conn() == s.client.link.conn &&
			(old == nil || live.Conn() != old.Conn())
	})
	if err = cmp.Or(lost, err); err != nil {
		return nil, err
	}
	return live, nil
}

// Prompt runs a turn and waits for its end; see acp.ClientSession.Prompt. If the connection is lost before the prompt
// is sent, it is sent on the next one. If it is lost later, Prompt returns an *InterruptedError: the prompt is not sent
// again, unless Options.RetryPrompts says so.
func (s *Session) Prompt(ctx context.Context, prompt ...acp.ContentBlock) (*acp.PromptResponse, error) {
	req := &acp.PromptRequest{SessionID: s.id, Prompt: prompt}
	var live *acp.ClientSession
	var lost error // why the answer did not arrive
	interrupted := func(err error) error {
		if err != nil {
			lost = fmt.Errorf("%w: %w", lost, err)
		}
		return &InterruptedError{s.id, lost}
	}
	for tries := 1; ; {
		var err error
		if live, err = s.after(ctx, live); err != nil && lost == nil {
			return nil, err
		} else if err != nil {
			return nil, interrupted(err)
		}
		keyed, _ := honoursKeys(live.Conn())
		switch keyed = keyed && s.client.options.RetryPrompts; {
		case lost != nil && !keyed:
			return nil, interrupted(nil)
		case keyed && req.Meta == nil:
			if err := req.Meta.Set(translate.MetaIdempotencyKey, rand.Text()); err != nil {
				return nil, err
			}
			s.addKeyed(1)
			defer s.addKeyed(-1)
		}
		res, err := live.Conn().Prompt(ctx, req)
		switch {
		case lost != nil && unknown(err):
			return nil, interrupted(err)
		case !errors.Is(err, acp.ErrClosed):
			return res, err
		case errors.Is(err, acp.ErrNotSent): // the agent has not seen it
			continue
		}
		if lost = err; !keyed || tries == maxPromptTries {
			return nil, interrupted(nil)
		}
		tries++
	}
}

// maxPromptTries is how often a prompt is sent: it may be what makes the agent end.
const maxPromptTries = 3

func (s *Session) addKeyed(n int) {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	s.keyed += n
}

// honoursKeys reports whether a prompt with a known key is not run again, and whether that needs a replay.
func honoursKeys(conn *acp.ClientConn) (honours, replay bool) {
	var keys struct{ Replay bool }
	honours, err := conn.Initialized().Meta.Get(translate.MetaIdempotencyKey, &keys)
	return honours && err == nil, keys.Replay
}

// unknown reports whether err says nothing about what became of a prompt that had been sent before.
func unknown(err error) bool {
	call, answered := errors.AsType[*acp.CallError](err)
	if !answered {
		return err != nil && !errors.Is(err, acp.ErrClosed)
	}
	var data acp.Meta
	return json.Unmarshal(call.Err.Data, &data) == nil && data[translate.MetaIdempotencyKey] != nil
}

// SetMode sets the session's mode (session/set_mode). While the connection is lost, it waits for a new one.
func (s *Session) SetMode(ctx context.Context, mode acp.SessionModeID) error {
	live, err := s.Live(ctx)
	if err != nil {
		return err
	}
	return live.SetMode(ctx, mode)
}

// SetConfigOption sets an option of the session (session/set_config_option). While the connection is lost, it waits for
// a new one.
func (s *Session) SetConfigOption(ctx context.Context, option acp.SessionConfigID,
	value acp.SessionConfigValueID) error {
	live, err := s.Live(ctx)
	if err != nil {
		return err
	}
	return live.SetConfigOption(ctx, option, value)
}

// SetBooleanConfigOption switches a boolean option of the session on or off; see SetConfigOption.
func (s *Session) SetBooleanConfigOption(ctx context.Context, option acp.SessionConfigID, on bool) error {
	live, err := s.Live(ctx)
	if err != nil {
		return err
	}
	return live.SetBooleanConfigOption(ctx, option, on)
}

// Close ends the session at the agent (session/close), if the agent supports that, and no longer restores it. Later
// calls of the session's methods fail with an error that matches acp.ErrResourceNotFound.
func (s *Session) Close(ctx context.Context) error {
	live, err := s.Live(ctx)
	if err != nil {
		return err
	}
	s.client.forget(s) // first: a session that is being closed is not restored
	defer s.over(live, "closed")
	if err := live.Close(ctx); !errors.Is(err, acp.ErrUnsupported) {
		return err
	}
	return nil
}

// Delete deletes the session at the agent (session/delete). If that succeeds, the session is no longer restored, and
// later calls of its methods fail with an error that matches acp.ErrResourceNotFound.
func (s *Session) Delete(ctx context.Context) error {
	live, err := s.Live(ctx)
	if err != nil {
		return err
	}
	if err := live.Delete(ctx); err != nil {
		return err
	}
	s.over(live, "deleted")
	return nil
}

// over records why the session is over.
func (s *Session) over(live *acp.ClientSession, what string) {
	s.client.forget(s)
	s.become(live, fmt.Errorf("session %s was %s: %w", s.id, what, acp.ErrResourceNotFound))
}
