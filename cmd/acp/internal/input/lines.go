package input

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/shell"
)

// Words splits a command line into words, and replaces variables in it, as a shell does. On Windows a backslash stands
// for itself, because it is in paths.
func Words(line string) ([]string, error) {
	if os.PathSeparator == '\\' {
		line = literalBackslashes(line)
	}
	return shell.Fields(line, nil)
}

// literalBackslashes doubles the backslashes that a shell would remove.
func literalBackslashes(line string) string {
	var out strings.Builder
	var quote rune
	for _, r := range line {
		switch {
		case r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == '\\' && quote != '\'':
			out.WriteRune(r)
		}
		out.WriteRune(r)
	}
	return out.String()
}

// ReadLine reads one line of at most the given number of bytes, and nothing after it.
func ReadLine(r io.Reader, most int) (string, error) {
	var line []byte
	for one := make([]byte, 1); len(line) < most; {
		n, err := r.Read(one)
		if n > 0 && one[0] == '\n' {
			break
		}
		line = append(line, one[:n]...)
		if err != nil {
			return string(line), err
		}
	}
	return string(line), nil
}

// Lines passes on what is written to it line by line. It may be used concurrently.
type Lines struct {
	// Most is how many bytes of a line are passed on.
	Most int
	// Line receives a line without its end, and how many bytes of it were cut off.
	Line func(line string, lost int)

	mu   sync.Mutex
	line []byte
	lost int
}

// Write implements io.Writer, and never fails.
func (l *Lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for text := range bytes.Lines(b) {
		text, whole := bytes.CutSuffix(text, []byte("\n"))
		keep := min(len(text), l.Most-len(l.line))
		l.line = append(l.line, text[:keep]...)
		l.lost += len(text) - keep
		if whole {
			l.end()
		}
	}
	return len(b), nil
}

// Flush passes on an unfinished line.
func (l *Lines) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.line) > 0 {
		l.end()
	}
}

func (l *Lines) end() {
	line, lost := string(bytes.TrimSuffix(l.line, []byte("\r"))), l.lost
	l.line, l.lost = l.line[:0], 0
	l.Line(line, lost)
}
