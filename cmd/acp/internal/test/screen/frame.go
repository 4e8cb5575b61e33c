//go:build linux || darwin

package screen

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// A Frame is what a terminal shows at one moment, and the state that its program has set until then.
type Frame struct {
	Cols, Rows int
	Lines      []Line
	Cursor     struct{ X, Y int }
	Title      string
	// Modes are the modes that the program has set (true) or reset (false), by their numbers or, for those without a
	// number, by their names.
	Modes map[string]any
	// Commands are the program's other effects: titles, bells, clipboard contents, notifications, and the like.
	Commands []string
}

// A Line is a line of a screen.
type Line struct {
	Text  string
	Cells []Cell // up to the last cell that is not empty; only from [Terminal.Whole]
	Runs  []Run  // cells that do not look plain
	// Wrapped is true if the terminal, not the program, has broken the text.
	Wrapped bool
}

// A Cell is a character with its combining characters, and its width in columns.
type Cell struct {
	Text  string
	Width int
}

// A Run is a sequence of cells in a line that look the same.
type Run struct {
	Start, End int
	Style      string // such as "bold red on-#101010"
}

// Text is the screen as text.
func (f *Frame) Text() string { return text(f.Lines) }

func text(lines []Line) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(line.Text)
		b.WriteByte('\n')
	}
	return b.String()
}

// Has reports whether the screen shows a text, even if it is broken at the ends of lines.
func (f *Frame) Has(part string) bool {
	return strings.Contains(f.Text(), part) || strings.Contains(squeeze(f.Text()), squeeze(part))
}

// squeeze leaves one space between words. Borders do not count as words.
func squeeze(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return r <= ' ' || r >= '\u2500' && r <= '\u259f'
	}), " ")
}

// Style returns the style of the first occurrence of a text: the styles of its cells, each once. It is "" for plain
// cells; ok is false if the text is not found.
func (f *Frame) Style(part string) (style string, ok bool) {
	for _, line := range f.Lines {
		before, _, found := strings.Cut(line.Text, part)
		if !found {
			continue
		}
		start := cells(before)
		var styles []string
		for _, run := range line.Runs {
			if run.Start < start+cells(part) && run.End > start && !slices.Contains(styles, run.Style) {
				styles = append(styles, run.Style)
			}
		}
		return strings.Join(styles, ", "), true
	}
	return "", false
}

// cells returns the number of cells of a text of narrow characters.
func cells(text string) int { return len([]rune(text)) }

// standard are the modes that are set in a terminal before a program starts.
var standard = map[string]bool{"7": true, "25": true, "8": true, "1007": true}

// names are the names of the modes that clients use.
var names = map[string]string{
	"1": "application cursor keys", "7": "wrap", "25": "cursor", "47": "alternate screen", "1047": "alternate screen",
	"1049": "alternate screen", "9": "mouse", "1000": "mouse", "1002": "mouse", "1003": "mouse", "1004": "focus events",
	"1006": "mouse (SGR)",
	"2004": "bracketed paste", "2026": "synchronized output", "2027": "grapheme clusters", "2031": "colour scheme reports",
	"2048": "size reports",
}

// Changed returns the modes that differ from those before a program starts, sorted, such as "alternate screen on" and
// "cursor off".
func (f *Frame) Changed() (changed []string) {
	for mode, value := range f.Modes {
		if on, is := value.(bool); is && on == standard[mode] || value == 0.0 {
			continue
		}
		name := mode
		if known := names[mode]; known != "" {
			name = known
		}
		state := "off"
		switch v := value.(type) {
		case bool:
			if v {
				state = "on"
			}
		default:
			state = fmt.Sprint(v)
		}
		changed = append(changed, name+" "+state)
	}
	slices.Sort(changed)
	return slices.Compact(changed)
}

// Dump returns the frame in the format of the golden files: the lines between bars, so that spaces at the ends are
// visible, then their styles where they are not plain, then everything else.
func (f *Frame) Dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d columns, %d rows\n", f.Cols, f.Rows)
	for i, line := range f.Lines {
		fmt.Fprintf(&b, "%2d │%s\n", i+1, line.Text)
	}
	b.WriteString("\n")
	for i, line := range f.Lines {
		for _, run := range line.Runs {
			fmt.Fprintf(&b, "%2d:%d-%d %s\n", i+1, run.Start+1, run.End, run.Style)
		}
	}
	if !slices.Contains(f.Changed(), "cursor off") {
		fmt.Fprintf(&b, "cursor %d:%d\n", f.Cursor.Y+1, f.Cursor.X+1)
	}
	if f.Title != "" {
		fmt.Fprintf(&b, "title %q\n", f.Title)
	}
	for _, mode := range f.Changed() {
		fmt.Fprintf(&b, "%s\n", mode)
	}
	return b.String()
}

// Sequences returns the control sequences and control characters in bytes for a terminal, each once, sorted. If shape
// is true, it leaves out arguments that only give positions or counts, so that two runs of a program can be compared.
func Sequences(raw []byte, shape bool) []string {
	found := map[string]bool{}
	for i := 0; i < len(raw); {
		n := sequence(raw[i:])
		if n == 0 {
			i++
			continue
		}
		s := string(raw[i : i+n])
		if shape {
			s = shapeOf(s)
		}
		found[s] = true
		i += n
	}
	return slices.Sorted(maps.Keys(found))
}

// sequence returns the length in bytes of the control sequence at the beginning of raw, or 0.
func sequence(raw []byte) int {
	c := raw[0]
	if c == 0xc2 && len(raw) > 1 && raw[1] < 0xa0 { // a C1 control character in UTF-8
		return 2
	}
	if c >= ' ' && c != 0x7f {
		return 0
	}
	_, _, n, _ := ansi.DecodeSequence(raw, ansi.NormalState, nil)
	return n
}

// shapeOf removes the arguments of moves, erasures and colors, and the text of commands such as titles and links.
func shapeOf(s string) string {
	if strings.HasPrefix(s, "\x1b]") {
		kind, text, _ := strings.Cut(s, ";")
		end := "\a"
		if strings.HasSuffix(text, "\x1b\\") {
			end = "\x1b\\"
		}
		text = strings.TrimSuffix(text, end)
		if strings.IndexFunc(text, strange) < 0 {
			return kind + ";…" + end
		}
		return s
	}
	if !strings.HasPrefix(s, "\x1b[") {
		return s
	}
	final := s[len(s)-1]
	if strings.IndexByte("ABCDEFGHJKLMPSTX`abdefgmrZI@", final) >= 0 && (len(s) < 4 || s[2] < '<' || s[2] > '?') {
		return "\x1b[" + string(final)
	}
	return s
}

// Strange returns the characters in bytes for a terminal that are neither part of a control sequence nor text, each
// once: bytes that are not UTF-8, characters that change the order of others, and invisible characters.
func Strange(raw []byte) (found []string) {
	for i := 0; i < len(raw); {
		if n := sequence(raw[i:]); n > 0 {
			i += n
			continue
		}
		r, n := utf8.DecodeRune(raw[i:])
		bad := strange(r) || r == utf8.RuneError && n == 1
		if s := fmt.Sprintf("%q", raw[i:i+n]); bad && !slices.Contains(found, s) {
			found = append(found, s)
		}
		i += n
	}
	return found
}

// strange reports whether a character is not visible text.
func strange(r rune) bool {
	const joiner, nonJoiner = '\u200d', '\u200c'
	return !unicode.IsPrint(r) && r != joiner && r != nonJoiner && !unicode.Is(unicode.Mn, r)
}
