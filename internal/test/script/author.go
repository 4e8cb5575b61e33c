package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	sdk "github.com/acpgo/sdk"
	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/conformance"
)

// author is the program that uses this module, as a transport: to the connection of the played side it adds what that
// program does and hears, as messages with the member "author".
type author struct {
	t       *testing.T
	wire    rpc.Transport
	calls   sync.WaitGroup
	closing sync.Once
	closed  chan struct{}

	stream  rpc.Stream
	heard   chan line     // has room for a whole conversation
	conn    any           // the connection of the tested side
	started chan struct{} // closed when conn is there
	over    chan struct{} // closed when the tested side has ended
	cancels map[string]context.CancelFunc

	mu       sync.Mutex
	handling map[string]job   // the requests that are handled
	failed   map[string]error // the calls that have failed
}

type line struct {
	text []byte
	err  error
}

// job is a request that is handled.
type job struct {
	ctx  context.Context
	done chan message
}

// message is what author and module say to each other.
type message struct {
	JSONRPC string           `json:"jsonrpc"`
	Author  string           `json:"author"`
	Of      string           `json:"of,omitempty"`
	ID      json.RawMessage  `json:"id,omitempty"`
	Method  string           `json:"method,omitempty"`
	Params  json.RawMessage  `json:"params,omitempty"`
	Result  json.RawMessage  `json:"result,omitempty"`
	Error   *json.RawMessage `json:"error,omitempty"`
}

func newAuthor(t *testing.T, wire rpc.Transport) *author {
	return &author{
		t: t, wire: wire, heard: make(chan line, 1000), started: make(chan struct{}), over: make(chan struct{}), closed: make(chan struct{}),
		handling: map[string]job{}, cancels: map[string]context.CancelFunc{}, failed: map[string]error{},
	}
}

// Connect returns the author's stream.
func (a *author) Connect(ctx context.Context) (rpc.Stream, error) {
	stream, err := a.wire.Connect(ctx)
	if err != nil {
		return nil, err
	}
	a.stream = stream
	a.calls.Go(func() {
		for {
			text, err := stream.Read()
			if errors.Is(err, io.EOF) {
				<-a.over // the last that the author hears comes before
			}
			a.heard <- line{append([]byte(nil), text...), err}
			if _, tooLong := errors.AsType[*rpc.TooLongError](err); err != nil && !tooLong {
				return
			}
		}
	})
	return a, nil
}

// Read returns what the tested side has sent, or its author has heard.
func (a *author) Read() ([]byte, error) {
	next := <-a.heard
	return next.text, next.err
}

// Write sends a message, or has the author do something.
func (a *author) Write(text []byte) error {
	if !strings.HasPrefix(string(text), `{"author":`) {
		return a.stream.Write(text)
	}
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	switch {
	case m.Method == acp.MethodCancelRequest:
		var which struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		if err := json.Unmarshal(m.Params, &which); err != nil {
			return err
		}
		a.cancels[string(which.RequestID)]()
	case m.Method == "":
		a.job(string(m.ID)).done <- m
	case m.Author == "after":
		acp.AfterResponse(a.job(strconv.Quote(m.Of)).ctx, func(ctx context.Context) { a.call(ctx, m) })
	default:
		ctx := context.Background()
		if m.Author == "in" {
			ctx = a.job(strconv.Quote(m.Of)).ctx
		}
		if m.ID == nil {
			a.call(ctx, m)
			return nil
		}
		ctx, cancel := context.WithCancel(ctx)
		a.cancels[string(m.ID)] = cancel
		a.calls.Go(func() {
			defer cancel()
			a.call(ctx, m)
		})
	}
	return nil
}

func (a *author) job(id string) job {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.handling[id]
}

// Close closes the connection of the played side. Handlers that wait for the author return.
func (a *author) Close() error {
	a.closing.Do(func() { close(a.closed) })
	return a.stream.Close()
}

// hear adds a message to what the author has heard.
func (a *author) hear(m message) {
	m.JSONRPC = "2.0"
	text, err := json.Marshal(m)
	if err != nil {
		a.t.Error(err)
	}
	a.heard <- line{text: text}
}

// definitions are the names of parameters, and the methods that have them.
var definitions = sync.OnceValue(func() map[string]string {
	var schema struct {
		Defs map[string]struct {
			Method string `json:"x-method"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(sdk.SchemaV1Unstable()), &schema); err != nil {
		panic(err)
	}
	methods := map[string]string{}
	for name, d := range schema.Defs {
		methods[name] = d.Method
	}
	return methods
})

// methodOf returns the method whose parameters a function has as its argument i.
func methodOf(f reflect.Type, i int) string {
	if f.NumIn() <= i || f.In(i).Kind() != reflect.Pointer {
		return ""
	}
	return definitions()[f.In(i).Elem().Name()]
}

// call calls a method, and has the author hear the result.
func (a *author) call(ctx context.Context, m message) {
	select {
	case <-a.started:
	case <-a.over:
		a.t.Errorf("%s: there is no connection", m.Method)
		return
	}
	heard := message{ID: m.ID}
	result, err := a.callMethod(ctx, m)
	if err == nil {
		heard.Result, err = json.Marshal(result)
	}
	if err != nil {
		heard.Error = new(heardError(err))
		a.mu.Lock()
		a.failed[string(m.ID)] = err
		a.mu.Unlock()
	}
	if m.ID != nil {
		a.hear(heard)
	} else if err != nil {
		a.t.Errorf("%s: %v", m.Method, err)
	}
}

func (a *author) callMethod(ctx context.Context, m message) (any, error) {
	if strings.HasPrefix(m.Method, "_") {
		var params any
		if m.Params != nil {
			params = m.Params
		}
		return rpc.Call[json.RawMessage](ctx, a.conn.(interface{ RPC() *rpc.Conn }).RPC(), m.Method, params)
	}
	if agent, ok := a.conn.(*acp.AgentConn); ok {
		// The functions of a session check more than those of the connection.
		switch m.Method {
		case acp.MethodRequestPermission:
			return askAgent(m, func(p *acp.RequestPermissionRequest) (any, error) {
				outcome, err := agent.Session(p.SessionID).RequestPermission(ctx, p.ToolCall, p.Options...)
				return acp.RequestPermissionResponse{Outcome: outcome}, err
			})
		case acp.MethodCreateTerminal:
			return askAgent(m, func(p *acp.CreateTerminalRequest) (any, error) {
				terminal, err := agent.Session(p.SessionID).CreateTerminal(ctx, p)
				if err != nil {
					return nil, err
				}
				return acp.CreateTerminalResponse{TerminalID: terminal.ID()}, nil
			})
		}
	}
	conn := reflect.ValueOf(a.conn)
	for _, f := range conn.Methods() {
		if methodOf(f.Type(), 1) != m.Method {
			continue
		}
		params := reflect.New(f.Type().In(1))
		if err := json.Unmarshal(m.Params, params.Interface()); err != nil {
			a.t.Errorf("%s %s: %v", m.Method, m.Params, err)
		}
		out := f.Call([]reflect.Value{reflect.ValueOf(ctx), params.Elem()})
		err, _ := out[len(out)-1].Interface().(error)
		if len(out) == 1 {
			return struct{}{}, err
		}
		if s, ok := out[0].Interface().(*acp.ClientSession); ok && err == nil {
			return opened(s), nil
		}
		return out[0].Interface(), err
	}
	return nil, fmt.Errorf("there is no method %s", m.Method)
}

// askAgent decodes the parameters of a call.
func askAgent[P any](m message, call func(*P) (any, error)) (any, error) {
	params := new(P)
	if err := json.Unmarshal(m.Params, params); err != nil {
		return nil, err
	}
	return call(params)
}

// opened is what a client knows of a session that it has opened.
func opened(s *acp.ClientSession) any {
	return struct {
		SessionID     acp.SessionID                      `json:"sessionId"`
		Modes         acp.Opt[acp.SessionModeState]      `json:"modes,omitzero"`
		ConfigOptions acp.Opt[[]acp.SessionConfigOption] `json:"configOptions,omitzero"`
	}{s.ID(), s.Modes(), s.ConfigOptions()}
}

// names are the names of errors that have no code.
var names = []struct {
	name string
	err  error
}{
	{"unsupported", acp.ErrUnsupported}, {"experimental", acp.ErrExperimental}, {"overflow", acp.ErrOverflow},
	{"closed", acp.ErrClosed}, {"turn_cancelled", acp.ErrTurnCancelled}, {"cancelled", context.Canceled},
	{"failure", errFailure},
}

var errFailure = errors.New("a secret")

// heardError is an error as the author hears it.
func heardError(err error) json.RawMessage {
	var data any
	code := acp.Code(0)
	for _, n := range names {
		if errors.Is(err, n.err) && data == nil {
			data = n.name
		}
	}
	if _, ok := errors.AsType[*acp.VersionError](err); ok {
		data = "version"
	}
	if e, ok := errors.AsType[*acp.Error](err); ok && data == nil {
		code = e.Code
		if e.Data != nil {
			data = e.Data
		}
	}
	members := map[string]any{"code": code, "message": err.Error()}
	if data != nil {
		members["data"] = data
	}
	text, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return text
}

// handlers sets the functions of a struct of handlers.
func (s setting) handle(a *author, handlers any) {
	v := reflect.ValueOf(handlers).Elem()
	for _, f := range v.Fields() {
		if f.Kind() != reflect.Func {
			continue
		}
		method := methodOf(f.Type(), 2)
		result, ok := s.handlers[method]
		if !ok {
			continue
		}
		delete(s.handlers, method)
		f.Set(reflect.MakeFunc(f.Type(), func(in []reflect.Value) []reflect.Value {
			answer, err := json.RawMessage(result), error(nil)
			if result == "" {
				answer, err = a.handled(in[0].Interface().(context.Context), method, in[2].Interface(), f.Type().NumOut() == 2)
			}
			failed := reflect.Zero(reflect.TypeFor[error]())
			if err != nil {
				failed = reflect.ValueOf(&err).Elem()
			}
			if f.Type().NumOut() == 1 {
				return []reflect.Value{failed}
			}
			res := reflect.New(f.Type().Out(0))
			if err == nil {
				if err := json.Unmarshal(answer, res.Interface()); err != nil {
					a.t.Errorf("%s: %s: %v", method, answer, err)
				}
			}
			return []reflect.Value{res.Elem(), failed}
		}))
	}
}

// handled has the author handle a request or a notification.
func (a *author) handled(ctx context.Context, method string, params any, request bool) (json.RawMessage, error) {
	text, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	m := message{Method: method, Params: text}
	if !request {
		a.hear(m)
		return nil, nil
	}
	j := job{ctx, make(chan message, 1)}
	a.mu.Lock()
	m.ID = fmt.Appendf(nil, `"%d"`, len(a.handling)+1)
	a.handling[string(m.ID)] = j
	a.mu.Unlock()
	a.hear(m)
	var answer message
	select {
	case answer = <-j.done:
	case <-ctx.Done():
		a.hear(message{Method: acp.MethodCancelRequest, ID: m.ID})
		select {
		case answer = <-j.done:
		case <-a.closed:
			return nil, ctx.Err()
		}
	}
	if answer.Error == nil {
		return answer.Result, nil
	}
	var failed acp.Error
	if err := json.Unmarshal(*answer.Error, &failed); err != nil {
		return nil, err
	}
	if failed.Code != 0 {
		return nil, &failed
	}
	switch name, id, _ := strings.Cut(strings.Trim(string(failed.Data), `"`), " "); name {
	case "that_of":
		a.mu.Lock()
		defer a.mu.Unlock()
		return nil, fmt.Errorf("passed on: %w", a.failed[id])
	case "panic":
		panic(errFailure)
	case "cancelled":
		return nil, ctx.Err()
	case "auth_required":
		return nil, acp.ErrAuthRequired
	}
	return nil, errFailure
}

// Enabled, Handle, WithAttrs and WithGroup make the author the handler of a log.
func (a *author) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle has the author hear a warning.
func (a *author) Handle(_ context.Context, r slog.Record) error {
	attrs := map[string]any{"message": r.Message}
	r.Attrs(func(attr slog.Attr) bool {
		attrs[attr.Key] = attr.Value.String()
		return true
	})
	a.warn(attrs)
	return nil
}

func (a *author) warn(attrs map[string]any) {
	text, err := json.Marshal(attrs)
	if err != nil {
		a.t.Error(err)
	}
	a.hear(message{Method: "warning", Params: text})
}

// WithAttrs returns the author.
func (a *author) WithAttrs([]slog.Attr) slog.Handler { return a }

// WithGroup returns the author.
func (a *author) WithGroup(string) slog.Handler { return a }

// configure reads options of a section.
func (s setting) configure(a *author, opts any, experimental *acp.Features, conn *acp.ConnOptions) {
	if err := json.Unmarshal([]byte(s.options), opts); err != nil {
		a.t.Errorf("the options %s: %v", s.options, err)
	}
	if s.experimental {
		*experimental = acp.AllFeatures
	}
	conn.Logger = slog.New(slog.DiscardHandler)
	if s.logs {
		conn.Logger = slog.New(a)
		conn.Hooks.Invalid = func(_ []byte, reason error) { a.warn(map[string]any{"invalid": reason.Error()}) }
		conn.Hooks.Start = func(_ *rpc.Conn, hooks acp.Hooks) acp.Hooks {
			hooks.Repair = func(method string, r codec.Repair) {
				a.warn(map[string]any{"method": method, "repaired": r.Pointer})
			}
			return hooks
		}
	}
}

// serve runs the tested side until its connection ends.
func (s setting) serve(a *author, transport acp.Transport) {
	if s.side == conformance.Agent {
		var handlers acp.AgentHandlers
		s.handle(a, &handlers)
		handlers.Extensions = echoes[acp.AgentConn](s)
		opts := &acp.AgentOptions{}
		s.configure(a, opts, &opts.Experimental, &opts.Conn)
		conn, err := acp.StartAgent(a.t.Context(), transport, handlers, opts)
		a.run(conn, err)
	} else {
		var handlers acp.ClientHandlers
		s.handle(a, &handlers)
		handlers.Extensions = echoes[acp.ClientConn](s)
		opts := &acp.ClientOptions{}
		s.configure(a, opts, &opts.Experimental, &opts.Conn)
		conn, err := acp.Connect(a.t.Context(), transport, handlers, opts)
		a.run(conn, err)
	}
	for method := range s.handlers {
		a.t.Errorf("%s is not a method of the %v", method, s.side)
	}
}

// echoes are the handlers of the methods that the protocol does not have: they return what they are given.
func echoes[C any](s setting) *acp.Extensions[C] {
	var ext acp.Extensions[C]
	for method := range s.handlers {
		if strings.HasPrefix(method, "_") {
			delete(s.handlers, method)
			rpc.Handle(&ext, method, func(_ context.Context, _ *C, p *json.RawMessage) (*json.RawMessage, error) {
				return p, nil
			})
		}
	}
	return &ext
}

// run serves a connection, if there is one.
func (a *author) run(conn interface{ Wait() error }, err error) {
	if err != nil {
		a.hear(message{ID: json.RawMessage(`"connect"`), Error: new(heardError(err))})
		return
	}
	a.conn = conn
	close(a.started)
	if err := conn.Wait(); err != nil {
		a.t.Error(err)
	}
}
