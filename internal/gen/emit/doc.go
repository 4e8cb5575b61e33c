package emit

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/acpgo/sdk/internal/gen/model"
)

// width is the last column of a line of comment. A tab counts as four.
const width = 120

var (
	link     = regexp.MustCompile(`\[([^\]]+)\]\((https?://[^)\s]+)\)`)
	see      = regexp.MustCompile(`(?m)^(See [^\[\n]*): ` + link.String() + `$`)
	listItem = regexp.MustCompile(`^\s*([-*]|\d+\.)\s+`)
)

// markdown returns a description as the lines of a doc comment: paragraphs wrapped, lists in gofmt's
// form, links as references with their targets at the end. A paragraph that only refers to a page has its address.
func markdown(text string, indent int) []string {
	text = see.ReplaceAllString(text, "$1: $3")
	var targets []string
	text = link.ReplaceAllStringFunc(text, func(s string) string {
		m := link.FindStringSubmatch(s)
		name := "[" + strings.Join(strings.Fields(m[1]), " ") + "]"
		target := name + ": " + m[2]
		if !slices.Contains(targets, target) {
			targets = append(targets, target)
		}
		return name
	})

	columns := width - len("// ") - indent
	var out, paragraph []string
	flush := func() {
		if len(paragraph) == 0 {
			return
		}
		first, rest := "", ""
		if marker := listItem.FindString(paragraph[0]); marker != "" {
			paragraph[0] = paragraph[0][len(marker):]
			first, rest = "  - ", "    "
			if marker = strings.TrimSpace(marker); marker != "-" && marker != "*" {
				first = " " + marker + " "
			}
		}
		out = append(out, wrap(strings.Join(paragraph, " "), first, rest, columns)...)
		paragraph = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.TrimSpace(line) == "":
			flush()
			if len(out) > 0 && out[len(out)-1] != "" {
				out = append(out, "")
			}
			continue
		case listItem.MatchString(line):
			inList := len(out) > 0 && len(paragraph) == 0 || len(paragraph) > 0 && listItem.MatchString(paragraph[0])
			flush()
			if !inList && len(out) > 0 && out[len(out)-1] != "" {
				out = append(out, "")
			}
			paragraph = []string{line}
			continue
		}
		paragraph = append(paragraph, strings.TrimSpace(line))
	}
	flush()
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	if len(targets) > 0 {
		out = append(append(out, ""), targets...)
	}
	return out
}

// paragraph returns text as the lines of a doc comment that is indented by so many columns.
func paragraph(text string, indent int) []string { return wrap(text, "", "", width-len("// ")-indent) }

// wrap breaks text into lines of at most the given number of columns. The first line begins with first, the others
// with rest.
func wrap(text, first, rest string, columns int) []string {
	var out []string
	line := first
	empty := true
	for word := range strings.FieldsSeq(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > columns {
			out = append(out, line)
			line, empty = rest, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	return append(out, line)
}

// describe returns a description as the doc comment of name, or instead if there is none. Without either, there is no
// comment.
func (g *generator) describe(name, description, instead string) []string {
	text := strings.TrimSpace(description)
	if text == "" && instead == "" {
		return nil
	}
	if text == "" {
		text = name + " " + instead
	} else if !strings.HasPrefix(text, name+" ") {
		text = name + g.predicate(text)
	}
	return markdown(stop(text), 0)
}

// happened matches a sentence about an event, up to its verb.
var happened = regexp.MustCompile(`^[^.]*? (has|have|was|were) (been |\w+ed\b)`)

// predicate returns a description as a predicate, to follow the name of the declaration.
func (g *generator) predicate(text string) string {
	if clause := happened.FindString(text); clause != "" && !strings.Contains(clause, " that ") {
		return " says that " + lowerFirst(text)
	}
	for _, o := range g.Openings {
		if rest, ok := strings.CutPrefix(text, o[0]); ok {
			return " " + o[1] + rest
		}
	}
	return ": " + text
}

// lowerFirst returns text with its first letter in lower case.
func lowerFirst(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToLower(first)) + text[size:]
}

// stop adds a full stop to the first paragraph if it ends with a letter.
func stop(text string) string {
	first, rest, more := strings.Cut(text, "\n\n")
	first = strings.TrimRight(first, " \n")
	if r, _ := utf8.DecodeLastRuneInString(first); unicode.IsLetter(r) || unicode.IsDigit(r) || r == ')' || r == '`' {
		first += "."
	}
	if more {
		return first + "\n\n" + rest
	}
	return first
}

// withoutFiller returns a description without the paragraphs that say nothing.
func (g *generator) withoutFiller(description string) string {
	paragraphs := slices.DeleteFunc(strings.Split(description, "\n\n"), func(p string) bool {
		return g.Filler != nil && g.Filler.MatchString(strings.Join(strings.Fields(p), " "))
	})
	return strings.TrimSpace(strings.Join(paragraphs, "\n\n"))
}

// declDoc returns the doc comment of a declaration, with more paragraphs before those for tools.
func (g *generator) declDoc(c *model.Common, instead string, more ...string) []string {
	lines := g.describe(c.Go, c.Doc, instead)
	if c.Schema != "" && !strings.EqualFold(c.Schema, c.Go) {
		lines = beforeLinks(lines, "Schema: "+c.Schema+".")
	}
	return marked(beforeLinks(lines, more...), c, 0)
}

// marked appends to a doc comment the paragraphs that mark what is deprecated, for tools, or experimental.
func marked(lines []string, c *model.Common, indent int) []string {
	if c.Deprecated {
		lines = beforeLinks(lines, "Deprecated: the schema marks it as deprecated.")
	}
	return experimental(lines, c.Experimental, c.Feature, indent)
}

// beforeLinks appends a paragraph to a doc comment, before the targets of its links.
func beforeLinks(lines []string, paragraph ...string) []string {
	if len(paragraph) == 0 {
		return lines
	}
	end := len(lines)
	for end > 0 && strings.HasPrefix(lines[end-1], "[") && strings.Contains(lines[end-1], "]: ") {
		end--
	}
	if end < len(lines) {
		end-- // the blank line
	}
	out := append([]string(nil), lines[:end]...)
	if end > 0 {
		out = append(out, "")
	}
	return append(append(out, paragraph...), lines[end:]...)
}

// experimental appends to a doc comment the paragraph that marks a declaration as experimental.
func experimental(lines []string, is bool, feature *model.Feature, indent int) []string {
	if !is {
		return lines
	}
	text := "Experimental: any minor release may change or remove it."
	if feature != nil {
		text += " It needs [" + feature.Go() + "]."
	}
	return beforeLinks(lines, paragraph(text, indent)...)
}

// enumerate joins names with commas, and with "and" or "or" before the last.
func enumerate(names []string, conjunction string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + conjunction + " " + names[last]
}
