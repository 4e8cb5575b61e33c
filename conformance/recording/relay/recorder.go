package relay

import (
	"bytes"
	"cmp"
	"os"
	"sync"
	"time"
	"unsafe"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
)

// source is the origin of some bytes.
type source int

const (
	fromClient source = iota
	fromAgent
	fromStderr
	sources
)

func (s source) direction() conformance.Direction {
	if s == fromClient {
		return conformance.ToAgent
	}
	return conformance.ToClient
}

// piece is some bytes of one source.
type piece struct {
	source source
	size   int
	at     time.Time
}

const pieceSize = int(unsafe.Sizeof(piece{}))

// recorder accepts bytes without blocking, and records them in its own goroutine.
type recorder struct {
	options Options
	max     int
	done    sync.WaitGroup

	mu     sync.Mutex
	more   sync.Cond     // signals that there are pieces, or that there will be no more
	hurry  chan struct{} // closed when there will be no more pieces
	pieces []piece
	bytes  []byte
	// When there is no more room, nothing is accepted until the goroutine has taken everything. Otherwise there could
	// be very many gaps.
	missed   [sources]int
	missedAt time.Time // the time of the first of them
	ended    bool

	// Used only by the goroutine:
	rest   [sources][]byte // the beginning of an incomplete line
	long   [sources]bool   // that line is too long to be recorded
	lost   int64
	failed error
}

// restTime is how long the goroutine lets pieces accumulate before it takes them. Waking up for each piece would take
// processor time from the traffic.
const restTime = 5 * time.Millisecond

// maxLine is the maximum length of a recorded line.
const maxLine = rpc.DefaultMaxMessage

func newRecorder(options Options) *recorder {
	r := &recorder{options: options, max: options.MaxPending}
	r.max = cmp.Or(max(r.max, 0), DefaultMaxPending)
	r.more.L = &r.mu
	r.hurry = make(chan struct{})
	r.done.Go(r.run)
	return r
}

// add accepts bytes before they are passed on, so that no answer is recorded before its request.
func (r *recorder) add(s source, b []byte) {
	if s == fromStderr && !r.options.RecordStderr {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if full := !r.missedAt.IsZero(); full || len(r.bytes)+len(b)+(len(r.pieces)+1)*pieceSize > r.max {
		if !full {
			r.missedAt = now
		}
		r.missed[s] += len(b)
		return
	}
	r.bytes = append(r.bytes, b...)
	r.pieces = append(r.pieces, piece{s, len(b), now})
}

// wake wakes the goroutine. It is called after the bytes have been passed on, because it takes some microseconds.
func (r *recorder) wake() { r.more.Signal() }

// run records until the end.
func (r *recorder) run() {
	var pieces []piece
	var b []byte
	nothing := func() bool { return len(r.pieces) == 0 && r.missedAt.IsZero() }
	for {
		r.mu.Lock()
		if nothing() && !r.ended {
			r.mu.Unlock()
			r.idle()
			r.mu.Lock()
		}
		for nothing() && !r.ended {
			r.more.Wait()
		}
		if nothing() {
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		select {
		case <-time.After(restTime):
		case <-r.hurry:
		}
		r.mu.Lock()
		pieces, r.pieces = r.pieces, pieces[:0]
		b, r.bytes = r.bytes, b[:0]
		missed, at := r.missed, r.missedAt
		r.missed, r.missedAt = [sources]int{}, time.Time{}
		r.mu.Unlock()
		from := 0
		for _, p := range pieces {
			r.take(p, b[from:from+p.size])
			from += p.size
		}
		for s, size := range missed {
			if size > 0 {
				r.gap(source(s), size, at)
			}
		}
		if cap(b) > 4<<20 {
			b, pieces = nil, nil // after a burst
		}
	}
}

func (r *recorder) idle() {
	if r.options.Idle != nil {
		r.fail(r.options.Idle())
	}
}

// fail keeps the first error.
func (r *recorder) fail(err error) {
	if r.failed == nil {
		r.failed = err
	}
}

// take splits bytes into lines.
func (r *recorder) take(p piece, b []byte) {
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		part := b
		if i >= 0 {
			part = b[:i]
		}
		switch rest := r.rest[p.source]; {
		case r.long[p.source] && i < 0:
			r.gap(p.source, len(part), p.at)
		case r.long[p.source]:
			r.gap(p.source, len(part)+1, p.at)
			r.long[p.source] = false
		case len(rest)+len(part) > maxLine:
			r.rest[p.source] = nil
			r.gap(p.source, len(rest)+len(part), p.at)
			r.long[p.source] = i < 0
		case i < 0:
			r.rest[p.source] = append(rest, part...)
		case len(rest) > 0:
			r.line(p.source, append(rest, part...), p.at, false)
			if r.rest[p.source] = rest[:0]; cap(rest) > 1<<20 {
				r.rest[p.source] = nil
			}
		default:
			r.line(p.source, part, p.at, false)
		}
		if i < 0 {
			return
		}
		b = b[i+1:]
	}
}

// gap records that some bytes are missing from the recording. The rest of the same line is left out as well.
func (r *recorder) gap(s source, size int, at time.Time) {
	if r.rest[s] != nil {
		size += len(r.rest[s])
		r.rest[s] = nil
	}
	r.lost += int64(size)
	r.long[s] = true
	if r.options.Writer != nil {
		r.fail(r.options.Writer.Lost(at, s.direction(), int64(size)))
	}
}

// line records a line.
func (r *recorder) line(s source, line []byte, at time.Time, partial bool) {
	e := recording.Entry{Kind: recording.KindMessage, Time: at, Direction: s.direction(), Line: line, Partial: partial}
	if s == fromStderr {
		e.Kind, e.Partial = recording.KindStderr, false
	}
	if r.options.Writer != nil {
		r.fail(r.options.Writer.Write(&e))
	}
	if s != fromStderr && r.options.OnMessage != nil {
		r.options.OnMessage(e.Message())
	}
}

// end records the end, after all traffic has ended.
func (r *recorder) end(state *os.ProcessState, closed conformance.Side) *Result {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	close(r.hurry)
	r.wake()
	r.done.Wait()
	now := time.Now()
	for s := range sources {
		if len(r.rest[s]) > 0 {
			r.line(s, r.rest[s], now, true)
		}
	}
	if r.options.Writer != nil {
		end := End(state)
		end.Closed = closed
		r.fail(r.options.Writer.Write(&recording.Entry{Kind: recording.KindEnd, Time: now, End: end}))
	}
	r.idle()
	return &Result{State: state, Closed: closed, Lost: r.lost, Err: r.failed}
}
