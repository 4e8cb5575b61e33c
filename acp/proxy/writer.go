package proxy

import (
	"sync"
	"sync/atomic"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// writer sends messages on a stream, from any goroutine.
type writer struct {
	stream rpc.Stream
	fast   wire.FastStream

	// rests reports that the reader of the other end waits. When it does not, it will, and before that it sends all lines.
	rests atomic.Bool

	mu      sync.Mutex
	lines   []byte // not sent yet
	scratch []byte
	decoder *codec.Decoder
	err     error
}

// maxLines is how much is sent at once, and how much memory is kept for that, in bytes.
const maxLines = 64 << 10

func newWriter(stream rpc.Stream) *writer {
	w := &writer{stream: stream, fast: wire.Fast(stream), decoder: codec.NewDecoder(nil)}
	w.rests.Store(true)
	return w
}

// send sends a message now, or together with what the reader of the other end passes on before it waits.
func (e *end) send(line []byte) error {
	w := e.writer
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.wrapped {
		w.scratch = appendWrapped(w.scratch[:0], w.decoder, line)
		line = w.scratch
	}
	w.lines = append(wire.AppendLine(w.lines, line), '\n')
	if len(w.lines) >= maxLines || w.rests.Load() {
		return w.write()
	}
	return w.err
}

// rest sends what is not sent yet, before the reader of the other end waits. The next send reports its error.
func (w *writer) rest() {
	w.rests.Store(true)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lines) > 0 {
		_ = w.write()
	}
}

// write sends the lines. The caller holds w.mu.
func (w *writer) write() error {
	if w.err == nil {
		w.err = w.fast.WriteLines(w.lines)
	}
	if w.lines = w.lines[:0]; cap(w.lines) > 2*maxLines {
		w.lines, w.scratch = nil, nil
	}
	return w.err
}

// closeWrite ends the writing side, if the stream can.
func (w *writer) closeWrite() error {
	w.rest()
	if h, ok := w.stream.(rpc.HalfCloser); ok {
		return h.CloseWrite()
	}
	return nil
}
