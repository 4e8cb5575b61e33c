package draw

// Where Markdown that is still arriving is cut, so that the text before a cut is drawn once and never again: between
// the blocks of the top level, as goldmark finds them. The last block stays open. Text that is drawn piece by piece
// looks like the whole, except that a block of more than maxBlock bytes, or code of more than maxCode, is cut for its
// size at the end of a line, and then looks like two, or is highlighted in parts.

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	textpkg "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

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
