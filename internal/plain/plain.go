// Package plain makes untrusted text safe to show in a terminal. Text from a peer may contain escape sequences that
// move the cursor or set the clipboard, newlines that start a line which looks like one of the program's own, and
// characters that reverse the order of those after them. All text from a peer goes through this package on its way to
// the terminal: titles, messages, output, errors, and names too.
//
// If a program runs in a workflow of a CI server, the server reads its output and obeys commands in it: "::add-mask::x"
// at the beginning of a line, and "##[error]x" and "##vso[...]" anywhere. This package escapes such commands.
//
// The package does not know the width of the terminal: a long line continues at the left edge of the next row.
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

// Text returns text in a form that can only be displayed. Invisible characters are written as in a Go string, such as
// \x1b or \u202e; newlines and tabs stay, and "\r\n" becomes "\n".
func Text(text string) string { return lines(text, true) }

// Screen is [Text] for programs that draw the whole screen: no CI server reads their output, so workflow commands stay
// unchanged.
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

// Line returns text as a single line, like [Text], but with newlines and tabs written as \n and \t. It truncates a very
// long text, and adds how much is missing.
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

// command returns the first character of text if a CI server would recognize a command there, or 0. There are more
// commands at the start of a line.
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

// writeCommand writes the first character of a command so that the command is not recognized.
func writeCommand(b *strings.Builder, c byte) { fmt.Fprintf(b, `\x%02x`, c) }

// Sprintf is fmt.Sprintf with all arguments except numbers and booleans converted by [Line].
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

// writeRune writes one character, for all functions of this package.
func writeRune(b *strings.Builder, r rune) {
	const joiner, nonJoiner = '\u200d', '\u200c' // they join two characters into one, in emoji and in many scripts
	switch {
	case unicode.IsPrint(r), r == joiner, r == nonJoiner:
		b.WriteRune(r)
	case unicode.Is(unicode.Zs, r):
		b.WriteByte(' ')
	default:
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
}

// Unseen reports whether a character in a name is invisible, or changes how others appear: it is a control or format
// character, such as those that reverse the order of the text after them, or a line separator.
func Unseen(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// IsVariable reports whether name can be the name of an environment variable.
func IsVariable(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r == '=' || Unseen(r) })
}

// maxPart is how many bytes a [Writer] keeps of an unfinished line.
const maxPart = 8 << 10

// Writer writes the lines that it receives to another writer, converted by [Text] and each with a prefix, so that a
// program's standard error cannot be mistaken for the output of the user's own program. It writes whole lines; a very
// long line is split. A Writer may be used concurrently.
type Writer struct {
	w      io.Writer
	prefix string

	mu   sync.Mutex
	part []byte // the unfinished line
}

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer, prefix string) *Writer { return &Writer{w: w, prefix: prefix} }

// Write writes the lines that p completes.
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

// Flush writes the last line if it is unfinished. It does not close the underlying writer.
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
