//go:build linux

package attack

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// screen receives the output of a program. It keeps the beginning and the end, and checks all of it.
type screen struct {
	asked func(title string) // called when the user is asked for a number

	mu      sync.Mutex
	last    []byte // the last line, if it is not ended, or the part of it that matters
	title   string // of the last question
	found   []string
	counted map[string]int
	end     []byte
	keep    int // the size of the end that is kept; 0 is keptEnd
	size    int // of all output
}

const (
	keptEnd  = 16 << 10
	keptLine = 4 << 10
)

// counts are the texts that are counted.
var counts = []string{"stopReason: end_turn", "still here"}

// fakes are beginnings of lines that only the program itself may print, each followed by the attacker's word.
var fakes = []string{
	"? FAKE", "  1. FAKE", "  number: FAKE", "  → FAKE", "> FAKE", "stopReason: FAKE", "* FAKE", "permission: FAKE", "tool: FAKE", "state: FAKE",
	"stopped: FAKE", "client → FAKE", "agent → FAKE", "authenticating: FAKE", "client: FAKE", "proxy: FAKE", "FINDING FAKE",
	"  [x] FAKE", "mode: FAKE", "version FAKE", "  | FAKE", "1 messages, 0 findings",
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
	if s.asked != nil && bytes.HasSuffix(s.last, []byte("number: ")) {
		s.asked(s.title)
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
	if title, ok := strings.CutPrefix(line, "? "); ok {
		s.title = title
	}
	for _, text := range counts {
		if strings.Contains(line, text) {
			if s.counted == nil {
				s.counted = map[string]int{}
			}
			s.counted[text]++
		}
	}
}

func (s *screen) count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counted[text]
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

// user is the user at the keyboard, who does nothing unless asked.
type user struct {
	in *os.File
	w  *os.File
}

func (u *user) open(cmd *exec.Cmd) (err error) {
	u.in, u.w, err = os.Pipe()
	cmd.Stdin = u.in
	return err
}

func (u *user) started() { u.in.Close() }

func (u *user) close() { u.w.Close() }

// answer refuses a request. In a flood of questions, the user answers none.
func (u *user) answer(attack, title string) {
	answer := "1\n" // the first option of hostile questions is to refuse
	switch {
	case strings.Contains(title, "An ordinary question"):
		answer = "2\n"
	case strings.HasSuffix(attack, "flood"):
		return
	}
	io.WriteString(u.w, answer) // the program may have ended
}
