package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// httpLink is the stream of an agent whose client uses HTTP: an inbox, an outbox, and their lifetime.
type httpLink struct {
	c *connection

	mu     sync.Mutex
	in     inbox
	out    outbox
	active int // POSTs and GETs in progress
	expiry *time.Timer
}

// newHTTPLink returns a link whose inbox contains initialize, a request with the given id.
func newHTTPLink(c *connection, id wire.ID, initialize []byte) *httpLink {
	l := &httpLink{c: c}
	l.in = inbox{mu: &l.mu, max: c.server.opts.MaxQueued, wake: make(chan struct{}, 1)}
	l.out = newOutbox(c, id, &l.in)
	l.in.push(initialize)
	return l
}

// enter records that an HTTP request uses the connection, which stays alive at least until leave. It returns false if
// the connection has ended.
func (l *httpLink) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out.over || l.in.end != nil && !errors.Is(l.in.end, ErrServerClosed) {
		return false
	}
	if l.active++; l.expiry != nil {
		l.expiry.Stop()
	}
	return true
}

func (l *httpLink) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active--; l.active > 0 || l.in.end != nil || l.out.over {
		return
	}
	if l.expiry == nil {
		l.expiry = time.AfterFunc(l.c.server.opts.Expiry, l.expire)
	} else {
		l.expiry.Reset(l.c.server.opts.Expiry)
	}
}

func (l *httpLink) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active == 0 {
		l.endForClient(ErrExpired)
	}
}

// deliver passes a message to the agent. session is the session that it is about, and named is the one in the header.
// Requests wait for room.
func (l *httpLink) deliver(ctx context.Context, m wire.Message, session, named string, line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.in.end != nil {
		return errGone
	}
	switch m.Kind {
	case wire.KindRequest:
		if err := l.out.expect(m, session); err != nil {
			return err
		}
		err := l.in.addRequest(ctx, m.ID, line)
		if err != nil {
			delete(l.out.requests, m.ID)
		}
		return err
	case wire.KindResponse:
		if of := l.out.asked[m.ID]; named != "" && of != "" && named != of {
			return refuse(http.StatusBadRequest, HeaderSession+" is not the session of the request")
		}
		delete(l.out.asked, m.ID)
	case wire.KindNotification:
		if string(m.Method) != wire.MethodCancelRequest {
			break
		}
		if id, ok := wire.CancelledID(codec.NewDecoder(nil), m.Params); ok {
			return l.in.addCancel(id, line)
		}
	}
	return l.in.add(line)
}

// Read returns the next message that the client has sent.
func (l *httpLink) Read() ([]byte, error) { return l.ReadLine(nil) }

func (l *httpLink) ReadLine(beforeWait func()) ([]byte, error) { return l.in.read(beforeWait) }

// Write sends one message.
func (l *httpLink) Write(message []byte) error {
	return l.WriteLines(append(wire.AppendLine(nil, message), '\n'))
}

// WriteLines puts each line into its stream, and waits for room before each.
func (l *httpLink) WriteLines(lines []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.out.write(lines)
	if err == error(ErrStalled) {
		l.close(ErrStalled, ErrStalled)
	}
	return err
}

func (l *httpLink) endInput(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopInput(why, nil)
}

// stopInput is endInput for callers that hold mu; see inbox.stop.
func (l *httpLink) stopInput(why, closed error) bool {
	if !l.in.stop(why, closed) {
		return false
	}
	if l.expiry != nil {
		l.expiry.Stop()
	}
	l.c.endsSoon()
	return true
}

// delete ends the connection at the client's request. It returns false if it has already ended.
func (l *httpLink) delete() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endForClient(errDeleted)
}

// endForClient ends the connection for a client that no longer needs it, or is gone; mu is held.
func (l *httpLink) endForClient(why error) bool {
	if !l.stopInput(why, nil) {
		return false
	}
	l.out.stop(nil)
	return true
}

// close ends the connection in both directions; the agent gets these errors; mu is held.
func (l *httpLink) close(read, write error) {
	l.stopInput(read, write)
	l.out.stop(write)
}

// Close ends the connection for the agent.
func (l *httpLink) Close() error {
	l.finish(nil)
	return nil
}

func (l *httpLink) finish(error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	why := fmt.Errorf("%w by this side", rpc.ErrClosed)
	l.stopInput(fmt.Errorf("%w: %w", why, io.EOF), why) // first, so that no request arrives that is never answered
	l.out.finish(why)
}

func (l *httpLink) cut(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.close(why, why)
	l.out.cut()
}
