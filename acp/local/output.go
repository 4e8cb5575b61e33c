package local

import (
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/acpgo/sdk/internal/plain"
)

// pieceSize is how much of the oldest output is dropped at a time to make room for other terminals.
const pieceSize = 32 << 10

// An outputPool bounds how much several outputs hold in total. Beyond the bound the output that holds most drops its
// oldest piece; the newest piece of each always stays. It may be used concurrently.
type outputPool struct {
	max   int64        // bytes
	piece int          // size of a piece
	held  atomic.Int64 // bytes that all outputs hold

	mu      sync.Mutex // taken before that of an output
	outputs map[*output]struct{}
}

func newOutputPool(max, piece int) *outputPool {
	return &outputPool{max: int64(max), piece: piece, outputs: make(map[*output]struct{})}
}

// output returns a new output that keeps at most limit bytes of text. It counts toward the pool until it is freed.
func (p *outputPool) output(limit int) *output {
	o := &output{pool: p, limit: limit}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.outputs[o] = struct{}{}
	return o
}

// squeeze makes room if the outputs hold too much. The caller must not hold the lock of any output.
func (p *outputPool) squeeze() {
	if p.held.Load() <= p.max {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.held.Load() > p.max {
		var most *output
		for o := range p.outputs {
			if most == nil || o.held.Load() > most.held.Load() {
				most = o
			}
		}
		if most == nil || !most.shrink() {
			return
		}
	}
}

// An output keeps the end of a command's output, cut at a character. Each byte that is not valid UTF-8 is kept as
// U+FFFD; an incomplete character is held until the rest arrives. It may be used concurrently.
type output struct {
	pool  *outputPool
	limit int          // bytes of text
	held  atomic.Int64 // the capacity of text; changed only with mu held

	mu      sync.Mutex
	text    []byte // valid UTF-8, except that it may begin within a character if something was dropped
	partial []byte // the beginning of a character
	cut     bool   // something was dropped
	freed   bool   // nothing is kept anymore
}

// add adds the next bytes that the command wrote.
func (o *output) add(p []byte) {
	o.mu.Lock()
	if len(o.partial) > 0 {
		p = slices.Concat(o.partial, p)
	}
	whole := len(p) - plain.Unfinished(p)
	o.partial = append(o.partial[:0], p[whole:]...)
	o.keep(p[:whole])
	o.mu.Unlock()
	o.pool.squeeze()
}

// end marks the end of the output: an incomplete character will not be completed.
func (o *output) end() {
	o.mu.Lock()
	o.keep(o.partial)
	o.partial = nil
	o.mu.Unlock()
	o.pool.squeeze()
}

// free drops everything; nothing that is added later is kept.
func (o *output) free() {
	o.pool.mu.Lock()
	delete(o.pool.outputs, o)
	o.pool.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.cut = o.cut || len(o.text) > 0
	o.freed = true
	o.set(nil)
}

// tail returns the text that is kept, and whether earlier text was dropped.
func (o *output) tail() (text string, truncated bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := o.text
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return string(tail), o.cut
}

// keep appends p and drops what is then beyond the limit. Growing the slice copies only what is left of it, so that a
// byte is copied a few times on average, however long the output is.
func (o *output) keep(p []byte) {
	if o.freed {
		return
	}
	if !utf8.Valid(p) {
		p = []byte(string([]rune(string(p)))) // each invalid byte is one U+FFFD
	}
	text := append(o.text, p...)
	if over := len(text) - o.limit; over > 0 {
		text, o.cut = text[over:], true
	}
	o.set(text)
}

// shrink drops the oldest piece; the newest one stays.
func (o *output) shrink() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.text) <= o.pool.piece {
		return false
	}
	o.cut = true
	o.set(slices.Clone(o.text[o.pool.piece:]))
	return true
}

// set replaces the text.
func (o *output) set(text []byte) {
	o.text = text
	more := int64(cap(text)) - o.held.Load()
	o.held.Add(more)
	o.pool.held.Add(more)
}
