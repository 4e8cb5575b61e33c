package agentkit

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp/acpv2"
)

// fileDiff returns the change of a file from one text to another. If oldText is empty, the file is new.
func fileDiff(path acpv2.AbsolutePath, oldText, newText string) acpv2.ToolCallContent {
	change := acpv2.NewDiffChangeModify(acpv2.DiffPathChange{Path: path})
	if oldText == "" {
		change = acpv2.NewDiffChangeAdd(acpv2.DiffPathChange{Path: path})
	}
	diff := acpv2.ToolCallContentDiff{Changes: []acpv2.DiffChange{change}}
	if isText(oldText) && isText(newText) {
		diff.Changes[0].FileType = acpv2.Some(acpv2.DiffFileTypeText)
		if oldText != newText {
			diff.Patch = acpv2.Some(acpv2.DiffPatch{
				Format: acpv2.DiffPatchFormatGitPatch, Text: gitPatch(string(path), oldText, newText),
			})
		}
	}
	return acpv2.ToolCallContent{Variant: &diff}
}

// isText reports whether a patch can show a file.
func isText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// changes reports whether content shows a change to exactly this file.
func changes(content acpv2.ToolCallContent, path acpv2.AbsolutePath) bool {
	diff, ok := content.Variant.(*acpv2.ToolCallContentDiff)
	if !ok || len(diff.Changes) != 1 {
		return false
	}
	switch c := diff.Changes[0].Variant.(type) {
	case *acpv2.DiffChangeAdd:
		return c.Path == path
	case *acpv2.DiffChangeModify:
		return c.Path == path
	default:
		return false
	}
}

// contextLines is how many unchanged lines a patch shows around those that change.
const contextLines = 3

// gitPatch returns a patch in Git's format with one hunk, from the first line that changes to the last. The protocol
// requires absolute paths without a prefix.
func gitPatch(path, oldText, newText string) string {
	name := quoted(path)
	tab := ""
	if strings.Contains(path, " ") && name == path {
		tab = "\t" // as Git ends such names in these lines
	}
	from, to := lines(oldText), lines(newText)
	start := 0
	for start < min(len(from), len(to)) && from[start] == to[start] {
		start++
	}
	same := 0 // lines at the end
	for same < min(len(from), len(to))-start && from[len(from)-1-same] == to[len(to)-1-same] {
		same++
	}
	first := max(0, start-contextLines)
	last := min(same, contextLines)
	var b strings.Builder
	fmt.Fprintf(&b, "diff --git %s %s\n", name, name)
	if oldText == "" {
		b.WriteString("new file mode 100644\n--- /dev/null\n")
	} else {
		fmt.Fprintf(&b, "--- %s%s\n", name, tab)
	}
	fmt.Fprintf(&b, "+++ %s%s\n", name, tab)
	fmt.Fprintf(&b, "@@ -%s +%s @@\n", span(first, len(from)-same+last), span(first, len(to)-same+last))
	write := func(sign byte, lines []string) {
		for _, line := range lines {
			b.WriteByte(sign)
			b.WriteString(line)
			if !strings.HasSuffix(line, "\n") {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	write(' ', from[first:start])
	write('-', from[start:len(from)-same])
	write('+', to[start:len(to)-same])
	write(' ', from[len(from)-same:len(from)-same+last])
	return b.String()
}

// lines returns the lines of a text with their newlines.
func lines(text string) []string {
	all := strings.SplitAfter(text, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// span returns the range of lines of a hunk; for an empty range, the line after which it is.
func span(first, end int) string {
	if end > first {
		first++
		return fmt.Sprintf("%d,%d", first, end-first+1)
	}
	return fmt.Sprintf("%d,0", first)
}

// quoted returns a path as Git writes it: in quotes if it has unusual characters.
func quoted(path string) string {
	var b strings.Builder
	plain := true
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			plain = false
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			plain = false
			b.WriteString(`\n`)
		case c == '\t':
			plain = false
			b.WriteString(`\t`)
		case c < ' ' || c >= 0x7f:
			plain = false
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	if plain {
		return path
	}
	return `"` + b.String() + `"`
}
