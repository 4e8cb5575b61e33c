package local

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/acpgo/sdk/internal/plain"
)

// pieceSize is the size of the pieces of an output. The oldest output is dropped piece by piece.
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
	held  atomic.Int64 // bytes of all pieces; changed only with mu held

	mu      sync.Mutex
	pieces  [][]byte // valid UTF-8 together, except that the first may begin within a character if something was dropped
	size    int      // bytes of text in them
	partial []byte   // the beginning of a character
	cut     bool     // something was dropped
	freed   bool     // nothing is kept anymore
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
	o.cut = o.cut || o.size > 0
	o.freed, o.pieces, o.size = true, nil, 0
	o.hold(-int(o.held.Load()))
}

// tail returns the text that is kept, and whether earlier text was dropped.
func (o *output) tail() (text string, truncated bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var tail strings.Builder
	tail.Grow(min(o.size, o.limit))
	before := max(0, o.size-o.limit) // bytes before the limit
	for _, piece := range o.pieces {
		skip := min(before, len(piece))
		before -= skip
		piece = piece[skip:]
		for tail.Len() == 0 && len(piece) > 0 && !utf8.RuneStart(piece[0]) {
			piece = piece[1:]
		}
		tail.Write(piece)
	}
	return tail.String(), o.cut
}

func (o *output) keep(p []byte) {
	if o.freed {
		return
	}
	if !utf8.Valid(p) {
		var valid []byte
		for _, r := range string(p) {
			valid = utf8.AppendRune(valid, r)
		}
		p = valid
	}
	for len(p) > 0 {
		last := o.room(len(p))
		n := min(len(p), cap(*last)-len(*last))
		*last = append(*last, p[:n]...)
		o.size += n
		p = p[n:]
	}
	o.cut = o.cut || o.size > o.limit
}

// room returns the last piece after making room in it for some of the next n bytes. Small outputs have a small piece.
func (o *output) room(n int) *[]byte {
	last := len(o.pieces) - 1
	if last < 0 || len(o.pieces[last]) == o.pool.piece {
		var piece []byte
		for len(o.pieces) > 0 && o.size-len(o.pieces[0]) >= o.limit {
			piece = o.drop()
		}
		if cap(piece) < o.pool.piece {
			piece = nil
		}
		o.hold(cap(piece))
		o.pieces = append(o.pieces, piece[:0])
		last = len(o.pieces) - 1
	}
	piece := &o.pieces[last]
	if had := cap(*piece); len(*piece) == had {
		size := min(o.pool.piece, max(had+n, 2*had))
		if last > 0 {
			size = o.pool.piece
		}
		grown := make([]byte, len(*piece), size)
		copy(grown, *piece)
		*piece = grown
		o.hold(size - had)
	}
	return piece
}

// shrink drops the oldest piece; the last remaining one stays.
func (o *output) shrink() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.pieces) < 2 {
		return false
	}
	o.drop()
	o.cut = true
	return true
}

// drop removes and returns the oldest piece.
func (o *output) drop() []byte {
	piece := o.pieces[0]
	o.pieces[0] = nil
	o.pieces = o.pieces[1:]
	o.size -= len(piece)
	o.hold(-cap(piece))
	return piece
}

// hold adds n to the bytes that the output holds.
func (o *output) hold(n int) {
	o.held.Add(int64(n))
	o.pool.held.Add(int64(n))
}
