package remote_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/internal/test/tier"
)

func request(id any, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":%q,"params":%s}`, id, method, params)
}

func note(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
}

func result(id any, method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{"for":%q}}`, id, method)
}

// send has the agent of a connection send something.
func (p *peer) send(text string) {
	p.t.Helper()
	if err := p.agent.send("%s", text); err != nil {
		p.t.Fatal(err)
	}
}

// TestREM3_REM4_ConnectionIDs: ids are random, of 128 bits or more, and in headers, not in the result. Each connection
// has an agent of its own.
func TestREM3_REM4_ConnectionIDs(t *testing.T) {
	f := serve(t, nil)
	if _, body := f.do("POST", initialize); strings.Contains(body, "onnectionId") {
		t.Errorf("initialize: %s", body)
	}
	seen := map[string]bool{}
	for i := range 50 {
		var id string
		if i%2 == 0 {
			id = f.open().id
		} else {
			id = f.openSocket().resp.Header.Get("Acp-Connection-Id")
		}
		if len(id)*5 < 128 || seen[id] { // base 32
			t.Fatalf("id %q, seen before: %v", id, seen[id])
		}
		seen[id] = true
	}
}

// waitFor waits for what nothing tells of.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not happen")
		}
	}
}

// gone waits until no connection is left of those over a transport, in steps that take no time.
func (f *fixture) gone(transport string, within time.Duration) {
	f.t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(time.Second / 10) {
		synctest.Wait()
		n := f.Stats().Connections[transport]
		if n == 0 {
			return
		}
		if time.Now().After(end) {
			f.t.Errorf("%d connections are left after %v", n, within)
			return
		}
	}
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

// TestREM46_Deadlines: a stream that is not read is cut, through middleware and by each version of HTTP, and one that is
// read slowly lasts longer than any deadline.
func TestREM46_Deadlines(t *testing.T) {
	tier.Need(t, tier.Normal)
	around := func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(wrapped{w}, r) })
	}
	for _, protocol := range protocols[:tier.Pick(0, 2, len(protocols), len(protocols))] {
		t.Run(protocol, func(t *testing.T) {
			bubbleBy(t, protocol, &remote.HandlerOptions{KeepAlive: -1}, around, func(f *fixture) {
				const stall = time.Minute // the default
				p := f.open()
				own, session := p.get(""), p.get("s1")
				big := note("x", `{"text":"`+strings.Repeat("x", 8<<20)+`","sessionId":"s1"}`) // more than the client buffers
				began := time.Now()
				p.send(big)
				waitFor(t, func() bool { return p.Stats().Streams == 1 })
				if took := time.Since(began).Round(time.Second); took != stall {
					t.Errorf("the stream was cut after %v", took)
				}
				if _, err := session.next(); err == nil {
					t.Error("all of it came")
				}
				session = p.get("s1")
				session.lines = bufio.NewReader(&slow{Reader: session.lines, pause: stall / 2})
				session.want(big) // it had not come, so that it comes again
				p.send(note("x", "1"))
				own.want(note("x", "1")) // idle for longer than the deadline
				// The deadlines are taken back: the connections of TCP are used again.
				session.close()
				time.Sleep(stall + stall/10)
				p.post(note("x", "{}"))
			})
		})
	}
}

// TestClientThatIsGoneTakesNothing: a GET whose client went away before it was served leaves the messages to the next.
func TestClientThatIsGoneTakesNothing(t *testing.T) {
	f := serve(t, nil)
	p := f.open()
	p.send(update("s1", 1))
	local := context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1})
	gone, leave := context.WithCancel(local)
	leave()
	r := httptest.NewRequestWithContext(gone, "GET", f.url, nil)
	for header := p.header("Accept", "text/event-stream", "Acp-Session-Id", "s1"); len(header) > 0; header = header[2:] {
		r.Header.Set(header[0], header[1])
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "session/update") {
		t.Errorf("a client that is gone got %d %q", w.Code, w.Body)
	}
	p.get("s1").want(update("s1", 1))
}
