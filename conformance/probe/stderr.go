// What a program under test writes to standard error.

package probe

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// maxTail is how much of the end of standard error is kept, in bytes.
const maxTail = 4 << 10

// Stderr keeps the end of what a program writes to standard error. A [Launch] gives it to the program's exec.Cmd and to
// the [Target]. The zero value is ready to use.
type Stderr struct {
	mu     sync.Mutex
	text   []byte
	cut    bool
	total  int
	unread chan struct{} // while nothing is taken: closed when that is over
}

// Write keeps the end of a text. It waits while the probe leaves standard error unread.
func (s *Stderr) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.unread != nil {
		unread := s.unread
		s.mu.Unlock()
		<-unread
		s.mu.Lock()
	}
	s.total += len(text)
	s.cut = s.cut || len(text) > maxTail
	s.text = append(s.text, text[max(0, len(text)-maxTail):]...)
	if over := len(s.text) - maxTail; over > 0 {
		s.text = append(s.text[:0], s.text[over:]...)
		s.cut = true
	}
	return len(text), nil
}

// written returns how much was written.
func (s *Stderr) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// String returns the end, from a whole line on if there is one.
func (s *Stderr) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := string(s.text)
	if !s.cut {
		return text
	}
	if _, rest, ok := strings.Cut(text, "\n"); ok {
		return rest
	}
	for i := 0; i < utf8.UTFMax && text != "" && !utf8.RuneStart(text[0]); i++ {
		text = text[1:] // of a character that was cut
	}
	return text
}

// ignore has Write wait until read is called, as a client does that never reads: the program can write as much as its
// pipe holds.
func (s *Stderr) ignore() (read func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unread := make(chan struct{})
	s.unread = unread
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unread = nil
		close(unread)
	}
}
