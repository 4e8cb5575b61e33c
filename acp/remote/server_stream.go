package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/acpgo/sdk/internal/wire"
)

// outStream is one stream of events: the connection's own, or that of a session.
type outStream struct {
	session  string
	events   []byte // whole events
	kept     int    // bytes in events, and those that the receiver is sending
	spare    []byte // a short buffer for reuse
	receiver *receiver
	history  History // may be nil
	begun    bool    // a receiver has received some of it
}

// add adds an event, and returns its size. id is empty if the event has none.
func (out *outStream) add(id string, line []byte) (size int) {
	if out.events == nil {
		out.events, out.spare = out.spare, nil
	}
	before := len(out.events)
	if id != "" {
		out.events = append(append(append(out.events, beforeID...), id...), '\n')
	}
	out.events = append(append(out.events, beforeEvent...), line...)
	// In JSON they occur only between tokens, as white space, but they would end a line of the event.
	wire.ReplaceAll(out.events[len(out.events)-len(line):], '\r', ' ')
	out.events = append(out.events, behindEvent...)
	size = len(out.events) - before
	out.kept += size
	return size
}

// take removes and returns the events.
func (out *outStream) take() (events []byte) {
	events, out.events, out.begun = out.events, nil, true
	return events
}

// idle reports whether a stream has no reader and is empty.
func (out *outStream) idle() bool { return out.receiver == nil && len(out.events) == 0 }

// receiver is a GET that reads a stream.
type receiver struct {
	start    string // the cursor before its first message, if it is the stream's first receiver and there is a history
	rc       *http.ResponseController
	wake     chan struct{}
	replaced chan struct{} // closed when another receiver takes over
	done     chan struct{} // closed when it has ended
	over     bool          // replaced is closed, or done is about to be
}

// end makes a receiver end, even while it is writing; the link's mu is held, so it has not ended yet.
func (rcv *receiver) end() {
	if rcv.over {
		return
	}
	rcv.over = true
	close(rcv.replaced)
	// If deadlines are not supported, it ends when its data has been taken.
	_ = rcv.rc.SetWriteDeadline(time.Now().Add(-time.Second))
}

const (
	beforeID    = "id: "
	beforeEvent = "data: "
	behindEvent = "\n\n"
	framing     = len(beforeEvent) + len(behindEvent)
)

// eventWriter writes a stream of events to one GET.
type eventWriter struct {
	w     io.Writer
	rc    *http.ResponseController
	stall time.Duration
}

// writeChunk is how many bytes are written at once; each chunk must be taken within stall.
const writeChunk = 64 << 10

// write writes one chunk of the stream, and flushes it.
func (e *eventWriter) write(p []byte) error {
	// Inside a middleware without deadlines, those of the http.Server apply.
	if err := e.rc.SetWriteDeadline(time.Now().Add(e.stall)); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if _, err := e.w.Write(p); err != nil {
		return err
	}
	return e.rc.Flush()
}

var comment = []byte(":\n\n")

// begin shows that the stream is open and, unless cursor is empty, where it begins, with an event that has only an id.
func (e *eventWriter) begin(cursor string) error {
	if cursor == "" {
		return e.comment()
	}
	return e.write([]byte(string(comment) + beforeID + cursor + "\n\n"))
}

// comment shows that the stream is alive.
func (e *eventWriter) comment() error { return e.write(comment) }

// rest removes the deadline, before a time in which nothing is written: over HTTP/2 it would end the stream. The TCP
// connection may also carry other requests afterwards.
func (e *eventWriter) rest() { _ = e.rc.SetWriteDeadline(time.Time{}) } // it could be set before

// errReplaced is why a receiver ends when another one takes over.
var errReplaced = errors.New("the stream was taken over by another request")

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// await waits until there is something to send, and keeps the stream alive with a comment whenever it has been idle for
// the given time, unless that is 0.
func (rcv *receiver) await(ctx context.Context, ew *eventWriter, idle time.Duration) error {
	ew.rest()
	var tick <-chan time.Time
	if idle > 0 {
		tick = time.After(idle)
	}
	select {
	case <-rcv.wake:
		return nil
	case <-tick:
		return ew.comment()
	case <-rcv.replaced:
		return errReplaced
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
