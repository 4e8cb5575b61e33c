//go:build linux

package attack

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// screen receives the output of a program. It keeps the beginning and the end, and checks all of it.
type screen struct {
	mu    sync.Mutex
	last  []byte // the last line, if it is not ended, or the part of it that matters
	found []string
	end   []byte
	keep  int // the size of the end that is kept; 0 is keptEnd
	size  int // of all output
}

const (
	keptEnd  = 16 << 10
	keptLine = 4 << 10
)

// fakes are beginnings of lines that only the program itself may print, each followed by the attacker's word.
var fakes = []string{
	"client → FAKE", "agent → FAKE", "client: FAKE", "proxy: FAKE",
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size += len(b)
	s.end = append(s.end, b...)
	if keep := max(s.keep, keptEnd); len(s.end) > 2*keep {
		s.end = append([]byte(nil), s.end[len(s.end)-keep:]...)
	}
	n := len(b)
	for len(b) > 0 {
		line, rest, ended := bytes.Cut(b, []byte("\n"))
		if room := keptLine - len(s.last); room > 0 {
			s.last = append(s.last, line[:min(len(line), room)]...)
		}
		s.look(line)
		b = rest
		if ended {
			s.line(string(s.last))
			s.last = s.last[:0]
		}
	}
	return n, nil
}

// look looks for output that is not plain text.
func (s *screen) look(text []byte) {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1 && utf8.FullRune(text):
			s.note("the byte %#x, which is not text, is printed", text[0])
		case unicode.IsControl(r) && r != '\t', r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x2028, r == 0x2029,
			r == 0x200e, r == 0x200f, r == 0x061c:
			s.note("%U is printed", r)
		}
		text = text[size:]
	}
}

func (s *screen) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.found, text) {
		s.found = append(s.found, text)
	}
}

// line checks a complete line.
func (s *screen) line(line string) {
	for _, fake := range fakes {
		if strings.HasPrefix(line, fake) {
			s.note("a line of the attacker looks like the program's own: %.100q", line)
		}
	}
}

func (s *screen) problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.found)
}

func (s *screen) tail() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]byte(nil), s.end[max(0, len(s.end)-max(s.keep, keptEnd)):]...)
}

// keepMore makes the screen keep enough for the stacks of all goroutines.
func (s *screen) keepMore() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep = 1 << 20
}
