// Package plain makes text of others safe to show in a terminal. What a peer sends may hold escape sequences that move
// the cursor or set the clipboard, newlines that begin a line which looks like one of the program's own, and characters
// that reverse the order of those behind them. Whatever comes from a peer goes through this package on its way to the
// terminal: titles, messages, output, errors, and names too.
//
// Where programs run in the workflow of a CI server, the server reads what they print, and obeys commands in it:
// "::add-mask::x" at the beginning of a line, "##[error]x" and "##vso[...]" anywhere. Text comes through without commands.
//
// What it cannot know is how wide the terminal is: a long line goes on at the left edge of the next one.
package plain

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// maxLine is how many characters [Line] keeps.
const maxLine = 1000

// Text returns a text of any number of lines that does nothing but appear. What is not visible is written as Go writes
// it in a string, such as \x1b or \u202e; newlines and tabs stay, and "\r\n" becomes "\n".
func Text(text string) string { return lines(text, true) }

// Screen is [Text] for a program that draws the whole screen: no CI server reads what it writes, so that what would be a
// command for one stays as it is.
func Screen(text string) string { return lines(text, false) }

func lines(text string, commands bool) string {
	var b strings.Builder
	b.Grow(len(text))
	for start := true; len(text) > 0; {
		if c := command(text, start); c > 0 && commands {
			writeCommand(&b, c)
			text, start = text[1:], false
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		start = r == '\n' || start && unicode.IsSpace(r)
		text = text[size:]
		switch {
		case r == '\n', r == '\t':
			b.WriteRune(r)
		case r == '\r' && strings.HasPrefix(text, "\n"):
		default:
			writeRune(&b, r)
		}
	}
	return b.String()
}

// Line returns a text as one line, as [Text] does, with newlines and tabs written as \n and \t. Of a very long one it
// keeps the beginning, and says how much is missing.
func Line(text string) string {
	var b strings.Builder
	count, start := 0, true
	for i, r := range text {
		if count++; count > maxLine {
			fmt.Fprintf(&b, "… (%d bytes more)", len(text)-i)
			break
		}
		if c := command(text[i:], start); c > 0 {
			writeCommand(&b, c)
		} else {
			writeRune(&b, r)
		}
		start = start && unicode.IsSpace(r)
	}
	return b.String()
}

// command returns the first character of text if a CI server would read a command there, or 0. At the start of a line
// there are more of them.
func command(text string, start bool) byte {
	switch {
	case start && strings.HasPrefix(text, "::"):
		return ':'
	case strings.HasPrefix(text, "##"):
		name := text[2:]
		end := strings.IndexFunc(name, func(r rune) bool { return !unicode.IsLetter(r) })
		if end >= 0 && name[end] == '[' {
			return '#'
		}
	}
	return 0
}

// writeCommand writes the first character of a command so that there is none.
func writeCommand(b *strings.Builder, c byte) { fmt.Fprintf(b, `\x%02x`, c) }

// Sprintf is fmt.Sprintf with all arguments but numbers and booleans as [Line] has them.
func Sprintf(format string, args ...any) string {
	safe := make([]any, len(args))
	for i, arg := range args {
		switch kind := reflect.ValueOf(arg).Kind(); {
		case kind >= reflect.Bool && kind <= reflect.Complex128:
			safe[i] = arg
		default:
			safe[i] = Line(fmt.Sprint(arg))
		}
	}
	return fmt.Sprintf(format, safe...)
}

// writeRune decides about one character, for all of this package.
func writeRune(b *strings.Builder, r rune) {
	const joiner, nonJoiner = '\u200d', '\u200c' // they make one sign of two, in emoji and in many scripts
	switch {
	case unicode.IsPrint(r), r == joiner, r == nonJoiner:
		b.WriteRune(r)
	case unicode.Is(unicode.Zs, r):
		b.WriteByte(' ')
	default:
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
}

// Unseen reports whether a character of a name is not seen, or changes how others are: a control or format character, such as
// those that reverse the order of what follows, or one that separates lines.
func Unseen(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// IsVariable reports whether a variable of the environment can have a name.
func IsVariable(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r == '=' || Unseen(r) })
}

// maxPart is how many bytes a [Writer] keeps of a line that is not ended.
const maxPart = 8 << 10

// Writer writes the lines that it gets to another writer as [Text] has them, each behind a prefix: so what a program
// writes to standard error cannot be taken for what its user's own program says. Lines come whole; a very long one comes
// in several. A Writer may be used concurrently.
type Writer struct {
	w      io.Writer
	prefix string

	mu   sync.Mutex
	part []byte // of a line that is not ended
}

// NewWriter returns a writer of lines.
func NewWriter(w io.Writer, prefix string) *Writer { return &Writer{w: w, prefix: prefix} }

// Write takes any part of the text.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range p {
		full := len(w.part) >= maxPart && utf8.RuneStart(c) || len(w.part) >= maxPart+utf8.UTFMax
		if c == '\n' || full {
			if err := w.end(); err != nil {
				return 0, err
			}
		}
		if c != '\n' {
			w.part = append(w.part, c)
		}
	}
	return len(p), nil
}

// Flush writes a last line that was not ended. It does not close what the lines are written to.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.part) == 0 {
		return nil
	}
	return w.end()
}

func (w *Writer) end() error {
	line := strings.TrimSuffix(string(w.part), "\r")
	w.part = w.part[:0]
	_, err := io.WriteString(w.w, w.prefix+Text(line)+"\n")
	return err
}
