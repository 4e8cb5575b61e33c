package draw

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	glamour "charm.land/glamour/v2/ansi"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	textpkg "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/plain"
)

// painter draws in one theme. It caches what is expensive to create.
type painter struct {
	*Theme
	renderers map[int]goldmark.Markdown // by width
	terminal  func(acp.TerminalID) (Output, bool)
	elapsed   func(acp.ToolCallID) time.Duration // nil to show no times
	took      func(turn int) time.Duration
}

func newPainter(t *Theme) *painter {
	if t == nil {
		t = Dark()
	}
	return &painter{Theme: t, renderers: map[int]goldmark.Markdown{}}
}

// maxRenderers is the maximum number of widths whose renderers are cached.
const maxRenderers = 16

// renderer returns glamour's renderer for a width, or for lines that are wrapped here if width is 0.
func (p *painter) renderer(width int) goldmark.Markdown {
	if md := p.renderers[width]; md != nil {
		return md
	}
	if len(p.renderers) >= maxRenderers {
		clear(p.renderers)
	}
	md := goldmark.New(
		goldmark.WithParser(newParser(
			parser.WithInlineParsers(
				util.Prioritized(parser.NewCodeSpanParser(), 100),
				util.Prioritized(parser.NewLinkParser(), 200),
				util.Prioritized(parser.NewAutoLinkParser(), 300),
				util.Prioritized(parser.NewEmphasisParser(), 500),
			),
			parser.WithASTTransformers(util.Prioritized(apart{}, 100)),
		)),
		goldmark.WithExtensions(extension.GFM),
	)
	none := true
	md.SetRenderer(renderer.NewRenderer(renderer.WithNodeRenderers(util.Prioritized(glamour.NewRenderer(glamour.Options{
		WordWrap: width, Styles: p.Theme.markdown, InlineTableLinks: true, TableWrap: &none, PreserveNewLines: true,
		ChromaFormatter: formatter,
	}), 1000))))
	p.renderers[width] = md
	return md
}

// apart makes a paragraph in a list item that follows another block begin on a new line, because glamour draws the
// blocks of an item one after the other. It also removes names of languages whose lookup takes long.
type apart struct{}

func (apart) Transform(doc *ast.Document, _ textpkg.Reader, _ parser.Context) {
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		kind := n.Kind()
		if code, ok := n.(*ast.FencedCodeBlock); ok && entering && code.Info != nil && code.Info.Segment.Len() > maxName {
			code.Info = nil
		}
		if !entering || kind != ast.KindParagraph && kind != ast.KindTextBlock || n.Parent().Kind() != ast.KindListItem ||
			n.PreviousSibling() == nil {
			return ast.WalkContinue, nil
		}
		mark := 2
		if list, ok := n.Parent().Parent().(*ast.List); ok && list.IsOrdered() {
			mark = len(strconv.Itoa(list.Start+list.ChildCount())) + 2
		}
		n.InsertBefore(n, n.FirstChild(), ast.NewTextSegment(textpkg.NewSegmentPadding(0, 0, mark)))
		for range 2 {
			end := ast.NewTextSegment(textpkg.NewSegment(0, 0))
			end.SetHardLineBreak(true)
			n.InsertBefore(n, n.FirstChild(), end)
		}
		return ast.WalkContinue, nil
	})
}

// reference matches a character reference of HTML. References of & before it are included, because a library may decode
// them again.
var reference = regexp.MustCompile(`&(?:amp;|AMP;|#38;|#[xX]26;)*(?:#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);?`)

// unreference replaces references to unprintable characters with their visible form.
func unreference(text string) string {
	if !strings.Contains(text, "&") {
		return text
	}
	return reference.ReplaceAllStringFunc(text, func(ref string) string {
		value := ref
		for {
			next := html.UnescapeString(value)
			if next == value {
				break
			}
			value = next
		}
		if shown := label(value); shown != value && strings.TrimSpace(value) != "" {
			return shown
		}
		return ref
	})
}

// markdownLines draws clean Markdown, whose links may refer to the definitions of a splitter.
func (p *painter) markdownLines(text string, s *splitter, width int) (out []line) {
	source := unreference(text)
	asIs := func() (out []line) {
		for _, l := range linesOf(text) {
			out = append(out, line{{l, p.text}}.wrap(width, nil)...)
		}
		return out
	}
	defer func() {
		// The libraries do not promise to handle every text. A text that they cannot draw is drawn unchanged.
		if recover() != nil {
			clear(p.renderers)
			out = asIs()
		}
	}()
	md := p.renderer(0)
	doc := md.Parser().Parse(textpkg.NewReader([]byte(source)), parser.WithContext(s.context()))
	deep, tables := survey(doc)
	if deep {
		return asIs()
	}
	if tables {
		md = p.renderer(width)
	}
	var b bytes.Buffer
	if err := md.Renderer().Render(&b, []byte(source), doc); err != nil {
		return asIs()
	}
	for _, l := range trimBlank(parse(b.String())) {
		out = append(out, l.wrap(width, p.hangingIndent(l))...)
	}
	return out
}

// maxDepth is the maximum nesting of lists, quotations and emphasis: glamour's time grows faster than its square.
const maxDepth = 20

// survey reports whether a document is nested deeper than maxDepth, and whether it has tables, for which glamour needs
// to know the width.
func survey(n ast.Node) (deep, tables bool) {
	depth := 0
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			depth--
			return ast.WalkContinue, nil
		}
		tables = tables || n.Kind() == east.KindTable
		if depth++; depth > 2*maxDepth { // a nested list is two nodes
			deep = true
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	return deep, tables
}

// hangingIndent is the prefix of continuation lines that glamour produces: the marks of quotations, and spaces below
// the mark of an item.
func (p *painter) hangingIndent(l line) line {
	var out line
	quote := strings.TrimSpace(cmp.Or(value(p.Theme.markdown.BlockQuote.IndentToken), "|"))
	text := l.text()
	at := 0
	for at < len(text) && at < 200 {
		switch rest := text[at:]; {
		case rest[0] == ' ':
			out.add(" ", style{})
			at++
			continue
		case strings.HasPrefix(rest, quote):
			out.add(quote, p.dim)
			at += len(quote)
			continue
		default:
			if m := itemMark.FindString(rest); m != "" {
				out.add(strings.Repeat(" ", textWidth(m)), style{})
			}
		}
		break
	}
	return out
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// itemMark matches the mark that glamour puts before a list item.
var itemMark = regexp.MustCompile(`^(?:[•*] |[0-9]+\. |\[[ ✓xX]\] )`)

// trimBlank removes spaces at the ends of lines, empty lines at both ends, and all but one of successive empty lines.
func trimBlank(lines []line) []line {
	out := lines[:0]
	for _, l := range lines {
		for n := len(l); n > 0; n = len(l) {
			if s := l[n-1].style; s.Bg != nil || s.Attrs&reverse != 0 || s.Underline != 0 {
				break // a space that is visible
			}
			text := strings.TrimRight(l[n-1].text, " ")
			if text != "" {
				l = append(l[:n-1:n-1], span{text, l[n-1].style})
				break
			}
			l = l[:n-1]
		}
		if len(l) == 0 && (len(out) == 0 || len(out[len(out)-1]) == 0) {
			continue
		}
		out = append(out, l)
	}
	if n := len(out); n > 0 && len(out[n-1]) == 0 {
		out = out[:n-1]
	}
	return out
}

// Where Markdown that is still arriving is cut, so that the text before a cut is drawn once and never again: between
// the blocks of the top level, as goldmark finds them. The last block stays open. Text that is drawn piece by piece
// looks like the whole, except that a block of more than maxBlock bytes, or code of more than maxCode, is cut for its
// size at the end of a line, and then looks like two, or is highlighted in parts.

const (
	maxBlock       = 16 << 10 // bytes
	maxCode        = 6 << 10  // bytes of a code block
	maxDefinitions = 200
)

// block is a piece of Markdown: text[start:end] of the text that is split.
type block struct {
	start, end int
	// fence is the line that opens the code block in whose middle the piece begins, or "".
	fence string
	// joined says that the piece continues the previous one, without an empty line between them.
	joined bool
}

// splitter splits a text that grows.
type splitter struct {
	done    []block // final
	open    block   // its end is not set; it extends to the end of the text
	scanned int     // the bytes that contain no further end of a block
	// refs are the definitions of links. Those of a label that is used before its definition count too.
	refs []parser.Reference
}

// blocks parses the blocks of Markdown.
var blocks = goldmark.New(goldmark.WithParser(newParser()), goldmark.WithExtensions(extension.Table)).Parser()

// newParser returns a parser that does not know HTML: tags are shown unchanged, while glamour would drop them, and with
// them text like Option<T>.
func newParser(options ...parser.Option) parser.Parser {
	return parser.NewParser(append(options, parser.WithBlockParsers(
		util.Prioritized(parser.NewSetextHeadingParser(), 100),
		util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(parser.NewListParser(), 300),
		util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewCodeBlockParser(), 500),
		util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
		util.Prioritized(parser.NewBlockquoteParser(), 800),
		util.Prioritized(parser.NewParagraphParser(), 1000),
	), parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...))...)
}

// context returns the context for parsing a text that may refer to the definitions.
func (s *splitter) context() parser.Context {
	pc := parser.NewContext()
	for _, ref := range s.refs {
		pc.AddReference(ref)
	}
	return pc
}

// parse returns the document of a text. The library does not promise to handle every text; one that it cannot parse is
// an empty document.
func (s *splitter) parse(text string, pc parser.Context) (doc ast.Node) {
	defer func() {
		if recover() != nil {
			doc = ast.NewDocument()
		}
	}()
	return blocks.Parse(textpkg.NewReader([]byte(text)), parser.WithContext(pc))
}

// startOf returns where the line with the beginning of a node begins.
func startOf(n ast.Node, text string) int {
	return strings.LastIndexByte(text[:max(n.Pos(), 0)], '\n') + 1
}

// extend scans a text that begins with the previously given text. It looks only at whole lines, because the rest of a
// line may change what it is.
func (s *splitter) extend(text string) {
	for {
		limit := maxBlock
		window := text[s.open.start:min(len(text), s.open.start+maxBlock)]
		if first := strings.TrimLeft(window, " \n"); s.open.fence != "" || strings.HasPrefix(first, "```") ||
			strings.HasPrefix(first, "~~~") {
			limit = maxCode
			window = window[:min(len(window), maxCode)]
		}
		end, full := strings.LastIndexByte(window, '\n')+1, len(window) == limit
		if !full && s.open.start+end <= s.scanned {
			return
		}
		began, fence, pc := s.open.start, s.open.fence, s.context()
		source := fence + window[:end]
		doc := s.parse(source, pc)
		if refs := pc.References(); len(refs) > len(s.refs) && len(refs) <= maxDefinitions {
			s.refs = refs
		}
		for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
			at, before := startOf(n, source), n.PreviousSibling()
			gap := source[len(strings.TrimRight(source[:at], " \t\r\n")):at]
			if before != nil && strings.Count(gap, "\n") < 2 && (before.Kind() == ast.KindLinkReferenceDefinition ||
				before.Kind() == ast.KindParagraph && n.Kind() == east.KindTable) {
				continue // they were one paragraph, whose second half alone may be something else
			}
			if at += began - len(fence); at > s.open.start {
				s.cut(at, block{})
			}
		}
		s.scanned = began + end
		if !full {
			return
		}
		if s.open.start == began {
			s.force(window, end, doc, source)
		}
	}
}

// cut ends the open block at an offset.
func (s *splitter) cut(at int, next block) {
	s.open.end, next.start = at, at
	s.done = append(s.done, s.open)
	s.open = next
}

// force cuts a window that has no end of a block: before its last whole line, which may be the end of a code block, or
// else within a line.
func (s *splitter) force(window string, end int, doc ast.Node, source string) {
	at := cmp.Or(strings.LastIndexByte(window[:max(end-1, 0)], '\n')+1, end, strings.LastIndexByte(window, ' ')+1)
	if at == 0 {
		at = len(window) - 1
		for at > len(window)-utf8.UTFMax && !utf8.RuneStart(window[at]) { // not within a character
			at--
		}
	}
	next := block{joined: true}
	if code, ok := doc.FirstChild().(*ast.FencedCodeBlock); ok {
		from := source[startOf(code, source):]
		next.fence = from[:strings.IndexByte(from, '\n')+1]
	} else if end == 0 {
		next.fence = s.open.fence
	}
	s.cut(s.open.start+at, next)
}

// maxText is how many bytes of a text of a tool call are drawn.
const maxText = 1 << 20

// content draws a content block.
func (p *painter) content(b acp.ContentBlock, width int) []line {
	one := func(l line) []line { return l.wrap(width, indent) }
	named := func(kind, name, mime string, bytes int64) line {
		l := line{{p.marks.bullet + " " + kind, p.accent}}
		if name != "" {
			l.add(" "+label(name), p.text)
		}
		if mime != "" {
			l.add("  "+label(mime), p.dim)
		}
		if bytes >= 0 {
			l.add("  "+size(bytes), p.dim)
		}
		return l
	}
	switch v := b.Variant.(type) {
	case *acp.ContentBlockText:
		return p.markdownText(v.Text, width)
	case *acp.ContentBlockImage:
		return one(named("image", v.URI.Value(), v.MimeType, decoded(v.Data)))
	case *acp.ContentBlockAudio:
		return one(named("audio", "", v.MimeType, decoded(v.Data)))
	case *acp.ContentBlockResource:
		switch r := v.Resource.Variant.(type) {
		case *acp.TextResourceContents:
			out := one(named("resource", r.URI, r.MimeType.Value(), int64(len(r.Text))))
			return append(out, p.codeBlock(clean(limit(r.Text)), "", width)...)
		case *acp.BlobResourceContents:
			return one(named("resource", r.URI, r.MimeType.Value(), decoded(r.Blob)))
		default:
			return one(named("resource of an unknown kind", "", "", -1))
		}
	case *acp.ContentBlockResourceLink:
		name := cmp.Or(v.Title.Value(), v.Name)
		bytes := int64(-1)
		if n, ok := v.Size.Get(); ok {
			bytes = n
		}
		l := named("link", name, v.MimeType.Value(), bytes)
		l.add("  "+label(v.URI), p.accent)
		out := one(l)
		if d := v.Description.Value(); d != "" {
			out = append(out, wrapAll(indent, paragraph(d, p.dim), width)...)
		}
		return out
	default:
		return p.unknownContent(b, false, width)
	}
}

// markdownText draws complete Markdown of any length.
func (p *painter) markdownText(text string, width int) []line {
	s := &splitter{}
	text = limit(text)
	s.extend(text)
	blocks := s.done
	if s.open.start < len(text) {
		s.open.end = len(text)
		blocks = append(blocks, s.open)
	}
	var out []line
	for _, b := range blocks {
		lines := p.block(text[b.start:b.end], b, s, 0, width)
		if len(out) > 0 && len(lines) > 0 && !b.joined {
			out = append(out, nil)
		}
		out = append(out, lines...)
	}
	return out
}

// limit returns the beginning of a text, up to maxText bytes, and says how much is missing.
func limit(text string) string {
	if len(text) <= maxText {
		return text
	}
	return fmt.Sprintf("%s\n(%s more not shown)", strings.ToValidUTF8(text[:maxText], ""), size(int64(len(text)-maxText)))
}

// json draws JSON with a name before it, on several lines.
func (p *painter) json(name string, raw []byte, width int) []line {
	text := string(raw)
	if len(raw) <= maxHighlight {
		var b bytes.Buffer
		if json.Indent(&b, plain.JSON(raw), "", "  ") == nil {
			text = b.String()
		}
	}
	var out []line
	if name != "" {
		out = append(out, line{{name, p.dim}})
	}
	return append(out, p.codeBlock(clean(limit(text)), "json", width)...)
}

// decoded returns how many bytes a base64 text encodes.
func decoded(data string) int64 {
	n := int64(len(data))
	return n/4*3 + max(n%4-1, 0) - int64(strings.Count(data[max(0, len(data)-2):], "="))
}

// size formats a number of bytes for people.
func size(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// count formats a large number for people, with three digits.
func count(n uint64) string {
	switch {
	case n < 1000:
		return strconv.FormatUint(n, 10)
	case n < 100_000:
		return strconv.FormatFloat(float64(n/100)/10, 'f', -1, 64) + "k"
	case n < 1_000_000:
		return strconv.FormatUint(n/1000, 10) + "k"
	}
	return strconv.FormatFloat(float64(n/100_000)/10, 'f', -1, 64) + "M"
}
