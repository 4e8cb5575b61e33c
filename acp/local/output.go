// This file owns the output that a terminal keeps: the newest of it, as valid text.

package local

import (
	"slices"
	"sync"
	"unicode/utf8"
)

// outputSlack is how much more than its limit, or twice that, an output may hold, so that a chatty
// command does not move what is kept with each line.
const outputSlack = 4 << 10

// An output keeps the end of what a command writes, cut at a character. Bytes that are no UTF-8 are
// kept as U+FFFD, one for each; the beginning of a character waits for its end. It may be used
// concurrently.
type output struct {
	limit int // bytes of text

	mu      sync.Mutex
	text    []byte // valid UTF-8
	partial []byte // the beginning of a character
	cut     bool   // something was dropped
}

// add takes the next bytes that the command wrote.
func (o *output) add(p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.partial) > 0 {
		p = slices.Concat(o.partial, p)
	}
	whole := wholeRunes(p)
	o.partial = append(o.partial[:0], p[whole:]...)
	o.keep(p[:whole])
}

// end says that nothing follows: what still waits for its end is not going to get one.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keep(o.partial)
	o.partial = nil
}

// tail returns the text that is kept, and whether some before it was dropped.
func (o *output) tail() (text string, truncated bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text[o.start():]), o.cut
}

func (o *output) keep(p []byte) {
	if utf8.Valid(p) {
		o.text = append(o.text, p...)
	} else {
		for _, r := range string(p) {
			o.text = utf8.AppendRune(o.text, r)
		}
	}
	o.cut = o.cut || len(o.text) > o.limit
	if len(o.text) > 2*o.limit+outputSlack {
		o.text = append(o.text[:0], o.text[o.start():]...)
	}
}

// start returns where the last limit bytes of the text begin, or the first character in them.
func (o *output) start() int {
	i := max(0, len(o.text)-o.limit)
	for i < len(o.text) && !utf8.RuneStart(o.text[i]) {
		i++
	}
	return i
}

// wholeRunes returns the length of p without a character at its end that is not complete.
func wholeRunes(p []byte) int {
	for i := len(p) - 1; i >= max(0, len(p)-utf8.UTFMax); i-- {
		if utf8.RuneStart(p[i]) {
			if utf8.FullRune(p[i:]) {
				break
			}
			return i
		}
	}
	return len(p)
}
