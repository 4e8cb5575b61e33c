package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
)

// TestREM50_Initialize: the POST's answer is read when the connection's stream is open.
func TestREM50_Initialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		m := &memory{get: func(int, *http.Request) (int, http.Header, string) { <-release; return 200, nil, ":\n\n" }}
		o := testOptions(t)
		o.HTTPClient = &http.Client{Transport: m}
		c := dial(t, "http://localhost", o)
		c.write(initRequest)
		synctest.Wait()
		if len(c.read) > 0 {
			t.Fatalf("before the stream was open: %v", <-c.read)
		}
		close(release)
		c.want(initAnswer)
	})
	srv := newFakeServer(t)
	c := connect(t, srv, nil)
	// A message of the agent's that belongs to no session.
	srv.send("", `{"jsonrpc":"2.0","method":"_a"}`)
	c.want(`{"jsonrpc":"2.0","method":"_a"}`)
}

// TestREM50_GaveUp: who waits for a stream hears why it is given up, although its life ends with that.
func TestREM50_GaveUp(t *testing.T) {
	why := errors.New("why")
	st := &eventStream{s: &httpStream{d: &dialer{}}, opened: make(chan struct{}), err: why}
	st.s.d.opts.StreamTimeout = time.Minute
	st.life, st.cancel = context.WithCancelCause(t.Context())
	close(st.opened)
	st.cancel(nil)
	for range 100 { // which of the two is seen is random
		if err := st.await(); err != why {
			t.Fatalf("got %v", err)
		}
	}
}

// TestREM50_Failures: what may go wrong while a connection is opened ends the call with an error that says so.
func TestREM50_Failures(t *testing.T) {
	const opening = "acp: opening the stream of the connection: acp: "
	for name, test := range map[string]struct {
		method string // of the request that is answered so
		status int
		text   string
		want   string
		is     error
	}{
		"refused":         {"POST", 503, "no more", "acp: HTTP status 503 Service Unavailable: no more", ErrBusy},
		"not found":       {"POST", 404, "", "404", ErrConnectionGone},
		"accepted only":   {"POST", 202, "", "202", nil},
		"no id":           {"POST", 200, initAnswer, errNoID.Error(), nil},
		"another id":      {"POST", 200, `{"jsonrpc":"2.0","id":1,"result":{}}`, errWrongID.Error(), nil},
		"no JSON":         {"POST", 200, "<html>", errWrongID.Error(), nil},
		"too long":        {"POST", 200, strings.Repeat(" ", 1<<20) + initAnswer, "acp: message longer than 100000 bytes", nil},
		"stream refused":  {"GET", 406, "", opening + "HTTP status 406 Not Acceptable", nil},
		"no stream":       {"GET", 200, "<html>", opening + "the response is not an event stream but \"text/html\"", nil},
		"stream busy":     {"GET", 503, "", opening + "HTTP status 503", ErrBusy},
		"buffering proxy": {"GET", 0, "", "proxy", errNoHeaders}, // it holds the headers back
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T, srv *fakeServer, o *DialOptions) {
				answer := func(w http.ResponseWriter, r *http.Request) bool {
					if r.Method != test.method {
						return false
					}
					if test.status == 0 {
						<-r.Context().Done()
						return true
					}
					w.WriteHeader(test.status)
					io.WriteString(w, test.text)
					return true
				}
				srv.post = func(w http.ResponseWriter, r *http.Request, _ string) bool { return answer(w, r) }
				srv.get = answer
				o.MaxMessage = 100_000
				c := dial(t, srv.URL, o)
				c.write(initRequest)
				err := c.fails(0)
				if !strings.Contains(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		srv := newFakeServer(t)
		srv.Close()
		c := dial(t, srv.URL, nil)
		c.write(initRequest)
		if err := c.fails(0); !strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), srv.URL) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("error answer", func(t *testing.T) {
		const answer = `{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"no"}}`
		srv := newFakeServer(t)
		first := true
		srv.post = func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			if first {
				io.WriteString(w, answer)
			} else {
				answerInitialize(w)
			}
			first = false
			return true
		}
		c := dial(t, srv.URL, nil)
		c.write(initRequest)
		c.want(answer)
		c.write(initRequest) // it may be tried again
		c.want(initAnswer)
	})
	t.Run("something else first", func(t *testing.T) {
		srv := newFakeServer(t)
		c := dial(t, srv.URL, nil)
		c.write(req(1, methodNew, `{}`))
		if err := c.fails(1); !errors.Is(err, errFirst) {
			t.Errorf("got %v", err)
		}
	})
}

// turn has a session and runs a turn with a permission on it, as section 3 of the transcripts shows.
func TestREM51_Turn(t *testing.T) {
	srv := newFakeServer(t)
	c := connect(t, srv, nil)
	c.write(req(1, methodNew, `{"cwd":"/"}`))
	if p := srv.taken(); p.session != "" || p.header.Get(HeaderConnection) != connectionID || p.header.Get("Content-Type") != "application/json" {
		t.Errorf("session/new: %+v", p)
	}
	srv.send("", result(1, `{"sessionId":"s1"}`))
	c.want(result(1, `{"sessionId":"s1"}`))
	srv.opened("s1") // without being asked for
	c.write(prompt(2, "s1"))
	if p := srv.taken(); p.session != "s1" {
		t.Errorf("session/prompt: %+v", p)
	}
	// The agent's id is that of a call of ours, and may be of any type.
	permission := `{"jsonrpc":"2.0","method":"session/request_permission","params":{"sessionId":"s1"},"id":"2"}`
	srv.send("s1", permission)
	c.want(permission)
	c.write(`{"jsonrpc":"2.0","id":"2","result":{}}`)
	if p := srv.taken(); p.session != "s1" || p.body != `{"jsonrpc":"2.0","id":"2","result":{}}` {
		t.Errorf("the answer: %+v", p)
	}
	srv.send("s1", update("s1", 1))
	srv.send("s1", result(2, `{"stopReason":"end_turn"}`))
	c.want(update("s1", 1), result(2, `{"stopReason":"end_turn"}`))
	// A request of the agent's on the session's stream that does not name it.
	srv.send("s1", `{"jsonrpc":"2.0","id":7,"method":"_ask"}`)
	c.want(`{"jsonrpc":"2.0","id":7,"method":"_ask"}`)
	c.write(result(7, `{}`))
	if p := srv.taken(); p.session != "s1" {
		t.Errorf("the answer: %+v", p)
	}
	// One of the connection's.
	srv.send("", `{"jsonrpc":"2.0","id":8,"method":"_ask"}`)
	c.want(`{"jsonrpc":"2.0","id":8,"method":"_ask"}`)
	c.write(result(8, `{}`))
	if p := srv.taken(); p.session != "" {
		t.Errorf("the answer: %+v", p)
	}
}

// TestREM51_StreamFirst: the stream of a session is open before a request of the session is sent; one that cannot be
// opened keeps the request from being sent.
func TestREM51_StreamFirst(t *testing.T) {
	simulate(t, func(t *testing.T, srv *fakeServer, o *DialOptions) {
		var open atomic.Bool
		srv.get = func(w http.ResponseWriter, r *http.Request) bool {
			switch r.Header.Get(HeaderSession) {
			case "slow":
				time.Sleep(20 * time.Millisecond)
				open.Store(true)
			case "forbidden": // as qwen answers for a session that it does not know
				http.Error(w, "no such session", http.StatusForbidden)
				return true
			case "taken":
				http.Error(w, "", http.StatusConflict)
				return true
			}
			return false
		}
		srv.post = func(w http.ResponseWriter, r *http.Request, body string) bool {
			if r.Header.Get(HeaderSession) == "slow" && !open.Load() {
				t.Error("sent before the stream was open")
			}
			return false
		}
		c := connect(t, srv, o)
		c.write(prompt(1, "slow"))
		srv.taken()
		c.write(prompt(2, "forbidden"))
		if err := c.fails(2); !errors.Is(err, ErrUnauthorized) || !strings.Contains(err.Error(), "stream of session forbidden") {
			t.Errorf("got %v", err)
		}
		c.write(prompt(3, "taken"))
		if err := c.fails(3); !errors.Is(err, ErrStreamTaken) {
			t.Errorf("got %v", err)
		}
		// The connection lives on.
		srv.send("slow", result(1, `{}`))
		c.want(result(1, `{}`))
		if n := len(srv.posts); n > 0 {
			t.Errorf("%d requests were sent without a stream", n)
		}
	})
}

// TestREM51_Unsendable: the id of a session that invalid value fails its calls at once.
func TestREM51_Unsendable(t *testing.T) {
	srv := newFakeServer(t)
	o := testOptions(t)
	unsent := make(chan error, 1)
	o.OnUnsent = func(_, _ string, err error) { unsent <- err }
	c := connect(t, srv, o)
	for i, method := range []string{methodPrompt, methodLoad, methodDelete} {
		c.write(req(i+1, method, `{"sessionId":"a\nb"}`))
		if err := c.fails(int64(i + 1)); !errors.Is(err, errHeader) {
			t.Errorf("%s: %v", method, err)
		}
	}
	c.write(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"a\u007f"}}`)
	if err := within(t, unsent); !errors.Is(err, errHeader) {
		t.Errorf("got %v", err)
	}
	c.write(prompt(7, "é"))
	if p := srv.taken(); p.session != "é" {
		t.Errorf("got %+v", p)
	}
}

// TestREM51_Load: servers that know a session only when it was loaded answer the GET before with 404, and the POST too
// if it names the session: its stream is opened after the answer.
func TestREM51_Load(t *testing.T) {
	for _, method := range []string{methodLoad, methodResume} {
		srv := newFakeServer(t)
		var loaded atomic.Bool
		srv.get = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get(HeaderSession) != "" && !loaded.Load() {
				http.NotFound(w, r)
				return true
			}
			return false
		}
		srv.post = func(w http.ResponseWriter, r *http.Request, body string) bool {
			if r.Header.Get(HeaderSession) != "" && !loaded.Load() {
				http.NotFound(w, r)
				return true
			}
			return false
		}
		c := connect(t, srv, nil)
		c.write(req(1, method, `{"sessionId":"s"}`))
		srv.taken()
		loaded.Store(true)
		srv.send("", result(1, `{}`))
		c.want(result(1, `{}`))
		srv.opened("s")
		c.write(prompt(2, "s"))
		srv.send("s", result(2, `{}`))
		c.want(result(2, `{}`))
	}
}

// TestREM51_Over: a session that was closed or deleted needs no stream.
func TestREM51_Over(t *testing.T) {
	for _, method := range []string{methodClose, methodDelete} {
		srv := newFakeServer(t)
		ended := make(chan string, 1)
		srv.get = func(w http.ResponseWriter, r *http.Request) bool {
			if session := r.Header.Get(HeaderSession); session == "s" {
				srv.serveStream(w, r)
				ended <- session
				return true
			}
			return false
		}
		o := testOptions(t)
		o.Resume = true
		c := connect(t, srv, o)
		c.write(req(1, method, `{"sessionId":"s"}`))
		srv.opened("s")
		srv.send("s", "id: 7\ndata: "+update("s", 1)+"\n\n")
		c.want(update("s", 1))
		srv.send("", result(1, `{}`))
		c.want(result(1, `{}`))
		if cursor := c.s.(*httpStream).d.cursor("s"); cursor != nil {
			t.Errorf("the cursor %q is kept", cursor)
		}
		within(t, ended)
		// Only what is sent for it opens it again.
		c.write(prompt(2, "s"))
		srv.opened("s")
	}
}

// TestREM52_Lanes: a slow POST blocks those of its session, not those of others, nor answers, nor what belongs to the
// connection.
func TestREM52_Lanes(t *testing.T) {
	srv := newFakeServer(t)
	release := make(chan struct{})
	var flying, most atomic.Int32
	srv.post = func(w http.ResponseWriter, r *http.Request, body string) bool {
		if r.Header.Get(HeaderSession) == "a" && methodOf(body) != "" && methodOf(body) != methodCancel {
			most.Store(max(most.Load(), flying.Add(1)))
			defer flying.Add(-1)
		}
		if methodOf(body) == methodPrompt && r.Header.Get(HeaderSession) == "a" {
			<-release
		}
		return false
	}
	c := connect(t, srv, nil)
	srv.send("a", `{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"a"}}`)
	c.write(prompt(1, "a"))
	c.next() // the permission
	c.write(req(2, "session/set_mode", `{"sessionId":"a"}`))
	c.write(cancel("a"))
	c.write(result(9, `{}`))
	c.write(prompt(3, "b"))
	c.write(req(4, methodNew, `{}`))
	c.write(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":3}}`)
	var got []string
	for range 4 {
		got = append(got, srv.taken().body)
	}
	slices.Sort(got)
	want := []string{
		result(9, `{}`), prompt(3, "b"), req(4, methodNew, `{}`),
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":3}}`,
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	select {
	case p := <-srv.posts:
		t.Errorf("%s came before its prompt", p.body)
	default:
	}
	close(release)
	got = nil
	for range 3 {
		got = append(got, srv.taken().body)
	}
	if got[0] != prompt(1, "a") || !slices.Contains(got, cancel("a")) || most.Load() != 1 {
		t.Errorf("got %q, %d at once", got, most.Load())
	}
}

// TestREM52_Cancel: a cancellation passes what waits in its session, but not its prompt; the next prompt comes behind it.
func TestREM52_Cancel(t *testing.T) {
	srv := newFakeServer(t)
	mode, cancelling := make(chan struct{}), make(chan struct{})
	srv.post = func(w http.ResponseWriter, r *http.Request, body string) bool {
		switch methodOf(body) {
		case "session/set_mode":
			<-mode
		case methodCancel:
			<-cancelling
		}
		return false
	}
	c := connect(t, srv, nil)
	c.write(prompt(1, "s"))
	if p := srv.taken(); p.body != prompt(1, "s") {
		t.Fatalf("got %+v", p)
	}
	c.write(req(2, "session/set_mode", `{"sessionId":"s"}`))
	c.write(cancel("s"))
	close(cancelling)
	if p := srv.taken(); p.body != cancel("s") || p.session != "s" {
		t.Fatalf("got %+v", p)
	}
	cancelling = make(chan struct{})
	c.write(cancel("s"))
	c.write(prompt(3, "s"))
	close(mode)
	srv.taken() // set_mode
	select {
	case p := <-srv.posts:
		t.Errorf("%s came before the cancellation", p.body)
	default:
	}
	close(cancelling)
	if p := srv.taken(); p.body != cancel("s") {
		t.Errorf("got %+v", p)
	}
	if p := srv.taken(); p.body != prompt(3, "s") {
		t.Errorf("got %+v", p)
	}
}

// TestREM52_CancelRequest: the cancellation of a request passes what waits in other lanes, but not the request that it
// names, which may wait in its lane.
func TestREM52_CancelRequest(t *testing.T) {
	simulate(t, func(t *testing.T, srv *fakeServer, o *DialOptions) {
		release := make(chan struct{})
		srv.post = func(_ http.ResponseWriter, _ *http.Request, body string) bool {
			if methodOf(body) == methodPrompt {
				<-release
			}
			return false
		}
		cancelRequest := func(id int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%d}}`, id)
		}
		mode := req(2, "session/set_mode", `{"sessionId":"s"}`)
		c := connect(t, srv, o)
		c.write(prompt(1, "s"))
		c.write(mode)
		c.write(cancelRequest(2))
		c.write(cancelRequest(1))
		c.write(cancelRequest(7)) // of no request
		synctest.Wait()
		if p := srv.taken(); p.body != cancelRequest(7) || len(srv.posts) > 0 {
			t.Fatalf("got %s and %d more", p.body, len(srv.posts))
		}
		close(release)
		var got []string
		for range 4 {
			got = append(got, srv.taken().body)
		}
		if got[0] != prompt(1, "s") || slices.Index(got, mode) > slices.Index(got, cancelRequest(2)) ||
			!slices.Contains(got, cancelRequest(1)) {
			t.Errorf("got %q", got)
		}
	})
}

// TestREM52_Order: messages of a session arrive in the order in which they were written.
func TestREM52_Order(t *testing.T) {
	srv := newFakeServer(t)
	c := connect(t, srv, nil)
	var lines strings.Builder
	for i := range 200 {
		lines.WriteString(fmt.Sprintf(`{"jsonrpc":"2.0","method":"_n","params":{"sessionId":"%d","n":%d}}`, i%2, i) + "\n")
	}
	if err := c.s.(rpc.FastStream).WriteLines([]byte(lines.String())); err != nil {
		t.Fatal(err)
	}
	last := map[string]int{"0": -2, "1": -1}
	for range 200 {
		p := srv.taken()
		want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"_n","params":{"sessionId":%q,"n":%d}}`, p.session, last[p.session]+2)
		if p.body != want {
			t.Fatalf("got %s, want %s", p.body, want)
		}
		last[p.session] += 2
	}
}

// TestREM53_Body: an answer in the body of the POST's 200 is as good as one on a stream, at once or later, as JSON or
// as events; the lane does not wait for it.
func TestREM53_Body(t *testing.T) {
	srv := newFakeServer(t)
	release := make(chan struct{})
	srv.post = func(w http.ResponseWriter, r *http.Request, body string) bool {
		switch methodOf(body) {
		case methodNew:
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, "{\"jsonrpc\":\"2.0\",\n \"id\":1, \"result\":{\"sessionId\":\"s\"}}\n")
		case methodPrompt:
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "id: 7\ndata: "+update("s", 1)+"\n\n")
			w.(http.Flusher).Flush()
			<-release
			io.WriteString(w, "data: "+result(2, `{}`)+"\n\n")
		case "_html":
			io.WriteString(w, "<html>")
		case "_ok": // taken, by a server that says so in its own way
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"ok":true}`)
		case "_broken":
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"jsonrpc":`)
		default:
			return false
		}
		return true
	}
	o := testOptions(t)
	o.AnswerTimeout, o.Resume = 100*time.Millisecond, true
	c := connect(t, srv, o)
	c.write(req(1, methodNew, `{}`))
	c.want(`{"jsonrpc":"2.0",  "id":1, "result":{"sessionId":"s"}}`)
	srv.opened("s") // it names a session
	c.write(prompt(2, "s"))
	c.want(update("s", 1))
	c.write(cancel("s"))
	srv.taken()
	close(release)
	c.want(result(2, `{}`))
	if cursor := c.s.(*httpStream).d.cursor("s"); cursor != nil {
		t.Errorf("the answer to a POST left the cursor %q", cursor)
	}
	c.write(`{"jsonrpc":"2.0","method":"_ok"}`)
	c.write(req(3, "_html", `{}`))
	if err := c.fails(3); !strings.Contains(err.Error(), "text/html") {
		t.Errorf("got %v", err)
	}
	c.write(req(4, "_broken", `{}`))
	if _, ok := errors.AsType[*OutcomeError](c.fails(4)); !ok {
		t.Errorf("not known what became of it")
	}
}

// TestREM53_Unnamed: updates of a session that come before the answer that names it are read behind that; others are
// not held up.
func TestREM53_Unnamed(t *testing.T) {
	srv := newFakeServer(t)
	c := connect(t, srv, nil)
	c.write(prompt(1, "old"))
	srv.opened("old")
	c.write(req(2, methodNew, `{}`))
	c.write(req(3, methodFork, `{"sessionId":"old"}`))
	srv.send("", update("new", 1))
	srv.send("", update("old", 1))
	srv.send("", update("new", 2))
	srv.send("", update("fork", 1))
	srv.send("", `{"jsonrpc":"2.0","method":"_n"}`)
	c.want(update("old", 1), `{"jsonrpc":"2.0","method":"_n"}`)
	srv.send("", result(2, `{"sessionId":"new"}`))
	c.want(result(2, `{"sessionId":"new"}`), update("new", 1), update("new", 2))
	srv.send("", `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"no"}}`)
	c.want(`{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"no"}}`, update("fork", 1))
	for range 2 { // an id used twice has one answer
		c.write(req(4, methodNew, `{}`))
	}
	srv.send("", result(4, `{}`))
	srv.send("", update("other", 1)) // nobody will name it
	c.want(result(4, `{}`), update("other", 1))
}

// TestREM53_Held: what is held back is bounded: more of it is read before the answer, in order.
func TestREM53_Held(t *testing.T) {
	srv := newFakeServer(t)
	c := connect(t, srv, nil)
	c.write(req(1, methodNew, `{}`))
	srv.taken()
	large := func(n int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"new","n":%d,"x":%q}}`, n, strings.Repeat("x", 1<<20))
	}
	for n := range 6 {
		srv.send("", large(n))
	}
	for n := range 4 {
		c.want(large(n))
	}
	srv.send("", result(1, `{"sessionId":"new"}`))
	c.want(result(1, `{"sessionId":"new"}`), large(4), large(5))
}

// TestREM9_TooLong: an event over the limit is skipped and reported, and the stream continues.
func TestREM9_TooLong(t *testing.T) {
	srv := newFakeServer(t)
	o := testOptions(t)
	o.MaxMessage = 10_000
	c := connect(t, srv, o)
	c.write(prompt(1, "s"))
	srv.send("s", result(1, `"`+strings.Repeat("x", 20_000)+`"`))
	srv.send("s", update("s", 1))
	long, ok := errors.AsType[*rpc.TooLongError](c.next().(error))
	if !ok {
		t.Fatal("no TooLongError")
	}
	if id, response, known := long.ID(); long.Limit != 10_000 || id != rpc.IntID(1) || !response || !known {
		t.Errorf("%+v: %v, %v, %v", long, id, response, known)
	}
	c.want(update("s", 1))
}

// TestREM5_Lines: lines are split into POSTs of one message; an event and a body may have lines.
func TestREM5_Lines(t *testing.T) {
	srv := newFakeServer(t)
	c := connect(t, srv, nil)
	c.write("{\"jsonrpc\":\"2.0\",\n\"method\":\"_a\"}")
	if p := srv.taken(); p.body != `{"jsonrpc":"2.0", "method":"_a"}` {
		t.Errorf("got %q", p.body)
	}
	if err := c.s.(rpc.FastStream).WriteLines([]byte("{\"jsonrpc\":\"2.0\",\"method\":\"_b\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"_c\"}\n")); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"_b", "_c"} {
		if p := srv.taken(); methodOf(p.body) != want {
			t.Errorf("got %q", p.body)
		}
	}
	srv.send("", "data: {\"jsonrpc\":\"2.0\",\r\ndata:  \"method\":\"_d\"\r\ndata: }\r\n\r\n")
	c.want(`{"jsonrpc":"2.0",  "method":"_d" }`)
	srv.send("", "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"_e\"}\n\nevent: error\ndata: {}\n\n:\n\ndata\n\n"+
		"data: {\"jsonrpc\":\"2.0\",\"method\":\"_f\"}\n\n")
	c.want(`{"jsonrpc":"2.0","method":"_e"}`, `{"jsonrpc":"2.0","method":"_f"}`)
}

// TestREM5_NoMessage: what is not a message is reported, and ends nothing.
func TestREM5_NoMessage(t *testing.T) {
	srv := newFakeServer(t)
	o := testOptions(t)
	unsent := make(chan error, 1)
	o.OnUnsent = func(_, _ string, err error) { unsent <- err }
	c := connect(t, srv, o)
	c.write("hello")
	if err := within(t, unsent); !errors.Is(err, errNotMessage) {
		t.Errorf("got %v", err)
	}
	c.write(req(1, "_x", `{}`))
	srv.taken()
}

// TestREM55_Reopened: a stream that ends, or is cut, is opened again, in its turn; what comes then is read, other
// streams are untouched, and the gap is reported.
func TestREM55_Reopened(t *testing.T) {
	for _, how := range []string{endStream, cutStream} {
		for _, session := range []string{"", "s"} {
			t.Run(how+" "+session, func(t *testing.T) {
				srv := newFakeServer(t)
				o := testOptions(t)
				gaps := make(chan string, 10)
				o.OnGap = func(session string, err error) { gaps <- fmt.Sprintf("%q %v", session, err) }
				c := connect(t, srv, o)
				c.write(prompt(1, "s"))
				srv.opened("s")
				srv.taken()
				srv.send(session, update("s", 1))
				srv.send(session, how)
				srv.send(session, update("s", 2))
				srv.send(session, result(1, `{}`))
				srv.opened(session)
				c.want(update("s", 1), update("s", 2), result(1, `{}`))
				want := map[string]string{endStream: io.EOF.Error(), cutStream: io.ErrUnexpectedEOF.Error()}[how]
				if got := within(t, gaps); got != fmt.Sprintf("%q %s", session, want) {
					t.Errorf("reported: %s", got)
				}
				if len(srv.gets) > 0 || len(gaps) > 0 {
					t.Error("another stream was opened again")
				}
			})
		}
	}
}

// TestREM55_NoHeaders: a stream that gets no headers when it is opened again is tried anew.
func TestREM55_NoHeaders(t *testing.T) {
	simulate(t, func(t *testing.T, srv *fakeServer, o *DialOptions) {
		c := connect(t, srv, o)
		var hung atomic.Bool
		srv.get = func(_ http.ResponseWriter, r *http.Request) bool {
			if hung.Swap(true) {
				return false
			}
			<-r.Context().Done()
			return true
		}
		srv.send("", endStream)
		srv.send("", update("s", 1))
		c.want(update("s", 1))
	})
}

// TestREM55_Silent: a stream on which nothing comes, not even a comment, is lost; POSTs that hang as long are too.
func TestREM55_Silent(t *testing.T) {
	simulate(t, func(t *testing.T, srv *fakeServer, o *DialOptions) {
		hang := make(chan struct{})
		defer close(hang)
		srv.post = func(w http.ResponseWriter, r *http.Request, body string) bool {
			if methodOf(body) == "_hangs" {
				select {
				case <-hang:
				case <-r.Context().Done():
				}
				return true
			}
			return false
		}
		gaps := make(chan error, 10)
		o.OnGap = func(session string, err error) { gaps <- err }
		c := connect(t, srv, o)
		c.write(req(1, "_hangs", `{}`))
		if err := within(t, gaps); err != errSilent {
			t.Errorf("got %v", err)
		}
		if err := c.fails(1); !errors.Is(err, errSilent) {
			t.Errorf("got %v", err)
		}
	})
}

// TestREM55_SlowReader: a stream whose messages nobody reads is not lost by that.
func TestREM55_SlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{get: func(int, *http.Request) (int, http.Header, string) {
			return 200, nil, "data: " + update("s", 1) + "\n\n"
		}}
		o := testOptions(t)
		o.HTTPClient = &http.Client{Transport: m}
		o.OnGap = func(session string, err error) { t.Errorf("a gap: %v", err) }
		s, err := Dial("http://localhost", o).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Write([]byte(initRequest)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		for _, want := range []string{initAnswer, update("s", 1)} {
			if got, err := s.Read(); err != nil || string(got) != want {
				t.Fatalf("got %s, %v", got, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		m.tasks.Wait()
	})
}

// TestREM56_Statuses: a request that the server refuses fails alone, with a typed error.
func TestREM56_Statuses(t *testing.T) {
	sentinels := []error{ErrUnauthorized, ErrConnectionGone, ErrStreamTaken, ErrTooLarge, ErrBusy}
	for status, is := range map[int]error{
		400: nil, 401: ErrUnauthorized, 403: ErrUnauthorized, 404: ErrConnectionGone, 409: ErrStreamTaken, 410: ErrConnectionGone,
		413: ErrTooLarge, 415: nil, 429: ErrBusy, 503: ErrBusy, 501: nil, 303: nil,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			srv := newFakeServer(t)
			srv.post = func(w http.ResponseWriter, r *http.Request, body string) bool {
				if methodOf(body) != "_refused" {
					return false
				}
				w.Header().Set("Retry-After", "7")
				http.Error(w, "because", status)
				return true
			}
			o := testOptions(t)
			o.AnswerTimeout = time.Millisecond
			c := connect(t, srv, o)
			message := req(1, "_refused", `{"sessionId":"s"}`)
			c.write(message)
			err := c.fails(1)
			got, ok := errors.AsType[*StatusError](err)
			if !ok || got.Status != status || got.Text != "because" || got.RetryAfter != 7*time.Second {
				t.Fatalf("got %v", err)
			}
			if status == 413 && (got.Size != len(message) || !strings.Contains(err.Error(), fmt.Sprint(len(message)))) {
				t.Errorf("%v does not say the size", err)
			}
			for _, sentinel := range sentinels {
				if errors.Is(err, sentinel) != (sentinel == is) {
					t.Errorf("%v and %v", err, sentinel)
				}
			}
			if _, unknown := errors.AsType[*OutcomeError](err); unknown != (status == 501) {
				t.Errorf("got %v", err)
			}
			c.write(prompt(2, "s"))
			srv.taken()
			srv.send("s", result(2, `{}`))
			c.want(result(2, `{}`))
		})
	}
}

// TestREM56_Endless: for what a server says besides a status nobody waits for long: neither the call that it refuses, nor
// what comes behind a message that it has taken.
func TestREM56_Endless(t *testing.T) {
	for _, status := range []int{202, 401, 404, 500} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			simulate(t, func(t *testing.T, srv *fakeServer, o *DialOptions) {
				release := make(chan struct{})
				defer close(release)
				srv.post = func(w http.ResponseWriter, r *http.Request, body string) bool {
					if methodOf(body) != methodPrompt {
						return false
					}
					srv.posts <- received{body: body}
					w.WriteHeader(status)
					io.WriteString(w, "no")
					w.(http.Flusher).Flush()
					<-release
					return true
				}
				o.Header = func(context.Context) (http.Header, error) { return nil, nil }
				c := connect(t, srv, o)
				c.write(prompt(1, "s"))
				c.write(prompt(2, "s"))
				srv.taken()
				srv.taken()
				if status == 202 {
					return
				}
				got, _ := errors.AsType[*StatusError](c.fails(1))
				if got == nil || got.Status != status || got.Text != "no" {
					t.Errorf("got %v", got)
				}
			})
		})
	}
}

// TestREM56_AnotherNode: a server that knows the connection no more, because another node answers or it has started anew,
// ends it: by a POST as by a stream, with an error that says so.
func TestREM56_AnotherNode(t *testing.T) {
	srv := newFakeServer(t)
	c := connect(t, srv, nil)
	srv.post = func(w http.ResponseWriter, r *http.Request, body string) bool { http.NotFound(w, r); return true }
	srv.get = func(w http.ResponseWriter, r *http.Request) bool { http.NotFound(w, r); return true }
	c.write(req(1, "_x", `{}`))
	if err := c.fails(1); !errors.Is(err, ErrConnectionGone) {
		t.Errorf("got %v", err)
	}
	if err, _ := c.next().(error); !errors.Is(err, ErrConnectionGone) {
		t.Errorf("got %v", err)
	}
	t.Run("stream of a session", func(t *testing.T) {
		srv := newFakeServer(t)
		c := connect(t, srv, nil)
		c.write(prompt(1, "s"))
		srv.opened("s")
		srv.taken()
		srv.get = func(w http.ResponseWriter, r *http.Request) bool { http.NotFound(w, r); return true }
		srv.send("s", endStream)
		if err, _ := c.next().(error); !errors.Is(err, ErrConnectionGone) {
			t.Errorf("got %v", err)
		} else if _, alone := errors.AsType[*rpc.CallLostError](err); alone {
			t.Errorf("%v ends one call, and not the connection", err)
		}
	})
	if err := c.s.Write([]byte(cancel("s"))); !errors.Is(err, ErrConnectionGone) {
		t.Errorf("Write: %v", err)
	}
}

// TestREM56_SessionGone: a session whose stream is lost for good fails the calls that wait for it, and no others.
func TestREM56_SessionGone(t *testing.T) {
	srv := newFakeServer(t)
	var gone atomic.Bool
	srv.get = func(w http.ResponseWriter, r *http.Request) bool {
		if gone.Load() && r.Header.Get(HeaderSession) == "a" {
			http.Error(w, "", http.StatusGone)
			return true
		}
		return false
	}
	c := connect(t, srv, nil)
	c.write(prompt(1, "a"))
	c.write(prompt(2, "b"))
	srv.taken()
	srv.taken()
	gone.Store(true)
	srv.send("a", endStream)
	if err := c.fails(1); !errors.Is(err, ErrConnectionGone) {
		t.Errorf("got %v", err)
	}
	srv.send("b", result(2, `{}`))
	c.want(result(2, `{}`))
}

// TestREM56_Refresh: after a 401 or a 403 the header is asked for once more.
func TestREM56_Refresh(t *testing.T) {
	srv := newFakeServer(t)
	check := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") == "Bearer good" {
			return false
		}
		http.Error(w, "", http.StatusUnauthorized)
		return true
	}
	srv.post = func(w http.ResponseWriter, r *http.Request, _ string) bool { return check(w, r) }
	srv.get, srv.del = check, check
	o := testOptions(t)
	var mu sync.Mutex
	token, refreshed := "old", 0
	o.Header = func(ctx context.Context) (http.Header, error) {
		mu.Lock()
		defer mu.Unlock()
		if refused := Refused(ctx); refused != nil {
			if refused.Status != http.StatusUnauthorized {
				t.Errorf("refused: %v", refused)
			}
			refreshed++
			if token == "old" {
				token = "good"
			}
		}
		return http.Header{"Authorization": {"Bearer " + token}}, nil
	}
	c := connect(t, srv, o)
	if refreshed != 1 {
		t.Errorf("refreshed %d times", refreshed)
	}
	mu.Lock()
	token = "bad"
	mu.Unlock()
	c.write(req(1, "_x", `{}`))
	if err := c.fails(1); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("got %v", err)
	}
	mu.Lock()
	if refreshed != 2 {
		t.Errorf("refreshed %d times", refreshed)
	}
	token = "good"
	mu.Unlock()
	c.write(req(2, "_x", `{}`))
	srv.taken()
}

// TestREM56_Unknown: after a 502, or when the connection breaks, nobody knows whether the server took the request: an
// answer that comes late settles the call, otherwise it fails as what it is; it is not sent again.
func TestREM56_Unknown(t *testing.T) {
	for _, how := range []string{"502", "cut"} {
		t.Run(how, func(t *testing.T) {
			simulate(t, func(t *testing.T, srv *fakeServer, o *DialOptions) {
				var sent atomic.Int32
				srv.post = func(w http.ResponseWriter, r *http.Request, body string) bool {
					if methodOf(body) != methodPrompt {
						return false
					}
					sent.Add(1)
					if how == "cut" {
						panic(http.ErrAbortHandler)
					}
					http.Error(w, "bad gateway", http.StatusBadGateway)
					return true
				}
				c := connect(t, srv, o)
				c.write(prompt(1, "s"))
				srv.opened("s")
				srv.send("s", update("s", 1)) // the turn runs
				c.want(update("s", 1))
				srv.send("s", result(1, `{}`))
				c.want(result(1, `{}`))
				c.write(prompt(2, "s"))
				err := c.fails(2)
				if _, ok := errors.AsType[*OutcomeError](err); !ok {
					t.Errorf("got %v", err)
				}
				if status, ok := errors.AsType[*StatusError](err); ok != (how == "502") || ok && status.Status != 502 {
					t.Errorf("got %v", err)
				}
				if sent.Load() != 2 {
					t.Errorf("%d POSTs", sent.Load())
				}
			})
		})
	}
}

// TestREM12_Doubled: a proxy that sends a POST twice passes on that the second one was refused, because its id is in use:
// the call waits for its answer.
func TestREM12_Doubled(t *testing.T) {
	srv := newFakeServer(t)
	srv.post = func(w http.ResponseWriter, r *http.Request, body string) bool {
		if methodOf(body) != methodPrompt {
			return false
		}
		code := -32600
		if strings.Contains(body, `"id":1,"method":"session/prompt","params":{"sessionId":"other"`) {
			code = -32602
		}
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"Invalid request: the id is in use"}}`, code)
		return true
	}
	c := connect(t, srv, nil)
	c.write(prompt(1, "s"))
	srv.opened("s")
	srv.send("s", update("s", 1))
	c.want(update("s", 1))
	srv.send("s", result(1, `{}`))
	c.want(result(1, `{}`))
	c.write(prompt(2, "s")) // whose id it is not
	if err := c.fails(2); !strings.Contains(err.Error(), "400") {
		t.Errorf("got %v", err)
	}
	c.write(prompt(1, "other")) // which is wrong otherwise
	if err := c.fails(1); !strings.Contains(err.Error(), "400") {
		t.Errorf("got %v", err)
	}
}

// TestREM57_Again: a notification or an answer that the server did not take is sent once more, and then reported.
func TestREM57_Again(t *testing.T) {
	for name, test := range map[string]struct {
		fail func(http.ResponseWriter)
		want int // POSTs
	}{
		"502":  {func(w http.ResponseWriter) { w.WriteHeader(502) }, 2},
		"429":  {func(w http.ResponseWriter) { w.WriteHeader(429) }, 2},
		"cut":  {func(w http.ResponseWriter) { panic(http.ErrAbortHandler) }, 2},
		"400":  {func(w http.ResponseWriter) { w.WriteHeader(400) }, 1},
		"401":  {func(w http.ResponseWriter) { w.WriteHeader(401) }, 1},
		"once": {nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			srv := newFakeServer(t)
			var mu sync.Mutex
			posts := map[string]int{}
			srv.post = func(w http.ResponseWriter, r *http.Request, body string) bool {
				if methodOf(body) == methodInitialize || methodOf(body) == methodPrompt {
					return false
				}
				mu.Lock()
				posts[body]++
				n := posts[body]
				mu.Unlock()
				if test.fail == nil {
					if n == 1 {
						w.WriteHeader(502)
						return true
					}
					return false
				}
				test.fail(w)
				return true
			}
			o := testOptions(t)
			unsent := make(chan string, 10)
			o.OnUnsent = func(session, method string, err error) { unsent <- session + " " + method }
			c := connect(t, srv, o)
			c.write(prompt(1, "s"))
			srv.taken()
			ask := `{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s"}}`
			srv.send("s", ask)
			c.want(ask)
			c.write(cancel("s"))
			c.write(result(7, `{}`))
			if test.fail == nil {
				srv.taken()
				srv.taken()
			} else {
				got := []string{within(t, unsent), within(t, unsent)}
				slices.Sort(got)
				if !slices.Equal(got, []string{"s ", "s session/cancel"}) {
					t.Errorf("reported: %q", got)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if posts[cancel("s")] != test.want || posts[result(7, `{}`)] != test.want {
				t.Errorf("POSTs: %v", posts)
			}
			srv.send("s", result(1, `{}`))
			c.want(result(1, `{}`))
		})
	}
}

// TestREM58_Redirect: a redirect within the origin is followed, one to another is not: it would carry tokens there.
func TestREM58_Redirect(t *testing.T) {
	other := newFakeServer(t)
	other.post = func(http.ResponseWriter, *http.Request, string) bool {
		t.Error("the other origin was asked")
		return false
	}
	srv := newFakeServer(t)
	srv.post = func(w http.ResponseWriter, r *http.Request, body string) bool {
		switch {
		case r.URL.Path == "/old":
			http.Redirect(w, r, "/new", http.StatusPermanentRedirect)
		case r.URL.Path == "/get":
			http.Redirect(w, r, "/new", http.StatusFound)
		case r.URL.Path == "/other":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		default:
			return false
		}
		return true
	}
	srv.get = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusPermanentRedirect)
			return true
		}
		return false
	}
	for path, status := range map[string]int{"/old": 0, "/get": 302, "/other": 307} {
		c := dial(t, srv.URL+path, nil)
		c.write(initRequest)
		if status == 0 {
			c.want(initAnswer)
		} else if got, ok := errors.AsType[*StatusError](c.fails(0)); !ok || got.Status != status {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// lateAnswer gives the answer to initialize only when nobody waits for it any more.
type lateAnswer struct{ http.RoundTripper }

func (l lateAnswer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost {
		return l.RoundTripper.RoundTrip(r)
	}
	resp, err := l.RoundTripper.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
	<-r.Context().Done()
	return resp, err
}

// TestREM59_CloseWhileOpening: a connection whose id comes while the client ends is ended at the server too.
func TestREM59_CloseWhileOpening(t *testing.T) {
	simulate(t, func(t *testing.T, srv *fakeServer, o *DialOptions) {
		o.HTTPClient.Transport = lateAnswer{o.HTTPClient.Transport}
		c := dial(t, srv.URL, o)
		c.write(initRequest)
		if err := c.s.Close(); err != nil {
			t.Fatal(err)
		}
		within(t, srv.deleted)
	})
}

// TestREM59_Close: the server is told first, then the streams end; not when the connection is gone, and not for long.
func TestREM59_Close(t *testing.T) {
	t.Run("usual", func(t *testing.T) {
		srv := newFakeServer(t)
		ended := make(chan string, 2)
		srv.get = func(w http.ResponseWriter, r *http.Request) bool {
			srv.serveStream(w, r)
			ended <- r.Header.Get(HeaderSession)
			return true
		}
		srv.del = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get(HeaderConnection) != connectionID {
				t.Error("the DELETE has no connection")
			}
			if len(ended) > 0 {
				t.Error("a stream ended before")
			}
			return false
		}
		c := connect(t, srv, nil)
		c.write(prompt(1, "s"))
		srv.opened("s")
		c.write(cancel("s"))
		if err := c.s.Close(); err != nil {
			t.Error(err)
		}
		within(t, srv.deleted)
		within(t, ended)
		within(t, ended)
		if srv.taken().body != prompt(1, "s") || srv.taken().body != cancel("s") {
			t.Error("what was written before is not sent")
		}
		if err := c.s.Write([]byte(cancel("s"))); err == nil {
			t.Error("Write after Close")
		}
	})
	t.Run("gone", func(t *testing.T) {
		srv := newFakeServer(t)
		c := connect(t, srv, nil)
		srv.get = func(w http.ResponseWriter, r *http.Request) bool { http.NotFound(w, r); return true }
		srv.del = func(w http.ResponseWriter, r *http.Request) bool { t.Error("a DELETE after 404"); return false }
		srv.send("", endStream)
		if err, _ := c.next().(error); !errors.Is(err, ErrConnectionGone) {
			t.Errorf("got %v", err)
		}
		if err := c.s.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("hanging", func(t *testing.T) {
		srv := newFakeServer(t)
		srv.del = func(w http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
		srv.post = func(w http.ResponseWriter, r *http.Request, body string) bool {
			if methodOf(body) == "_hangs" {
				<-r.Context().Done()
				return true
			}
			return false
		}
		o := testOptions(t)
		o.CloseTimeout = 100 * time.Millisecond
		c := connect(t, srv, o)
		c.write(req(1, "_hangs", `{}`))
		begin := time.Now()
		if err := c.s.Close(); err != nil || time.Since(begin) > patience {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// TestREM10_Cookies: a cookie comes back with every request, and with the next connection.
func TestREM10_Cookies(t *testing.T) {
	srv := newFakeServer(t)
	var mu sync.Mutex
	without := 0
	check := func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if cookie, err := r.Cookie("node"); err != nil || cookie.Value != "7" {
			without++
		}
	}
	srv.post = func(w http.ResponseWriter, r *http.Request, body string) bool {
		check(r)
		http.SetCookie(w, &http.Cookie{Name: "node", Value: "7"})
		return false
	}
	srv.get = func(w http.ResponseWriter, r *http.Request) bool { check(r); return false }
	srv.del = func(w http.ResponseWriter, r *http.Request) bool { check(r); w.WriteHeader(202); return true }
	transport := Dial(srv.URL, testOptions(t))
	for range 2 {
		s, err := transport.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := newClient(t, s)
		c.write(initRequest)
		c.want(initAnswer)
		c.write(req(1, "_x", `{}`))
		srv.taken()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if without != 1 {
		t.Errorf("%d requests without the cookie", without)
	}
}

// counting is a RoundTripper.
type counting struct {
	http.RoundTripper
	n atomic.Int32
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// TestREM11_REM58_Client: the caller's client makes every request, and the header is asked for each.
func TestREM11_REM58_Client(t *testing.T) {
	srv := newFakeServer(t)
	o := testOptions(t)
	trips := &counting{RoundTripper: srv.Client().Transport}
	o.HTTPClient = &http.Client{Transport: trips, Timeout: 1} // its timeout is not that of a stream
	var headers atomic.Int32
	o.Header = func(context.Context) (http.Header, error) {
		return http.Header{"X-N": {fmt.Sprint(headers.Add(1))}}, nil
	}
	c := connect(t, srv, o)
	c.write(req(1, "_x", `{}`))
	if p := srv.taken(); p.header.Get("X-N") != "3" {
		t.Errorf("got %v", p.header)
	}
	if err := c.s.Close(); err != nil {
		t.Error(err)
	}
	if trips.n.Load() != 4 || headers.Load() != 4 {
		t.Errorf("%d requests, %d headers", trips.n.Load(), headers.Load())
	}
	if o.HTTPClient.Jar != nil || o.HTTPClient.CheckRedirect != nil {
		t.Error("the caller's client was changed")
	}
	t.Run("error", func(t *testing.T) {
		o := testOptions(t)
		noToken := errors.New("no token")
		o.Header = func(context.Context) (http.Header, error) { return nil, noToken }
		c := dial(t, srv.URL, o)
		c.write(initRequest)
		if err := c.fails(0); !errors.Is(err, noToken) {
			t.Errorf("got %v", err)
		}
	})
}

// TestREM2_URL: the scheme chooses, and an error never repeats the URL.
func TestREM2_URL(t *testing.T) {
	for url, want := range map[string]string{
		"ftp://host/secret":   `acp: unsupported scheme "ftp", expected http, https, ws or wss`,
		"http://":             "acp: the URL has no host",
		"/secret":             "acp: the URL has no host",
		"http://a b/secret":   "acp: invalid URL",
		"host/acp?token=abcd": "acp: the URL has no host",
	} {
		if _, err := Dial(url, nil).Connect(t.Context()); err == nil || err.Error() != want {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestREM87_Insecure: nothing that may be a token goes out without TLS, except to this machine.
func TestREM87_Insecure(t *testing.T) {
	header := func(context.Context) (http.Header, error) { return nil, nil }
	for url, refused := range map[string]bool{
		"http://example.com/acp":               false,
		"http://user:pw@example.com/acp":       true,
		"http://example.com/acp?token=1":       true,
		"ws://example.com/acp?X-Access_KEY=1":  true,
		"http://127.0.0.1/acp?token=1":         false,
		"ws://[::1]:80/?token=1":               false,
		"ws://[::ffff:127.0.0.1]:80/?token=1":  false,
		"ws://user:pw@localhost/":              false,
		"ws://agent.localhost/?token=1":        true, // a name of DNS, for Go
		"ws://localhost./?token=1":             true, // that goes to a proxy
		"ws://LOCALHOST/?token=1":              true,
		"ws://localhost.example.com/?token=1":  true,
		"http://10.0.0.1/?token=1":             true,
		"https://user:pw@example.com/?token=1": false,
		"wss://example.com/?token=1":           false,
	} {
		for _, o := range []*DialOptions{nil, {AllowInsecure: true}, {Header: header}, {Header: header, AllowInsecure: true}} {
			want := refused
			if o != nil {
				want = !o.AllowInsecure && (refused || o.Header != nil && (strings.Contains(url, "example.com") || refused) && !strings.Contains(url, "s://e") &&
					!strings.Contains(url, "https://") && !strings.Contains(url, "wss://"))
			}
			d := Dial(url, o).(*dialer)
			if got := errors.Is(d.bad, ErrInsecure); got != want {
				t.Errorf("%s with %+v: %v", url, o, d.bad)
			}
			if d.bad != nil && strings.Contains(d.bad.Error(), "pw") {
				t.Errorf("%v has the password", d.bad)
			}
		}
	}
}

// TestREM9_Queue: what waits to be sent is bounded, and Write waits.
func TestREM9_Queue(t *testing.T) {
	var release chan struct{} // of the bubble
	var posts atomic.Int32
	m := &memory{
		get: func(int, *http.Request) (int, http.Header, string) { return 200, nil, ":\n\n" },
		post: func(string) (int, time.Duration) {
			<-release
			posts.Add(1)
			return 202, 0
		},
	}
	inMemory(t, m, &DialOptions{IdleTimeout: -1, MaxQueued: 10_000}, func(t *testing.T, c *client) {
		release = make(chan struct{})
		big := fmt.Sprintf(`{"jsonrpc":"2.0","method":"_n","params":{"x":%q}}`, strings.Repeat("x", 4000))
		c.write(big)
		c.write(big)
		wrote := make(chan error, 1)
		go func() { wrote <- c.s.Write([]byte(big)) }()
		synctest.Wait()
		if len(wrote) > 0 {
			t.Errorf("Write did not wait: %v", <-wrote)
		}
		close(release)
		if err := within(t, wrote); err != nil {
			t.Error(err)
		}
		huge := fmt.Sprintf(`{"jsonrpc":"2.0","method":"_n","params":{"x":%q}}`, strings.Repeat("x", 40_000))
		c.write(huge) // alone it may be longer
		synctest.Wait()
		if n := posts.Load(); n != 4 {
			t.Errorf("%d POSTs", n)
		}
	})
}
