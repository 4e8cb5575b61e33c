package draw

import (
	"bytes"
	"cmp"
	"html"
	"regexp"
	"strconv"
	"strings"
	"time"

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
)

// painter draws in one theme. It caches what is expensive to create.
type painter struct {
	*Theme
	renderers map[int]goldmark.Markdown // by width
	terminal  func(id string) (Output, bool)
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
