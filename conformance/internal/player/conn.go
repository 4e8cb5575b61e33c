// Package player has the raw connection on which a probe plays a client or an agent: it sends any line, lets a
// judge check every line, keeps the messages, and waits for what comes.
package player

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/internal/requirement"
)

const (
	MaxKept   = 1 << 12 // messages that a connection remembers
	maxParams = 1 << 20 // of a message that is kept, in bytes
	maxLog    = 400     // lines of a transcript
)

// Link is the way to a program under test.
type Link struct {
	Stream  rpc.Stream
	Raw     func(text []byte) error // writes bytes that are not a whole line; nil if that is impossible
	Process bool                    // the program is a process, whose end is seen behind the end of its output
}

// Conn is the raw connection to a program under test, on which the probe plays one side. It has a reading and a writing
// goroutine; close waits for both, and for the handlers.
type Conn struct {
	Link
	side   conformance.Side      // the side that the probe plays
	handle func(*Conn, *Message) // serves a request or a notification of the program, in its own goroutine
	seen   func(*Message)        // is called for each message while the lock is held

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced after every event
	judge    *conformance.Judge
	findings []Finding
	number   int
	kept     []*Message
	log      []string            // the transcript, without its middle part if it is long
	left     int                 // the number of lines that were left out of it
	asked    map[string]*Message // the probe's unanswered requests, by id
	odd      map[string]bool     // ids of lines that are not messages but may be answered anyway
	answers  map[string][]*Message
	requests map[string]string // methods of the program's requests, by id
	nextID   int64
	queue    []outgoing // to be written
	ended    error      // the error that ended the reading; nil before
	over     bool       // the end of the input was sent, or is to be
	shut     bool       // no more writing
	heard    bool       // the program has sent something
	paused   bool       // nothing is read
	closed   bool
	work     sync.WaitGroup
	handlers sync.WaitGroup
}

// outgoing is an item in the queue of the writer.
type outgoing struct {
	text []byte
	line bool
	end  bool // the end of the input
}

// NewConn starts a connection on which the probe plays one side.
func NewConn(l Link, side conformance.Side, handle func(*Conn, *Message), seen func(*Message)) *Conn {
	c := &Conn{
		Link: l, side: side, handle: handle, seen: seen,
		changed: make(chan struct{}), judge: conformance.NewJudge(nil, nil),
		asked: map[string]*Message{}, odd: map[string]bool{}, answers: map[string][]*Message{}, requests: map[string]string{},
	}
	c.work.Go(c.read)
	c.work.Go(c.write)
	return c
}

// wakeAll wakes all waiting goroutines. The lock is held.
func (c *Conn) wakeAll() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// sleepUntil waits for an event after which done returns true. The lock is held, but not while it waits.
func (c *Conn) sleepUntil(done func() bool) {
	for !done() {
		changed := c.changed
		c.mu.Unlock()
		<-changed
		c.mu.Lock()
	}
}

func (c *Conn) read() {
	for {
		c.mu.Lock()
		c.sleepUntil(func() bool { return !c.paused || c.closed })
		c.mu.Unlock()
		line, err := c.Stream.Read()
		if long, ok := errors.AsType[*rpc.TooLongError](err); ok {
			c.mu.Lock()
			c.number++
			c.note("%s message %d: longer than %d bytes, skipped: %s", Arrow(c.side.Peer().Direction()), c.number, long.Limit,
				Clip(string(long.Head)))
			c.addOwnFinding("INI-6", conformance.Should, fmt.Sprintf("the message has more than %d bytes", long.Limit))
			if id, response, known := long.ID(); response && known {
				text, _ := id.MarshalJSON()
				c.takeAnswer(&Message{Number: c.number, Direction: c.side.Peer().Direction(), Kind: conformance.Response,
					ID: string(text), Time: time.Now()})
			}
			c.wakeAll()
			c.mu.Unlock()
			continue
		}
		c.mu.Lock()
		c.heard = c.heard || err == nil
		if err != nil {
			c.ended = err
			c.note("   the connection ended: %v", err)
			if c.side == conformance.Agent {
				c.endOutput() // an agent ends with its input
			}
			c.wakeAll()
			c.mu.Unlock()
			return
		}
		m := c.see(c.side.Peer().Direction(), line)
		if (m.Kind == conformance.Request || m.Kind == conformance.Notification) && c.handle != nil && !c.closed {
			c.handlers.Go(func() { c.handle(c, m) })
		}
		c.wakeAll()
		c.mu.Unlock()
	}
}

// see has the judge check a line of the connection, and keeps it. The lock is held.
func (c *Conn) see(direction conformance.Direction, line []byte) *Message {
	c.number++
	now := time.Now()
	m := Parse(line)
	m.ID = Canonical(m.ID)
	m.Number, m.Direction, m.Time = c.number, direction, now
	c.note("%s %s", Arrow(direction), Clip(string(line)))
	own := direction == c.side.Direction()
	switch m.Kind {
	case conformance.Request:
		if own {
			c.asked[m.ID] = m
		} else if len(c.requests) < MaxKept {
			c.requests[m.ID] = m.Method
		}
	case conformance.Response, conformance.ErrorReply:
		if own {
			m.Method = c.requests[m.ID]
		} else {
			c.takeAnswer(m)
		}
	}
	if len(c.kept) < MaxKept {
		kept := *m
		if len(kept.Params) > maxParams {
			kept.Params = nil
		}
		c.kept = append(c.kept, &kept)
	}
	for _, f := range c.judge.Message(conformance.Message{Direction: direction, Line: line, Time: now}) {
		m.broken = m.broken || f.Definition == conformance.Envelope
		c.keepFinding(f, string(line), false)
	}
	if own && m.broken {
		c.odd[m.ID] = true
		for _, id := range anID.FindAllSubmatch(line[:min(len(line), maxLogLine)], -1) {
			c.odd[Canonical(string(id[1]))] = true // of a line that is not JSON here, but may be accepted by other parsers
		}
	}
	if c.seen != nil {
		c.seen(m)
	}
	return m
}

// takeAnswer handles an answer of the program. The lock is held.
func (c *Conn) takeAnswer(m *Message) {
	if request := c.asked[m.ID]; request != nil {
		m.Method = request.Method
	}
	delete(c.asked, m.ID)
	if n := len(c.answers[m.ID]); n < 8 {
		c.answers[m.ID] = append(c.answers[m.ID], m)
	}
}

// keepFinding keeps a finding of the judge if the program is at fault. The lock is held.
func (c *Conn) keepFinding(f conformance.Finding, line string, atEnd bool) {
	if f.Rule == "" {
		return
	}
	culprit := f.Direction.Sender()
	if atEnd && f.Kind == conformance.Request {
		culprit = culprit.Peer() // nothing was done about it
	}
	r := requirement.Find(f.Rule)
	if r != nil && r.Side != 0 {
		culprit = r.Side
	}
	if culprit == c.side {
		return
	}
	if f.Rule == "SCH-2" && c.odd[Canonical(f.ID)] {
		return // it answers a line of the probe that is not a request
	}
	if f.Rule == "PRM-7" && c.over {
		return // the end of the input, which the judge does not see, cancels a turn
	}
	c.add(Finding{Finding: f, Excerpt: Clip(line), Doubt: r != nil && f.Level == conformance.Advice &&
		r.Level < conformance.Advice})
}

// addOwnFinding adds a finding of the probe itself. The lock is held.
func (c *Conn) addOwnFinding(id string, level conformance.Level, text string) {
	c.add(Finding{Finding: conformance.Finding{Rule: id, Level: level, Number: c.number, Message: text}})
}

// maxFindings bounds the findings of one scenario.
const maxFindings = 100

func (c *Conn) add(f Finding) {
	for _, other := range c.findings { // once is enough
		if other.Rule == f.Rule && other.Method == f.Method && other.Pointer == f.Pointer && other.Message == f.Message &&
			other.Kind == f.Kind {
			return
		}
	}
	if len(c.findings) < maxFindings {
		c.findings = append(c.findings, f)
	}
}

// note adds a line to the transcript. The lock is held.
func (c *Conn) note(format string, args ...any) {
	if len(c.log) == maxLog {
		// The beginning and the end are the most useful parts.
		c.log = slices.Delete(c.log, maxLog/4, maxLog/4+1)
		c.left++
	}
	c.log = append(c.log, Clip(fmt.Sprintf(format, args...)))
}

func (c *Conn) write() {
	for {
		c.mu.Lock()
		c.sleepUntil(func() bool { return len(c.queue) > 0 || c.closed })
		if len(c.queue) == 0 {
			c.mu.Unlock()
			return
		}
		out := c.queue[0]
		c.queue = c.queue[1:]
		c.mu.Unlock()
		var err error
		switch fast, ok := c.Stream.(rpc.FastStream); {
		case out.end:
			if half, ok := c.Stream.(rpc.HalfCloser); ok {
				err = half.CloseWrite()
			} else {
				err = c.Stream.Close()
			}
		case !out.line && c.Raw == nil:
		case !out.line:
			err = c.Raw(out.text)
		case ok:
			err = fast.WriteLines(out.text)
		default:
			err = c.Stream.Write(bytes.TrimSuffix(out.text, []byte("\n")))
		}
		c.mu.Lock()
		if err != nil && !c.shut {
			c.shut = true
			c.note("   nothing more can be sent: %v", err)
		}
		c.wakeAll()
		c.mu.Unlock()
	}
}

// Line sends one line, which need not be a message.
func (c *Conn) Line(text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(text)
}

// put is like line. The lock is held.
func (c *Conn) put(text []byte) *Message {
	m := c.see(c.side.Direction(), text)
	c.queue = append(c.queue, outgoing{text: append(bytes.Clone(text), '\n'), line: true})
	c.wakeAll()
	return m
}

// Part sends bytes that are not a whole line. The judge does not see them.
func (c *Conn) Part(text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note("-> %s (without an end)", Clip(string(text)))
	c.queue = append(c.queue, outgoing{text: bytes.Clone(text)})
	c.wakeAll()
}

// EndInput ends the program's input after everything that was sent.
func (c *Conn) EndInput() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endOutput()
}

// endOutput is like endInput, but only the first call has an effect. The lock is held.
func (c *Conn) endOutput() {
	if c.over {
		return
	}
	c.over = true
	c.note("%s the end of the input", Arrow(c.side.Direction()))
	c.queue = append(c.queue, outgoing{end: true})
	c.wakeAll()
}

// Pause stops or resumes reading.
func (c *Conn) Pause(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = on
	c.wakeAll()
}

// Ask sends a request and returns its id. Both params and id are JSON text; "" means no params, or the next number as
// the id.
func (c *Conn) Ask(method, params, id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id == "" {
		c.nextID++
		id = strconv.FormatInt(c.nextID, 10)
	}
	key := Canonical(id)
	delete(c.answers, key)
	if c.put(appendMessage(id, method, params)).broken {
		c.odd[key] = true
	}
	return key
}

// anID matches a text that looks like an id.
var anID = regexp.MustCompile(`"id" *: *("[^"]*"|-?[0-9]+)`)

// Notify sends a notification.
func (c *Conn) Notify(method, params string) {
	c.Line(appendMessage("", method, params))
}

func appendMessage(id, method, params string) []byte {
	name, _ := json.Marshal(method) // a string can always be encoded
	text := `{"jsonrpc":"2.0"`
	if id != "" {
		text += `,"id":` + id
	}
	text += `,"method":` + string(name)
	if params != "" {
		text += `,"params":` + params
	}
	return []byte(text + "}")
}

// Answer sends the answer to a request of the program: a result or an error, as JSON text, or neither if the outcome is
// empty. A request is answered only once.
func (c *Conn) Answer(request *Message, outcome, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, open := c.requests[request.ID]; !open {
		return
	}
	defer delete(c.requests, request.ID)
	if outcome != "" {
		text = `,"` + outcome + `":` + text
	}
	c.put([]byte(`{"jsonrpc":"2.0","id":` + request.ID + text + `}`))
}

// After returns the messages of both sides that are kept and came after another one. The lock is held.
func (c *Conn) After(number int) []*Message {
	i, _ := slices.BinarySearchFunc(c.kept, number+1, func(m *Message, number int) int { return m.Number - number })
	return c.kept[i:]
}

// Since is after without the lock.
func (c *Conn) Since(number int) []*Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.After(number))
}

// IsTheirs reports whether the program has sent a message.
func (c *Conn) IsTheirs(m *Message) bool { return m.Direction == c.side.Peer().Direction() }

// LastNumber returns the number of the last message.
func (c *Conn) LastNumber() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.number
}

// Ending returns the error that has ended the program's output, or nil.
func (c *Conn) Ending() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// HasEnded reports whether the program has ended its output.
func (c *Conn) HasEnded() bool { return c.Ending() != nil }

// HasSpoken reports whether the program has sent something.
func (c *Conn) HasSpoken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

// Locked calls a function with the lock held.
func (c *Conn) Locked(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// HasMore reports whether a message came after another one. The lock is held.
func (c *Conn) HasMore(number int) bool { return c.number != number }

// AnswerOf returns the first answer to a request, or nil. The lock is held.
func (c *Conn) AnswerOf(id string) *Message {
	if answers := c.answers[id]; len(answers) > 0 {
		return answers[0]
	}
	return nil
}

// HasAnswer reports whether a request is answered.
func (c *Conn) HasAnswer(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.AnswerOf(id) != nil
}

// Remark adds a line to the transcript.
func (c *Conn) Remark(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note(format, args...)
}

// Wake wakes all waiting goroutines.
func (c *Conn) Wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakeAll()
}

// Wait waits until done returns true, and reports whether that was within the time limit. It calls done with the lock
// held. It returns early if the program has ended its output.
func (c *Conn) Wait(ctx context.Context, limit time.Duration, done func() bool) bool {
	late := time.After(limit)
	for over := false; ; {
		c.mu.Lock()
		ok, ended, changed := done(), c.ended != nil, c.changed
		c.mu.Unlock()
		if ok || ended || over {
			return ok
		}
		select {
		case <-changed:
		case <-late:
			over = true // on a busy machine, a message may arrive together with the end of the time limit, so check once more
		case <-ctx.Done():
			over = true
		}
	}
}

// Quiet waits until the program has sent nothing for a while, or has ended. It gives up after ten times that duration.
func (c *Conn) Quiet(ctx context.Context, silence time.Duration) {
	for range 10 {
		number := c.LastNumber()
		if !c.Wait(ctx, silence, func() bool { return c.HasMore(number) }) {
			return
		}
	}
}

// Close ends the program step by step, and the connection. It reports whether the program ended when its input ended.
func (c *Conn) Close(limit time.Duration) (byItself bool) {
	by := c.side
	if c.HasEnded() {
		by = c.side.Peer()
	}
	c.EndInput()
	c.Pause(false)
	byItself = c.exits(limit)
	c.mu.Lock()
	c.closed, c.shut = true, true
	c.wakeAll()
	c.mu.Unlock()
	if err := c.Stream.Close(); err != nil {
		c.Remark("   closing: %v", err)
	}
	c.work.Wait()
	c.handlers.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.judge.Closed(by)
	for _, f := range c.judge.End() {
		c.keepFinding(f, "", true)
	}
	return byItself
}

// exits waits for the end of the program.
func (c *Conn) exits(limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	c.Wait(context.Background(), limit, func() bool { return false }) // or until the output ends
	ended := c.Ending()
	return ended != nil && (!c.Process || c.exitsBehind(ended, deadline))
}

// exitsBehind waits for the end of a process whose output has ended with the given error. Each further Read waits for a
// moment.
func (c *Conn) exitsBehind(ended error, deadline time.Time) bool {
	for {
		if _, exited := errors.AsType[*rpc.ExitError](ended); exited {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		_, ended = c.Stream.Read()
	}
}

// Take returns the findings and the bounded transcript since the last call.
func (c *Conn) Take() (found []Finding, lines []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, lines = c.findings, c.log
	if c.left > 0 {
		lines = slices.Insert(lines, maxLog/4, fmt.Sprintf("   … %d lines", c.left))
	}
	c.findings, c.log, c.left = nil, nil, 0
	return found, lines
}
