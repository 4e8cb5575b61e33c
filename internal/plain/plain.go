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
	"unicode/utf16"
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

func lines(text string, commands bool) string { return (&Stream{screen: !commands}).Text(text) }

// Exact returns text so that two different texts look different, for what a user decides about: it is [Text] with
// everything escaped that only shapes the characters before it, with tabs as \t, with all spaces but the plain one
// escaped, and with plain ones escaped at the beginning of the text and at the end of a line.
func Exact(text string) string {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		words := strings.TrimRight(line, " ")
		if i == 0 {
			words = strings.TrimLeft(words, " ")
			b.WriteString(strings.Repeat(`\x20`, len(strings.TrimRight(line, " "))-len(words)))
		}
		for _, r := range words {
			if r != ' ' && unicode.Is(unicode.Zs, r) {
				b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
			} else {
				writeRune(&b, r, 0)
			}
		}
		b.WriteString(strings.Repeat(`\x20`, len(line)-len(strings.TrimRight(line, " "))))
	}
	return b.String()
}

// A Stream converts text that arrives in pieces as [Text] converts the whole. Its zero value is ready for use.
type Stream struct {
	// Data says that the text may be read by programs, so that only workflow commands are escaped.
	Data bool

	screen bool   // workflow commands stay
	inLine bool   // the line has more than spaces
	tail   string // the end of the line so far, if a command may begin in it
	before rune   // the last character
}

// Text converts the next piece.
func (s *Stream) Text(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for first := s.splits(text); len(text) > 0; first = false {
		c := command(text, !s.inLine)
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		s.note(r)
		switch {
		case (c > 0 || first) && !s.screen:
			writeCommand(&b, byte(r))
		case r == '\n', r == '\t', s.Data:
			b.WriteRune(r)
		case r == '\r' && strings.HasPrefix(text, "\n"):
		default:
			writeRune(&b, r, s.before)
		}
		s.before = r
	}
	return b.String()
}

// note adds a character to what is known of the line.
func (s *Stream) note(r rune) {
	switch {
	case r == '\n':
		s.inLine, s.tail = false, ""
		return
	case r == '#' && s.tail != "##", r == ':' && !s.inLine:
		if s.tail != "#" {
			s.tail = ""
		}
		s.tail += string(r)
	case r == '#' || strings.HasPrefix(s.tail, "##") && unicode.IsLetter(r) && len(s.tail) < maxCommand:
		if r != '#' {
			s.tail += string(r)
		}
	default:
		s.tail = ""
	}
	s.inLine = s.inLine || !unicode.IsSpace(r)
}

// maxCommand is the maximum length of the name of a command that is found in several pieces.
const maxCommand = 100

// splits reports whether a command begins in the last piece and continues in text.
func (s *Stream) splits(text string) bool {
	whole := s.tail + text
	return s.tail != "" && text != "" &&
		(command(whole, s.tail == ":") > 0 || s.tail == "##" && command(whole[1:], false) > 0)
}

// Line returns text as a single line, like [Text], but with newlines and tabs written as \n and \t. It truncates a very
// long text, and adds how much is missing.
func Line(text string) string {
	var b strings.Builder
	count, start, before := 0, true, rune(0)
	for i, r := range text {
		if count++; count > maxLine {
			fmt.Fprintf(&b, "… (%d bytes more)", len(text)-i)
			break
		}
		if c := command(text[i:], start); c > 0 {
			writeCommand(&b, c)
		} else {
			writeRune(&b, r, before)
		}
		start, before = start && unicode.IsSpace(r), r
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

// writeRune writes the character after another one, for all functions of this package.
func writeRune(b *strings.Builder, r, before rune) {
	switch {
	case shapes(r, before), Visible(r):
		b.WriteRune(r)
	case unicode.Is(unicode.Zs, r):
		b.WriteByte(' ')
	case unicode.IsPrint(r):
		b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
	default:
		b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
	}
}

// Visible reports whether a character has a shape of its own.
func Visible(r rune) bool { return unicode.IsPrint(r) && !blank(r) }

// shapes reports whether a character has no shape of its own, but gives one to the character before it: a joiner after
// a letter or mark of a script that has no capital letters, or after a symbol; or one selector of a symbol's variant.
func shapes(r, before rune) bool {
	const joiner, nonJoiner, textStyle, emojiStyle = '\u200d', '\u200c', '\ufe0e', '\ufe0f'
	switch r {
	case joiner, nonJoiner:
		return before == emojiStyle || !blank(before) &&
			unicode.In(before, unicode.Lo, unicode.Mn, unicode.Mc, unicode.So, unicode.Sk)
	case textStyle, emojiStyle:
		return before > unicode.MaxLatin1 && !blank(before) &&
			unicode.In(before, unicode.So, unicode.Sm, unicode.Sk, unicode.Po)
	}
	return false
}

// blank reports whether a character that counts as printable cannot be seen: Unicode says that programs may ignore it,
// or it is one of the few letters and symbols whose shape is empty, for which there is no property.
func blank(r rune) bool {
	const brailleBlank, nullNotehead, fullBlank, halfBlank, khitanFiller = '\u2800', '\U0001d159', '\U00013441',
		'\U00013442', '\U00016fe4'
	switch r {
	case brailleBlank, nullNotehead, fullBlank, halfBlank, khitanFiller:
		return true
	}
	return unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Unseen reports whether a character in a name is invisible, or changes how others appear: it is a control or format
// character, such as those that reverse the order of the text after them, or a line separator.
func Unseen(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

// Fold returns the same text for texts that differ only in case.
func Fold(text string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return unicode.ToLower(least)
	}, text)
}

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

// JSON returns valid JSON as people read it: characters that were escaped although they can be seen, as in
// "\u0026\u0026", are themselves. The value stays the same.
func JSON(value []byte) []byte {
	out := make([]byte, 0, len(value))
	for i := 0; i < len(value); {
		if value[i] != '\\' || i+1 == len(value) {
			out = append(out, value[i])
			i++
			continue
		}
		r, n := escaped(value[i:])
		if n == 6 && utf16.IsSurrogate(r) {
			low, _ := escaped(value[i+n:])
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				n = 12
			}
		}
		if n > 2 && r != '"' && r != '\\' && r != utf8.RuneError && Visible(r) {
			out = utf8.AppendRune(out, r)
		} else {
			out = append(out, value[i:i+n]...)
		}
		i += n
	}
	return out
}

// escaped returns the character that is escaped as \uXXXX at the beginning of a text, and the length of the escape,
// which is 2 if it is another one.
func escaped(text []byte) (r rune, n int) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, 2
	}
	code, err := strconv.ParseUint(string(text[2:6]), 16, 32)
	if err != nil {
		return 0, 2
	}
	return rune(code), 6
}

// Quote joins the words of a command, each quoted as a shell needs it, so that its beginning and end are visible.
func Quote(words ...string) string {
	var all []string
	for _, w := range words {
		if w == "" || strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%") != "" {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		all = append(all, w)
	}
	return strings.Join(all, " ")
}
