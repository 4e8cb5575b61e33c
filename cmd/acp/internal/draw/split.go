package draw

// Where Markdown that is still coming may be cut, so that what is in front of a cut is drawn once and never again. A
// cut is made only where CommonMark ends a block whatever comes, and not everywhere it does: a list is one piece up to
// its end. What is drawn piece by piece looks like the whole but for these:
//
//   - A block of more than maxBlock bytes is cut for its size, at the end of a line, and then looks like two.
//   - A code block of more than maxCode lines is highlighted in parts, so that a comment or a string that goes over the edge
//     of one may have the wrong colour.
//   - Definitions of links are known to the whole message if they are one line each, at most maxDefinitions, and not in a list
//     or a quotation; others only to the piece that they are in. One that comes late changes maxLate pieces.

import (
	"regexp"
	"strings"
)

const (
	maxBlock = 16 << 10 // bytes
	maxCode  = 200      // lines
	maxLine  = 4 << 10  // bytes of a line that is not ended
)

// block is a piece of Markdown text: text[start:end] of what was split.
type block struct {
	start, end int
	// code says that the piece is what is between fences, or a part of it; info is what the opening fence says, and indent
	// how far it is indented.
	code   bool
	info   string
	indent int
	// joined says that the piece goes on with the one before: no empty line between them.
	joined bool
}

// splitter splits a text that grows.
type splitter struct {
	done    []block // they stay as they are
	scanned int     // the bytes that were looked at: whole lines, and forced cuts
	open    block   // end is not set: it goes up to the end of the text

	fence   string // the characters that end the open code block, or ""
	lines   int    // of the open code block
	nested  bool   // the fence is in an item of a list, whose content begins at column item
	list    bool   // the open block is a list, or may be one
	item    int
	blank   bool // the line before is empty
	para    bool // the line before may be continued as a paragraph
	quote   bool // which is in a quotation
	defs    bool // the paragraph consists of definitions of links so far
	under   bool // the line before may be the underline of a heading
	started bool // the open block has a line that is not empty
	cutNext bool // a block has ended with the line before
	midLine bool // the last cut was forced within a line

	refs []definition // of links, in the order in which they came
}

// cut ends the open block at an offset.
func (s *splitter) cut(at int, next block) {
	if s.started || s.open.code {
		s.open.end = at
		s.done = append(s.done, s.open)
	}
	next.start = at
	s.open = next
	s.list, s.para, s.under, s.defs, s.started, s.cutNext, s.lines = false, false, false, false, false, false, 0
	s.nested, s.fence = false, ""
}

// extend looks at a text that begins with the one that was given before.
func (s *splitter) extend(text string) {
	for {
		rest := text[s.scanned:]
		end := strings.IndexByte(rest, '\n')
		if end < 0 {
			if len(rest) > maxLine && len(text)-s.open.start > maxBlock {
				s.force(text)
				continue
			}
			return
		}
		s.line(clean(strings.TrimSuffix(rest[:end], "\r")), s.scanned, s.scanned+end+1)
		s.scanned += end + 1
	}
}

// force cuts within a line that does not end.
func (s *splitter) force(text string) {
	at := s.scanned + maxLine
	if space := strings.LastIndexByte(text[s.scanned:at], ' '); space > 0 {
		at = s.scanned + space + 1
	} else {
		for at > s.scanned+1 && text[at]&0xc0 == 0x80 {
			at--
		}
	}
	s.started = true
	open, fence, nested := s.open, s.fence, s.nested
	s.cut(at, block{code: open.code, info: open.info, indent: open.indent, joined: true})
	if open.code {
		s.fence, s.nested = fence, nested
	}
	s.scanned = at
	s.midLine = true
}

// line looks at a line, which is clean and goes from start to end with its newline.
func (s *splitter) line(text string, start, end int) {
	if s.midLine {
		s.midLine = false
		s.started, s.para = true, !s.open.code
		return
	}
	content := strings.TrimLeft(text, " ")
	indent := len(text) - len(content)
	if s.fence != "" {
		if s.inFence(content, indent, start, end) {
			return
		}
	}
	if content == "" {
		s.blank = true
		s.para, s.under, s.defs = false, false, false
		return
	}
	if s.cutNext {
		s.cut(start, block{})
	}
	s.block(content, indent, start, end)
	s.blank = false
	if end-s.open.start > maxBlock && s.fence == "" {
		s.started = true
		joined := s.para
		s.cut(end, block{joined: joined})
	}
}

// inFence looks at a line in a code block with fences. It reports false if the line is not in it.
func (s *splitter) inFence(content string, indent, start, end int) bool {
	if s.nested && content != "" && indent < s.item {
		s.fence, s.nested = "", false
		return false
	}
	closing := strings.TrimRight(content, " ")
	if (indent < 4 || s.nested) && strings.HasPrefix(closing, s.fence) && strings.Trim(closing, s.fence[:1]) == "" {
		s.fence = ""
		if s.nested {
			s.nested, s.blank, s.para = false, false, false
			return true
		}
		s.cut(start, block{start: end})
		s.open.start = end
		s.blank = false
		return true
	}
	if !s.nested {
		s.started = true
		if s.lines++; s.lines >= maxCode || end-s.open.start > 4*maxBlock {
			open, fence := s.open, s.fence
			s.cut(end, block{code: true, info: open.info, indent: open.indent, joined: true})
			s.fence = fence
		}
	}
	s.blank = false
	return true
}

// block looks at a line that is not empty and not in a code block with fences.
func (s *splitter) block(content string, indent, start, end int) {
	marker := 0
	if indent < 4 || s.list {
		marker = listMarker(content)
	}
	switch {
	case s.list && indent >= s.item:
		s.para = s.leavesPara(content, indent-s.item)
		s.nestedFence(content)
		s.started = true
		return
	case indent < 4 && heading(content):
		s.cut(start, block{})
		s.started, s.cutNext = true, true
		return
	case indent < 4 && thematic(content) && (s.list || !s.para && !s.under || !setext(content)):
		s.cut(start, block{})
		s.started, s.cutNext = true, true
		return
	case indent < 4 && fenceOf(content) != "":
		fence := fenceOf(content)
		s.cut(start, block{code: true, info: strings.TrimSpace(content[len(fence):]), indent: indent})
		s.open.start = end
		s.fence = fence
		return
	case s.list && marker > 0 && indent < 4:
		s.item, s.para = indent+marker, false
		s.para = s.leavesPara(content, 0)
		s.nestedFence(content)
		return
	case s.list && (s.blank || content[0] == '>' || !s.para):
		s.cut(start, block{})
	case s.list:
		return // a paragraph of the last item goes on, without its indentation
	case s.blank && indent < 4:
		s.cut(start, block{})
	}
	s.started = true
	if indent < 4 && s.para && !s.quote && (setext(content) || strings.Trim(content, "= ") == "") {
		s.para, s.under = false, true // what was a paragraph is a heading, but for some tables
		return
	}
	s.under = false
	s.quote = content[0] == '>' || s.quote && s.para
	if (!s.para || s.defs) && indent < 4 && marker == 0 && s.define(content) {
		s.para, s.defs = true, true
		return
	}
	s.defs = false
	if marker > 0 && (!s.para || s.quote || interrupts(content, marker)) {
		s.list, s.item, s.para = true, indent+marker, false
		s.para = s.leavesPara(content, 0)
		s.nestedFence(content)
		return
	}
	if content[0] == '>' && indent < 4 {
		s.para = s.leavesPara(content, 0)
		return
	}
	s.para = s.para || indent < 4
}

// definition says where the links go that have a label.
type definition struct {
	label, text string
}

const maxDefinitions = 200

var definitionLine = regexp.MustCompile(`^\[((?:[^\[\]\\]|\\.){1,300})\]: *(?:<[^<>]*>|[^ <]\S*)(?: +(?:"[^"]*"|'[^']*'|\([^()]*\)))? *$`)

// define notes a definition of a link, if a line is one. Of those that are not one line, and of those in lists and
// quotations, only the block that they are in knows.
func (s *splitter) define(content string) bool {
	if content[0] != '[' {
		return false
	}
	m := definitionLine.FindStringSubmatch(content)
	if m == nil || strings.TrimSpace(m[1]) == "" {
		return false
	}
	if len(s.refs) < maxDefinitions {
		s.refs = append(s.refs, definition{normal(m[1]), content})
	}
	return true
}

// normal is a label, or a text with labels, as labels are compared.
func normal(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

// definitions are those of the labels that a clean text may mention.
func (s *splitter) definitions(text string) string {
	if len(s.refs) == 0 || !strings.Contains(text, "[") {
		return ""
	}
	text = normal(text)
	var b strings.Builder
	for _, ref := range s.refs {
		if mentions(text, ref) {
			b.WriteString(ref.text + "\n")
		}
	}
	return b.String()
}

// mentions reports whether a normal text may mention a label.
func mentions(text string, ref definition) bool {
	return strings.Contains(text, "["+ref.label+"]") || strings.Contains(text, "[ "+ref.label) || strings.Contains(text, ref.label+" ]")
}

// leavesPara reports whether a line in a list may be continued as a paragraph by a line that is not indented. The line is
// indented by so many columns within its item.
func (s *splitter) leavesPara(content string, indent int) bool {
	para := s.para
	for {
		if indent >= 4 && !para {
			return false // code
		}
		if thematic(content) || heading(content) || fenceOf(content) != "" || para && strings.Trim(content, "= ") == "" ||
			para && setext(content) {
			return false
		}
		n := listMarker(content)
		if n == 0 && content != "" && content[0] == '>' {
			n = 1
		}
		if n == 0 {
			return content != ""
		}
		rest := content[min(n, len(content)):]
		content = strings.TrimLeft(rest, " ")
		indent, para = len(rest)-len(content), false
	}
}

// nestedFence notes that a line in a list begins a code block with fences.
func (s *splitter) nestedFence(content string) {
	for {
		content = strings.TrimLeft(content, " ")
		n := listMarker(content)
		if n == 0 && strings.HasPrefix(content, ">") {
			return // what is quoted ends with the quotation
		}
		if n == 0 {
			break
		}
		content = content[min(n, len(content)):]
	}
	if fence := fenceOf(content); fence != "" {
		s.fence, s.nested = fence, true
	}
}

// heading reports whether a line is a heading that begins with #.
func heading(content string) bool {
	n := len(content) - len(strings.TrimLeft(content, "#"))
	return n >= 1 && n <= 6 && (len(content) == n || content[n] == ' ')
}

// setext reports whether a line may make a heading of the paragraph before it.
func setext(content string) bool {
	return strings.Trim(strings.TrimRight(content, " "), "-") == ""
}

// thematic reports whether a line is a thematic break, or the underline of a heading.
func thematic(content string) bool {
	if content == "" {
		return false
	}
	switch content[0] {
	case '*', '-', '_':
		return strings.Trim(content, content[:1]+" ") == "" && strings.Count(content, content[:1]) >= 3
	}
	return false
}

// fenceOf is the fence that a line begins a code block with, or "".
func fenceOf(content string) string {
	if content == "" || content[0] != '`' && content[0] != '~' {
		return ""
	}
	n := len(content) - len(strings.TrimLeft(content, content[:1]))
	if n < 3 || content[0] == '`' && strings.Contains(content[n:], "`") {
		return ""
	}
	return content[:n]
}

// listMarker is how many columns the marker of an item takes with the spaces behind it, or 0 if the line begins no item.
func listMarker(content string) int {
	n := 0
	for n < len(content) && n < 9 && content[n] >= '0' && content[n] <= '9' {
		n++
	}
	switch {
	case content == "":
		return 0
	case n == 0 && strings.IndexByte("-+*", content[0]) >= 0:
	case n > 0 && n < len(content) && (content[n] == '.' || content[n] == ')'):
	default:
		return 0
	}
	n++
	rest := strings.TrimLeft(content[n:], " ")
	switch spaces := len(content) - n - len(rest); {
	case rest == "":
		return n + 1
	case spaces == 0:
		return 0
	case spaces > 4:
		return n + 1
	default:
		return n + spaces
	}
}

// interrupts reports whether the item that a line begins may follow a paragraph without an empty line.
func interrupts(content string, marker int) bool {
	if len(content) < marker || strings.TrimSpace(content[marker-1:]) == "" {
		return false
	}
	return content[0] < '0' || content[0] > '9' || content[:2] == "1." || content[:2] == "1)"
}
