// Package talk is a client of one agent without a user interface: what the commands for scripts and for people share.
//
// Open starts the agent or connects to it. A Client opens sessions; a Session sends prompts and keeps its conversation
// in a view.State. The agent's questions are passed to functions of Options: permission requests that no rule decides,
// forms, URLs. Other events, such as a lost connection, are reported as an Event.
//
//	client, err := talk.Open(ctx, &talk.Options{Agent: agent, Cwd: dir, Ask: ask})
//	session, err := client.NewSession(ctx, "")
//	res, err := session.Prompt(ctx, acp.TextBlock("fix the bug"))
//
// Text of the agent is passed on unchanged; code that shows it in a terminal has to make it harmless first.
package talk

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/reconnect"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/conformance/recording/relay"
	"github.com/acpgo/sdk/internal/plain"
)

// Agent is what a Client talks to.
type Agent struct {
	// Name is the user's name for the agent.
	Name string
	// Connect returns the transport of one connection. Nil starts Command.
	Connect func(context.Context) (acp.Transport, error)
	// Command starts the agent's program; nil for an agent at a URL, which has no logins in a terminal.
	Command *launch.Command
	// Trusted says that an agent without a Command runs on this machine as the user; a child process always does. Only
	// such an agent gets files, terminals and the environment without being asked for.
	Trusted bool
}

// trusted reports whether the agent can do without this program what the user can do on this machine.
func (a *Agent) trusted() bool { return a.Command != nil || a.Trusted }

// Options configure a Client. Except for Agent and Cwd, the zero value of a field leaves the feature out or means the
// default.
type Options struct {
	Agent Agent
	// Version is the version of this program.
	Version string

	// Cwd is the directory in which the agent works, for sessions that do not say otherwise; Dirs lists additional ones,
	// and MCPServers its servers. Relative paths are relative to this process.
	Cwd        string
	Dirs       []string
	MCPServers []acp.MCPServer
	// Environ is the environment of the commands that run in terminals for the agent. Nil means that of this process.
	// Commands of an agent that is not trusted do not get it, but what package local gives them by default.
	Environ []string
	// NoFiles and NoTerminals keep files and terminals of this machine from being offered to the agent. RemoteFiles and
	// RemoteTerminals offer them to an agent that is not trusted, whose writes and commands are then permission requests.
	NoFiles, NoTerminals         bool
	RemoteFiles, RemoteTerminals bool
	// AskLocal makes writes and commands of every agent permission requests.
	AskLocal bool
	// Protocol is the version of the protocol that is offered to the agent, 1 or 2; 0 offers both.
	Protocol int
	// Notes are reported as warnings when the agent is connected.
	Notes []string

	// Rules decide on permissions before Ask does, and MemoryFile stores the user's "always" decisions. Default: no
	// rules, and a memory for each session.
	Rules      *policy.Policy
	MemoryFile string
	// Ask answers a permission request. It is called for several at once, each in its own goroutine. ctx ends when the
	// request is over, because the turn was cancelled or the connection was lost. Ask returns the id of one of the
	// options, or "" for none. Nil rejects what the rules do not allow.
	Ask func(ctx context.Context, q *Question) (acp.PermissionOptionID, error)
	// Form asks the user to fill in a form, and URL whether to open a URL; see Elicitation. ctx ends when the answer is
	// no longer needed. Nil does not offer them to the agent.
	Form, URL func(ctx context.Context, e *Elicitation) (*acp.CreateElicitationResponse, error)
	// TerminalLogin says that the user can log in in a terminal; see Client.Login.
	TerminalLogin bool
	// Plans and Subagents tell the agent that plans with ids, and subagents, are shown.
	Plans, Subagents bool

	// States keeps the conversations; nil keeps those of one Client.
	States *view.Sessions
	// Update is called for each update of a session, after the session's State has it.
	Update func(session acp.SessionID, update acp.SessionUpdate)
	// Output is called when a terminal has new output or has ended; see Client.Terminal.
	Output func(session acp.SessionID, terminal acp.TerminalID)
	// Event is called for each event. It must return quickly.
	Event func(Event)
	// Line is called with each line that passes, before it is acted on. The line is valid during the call; a slow call
	// delays the connection.
	Line func(from conformance.Side, line []byte)

	// Record gets every message in the format of package recording, with secrets masked unless NoMask is set.
	Record io.Writer
	NoMask bool
	// Findings is called for each violation of the protocol.
	Findings func(conformance.Finding)

	// NoReconnect ends the Client when the connection is lost.
	NoReconnect bool
	// CancelGrace is how long a cancelled turn waits for the agent's response. Default 30 s.
	CancelGrace time.Duration
	// ConnectTimeout is how long the agent may take to start, and be silent while it opens a session. Default 2 min.
	ConnectTimeout time.Duration
}

// Client is a client of one agent. Its methods are safe for concurrent use. Close must be called at the end.
type Client struct {
	opts   Options
	rules  *policy.Policy
	memory policy.Memory

	states    *view.Sessions
	roots     *local.Roots
	terminals *local.Terminals // nil if they are not offered
	shown     terminals

	life    context.Context
	end     context.CancelFunc
	running sync.WaitGroup
	closing sync.Once
	closed  error

	conn        *reconnect.Client
	initialized atomic.Pointer[acp.InitializeResponse] // on the latest connection
	protocol    atomic.Int32                           // the version, once known
	starts      atomic.Int64                           // the number of connections
	asking      atomic.Int64                           // questions to the user
	heard       atomic.Int64                           // the time of the agent's last line, or when a step began
	restarting  atomic.Bool                            // the next connection is wanted, even with NoReconnect

	mu       sync.Mutex
	failed   error             // why the recording is not complete
	alive    context.Context   // ends when reading from the current connection ends; nil before the first one
	process  *exec.Cmd         // the running process of the current connection, or nil
	logins   []json.RawMessage // the login methods in the latest response to initialize
	sessions map[acp.SessionID]*Session
	parents  map[acp.SessionID]acp.SessionID // of the sessions of subagents
	rooted   map[rootKey]bool
}

// rootKey is a session on one connection.
type rootKey struct {
	conn *rpc.Conn
	id   acp.SessionID
}

// StartError says that an agent does not start or cannot be reached.
type StartError struct {
	// Agent is the agent's name.
	Agent string
	// Problem is what the error is a sign of, if that is known; otherwise its Kind is "".
	Problem launch.Problem
	// Err is the cause; for a process it has the exit status and the end of standard error.
	Err error

	remote bool // not started by this program
}

// Error implements the error interface.
func (e *StartError) Error() string {
	what := "does not start"
	if e.remote {
		what = "cannot be reached"
	}
	text := fmt.Sprintf("agent %s %s: %v", e.Agent, what, e.Err)
	if e.Problem.Kind != "" {
		text += "\n" + e.Problem.String()
	}
	return text
}

// Unwrap returns Err.
func (e *StartError) Unwrap() error { return e.Err }

// errNoReconnect is returned when a connection is not made again.
var errNoReconnect = errors.New("the agent is not restarted")

// Open starts the agent or connects to it, and initializes it. ctx bounds that. The error is a *StartError if the agent
// is at fault.
func Open(ctx context.Context, opts *Options) (_ *Client, err error) {
	c := &Client{opts: *opts, sessions: map[acp.SessionID]*Session{}, parents: map[acp.SessionID]acp.SessionID{},
		rooted: map[rootKey]bool{}, states: cmp.Or(opts.States, &view.Sessions{})}
	o := &c.opts
	c.shown.changed = o.Output
	if o.Agent.Connect == nil && o.Agent.Command == nil {
		return nil, errors.New("talk: the agent has neither a command nor a connection")
	}
	if o.Cwd, err = filepath.Abs(o.Cwd); err != nil {
		return nil, err
	}
	dirs := []string{o.Cwd}
	for _, dir := range o.Dirs {
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	o.Dirs = append([]string(nil), dirs[1:]...) // nil if empty: an empty list would be sent, and needs a capability
	if !o.Agent.trusted() {
		o.Environ = nil
	}
	if c.rules = o.Rules; c.rules == nil {
		if c.rules, err = policy.New(nil, nil); err != nil {
			return nil, err
		}
	}
	c.memory = &policy.SessionMemory{}
	if o.MemoryFile != "" {
		c.memory = policy.NewFile(o.MemoryFile)
	}
	if c.roots, err = local.OpenRoots(dirs...); err != nil {
		return nil, err
	}
	c.life, c.end = context.WithCancel(context.WithoutCancel(ctx))
	c.initialized.Store(new(acp.InitializeResponse))
	backoff := time.Duration(0) // default
	if o.NoReconnect {
		backoff = time.Nanosecond // report at once that there is no other connection
	}
	stop := c.slow(acp.MethodInitialize, func() bool { return false })
	c.conn, err = reconnect.Connect(ctx, c.transport, c.handlers(), c.clientOptions(), &reconnect.Options{
		Retry: func(err error) bool { return !o.NoReconnect && reconnect.Temporary(err) },
		Connected: func(_ context.Context, conn *acp.ClientConn) error {
			c.initialized.Store(conn.Initialized())
			return nil
		},
		Notify:     c.notify,
		MinBackoff: backoff,
	})
	stop()
	if err != nil {
		c.end()
		errs := c.closeLocal()
		c.running.Wait()
		return nil, errors.Join(c.startError(err), errs)
	}
	for _, warning := range c.rules.Warnings() {
		c.event(Event{Kind: Warning, Err: errors.New("a rule: " + warning)})
	}
	for _, note := range o.Notes {
		c.event(Event{Kind: Warning, Err: errors.New(note)})
	}
	return c, nil
}

func (c *Client) startError(err error) error {
	e := &StartError{Agent: c.opts.Agent.Name, Err: err, remote: c.opts.Agent.Command == nil}
	if exit, ok := errors.AsType[*acp.ExitError](err); ok {
		e.Problem, _ = launch.Explain(exit.Stderr + "\n" + exit.Noise)
	}
	return e
}

// handlers returns the handlers for the agent's calls.
func (c *Client) handlers() acp.ClientHandlers {
	h := acp.ClientHandlers{SessionUpdate: c.update, RequestPermission: c.permissions()}
	o, approval := &c.opts, local.Trusted()
	trusted := o.Agent.trusted()
	if !trusted || o.AskLocal {
		approval = local.Asking(c.asksLocal(h.RequestPermission))
	}
	if !o.NoFiles && (trusted || o.RemoteFiles) {
		c.registerFiles(&h, approval)
	}
	if !o.NoTerminals && (trusted || o.RemoteTerminals) {
		c.registerTerminals(&h, approval)
	}
	c.registerElicitation(&h)
	return h
}

// invalid returns the hook for input that is not valid, which an agent may send without end: after the first few, each
// tenfold number is shown, with the last reason.
func (c *Client) invalid() func(line []byte, reason error) {
	const few = 10
	var came, next atomic.Int64
	next.Store(few)
	return func(_ []byte, reason error) {
		switch n := came.Add(1); {
		case n < few:
		case n == next.Load():
			next.Store(10 * n)
			reason = fmt.Errorf("%d lines and messages of the agent were not valid; most are no longer shown: %w", n, reason)
		default:
			return
		}
		c.event(Event{Kind: Warning, Err: reason})
	}
}

func (c *Client) clientOptions() *acp.ClientOptions {
	o := &acp.ClientOptions{
		Info:          acp.Implementation{Name: "acp", Version: cmp.Or(c.opts.Version, "0")},
		BooleanConfig: true,
		TerminalAuth:  c.opts.TerminalLogin && c.opts.Agent.Command != nil,
		Plans:         c.opts.Plans,
		Subagents:     c.opts.Subagents,
		// Fork and Rename call the methods of the first two, and Options advertise the others. What the agent sends
		// needs no feature.
		Experimental:   acp.FeatureFork | acp.FeatureSessionTitle | acp.FeaturePlans | acp.FeatureSubagents,
		ConnectTimeout: c.opts.ConnectTimeout,
		Conn: acp.ConnOptions{
			SkipNoise: true, CancelGrace: c.opts.CancelGrace,
			Hooks: acp.Hooks{Invalid: c.invalid()},
		},
	}
	if !c.opts.NoTerminals {
		o.Initialize = func(req *acp.InitializeRequest) {
			// A bool can always be encoded.
			_ = req.ClientCapabilities.Meta.Set(plain.TerminalKey, true)
		}
	}
	o.Session.Notices = acp.Some(acp.NoticeCapabilities{})
	o.Session.Compaction = acp.Some(acp.CompactionCapabilities{})
	if c.opts.Form != nil {
		o.Elicitation.Form = acp.Some(acp.ElicitationFormCapabilities{})
	}
	if c.opts.URL != nil {
		o.Elicitation.URL = acp.Some(acp.ElicitationURLCapabilities{})
	}
	return o
}

// transport returns the transport of the next connection.
func (c *Client) transport(ctx context.Context) (acp.Transport, error) {
	if c.starts.Add(1) > 1 && c.opts.NoReconnect && !c.restarting.CompareAndSwap(true, false) {
		return nil, errNoReconnect
	}
	var transport acp.Transport
	if agent := c.opts.Agent; agent.Connect != nil {
		var err error
		if transport, err = agent.Connect(ctx); err != nil {
			return nil, err
		}
	} else {
		transport = acp.Command(agent.Command.Cmd())
	}
	command, _ := transport.(*rpc.CommandTransport)
	var process *exec.Cmd
	if command != nil {
		if process = command.Cmd; process.Stderr == nil {
			process.Stderr = &input.Lines{Most: maxLine, Line: func(line string, _ int) {
				c.event(Event{Kind: Stderr, Text: strings.ToValidUTF8(line, "\uFFFD")})
			}}
		}
	}
	transport = &tapped{client: c, inner: transport, process: process}
	return translate.Transport(transport, translate.ClientSide, 1, &translate.Options{
		Only: c.opts.Protocol, Chosen: func(version int) { c.protocol.Store(int32(version)) },
	}), nil
}

// update applies an update to the conversation of its session.
func (c *Client) update(ctx context.Context, session *acp.ClientSession, n *acp.SessionNotification) error {
	switch v := n.Update.Variant.(type) {
	case *acp.SessionUpdateToolCall:
		c.showAgentTerminal(n.SessionID, v.Meta)
	case *acp.SessionUpdateToolCallUpdate:
		c.showAgentTerminal(n.SessionID, v.Meta)
	default: // shows no terminal
	}
	if err := c.states.Update(ctx, session, n); err != nil {
		return err
	}
	if c.opts.Update != nil {
		c.opts.Update(n.SessionID, n.Update)
	}
	return nil
}

// Initialized returns the agent's latest response to initialize, empty before the first one. It must not be modified.
func (c *Client) Initialized() *acp.InitializeResponse { return c.initialized.Load() }

// Protocol returns the version of the protocol that the agent speaks, 0 before the first response to initialize.
func (c *Client) Protocol() int { return int(c.protocol.Load()) }

// Capabilities returns what the agent has advertised.
func (c *Client) Capabilities() acp.AgentCapabilities { return c.Initialized().AgentCapabilities }

// States returns the conversations, including those of subagents.
func (c *Client) States() *view.Sessions { return c.states }

// Done returns a channel that is closed when the Client is over: it was closed, or the connection was lost and is not
// made again.
func (c *Client) Done() <-chan struct{} { return c.conn.Done() }

// Wait waits until the Client is over, and returns why; nil after Close.
func (c *Client) Wait() error { return c.conn.Wait() }

// Kill kills the agent's process, if it has one, and closes the Client.
func (c *Client) Kill() error {
	c.mu.Lock()
	process := c.process
	c.mu.Unlock()
	if process != nil {
		// On error the process has already ended.
		_ = process.Process.Kill()
	}
	return c.Close()
}

// Close ends the connection and the commands in terminals, and waits for all of it. Functions of Options must not call
// it.
func (c *Client) Close() error {
	c.closing.Do(func() {
		c.end()
		c.closed = errors.Join(c.conn.Close(), c.closeLocal())
		c.running.Wait()
	})
	return c.closed
}

// closeLocal ends the services that are offered to the agent, after its connection. The error says, too, whether the
// recording is complete.
func (c *Client) closeLocal() (err error) {
	if c.terminals != nil {
		err = c.terminals.Close()
	}
	err = errors.Join(err, c.roots.Close())
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(err, c.failed)
}

// agentConn returns the connection, for calls outside of sessions.
func (c *Client) agentConn(ctx context.Context) (*acp.ClientConn, error) { return c.conn.Conn(ctx) }

// Kind is the kind of an Event: those of package reconnect are about the connection. The State of a session is reset
// when it is replaying.
type Kind = reconnect.Kind

// The other kinds of events.
const (
	// Decided: a permission request was answered. Decision says how and why.
	Decided = reconnect.GaveUp + 1 + iota
	// Stderr: the agent wrote the line Text to standard error.
	Stderr
	// Warning: an error occurred and was ignored. Err describes it.
	Warning
	// Slow: the agent has not answered the method Text for the time Wait.
	Slow
	// URLCompleted: the user has finished what Elicitation asked for at a URL.
	URLCompleted
)

// Event is something that the user may want to know. Kind says which fields are set.
type Event struct {
	Kind        Kind
	Session     acp.SessionID
	Err         error
	Text        string
	Wait        time.Duration
	Interrupted []reconnect.Interrupted
	Differences []reconnect.Difference
	Decision    *Decision
	Elicitation acp.ElicitationID
}

// Decision is how a permission request was answered.
type Decision struct {
	// Request is the request, with the complete tool call.
	Request *acp.RequestPermissionRequest
	// By is the decision of the rules. If its Effect is policy.Ask, the user was asked.
	By policy.Decision
	// Option is the chosen option, or nil if none was chosen.
	Option *acp.PermissionOption
}

// String says what was requested, and what was chosen.
func (d *Decision) String() string {
	call, chosen := acp.ToolCall{}, "cancelled"
	call.Apply(d.Request.ToolCall)
	if d.Option != nil {
		chosen = view.NewChoice(*d.Option).Text
	}
	return view.Subject(&call) + ": " + chosen
}

func (c *Client) event(e Event) {
	if c.opts.Event != nil {
		c.opts.Event(e)
	}
}

// notify reports an event of the connection.
func (c *Client) notify(_ context.Context, e reconnect.Event) {
	switch e.Kind {
	case reconnect.Replaying:
		c.states.Of(e.Session).Reset()
	case reconnect.Restored:
		if s := c.Session(e.Session); s != nil {
			c.running.Go(func() {
				// On error the connection is lost again.
				if current, err := s.conn.Live(c.life); err == nil {
					s.state.SetSession(current)
				}
			})
		}
	}
	c.event(Event{
		Kind: e.Kind, Session: e.Session, Err: e.Err, Wait: e.Wait, Interrupted: e.Interrupted,
		Differences: e.Differences,
	})
}

// maxLine is the maximum length of a reported line of standard error.
const maxLine = 16 << 10

// record begins the recording of a connection; it returns nil if nothing is recorded.
func (c *Client) record() *recording.Writer {
	o := &c.opts
	if o.Record == nil {
		return nil
	}
	header := recording.Header{Tool: "acp", Version: o.Version}
	if o.Agent.Command != nil {
		header.Command = append([]string{o.Agent.Command.Program}, o.Agent.Command.Args...)
	}
	var masker *recording.Masker
	if !o.NoMask {
		masker = recording.NewMasker()
	}
	w, err := recording.NewWriter(o.Record, header, masker)
	if err != nil {
		c.notRecorded(err)
		return nil
	}
	return w
}

// notRecorded reports once that the recording is not complete. The conversation continues.
func (c *Client) notRecorded(err error) {
	err = fmt.Errorf("the recording is not complete: %w", err)
	c.mu.Lock()
	first := c.failed == nil
	if first {
		c.failed = err
	}
	c.mu.Unlock()
	if first {
		c.event(Event{Kind: Warning, Err: err})
	}
}

// tapped is a transport whose lines are recorded and judged.
type tapped struct {
	client  *Client
	inner   acp.Transport
	process *exec.Cmd // nil if the agent is not a process
}

// Connect implements acp.Transport.
func (t *tapped) Connect(ctx context.Context) (rpc.Stream, error) {
	stream, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	w := &wire{client: t.client, process: t.process, writer: t.client.record()}
	var alive context.Context
	alive, w.dead = context.WithCancelCause(context.Background())
	t.client.mu.Lock()
	t.client.alive, t.client.process = alive, t.process
	t.client.mu.Unlock()
	if t.client.opts.Findings != nil {
		w.judge = conformance.NewJudge(nil, nil)
	}
	return rpc.Wrap(stream, rpc.Wrapper{
		Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
			line, err := next()
			if err == nil {
				w.read(line)
			} else if errors.Is(err, io.EOF) {
				w.noteEnd(conformance.Agent)
			}
			return line, err
		},
		Write: w.write,
		Close: func() error {
			w.noteEnd(conformance.Client)
			err := stream.Close()
			w.end()
			return err
		},
	}), nil
}

// wire is one connection.
type wire struct {
	client   *Client
	process  *exec.Cmd
	dead     context.CancelCauseFunc
	answered bool // the response to initialize has passed

	mu     sync.Mutex
	writer *recording.Writer // nil when nothing more is recorded
	judge  *conformance.Judge
	closed conformance.Side // the side that closed the connection; 0 while it is open
	ended  bool
}

func (w *wire) read(line []byte) {
	w.client.heard.Store(time.Now().UnixNano())
	if !w.answered {
		w.answered = w.client.keepLogins(line)
	}
	if w.client.opts.Subagents && bytes.Contains(line, []byte(`"subagent_update"`)) {
		w.client.adopt(line)
	}
	w.pass(conformance.ToClient, line)
	if tap := w.client.opts.Line; tap != nil {
		tap(conformance.Agent, line)
	}
}

func (w *wire) write(line []byte) ([]byte, error) {
	w.pass(conformance.ToAgent, line)
	if tap := w.client.opts.Line; tap != nil {
		tap(conformance.Client, line)
	}
	return line, nil
}

// pass records and judges a line.
func (w *wire) pass(d conformance.Direction, line []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	m := conformance.Message{Direction: d, Line: line}
	if w.writer != nil {
		if err := w.writer.Message(m); err != nil {
			w.client.notRecorded(err)
			w.writer = nil
		}
	}
	if w.judge != nil {
		w.passFindings(w.judge.Message(m))
	}
}

func (w *wire) passFindings(findings []conformance.Finding) {
	for _, f := range findings {
		w.client.opts.Findings(f)
	}
}

// noteEnd records which side closed the connection first.
func (w *wire) noteEnd(by conformance.Side) {
	w.dead(acp.ErrClosed)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed == 0 {
		if w.closed = by; w.judge != nil {
			w.judge.Closed(by)
		}
	}
}

// end is called when the agent's process, if it has one, has ended.
func (w *wire) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.ended = true
	if w.writer != nil {
		end := &recording.End{}
		if w.process != nil && w.process.ProcessState != nil {
			end = relay.End(w.process.ProcessState)
		}
		end.Closed = w.closed
		if err := w.writer.Write(&recording.Entry{Kind: recording.KindEnd, End: end}); err != nil {
			w.client.notRecorded(err)
		}
	}
	if w.judge != nil {
		w.passFindings(w.judge.End())
	}
}

// slowStep is the time after which the user learns that a step of a start takes long.
const slowStep = 5 * time.Second

// step calls the agent's method for opening or setting up a session. It reports a call that takes long, and gives up
// when the agent has sent nothing for Options.ConnectTimeout, unless the user is being asked something.
func step[T any](ctx context.Context, c *Client, method string, call func(context.Context) (T, error)) (T, error) {
	limit := cmp.Or(c.opts.ConnectTimeout, defaultConnectTimeout)
	ctx, cancel := context.WithCancelCause(ctx)
	silent := fmt.Errorf("%s: no answer within %v: %w", method, limit, context.DeadlineExceeded)
	stop := c.slow(method, func() bool {
		if c.asking.Load() > 0 || time.Since(c.heardAt()) < limit {
			return false
		}
		cancel(silent)
		return true
	})
	result, err := call(ctx)
	stop()
	if context.Cause(ctx) == silent && err != nil {
		err = silent
	}
	cancel(nil)
	return result, err
}

const defaultConnectTimeout = 2 * time.Minute

// slow reports a call of the agent's method if it takes long, and then calls over every second until that is true.
func (c *Client) slow(method string, over func() bool) (stop func()) {
	c.heard.Store(time.Now().UnixNano())
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		report := time.After(slowStep)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-report:
				c.event(Event{Kind: Slow, Text: method, Wait: slowStep})
			case <-tick.C:
				if over() {
					return
				}
			}
		}
	})
	return func() {
		close(done)
		watching.Wait()
	}
}

// heardAt is when the agent last sent a line, or a step began.
func (c *Client) heardAt() time.Time { return time.Unix(0, c.heard.Load()) }
