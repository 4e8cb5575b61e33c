package view

import (
	"bufio"
	"context"
	"io"
	"slices"
	"strings"
	"sync"
)

// lines distributes the lines that a user types to one dialog at a time, which has priority, and to the callers of
// next. It reads only while one of them is waiting for a line, because a script may write its answers before the
// questions.
type lines struct {
	in      *bufio.Reader
	asking  chan struct{} // full during a dialog
	mu      sync.Mutex
	reading bool          // a goroutine is reading a line
	ended   bool          // the input has ended
	dialog  bool          // a dialog has asked its first question
	answer  chan string   // receives the line for the dialog; nil if it is not waiting
	cancels bool          // a line that cancels the turn is not for the dialog
	waiting []chan string // receive the lines for calls of next, oldest first
	unused  []string      // lines read for callers that stopped waiting
}

func newLines(in io.Reader) *lines {
	return &lines{in: bufio.NewReader(in), asking: make(chan struct{}, 1)}
}

// next returns the next line that is not an answer to a question.
func (l *lines) next(ctx context.Context) (string, error) {
	l.mu.Lock()
	if len(l.unused) > 0 {
		defer l.mu.Unlock()
		line := l.unused[0]
		l.unused = l.unused[1:]
		return line, nil
	}
	got := make(chan string, 1)
	l.waiting = append(l.waiting, got)
	return l.wait(ctx, got)
}

// begin waits until no other dialog is in progress. The caller must call done at the end.
func (l *lines) begin(ctx context.Context) error {
	select {
	case l.asking <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// cancel is the line that cancels a turn.
const cancel = ":cancel"

// ask calls show, which prints a question, and returns the first line that is read after that. If cancels is set, that
// is none that cancels the turn. A line that arrives when ctx has ended is for the next caller.
func (l *lines) ask(ctx context.Context, cancels bool, show func()) (string, error) {
	l.mu.Lock()
	l.cancels = cancels
	show()
	l.dialog, l.answer = true, make(chan string, 1)
	line, err := l.wait(ctx, l.answer)
	if err == nil && ctx.Err() != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.deliver(line)
		return "", context.Cause(ctx)
	}
	return line, err
}

// done ends a dialog.
func (l *lines) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dialog = false
	l.read()
	<-l.asking
}

// wait waits for a line; mu is held, and released.
func (l *lines) wait(ctx context.Context, got chan string) (string, error) {
	l.read()
	l.mu.Unlock()
	select {
	case line, ok := <-got:
		if !ok {
			return "", io.EOF
		}
		return line, nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answer == got {
		l.answer = nil
	} else if i := slices.Index(l.waiting, got); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	} else if line, ok := <-got; ok { // a line arrived at the same time
		return line, nil
	}
	return "", context.Cause(ctx)
}

// wanted reports whether a line is wanted. During a dialog only the dialog counts, so that input typed ahead answers
// its next question. mu is held.
func (l *lines) wanted() bool { return l.answer != nil || !l.dialog && len(l.waiting) > 0 }

// read starts a goroutine that reads lines while they are wanted, because a read from a terminal cannot be interrupted.
// mu is held.
func (l *lines) read() {
	if l.ended {
		l.end()
	} else if l.wanted() && !l.reading {
		l.reading = true
		go func() {
			for more := true; more; {
				line, err := l.in.ReadString('\n')
				l.mu.Lock()
				if line != "" {
					l.deliver(strings.TrimRight(line, "\r\n"))
				}
				if err != nil {
					l.ended = true
					l.end()
				}
				more = l.wanted()
				l.reading = more
				l.mu.Unlock()
			}
		}()
	}
}

// deliver passes a line to the dialog, or to the first of the others; mu is held.
func (l *lines) deliver(line string) {
	if l.answer != nil && (!l.cancels || strings.TrimSpace(line) != cancel) {
		l.answer <- line
		l.answer = nil
	} else if len(l.waiting) > 0 {
		l.waiting[0] <- line
		l.waiting = l.waiting[1:]
	} else {
		l.unused = append(l.unused, line)
	}
}

// end tells all waiters that there are no more lines; mu is held.
func (l *lines) end() {
	for _, got := range l.waiting {
		close(got)
	}
	if l.answer != nil {
		close(l.answer)
	}
	l.waiting, l.answer = nil, nil
}
