package draw

import (
	"fmt"
	"strings"

	"github.com/acpgo/sdk/internal/plain"
)

// tabWidth is the distance between tab stops.
const tabWidth = 4

// clean makes a text, which may have several lines, harmless. Tabs become spaces.
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

// simple reports whether a text contains only printable ASCII characters and newlines, so that it is clean.
func simple(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c > '~') && c != '\n' {
			return false
		}
	}
	return true
}

// maxLabel is how many bytes of a text are shown as one short line.
const maxLabel = 2000

// label returns a text such as a title, a name or a path as one line. Line breaks are shown as spaces.
func label(text string) string {
	more := ""
	if len(text) > maxLabel {
		more = fmt.Sprintf("… (%d bytes more)", len(text)-maxLabel)
		text = text[:maxLabel]
	}
	return strings.Join(strings.FieldsFunc(clean(text), func(r rune) bool { return r == '\n' }), " ") + more
}

// linesOf splits a text into lines, without an empty last line.
func linesOf(text string) []string {
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// paragraph returns the lines of a text of an agent in one style.
func paragraph(text string, s style) []line {
	var out []line
	for _, l := range linesOf(clean(text)) {
		out = append(out, line{{l, s}})
	}
	return out
}
