package storm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/ledger"
)

// patience ends tests that hang, also on a busy machine.
const patience = 5 * time.Minute

// peer is what misbehaves.
type peer struct {
	t testing.TB
	r io.ReadCloser
	w io.WriteCloser

	writing sync.Mutex
	prompts chan string             // the ids of the client's prompts
	done    chan struct{}           // closed when the other side has ended its output
	serve   func(m *ledger.Message) // what the other side asks beside that

	mu     sync.Mutex
	asked  ledger.Requests[chan<- json.RawMessage]
	gate   chan struct{} // open while what comes is read
	lax    bool          // what is sent may be answered with more than what was asked
	wake   chan struct{}
	said   map[string]string // by the agent, by session
	number int
}

func newPeer(t testing.TB, r io.ReadCloser, w io.WriteCloser) *peer {
	p := &peer{
		t: t, r: r, w: w, prompts: make(chan string, 100), done: make(chan struct{}),
		wake: make(chan struct{}), gate: make(chan struct{}), said: map[string]string{},
	}
	close(p.gate)
	p.serve = func(m *ledger.Message) {
		option := regexp.MustCompile(`"optionId":"[^"]+"`).Find(m.Params)
		p.answer(m, `{"outcome":{"outcome":"selected",`+string(option)+`}}`)
	}
	go p.read()
	return p
}

func (p *peer) read() {
	defer close(p.done)
	for in := bufio.NewReaderSize(p.r, 1<<20); ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		p.mu.Lock()
		gate := p.gate
		p.mu.Unlock()
		<-gate
		m, err := ledger.Read(line)
		if err != nil {
			p.t.Errorf("%v: %.300s", err, line)
			return
		}
		p.take(&m)
	}
}

// pause reads nothing more until resume is called.
func (p *peer) pause() (resume func()) {
	gate := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate = gate
	return func() { close(gate) }
}

func (p *peer) take(m *ledger.Message) {
	switch {
	case m.IsAnswer():
		p.mu.Lock()
		defer p.mu.Unlock()
		wait, asked := p.asked.Answer(string(m.ID))
		if !asked && !p.lax {
			p.t.Errorf("an answer too many: %.100s %.300s %v", m.ID, m.Result, m.Error)
		} else if asked && wait != nil {
			if m.Error != nil {
				p.t.Errorf("%s is answered %v", m.ID, m.Error)
			}
			wait <- m.Result
		}
		close(p.wake)
		p.wake = make(chan struct{})
	case m.Method == "session/update":
		var n struct {
			SessionID string
			Update    struct {
				SessionUpdate string
				Content       struct{ Text string }
			}
		}
		if json.Unmarshal(m.Params, &n) == nil && n.Update.SessionUpdate == "agent_message_chunk" {
			p.mu.Lock()
			p.said[n.SessionID] += n.Update.Content.Text
			p.mu.Unlock()
		}
	case m.Method == "initialize":
		p.answer(m, `{"protocolVersion":1,"agentCapabilities":{}}`)
	case m.Method == "session/new":
		p.answer(m, `{"sessionId":"s"}`)
	case m.Method == "session/prompt":
		p.prompts <- string(m.ID)
	case m.IsRequest():
		p.serve(m)
	}
}

// answer is called by the goroutine that reads, which must not wait for a write.
func (p *peer) answer(m *ledger.Message, result string) {
	line := `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`
	go func() { _ = p.write(line + "\n") }() // the connection may have ended
}

// write writes bytes.
func (p *peer) write(text string) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	_, err := io.WriteString(p.w, text)
	return err
}

// send sends lines.
func (p *peer) send(lines ...string) {
	p.t.Helper()
	if err := p.write(strings.Join(lines, "\n") + "\n"); err != nil {
		p.t.Fatalf("%v: %.200s", err, lines[0])
	}
}

// request is a request that must be answered once.
func (p *peer) request(id, method, params string, wait chan<- json.RawMessage) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked.Ask(id, wait)
	return `{"jsonrpc":"2.0","id":` + id + `,"method":` + quote(method) + `,"params":` + params + `}`
}

// many sends n requests, many at a time, and waits for the answers.
func (p *peer) many(n int, id func(i int) string, method string, params func(i int) string) {
	p.t.Helper()
	var lines []string
	size := 0
	for i := range n {
		lines = append(lines, p.request(id(i), method, params(i), nil))
		if size += len(lines[len(lines)-1]); size > 256<<10 || i == n-1 {
			p.send(lines...)
			lines, size = nil, 0
		}
	}
}

// begin sends a request, and returns the id and what receives the result.
func (p *peer) begin(method, params string) (string, <-chan json.RawMessage) {
	p.t.Helper()
	result := make(chan json.RawMessage, 1)
	p.mu.Lock()
	p.number++
	id := strconv.Itoa(p.number)
	p.mu.Unlock()
	p.send(p.request(id, method, params, result))
	return id, result
}

// call sends a request, and waits for its result.
func (p *peer) call(method, params string) json.RawMessage {
	p.t.Helper()
	_, result := p.begin(method, params)
	return receive(p, result, method)
}

func receive[T any](p *peer, from <-chan T, what string) (v T) {
	p.t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		p.t.Fatalf("%s: nothing came", what)
	}
	return v
}

// settle waits until everything that was asked is answered.
func (p *peer) settle() {
	p.t.Helper()
	for late := time.After(patience); ; {
		p.mu.Lock()
		open, wake := p.asked.Open(), p.wake
		p.mu.Unlock()
		if open == 0 {
			return
		}
		select {
		case <-wake:
		case <-p.done:
			p.t.Fatalf("%d requests are not answered at the end", open)
		case <-late:
			p.t.Fatalf("%d requests are not answered", open)
		}
	}
}

// tolerate counts no answers from now on.
func (p *peer) tolerate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lax = true
}

// standstill waits until everything is written, or nothing more is taken for a while.
func standstill(taken *atomic.Int64, wrote <-chan error) {
	for last := int64(-1); len(wrote) == 0 && taken.Load() != last; time.Sleep(500 * time.Millisecond) {
		last = taken.Load()
	}
}

// close ends both directions.
func (p *peer) close() {
	if err := errors.Join(p.w.Close(), p.r.Close()); err != nil && !errors.Is(err, os.ErrClosed) {
		p.t.Log(err)
	}
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // there is no string of which this is true
	}
	return string(b)
}

func note(method, params string) string {
	return `{"jsonrpc":"2.0","method":` + quote(method) + `,"params":` + params + `}`
}

func update(session, text string) string {
	return note("session/update", fmt.Sprintf(`{"sessionId":%q,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%s}}}`,
		session, quote(text)))
}

func prompt(session, text string) string {
	return fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%s}]}`, session, quote(text))
}

// messages makes a stream of messages one of bytes.
type messages struct {
	rpc.Stream

	in, out []byte // the rest of what was read, and the begin of what is to be written
}

func (m *messages) Read(b []byte) (int, error) {
	if len(m.in) == 0 {
		message, err := m.Stream.Read()
		if err != nil {
			return 0, err
		}
		m.in = append(bytes.Clone(message), '\n')
	}
	n := copy(b, m.in)
	m.in = m.in[n:]
	return n, nil
}

func (m *messages) Write(b []byte) (int, error) {
	m.out = append(m.out, b...)
	for {
		line, rest, ended := bytes.Cut(m.out, []byte("\n"))
		if !ended {
			return len(b), nil
		}
		if err := m.Stream.Write(line); err != nil {
			return 0, err
		}
		m.out = rest
	}
}
