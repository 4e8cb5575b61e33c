package remote

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/pipenet"
	"github.com/acpgo/sdk/internal/wire"
)

// fakeServer does what the TypeScript server does: initialize is answered in its body, other POSTs with an empty 202
// that is chunked, and streams carry what the script sends, also what it sent before they were opened.
type fakeServer struct {
	*httptest.Server
	t *testing.T

	// post, get and del are asked first; they answer themselves if they return true.
	post     func(w http.ResponseWriter, r *http.Request, body string) bool
	get, del func(w http.ResponseWriter, r *http.Request) bool

	posts chan received // taken
	gets  chan string   // sessions whose streams were opened

	mu      sync.Mutex
	streams map[string]chan string
	deleted chan struct{}
}

// received is a POST.
type received struct {
	body    string
	session string
	header  http.Header
}

const (
	connectionID = "c0ffee"
	initAnswer   = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`
	initRequest  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`

	// In place of an event.
	endStream = "end"
	cutStream = "cut"
)

func newFakeServer(t *testing.T) *fakeServer { return newFakeServerOn(t, nil) }

// newFakeServerOn starts a server that accepts from a listener, or on a free port if that is nil.
func newFakeServerOn(t *testing.T, l net.Listener) *fakeServer {
	s := &fakeServer{
		t:       t,
		posts:   make(chan received, 1000),
		gets:    make(chan string, 1000),
		streams: map[string]chan string{},
		deleted: make(chan struct{}),
	}
	if s.Server = (&httptest.Server{Listener: l, Config: &http.Server{Handler: s}}); l == nil {
		s.Server = httptest.NewUnstartedServer(s)
	}
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// simulate runs a test in a bubble of synctest, with a server and the options that connect to it.
func simulate(t *testing.T, test func(t *testing.T, srv *fakeServer, o *DialOptions)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := pipenet.Listen()
		srv := newFakeServerOn(t, l)
		srv.URL = "http://localhost"
		transport := &http.Transport{DialContext: l.Dial}
		t.Cleanup(transport.CloseIdleConnections)
		o := testOptions(t)
		o.HTTPClient = &http.Client{Transport: transport}
		test(t, srv, o)
	})
}

func (s *fakeServer) stream(session string) chan string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[session] == nil {
		s.streams[session] = make(chan string, 10_000)
	}
	return s.streams[session]
}

// send sends an event on a stream.
func (s *fakeServer) send(session, message string) { s.stream(session) <- message }

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		body, err := io.ReadAll(r.Body)
		if err != nil || s.post != nil && s.post(w, r, string(body)) {
			return
		}
		if strings.Contains(string(body), `"method":"initialize"`) {
			answerInitialize(w)
			return
		}
		s.posts <- received{string(body), r.Header.Get(HeaderSession), r.Header}
		accept(w)
	case http.MethodGet:
		if s.get != nil && s.get(w, r) {
			return
		}
		s.serveStream(w, r)
	case http.MethodDelete:
		if s.del != nil && s.del(w, r) {
			return
		}
		close(s.deleted)
		w.WriteHeader(http.StatusAccepted)
	}
}

func answerInitialize(w http.ResponseWriter) {
	w.Header().Set(HeaderConnection, connectionID)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, initAnswer)
}

// accept answers 202 as TypeScript does: chunked, the end in a write of its own.
func accept(w http.ResponseWriter) {
	w.WriteHeader(http.StatusAccepted)
	w.(http.Flusher).Flush()
}

func (s *fakeServer) serveStream(w http.ResponseWriter, r *http.Request) {
	session := r.Header.Get(HeaderSession)
	if r.Header.Get(HeaderConnection) != connectionID || r.Header.Get("Accept") != "text/event-stream" ||
		r.Header.Get("Accept-Encoding") != "identity" {
		http.Error(w, "bad GET", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	s.gets <- session
	for {
		select {
		case message := <-s.stream(session):
			switch message {
			case endStream:
				return
			case cutStream:
				panic(http.ErrAbortHandler)
			}
			if !strings.Contains(message, "\n") {
				message = "data: " + message + "\n\n"
			}
			io.WriteString(w, message)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		case <-s.deleted:
			return
		}
	}
}

// options are for tests: what is waited for is short.
func testOptions(t *testing.T) *DialOptions {
	return &DialOptions{
		MinBackoff: time.Millisecond,
		MaxBackoff: 50 * time.Millisecond,
		Logger:     slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

// client is a stream that is read all the time.
type client struct {
	t    *testing.T
	s    rpc.Stream
	read chan any // strings and errors
}

// dial connects to a URL.
func dial(t *testing.T, url string, o *DialOptions) *client {
	t.Helper()
	if o == nil {
		o = testOptions(t)
	}
	s, err := Dial(url, o).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, s)
}

func newClient(t *testing.T, s rpc.Stream) *client {
	c := &client{t: t, s: s, read: make(chan any, 100_000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			line, err := s.Read()
			if err == nil {
				c.read <- string(line)
				continue
			}
			c.read <- err
			_, lost := errors.AsType[*rpc.CallLostError](err)
			_, long := errors.AsType[*rpc.TooLongError](err)
			if !lost && !long {
				return
			}
		}
	}()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	return c
}

// connect dials and initializes.
func connect(t *testing.T, srv *fakeServer, o *DialOptions) *client {
	t.Helper()
	c := dial(t, srv.URL+"/acp", o)
	c.write(initRequest)
	c.want(initAnswer)
	within(t, srv.gets)
	return c
}

func (c *client) write(message string) {
	c.t.Helper()
	if err := c.s.Write([]byte(message)); err != nil {
		c.t.Fatal(err)
	}
}

// next returns what is read next: a string or an error.
func (c *client) next() any {
	c.t.Helper()
	return within(c.t, c.read)
}

func (c *client) want(messages ...string) {
	c.t.Helper()
	for _, want := range messages {
		if got := c.next(); got != want {
			c.t.Fatalf("got  %v\nwant %s", got, want)
		}
	}
}

// fails returns why a call got no answer.
func (c *client) fails(id int64) error {
	c.t.Helper()
	got := c.next()
	err, _ := got.(error)
	lost, ok := errors.AsType[*rpc.CallLostError](err)
	if !ok || lost.ID != rpc.IntID(id) {
		c.t.Fatalf("got %v, want the end of call %d", got, id)
	}
	return lost.Err
}

// patience bounds what must happen.
const patience = 2 * time.Minute

// within receives.
func within[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// taken returns the next POST that the server has taken.
func (s *fakeServer) taken() received {
	s.t.Helper()
	return within(s.t, s.posts)
}

// opened waits until the streams of those sessions, in any order, are open.
func (s *fakeServer) opened(sessions ...string) {
	s.t.Helper()
	missing := map[string]int{}
	for _, session := range sessions {
		missing[session]++
	}
	for range sessions {
		got := within(s.t, s.gets)
		if missing[got]--; missing[got] < 0 {
			s.t.Fatalf("the stream %q was opened, want %q", got, sessions)
		}
	}
}

func req(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
}

func prompt(id int, session string) string {
	return req(id, methodPrompt, fmt.Sprintf(`{"sessionId":%q,"prompt":[]}`, session))
}

func result(id int, value string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, id, value)
}

func update(session string, n int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":{"n":%d}}}`, session, n)
}

func cancel(session string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, session)
}

func methodOf(line string) string {
	return string(wire.Parse(codec.NewDecoder(nil), []byte(line)).Method)
}
