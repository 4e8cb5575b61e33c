package rpc

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/acpgo/sdk/internal/wire"
)

// ProcessOutput is the output of a subprocess other than its messages.
type ProcessOutput struct {
	// Stderr is the end of the process's standard error. If a Go or Rust program panicked earlier, the lines of the
	// panic come first.
	Stderr string
	// Noise is the last part, at most 1 KiB, of the standard output that was not messages.
	Noise string
	// Silent is how long ago the process last wrote to standard output, messages or noise.
	Silent time.Duration
}

// noiseTail is how much noise is kept, in bytes.
const noiseTail = 1 << 10

// ProcessOutputOf returns the output so far of the subprocess of a stream, for the error of a caller that has waited
// for the process. ok is false if the stream is neither that of a CommandTransport nor derived from one with [Wrap]. It
// may be called at any time and from any goroutine.
func ProcessOutputOf(stream Stream) (out ProcessOutput, ok bool) {
	for s := wire.Stream(stream); ; {
		if p, ok := s.(*process); ok {
			return p.outputSoFar(), true
		}
		u, ok := s.(interface{ Unwrap() wire.Stream })
		if !ok {
			return ProcessOutput{}, false
		}
		s = u.Unwrap()
	}
}

// Reason returns the line of Stderr that best explains the failure: the line of a panic, the error of a Node.js
// program, which comes before its stack, the last line that says that it is an error, the line before a program's
// usage, or the last line.
func (o ProcessOutput) Reason() string {
	lines := strings.Split(strings.TrimSpace(o.Stderr), "\n")
	compileOnce.Do(compile)
	for i := len(lines) - 1; i >= 0; i-- {
		if isPanic(lines[i]) {
			return clipped(panicOf(lines[i:]))
		}
	}
	last := len(lines) - 1
	if nodeVersion.MatchString(lines[last]) {
		for i := last - 1; i > 0; i-- {
			if strings.Trim(lines[i-1], " \t\r^") == "" && strings.Contains(lines[i-1], "^") || nodeError.MatchString(lines[i]) {
				// The error follows the line that marks the position, after blank lines.
				for ; i < last-1 && strings.TrimSpace(lines[i]) == ""; i++ {
				}
				return clipped(lines[i])
			}
		}
	}
	for i := last; i >= 0; i-- {
		if errorLine.MatchString(lines[i]) {
			for i > 0 && npmError.MatchString(lines[i]) && npmError.MatchString(lines[i-1]) &&
				!strings.Contains(lines[i-1], " code ") {
				i-- // npm says what failed in the first of several lines, after a code
			}
			return clipped(lines[i])
		}
	}
	for i := last; i > 0; i-- {
		if usageLine.MatchString(lines[i]) {
			if before := strings.TrimSpace(strings.Join(lines[:i], "\n")); before != "" {
				return clipped(before[strings.LastIndex(before, "\n")+1:])
			}
		}
	}
	for last > 0 && stackLine.MatchString(lines[last]) {
		last--
	}
	return clipped(lines[last])
}

var (
	compileOnce sync.Once

	errorLine   *regexp.Regexp // a line that says that it is an error, perhaps after a time and the name of the program
	npmError    *regexp.Regexp
	usageLine   *regexp.Regexp // the beginning of the help that programs print after an error in their arguments
	stackLine   *regexp.Regexp // of a stack, such as that of Ruby or Elixir, which comes after the error
	nodeVersion *regexp.Regexp // the last line of a Node.js program that an exception ended
	nodeError   *regexp.Regexp // the line that reports an error
)

// compile sets the expressions above. They are not initialized with the package, which would link package regexp into
// programs that start no other.
func compile() {
	npmError = regexp.MustCompile(`^npm (error|ERR!) `)
	errorLine = regexp.MustCompile(`^(\S+ ){0,3}?\[?(?i:error|fatal|fatal error)\]?(\[\w+\])?:|` +
		`^(\S+ ){0,3}?\[?(ERROR|FATAL|CRITICAL)\b|^(Uncaught |Unhandled )?[\w$.]*(Error|Exception)(:| \[)|` +
		`^Exception in thread |^You must install |` + npmError.String())
	usageLine = regexp.MustCompile(`^(?i:usage\b|for more information|(try|see|run) .*(help|-h)\b)`)
	stackLine = regexp.MustCompile(`^\s+(from|at|in) |^\s+(\(\S+ \S+\) )?[\w./-]+:\d+\b`)
	nodeVersion = regexp.MustCompile(`^Node\.js v\d`)
	nodeError = regexp.MustCompile(`^(Uncaught )?[\w$.]*Error\b`)
}

// String returns everything on one line, for use in an error, or "" if there is nothing to report.
func (o ProcessOutput) String() string {
	text := ""
	if why := o.Reason(); why != "" {
		text = "; standard error: " + why
	}
	return strings.TrimPrefix(text+o.rest(), "; ")
}

// rest returns the part of String other than the reason.
func (o ProcessOutput) rest() string {
	text := ""
	if noise := strings.TrimSpace(o.Noise); noise != "" {
		lines := strings.Split(noise, "\n")
		text += fmt.Sprintf("; standard output had %q", clipped(lines[len(lines)-1]))
	}
	if o.Silent >= time.Second {
		text += "; silent for " + o.Silent.Round(time.Second/10).String()
	}
	return text
}

// clipped returns the beginning of a line.
func clipped(line string) string {
	const most = 500
	line = strings.TrimSpace(line)
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}

// isPanic reports whether a line is the first line of a panic of a Go or Rust program.
func isPanic[Text ~string | ~[]byte](line Text) bool {
	s := string(line[:min(len(line), 100)])
	return strings.HasPrefix(s, "panic: ") || strings.HasPrefix(s, "fatal error: ") ||
		strings.HasPrefix(s, "thread '") && strings.Contains(s, "panicked at ")
}

// panicOf returns the panic that begins with the first line. In Rust, the second line has the message.
func panicOf(lines []string) string {
	if strings.HasPrefix(lines[0], "thread '") && len(lines) > 1 {
		return strings.TrimSpace(lines[0]) + " " + lines[1]
	}
	return lines[0]
}

// tail keeps the end of the data written to it, and passes all of it on. It is safe for concurrent use.
type tail struct {
	max  int
	also io.Writer

	mu      sync.Mutex
	buf     []byte
	seen    int    // lines before this position were searched
	panicAt int    // position of the last panic in buf; negative if it is no longer there
	panic   string // its lines; "" if there was none
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	t.buf = append(t.buf, b...)
	t.look()
	if over := len(t.buf) - t.max; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
		t.seen = max(0, t.seen-over)
		t.panicAt -= over
	}
	t.mu.Unlock()
	if t.also != nil {
		// A failing log must not stop the agent.
		_, _ = t.also.Write(b)
	}
	return len(b), nil
}

// look searches the complete lines for a panic; mu is held.
func (t *tail) look() {
	for {
		i := bytes.IndexByte(t.buf[t.seen:], '\n')
		if i < 0 {
			return
		}
		line := t.buf[t.seen : t.seen+i]
		switch {
		case isPanic(line):
			t.panic, t.panicAt = string(line[:min(len(line), 1000)])+"\n", t.seen
		case strings.HasPrefix(t.panic, "thread '") && strings.Count(t.panic, "\n") == 1:
			t.panic += string(line[:min(len(line), 1000)]) + "\n"
		}
		t.seen += i + 1
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := string(bytes.ToValidUTF8(t.buf, []byte("\uFFFD")))
	if t.panic != "" && t.panicAt < 0 {
		text = strings.ToValidUTF8(t.panic, "\uFFFD") + "…\n" + text
	}
	return text
}
