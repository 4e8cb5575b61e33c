package mcpacp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
)

// Session is the part of a session that Connect uses. *agentkit.Session implements it.
type Session interface {
	agentkit.Sender
	ID() acp.SessionID
	Conn() *acp.AgentConn
	// Cwd returns the working directory, in which servers are started.
	Cwd() string
	// Context returns a context that ends with the session.
	Context() context.Context
}

// Options tunes Connect. A nil *Options, and the zero value of each field, mean the defaults.
type Options struct {
	// Info is how the agent introduces itself to servers. The default names this package.
	Info *mcp.Implementation

	// Client configures the MCP client of each server. Its handlers for elicitation and sampling receive these requests of
	// servers. Without a handler the capability is not advertised to servers, and roots are advertised only if
	// Client.Capabilities has them. In revision 2026-07-28 of MCP the context of a handler is derived from that of the
	// call; in older revisions it is that of the connection.
	Client mcp.ClientOptions

	// Permit decides whether a tool may be called, usually with [agentkit.ToolCall.Ask]; nil means yes. turn is the
	// argument of Call. Without Permit the user is asked. The question about a tool that the server annotates as read-only
	// offers to trust these annotations of the server for the rest of the session; until then its tools are of the kind
	// other. With Permit the annotations are trusted.
	Permit func(ctx context.Context, turn agentkit.Asker, tool *Tool, call *agentkit.ToolCall) error

	// WaitTime is how long Tools waits for servers that are starting, measured from Connect. The tools of slower servers
	// are added later. The default is 5 s.
	WaitTime time.Duration
	// StartTime bounds the start of a server, including its first list of tools, and each later list. The default is 1
	// minute.
	StartTime time.Duration
	// CallTime bounds a call, measured from its start or its last progress. The default is 10 minutes.
	CallTime time.Duration
	// MaxMessage is the longest message that a server may send, in bytes. The default is 8 MiB. It does not apply to
	// servers over ACP, whose messages are bounded by the ACP connection.
	MaxMessage int
	// MaxTools is how many tools, resources or prompts are taken from one server. The default is 512. Such a list is not
	// longer than MaxMessage either.
	MaxTools int
	// Logger receives messages that could not be sent to the user, and panics while messages of servers are handled and
	// answers to notifications, ten for each server. Nil means slog.Default.
	Logger *slog.Logger
}

// maxServers is how many servers a session may have: a client could name any number.
const maxServers = 64

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Info == nil {
		opts.Info = &mcp.Implementation{Name: "github.com/acpgo/sdk/contrib/mcpacp", Version: "1"}
	}
	if opts.Client.Capabilities == nil {
		opts.Client.Capabilities = &mcp.ClientCapabilities{} // the MCP SDK's default offers roots
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	opts.WaitTime = cmp.Or(opts.WaitTime, 5*time.Second)
	opts.StartTime = cmp.Or(opts.StartTime, time.Minute)
	opts.CallTime = cmp.Or(opts.CallTime, 10*time.Minute)
	opts.MaxMessage = cmp.Or(opts.MaxMessage, 8<<20)
	opts.MaxTools = cmp.Or(opts.MaxTools, 512)
	return opts
}

// Set has the tools of one session: the connections to its MCP servers, and the tools of AddTool. Its methods are safe
// for concurrent use.
type Set struct {
	session  Session
	opts     Options
	answered chan struct{} // closed when the client knows the session
	patience time.Time     // until when Tools waits
	servers  []*server     // in the order of their declarations
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	own     []*ownTool
	changed chan struct{} // closed, and made anew, at each change
	unsaid  []string      // messages for the user, for clients without notices

	saying sync.Mutex // held while they are sent
}

// server is one server of a Set.
type server struct {
	set     *Set
	config  acp.MCPServer
	title   string       // as declared
	name    string       // unique in the set
	trusted atomic.Bool  // annotations of tools count
	ignored atomic.Int32 // answers to notifications
	dirty   chan struct{}
	lost    chan *mcp.ClientSession // sessions that the server has forgotten
	told    map[string]bool         // the messages to the user; of the server's goroutine

	// Guarded by Set.mu.
	state   state
	stale   time.Time // since when the list of tools has changed; zero if it is current
	session *mcp.ClientSession
	tools   []*Tool
	calls   map[string]*progress // by their tokens
	tasks   []string             // tools that were left out of the list that is being fetched
	useful  bool                 // a call has succeeded on this connection
	tokens  int
}

type state int

const (
	starting state = iota
	ready
	gone
)

// Connect connects to the MCP servers of a session, those of agentkit.Opening.MCPServers. It returns at once, while the
// servers are starting: [Set.Tools] waits for them. ctx is that of the request that opens the session, and bounds
// nothing afterwards.
//
// If a server cannot be started, hangs, exits or sends too much, only its own tools become unavailable. The user gets a
// notice. If the client does not support notices, the user gets a message of the agent instead, which the session
// stores like any other: the next call of [Set.Tools], [Set.Call] or [Set.CallAll], which are called in turns, sends
// it.
//
// The servers end when the session's context ends; processes end with their children. If the session has a method
// AtClose, as *agentkit.Session does, it waits for them. For other sessions, call [Set.Close].
func Connect(ctx context.Context, session Session, servers []acp.MCPServer, opts *Options) (*Set, error) {
	s := &Set{
		session: session, opts: opts.withDefaults(), answered: make(chan struct{}), changed: make(chan struct{}),
	}
	if len(servers) > maxServers {
		return nil, acp.InvalidParamsf("%d MCP servers, and %d is the most", len(servers), maxServers)
	}
	taken := map[string]bool{}
	for _, config := range servers {
		v := &server{set: s, config: config, dirty: make(chan struct{}, 1), lost: make(chan *mcp.ClientSession),
			told: map[string]bool{}, calls: map[string]*progress{}}
		declared := declaredName(config)
		v.name = uniqueName(declared, taken)
		v.title = cmp.Or(declared, v.name)
		v.trusted.Store(s.opts.Permit != nil)
		s.servers = append(s.servers, v)
	}
	if s.opts.Permit == nil {
		s.opts.Permit = s.permit
	}
	s.ctx, s.cancel = context.WithCancel(session.Context())
	s.patience = time.Now().Add(s.opts.WaitTime)
	if !acp.AfterResponse(ctx, func(context.Context) { close(s.answered) }) {
		close(s.answered)
	}
	for _, v := range s.servers {
		s.running.Go(v.run)
	}
	if owner, ok := session.(interface{ AtClose(f func()) }); ok {
		owner.AtClose(s.Close)
	}
	return s, nil
}

// Close ends the servers, and waits until they have ended.
func (s *Set) Close() {
	s.cancel()
	s.running.Wait()
}

// declaredName is the name of a server in its declaration.
func declaredName(config acp.MCPServer) string {
	switch c := config.Variant.(type) {
	case *acp.MCPServerStdio:
		return c.Name
	case *acp.MCPServerHTTP:
		return c.Name
	case *acp.MCPServerSSE:
		return c.Name
	case *acp.MCPServerACP:
		return c.Name
	default:
		return ""
	}
}

// run runs the server until it or the session ends. A server over HTTP that has been lost may have restarted, or
// forgotten its session: it is connected anew, for up to ten times as long as a start may take.
func (v *server) run() {
	began := time.Now()
	started, err := v.serve()
	if !started && forgotten(err) { // between its answers to initialize and to tools/list
		started, err = v.serve()
	}
	for tries, lost, again := 0, time.Now(), started; started && v.overHTTP() && v.set.ctx.Err() == nil; tries++ {
		v.set.change(func() {
			if v.useful || again && time.Since(began) > v.set.opts.StartTime {
				tries, lost = 0, time.Now()
			}
			v.state, v.session, v.useful = starting, nil, false
		})
		if !forgotten(err) { // with that, nothing has happened that the user would notice
			v.tell("The connection to the MCP server %q was lost, and is made again", v.presentable(err))
		}
		wait := time.Duration(0)
		if tries > 0 {
			wait = time.Second << min(tries-1, 5)
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-v.set.ctx.Done():
			pause.Stop()
		}
		began = time.Now()
		if again, err = v.serve(); !again && time.Since(lost) > 10*v.set.opts.StartTime {
			break
		}
	}
	clear(v.told) // the user gets the last message in any case
	if started {
		v.tell("The MCP server %q has ended", v.presentable(err))
	} else {
		v.tell("The MCP server %q did not start", v.presentable(err))
	}
	v.set.change(func() { v.state, v.session, v.tools, v.stale = gone, nil, nil, time.Time{} })
}

// overHTTP reports whether a server is one over HTTP or SSE. One that has been lost can be connected anew: a process
// would have lost its state.
func (v *server) overHTTP() bool {
	switch v.config.Variant.(type) {
	case *acp.MCPServerHTTP, *acp.MCPServerSSE:
		return true
	default:
		return false
	}
}

// errSlow is the cause of contexts of servers that take too long to start.
var errSlow = errors.New("it does not answer")

// serve starts the server, and returns when it has ended, with the reason.
func (v *server) serve() (started bool, err error) {
	link, err := v.dial()
	if err != nil {
		return false, err
	}
	defer link.abort()
	ctx, cancel := context.WithCancelCause(v.set.ctx)
	defer cancel(nil)
	slow := time.AfterFunc(v.set.opts.StartTime, func() { cancel(errSlow) })
	defer slow.Stop()
	unguard := context.AfterFunc(ctx, link.abort)
	session, err := v.client().Connect(ctx, link, nil)
	if err == nil {
		err = v.list(ctx, session)
	}
	if err == nil && !unguard() {
		err = context.Cause(ctx)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		link.abort()
		if link.conn != nil {
			_ = link.conn.Close() // the reason is err
		}
		if session != nil {
			_ = session.Close()
		}
		return false, cmp.Or(link.ended(), err)
	}
	slow.Stop()
	return true, v.attend(ctx, link, session)
}

// pauseTime is the shortest time between two lists of a server's tools.
const pauseTime = time.Second

// goodbyeTime bounds the orderly end of a connection.
const goodbyeTime = time.Second

// attend follows the changes of a server's tools until it or the session ends, or it forgets its own session.
func (v *server) attend(ctx context.Context, link *link, session *mcp.ClientSession) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := make(chan error, 1)
	go func() { over <- session.Wait() }()
	dirty := v.dirty
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				_ = session.Close() // an error changes nothing now
			}()
			if link.polite {
				timer := time.NewTimer(goodbyeTime)
				defer timer.Stop()
				select {
				case <-closed:
				case <-timer.C:
				}
			}
			link.abort()
			<-closed
			<-over
			return context.Cause(ctx)
		case err := <-over:
			_ = session.Close() // releases the subscription of the MCP SDK; err is the reason
			return cmp.Or(link.ended(), err, errors.New("it has closed the connection"))
		case lost := <-v.lost:
			if lost == session {
				cancel(errForgotten)
			}
		case <-dirty:
			dirty = nil
			pause.Reset(pauseTime)
			if err := v.list(ctx, session); forgotten(err) {
				cancel(errForgotten)
			} else if err != nil {
				v.set.change(func() { v.stale = time.Time{} })
				v.tell("The tools of the MCP server %q could not be listed", v.presentable(err))
			}
		case <-pause.C:
			dirty = v.dirty
		}
	}
}

// client returns the MCP client for the server.
func (v *server) client() *mcp.Client {
	opts := v.set.opts.Client
	toolsChanged, progressed := opts.ToolListChangedHandler, opts.ProgressNotificationHandler
	opts.ToolListChangedHandler = func(ctx context.Context, req *mcp.ToolListChangedRequest) {
		v.set.change(func() {
			if v.stale.IsZero() && v.state == ready {
				v.stale = time.Now()
			}
		})
		select {
		case v.dirty <- struct{}{}:
		default: // a refresh is due already
		}
		if toolsChanged != nil {
			toolsChanged(ctx, req)
		}
	}
	opts.ProgressNotificationHandler = func(ctx context.Context, req *mcp.ProgressNotificationClientRequest) {
		v.progressed(req.Params)
		if progressed != nil {
			progressed(ctx, req)
		}
	}
	client := mcp.NewClient(v.set.opts.Info, &opts)
	// The MCP SDK panics on some messages of servers, which would end the agent.
	panics := &panics{logger: v.set.opts.Logger.With("server", v.title)}
	survive := func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
			defer panics.recovered(method, &res, &err, fmt.Errorf("handling %q panicked", method))
			if n, ok := req.(*mcp.ElicitationCompleteNotificationRequest); ok && n.Params == nil {
				return nil, errors.New("no params") // the MCP SDK would panic, and keep a lock that later ones need
			}
			return next(ctx, method, req)
		}
	}
	client.AddSendingMiddleware(survive)
	client.AddReceivingMiddleware(survive, limitRequests)
	return client
}

// maxRequests is how many requests of a server, such as those for elicitation, may be handled at a time.
const maxRequests = 16

// limitRequests refuses requests of a server while too many of its requests are being handled: the MCP SDK handles any
// number.
func limitRequests(next mcp.MethodHandler) mcp.MethodHandler {
	var running atomic.Int32
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		defer running.Add(-1)
		if running.Add(1) > maxRequests && !strings.HasPrefix(method, "notifications/") {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "too many requests at a time"}
		}
		return next(ctx, method, req)
	}
}

// change calls f, which changes fields that the mutex guards, and wakes the goroutines that wait for a change.
func (s *Set) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// maxReason is how many bytes of the reason of a failure are shown.
const maxReason = 2 << 10

// maxTold is how many messages about a server the user gets before it ends.
const maxTold = 10

// tell sends a notice about the server to the user, in the background, or leaves a message for the next turn. The title
// is a format for the server's name. No message is sent twice.
func (v *server) tell(title string, reason error) {
	title = fmt.Sprintf(title, v.title)
	text := shorten(reason.Error(), maxReason)
	said := title + ": " + text
	if v.told[said] || len(v.told) == maxTold {
		return
	}
	v.told[said] = true
	if len(v.told) == maxTold {
		text += "\nMore messages about its tools are not shown."
	}
	if v.set.session.Conn().Capabilities().Session.Value().Notices.Present() {
		v.set.running.Go(func() { v.set.notify(title, text) })
		return
	}
	v.set.mu.Lock()
	defer v.set.mu.Unlock()
	v.set.unsaid = append(v.set.unsaid, title+": "+text+"\n")
}

func (s *Set) notify(title, reason string) {
	select {
	case <-s.answered:
	case <-s.ctx.Done():
		return
	}
	s.send(acp.NewSessionUpdateNotice(acp.Notice{
		Severity: acp.NoticeSeverityWarning, Title: title, Description: acp.Some(reason),
	}))
}

// say sends what a client without notices has not been told yet. Messages of the agent belong to a turn, and must not
// follow its answer: only a caller of the set knows that a turn is running.
func (s *Set) say() {
	select {
	case <-s.answered:
	default:
		return // the session is still being opened
	}
	s.saying.Lock()
	defer s.saying.Unlock()
	s.mu.Lock()
	unsaid := s.unsaid
	s.unsaid = nil
	s.mu.Unlock()
	for _, text := range unsaid {
		s.send(acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{
			Content: acp.TextBlock(text), MessageID: acp.Some(acp.MessageID("msg_" + strings.ToLower(rand.Text()))),
		}))
	}
}

func (s *Set) send(update acp.SessionUpdate) {
	if err := s.session.Update(s.ctx, update); err != nil && s.ctx.Err() == nil && !errors.Is(err, acp.ErrClosed) {
		s.opts.Logger.Warn("the user was not told about an MCP server", "update", update, "error", err)
	}
}

// uniqueName returns a name for a server that is not taken and is a valid prefix of tool names: some models require a
// letter at the beginning. It has neither two underscores in a row nor one at its end, so that tools of two servers
// never have the same name.
func uniqueName(declared string, taken map[string]bool) string {
	words := strings.FieldsFunc(declared, func(r rune) bool { return r == '_' || !nameRune(r) })
	base := strings.Join(words, "_")
	if base == "" || !unicode.IsLetter(rune(base[0])) {
		base = strings.TrimSuffix("mcp_"+base, "_")
	}
	base = strings.TrimRight(base[:min(len(base), maxServerName)], "_")
	name := base
	for n := 2; taken[name]; n++ {
		name = fmt.Sprint(base, "_", n)
	}
	taken[name] = true
	return name
}

const (
	maxServerName = 20
	maxToolName   = 64 // of common models
)

// nameRune reports whether common models accept a rune in the name of a tool.
func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-'
}
