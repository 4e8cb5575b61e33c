// This file owns texts: what the user wrote, and streams of an agent's words that are sent in pieces.

package agentkit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp"
)

// PromptText is what the user wrote: the text blocks of a prompt, with a newline between them. Attached files and other
// blocks are not in it.
func PromptText(req *acp.PromptRequest) string {
	var texts []string
	for _, block := range req.Prompt {
		if text, ok := block.Text(); ok {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// Text is an io.Writer and io.StringWriter whose text the client gets as one message, or as one thought, in pieces as it
// is written.
//
// A piece ends at the end of a character: the bytes of one that come in several calls of Write are held together, and each
// byte that is no UTF-8 becomes U+FFFD. What people see as one character may consist of several (é as e and an accent,
// an emoji with a skin colour); a piece may end between them, and the client, which joins the pieces, shows them right.
//
// Write returns when the text is in a buffer. It is sent at once; what is written while the connection is busy is joined
// to one piece. The buffer is bounded, at 64 KiB: when it is full Write waits, up to the end of the context with which the
// text was made. A goroutine runs while there is something to send, and no longer.
//
// # Order
//
// The texts of one turn are sent in the order in which they were written, and what the turn's tool calls send comes after
// the text before it; see HandlePrompt for what belongs to a turn. So does what is sent by the methods of a Turn. Before
// anything else that is to come behind a text, call Flush: an update that is sent by an acp.AgentSession or a Session, or
// a call to the client such as for a file, knows nothing of the text.
//
// # Errors
//
// When text cannot be sent, the Write that follows, and Flush and Close, return the error. When it was sent and could not
// be stored, Flush and Close do, and the error matches ErrNotStored. When the context has ended,
// Write returns its cause, and what was written before is still sent, for at most ten seconds.
//
// The methods are safe for concurrent use. The text of one Write stays together.
type Text struct {
	session Sender
	open    *open // of the turn, or nil
	out     *outbox
	chunk   func(acp.ContentChunk) acp.SessionUpdate
	id      acp.MessageID
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

// NewMessage returns a Text that is a message of the agent. ctx is the turn's, or another one that bounds it. Close it at
// the end of the message; the turn's end does so too.
func NewMessage(ctx context.Context, session Sender) *Text {
	return newText(ctx, session, acp.NewSessionUpdateAgentMessageChunk)
}

// NewThought is NewMessage for a piece of the agent's reasoning.
func NewThought(ctx context.Context, session Sender) *Text {
	return newText(ctx, session, acp.NewSessionUpdateAgentThoughtChunk)
}

func newText(ctx context.Context, session Sender, chunk func(acp.ContentChunk) acp.SessionUpdate) *Text {
	t := &Text{session: session, open: openOf(ctx), chunk: chunk, id: acp.MessageID("msg_" + rand.Text()), ctx: ctx}
	if t.open != nil {
		t.out = t.open.out
	} else {
		t.out = newOutbox()
	}
	t.lasting, t.release = outlive(withoutOpen(ctx), t.out.wake)
	if err := t.open.addText(t); err != nil {
		t.closed = true
		t.release()
	}
	return t
}

// ID is the id of the message in all its pieces.
func (t *Text) ID() acp.MessageID { return t.id }

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
	t.open.removeText(t)
	return t.result()
}

// send sends a piece.
func (t *Text) send(piece string) error {
	update := t.chunk(acp.ContentChunk{Content: acp.TextBlock(piece), MessageID: acp.Some(t.id)})
	if err := t.session.Update(t.lasting, update); err != nil {
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
