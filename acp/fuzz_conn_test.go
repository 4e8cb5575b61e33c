package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	sdk "github.com/acpgo/sdk"
	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/badlines"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/sample"
	"github.com/acpgo/sdk/internal/test/tier"
)

// serveAll sets the handlers of stable methods that are nil: they answer requests with the zero value, and take
// notifications.
func serveAll(handlers any) {
	h := reflect.ValueOf(handlers).Elem()
	for _, f := range h.Fields() {
		if f.Kind() != reflect.Func || !f.IsNil() {
			continue
		}
		t := f.Type()
		takes := t.In(2).Elem().Name()
		if !slices.ContainsFunc(servedMethods(), func(m served) bool { return strings.EqualFold(m.definition, takes) }) {
			continue
		}
		f.Set(reflect.MakeFunc(t, func([]reflect.Value) []reflect.Value {
			out := []reflect.Value{reflect.Zero(t.Out(t.NumOut() - 1))}
			if t.NumOut() == 2 {
				out = slices.Insert(out, 0, reflect.New(t.Out(0).Elem()))
			}
			return out
		}))
	}
}

// willingAgent serves every stable method. A prompt says something and asks; nothing waits for more than a
// second.
func willingAgent() acp.AgentHandlers {
	h := acp.AgentHandlers{
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := s.Update(ctx, acp.AgentMessageText("working")); err != nil {
				return nil, err
			}
			_, err := s.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: "c"}, options("Yes", "No")...)
			if err != nil && ctx.Err() == nil {
				return nil, err
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}
	h.NewSession = newSession
	serveAll(&h)
	return h
}

var willingAgentOptions = acp.AgentOptions{
	AuthMethods:           []acp.AuthMethod{acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "login", Name: "Log in"})},
	Prompt:                acp.PromptCapabilities{Audio: true, Image: true, EmbeddedContext: true},
	AdditionalDirectories: true,
}

// willingClient serves every stable method. An update about a tool calls the agent.
func willingClient() acp.ClientHandlers {
	h := acp.ClientHandlers{
		RequestPermission: func(ctx context.Context, _ *acp.ClientSession, _ *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
		},
		CreateElicitation: func(context.Context, *acp.ClientConn, *acp.CreateElicitationRequest) (*acp.CreateElicitationResponse, error) {
			res := acp.NewCreateElicitationResponseDecline()
			return &res, nil
		},
		SessionUpdate: func(ctx context.Context, session *acp.ClientSession, n *acp.SessionNotification) error {
			if _, ok := n.Update.Variant.(*acp.SessionUpdateToolCall); ok {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				return session.SetMode(ctx, "x")
			}
			return nil
		},
	}
	h.CreateTerminal = func(context.Context, *acp.ClientSession, *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
		return &acp.CreateTerminalResponse{TerminalID: "t"}, nil
	}
	serveAll(&h)
	return h
}

var willingClientOptions = acp.ClientOptions{
	Elicitation: acp.ElicitationCapabilities{
		Form: acp.Some(acp.ElicitationFormCapabilities{}),
		URL:  acp.Some(acp.ElicitationURLCapabilities{}),
	},
}

// trial is an agent or a client under test and the peer that it has.
type trial struct {
	t    *testing.T
	side conformance.Side // of the one under test
	peer *badlines.Peer
	end  func() error // waits for the end of the connection
	last func()       // waits for what the side itself had in flight

	mu        sync.Mutex
	validator *conformance.Validator
	sent      []conformance.Finding // about what the side under test sent
}

// tryAgent starts an agent, initialized and with a session or not.
func tryAgent(t *testing.T, initialized bool) *trial {
	t.Helper()
	tr, transport := newTrial(t, conformance.Agent)
	opts := willingAgentOptions
	conn := must.Get(acp.StartAgent(t.Context(), transport, willingAgent(), &opts))(t)
	tr.end, tr.last = conn.Wait, func() {}
	if initialized {
		tr.write(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":1}}`+"\n", nil)
	}
	return tr
}

// tryClient connects a client that is in the middle of a turn in the session s.
func tryClient(t *testing.T) *trial { return tryClientWith(t, willingClient(), rpc.Hooks{}) }

func tryClientWith(t *testing.T, handlers acp.ClientHandlers, hooks rpc.Hooks) *trial {
	t.Helper()
	tr, transport := newTrial(t, conformance.Client)
	connected := make(chan *acp.ClientConn, 1)
	go func() {
		opts := willingClientOptions
		opts.Conn.Hooks = hooks
		conn, err := acp.Connect(t.Context(), transport, handlers, &opts)
		if err != nil {
			t.Error(err)
		}
		connected <- conn
	}()
	synctest.Wait()
	tr.write(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}`+"\n", nil)
	conn := <-connected
	turn := conn.Session("s").Stream(t.Context(), acp.TextBlock("go"))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range turn.Updates() {
		}
		turn.Result() // whatever came of it
	}()
	synctest.Wait()
	tr.end = conn.Wait
	tr.last = func() {
		<-ended
		must.Do(t, conn.Close())
	}
	return tr
}

func newTrial(t *testing.T, side conformance.Side) (*trial, acp.Transport) {
	r1, w1 := io.Pipe()
	r2, w2 := io.Pipe()
	tr := &trial{t: t, side: side, validator: conformance.NewValidator(conformance.V1())}
	direction := conformance.ToAgent
	if side == conformance.Agent {
		direction = conformance.ToClient
	}
	tr.peer = badlines.NewPeer(r2, w1, badlines.Ledger{MaxDepth: codec.MaxDepth, MaxLine: rpc.DefaultMaxMessage, Calls: 10}, func(line []byte) {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		tr.sent = append(tr.sent, tr.validator.Message(direction, line)...)
	})
	return tr, rpc.IO(r1, w2, 0)
}

// write sends lines, and tells the validator of them before.
func (tr *trial) write(lines string, sizes []byte) {
	tr.t.Helper()
	direction := conformance.ToAgent
	if tr.side == conformance.Client {
		direction = conformance.ToClient
	}
	for line := range strings.Lines(lines) {
		tr.validator.Message(direction, []byte(line))
	}
	must.Do(tr.t, tr.peer.Write([]byte(lines), sizes))
}

// alive sends a request that is as it should be, which must be answered.
func (tr *trial) alive() {
	tr.t.Helper()
	method, params := tr.request()
	tr.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"alive!","method":%q,"params":{%s}}`+"\n", method, params), nil)
	synctest.Wait()
	if len(tr.peer.Answers(`"alive!"`)) == 0 {
		tr.t.Error("the connection does not serve any more")
	}
}

// request is one that the side under test serves.
func (tr *trial) request() (method, members string) {
	if tr.side == conformance.Agent {
		return acp.MethodNewSession, `"cwd":"/","mcpServers":[]`
	}
	return acp.MethodReadTextFile, `"sessionId":"s","path":"/x"`
}

// finish ends the connection and judges what came back. All that is owed must have come, if all is set.
func (tr *trial) finish(all bool) {
	tr.t.Helper()
	must.Do(tr.t, errors.Join(tr.peer.End(), tr.end()))
	tr.last()
	must.Do(tr.t, tr.peer.Verdict(all))
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, f := range tr.sent {
		if !tr.excused(f) {
			tr.t.Errorf("sent %s", f)
		}
	}
}

// excused is about ids, which are the peer's: it may use one over and over, or one that is none, so that
// the validator looks for another answer. Verdict has judged those.
func (tr *trial) excused(f conformance.Finding) bool {
	answer := f.Kind == conformance.Response || f.Kind == conformance.ErrorReply
	return answer && (f.Message == "no unanswered request has this id" || f.Pointer == "/id" || tr.peer.Owed(f.ID) > 1 || strings.Contains(f.ID, "\ufffd"))
}

// streams are the seeds of the targets that have whole connections.
func streams(f *testing.F, method, members string, more ...string) {
	for _, line := range badlines.Lines(method, members) {
		if len(line.Text) < 1<<12 {
			f.Add(line.Text, []byte{}, uint8(0))
		}
	}
	for knobs := range 4 {
		f.Add(strings.Join(more, "\n"), []byte{}, uint8(knobs))
		f.Add(strings.Join(more, "\r\n"), []byte{0, 200, 7}, uint8(knobs))
	}
}

// FuzzAgent has any bytes as the client of an agent. Whatever they are, each request is answered once,
// what is sent is valid by the schema, what comes behind is served, and the connection ends with nothing
// left behind; in a bubble anything that hangs is an error.
func FuzzAgent(f *testing.F) {
	streams(f, acp.MethodNewSession, `"cwd":"/","mcpServers":[]`,
		`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"go"}]}}`,
		`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"t","prompt":[{"type":"hologram"}]}}`,
		`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`,
		`{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"no"}}`,
		`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}}`,
		`{"jsonrpc":"2.0","id":"a","method":"authenticate","params":{"methodId":"login"}}`,
		`{"jsonrpc":"2.0","id":"c","method":"session/close","params":{"sessionId":"s"}}`,
		`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":65535}}`,
		`{"jsonrpc":"2.0","id":"x","method":"_vendor/x","params":[1]}`,
	)
	f.Fuzz(func(t *testing.T, lines string, sizes []byte, knobs uint8) {
		if len(lines) > 1<<14 {
			t.Skip()
		}
		synctest.Test(t, func(t *testing.T) {
			tr := tryAgent(t, knobs&1 == 0)
			tr.play(lines, sizes, knobs&2 != 0)
		})
	})
}

// FuzzClient has any bytes as the agent of a client that is in the middle of a turn.
func FuzzClient(f *testing.F) {
	streams(f, acp.MethodReadTextFile, `"sessionId":"s","path":"/x"`,
		`{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[]}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"t"}}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"hologram"}}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}`,
		`{"jsonrpc":"2.0","id":3,"result":null}`,
		`{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`,
		`{"jsonrpc":"2.0","id":"t","method":"terminal/create","params":{"sessionId":"s","command":"ls"}}`,
		`{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}}`,
		`{"jsonrpc":"2.0","method":"elicitation/complete","params":{"elicitationId":"e"}}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`,
	)
	f.Fuzz(func(t *testing.T, lines string, sizes []byte, knobs uint8) {
		if len(lines) > 1<<14 {
			t.Skip()
		}
		synctest.Test(t, func(t *testing.T) { tryClient(t).play(lines, sizes, knobs&2 != 0) })
	})
}

// play is one connection, which ends behind the lines if abrupt is set, and is in good order otherwise.
func (tr *trial) play(lines string, sizes []byte, abrupt bool) {
	tr.write(lines+"\n", sizes)
	if !abrupt {
		time.Sleep(time.Minute) // longer than anything waits
		tr.alive()
	}
	tr.finish(!abrupt)
}

// served is a method of one side, and the definition of its parameters.
type served struct {
	method, side, definition string
	notification             bool
}

// servedMethods are all stable methods but those of the connection itself.
var servedMethods = sync.OnceValue(func() (out []served) {
	var doc struct {
		Defs map[string]struct {
			Method string `json:"x-method"`
			Side   string `json:"x-side"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(sdk.SchemaV1()), &doc); err != nil {
		panic(err)
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Defs)) {
		def := doc.Defs[name]
		notification := strings.HasSuffix(name, "Notification")
		if (def.Side == "agent" || def.Side == "client") && (notification || strings.HasSuffix(name, "Request")) {
			out = append(out, served{def.Method, def.Side, name, notification})
		}
	}
	return out
})

// FuzzParams gives each method of either side any JSON as its parameters: the request is answered once,
// with a result or an error that says what is wrong with them, and nothing of this side.
func FuzzParams(f *testing.F) {
	tier.Need(f, tier.Normal)
	methods := servedMethods()
	if len(methods) < 24 {
		f.Fatalf("%d methods in the schema", len(methods))
	}
	schema := must.Get(sample.Load(sdk.SchemaV1Unstable()))(f)
	for i, m := range methods {
		maker := sample.NewFullMaker(schema, uint64(i))
		full := maker.Value(m.definition)
		add := func(v any) {
			text := must.Get(json.Marshal(v))(f)
			f.Add(uint8(i), string(text), false)
			f.Add(uint8(i), string(text), true)
		}
		add(full)
		n := 0
		for mutation := range schema.Mutations(m.definition, full) {
			if n++; n%tier.Pick(2000, 200, 10, 10) == 0 {
				add(mutation.Value)
			}
		}
		for _, text := range []string{"null", "[]", "0", `""`, "{}", `{"sessionId":null}`, `{"sessionId":"s","sessionId":"s"}`, `{"_meta":{"a":1,"a":2}}`} {
			f.Add(uint8(i), text, false)
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, params string, wrongKind bool) {
		m := methods[int(i)%len(methods)]
		if !json.Valid([]byte(params)) || !utf8.ValidString(params) || strings.Contains(params, "\n") {
			t.Skip()
		}
		synctest.Test(t, func(t *testing.T) {
			tr := tryMethod(t, m.side)
			id := `"id":7,`
			if m.notification != wrongKind {
				id = ""
			}
			tr.write(fmt.Sprintf(`{"jsonrpc":"2.0",%s"method":%q,"params":%s}`+"\n", id, m.method, params), nil)
			time.Sleep(time.Minute)
			answers := tr.peer.Answers("7")
			tr.alive()
			tr.finish(true)
			for _, a := range answers {
				checkParamsAnswer(t, m, params, a, m.notification == wrongKind && m.notification)
			}
		})
	})
}

func tryMethod(t *testing.T, side string) *trial {
	if side == "agent" {
		return tryAgent(t, true)
	}
	return tryClient(t)
}

func checkParamsAnswer(t *testing.T, m served, params string, a *badlines.Answer, unknown bool) {
	t.Helper()
	deep := badlines.Read([]byte(`{"params":`+params+`}`), codec.MaxDepth).Kind == badlines.Unread
	switch {
	case a.Result != nil && !unknown:
		return
	case acp.Code(a.Code) == rpc.ErrMethodNotFound && unknown:
		return
	case acp.Code(a.Code) == rpc.ErrInvalidRequest && (deep || m.method == acp.MethodInitialize):
		return
	case acp.Code(a.Code) != rpc.ErrInvalidParams || unknown:
		t.Fatalf("%s with %s: answered with %s", m.method, params, a)
	}
	var data struct{ Pointer, Reason *string }
	if err := errors.Join(json.Unmarshal(a.Data, &data)); err != nil || data.Pointer == nil || data.Reason == nil || *data.Reason == "" {
		t.Fatalf("%s with %s: answered with %s: %v", m.method, params, a, err)
	}
	if *data.Pointer != "" && (*data.Pointer)[0] != '/' || !strings.HasPrefix(a.Message, "Invalid params: "+*data.Pointer) {
		t.Fatalf("%s with %s: %q is not where it is wrong, or not said: %s", m.method, params, *data.Pointer, a.Message)
	}
	if n := len(a.Message) + len(a.Data); n > 1000+20*len(params) {
		t.Fatalf("%s: %d bytes of error for %d of parameters", m.method, n, len(params))
	}
}

// seen is what a client makes of a line.
type seen struct {
	updates  []string
	repairs  []string
	invalid  []string
	answered []*badlines.Answer
}

// see sends one line to a client.
func see(t *testing.T, line string) (s seen) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		note := func(to *[]string, format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			*to = append(*to, fmt.Sprintf(format, args...))
		}
		handlers := willingClient()
		handlers.SessionUpdate = func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			text, err := codec.Append(nil, n)
			note(&s.updates, "%s %v", text, err)
			return nil
		}
		tr := tryClientWith(t, handlers, rpc.Hooks{
			Repair: func(method string, r codec.Repair) { note(&s.repairs, "%s %v", method, r) },
			// Without what came, which the two ways write differently.
			Invalid: func(_ []byte, reason error) { note(&s.invalid, "%v", errors.Unwrap(reason)) },
		})
		tr.write(line+"\n", nil)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		s.answered = tr.peer.Answers("null")
		tr.finish(true)
	})
	return s
}

// FuzzUpdate sends what is left of an update behind the name of its parameters twice: behind a beginning
// that lets it be read in one pass, and behind one that does not. Nothing may be different.
func FuzzUpdate(f *testing.F) {
	schema := must.Get(sample.Load(sdk.SchemaV1Unstable()))(f)
	full := sample.NewFullMaker(schema, 1).Value("SessionNotification")
	n := 0
	for mutation := range schema.Mutations("SessionNotification", full) {
		if n++; n%tier.Pick(200, 10, 1, 1) != 0 {
			continue
		}
		text := must.Get(json.Marshal(mutation.Value))(f)
		f.Add(string(text) + "}")
	}
	const chunk = `{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}`
	for _, end := range []string{"}", " } ", "}\r", `,"id":7}`, `,"params":null}`, `,"method":"x"}`, `,"result":1}`, "}}", "}]", "", ",}", "}{}", "\x00}"} {
		f.Add(chunk + end)
		f.Add(" null " + end)
		f.Add("{}" + end)
		f.Add(chunk[:len(chunk)-2] + end)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		if strings.Contains(rest, "\n") || len(rest) > 1<<14 {
			t.Skip()
		}
		fast := see(t, `{"jsonrpc":"2.0","method":"session/update","params":`+rest)
		slow := see(t, `{"method":"session/update","jsonrpc":"2.0","params":`+rest)
		if !cmp.Equal(fast, slow, cmp.AllowUnexported(seen{}), cmpopts.EquateEmpty()) {
			t.Fatalf("%s\nin one pass: %+v\nin two:      %+v", rest, fast, slow)
		}
	})
}
