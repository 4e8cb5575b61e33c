package draw

// This file owns how Markdown is drawn.

import (
	"bytes"
	"html"
	"regexp"
	"strings"

	glamour "charm.land/glamour/v2/ansi"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	textpkg "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// painter draws in one theme. It keeps what is expensive to make.
type painter struct {
	*Theme
	renderers map[int]goldmark.Markdown // by width
	terminal  func(id string) (Output, bool)
	diffs     DiffLayout
}

func newPainter(t *Theme) *painter {
	if t == nil {
		t = Dark()
	}
	return &painter{Theme: t, renderers: map[int]goldmark.Markdown{}}
}

// maxRenderers bounds the widths that are remembered.
const maxRenderers = 16

// renderer returns glamour's renderer behind a parser that knows no HTML: tags are shown as they came, where glamour
// would leave them out, and with them what an agent writes like Option<T>.
func (p *painter) renderer(width int) goldmark.Markdown {
	if md := p.renderers[width]; md != nil {
		return md
	}
	if len(p.renderers) >= maxRenderers {
		clear(p.renderers)
	}
	md := goldmark.New(
		goldmark.WithParser(parser.NewParser(
			parser.WithBlockParsers(
				util.Prioritized(parser.NewSetextHeadingParser(), 100),
				util.Prioritized(parser.NewThematicBreakParser(), 200),
				util.Prioritized(parser.NewListParser(), 300),
				util.Prioritized(parser.NewListItemParser(), 400),
				util.Prioritized(parser.NewCodeBlockParser(), 500),
				util.Prioritized(parser.NewATXHeadingParser(), 600),
				util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
				util.Prioritized(parser.NewBlockquoteParser(), 800),
				util.Prioritized(parser.NewParagraphParser(), 1000),
			),
			parser.WithInlineParsers(
				util.Prioritized(parser.NewCodeSpanParser(), 100),
				util.Prioritized(parser.NewLinkParser(), 200),
				util.Prioritized(parser.NewAutoLinkParser(), 300),
				util.Prioritized(parser.NewEmphasisParser(), 500),
			),
			parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
			parser.WithASTTransformers(util.Prioritized(apart{}, 100)),
		)),
		goldmark.WithExtensions(extension.GFM),
	)
	none := true
	md.SetRenderer(renderer.NewRenderer(renderer.WithNodeRenderers(util.Prioritized(glamour.NewRenderer(glamour.Options{
		WordWrap: width, Styles: p.Theme.markdown, InlineTableLinks: true, TableWrap: &none, PreserveNewLines: true,
	}), 1000))))
	p.renderers[width] = md
	return md
}

// apart begins a line for each paragraph in an item of a list that follows something: glamour draws what is in an item one
// behind the other.
type apart struct{}

func (apart) Transform(doc *ast.Document, _ textpkg.Reader, _ parser.Context) {
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		kind := n.Kind()
		if !entering || kind != ast.KindParagraph && kind != ast.KindTextBlock || n.Parent().Kind() != ast.KindListItem ||
			n.PreviousSibling() == nil {
			return ast.WalkContinue, nil
		}
		for range 2 {
			end := ast.NewTextSegment(textpkg.NewSegment(0, 0))
			end.SetHardLineBreak(true)
			n.InsertBefore(n, n.FirstChild(), end)
		}
		return ast.WalkContinue, nil
	})
}

// reference is a character reference of HTML. Those of & before it are read again, because a library may do so.
var reference = regexp.MustCompile(`&(?:amp;|AMP;|#38;|#[xX]26;)*(?:#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);?`)

// unreference writes references to what is no printable character as that is shown.
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

// markdownLines draws clean Markdown. Definitions are those of links that the text refers to.
func (p *painter) markdownLines(text, definitions string, width int) (out []line) {
	source := unreference(text)
	if definitions != "" {
		source = unreference(definitions) + "\n" + source // the first definition of a label counts
	}
	asIs := func() (out []line) {
		for _, l := range linesOf(text) {
			out = append(out, line{{l, p.text}}.wrap(width, nil)...)
		}
		return out
	}
	defer func() {
		// The libraries have no promise for every text. What they cannot draw is drawn as it is.
		if recover() != nil {
			delete(p.renderers, width)
			out = asIs()
		}
	}()
	md := p.renderer(width)
	doc := md.Parser().Parse(textpkg.NewReader([]byte(source)))
	if deep(doc) {
		return asIs()
	}
	var b bytes.Buffer
	if err := md.Renderer().Render(&b, []byte(source), doc); err != nil {
		return asIs()
	}
	for _, l := range trimBlank(parse(b.String())) {
		out = append(out, l.wrap(width, hanging(l))...)
	}
	return out
}

// maxDepth is how deep lists, quotations and emphasis may be nested: the time that glamour takes grows with more than the
// square of that.
const maxDepth = 20

// deep reports whether a document is nested deeper.
func deep(n ast.Node) bool {
	depth, found := 0, false
	_ = ast.Walk(n, func(_ ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			depth--
			return ast.WalkContinue, nil
		}
		if depth++; depth > 2*maxDepth { // a list in a list is two nodes
			found = true
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	return found
}

// hanging is the indentation for what goes on of a line that glamour did not wrap.
func hanging(l line) line {
	if len(l) == 0 {
		return nil
	}
	text := l[0].text
	if n := len(text) - len(strings.TrimLeft(text, " ")); n > 0 {
		return line{{text[:n], style{}}}
	}
	return nil
}

// trimBlank removes spaces at the ends of lines, and empty lines at both ends and of several that follow each other all
// but one.
func trimBlank(lines []line) []line {
	out := lines[:0]
	for _, l := range lines {
		for n := len(l); n > 0 && l[n-1].style.bg == 0 && l[n-1].style.attr&(reverse|underline) == 0; n = len(l) {
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
