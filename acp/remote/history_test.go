package remote_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/conformance"
)

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

// getAfter opens a stream behind an event.
func (p *peer) getAfter(session, cursor string) (*reader, int) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p.t.Cleanup(cancel)
	resp := p.request(ctx, "GET", "", p.header("Accept", "text/event-stream", "Acp-Session-Id", session, "Last-Event-ID", cursor)...)
	p.t.Cleanup(func() { resp.Body.Close() })
	return &reader{t: p.t, resp: resp, cancel: cancel, lines: bufio.NewReader(resp.Body), wait: p.patience}, resp.StatusCode
}

// TestREM73_Resumption: a stream that is cut continues behind the last event that came, with the same ids, no gap, and none
// twice.
func TestREM73_Resumption(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			p := serveBy(t, protocol, &remote.HandlerOptions{History: remote.MemoryHistory(1000, 1<<20)}, nil).open()
			session := p.get("s1")
			for i := range 100 {
				p.send(update("s1", i))
			}
			seen := map[string]int{}
			last := event{}
			for i := range 34 {
				last = session.event()
				if seen[last.id] = i; last.data != update("s1", i) || len(seen) != i+1 {
					t.Fatalf("event %d is %+v", i, last)
				}
			}
			session.close()
			p.send(update("s1", 100)) // nobody reads, as it may seem
			again, status := p.getAfter("s1", last.id)
			if status != http.StatusOK {
				t.Fatal(status)
			}
			p.send(update("s1", 101))
			for i := 34; i < 102; i++ {
				if e := again.event(); e.data != update("s1", i) || seen[e.id] != 0 {
					t.Fatalf("event %d is %+v", i, e)
				} else {
					seen[e.id] = i
				}
			}
			// The same again has the same ids.
			again.close()
			again, _ = p.getAfter("s1", last.id)
			for i := 34; i < 102; i++ {
				if e := again.event(); e.data != update("s1", i) || seen[e.id] != i {
					t.Fatalf("event %d is %+v", i, e)
				}
			}
		})
	}
}

// TestREM73_Refused: what is not kept is refused, and the stream stays whose it is.
func TestREM73_Refused(t *testing.T) {
	o := withTokens()
	o.History = remote.MemoryHistory(10, 2000)
	f := serve(t, o)
	p := f.open(alice...)
	session := p.get("s1")
	first, other := event{}, event{}
	for i := range 11 {
		p.send(update("s1", i))
		if e := session.event(); i == 0 {
			first = e
		}
	}
	p.send(update("s2", 1))
	other = p.get("s2").event()
	again, status := p.getAfter("s1", first.id)
	if status != http.StatusOK {
		t.Errorf("the oldest: %d", status)
	}
	for i := range 10 { // what it leaves would be the next one's
		if e := again.event(); e.data != update("s1", i+1) {
			t.Errorf("behind the oldest: %+v", e)
		}
	}
	session = p.get("s1")
	p.send(update("s1", 11))
	for name, cursor := range map[string]string{
		"too old": first.id, "another session's": other.id, "unknown": "x", "not yet": strings.TrimRight(first.id, "0") + "1000",
		"huge": strings.TrimRight(first.id, "0") + "18446744073709551615",
	} {
		if _, status := p.getAfter("s1", cursor); status != http.StatusConflict {
			t.Errorf("%s: %d", name, status)
		}
	}
	if e := session.event(); e.data != update("s1", 11) {
		t.Errorf("the stream got %+v", e)
	}
	q := &peer{fixture: f, id: p.id, extra: bob}
	if _, status := q.getAfter("s1", first.id); status != http.StatusNotFound {
		t.Errorf("another principal: %d", status)
	}
	// Bytes are bounded too.
	for i := range 3 {
		p.send(note("x", fmt.Sprintf(`{"sessionId":"s1","n":%d,"text":%q}`, i, strings.Repeat("x", 900))))
		first = session.event()
		if i == 0 {
			other = first
		}
	}
	p.send(note("x", fmt.Sprintf(`{"sessionId":"s1","text":%q}`, strings.Repeat("x", 1900))))
	if _, status := p.getAfter("s1", other.id); status != http.StatusConflict {
		t.Errorf("too much: %d", status)
	}
}

// TestREM73_Closed: of sessions that were closed long ago nothing is kept, so that a connection on which many come and go
// does not grow.
func TestREM73_Closed(t *testing.T) {
	p := serve(t, &remote.HandlerOptions{History: remote.MemoryHistory(1000, 1<<20)}).open()
	own := p.get("")
	use := func(id int, session, end string) string {
		p.post(request(id, "session/load", fmt.Sprintf(`{"sessionId":%q}`, session)))
		own.event()
		s := p.get(session)
		p.post(request(id+1, end, fmt.Sprintf(`{"sessionId":%q,"n":1}`, session)))
		if e := s.event(); e.data != update(session, 0) {
			t.Fatalf("%+v", e)
		}
		last := s.event() // the answer
		s.close()
		return last.id
	}
	const many = 40
	var ids []string
	for i := range many {
		ids = append(ids, use(1+3*i, fmt.Sprint("s", i), []string{"session/close", "session/delete"}[i%2]))
		waitFor(t, func() bool { return p.Stats().Streams == 1 })
	}
	// One that was opened again is not forgotten.
	p.post(request(1000, "session/load", fmt.Sprintf(`{"sessionId":"s%d"}`, many-10)))
	own.event()
	for i := range 20 {
		use(2000+3*i, fmt.Sprint("t", i), "session/close")
		waitFor(t, func() bool { return p.Stats().Streams == 1 })
	}
	for session, want := range map[int]int{0: 409, 1: 409, many - 11: 409, many - 10: 200, many - 1: 409} {
		if _, status := p.getAfter(fmt.Sprint("s", session), ids[session]); status != want {
			t.Errorf("session %d: %d, want %d", session, status, want)
		}
	}
	if _, status := p.getAfter("t19", ids[0]); status != 409 {
		t.Errorf("an id of another: %d", status)
	}
}

// TestREM73_OtherConnection: a client that resumes a session on another connection sends the cursor that it had. A server
// that does not know it refuses it, which is a gap, and the session works.
func TestREM73_OtherConnection(t *testing.T) {
	var cursors []string
	var mu sync.Mutex
	agent := remote.ServeAgent(acp.ServeAgent, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		ResumeSession: func(context.Context, *acp.AgentSession, *acp.ResumeSessionRequest) (*acp.ResumeSessionResponse, error) {
			return &acp.ResumeSessionResponse{}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, s.Update(ctx, acp.AgentMessageText("hello"))
		},
	}, nil, &remote.HandlerOptions{History: remote.MemoryHistory(100, 1<<20)})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cursor := r.Header.Get("Last-Event-ID"); cursor != "" && r.Header.Get(remote.HeaderSession) == "s" {
			mu.Lock()
			cursors = append(cursors, cursor)
			mu.Unlock()
		}
		agent.ServeHTTP(w, r)
	}))
	defer server.Close()
	gaps := make(chan string, 10)
	transport := remote.Dial(server.URL, &remote.DialOptions{
		Resume: true, MinBackoff: time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		OnGap: func(session string, _ error) { gaps <- session },
	})
	for i := range 2 {
		conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, transport, nil), acp.ClientHandlers{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var s *acp.ClientSession
		if i == 0 {
			s, err = conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"})
		} else {
			s, err = conn.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: "s", Cwd: "/w"})
		}
		if err == nil {
			_, err = s.Prompt(t.Context(), acp.TextBlock("hi"))
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if session := <-gaps; session != "s" || len(cursors) != 1 {
		t.Errorf("a gap in %q, cursors %q", session, cursors)
	}
}
