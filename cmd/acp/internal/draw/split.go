package draw

// Where Markdown that is still arriving may be cut, so that the text before a cut is drawn once and never again. A cut
// is made only where CommonMark ends a block whatever follows, and not everywhere it does: a list is one piece. Text
// that is drawn piece by piece looks like the whole, with these exceptions:
//
//   - A block of more than maxBlock bytes is cut for its size at the end of a line, and then looks like two.
//   - A code block of more than maxCode lines is highlighted in parts, so that a comment or a string across the
//     boundary may have the wrong color.
//   - Definitions of links are known to the whole message if each is on one line, there are at most maxDefinitions,
//     and they are not in a list or a quotation; others are known only to their own piece. A late one changes maxLate
//     pieces.

import (
	"regexp"
	"strings"
)

const (
	maxBlock = 16 << 10 // bytes
	maxCode  = 200      // lines
	maxLine  = 4 << 10  // bytes of an unfinished line
)

// block is a piece of Markdown: text[start:end] of the text that is split.
type block struct {
	start, end int
	// code says that the piece is the content of a fenced code block or a part of it; info is the info string of the
	// opening fence, and indent its indentation.
	code   bool
	info   string
	indent int
	// joined says that the piece continues the previous one, without an empty line between them.
	joined bool
}

// splitter splits a text that grows.
type splitter struct {
	done    []block // final
	scanned int     // the bytes that have been scanned: whole lines, and forced cuts
	open    block   // its end is not set; it extends to the end of the text

	fence   string // the characters that end the open code block, or ""
	lines   int    // of the open code block
	nested  bool   // the fence is in a list item, whose content begins at column item
	list    bool   // the open block is a list, or may be one
	item    int
	blank   bool // the previous line is empty
	para    bool // a paragraph may continue from the previous line
	quote   bool // that paragraph is in a quotation
	defs    bool // so far, the paragraph consists of definitions of links
	under   bool // the previous line may be the underline of a heading
	started bool // the open block has a line that is not empty
	cutNext bool // a block ended with the previous line
	midLine bool // the last cut was forced within a line

	refs []definition // of links, in order of appearance
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

// extend scans a text that begins with the previously given text.
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

// force cuts within an unfinished line.
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

// line scans a clean line from start to end, including its newline.
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

// inFence scans a line in a fenced code block. It reports false if the line is outside.
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

// block scans a line that is not empty and not in a fenced code block.
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
		return // continues a paragraph of the last item without its indentation
	case s.blank && indent < 4:
		s.cut(start, block{})
	}
	s.started = true
	if indent < 4 && s.para && !s.quote && (setext(content) || strings.Trim(content, "= ") == "") {
		s.para, s.under = false, true // the paragraph was a heading, except in some tables
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

// definition is the definition of a link label.
type definition struct {
	label, text string
}

const maxDefinitions = 200

var definitionLine = regexp.MustCompile(`^\[((?:[^\[\]\\]|\\.){1,300})\]: *(?:<[^<>]*>|[^ <]\S*)(?: +(?:"[^"]*"|'[^']*'|\([^()]*\)))? *$`)

// define records the definition of a link if a line is one. Definitions of several lines, and those in lists and
// quotations, are known only to their own block.
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

// normal normalizes a label, or a text with labels, for comparison.
func normal(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

// definitions returns the definitions of the labels that a clean text may mention.
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

// mentions reports whether a normalized text may mention a label.
func mentions(text string, ref definition) bool {
	return strings.Contains(text, "["+ref.label+"]") || strings.Contains(text, "[ "+ref.label) ||
		strings.Contains(text, ref.label+" ]")
}

// leavesPara reports whether a line in a list can be continued as a paragraph by a line that is not indented. indent is
// the indentation of the line within its item.
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

// nestedFence checks whether a line in a list begins a fenced code block.
func (s *splitter) nestedFence(content string) {
	for {
		content = strings.TrimLeft(content, " ")
		n := listMarker(content)
		if n == 0 && strings.HasPrefix(content, ">") {
			return // a quoted fence ends with the quotation
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

// setext reports whether a line may turn the previous paragraph into a heading.
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

// fenceOf returns the fence of a line that begins a code block, or "".
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

// listMarker returns the width of an item's marker and the spaces after it, or 0 if the line does not begin an item.
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
