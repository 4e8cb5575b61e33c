// Messages are appended to a buffer by their senders and written by one goroutine, so that no sender is ever stuck in a
// system call, and many small messages share one call.

package wire

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/acpgo/sdk/codec"
)

const (
	// highWater is how many unsent bytes make a sender wait.
	highWater = 256 << 10
	// refusalHighWater is how many unsent bytes make the reader wait, which answers the messages that it refuses: if a
	// peer does not read these answers, its messages are not read either. It is far above highWater, because two
	// readers that waited for each other's writers would wait forever.
	refusalHighWater = 16 << 20 // unless Config.Flood is set
	// usualAnswer is the assumed size of an answer before it is encoded, if it is not known. The number of answers that
	// wait for the writer's lock at the same time is highWater divided by it; if that were smaller, many small answers
	// would wait for each other.
	usualAnswer = 8 << 10
	// unlimited is the limit for messages that are sent even if much is unsent.
	unlimited = math.MaxInt
)

// errFull reports that no more may be unsent.
var errFull = errors.New("too much is unsent")

// writer is the sending half of a connection. Its goroutine is started by newWriter and ended by
// close; all methods are safe for concurrent use.
type writer struct {
	stream FastStream
	failed func(error)   // called with the first error of writing
	why    func() error  // returns why the connection is over, or nil
	done   chan struct{} // closed when the goroutine has ended

	// The number of unsent bytes, or the greatest int while nothing can be sent; saves senders the lock.
	level atomic.Int64
	// Room that has been claimed for answers that are not appended yet.
	claims  atomic.Int64
	waiting atomic.Int32 // number of waiters in await; saves those who give back room the lock

	mu      sync.Mutex
	pending []byte // appended, but not taken yet
	spare   []byte // the other buffer, while it is not being written
	busy    bool   // the goroutine is writing
	long    bool   // the last message was long, and so may be the next one
	closed  bool
	err     error
	wake    chan struct{}
	change  chan struct{} // not nil while there is a waiter; closed when there may be room, or nothing is unsent
}

func newWriter(stream FastStream, failed func(error), why func() error) *writer {
	w := &writer{
		stream: stream,
		failed: failed,
		why:    why,
		done:   make(chan struct{}),
		wake:   make(chan struct{}, 1),
	}
	go w.run()
	return w
}

func (w *writer) run() {
	defer close(w.done)
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.pending) == 0 || w.err != nil {
			if w.closed {
				return
			}
			w.mu.Unlock()
			<-w.wake
			w.mu.Lock()
		}
		lines := w.pending
		w.pending, w.spare, w.busy = w.spare[:0], nil, true
		w.measure()
		w.changed()
		w.mu.Unlock()
		err := w.stream.WriteLines(lines)
		if err != nil {
			w.failed(err)
		}
		w.mu.Lock()
		w.busy = false
		w.long = len(lines) > bigBuffer/2
		if !letGo(lines) {
			w.spare = lines
		}
		if err != nil && w.err == nil {
			w.err = err
			w.measure()
		}
		w.changed()
	}
}

// changed wakes the waiters; mu is held.
func (w *writer) changed() {
	if w.change != nil {
		close(w.change)
		w.change = nil
	}
}

// signal wakes the goroutine; mu is held.
func (w *writer) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// append appends one message, written by fill, and never blocks: if limit bytes are unsent, it appends nothing and
// returns errFull. If fill fails, nothing is appended.
func (w *writer) append(limit int, fill func([]byte) ([]byte, error)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.failure(); err != nil {
		return err
	}
	n := len(w.pending)
	if n >= limit {
		return errFull
	}
	if n == 0 && w.long {
		if buf := longBuffer(0); buf != nil {
			w.pending = buf[:0]
		}
	}
	lines, err := fill(w.pending)
	if err != nil {
		w.pending = w.pending[:n]
		if n == 0 && letGo(w.pending) {
			w.pending = nil
		}
		return err
	}
	w.pending = append(lines, '\n')
	if n == 0 && !w.busy {
		w.signal()
	}
	w.measure()
	return nil
}

// measure sets level; mu is held.
func (w *writer) measure() {
	if w.err != nil || w.closed {
		w.level.Store(math.MaxInt64)
		return
	}
	w.level.Store(int64(len(w.pending)))
}

// room waits until fewer than limit bytes are unsent. Other senders may append before the caller does.
func (w *writer) room(ctx context.Context, limit int) error {
	if w.level.Load() < int64(limit) {
		return nil
	}
	return w.await(ctx, func() bool { return len(w.pending) < limit })
}

// claim waits until fewer than limit bytes are unsent, counting earlier claims, and claims size bytes. unclaim must be
// called when these have been appended or given up. Thus waiting senders append one after another, and not all at once.
func (w *writer) claim(ctx context.Context, limit, size int) error {
	for {
		claims, level := w.claims.Load(), w.level.Load()
		if level < int64(limit) && level+claims < int64(limit) {
			if w.claims.CompareAndSwap(claims, claims+int64(size)) {
				return nil
			}
			continue
		}
		err := w.await(ctx, func() bool { return int64(len(w.pending))+w.claims.Load() < int64(limit) })
		if err != nil {
			return err
		}
	}
}

func (w *writer) unclaim(size int) {
	w.claims.Add(int64(-size))
	if w.waiting.Load() > 0 {
		w.mu.Lock()
		w.changed()
		w.mu.Unlock()
	}
}

// full reports whether limit bytes are unsent.
func (w *writer) full(limit int) bool {
	if w.level.Load() < int64(limit) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure() == nil && len(w.pending) >= limit
}

// flush waits until everything appended so far, and perhaps more, has been written.
func (w *writer) flush(ctx context.Context) error {
	return w.await(ctx, func() bool { return len(w.pending) == 0 && !w.busy })
}

func (w *writer) await(ctx context.Context, ready func() bool) error {
	w.waiting.Add(1)
	defer w.waiting.Add(-1)
	for {
		w.mu.Lock()
		if err := w.failure(); err != nil || ready() {
			w.mu.Unlock()
			return err
		}
		if w.change == nil {
			w.change = make(chan struct{})
		}
		change := w.change
		w.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// failure returns the reason why nothing can be sent any more, or nil. A failed write is rarely the whole reason.
func (w *writer) failure() error {
	if w.err == nil && !w.closed {
		return nil
	}
	if why := w.why(); why != nil {
		return why
	}
	return cmp.Or(w.err, ErrClosed)
}

// close refuses further messages and lets the goroutine end, without waiting for it. Pending data is written if the
// stream accepts it.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.closed = true
	w.measure()
	w.signal()
	w.changed()
}

// The four kinds of messages, written directly into the buffer.

// appendRequest passes the encoded parameters to sent.
func appendRequest(dst []byte, id uint64, method string, params Encodable, sent func([]byte)) ([]byte, error) {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = strconv.AppendUint(dst, id, 10)
	dst = appendMethod(append(dst, ','), method, params)
	start := len(dst)
	dst, err := appendLast(dst, params)
	if err == nil && params != nil {
		sent(dst[start : len(dst)-1])
	}
	return dst, err
}

func appendNotification(dst []byte, method string, params Encodable) ([]byte, error) {
	dst = appendMethod(append(dst, `{"jsonrpc":"2.0",`...), method, params)
	return appendLast(dst, params)
}

func appendResult(dst []byte, id *ID, result Encodable) ([]byte, error) {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst, err := codec.Append(dst, id)
	if err != nil {
		return dst, err
	}
	dst = append(dst, `,"result":`...)
	if result == nil {
		dst = append(dst, "null"...)
	}
	return appendLast(dst, result)
}

// appendError appends the answer to a request that failed, or to a line that is not a message.
func appendError(dst []byte, id *ID, failure *Error) ([]byte, error) {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst, err := codec.Append(dst, id)
	if err != nil {
		return dst, err
	}
	return appendLast(append(dst, `,"error":`...), failure)
}

// appendMethod appends the method and, if there are parameters, the name of their member.
func appendMethod(dst []byte, method string, params Encodable) []byte {
	dst = codec.AppendString(append(dst, `"method":`...), method)
	if params != nil {
		dst = append(dst, `,"params":`...)
	}
	return dst
}

// appendLast appends the value of the last member, unless v is nil, and closes the message.
func appendLast(dst []byte, v Encodable) ([]byte, error) {
	switch v := v.(type) {
	case nil:
	case encoded:
		dst = append(dst, v...)
	default:
		var err error
		if dst, err = codec.Append(dst, v); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// EncodeJSON writes the error object.
func (e *Error) EncodeJSON(enc *codec.Encoder) {
	enc.BeginObject()
	enc.Name("code")
	enc.Int(int64(e.Code))
	enc.Name("message")
	enc.Str(e.Message)
	if len(e.Data) > 0 {
		enc.Name("data")
		enc.Raw(e.Data)
	}
	enc.EndObject()
}
