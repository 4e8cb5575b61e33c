package remote

// The tests of the client in which time matters. They run in a bubble of synctest, over responses that are made in
// memory.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
)

// memory is a RoundTripper that answers itself.
type memory struct {
	// get answers the GETs; what it returns as body is written, and then the stream stays open, unless that ends with
	// "END".
	get  func(n int, r *http.Request) (status int, header http.Header, body string)
	post func(body string) (status int, wait time.Duration)

	mu    sync.Mutex
	gets  []time.Time
	ids   []string // Last-Event-ID of each
	live  *io.PipeWriter
	tasks sync.WaitGroup
}

func (m *memory) RoundTrip(r *http.Request) (*http.Response, error) {
	respond := func(status int, header http.Header, body io.ReadCloser) *http.Response {
		if header == nil {
			header = http.Header{}
		}
		return &http.Response{StatusCode: status, Header: header, Body: body, Request: r, ContentLength: -1}
	}
	text := func(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }
	switch r.Method {
	case http.MethodPost:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if methodOf(string(body)) == methodInitialize {
			return respond(200, http.Header{HeaderConnection: {connectionID}}, text(initAnswer)), nil
		}
		status := 202
		if m.post != nil {
			var wait time.Duration
			status, wait = m.post(string(body))
			select {
			case <-time.After(wait):
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		}
		return respond(status, nil, text("")), nil
	case http.MethodDelete:
		return respond(202, nil, text("")), nil
	}
	m.mu.Lock()
	n := len(m.gets)
	m.gets = append(m.gets, time.Now())
	m.ids = append(m.ids, r.Header.Get("Last-Event-ID"))
	m.mu.Unlock()
	status, header, body := m.get(n, r)
	if status == 0 {
		return nil, errors.New("the network is down")
	}
	if status != 200 {
		return respond(status, header, text(body)), nil
	}
	in, out := io.Pipe()
	stop := context.AfterFunc(r.Context(), func() { out.CloseWithError(r.Context().Err()) })
	m.mu.Lock()
	m.live = out
	m.mu.Unlock()
	m.tasks.Go(func() {
		rest, ends := strings.CutSuffix(body, "END")
		io.WriteString(out, rest)
		if ends {
			stop()
			out.Close()
		}
	})
	return respond(200, http.Header{"Content-Type": {"text/event-stream"}}, in), nil
}

// waits are the times between the GETs.
func (m *memory) waits() (waits []time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := 1; i < len(m.gets); i++ {
		waits = append(waits, m.gets[i].Sub(m.gets[i-1]))
	}
	return waits
}

// inMemory runs a test with a client over m, with the defaults unless o is given.
func inMemory(t *testing.T, m *memory, o *DialOptions, f func(t *testing.T, c *client)) {
	synctest.Test(t, func(t *testing.T) {
		if o == nil {
			o = &DialOptions{}
		}
		o.HTTPClient = &http.Client{Transport: m}
		if o.Logger == nil {
			o.Logger = testOptions(t).Logger
		}
		s, err := Dial("http://localhost", o).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.tasks.Wait) // after the end of the client
		c := newClient(t, s)
		c.write(initRequest)
		if got := <-c.read; got != initAnswer {
			t.Fatalf("got %v", got)
		}
		f(t, c)
	})
}

// TestREM55_Backoff: a stream that cannot be opened again is tried after 1 s × 1.5ⁿ, up to 30 s, and a random part of
// that; for so long as a server keeps what it has to send; then the connection is lost.
func TestREM55_Backoff(t *testing.T) {
	m := &memory{get: func(n int, _ *http.Request) (int, http.Header, string) {
		if n == 0 {
			return 200, nil, ":\n\nEND"
		}
		return []int{0, 502, 409}[n%3], nil, ""
	}}
	inMemory(t, m, nil, func(t *testing.T, c *client) {
		begin := time.Now()
		err := (<-c.read).(error)
		if took := time.Since(begin); took < 6*time.Minute || took > 7*time.Minute {
			t.Errorf("given up after %v", took)
		}
		if !strings.Contains(err.Error(), "6m0s") {
			t.Errorf("got %v", err)
		}
		waits := m.waits()
		limit, sum, some := time.Second, time.Duration(0), map[time.Duration]bool{}
		for i, wait := range waits {
			if wait > limit {
				t.Errorf("wait %d is %v, more than %v", i, wait, limit)
			}
			limit = min(limit*3/2, 30*time.Second)
			sum += wait
			some[wait] = true
		}
		if len(waits) < 12 || len(waits) > 200 || len(some) < len(waits)/2 {
			t.Errorf("waited %v", waits)
		}
	})
}

// TestREM55_Anew: the waits begin anew only when a message came: not for a stream that opens and ends.
func TestREM55_Anew(t *testing.T) {
	for _, message := range []bool{false, true} {
		m := &memory{get: func(n int, _ *http.Request) (int, http.Header, string) {
			if message {
				return 200, nil, "data: " + update("s", n) + "\n\nEND"
			}
			return 200, nil, ":\n\nEND"
		}}
		inMemory(t, m, nil, func(t *testing.T, c *client) {
			time.Sleep(10 * time.Minute)
			waits := m.waits()
			longest := time.Duration(0)
			for _, wait := range waits {
				longest = max(longest, wait)
			}
			if message != (longest <= time.Second) {
				t.Errorf("messages %v: the longest wait was %v", message, longest)
			}
			if len(c.read) > 0 != message {
				t.Errorf("%d messages", len(c.read))
			}
		})
	}
}

// TestREM55_Retry: what the server asks for is honoured, within reason.
func TestREM55_Retry(t *testing.T) {
	for name, test := range map[string]struct {
		status       int
		header, body string
		least, most  time.Duration
	}{
		"retry":             {200, "", "retry: 3000\n\nEND", 3 * time.Second, 3 * time.Second},
		"retry for ever":    {200, "", "retry: 99999999999\n\nEND", longestRetry, longestRetry},
		"Retry-After":       {503, "20", "", 20 * time.Second, 20 * time.Second},
		"Retry-After, date": {429, "date", "", 39 * time.Second, 40 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			m := &memory{}
			m.get = func(n int, _ *http.Request) (int, http.Header, string) {
				if n == 1 {
					after := test.header
					if after == "date" {
						after = time.Now().Add(40 * time.Second).UTC().Format(http.TimeFormat)
					}
					return test.status, http.Header{"Retry-After": {after}}, test.body
				}
				if n == 0 {
					return 200, nil, ":\n\nEND"
				}
				return 200, nil, ""
			}
			inMemory(t, m, nil, func(t *testing.T, c *client) {
				time.Sleep(10 * time.Minute)
				waits := m.waits()
				if len(waits) < 2 || waits[1] < test.least || waits[1] > test.most {
					t.Errorf("waited %v", waits)
				}
			})
		})
	}
}

// TestREM55_Comments keep a stream alive on which nothing else comes; without them it is opened again after a minute.
func TestREM55_Comments(t *testing.T) {
	m := &memory{get: func(int, *http.Request) (int, http.Header, string) { return 200, nil, ":\n\n" }}
	inMemory(t, m, nil, func(t *testing.T, c *client) {
		for range 40 {
			time.Sleep(15 * time.Second)
			m.mu.Lock()
			live := m.live
			m.mu.Unlock()
			io.WriteString(live, ":\n\n")
		}
		if n := len(m.waits()); n != 0 {
			t.Errorf("opened again %d times", n)
		}
		time.Sleep(62 * time.Second)
		if n := len(m.waits()); n != 1 {
			t.Errorf("opened again %d times", n)
		}
	})
}

// TestREM73_Resume: if wanted, a lost stream is continued behind its last event; a cursor that the server does not know
// is given up, and the gap reported.
func TestREM73_Resume(t *testing.T) {
	m := &memory{get: func(n int, r *http.Request) (int, http.Header, string) {
		switch n {
		case 0:
			return 200, nil, "id: 7\ndata: " + update("s", 1) + "\n\nid: 8\nEND" // the last event is not ended
		case 1:
			return 200, nil, "id: 9\ndata: " + update("s", 2) + "\n\nEND"
		case 2:
			return 409, nil, ""
		}
		return 200, nil, "data: " + update("s", 3) + "\n\n"
	}}
	var gaps []string
	o := &DialOptions{Resume: true, OnGap: func(_ string, err error) { gaps = append(gaps, err.Error()) }}
	inMemory(t, m, o, func(t *testing.T, c *client) {
		for n := range 3 {
			if got := <-c.read; got != update("s", n+1) {
				t.Errorf("got %v", got)
			}
		}
		synctest.Wait()
		if got := fmt.Sprint(m.ids); got != "[ 7 9 ]" {
			t.Errorf("Last-Event-ID: %s", got)
		}
		if fmt.Sprint(gaps) != "[EOF]" {
			t.Errorf("gaps: %q", gaps)
		}
	})
}

// TestREM73_StrangeID: a stream whose last id invalid value is opened again without it, and the gap reported.
func TestREM73_StrangeID(t *testing.T) {
	m := &memory{get: func(n int, r *http.Request) (int, http.Header, string) {
		if n == 0 {
			return 200, nil, "id: a\x01b\ndata: " + update("s", 1) + "\n\nEND"
		}
		return 200, nil, "data: " + update("s", 2) + "\n\n"
	}}
	gaps := 0
	o := &DialOptions{Resume: true, OnGap: func(string, error) { gaps++ }}
	inMemory(t, m, o, func(t *testing.T, c *client) {
		for n := range 2 {
			if got := <-c.read; got != update("s", n+1) {
				t.Errorf("got %v", got)
			}
		}
		if got := fmt.Sprintf("%q", m.ids); got != `["" ""]` || gaps != 1 {
			t.Errorf("Last-Event-ID: %s, %d gaps", got, gaps)
		}
	})
}

// flooding is a RoundTripper that answers prompts with events in the body, without end.
type flooding struct {
	*memory
	event string
	sent  atomic.Int64
}

func (f *flooding) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost || r.Header.Get(HeaderSession) == "" {
		return f.memory.RoundTrip(r)
	}
	in, out := io.Pipe()
	stop := context.AfterFunc(r.Context(), func() { out.CloseWithError(r.Context().Err()) })
	f.tasks.Go(func() {
		defer stop()
		for {
			if _, err := io.WriteString(out, f.event); err != nil {
				return
			}
			f.sent.Add(1)
		}
	})
	header := http.Header{"Content-Type": {"text/event-stream"}}
	return &http.Response{StatusCode: 200, Header: header, Body: in, Request: r, ContentLength: -1}, nil
}

// TestREM53_BodyWithoutEnd: a client that does not read also blocks events in the answer to a POST.
func TestREM53_BodyWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flooding{memory: &memory{get: func(int, *http.Request) (int, http.Header, string) { return 200, nil, ":\n\n" }}}
		f.event = "data: " + update("s", 1) + "\n\n"
		s, err := Dial("http://localhost", &DialOptions{HTTPClient: &http.Client{Transport: f}, IdleTimeout: -1}).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i, message := range []string{initRequest, prompt(1, "s")} {
			if err := s.Write([]byte(message)); err != nil {
				t.Fatal(err)
			}
			if line, err := s.Read(); err != nil || i == 1 && string(line) != update("s", 1) {
				t.Fatalf("%s, %v", line, err)
			}
		}
		time.Sleep(time.Minute) // with no reader
		sent := f.sent.Load()
		if most := int64(2 * eventChunk / len(f.event)); sent > most {
			t.Errorf("%d events were taken, want %d at most", sent, most)
		}
		for range sent {
			if line, err := s.Read(); err != nil || string(line) != update("s", 1) {
				t.Fatalf("%s, %v", line, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		f.tasks.Wait()
	})
}

// TestREM56_Bounded: a call of which nobody knows whether the server took it waits for a minute; for as long as something
// comes for its session it waits longer, because its turn may run.
func TestREM56_Bounded(t *testing.T) {
	m := &memory{
		get:  func(int, *http.Request) (int, http.Header, string) { return 200, nil, ":\n\n" },
		post: func(string) (int, time.Duration) { return 502, 0 },
	}
	inMemory(t, m, &DialOptions{IdleTimeout: -1}, func(t *testing.T, c *client) {
		begin := time.Now()
		c.write(req(1, "_x", `{}`))
		fails := func(id int64) {
			t.Helper()
			lost, ok := errors.AsType[*rpc.CallLostError]((<-c.read).(error))
			if _, unknown := errors.AsType[*OutcomeError](lost); !ok || !unknown || lost.ID != rpc.IntID(id) {
				t.Errorf("got %v", lost)
			}
		}
		if fails(1); time.Since(begin) != time.Minute {
			t.Errorf("failed after %v", time.Since(begin))
		}
		begin = time.Now()
		c.write(prompt(2, "s"))
		synctest.Wait()
		for range 10 {
			time.Sleep(50 * time.Second)
			io.WriteString(m.live, "data: "+update("s", 1)+"\n\n")
			if got := <-c.read; got != update("s", 1) {
				t.Fatalf("got %v", got)
			}
		}
		if fails(2); time.Since(begin) != 560*time.Second {
			t.Errorf("failed after %v", time.Since(begin))
		}
	})
}

// TestREM52_Queued: a cancellation waits for its prompt however long that waits to be sent.
func TestREM52_Queued(t *testing.T) {
	var mu sync.Mutex
	var order []string
	m := &memory{
		get: func(int, *http.Request) (int, http.Header, string) { return 200, nil, ":\n\n" },
		post: func(body string) (int, time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, methodOf(body))
			if methodOf(body) == "session/set_mode" {
				return 202, time.Minute
			}
			return 202, 0
		},
	}
	inMemory(t, m, &DialOptions{IdleTimeout: -1}, func(t *testing.T, c *client) {
		c.write(req(1, "session/set_mode", `{"sessionId":"a"}`))
		c.write(prompt(2, "a"))
		c.write(cancel("a"))
		time.Sleep(2 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if got := fmt.Sprint(order); got != "[session/set_mode session/prompt session/cancel]" {
			t.Errorf("got %s", got)
		}
	})
}

// TestREM52_SlowPrompt: a prompt whose POST takes 1.5 s does not block other sessions; its cancellation waits for it,
// but not longer than ten seconds.
func TestREM52_SlowPrompt(t *testing.T) {
	var mu sync.Mutex
	at := map[string]time.Duration{}
	for _, slow := range []time.Duration{1500 * time.Millisecond, time.Hour} {
		var begin time.Time
		m := &memory{
			get: func(int, *http.Request) (int, http.Header, string) { return 200, nil, ":\n\n" },
			post: func(body string) (int, time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				at[body] = time.Since(begin)
				if body == prompt(1, "a") {
					return 202, slow
				}
				return 202, 0
			},
		}
		inMemory(t, m, &DialOptions{IdleTimeout: -1}, func(t *testing.T, c *client) {
			begin = time.Now()
			c.write(prompt(1, "a"))
			c.write(cancel("a"))
			c.write(cancel("b"))
			c.write(prompt(2, "b"))
			time.Sleep(time.Minute)
			mu.Lock()
			defer mu.Unlock()
			if at[cancel("b")] != 0 || at[prompt(2, "b")] != 0 || at[cancel("a")] != min(slow, 10*time.Second) {
				t.Errorf("%v: %v", slow, at)
			}
		})
	}
}
