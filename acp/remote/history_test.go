package remote_test

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/remote"
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
