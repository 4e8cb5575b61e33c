package remote_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/pipenet"
)

// patience bounds what must happen.
const patience = 2 * time.Minute

// receive waits for a value, or for c to be closed.
func receive[T any](t testing.TB, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatal("nothing came")
	}
	return v
}

// message is what the agent looks at in a message.
type message struct {
	ID     json.RawMessage
	Method string
	Params struct {
		SessionID string
		Do        string // what the agent is to do
		N         int
	}
}

// testAgent is an agent that does what it is told, message by message.
type testAgent struct {
	peer   *remote.Peer
	stream rpc.Stream
	ctx    context.Context
	got    chan string // messages that it was sent, but for initialize
	ended  chan error  // why it read no more

	mu gate // of writing
}

// gate is a mutex that a bubble of synctest knows somebody waits for.
type gate chan struct{}

func (g gate) Lock()   { g <- struct{}{} }
func (g gate) Unlock() { <-g }

// pass waits until the gate is open.
func (g gate) pass() {
	g.Lock()
	defer g.Unlock()
}

// send sends a message.
func (a *testAgent) send(format string, args ...any) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stream.Write(fmt.Appendf(nil, format, args...))
}

// serve reads until the end. What it is sent it answers by itself as methods and their member "do" say:
//
//	do linger     the agent runs until its context ends
//	initialize    do fail: with an error; do hang: not at all; do panic, do die: the agent ends so
//	session/load  n updates, then the answer
//	session/prompt do updates: n updates, then the answer; do hang: not at all; do die: the agent ends
//
// Everything else is answered with an empty result, and what has no id not at all.
func (a *testAgent) serve() error {
	linger := false
	for {
		line, err := a.stream.Read()
		if err != nil {
			if linger {
				<-a.ctx.Done()
			}
			a.ended <- err
			return nil
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		if m.Method != "initialize" {
			a.got <- string(line)
		}
		switch m.Params.Do {
		case "hang":
			continue
		case "linger":
			linger = true
		case "die":
			return errors.New("secret of the agent")
		case "panic":
			panic("secret of the agent")
		case "fail":
			if err := a.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no"}}`, m.ID); err != nil {
				return err
			}
			continue
		}
		if m.ID == nil || m.Method == "" {
			continue
		}
		for i := range m.Params.N {
			if err := a.send(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"n":%d}}`, m.Params.SessionID, i); err != nil {
				return err
			}
		}
		if err := a.send(`{"jsonrpc":"2.0","id":%s,"result":{"for":%q}}`, m.ID, m.Method); err != nil {
			return err
		}
	}
}

// fixture is a server on a real socket.
type fixture struct {
	*remote.Server
	t      testing.TB
	url    string
	client *http.Client
	agents chan *testAgent
	log    *logBuffer
	// patience is how long something may take.
	patience time.Duration
}

// logBuffer keeps what is logged.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// protocols are the versions of HTTP that a fixture may speak.
var protocols = []string{"HTTP/1.1", "h2c", "HTTP/2"}

// serve starts a server whose agents are testAgents.
func serve(t testing.TB, o *remote.HandlerOptions) *fixture { return serveBy(t, "HTTP/1.1", o, nil) }

func serveBy(t testing.TB, protocol string, o *remote.HandlerOptions, around func(http.Handler) http.Handler) *fixture {
	t.Helper()
	f, handler := newFixture(t, o, around)
	ts := httptest.NewUnstartedServer(nil)
	ts.Config = remote.NewHTTPServer(handler)
	t.Cleanup(f.start(protocol, ts))
	return f
}

// start starts the server, and returns the function that ends it.
func (f *fixture) start(protocol string, ts *httptest.Server) (end func()) {
	transport := &http.Transport{MaxIdleConnsPerHost: 16, Protocols: new(http.Protocols)}
	switch protocol {
	case "HTTP/1.1":
		ts.Start()
		transport.Protocols.SetHTTP1(true)
	case "h2c":
		ts.Start()
		transport.Protocols.SetUnencryptedHTTP2(true)
	case "HTTP/2":
		ts.EnableHTTP2 = true
		ts.StartTLS()
		transport = ts.Client().Transport.(*http.Transport)
	}
	f.client.Transport = transport
	f.url = ts.URL + remote.DefaultPath
	return func() {
		f.end()
		ts.CloseClientConnections()
		ts.Close()
	}
}

// newFixture makes a server that is not started yet.
func newFixture(t testing.TB, o *remote.HandlerOptions, around func(http.Handler) http.Handler) (*fixture, http.Handler) {
	f := &fixture{t: t, agents: make(chan *testAgent, 10_000), log: &logBuffer{}, client: &http.Client{}, patience: patience}
	var own remote.HandlerOptions
	if o != nil {
		own = *o
	}
	if own.Logger == nil {
		own.Logger = slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	f.Server = remote.Handler(func(ctx context.Context, tr rpc.Transport, peer *remote.Peer) error {
		stream, err := tr.Connect(ctx)
		if err != nil {
			return err
		}
		a := &testAgent{peer: peer, stream: stream, ctx: ctx, got: make(chan string, 10_000), ended: make(chan error, 1), mu: make(gate, 1)}
		f.agents <- a
		return a.serve()
	}, &own)
	if around == nil {
		return f, f.Server
	}
	return f, around(f.Server)
}

// end ends the server; nothing may be left.
func (f *fixture) end() {
	f.client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := f.Shutdown(ctx); err != nil {
		f.t.Errorf("Shutdown: %v", err)
	}
	for end := time.Now().Add(f.patience); f.Stats().Buffered != 0; time.Sleep(time.Millisecond) {
		// Streams send what is left after the agent has ended.
		if time.Now().After(end) {
			f.t.Errorf("%d bytes are kept for connections that have ended", f.Stats().Buffered)
			break
		}
	}
	if strings.Contains(f.log.String(), "s3cret") {
		f.t.Errorf("a secret is in the log:\n%s", f.log)
	}
}

// bubbleOf starts a server in the caller's bubble.
func bubbleOf(t *testing.T, protocol string, o *remote.HandlerOptions, around func(http.Handler) http.Handler) (f *fixture, end func()) {
	f, handler := newFixture(t, o, around)
	f.patience = time.Hour
	l := pipenet.Listen()
	end = f.start(protocol, &httptest.Server{Listener: l, Config: remote.NewHTTPServer(handler)})
	f.url = strings.Replace(f.url, l.Addr().String(), "localhost", 1)
	transport := f.client.Transport.(*http.Transport)
	transport.DialContext = l.Dial
	if protocol == "HTTP/2" {
		transport.TLSClientConfig.ServerName = "example.com" // the name in the certificate
	}
	return f, end
}

// send makes a request; header is pairs of names and values.
func (f *fixture) send(ctx context.Context, method, body string, header ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, f.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body == "" {
		r.Body, r.ContentLength = nil, 0
	}
	for i := 0; i < len(header); i += 2 {
		switch name, value := header[i], header[i+1]; name {
		case "Host":
			r.Host = value
		case "Transfer-Encoding":
			r.ContentLength = -1
		case "only":
		default:
			r.Header.Add(name, value)
		}
	}
	if method == http.MethodPost && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return f.client.Do(r)
}

// peer is a raw client of one connection over HTTP.
type peer struct {
	id    string
	extra []string // headers
	agent *testAgent
}

// open opens a connection.
func (f *fixture) open(header ...string) *peer {
	f.t.Helper()
	resp := must.Get(f.send(f.t.Context(), "POST", initialize, header...))(f.t)
	defer resp.Body.Close()
	body := must.Get(io.ReadAll(resp.Body))(f.t)
	id := resp.Header.Get("Acp-Connection-Id")
	if resp.StatusCode != 200 || id == "" {
		f.t.Fatalf("initialize: %s %s", resp.Status, body)
	}
	for {
		if agent := receive(f.t, f.agents); agent.peer.ConnectionID == id {
			return &peer{id: id, extra: header, agent: agent}
		}
	}
}

// header is what each request of the connection has.
func (p *peer) header() []string { return append([]string{"Acp-Connection-Id", p.id}, p.extra...) }

// reader is a stream of events.
type reader struct {
	t      testing.TB
	resp   *http.Response
	cancel context.CancelFunc
	lines  *bufio.Reader
	wait   time.Duration
}

func (r *reader) close() {
	r.cancel()
	r.resp.Body.Close()
}

// part returns the next event or comment, "" at the end.
func (r *reader) part() string {
	r.t.Helper()
	text, err := r.next()
	if err == io.EOF {
		return ""
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return text
}

func (r *reader) next() (string, error) {
	timer := time.AfterFunc(r.wait, r.cancel)
	defer timer.Stop()
	var lines []string
	for {
		line, err := r.lines.ReadString('\n')
		if err != nil {
			if err == io.EOF && (line != "" || len(lines) > 0) {
				err = io.ErrUnexpectedEOF
			}
			return "", err
		}
		if line == "\n" {
			return strings.Join(lines, "\n"), nil
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
}

// message returns the next message.
func (r *reader) message() string {
	r.t.Helper()
	for {
		part := r.part()
		if part == ":" {
			continue
		}
		text, ok := strings.CutPrefix(part, "data: ")
		if !ok {
			r.t.Fatalf("no message but %q", part)
		}
		return text
	}
}

// event is one event with an id.
type event struct{ id, data string }

func (r *reader) event() event {
	r.t.Helper()
	for {
		part := r.part()
		if part == ":" {
			continue
		}
		if strings.HasPrefix(part, "id: ") && !strings.Contains(part, "\n") {
			continue // where the stream begins
		}
		id, data, ok := strings.Cut(part, "\n")
		if !ok || !strings.HasPrefix(id, "id: ") || !strings.HasPrefix(data, "data: ") {
			r.t.Fatalf("no event with an id: %q", part)
		}
		return event{strings.TrimPrefix(id, "id: "), strings.TrimPrefix(data, "data: ")}
	}
}

// end asks for the end.
func (r *reader) end() {
	r.t.Helper()
	for {
		if part := r.part(); part == "" {
			return
		} else if part != ":" {
			r.t.Fatalf("%q before the end", part)
		}
	}
}
