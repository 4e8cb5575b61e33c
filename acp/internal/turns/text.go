package turns

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/acpgo/sdk/internal/plain"
)

// Text is a text that is sent in pieces as it is written. agentkit.Text documents its behavior.
type Text struct {
	deliver func(ctx context.Context, piece string) error
	turn    *Turn // or nil
	out     *outbox
	ctx     context.Context
	lasting context.Context // for sending
	release func()

	writing sync.Mutex // held during a Write

	// These are guarded by out.mu.
	held   [utf8.UTFMax]byte // the beginning of an incomplete character
	holds  int
	closed bool
	err    error // why text could not be sent
	kept   error // why text that was sent could not be stored
}

// NewText begins a text of the turn that ctx belongs to, if any. It calls deliver to send a piece.
func NewText(ctx context.Context, deliver func(ctx context.Context, piece string) error) *Text {
	t := &Text{deliver: deliver, turn: Of(ctx), ctx: ctx}
	if t.turn != nil {
		t.out = t.turn.out
	} else {
		t.out = newOutbox()
	}
	t.lasting, t.release = Outlive(withoutTurn(ctx), t.out.wake)
	if err := t.turn.addText(t); err != nil {
		t.closed = true
		t.release()
	}
	return t
}

// Write adds p to the text. It does not retain p.
func (t *Text) Write(p []byte) (int, error) { return write(t, p) }

// WriteString adds s to the text.
func (t *Text) WriteString(s string) (int, error) { return write(t, s) }

// maxPart is the number of bytes that are buffered at once, and maxWaiting the size of the buffer.
const (
	maxPart    = 4 << 10
	maxWaiting = 64 << 10
)

func write[T string | []byte](t *Text, p T) (n int, err error) {
	t.writing.Lock()
	defer t.writing.Unlock()
	for {
		part := p[n:min(n+maxPart, len(p))]
		if err := put(t.out, t, part); err != nil {
			return n, err
		}
		if n += len(part); n == len(p) {
			return n, nil
		}
	}
}

// Flush waits until the text written so far is on its way, except for an incomplete character at its end.
func (t *Text) Flush() error {
	t.out.flush()
	return t.result()
}

// result returns the errors of text that was written.
func (t *Text) result() error {
	t.out.mu.Lock()
	defer t.out.mu.Unlock()
	return errors.Join(t.err, t.kept)
}

// Close ends the text and waits until all of it is on its way. An incomplete character at the end becomes U+FFFD.
// Calling Close again does nothing and returns the same error.
func (t *Text) Close() error {
	t.writing.Lock()
	t.out.mu.Lock()
	if !t.closed {
		t.closed = true
		t.out.end(t)
	}
	t.out.mu.Unlock()
	t.writing.Unlock()
	t.out.flush()
	t.release()
	t.turn.removeText(t)
	return t.result()
}

// send sends a piece.
func (t *Text) send(piece string) error {
	if err := t.deliver(t.lasting, piece); err != nil {
		return fmt.Errorf("sending text: %w", err)
	}
	return nil
}

// outbox sends text in the order in which it was written. The texts of a turn share one.
type outbox struct {
	mu      sync.Mutex
	changed sync.Cond // signals that there is room, that something was sent, or that a context has ended

	waiting []byte  // text to send: whole characters
	pieces  []piece // the texts that it belongs to, in order
	written int64   // total bytes added
	sent    int64   // bytes of written that were sent or given up
	running bool    // whether a goroutine is sending
}

// piece is a run of bytes of one Text.
type piece struct {
	text *Text
	len  int
}

func newOutbox() *outbox {
	o := &outbox{}
	o.changed.L = &o.mu
	return o
}

// wake makes waiting writers check their contexts.
func (o *outbox) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed.Broadcast()
}

// put adds p to a text, once there is room.
func put[T string | []byte](o *outbox, t *Text, p T) error {
	const most = len("\uFFFD") // the longest replacement of an invalid byte
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		switch {
		case t.err != nil:
			return t.err
		case t.closed:
			return ErrEnded
		case t.ctx.Err() != nil:
			return context.Cause(t.ctx)
		}
		if len(o.waiting)+most*(t.holds+len(p)) <= maxWaiting {
			break
		}
		o.changed.Wait()
	}
	start := len(o.waiting)
	o.waiting = append(append(o.waiting, t.held[:t.holds]...), p...)
	whole := len(o.waiting) - plain.Unfinished(o.waiting[start:])
	t.holds = copy(t.held[:], o.waiting[whole:])
	o.add(t, start, whole)
	return nil
}

// end adds the beginning of a character that will not be completed.
func (o *outbox) end(t *Text) {
	start := len(o.waiting)
	o.waiting = append(o.waiting, t.held[:t.holds]...)
	t.holds = 0
	o.add(t, start, len(o.waiting))
}

// add appends the bytes between start and end, the last ones in o.waiting, to text t. o.mu is held.
func (o *outbox) add(t *Text, start, end int) {
	o.waiting = o.waiting[:end]
	if start == end {
		return
	}
	if added := o.waiting[start:]; !utf8.Valid(added) {
		wrong := string(added)
		o.waiting = o.waiting[:start]
		for _, r := range wrong {
			o.waiting = utf8.AppendRune(o.waiting, r)
		}
	}
	n := len(o.waiting) - start
	o.written += int64(n)
	if last := len(o.pieces) - 1; last >= 0 && o.pieces[last].text == t {
		o.pieces[last].len += n
	} else {
		o.pieces = append(o.pieces, piece{t, n})
	}
	if !o.running {
		o.running = true
		go o.run()
	}
}

// run sends until nothing is waiting. It drops text that cannot be sent, and records the error in its Text.
func (o *outbox) run() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.pieces) > 0 {
		p := o.pieces[0]
		o.pieces = o.pieces[:copy(o.pieces, o.pieces[1:])]
		text := string(o.waiting[:p.len])
		o.waiting = o.waiting[:copy(o.waiting, o.waiting[p.len:])]
		if p.text.err == nil {
			o.changed.Broadcast()
			o.mu.Unlock()
			err := p.text.send(text)
			o.mu.Lock()
			if errors.Is(err, ErrNotStored) {
				p.text.kept = err
			} else {
				p.text.err = err
			}
		}
		o.sent += int64(p.len)
		o.changed.Broadcast()
	}
	o.running = false
}

// flush waits until everything written so far is sent or given up. The contexts of the texts bound the wait.
func (o *outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for all := o.written; o.sent < all; {
		o.changed.Wait()
	}
}
