package local

import (
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/acpgo/sdk/internal/plain"
)

// An output keeps the end of a command's output, cut at a character. Each byte that is not valid UTF-8 is kept as
// U+FFFD; an incomplete character is held until the rest arrives. It may be used concurrently.
type output struct {
	mu      sync.Mutex
	limit   int    // bytes of text
	text    []byte // at most twice as many, so that it is seldom moved
	partial []byte // the beginning of a character
	total   int    // bytes of text so far
}

// add adds the next bytes that the command wrote.
func (o *output) add(p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.partial) > 0 {
		p = slices.Concat(o.partial, p)
	}
	whole := len(p) - plain.Unfinished(p)
	o.partial = append(o.partial[:0], p[whole:]...)
	o.keep(p[:whole])
}

// end marks the end of the output: an incomplete character will not be completed.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keep(o.partial)
	o.partial = nil
}

// free drops everything; nothing that is added later is kept.
func (o *output) free() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.limit, o.text, o.partial = 0, nil, nil
}

// most returns how long a tail can be.
func (o *output) most() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.limit
}

// tail returns the text that is kept, and whether earlier text was dropped.
func (o *output) tail() (text string, truncated bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := last(o.text, o.limit)
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return string(tail), o.total > o.limit
}

func (o *output) keep(p []byte) {
	if !utf8.Valid(p) {
		p = []byte(string([]rune(string(p))))
	}
	o.total += len(p)
	p = last(p, o.limit)
	if len(o.text)+len(p) > 2*o.limit {
		o.text = append(o.text[:0], last(o.text, o.limit)...)
	}
	o.text = append(o.text, p...)
}

// last returns at most n bytes from the end of a text.
func last(text []byte, n int) []byte { return text[max(0, len(text)-n):] }
