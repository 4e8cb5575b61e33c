package remote_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/internal/test/must"
)

// TestServerScripts plays the client and the agent of a Server.
func TestServerScripts(t *testing.T) {
	playScripts(t, "server", func(t *testing.T, protocol string, options []byte) (player, func()) {
		o := &remote.HandlerOptions{}
		others := setOptions(t, o, options)
		if others["Tokens"] != nil {
			o.Authenticate = withTokens().Authenticate
		}
		if text := others["History"]; text != nil {
			var bounds [2]int
			must.Do(t, json.Unmarshal(text, &bounds))
			o.History = remote.MemoryHistory(bounds[0], bounds[1])
		}
		var addr net.Addr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
		switch where := strings.Trim(string(others["At"]), `"`); where {
		case "":
		case "unix":
			addr = &net.UnixAddr{}
		case "unknown":
			addr = nil
		default:
			addr = &net.TCPAddr{IP: net.ParseIP(where), Port: 1}
		}
		f, end := bubbleOf(t, protocol, o, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var local any // which may be nil
				if addr != nil {
					local = addr
				}
				ctx, leave := context.WithCancel(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
				defer leave()
				if r.Header.Get("Client") == "gone" {
					leave()
				}
				if others["Middleware"] != nil {
					w = wrapped{w}
				}
				h.ServeHTTP(w, r.WithContext(ctx))
			})
		})
		s := &serverScript{t: t, f: f, opened: map[string]bool{}, conns: map[string]*peer{}, streams: map[string]*reader{}, sockets: map[string]*scriptSocket{},
			raw: map[string]*rawConn{}, asked: map[string]*asked{}, ids: map[string]string{}}
		return s, func() {
			for _, close := range s.closers {
				close()
			}
			end()
		}
	})
}

// wrapped is what a middleware that knows nothing of streams gives on.
type wrapped struct{ http.ResponseWriter }

func (w wrapped) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// slow is a reader that pauses after each 1 MiB.
type slow struct {
	io.Reader
	pause time.Duration
	n     int // bytes since the last pause
}

func (s *slow) Read(p []byte) (int, error) {
	if s.n >= 1<<20 {
		time.Sleep(s.pause)
		s.n = 0
	}
	n, err := s.Reader.Read(p)
	s.n += n
	return n, err
}

// serverScript is the client and the agent of a Server.
type serverScript struct {
	t       *testing.T
	f       *fixture
	opened  map[string]bool // the ids of connections
	conn    *peer           // the connection that requests are for
	conns   map[string]*peer
	agent   *testAgent
	streams map[string]*reader
	sockets map[string]*scriptSocket
	raw     map[string]*rawConn
	stopped chan error        // the result of Shutdown
	asked   map[string]*asked // requests whose answer comes later
	ids     map[string]string // of events and connections
	pings   atomic.Int32
	closers []func()
	ponged  atomic.Bool
}

// asked is a request.
type asked struct {
	method, stream string
	cancel         context.CancelFunc
	response       chan response
}

type response struct {
	*http.Response
	body string
	err  error
}

func (s *serverScript) play(l *line) {
	switch {
	case l.who == "open":
		s.conn = s.f.open(s.fill(l.header)...)
		s.conns[l.name], s.ids[l.name], s.agent = s.conn, s.conn.id, s.conn.agent
		s.checkID(s.conn.id)
	case l.who == "use":
		s.conn = s.conns[l.do]
		s.agent = s.conn.agent
	case l.who == "upgrade":
		s.upgrade(l)
	case l.who == "connect":
		conn, err := s.f.client.Transport.(*http.Transport).DialContext(s.t.Context(), "tcp", "localhost:80")
		if err != nil {
			s.t.Fatal(err)
		}
		s.raw[l.do] = &rawConn{conn, bufio.NewReader(conn)}
		s.closers = append(s.closers, func() { conn.Close() })
	case isRequest[l.who]:
		asked := s.ask(l)
		if l.answer != nil {
			s.check(l, asked)
		} else {
			s.asked[l.name] = asked
			synctest.Wait()
		}
	case s.asked[l.who] != nil:
		s.playAsked(l, s.asked[l.who])
	case l.who == "agent":
		s.playAgent(l)
	case l.who == "gone":
		s.await(0, func(st remote.Stats) int { return st.Connections[remote.HTTP] + st.Connections[remote.WebSocket] })
	case l.who == "streams":
		n, _ := strconv.Atoi(l.do)
		s.await(n, func(st remote.Stats) int { return st.Streams })
	case l.who == "log":
		if log := s.f.log.String(); !strings.Contains(log, strings.TrimSpace(l.do+" "+l.rest)) {
			s.t.Errorf("the log is\n%s", log)
		}
	case l.who == "shutdown":
		s.stopped = make(chan error, 1)
		go func() {
			ctx := context.Background()
			if l.do != "" {
				d, _ := time.ParseDuration(l.do) // 0 is a time, too
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, d)
				defer cancel()
			}
			s.stopped <- s.f.Shutdown(ctx)
		}()
	case l.who == "stopped":
		if err := <-s.stopped; (err == nil) != (l.do == "") || err != nil && !strings.Contains(err.Error(), l.do+" "+l.rest) {
			s.t.Errorf("Shutdown: %v", err)
		}
	case l.who == "pings" && l.do == "answered":
		if !s.ponged.Load() {
			s.t.Error("a ping was not answered")
		}
	case l.who == "pings":
		if n := fmt.Sprint(s.pings.Load()); n != l.do {
			s.t.Errorf("%s pings", n)
		}
	case l.who == "kept":
		least, _ := strconv.Atoi(l.do)
		most, _ := strconv.Atoi(l.rest)
		synctest.Wait()
		if kept := s.f.Stats().Buffered; kept < least || kept > most {
			s.t.Errorf("%d bytes are kept", kept)
		}
	case s.raw[l.who] != nil:
		l.rest = expand(s.known(l.rest))
		s.raw[l.who].play(s.t, l)
	case s.sockets[l.who] != nil && l.do == "pings":
		ws := s.sockets[l.who].Conn
		go func() {
			if ws.Ping(context.Background()) == nil {
				s.ponged.Store(true)
			}
		}()
		synctest.Wait()
	case s.sockets[l.who] != nil:
		s.sockets[l.who].play(l)
	case s.streams[l.who] != nil:
		s.playStream(l, s.streams[l.who])
	default:
		s.t.Fatal("not a line of a script")
	}
}

// await waits until a number of the server is n, in steps that take no time.
func (s *serverScript) await(n int, number func(remote.Stats) int) {
	for end := time.Now().Add(time.Hour); ; time.Sleep(time.Second / 10) {
		if synctest.Wait(); number(s.f.Stats()) == n {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("after an hour: %+v", s.f.Stats())
		}
	}
}

// checkID checks the id of a connection: it has 128 bits in base 32, and no other one has it.
func (s *serverScript) checkID(id string) {
	if len(id)*5 < 128 || s.opened[id] {
		s.t.Errorf("a connection has the id %q", id)
	}
	s.opened[id] = true
}

// fill puts ids that have come into a header.
func (s *serverScript) fill(h header) (pairs []string) {
	for _, pair := range h {
		pairs = append(pairs, pair[0], pad(s.known(pair[1])))
	}
	return pairs
}

// known replaces [name] by the id of that name.
func (s *serverScript) known(text string) string {
	for name, id := range s.ids {
		text = strings.ReplaceAll(text, "["+name+"]", id)
	}
	return text
}

// ask makes a request.
func (s *serverScript) ask(l *line) *asked {
	var own []string
	if _, only := l.header.get("only"); !only && s.conn != nil {
		own = s.conn.header()
	}
	method, body := l.who, ""
	if method == "POST" {
		body = expand(l.rest)
	}
	if _, ok := l.header.get("Accept"); !ok && method == "GET" {
		own = append(own, "Accept", "text/event-stream")
	}
	given := s.fill(l.header)
	for i := 0; i < len(own); i += 2 {
		if _, ok := l.header.get(own[i]); !ok {
			given = append(given, own[i], own[i+1])
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &asked{method, l.rest, cancel, make(chan response, 1)}
	go func() {
		var r response
		if r.Response, r.err = s.f.send(ctx, method, body, given...); r.err == nil && (method != "GET" || r.StatusCode != 200) {
			var text []byte
			text, r.err = io.ReadAll(r.Body)
			r.body = string(text)
			r.Body.Close()
			cancel()
		}
		a.response <- r
	}()
	return a
}

func (s *serverScript) playAsked(l *line, a *asked) {
	switch {
	case l.answer != nil:
		s.check(l, a)
	case l.do == "waits":
		if synctest.Wait(); len(a.response) > 0 {
			s.t.Errorf("the answer is %v", <-a.response)
		}
	case l.do == "gives":
		a.cancel()
		if r := receive(s.t, a.response); r.err == nil {
			s.t.Error(r.Status)
		}
	default:
		s.t.Fatal("not what a request does")
	}
}

// check compares an answer with the line's.
func (s *serverScript) check(l *line, a *asked) {
	r := receive(s.t, a.response)
	want, body, _ := strings.Cut(l.answer.rest, " ")
	if r.err != nil {
		s.t.Fatal(r.err)
	}
	if got := strconv.Itoa(r.StatusCode); got != want {
		s.t.Errorf("the answer is %s %s", r.Status, shorten(r.body))
	}
	if r.StatusCode == 202 && (r.body != "" || r.ContentLength != 0) {
		s.t.Errorf("an answer with %d bytes", r.ContentLength)
	}
	if wrong := l.answer.header.check(r.Header); wrong != "" {
		s.t.Error(wrong)
	}
	if body != "" && !same(r.body, body) {
		s.t.Errorf("the body is %s, want %s", shorten(r.body), unpadded(body))
	}
	if a.method == "GET" && r.StatusCode == 200 {
		stream := &reader{t: s.t, resp: r.Response, cancel: a.cancel, lines: bufio.NewReader(r.Body), wait: s.f.patience}
		if part := stream.part(); part != ":" {
			s.t.Errorf("the stream begins with %q", part)
		}
		s.streams[a.stream] = stream
		s.closers = append(s.closers, stream.close)
	}
}

func (s *serverScript) upgrade(l *line) {
	name, query, _ := strings.Cut(l.rest, " ")
	o := &websocket.DialOptions{HTTPHeader: http.Header{}}
	for _, pair := range l.header {
		switch pair[0] {
		case "Host":
			o.Host = pair[1]
		case "Sec-WebSocket-Protocol":
			o.Subprotocols = strings.Split(pair[1], ", ")
		case "Compression":
			o.CompressionMode = websocket.CompressionContextTakeover
		case "Pings":
			o.OnPingReceived = func(context.Context, []byte) bool { s.pings.Add(1); return pair[1] == "answered" }
		default:
			o.HTTPHeader.Set(pair[0], pair[1])
		}
	}
	o.HTTPClient = s.f.client
	ws, resp, err := websocket.Dial(s.t.Context(), s.f.url+query, o)
	if resp == nil {
		s.t.Fatal(err)
	}
	if got := strconv.Itoa(resp.StatusCode); got != l.answer.rest {
		s.t.Fatalf("the answer is %s, %v", resp.Status, err)
	}
	if wrong := l.answer.header.check(resp.Header); wrong != "" {
		s.t.Error(wrong)
	}
	if strings.Contains(fmt.Sprint(resp.Header), "s3cret") {
		s.t.Errorf("a token was sent back: %v", resp.Header)
	}
	if ws != nil && err == nil {
		ws.SetReadLimit(-1)
		s.closers = append(s.closers, func() { ws.CloseNow() })
		s.sockets[name] = &scriptSocket{Conn: ws, t: s.t}
		s.checkID(resp.Header.Get(remote.HeaderConnection))
	}
}

// newest makes the agent that was started last the one of the script.
func (s *serverScript) newest() {
	for synctest.Wait(); len(s.f.agents) > 0; {
		s.agent = <-s.f.agents
	}
}

func (s *serverScript) playAgent(l *line) {
	s.newest()
	switch l.do {
	case "->":
		go write(s.agent.stream, l.messages())
		synctest.Wait()
	case "<-":
		for i := l.first; i < l.end; i++ {
			if got := receive(s.t, s.agent.got); !same(got, number(l.rest, i)) {
				s.t.Errorf("the agent got %s, want %s", shorten(got), unpadded(number(l.rest, i)))
			}
		}
	case "none":
		if s.agent != nil {
			s.t.Error("an agent was started")
		}
	case "idle":
		if synctest.Wait(); len(s.agent.got) > 0 {
			s.t.Errorf("the agent got %s", <-s.agent.got)
		}
	case "pauses": // in answering, and before it reads on
		s.agent.mu.Lock()
	case "continues":
		s.agent.mu.Unlock()
	case "closes":
		go s.agent.stream.Close()
	case "ends":
		checkError(s.t, receive(s.t, s.agent.ended), l.rest)
	case "knows":
		for _, word := range errorWord.FindAllString(l.rest, -1) {
			text, not := strings.CutPrefix(word, "!")
			if strings.Contains(fmt.Sprintf("%+v", *s.agent.peer), text) == not {
				s.t.Errorf("the agent knows %+v", *s.agent.peer)
			}
		}
	default:
		s.t.Fatal("not what an agent does")
	}
}

// beginning is where a stream begins.
var beginning = regexp.MustCompile(`^\[(\w+)\]$`)

func (s *serverScript) playStream(l *line, r *reader) {
	switch l.do {
	case "<-":
		for i := l.first; i < l.end; i++ {
			want := number(l.rest, i)
			if want == ":" {
				if part := r.part(); part != ":" {
					s.t.Errorf("got %q", part)
				}
				continue
			}
			if m := beginning.FindStringSubmatch(want); m != nil {
				id, ok := strings.CutPrefix(r.part(), "id: ")
				if !ok {
					s.t.Errorf("the stream begins with %s", id)
				}
				s.ids[m[1]] = id
				continue
			}
			got := ""
			if name, rest, ok := strings.Cut(strings.TrimPrefix(want, "["), "] "); ok && want[0] == '[' {
				e := r.event()
				want, got = rest, e.data
				if known, ok := s.ids[name]; ok && known != e.id {
					s.t.Errorf("the event has the id %s, not %s again", e.id, known)
				}
				s.ids[name] = e.id
				if other := slices.Sorted(maps.Values(s.ids)); len(slices.Compact(other)) != len(s.ids) {
					s.t.Errorf("two events have the id %s", e.id)
				}
			} else {
				got = r.message()
			}
			if !same(got, want) {
				s.t.Fatalf("got %s, want %s", shorten(got), unpadded(want))
			}
		}
	case "end":
		r.end()
	case "over": // cleanly or not
		for _, err := r.next(); err == nil; _, err = r.next() {
		}
	case "slows": // pauses after each 1 MiB
		pause := must.Get(time.ParseDuration(l.rest))(s.t)
		r.lines = bufio.NewReader(&slow{Reader: r.lines, pause: pause})
	case "cut":
		r.close()
		synctest.Wait()
	default:
		s.t.Fatal("not what a stream does")
	}
}

// scriptSocket is a WebSocket.
type scriptSocket struct {
	*websocket.Conn
	t   *testing.T
	got chan string // what it has read, if it reads ahead
	err error
}

// read reads a message from the connection.
func (s *scriptSocket) read() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	_, text, err := s.Read(ctx)
	return string(text), err
}

// next returns the next message.
func (s *scriptSocket) next() (string, error) {
	if s.got == nil {
		return s.read()
	}
	if text, ok := <-s.got; ok {
		return text, nil
	}
	return "", s.err
}

func (s *scriptSocket) play(l *line) {
	switch l.do {
	case "->", "->binary":
		kind := websocket.MessageText
		if l.do != "->" {
			kind = websocket.MessageBinary
		}
		for _, text := range l.messages() {
			go s.Write(context.Background(), kind, []byte(text))
			synctest.Wait()
		}
	case "->fragments":
		w, err := s.Writer(s.t.Context(), websocket.MessageText)
		for _, b := range []byte(expand(l.rest)) {
			if err == nil {
				_, err = w.Write([]byte{b})
			}
		}
		if err = errors.Join(err, w.Close()); err != nil {
			s.t.Error(err)
		}
	case "<-":
		for i := l.first; i < l.end; i++ {
			if got, err := s.next(); err != nil || !same(got, number(l.rest, i)) {
				s.t.Fatalf("got %s, %v, want %s", shorten(got), err, unpadded(number(l.rest, i)))
			}
		}
	case "reads": // at once, whether the script asks for it or not
		s.got = make(chan string, 1000)
		go func() {
			defer close(s.got)
			for {
				var text string
				if text, s.err = s.read(); s.err != nil {
					return
				}
				s.got <- text
			}
		}()
		synctest.Wait()
	case "closes":
		code, reason, _ := strings.Cut(l.rest, " ")
		n, _ := strconv.Atoi(code) // 0 is no code
		if err := s.Close(websocket.StatusCode(n), reason); err != nil {
			s.t.Error(err)
		}
	case "closed", "ends": // at once, or whatever comes before
		text, err := s.next()
		for l.do == "ends" && err == nil {
			text, err = s.next()
		}
		closed := websocket.CloseError{Code: 1006}
		errors.As(err, &closed)
		if got := fmt.Sprint(int(closed.Code), " ", closed.Reason); err == nil || !strings.HasPrefix(got+" ", l.rest+" ") {
			s.t.Errorf("closed with %s, %v %s", got, err, text)
		}
	case "cut":
		s.CloseNow()
		synctest.Wait()
	default:
		s.t.Fatal("not what a WebSocket does")
	}
}

// rawConn is a connection of TCP.
type rawConn struct {
	net.Conn
	in *bufio.Reader
}

func (c *rawConn) play(t *testing.T, l *line) {
	switch l.do {
	case "->":
		text := strings.Repeat(l.rest, l.end-l.first)
		go io.WriteString(c, text)
		synctest.Wait()
	case "reads": // whatever comes
		go io.Copy(io.Discard, c)
	case "cut":
		c.Close()
	case "<-":
		want, got := l.rest, ""
		for !strings.HasPrefix(got, want) && len(got) < len(want) {
			b, err := c.in.ReadByte()
			if err != nil {
				t.Fatalf("%v after %q", err, got)
			}
			got += string(b)
		}
		if got != want {
			t.Errorf("got %q", got)
		}
	case "end":
		if rest, err := io.ReadAll(c.in); err != nil || l.rest != "" && !strings.HasPrefix(string(rest), l.rest) {
			t.Errorf("it ends with %q, %v", rest, err)
		}
	default:
		t.Fatal("not what a connection does")
	}
}
