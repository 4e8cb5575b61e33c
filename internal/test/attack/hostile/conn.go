// Package hostile has the code that the attacking programs share: a connection that does not enforce any rule of the
// protocol, and the report of a program for the driver. It does not use the rest of this module, so that no check of
// the module prevents an attack.
package hostile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

// longLine is the length beyond which only the beginning of a line is kept, in bytes.
const longLine = 1 << 20

// A Message is a line that has come.
type Message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`

	Size int  `json:"-"` // of the line
	Long bool `json:"-"` // the line was too long to be read whole: of the rest only ID and Method may be known
}

// An Error is the error of an answer.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// Failed reports whether the message is an answer that is an error.
func (m *Message) Failed() bool { return m.Error != nil }

// String shows the beginning of an answer.
func (m *Message) String() string {
	if m.Error != nil {
		return fmt.Sprintf("error %d: %.200s", m.Error.Code, m.Error.Message)
	}
	return fmt.Sprintf("result of %d bytes: %.200s", m.Size, m.Result)
}

// ErrOver says that the other side has ended the connection.
var ErrOver = errors.New("the connection is over")

// A Conn is a connection without rules. It may be used concurrently.
type Conn struct {
	w     *bufio.Writer
	write sync.Mutex

	gate sync.Mutex // held while nothing is to be read
	done chan struct{}

	mu      sync.Mutex
	next    int
	waiting map[string]chan *Message
	several map[string]chan *Message // for ids that are answered more than once
}

// New makes a connection that writes to w; Run reads.
func New(w io.Writer) *Conn {
	return &Conn{w: bufio.NewWriterSize(w, 1<<16), done: make(chan struct{}), waiting: map[string]chan *Message{}, several: map[string]chan *Message{}}
}

// Run reads until the other side ends its output. serve gets every message that is not an answer to a Go or Call of
// this side, one after the other.
func (c *Conn) Run(r io.Reader, serve func(*Message)) error {
	defer func() {
		close(c.done)
		c.mu.Lock()
		defer c.mu.Unlock()
		for id, wait := range c.waiting {
			close(wait)
			delete(c.waiting, id)
		}
	}()
	in := bufio.NewReaderSize(r, 1<<16)
	for {
		m, err := c.read(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if m.Method == "" {
			c.mu.Lock()
			wait := c.waiting[string(m.ID)]
			delete(c.waiting, string(m.ID))
			if wait == nil {
				wait = c.several[string(m.ID)]
			}
			c.mu.Unlock()
			if wait != nil {
				select {
				case wait <- m:
				default:
					return fmt.Errorf("one answer too many: %s", m)
				}
				continue
			}
		}
		serve(m)
	}
}

// read reads a line. A very long one is read, and its beginning is kept.
func (c *Conn) read(in *bufio.Reader) (*Message, error) {
	var line []byte
	size := 0
	for {
		c.gate.Lock()
		part, err := in.ReadSlice('\n')
		c.gate.Unlock()
		size += len(part)
		if len(line) < longLine {
			line = append(line, part...)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
	m := &Message{Size: size}
	if size <= longLine {
		if err := json.Unmarshal(line, m); err != nil {
			return nil, fmt.Errorf("the other side sent what is not a message: %w: %.300q", err, line)
		}
		return m, nil
	}
	m.Long = true
	head := line[:min(len(line), 512)]
	m.ID = json.RawMessage(member(head, `"id":`))
	if method, err := strconv.Unquote(string(member(head, `"method":`))); err == nil {
		m.Method = method
	}
	return m, nil
}

// member finds a scalar member in the beginning of a line.
func member(head []byte, name string) []byte {
	_, rest, ok := bytes.Cut(head, []byte(name))
	if !ok {
		return nil
	}
	return rest[:max(0, bytes.IndexAny(rest, ",}"))]
}

// Pause stops reading until the function that it returns is called.
func (c *Conn) Pause() (resume func()) {
	stopped := make(chan struct{})
	go func() { // the reader may hold the gate until the next bytes come
		c.gate.Lock()
		close(stopped)
	}()
	return func() {
		<-stopped
		c.gate.Unlock()
	}
}

// Done is closed when the other side has ended its output.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Raw writes bytes as they are.
func (c *Conn) Raw(parts ...string) error {
	c.write.Lock()
	defer c.write.Unlock()
	for _, part := range parts {
		if _, err := c.w.WriteString(part); err != nil {
			return err
		}
	}
	return c.w.Flush()
}

// Trickle writes text in pieces of one byte, with a pause after each.
func (c *Conn) Trickle(text string, pause time.Duration) error {
	c.write.Lock()
	defer c.write.Unlock()
	for i := range len(text) {
		if err := c.w.WriteByte(text[i]); err != nil {
			return err
		}
		if err := c.w.Flush(); err != nil {
			return err
		}
		time.Sleep(pause)
	}
	return nil
}

// Notify sends a notification.
func (c *Conn) Notify(method, params string) error {
	return c.Raw(`{"jsonrpc":"2.0","method":`, Quote(method), `,"params":`, params, "}\n")
}

// Result answers a request.
func (c *Conn) Result(id json.RawMessage, result string) error {
	return c.Raw(`{"jsonrpc":"2.0","id":`, string(id), `,"result":`, result, "}\n")
}

// Refuse answers a request with an error.
func (c *Conn) Refuse(id json.RawMessage, code int, message string) error {
	return c.Raw(`{"jsonrpc":"2.0","id":`, string(id), `,"error":{"code":`, strconv.Itoa(code), `,"message":`, Quote(message), "}}\n")
}

// Go sends a request. The channel gets the answer, and is closed without one when the connection ends.
func (c *Conn) Go(method, params string) (id string, answer <-chan *Message, err error) {
	wait := make(chan *Message, 1)
	c.mu.Lock()
	c.next++
	id = strconv.Itoa(c.next)
	c.waiting[id] = wait
	c.mu.Unlock()
	return id, wait, c.Raw(`{"jsonrpc":"2.0","id":`, id, `,"method":`, Quote(method), `,"params":`, params, "}\n")
}

// Call sends a request and waits for the answer, for limit at most.
func (c *Conn) Call(method, params string, limit time.Duration) (*Message, error) {
	_, answer, err := c.Go(method, params)
	if err != nil {
		return nil, err
	}
	return Await(answer, limit)
}

// Expect returns a channel for the answers to an id that is not one of Go's, of which there may be n; one more ends
// Run with an error. The id is as in JSON.
func (c *Conn) Expect(id string, n int) (answers <-chan *Message, forget func()) {
	wait := make(chan *Message, n)
	c.mu.Lock()
	c.several[id] = wait
	c.mu.Unlock()
	return wait, func() {
		c.mu.Lock()
		delete(c.several, id)
		c.mu.Unlock()
	}
}

// Await waits for an answer. The limit is one on an idle machine.
func Await(answer <-chan *Message, limit time.Duration) (*Message, error) {
	return NewClock().await(answer, limit)
}

func (c *Clock) await(answer <-chan *Message, limit time.Duration) (*Message, error) {
	m, ok := within(c, answer, limit)
	switch {
	case !ok:
		return nil, fmt.Errorf("no answer within %v", limit)
	case m == nil:
		return nil, ErrOver
	}
	return m, nil
}

// Within reports whether done is closed within a limit, which is one on an idle machine.
func Within(done <-chan struct{}, limit time.Duration) bool {
	_, ok := within(NewClock(), done, limit)
	return ok
}

func within[T any](c *Clock, from <-chan T, limit time.Duration) (_ T, ok bool) {
	ticker := time.NewTicker(2 * tick)
	defer ticker.Stop()
	for {
		select {
		case v := <-from:
			return v, true
		case <-ticker.C:
			if c.Passed() >= limit {
				return *new(T), false
			}
		}
	}
}

// AwaitAll waits for several answers, one after the other, and gives each to take; all together have the limit.
func AwaitAll(answers []<-chan *Message, limit time.Duration, take func(*Message)) error {
	clock := NewClock()
	for i, answer := range answers {
		m, err := clock.await(answer, limit)
		if err != nil {
			return fmt.Errorf("answer %d of %d: %w", i+1, len(answers), err)
		}
		take(m)
	}
	return nil
}

// Quote makes a JSON string.
func Quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // there is no string of which this is true
	}
	return string(b)
}
