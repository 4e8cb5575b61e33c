package talk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/reconnect"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/plain"
)

// Session is a session of the agent. Its methods are safe for concurrent use.
type Session struct {
	client *Client
	conn   *reconnect.Session
	state  *view.State
	cwd    string

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

// open opens a session in a directory by a method, and registers it. A directory "" means that of the Client. The
// request has the members that the requests of all these methods have.
func (c *Client) open(ctx context.Context, cwd, method string,
	open func(context.Context, *acp.LoadSessionRequest) (*reconnect.Session, error)) (_ *Session, err error) {
	req := &acp.LoadSessionRequest{Cwd: c.opts.Cwd, AdditionalDirectories: c.opts.Dirs, MCPServers: c.opts.MCPServers}
	if cwd != "" {
		if req.Cwd, err = filepath.Abs(cwd); err != nil {
			return nil, err
		}
	}
	if len(req.MCPServers) > 0 {
		agent, err := c.agentConn(ctx)
		if err == nil {
			err = accepts(agent.Capabilities().MCPCapabilities, req.MCPServers)
		}
		if err != nil {
			return nil, err
		}
	}
	conn, err := step(ctx, c, method,
		func(ctx context.Context) (*reconnect.Session, error) { return open(ctx, req) })
	if err != nil {
		return nil, c.asLogin(err)
	}
	s := &Session{client: c, conn: conn, state: c.states.Of(conn.ID()), cwd: req.Cwd, turns: map[*turn]struct{}{}}
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

// NewSession creates a session in a directory; "" means that of the Client. The error matches a *LoginError if the user
// has to log in first.
func (c *Client) NewSession(ctx context.Context, cwd string) (*Session, error) {
	return c.open(ctx, cwd, acp.MethodNewSession,
		func(ctx context.Context, r *acp.LoadSessionRequest) (*reconnect.Session, error) {
			return c.conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: r.Cwd, AdditionalDirectories: r.AdditionalDirectories,
				MCPServers: r.MCPServers})
		})
}

// Load loads a session and its history.
func (c *Client) Load(ctx context.Context, id acp.SessionID, cwd string) (*Session, error) {
	return c.open(ctx, cwd, acp.MethodLoadSession,
		func(ctx context.Context, r *acp.LoadSessionRequest) (*reconnect.Session, error) {
			c.states.Of(id).Reset()
			r.SessionID = id
			return c.conn.LoadSession(ctx, r)
		})
}

// Resume continues a session without its history.
func (c *Client) Resume(ctx context.Context, id acp.SessionID, cwd string) (*Session, error) {
	return c.open(ctx, cwd, acp.MethodResumeSession,
		func(ctx context.Context, r *acp.LoadSessionRequest) (*reconnect.Session, error) {
			return c.conn.ResumeSession(ctx, &acp.ResumeSessionRequest{SessionID: id, Cwd: r.Cwd,
				AdditionalDirectories: r.AdditionalDirectories, MCPServers: r.MCPServers})
		})
}

// Fork copies a session and opens the copy. It fails with acp.ErrUnsupported if the agent does not support it.
func (c *Client) Fork(ctx context.Context, id acp.SessionID, cwd string) (*Session, error) {
	return c.open(ctx, cwd, acp.MethodForkSession,
		func(ctx context.Context, r *acp.LoadSessionRequest) (*reconnect.Session, error) {
			agent, err := c.agentConn(ctx)
			if err != nil {
				return nil, err
			}
			forked, err := agent.ForkSession(ctx, &acp.ForkSessionRequest{SessionID: id, Cwd: r.Cwd,
				AdditionalDirectories: r.AdditionalDirectories, MCPServers: r.MCPServers})
			if err != nil {
				return nil, err
			}
			r.SessionID = forked.ID()
			return c.conn.Adopt(ctx, r)
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
	why := errTurnOver
	if errors.Is(err, acp.ErrClosed) { // the end of the connection reaches questions either way
		why = err
	}
	s.mu.Lock()
	if delete(s.turns, t); len(s.turns) == 0 {
		s.over(why)
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

// ErrNoSetting says that a session does not have the setting or value.
var ErrNoSetting = errors.New("not offered by the agent")

// Setting is what a session lets the user choose: a config option or, if no option is for modes, the mode. Texts are
// the agent's.
type Setting struct {
	Choice

	Category acp.SessionConfigOptionCategory
	// Values are the values to choose from; nil if this client does not know the kind of option. Current is the ID of the
	// current value, which need not be one of them.
	Values  []Choice
	Current string
	// Boolean says that the values are "true" and "false".
	Boolean bool

	mode bool
}

// Choice is something to choose.
type Choice struct{ ID, Name, About string }

// Settings returns what a state of a session lets the user choose.
func Settings(s *view.Snapshot) (settings []Setting) {
	for _, o := range s.ConfigOptions.Value() {
		set := Setting{Choice: Choice{string(o.ID), o.Name, o.Description.Value()}, Category: o.Category.Value()}
		switch v := o.Variant.(type) {
		case *acp.SessionConfigOptionBoolean:
			set.Current, set.Boolean = strconv.FormatBool(v.CurrentValue), true
			set.Values = []Choice{{"true", "on", ""}, {"false", "off", ""}}
		case *acp.SessionConfigOptionSelect:
			set.Current = string(v.CurrentValue)
			values, _ := v.Options.All()
			for _, value := range values {
				set.Values = append(set.Values, Choice{string(value.Value), value.Name, value.Description.Value()})
			}
		default: // of a kind without values
		}
		settings = append(settings, set)
	}
	modes := s.Modes.Value()
	if modes.CurrentModeID == "" || SettingOf(settings, acp.SessionConfigOptionCategoryMode) != nil {
		return settings
	}
	mode := Setting{Choice: Choice{"mode", "Mode", ""}, Category: acp.SessionConfigOptionCategoryMode,
		Current: string(modes.CurrentModeID), mode: true}
	for _, m := range modes.AvailableModes {
		mode.Values = append(mode.Values, Choice{string(m.ID), m.Name, m.Description.Value()})
	}
	return append(settings, mode)
}

// SettingOf returns the first setting of a category, or else the one whose ID is the category's name; nil if there is
// none.
func SettingOf(settings []Setting, category acp.SessionConfigOptionCategory) *Setting {
	for _, is := range []func(Setting) bool{
		func(s Setting) bool { return s.Category == category },
		func(s Setting) bool { return s.ID == string(category) },
	} {
		if i := slices.IndexFunc(settings, is); i >= 0 {
			return &settings[i]
		}
	}
	return nil
}

// Set changes a setting to the value with an ID.
func (s *Session) Set(ctx context.Context, setting *Setting, value string) error {
	method := acp.MethodSetSessionConfigOption
	if setting.mode {
		method = acp.MethodSetSessionMode
	}
	current, err := s.conn.Live(ctx)
	if err != nil {
		return err
	}
	_, err = step(ctx, s.client, method, func(ctx context.Context) (struct{}, error) {
		switch {
		case setting.mode:
			return struct{}{}, current.SetMode(ctx, acp.SessionModeID(value))
		case setting.Boolean:
			return struct{}{}, current.SetBooleanConfigOption(ctx, acp.SessionConfigID(setting.ID), value == "true")
		}
		return struct{}{}, current.SetConfigOption(ctx, acp.SessionConfigID(setting.ID), acp.SessionConfigValueID(value))
	})
	if err == nil {
		s.state.SetSession(current)
	}
	return err
}

// find finds a choice by its id, or by its name regardless of case.
func find(what, wanted string, choices []Choice) (int, error) {
	found := slices.IndexFunc(choices, func(c Choice) bool { return c.ID == wanted })
	if found < 0 {
		found = slices.IndexFunc(choices, func(c Choice) bool { return strings.EqualFold(c.Name, wanted) })
	}
	if found >= 0 {
		return found, nil
	}
	if len(choices) == 0 {
		return 0, fmt.Errorf("%s: %w", what, ErrNoSetting)
	}
	var ids []string
	for _, c := range choices {
		ids = append(ids, c.ID)
	}
	return 0, fmt.Errorf("%s %q: %w; it offers %s", what, wanted, ErrNoSetting, strings.Join(ids, ", "))
}

// Choose sets the first setting of a category to the value with an id or name.
func (s *Session) Choose(ctx context.Context, category acp.SessionConfigOptionCategory, value string) error {
	setting := SettingOf(Settings(s.state.Snapshot()), category)
	if setting == nil {
		return fmt.Errorf("%s: %w", category, ErrNoSetting)
	}
	return s.choose(ctx, string(category), setting, value)
}

// ChooseOption sets a config option. The option and the value are given by id or name.
func (s *Session) ChooseOption(ctx context.Context, option, value string) error {
	settings := slices.DeleteFunc(Settings(s.state.Snapshot()), func(s Setting) bool { return s.mode })
	var choices []Choice
	for _, set := range settings {
		choices = append(choices, set.Choice)
	}
	i, err := find("option", option, choices)
	if err != nil {
		return err
	}
	return s.choose(ctx, "option "+settings[i].ID, &settings[i], value)
}

func (s *Session) choose(ctx context.Context, what string, setting *Setting, value string) error {
	i, err := find(what, value, setting.Values)
	if err != nil {
		return err
	}
	if err := s.Set(ctx, setting, setting.Values[i].ID); err != nil {
		return fmt.Errorf("%s=%s: %w", what, setting.Values[i].ID, err)
	}
	return nil
}

// Prompts in a running turn. They are not part of the protocol, but an extension that claude-agent-acp, codex-acp and
// other agents share.

// Steered is what the agent did with a prompt for a running turn.
type Steered string

// The values of Steered. An agent may send others.
const (
	// SteeredIn: the running turn has the prompt.
	SteeredIn Steered = "injected"
	// SteeredAnew: the agent began a new turn; no session/prompt response will report its end.
	SteeredAnew Steered = "startedNewTurn"
	// SteeredLate: no turn is running, and nothing was done: the prompt has to be sent as a new turn.
	SteeredLate Steered = "promptRequired"
)

// CanSteer reports whether the agent accepts prompts in a running turn.
func (c *Client) CanSteer() bool {
	var s struct {
		Supported bool `json:"supported"`
	}
	ok, err := c.Initialized().Meta.Get(plain.SteerKey, &s)
	return ok && err == nil && s.Supported
}

// Steer sends a prompt into the running turn. It fails with acp.ErrUnsupported if the agent does not accept that.
func (s *Session) Steer(ctx context.Context, prompt ...acp.ContentBlock) (Steered, error) {
	if !s.client.CanSteer() {
		return "", fmt.Errorf("%w: the agent accepts no messages in a running turn", acp.ErrUnsupported)
	}
	agent, err := s.client.agentConn(ctx)
	if err != nil {
		return "", err
	}
	type idle struct {
		Behavior string `json:"idleBehavior"`
	}
	// A turn that no prompt call waits for is never started.
	params := struct {
		SessionID acp.SessionID      `json:"sessionId"`
		Prompt    []acp.ContentBlock `json:"prompt"`
		Meta      map[string]idle    `json:"_meta"`
	}{s.ID(), prompt, map[string]idle{plain.SteerKey: {string(SteeredLate)}}}
	res, err := rpc.Call[struct {
		Outcome Steered `json:"outcome"`
	}](ctx, agent.RPC(), plain.SteerMethod, params)
	if err != nil {
		return "", err
	}
	return res.Outcome, nil
}

// Terminal is a command that runs or ran for the agent.
type Terminal struct {
	ID      acp.TerminalID
	Session acp.SessionID
	Command string
	// Output is the end of the output, and Dropped the number of bytes before it.
	Output  []byte
	Dropped int
	// Ended says that the command has ended, and Exit how.
	Ended bool
	Exit  acp.WaitForTerminalExitResponse
	// Own says that it is a terminal of the agent's own, whose Command is a line. The agent may say anything of it.
	Own bool
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
			t.Command = cmp.Or(info.Command, t.Command)
		})
	}
	if ok, err := meta.Get(plain.TerminalKey, &output); ok && err == nil {
		c.shown.changeAgents(session, output.ID, func(t *Terminal) { t.Output = append(t.Output, output.Data...) })
	}
	if ok, err := meta.Get(plain.TerminalExitKey, &exit); ok && err == nil {
		c.shown.changeAgents(session, exit.ID, func(t *Terminal) {
			t.Ended = true
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
		if !term.Ended && !term.Own || t.bytes <= maxAllOutput && len(t.byID) <= maxTerminals {
			return false
		}
		t.bytes -= len(term.Output)
		delete(t.byID, term.ID)
		return true
	})
}

// Terminal returns what is known of a terminal. It remains available after its command has ended, until very many
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
	if s == nil || s.cwd == c.opts.Cwd || c.rooted[key] {
		return nil
	}
	if err := c.roots.SetSession(session, s.cwd, c.opts.Dirs...); err != nil {
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
			c.shown.change(session.ID(), req.TerminalID, func(t *Terminal) { t.Ended = true })
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
			*t = Terminal{ID: id, Session: session.ID()}
		}
		t.Command = req.Command
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
