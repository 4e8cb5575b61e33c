package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/pipenet"
)

// TestClientScripts plays the server and the program of a connection of Dial.
func TestClientScripts(t *testing.T) {
	playScripts(t, "client", func(t *testing.T, _ string, options []byte) (player, func()) {
		s := &clientScript{t: t, came: make(chan struct{}, 1), said: make(chan any, 100_000), notes: make(chan string, 1000),
			writes: make(chan []string, 1000), reading: make(gate, 1), taken: map[string]*exchange{}, sockets: map[string]*scriptSocket{}}
		o := &remote.DialOptions{Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))}
		others := setOptions(t, o, options)
		o.OnGap = func(session string, err error) { s.notes <- fmt.Sprintf("gap %q %v", session, err) }
		o.OnUnsent = func(session, method string, err error) {
			s.notes <- fmt.Sprintf("unsent %q %q %v", session, method, err)
		}
		if others["Header"] != nil { // the numbers of the requests, but for those that are made again
			n := 0
			o.Header = func(ctx context.Context) (http.Header, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				n++
				if others["HeaderFails"] != nil {
					return nil, errors.New("no token")
				}
				value := strconv.Itoa(n)
				if refused := remote.Refused(ctx); refused != nil {
					value = fmt.Sprint("again after ", refused.Status)
				}
				return http.Header{"X-Token": {value}}, nil
			}
		}
		s.tasks.Go(s.write)
		l := pipenet.Listen()
		server := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(s.serve)}}
		server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
		server.Start()
		transport := &http.Transport{DialContext: l.Dial}
		o.HTTPClient = &http.Client{Transport: transport, Timeout: 1} // which would be too short for a stream
		s.http, s.ws = remote.Dial("http://localhost/acp", o), remote.Dial("ws://localhost/acp", o)
		return s, func() {
			s.end()
			if o.HTTPClient.Jar != nil || o.HTTPClient.CheckRedirect != nil {
				t.Error("the caller's client was changed")
			}
			transport.CloseIdleConnections()
			server.Close()
		}
	})
}

// clientScript is the server of a client, and its program.
type clientScript struct {
	t        *testing.T
	http, ws rpc.Transport
	stream   rpc.Stream // the newest one
	streams  []rpc.Stream
	said     chan any      // what the program has read: strings and errors
	notes    chan string   // of gaps and unsent messages
	writes   chan []string // what the program writes
	reading  gate          // closed while the program does not read
	closed   chan error    // the result of Close
	failed   error         // of opening or of writing
	tasks    sync.WaitGroup

	mu      sync.Mutex
	pending []*exchange // requests that the script has not taken
	came    chan struct{}
	ended   bool // the script is over: requests are answered at once
	writing int  // calls of Write in progress, or to come

	taken   map[string]*exchange
	sockets map[string]*scriptSocket
}

// exchange is a request, and what the server does.
type exchange struct {
	*http.Request
	body string
	do   chan func(http.ResponseWriter) (more bool)
	gone chan struct{}

	writing atomic.Bool
}

// serve does for each request what the script says.
func (s *clientScript) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Header.Set("Path", r.URL.Path)
	x := &exchange{Request: r, body: string(body), do: make(chan func(http.ResponseWriter) bool), gone: make(chan struct{})}
	defer close(x.gone)
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		w.WriteHeader(http.StatusAccepted)
		return
	}
	s.pending = append(s.pending, x)
	s.mu.Unlock()
	select {
	case s.came <- struct{}{}:
	default:
	}
	for {
		select {
		case do := <-x.do:
			x.writing.Store(true)
			more := do(w)
			if x.writing.Store(false); !more {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// then has the server do something with the request.
func (x *exchange) then(do func(http.ResponseWriter) bool) {
	x.hand(do)
	synctest.Wait()
}

func (x *exchange) hand(do func(http.ResponseWriter) bool) {
	select {
	case x.do <- do:
	case <-x.gone:
	}
}

func (s *clientScript) play(l *line) {
	switch {
	case l.who == "client":
		s.playClient(l)
	case l.who == "hello": // what most conversations begin with
		for _, text := range []string{
			"client connect", `client -> initialize#0 {}`, `POST initialize#0 {} (Acp-Connection-Id:) => 200 (Acp-Connection-Id: c0ffee) #0 {}`,
			`GET own (Acp-Connection-Id: c0ffee | Acp-Session-Id:) => 200`, `client <- #0 {}`,
		} {
			s.play(parseLine(s.t, text))
		}
	case l.who == "session": // its stream
		s.play(parseLine(s.t, fmt.Sprintf("GET %s (Acp-Connection-Id: c0ffee | Acp-Session-Id: %[1]s) => 200", l.do)))
	case l.who == "none":
		synctest.Wait()
		for _, x := range s.forget() {
			s.t.Errorf("it also made the request %s", x)
		}
	case l.who == "upgrade":
		x := s.take(l)
		if l.answer.rest != "101" {
			s.answer(l, x)
			return
		}
		o := &websocket.AcceptOptions{InsecureSkipVerify: true}
		for _, pair := range l.answer.header {
			switch pair[0] {
			case "Sec-WebSocket-Protocol":
				o.Subprotocols = []string{pair[1]}
			case "Compression":
				o.CompressionMode = websocket.CompressionContextTakeover
			case "Pings":
				o.OnPingReceived = func(context.Context, []byte) bool { return pair[1] == "answered" }
			}
		}
		x.then(func(w http.ResponseWriter) bool {
			ws, err := websocket.Accept(w, x.Request, o)
			if err == nil {
				ws.SetReadLimit(-1)
				s.sockets[l.rest] = &scriptSocket{Conn: ws, t: s.t}
			}
			return false
		})
	case isRequest[l.who]:
		x := s.take(l)
		s.taken[l.name] = x
		if l.who == "GET" {
			s.taken[l.rest] = x
		}
		if l.answer != nil {
			s.answer(l, x)
		}
	case s.sockets[l.who] != nil:
		s.sockets[l.who].play(l)
	case s.taken[l.who] != nil:
		s.playExchange(l, s.taken[l.who])
	default:
		s.t.Fatal("not a line of a script")
	}
}

func (x *exchange) String() string {
	return fmt.Sprintf("%s %s session %q", x.Method, shorten(x.body), x.Header.Get(remote.HeaderSession))
}

// forget drops the requests that the client has given up, and returns the others that are pending.
func (s *clientScript) forget() []*exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = slices.DeleteFunc(s.pending, func(x *exchange) bool {
		select {
		case <-x.gone:
			return true
		default:
			return false
		}
	})
	return s.pending
}

// take takes a request from those that are pending, or waits until it is made.
func (s *clientScript) take(l *line) *exchange {
	late := time.After(24 * time.Hour)
	for {
		s.forget()
		s.mu.Lock()
		i := slices.IndexFunc(s.pending, func(x *exchange) bool { return l.matches(x) })
		if i >= 0 {
			x := s.pending[i]
			s.pending = slices.Delete(s.pending, i, i+1)
			s.mu.Unlock()
			return x
		}
		s.mu.Unlock()
		select {
		case <-s.came:
		case <-late:
			s.t.Fatalf("no such request, but %v", s.pending)
		}
	}
}

// matches reports whether a request is that of a line.
func (l *line) matches(x *exchange) bool {
	upgrade := x.Header.Get("Upgrade") != ""
	switch {
	case upgrade != (l.who == "upgrade"), !upgrade && x.Method != l.who, l.header.check(x.Header) != "":
		return false
	case l.who == "POST":
		return same(x.body, l.rest)
	case l.who == "GET":
		session, ok := l.header.get(remote.HeaderSession)
		return ok || x.Header.Get(remote.HeaderSession) == session
	}
	return true
}

// answer answers a request.
func (s *clientScript) answer(l *line, x *exchange) {
	status, body, _ := strings.Cut(l.answer.rest, " ")
	if status == "cut" {
		x.then(func(http.ResponseWriter) bool { panic(http.ErrAbortHandler) })
		return
	}
	code, err := strconv.Atoi(status)
	if err != nil {
		s.t.Fatal(err)
	}
	kind, typed := l.answer.header.get("Content-Type")
	stays := x.Method == "GET" && code == 200 && !typed || kind == "text/event-stream" || strings.HasPrefix(body, "…")
	x.then(func(w http.ResponseWriter) bool {
		if stays && !typed {
			w.Header().Set("Content-Type", "text/event-stream")
		} else if body != "" && !typed {
			w.Header().Set("Content-Type", "application/json")
		}
		for _, pair := range l.answer.header {
			w.Header().Add(pair[0], pair[1])
		}
		w.WriteHeader(code)
		if body = strings.TrimPrefix(body, "…"); body != "" {
			io.WriteString(w, expand(body))
		}
		http.NewResponseController(w).Flush()
		return stays
	})
}

func (s *clientScript) playExchange(l *line, x *exchange) {
	write := func(text string) {
		x.then(func(w http.ResponseWriter) bool {
			io.WriteString(w, text)
			http.NewResponseController(w).Flush()
			return true
		})
	}
	switch {
	case l.answer != nil:
		s.answer(l, x)
	case l.do == "->":
		if raw, err := strconv.Unquote(l.rest); err == nil {
			write(pad(raw))
			return
		}
		var events strings.Builder
		for _, text := range l.messages() {
			events.WriteString("data: " + text + "\n\n")
		}
		write(events.String())
	case l.do == "blocked": // in writing
		if !x.writing.Load() {
			s.t.Error("the client takes everything")
		}
	case l.do == "end":
		x.then(func(http.ResponseWriter) bool { return false })
	case l.do == "cut":
		x.then(func(http.ResponseWriter) bool { panic(http.ErrAbortHandler) })
	case l.do == "gone": // the client has given it up
		select {
		case <-x.gone:
		case <-time.After(24 * time.Hour):
			s.t.Error("the client keeps it")
		}
	default:
		s.t.Fatal("not what a server does")
	}
}

func (s *clientScript) playClient(l *line) {
	switch l.do {
	case "connect", "connects": // over WebSocket the script must answer the upgrade meanwhile
		transport := s.http
		if l.rest == "ws" {
			transport = s.ws
		}
		opened := make(chan struct{})
		s.tasks.Go(func() {
			defer close(opened)
			if s.stream, s.failed = transport.Connect(context.Background()); s.failed == nil {
				s.streams = append(s.streams, s.stream)
				s.tasks.Go(s.read)
			}
		})
		if l.rest == "" {
			<-opened
		}
	case "refused": // Connect fails
		synctest.Wait()
		checkError(s.t, s.failed, l.rest)
	case "->":
		s.mu.Lock()
		s.writing++
		s.mu.Unlock()
		s.writes <- l.messages()
		synctest.Wait()
	case "pauses": // reading, after one more message
		s.reading.Lock()
	case "continues":
		s.reading.Unlock()
	case "waits": // in Write
		if s.writing == 0 {
			s.t.Error("Write does not wait")
		}
	case "wrote":
		if s.writing != 0 {
			s.t.Error("Write waits")
		}
	case "cannot": // write
		synctest.Wait()
		checkError(s.t, s.failed, l.rest)
	case "<-":
		for i := l.first; i < l.end; i++ {
			got := s.next()
			if text, ok := got.(string); !ok || !same(text, number(l.rest, i)) {
				s.t.Fatalf("got %v, want %s", shorten(fmt.Sprint(got)), unpadded(number(l.rest, i)))
			}
		}
	case "idle":
		if synctest.Wait(); len(s.said) > 0 {
			s.t.Errorf("the program has read %v", <-s.said)
		}
	case "fails": // a call
		id, words, _ := strings.Cut(l.rest, " ")
		err, _ := s.next().(error)
		if lost, ok := errors.AsType[*rpc.CallLostError](err); !ok || lost.ID.String() != strings.TrimPrefix(id, "#") {
			s.t.Fatalf("got %v", err)
		}
		checkError(s.t, err, words)
	case "skips": // an event that is too long
		err, _ := s.next().(error)
		long, ok := errors.AsType[*rpc.TooLongError](err)
		if !ok {
			s.t.Fatalf("got %v", err)
		}
		if id, response, known := long.ID(); fmt.Sprint(long.Limit, id, response, known) != l.rest {
			s.t.Errorf("got %d %v %v %v", long.Limit, id, response, known)
		}
	case "ends":
		err, _ := s.next().(error)
		if _, lost := errors.AsType[*rpc.CallLostError](err); lost {
			s.t.Errorf("only a call is lost: %v", err)
		}
		checkError(s.t, err, l.rest)
	case "gap", "unsent":
		if got := receive(s.t, s.notes); !strings.HasPrefix(got, l.do+" "+l.rest) {
			s.t.Errorf("got %s", got)
		}
	case "closes":
		s.closed = make(chan error, 1)
		s.tasks.Go(func() { s.closed <- s.stream.Close() })
		synctest.Wait()
	case "closed":
		if err := receive(s.t, s.closed); err != nil {
			s.t.Error(err)
		}
		if synctest.Wait(); len(s.said) > 0 { // the end
			<-s.said
		}
	default:
		s.t.Fatal("not what a program does")
	}
}

// next returns what the program reads next: a string or an error.
func (s *clientScript) next() any { return receive(s.t, s.said) }

func (s *clientScript) read() {
	stream := s.stream
	for {
		s.reading.pass()
		line, err := stream.Read()
		if err == nil {
			s.said <- string(line)
			continue
		}
		s.said <- err
		_, lost := errors.AsType[*rpc.CallLostError](err)
		_, long := errors.AsType[*rpc.TooLongError](err)
		if !lost && !long {
			return
		}
	}
}

func (s *clientScript) write() {
	for texts := range s.writes {
		if s.stream != nil {
			if err := write(s.stream, texts); err != nil {
				s.failed = err
				continue
			}
		}
		s.mu.Lock()
		s.writing--
		s.mu.Unlock()
	}
}

// end closes the client; nothing may be left that the script does not mention.
func (s *clientScript) end() {
	s.mu.Lock()
	s.ended = true
	for _, x := range s.pending {
		go x.hand(func(w http.ResponseWriter) bool { w.WriteHeader(http.StatusAccepted); return false })
	}
	s.mu.Unlock()
	for _, ws := range s.sockets {
		go ws.Read(context.Background()) // the end
	}
	close(s.writes)
	synctest.Wait()
	for _, stream := range s.streams {
		if err := stream.Close(); err != nil {
			s.t.Error(err)
		}
	}
	s.tasks.Wait()
	for _, ws := range s.sockets {
		ws.CloseNow()
	}
	for len(s.notes) > 0 {
		s.t.Errorf("the client also said: %s", <-s.notes)
	}
	for len(s.said) > 0 {
		if text, ok := (<-s.said).(string); ok {
			s.t.Errorf("the program also read %s", shorten(text))
		}
	}
}
