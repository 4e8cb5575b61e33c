package draw

import (
	"fmt"
	"strings"

	"github.com/acpgo/sdk/internal/plain"
)

// tabWidth is how far apart tab stops are.
const tabWidth = 4

// clean makes a text of any number of lines harmless. Tabs become spaces.
func clean(text string) string {
	if simple(text) {
		return text
	}
	text = plain.Screen(text)
	if !strings.Contains(text, "\t") {
		return text
	}
	var b strings.Builder
	column := 0
	for len(text) > 0 {
		switch text[0] {
		case '\t':
			n := tabWidth - column%tabWidth
			b.WriteString("    "[:n])
			column += n
			text = text[1:]
		case '\n':
			b.WriteByte('\n')
			column = 0
			text = text[1:]
		default:
			cluster, rest, width := next(text)
			b.WriteString(cluster)
			column += width
			text = rest
		}
	}
	return b.String()
}

// simple reports whether a text has only printable ASCII characters and newlines: it is clean.
func simple(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c > '~') && c != '\n' {
			return false
		}
	}
	return true
}

// maxLabel is how many bytes are shown of a text that is to be one short line.
const maxLabel = 2000

// label makes a text one line: a title, a name, a path. Ends of lines are shown as spaces.
func label(text string) string {
	more := ""
	if len(text) > maxLabel {
		more = fmt.Sprintf("… (%d bytes more)", len(text)-maxLabel)
		text = text[:maxLabel]
	}
	return strings.Join(strings.FieldsFunc(clean(text), func(r rune) bool { return r == '\n' }), " ") + more
}

// linesOf splits a text into lines, without an empty one at its end.
func linesOf(text string) []string {
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// paragraph are the lines of a text of an agent in one style.
func paragraph(text string, s style) []line {
	var out []line
	for _, l := range linesOf(clean(text)) {
		out = append(out, line{{l, s}})
	}
	return out
}
