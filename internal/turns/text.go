package turns

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"
)

// Text is a text that is sent in pieces as it is written. What it promises stands at the types Text of packages agentkit.
type Text struct {
	deliver func(ctx context.Context, piece string) error
	turn    *Turn // or nil
	out     *outbox
	ctx     context.Context
	lasting context.Context // for sending
	release func()

	writing sync.Mutex // held during a Write

	// These are guarded by out.mu.
	held   [utf8.UTFMax]byte // the beginning of a character
	holds  int
	closed bool
	err    error // why text could not be sent
	kept   error // why text could not be stored that was sent
}

// NewText begins a text of the turn that ctx belongs to, if any. deliver sends a piece.
func NewText(ctx context.Context, deliver func(ctx context.Context, piece string) error) *Text {
	t := &Text{deliver: deliver, turn: Of(ctx), ctx: ctx}
	if t.turn != nil {
		t.out = t.turn.out
	} else {
		t.out = newOutbox()
	}
	t.lasting, t.release = Outlive(without(ctx), t.out.wake)
	if err := t.turn.addText(t); err != nil {
		t.closed = true
		t.release()
	}
	return t
}

// Write adds p, which it does not keep, to the text.
func (t *Text) Write(p []byte) (int, error) { return write(t, p) }

// WriteString adds s to the text.
func (t *Text) WriteString(s string) (int, error) { return write(t, s) }

// maxPart is how many bytes are put into the buffer at once, and maxWaiting is how many wait there at most.
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

// Flush waits until everything that was written is on its way, but for the beginning of a character, whose end must still be
// written.
func (t *Text) Flush() error {
	t.out.flush()
	return t.result()
}

// result is what was wrong with text that was written.
func (t *Text) result() error {
	t.out.mu.Lock()
	defer t.out.mu.Unlock()
	return errors.Join(t.err, t.kept)
}

// Close ends the text and waits until all of it is on its way. A character that was not written to its end becomes
// U+FFFD. Closing it once more does nothing, and returns the same error.
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

// outbox sends what is written to texts, in the order in which it was written.
type outbox struct {
	mu      sync.Mutex
	changed sync.Cond // there is room, something was sent, or a context has ended

	waiting []byte  // text that is to be sent: whole characters
	pieces  []piece // whose it is, in order
	written int64   // bytes that were ever put here
	sent    int64   // of them, those that were sent or given up
	running bool    // a goroutine sends
}

// piece is text of one Text, with nothing of another one in between.
type piece struct {
	text *Text
	len  int
}

func newOutbox() *outbox {
	o := &outbox{}
	o.changed.L = &o.mu
	return o
}

// wake lets those who wait look at their contexts.
func (o *outbox) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed.Broadcast()
}

// put adds p to a text, once there is room.
func put[T string | []byte](o *outbox, t *Text, p T) error {
	const most = len("\uFFFD") // that a byte becomes
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
	whole := len(o.waiting) - beginning(o.waiting[start:])
	t.holds = copy(t.held[:], o.waiting[whole:])
	o.add(t, start, whole)
	return nil
}

// end adds the beginning of a character whose end will not be written.
func (o *outbox) end(t *Text) {
	start := len(o.waiting)
	o.waiting = append(o.waiting, t.held[:t.holds]...)
	t.holds = 0
	o.add(t, start, len(o.waiting))
}

// add makes the bytes between start and end, which are the last that wait, text of t. o.mu is held.
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

// beginning is how many of the last bytes of p are the beginning of a character.
func beginning(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if last := p[len(p)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// run sends until nothing waits. What cannot be sent is given up, and its text then has an error.
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

// flush waits until what was written so far is sent or given up, which its contexts bound.
func (o *outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for all := o.written; o.sent < all; {
		o.changed.Wait()
	}
}
