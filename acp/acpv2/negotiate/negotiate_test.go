package negotiate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/negotiate"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // passing tests print nothing
	goleak.VerifyTestMain(m)
}

// agent is an agent that speaks some versions. It names its sessions after the version and whether the
// client serves files.
func agent(versions string) negotiate.Agent {
	var a negotiate.Agent
	if strings.Contains(versions, "1") {
		a.V1 = func(ctx context.Context, transport rpc.Transport) error {
			return acp.ServeAgent(ctx, transport, acp.AgentHandlers{
				NewSession: func(_ context.Context, client *acp.AgentConn, _ *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
					caps := client.Initialized().ClientCapabilities
					return &acp.NewSessionResponse{SessionID: acp.SessionID(fmt.Sprintf("1 files:%v", caps.FS.ReadTextFile))}, nil
				},
				Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
					return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
				},
			}, nil)
		}
	}
	if strings.Contains(versions, "2") {
		a.V2 = func(ctx context.Context, transport rpc.Transport) error {
			return acpv2.ServeAgent(ctx, transport, acpv2.AgentHandlers{
				NewSession: func(context.Context, *acpv2.AgentConn, *acpv2.NewSessionRequest) (*acpv2.NewSessionResponse, error) {
					return &acpv2.NewSessionResponse{SessionID: "2"}, nil
				},
				ListSessions: func(context.Context, *acpv2.AgentConn, *acpv2.ListSessionsRequest) (*acpv2.ListSessionsResponse, error) {
					return &acpv2.ListSessionsResponse{}, nil
				},
				ResumeSession: func(context.Context, *acpv2.AgentSession, *acpv2.ResumeSessionRequest) (*acpv2.ResumeSessionResponse, error) {
					return nil, acpv2.ErrResourceNotFound
				},
				CloseSession: func(context.Context, *acpv2.AgentSession, *acpv2.CloseSessionRequest) (*acpv2.CloseSessionResponse, error) {
					return nil, nil
				},
				Prompt: func(context.Context, *acpv2.AgentSession, *acpv2.PromptRequest) (*acpv2.PromptResponse, error) {
					return nil, errors.New("no prompts")
				},
			}, &acpv2.AgentOptions{Info: acpv2.Implementation{Name: "agent", Version: "1"}})
		}
	}
	return a
}

// client is a client that speaks some versions. Its connection is in conn when it has one.
type client struct {
	negotiate.Client
	v1 *acp.ClientConn
	v2 *acpv2.ClientConn
}

func newClient(versions string) *client {
	c := &client{}
	if strings.Contains(versions, "1") {
		c.V1 = func(ctx context.Context, transport rpc.Transport) (err error) {
			c.v1, err = acp.Connect(ctx, transport, acp.ClientHandlers{
				ReadTextFile: func(context.Context, *acp.ClientSession, *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
					return nil, acp.ErrResourceNotFound
				},
			}, &acp.ClientOptions{Info: acp.Implementation{Name: "client", Version: "1"}})
			return err
		}
	}
	if strings.Contains(versions, "2") {
		c.V2 = func(ctx context.Context, transport rpc.Transport) (err error) {
			c.v2, err = acpv2.Connect(ctx, transport, acpv2.ClientHandlers{}, &acpv2.ClientOptions{
				Info: acpv2.Implementation{Name: "client", Version: "1"},
			})
			return err
		}
	}
	return c
}

// session opens a session in the version that was chosen, and closes the connection.
func (c *client) session(ctx context.Context, version int) (id string, err error) {
	if version == 1 {
		s, err := c.v1.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/"})
		if err == nil {
			id = string(s.ID())
		}
		return id, errors.Join(err, c.v1.Close())
	}
	s, err := c.v2.NewSession(ctx, &acpv2.NewSessionRequest{Cwd: "/"})
	if err == nil {
		id = string(s.ID())
	}
	return id, errors.Join(err, c.v2.Close())
}

func negotiated() *conformance.Schema {
	return conformance.Negotiated(conformance.V1(), conformance.V2())
}

func TestPairings(t *testing.T) {
	for _, test := range []struct{ client, agent, want string }{
		{"1", "1", "1 files:true"},
		{"1", "2", `error: initialize: Unsupported protocol version (-32022): {"requested":1,"supported":[2]}`},
		{"1", "12", "1 files:true"},
		{"2", "1", "error: acp: the agent speaks protocol version 1, not 2"},
		{"2", "2", "2"},
		{"2", "12", "2"},
		{"12", "1", "1 files:true"},
		{"12", "2", "2"},
		{"12", "12", "2"},
	} {
		t.Run(test.client+" with "+test.agent, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			near, far := rpc.Pipe()
			served := make(chan error, 1)
			go func() { served <- agent(test.agent).Serve(ctx, far) }()
			c := newClient(test.client)
			tap := conformance.Tap(t, conformance.Client, near, &conformance.TapOptions{Schema: negotiated()})
			version, err := c.Connect(ctx, tap)
			got := ""
			if err == nil {
				got, err = c.session(ctx, version)
			}
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if err := <-served; err != nil {
				t.Errorf("the agent: %v", err)
			}
		})
	}
}

// raw is the other end of a connection, line by line.
type raw struct {
	t *testing.T
	rpc.Stream
}

func rawEnd(t *testing.T, transport rpc.Transport) raw {
	t.Helper()
	stream, err := transport.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { stream.Close() }) // which ends whatever waits
	t.Cleanup(func() {
		late.Stop()
		stream.Close()
	})
	return raw{t, stream}
}

// patience bounds every wait.
const patience = time.Minute

func (r raw) send(line string) {
	r.t.Helper()
	if err := r.Write([]byte(line)); err != nil {
		r.t.Error(err)
	}
}

func (r raw) want(line string) {
	r.t.Helper()
	got, err := r.Read()
	if err != nil || string(got) != line {
		r.t.Errorf("got %s, %v\nwant %s", got, err, line)
	}
}

// opens answers the client's session/new, the second request of a client that connecting has started.
func (r raw) opens(result <-chan error) {
	r.t.Helper()
	line, err := r.Read()
	if err != nil || !strings.Contains(string(line), `"method":"session/new"`) {
		r.t.Fatalf("got %s, %v", line, err)
	}
	r.send(`{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}`)
	if err := <-result; err != nil {
		r.t.Error(err)
	}
}

func (r raw) wantEnd() {
	r.t.Helper()
	if got, err := r.Read(); !errors.Is(err, io.EOF) {
		r.t.Errorf("got %s, %v, want the end", got, err)
	}
}

// What comes before initialize is answered, and the agent still speaks both versions after it.
func TestBeforeInitialize(t *testing.T) {
	for version, want := range map[string]string{
		"1": `{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":1`,
		"2": `{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":2`,
		"9": `{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":2`,
	} {
		t.Run(version, func(t *testing.T) {
			near, far := rpc.Pipe()
			served := make(chan error, 1)
			go func() { served <- agent("12").Serve(t.Context(), far) }()
			r := rawEnd(t, near)
			for _, exchange := range [][2]string{
				{`nonsense`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: invalid JSON: offset 0: 'n', want null"}}`},
				{`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`, ""},
				{`{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":1}}`, ""},
				{`{"jsonrpc":"2.0","id":5,"result":{}}`, ""},
				{`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/"}}`,
					`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: initialize comes first"}}`},
				{`{"id":2,"method":"initialize","params":{"protocolVersion":1}}`,
					`{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"Invalid request: jsonrpc is not \"2.0\""}}`},
				{`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":1},"params":{"protocolVersion":1}}`,
					`{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"Invalid request: a member of the envelope occurs twice"}}`},
				{`{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}}`,
					`{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"Invalid params: missing member \"protocolVersion\"",` +
						`"data":{"pointer":"","reason":"missing member \"protocolVersion\""}}}`},
				{`{"jsonrpc":"2.0","id":4,"method":"initialize","params":{"protocolVersion":0}}`,
					`{"jsonrpc":"2.0","id":4,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"requested":0,"supported":[1,2]}}}`},
			} {
				r.send(exchange[0])
				if exchange[1] != "" {
					r.want(exchange[1])
				}
			}
			r.send(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":` + version + `,"info":{"name":"x","version":"1"}}}`)
			if got, err := r.Read(); err != nil || !strings.HasPrefix(string(got), want) {
				t.Errorf("got %s, %v\nwant %s…", got, err, want)
			}
			if err := errors.Join(r.Close(), <-served); err != nil {
				t.Error(err)
			}
		})
	}
}

// An agent ends when its client does, or its context, also before initialize.
func TestAgentEndsBeforeInitialize(t *testing.T) {
	near, far := rpc.Pipe()
	served := make(chan error, 1)
	go func() { served <- agent("12").Serve(t.Context(), far) }()
	if err := rawEnd(t, near).Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Errorf("got %v when the client has ended, want nil", err)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	near, far = rpc.Pipe()
	go func() { served <- agent("12").Serve(ctx, far) }()
	r := rawEnd(t, near)
	why := errors.New("enough")
	cancel(why)
	if err := <-served; !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
	r.wantEnd()
}

// A context that ends just when initialize was read ends the connection too.
func TestAgentEndsAtInitialize(t *testing.T) {
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		stream := &readyStream{cancel: cancel, closed: make(chan struct{})}
		if err := agent("12").Serve(ctx, stream); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want %v", err, context.Canceled)
		}
		select {
		case <-stream.closed:
		default:
			t.Fatal("the stream is open")
		}
	}
}

// readyStream is a transport with a stream on which initialize comes, and then nothing.
type readyStream struct {
	cancel func() // called when it was read
	read   bool
	once   sync.Once
	closed chan struct{}
}

func (s *readyStream) Connect(context.Context) (rpc.Stream, error) { return s, nil }

func (s *readyStream) Read() ([]byte, error) {
	if !s.read {
		s.read = true
		s.cancel()
		return []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`), nil
	}
	<-s.closed
	return nil, io.EOF
}

func (s *readyStream) Write([]byte) error { return nil }

func (s *readyStream) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// asks is the one request of a client that speaks both versions.
const asks = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{},` +
	`"clientCapabilities":{"fs":{"readTextFile":true}},"clientInfo":{"name":"client","version":"1"},` +
	`"info":{"name":"client","version":"1"},"protocolVersion":2}}`

// connecting starts to connect a client that speaks both versions to a raw agent, which has read its
// request.
func connecting(t *testing.T, ctx context.Context) (agent raw, result <-chan error) {
	t.Helper()
	near, far := rpc.Pipe()
	return connectingOver(t, ctx, near, far)
}

// connectingOver is connecting over the two ends of a connection.
func connectingOver(t *testing.T, ctx context.Context, near, far rpc.Transport) (agent raw, result <-chan error) {
	t.Helper()
	near = conformance.Tap(t, conformance.Client, near, &conformance.TapOptions{
		Schema: negotiated(),
		Ignore: func(f conformance.Finding) bool { return f.Direction == conformance.ToClient },
	})
	c := newClient("12")
	done := make(chan error, 1)
	agent = rawEnd(t, far)
	go func() {
		version, err := c.Connect(ctx, near)
		if err == nil {
			_, err = c.session(ctx, version)
		}
		done <- err
	}()
	agent.want(asks)
	return agent, done
}

// What an agent sends before its answer reaches the connection that goes on.
func TestClientReadsWhatComesBeforeTheAnswer(t *testing.T) {
	for version, answer := range map[string]string{
		"1":                `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`,
		"1, with fraction": `{"jsonrpc":"2.0","id":1.0,"method":null,"result":{"protocolVersion":1}}`,
		"2":                `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}}}}`,
	} {
		t.Run(version, func(t *testing.T) {
			agent, result := connecting(t, t.Context())
			agent.send(`{"jsonrpc":"2.0","id":1,"method":"_a.test/ping"}`)
			agent.send(answer)
			agent.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found","data":{"method":"_a.test/ping"}}}`)
			agent.opens(result)
		})
	}
}

// A client fails as one of version 2 does when there is no version that both speak.
func TestClientFails(t *testing.T) {
	for _, version := range []acpv2.ProtocolVersion{0, 3} {
		t.Run(fmt.Sprintf("version %d", version), func(t *testing.T) {
			agent, result := connecting(t, t.Context())
			agent.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":%d}}`, version))
			err := <-result
			if e, ok := errors.AsType[*acpv2.VersionError](err); !ok || e.Got != version {
				t.Errorf("got %v, want version %d", err, version)
			}
		})
	}
	t.Run("error", func(t *testing.T) {
		agent, result := connecting(t, t.Context())
		agent.send(`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"go away"}}`)
		if err := <-result; !errors.Is(err, rpc.ErrAuthRequired) {
			t.Errorf("got %v, want %v", err, rpc.ErrAuthRequired)
		}
	})
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1}`,
		`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1},"result":{"protocolVersion":2}}`,
	} {
		t.Run(line, func(t *testing.T) {
			agent, result := connecting(t, t.Context())
			agent.send(line)
			if err := <-result; err == nil || !strings.Contains(err.Error(), "malformed response") {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("end", func(t *testing.T) {
		agent, result := connecting(t, t.Context())
		agent.Close()
		if err := <-result; !errors.Is(err, rpc.ErrClosed) {
			t.Errorf("got %v, want %v", err, rpc.ErrClosed)
		}
	})
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		agent, result := connecting(t, ctx)
		why := errors.New("enough")
		cancel(why)
		if err := <-result; !errors.Is(err, why) {
			t.Errorf("got %v, want %v", err, why)
		}
		agent.wantEnd()
	})
	t.Run("flood", func(t *testing.T) {
		agent, result := connecting(t, t.Context())
		line := []byte(`{"jsonrpc":"2.0","method":"_a.test/note","params":"` + strings.Repeat("x", 1<<16) + `"}`)
		for range 1000 {
			if agent.Write(line) != nil {
				break // refused
			}
		}
		if err := <-result; err == nil || !strings.Contains(err.Error(), "too much") {
			t.Errorf("got %v", err)
		}
	})
}

// limited are two ends of a connection of which the first accepts messages of at most 1000 bytes.
func limited() (near, far rpc.Transport) {
	toNear, fromFar := io.Pipe()
	toFar, fromNear := io.Pipe()
	return rpc.IO(toNear, fromNear, 1000), rpc.IO(toFar, fromFar, 0)
}

// An answer that is too long ends the attempt at once, wherever its id stands.
func TestAnswerTooLong(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, answer := range map[string]string{
		"id first":        `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"_meta":{"x":"` + long + `"}}}`,
		"id last":         `{"jsonrpc":"2.0","result":{"protocolVersion":2,"_meta":{"x":"` + long + `"}},"id":1}`,
		"very long":       `{"result":{"protocolVersion":1,"_meta":{"x":"` + strings.Repeat(long, 100) + `"}},"jsonrpc":"2.0","id":1.0}`,
		"an error":        `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"` + long + `"}}`,
		"id last but one": `{"result":"` + long + `","id":1,"jsonrpc":"2.0"}`,
		"with a tab":      "{\"id\":\t1,\"result\":\"" + long + "\"}",
	} {
		t.Run(name, func(t *testing.T) {
			near, far := limited()
			agent, result := connectingOver(t, t.Context(), near, far)
			agent.send(answer)
			err := <-result
			long, ok := errors.AsType[*rpc.TooLongError](err)
			if !ok || long.Limit != 1000 || !strings.Contains(err.Error(), "initialize") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// What is too long and comes before the answer reaches the connection that goes on, which refuses it.
func TestTooLongBeforeTheAnswer(t *testing.T) {
	near, far := limited()
	agent, result := connectingOver(t, t.Context(), near, far)
	agent.send(`{"jsonrpc":"2.0","method":"_a.test/note","params":{"x":"` + strings.Repeat("x", 1000) + `"}}`)
	agent.send(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`)
	agent.want(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: message too long"}}`)
	agent.opens(result)
}

// halfClose reads one message from a transport and ends its own side; the peer's next message is still read.
func halfClose(ctx context.Context, transport rpc.Transport, first string) error {
	stream, err := transport.Connect(ctx)
	if err != nil {
		return err
	}
	if first != "" {
		err = stream.Write([]byte(first))
	}
	if _, readErr := stream.Read(); readErr != nil {
		return errors.Join(err, readErr)
	}
	half, ok := stream.(rpc.HalfCloser)
	if !ok {
		return errors.New("no HalfCloser")
	}
	line, readErr := "", half.CloseWrite()
	if readErr == nil {
		var last []byte
		last, readErr = stream.Read()
		line = string(last)
	}
	if line != "last" {
		err = fmt.Errorf("got %q, want the peer's last message", line)
	}
	return errors.Join(err, readErr, stream.Close())
}

// Who gets a stream can end its writing alone.
func TestHalfClose(t *testing.T) {
	t.Run("agent", func(t *testing.T) {
		near, far := rpc.Pipe()
		serve := func(ctx context.Context, transport rpc.Transport) error { return halfClose(ctx, transport, "") }
		served := make(chan error, 1)
		go func() { served <- negotiate.Agent{V1: serve, V2: serve}.Serve(t.Context(), far) }()
		r := rawEnd(t, near)
		r.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
		r.wantEnd()
		r.send("last")
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	t.Run("client", func(t *testing.T) {
		near, far := rpc.Pipe()
		connect := func(ctx context.Context, transport rpc.Transport) error {
			return halfClose(ctx, transport, `{"jsonrpc":"2.0","id":"x","method":"initialize","params":{"protocolVersion":2}}`)
		}
		result := make(chan error, 1)
		go func() {
			_, err := negotiate.Client{V1: connect, V2: connect}.Connect(t.Context(), near)
			result <- err
		}()
		r := rawEnd(t, far)
		r.want(`{"jsonrpc":"2.0","id":"x","method":"initialize","params":{"protocolVersion":2}}`)
		r.send(`{"jsonrpc":"2.0","id":"x","result":{"protocolVersion":1}}`)
		r.wantEnd()
		r.send("last")
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
}

// Options that are no good are an error of either version, as is a function that does not initialize, and
// the stream is closed.
func TestBadOptions(t *testing.T) {
	bad := errors.New("bad options")
	for name, test := range map[string]struct {
		connect func(context.Context, rpc.Transport) error
		want    string
	}{
		"error":   {func(context.Context, rpc.Transport) error { return bad }, bad.Error()},
		"nothing": {func(context.Context, rpc.Transport) error { return nil }, "connected without initialize"},
		"other": {func(ctx context.Context, transport rpc.Transport) error {
			stream, err := transport.Connect(ctx)
			if err != nil {
				return err
			}
			return stream.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}`))
		}, "not an initialize request"},
	} {
		for _, version := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s %d", name, version), func(t *testing.T) {
				near, far := rpc.Pipe()
				c := newClient("12")
				if version == 1 {
					c.V1 = test.connect
				} else {
					c.V2 = test.connect
				}
				if _, err := c.Connect(t.Context(), near); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				rawEnd(t, far).wantEnd()
			})
		}
	}
	if _, err := (negotiate.Client{}).Connect(t.Context(), nil); err == nil {
		t.Error("a client without a version connects")
	}
	if err := (negotiate.Agent{}).Serve(t.Context(), nil); err == nil {
		t.Error("an agent without a version serves")
	}
}

// TestConnectToSilentAgent: the patience of the connections bounds the choice of the version too.
func TestConnectToSilentAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := acp.Pipe()
		stream, err := theirs.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		start := time.Now()
		_, err = newClient("1 and 2").Connect(t.Context(), ours)
		if d := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || d != 2*time.Minute {
			t.Errorf("after %v: %v", d, err)
		}
	})
}
