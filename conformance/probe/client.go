package probe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/player"
)

// client serves the agent's requests, for one launch.
type client struct {
	play *play
	ctx  context.Context
	stop context.CancelFunc

	// Scenarios may set these before they begin, to change how requests are answered. Nil means the default.
	permission  func(m *player.Message) (outcome, text string)
	elicitation func(m *player.Message) (outcome, text string)
	refuse      map[string]string // the error that a method gets, as JSON text

	roots     *local.Roots
	files     *local.Files
	terminals *local.Terminals
	rpc       *rpc.Conn // identifies the connection to package local; it carries no messages

	mu        sync.Mutex
	granted   json.RawMessage
	commands  map[string][]string      // by session, once the agent has sent them; "" is among them
	cancelled map[string]chan struct{} // by session: created before it is cancelled, closed when it is cancelled
	hold      map[string]bool          // methods that are answered only when their session is cancelled
	sessions  map[string]string        // and their directories
}

func newClient(p *play) *client {
	c := &client{play: p, cancelled: map[string]chan struct{}{}, hold: map[string]bool{}, refuse: map[string]string{},
		sessions: map[string]string{}, commands: map[string][]string{}}
	c.ctx, c.stop = context.WithCancel(p.ctx)
	var err error
	if c.roots, err = local.OpenRoots(); err != nil {
		p.stopf("the scratch folder could not be used: %v", err)
	}
	c.files = local.NewFiles(c.roots, local.Trusted(), nil)
	c.terminals = local.NewTerminals(c.roots, local.Trusted(),
		&local.TerminalsOptions{Shell: local.DefaultShell(), KillGrace: -1})
	one, other := rpc.Pipe()
	if c.rpc, err = rpc.Connect(c.ctx, one, nil, nil); err != nil {
		p.stopf("%v", err)
	}
	_ = other // whose end nobody needs
	return c
}

// close releases everything that was served.
func (c *client) close() {
	c.stop()
	errs := []error{c.terminals.Close(), c.rpc.Close(), c.roots.Close()}
	if err := errors.Join(errs...); err != nil {
		c.play.Remark("   ending the client: %v", err)
	}
}

// localSession is a session as package local knows it.
type localSession struct {
	id   acp.SessionID
	conn *rpc.Conn
}

func (s localSession) ID() acp.SessionID { return s.id }
func (s localSession) RPC() *rpc.Conn    { return s.conn }

// session registers a session and the directory that it may access.
func (c *client) session(id, dir string) {
	c.mu.Lock()
	c.sessions[id] = dir
	c.mu.Unlock()
	if err := c.roots.SetSession(localSession{acp.SessionID(id), c.rpc}, dir); err != nil {
		c.play.stopf("the scratch folder could not be used: %v", err)
	}
}

func (c *client) grant(capabilities string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.granted = json.RawMessage(capabilities)
}

// may reports whether the client has advertised a capability.
func (c *client) may(path ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := player.Member(c.granted, path...)
	return string(v) == "true" || len(v) > 0 && v[0] == '{'
}

// offers reports whether the agent has a slash command in a session. For "", it reports whether the agent has sent its
// commands.
func (c *client) offers(session, command string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.commands[session], command)
}

// cancel cancels the turn of a session by calling send. Permission requests are answered as cancelled from now on, but
// not before session/cancel is sent.
func (c *client) cancel(session string, send func()) {
	c.mu.Lock()
	done := c.turn(session)
	c.mu.Unlock()
	send()
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-done:
	default:
		close(done)
	}
}

// turn returns a channel that is closed when the session's turn is cancelled. The lock is held.
func (c *client) turn(session string) chan struct{} {
	if c.cancelled[session] == nil {
		c.cancelled[session] = make(chan struct{})
	}
	return c.cancelled[session]
}

// nextTurn begins another turn. Earlier cancellations do not apply to it, and it is served normally.
func (c *client) nextTurn(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cancelled, session)
	clear(c.hold)
	clear(c.refuse)
	c.permission, c.elicitation = nil, nil
}

// serve answers a request of the agent.
func (c *client) serve(conn *player.Conn, m *player.Message) {
	if m.Kind != conformance.Request {
		return
	}
	c.mu.Lock()
	refusal, refused := c.refuse[m.Method]
	permission, elicitation := c.permission, c.elicitation
	c.mu.Unlock()
	if refused {
		conn.Answer(m, "error", refusal)
		return
	}
	switch m.Method {
	case "session/request_permission":
		if permission != nil {
			outcome, text := permission(m)
			conn.Answer(m, outcome, text)
			return
		}
		c.allow(conn, m)
	case "elicitation/create":
		if mode := m.Text("mode"); !c.may("elicitation", mode) {
			conn.Answer(m, "error", `{"code":-32602,"message":"the mode is not advertised"}`)
		} else if elicitation != nil {
			outcome, text := elicitation(m)
			conn.Answer(m, outcome, text)
		} else {
			conn.Answer(m, "result", accept(m))
		}
	case "fs/read_text_file":
		serve(c, conn, m, c.may("fs", "readTextFile"), c.files.ReadTextFile)
	case "fs/write_text_file":
		serve(c, conn, m, c.may("fs", "writeTextFile"), c.files.WriteTextFile)
	case "terminal/create":
		serve(c, conn, m, c.may("terminal"), c.terminals.CreateTerminal)
	case "terminal/output":
		serve(c, conn, m, c.may("terminal"), c.terminals.TerminalOutput)
	case "terminal/wait_for_exit":
		serve(c, conn, m, c.may("terminal"), c.terminals.WaitForTerminalExit)
	case "terminal/kill":
		serve(c, conn, m, c.may("terminal"), c.terminals.KillTerminal)
	case "terminal/release":
		serve(c, conn, m, c.may("terminal"), c.terminals.ReleaseTerminal)
	default:
		conn.Answer(m, "error", `{"code":-32601,"message":"method not found","data":{"method":`+player.Quote(m.Method)+`}}`)
	}
}

// allow grants a permission, or answers that the turn was cancelled.
func (c *client) allow(conn *player.Conn, m *player.Message) {
	session := m.Text("sessionId")
	c.mu.Lock()
	cancelled := c.cancelled[session]
	if c.hold[m.Method] {
		cancelled = c.turn(session)
	}
	c.mu.Unlock()
	if cancelled == nil {
		conn.Answer(m, "result", choose(m, "allow_once", "allow_always"))
		return
	}
	select {
	case <-cancelled:
		conn.Answer(m, "result", `{"outcome":{"outcome":"cancelled"}}`)
	case <-c.ctx.Done():
	}
}

// choose returns the outcome that selects the first option of one of the kinds, or else the first option.
func choose(m *player.Message, kinds ...string) string {
	var first string
	for _, kind := range kinds {
		for _, option := range player.Elements(player.Member(m.Params, "options")) {
			var o struct{ OptionID, Kind string }
			if json.Unmarshal(option, &o) != nil {
				continue
			}
			first = cmp.Or(first, o.OptionID)
			if o.Kind == kind {
				return `{"outcome":{"outcome":"selected","optionId":` + player.Quote(o.OptionID) + `}}`
			}
		}
	}
	return `{"outcome":{"outcome":"selected","optionId":` + player.Quote(first) + `}}`
}

// accept returns the answer to an elicitation, with a value for each field that there is one for.
func accept(m *player.Message) string {
	if m.Text("mode") != "form" {
		return `{"action":"accept"}`
	}
	var form acp.ElicitationSchema
	if json.Unmarshal(player.Member(m.Params, "requestedSchema"), &form) != nil {
		return `{"action":"decline"}`
	}
	content := map[string]acp.ElicitationContentValue{}
	for _, f := range view.FormFields(&form) {
		tries := [][]string{f.Default}
		for _, choice := range f.Choices {
			tries = append(tries, []string{choice.Const})
		}
		least := ""
		switch s := f.Schema.Variant.(type) {
		case *acp.ElicitationPropertySchemaInteger:
			least = fmt.Sprint(s.Minimum.Value())
		case *acp.ElicitationPropertySchemaNumber:
			least = fmt.Sprint(s.Minimum.Value())
		case *acp.ElicitationPropertySchemaString:
			least = strings.Repeat("x", int(min(s.MinLength.Value(), 1<<20)))
		case *acp.ElicitationPropertySchemaArray:
			var several []string
			for _, choice := range f.Choices[:min(s.MinItems.Value(), uint64(len(f.Choices)))] {
				several = append(several, choice.Const)
			}
			tries = append(tries, several)
		default: // the tries below have a value for it, or there is none
		}
		for _, text := range []string{"probe", "1", "true", "probe@example.com", "https://example.com/", "2026-01-01",
			"2026-01-01T00:00:00Z", least} {
			tries = append(tries, []string{text})
		}
		for _, answers := range tries {
			if value, err := f.Value(answers...); err == nil && len(answers) > 0 {
				content[f.Name] = value
				break
			}
		}
	}
	text, err := json.Marshal(content)
	if err != nil {
		return `{"action":"decline"}`
	}
	return `{"action":"accept","content":` + string(text) + `}`
}

// serve serves a request with a handler of package local, if the capability was advertised.
func serve[P, R any](c *client, conn *player.Conn, m *player.Message, stated bool,
	handler func(context.Context, local.Session, *P) (*R, error)) {
	fail := func(code int, text string) {
		outcome, body := failure(code, text)
		conn.Answer(m, outcome, body)
	}
	if !stated {
		fail(-32601, "the capability is not advertised")
		return
	}
	var params P
	if err := json.Unmarshal(m.Params, &params); err != nil {
		fail(-32602, "invalid params: "+err.Error())
		return
	}
	session := m.Text("sessionId")
	c.mu.Lock()
	_, known := c.sessions[session]
	c.mu.Unlock()
	if !known {
		conn.Answer(m, "error", `{"code":-32002,"message":"unknown session","data":{"sessionId":`+player.Quote(session)+`}}`)
		return
	}
	result, err := handler(c.ctx, localSession{acp.SessionID(session), c.rpc}, &params)
	if err == nil {
		text, err := json.Marshal(result)
		if err == nil {
			conn.Answer(m, "result", string(text))
			return
		}
	}
	if e, ok := errors.AsType[*acp.Error](err); ok {
		if text, err := json.Marshal(e); err == nil {
			conn.Answer(m, "error", string(text))
			return
		}
	}
	fail(-32603, err.Error())
}
