package draw

import (
	"errors"
	"fmt"
	"image/color"
	"io"
	"iter"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/formatters"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/charmbracelet/x/ansi"

	"github.com/acpgo/sdk/internal/plain"
)

// span is a piece of text in one style. The text is clean: it has no control characters.
type span struct {
	text  string
	style style
}

// line is a line of the screen, or one that has yet to be wrapped.
type line []span

// maxCluster is the maximum length in bytes of a character with all its marks; additional marks are dropped. The
// longest emoji sequences have about 35 bytes.
const maxCluster = 64

// next splits the first character off a text, with the marks and joined characters that belong to it, and returns its
// maximum width in columns, because terminals do not agree on widths.
func next(text string) (cluster, rest string, width int) {
	if c := text[0]; c < utf8.RuneSelf && (len(text) == 1 || text[1] < utf8.RuneSelf) {
		return text[:1], text[1:], 1
	}
	cluster, width = ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
	if cluster == "" {
		_, size := utf8.DecodeRuneInString(text)
		cluster = text[:size]
	}
	rest = text[len(cluster):]
	if len(cluster) > maxCluster {
		end := maxCluster
		for !utf8.RuneStart(cluster[end]) {
			end--
		}
		cluster = cluster[:end]
	}
	return cluster, rest, max(width, ansi.StringWidthWc(cluster))
}

// characters yields the characters of a text as next splits them off, with their widths.
func characters(text string) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for len(text) > 0 {
			cluster, rest, width := next(text)
			if text = rest; !yield(cluster, width) {
				return
			}
		}
	}
}

// textWidth returns the maximum width of a clean text in columns.
func textWidth(text string) (n int) {
	for _, width := range characters(text) {
		n += width
	}
	return n
}

func (l line) width() int {
	n := 0
	for _, s := range l {
		n += textWidth(s.text)
	}
	return n
}

// text returns the line without styles.
func (l line) text() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteString(s.text)
	}
	return b.String()
}

// applyStyle returns the line over a style.
func (l line) applyStyle(under style) line {
	out := make(line, len(l))
	for i, s := range l {
		out[i] = span{s.text, merge(under, s.style)}
	}
	return out
}

// add appends text to the line.
func (l *line) add(text string, s style) {
	if text == "" {
		return
	}
	if n := len(*l); n > 0 && (*l)[n-1].style == s {
		(*l)[n-1].text += text
		return
	}
	*l = append(*l, span{text, s})
}

// builder collects characters into a line in linear time.
type builder struct {
	done  line
	text  strings.Builder
	style style
	width int
}

func (b *builder) add(cluster string, width int, s style) {
	if s != b.style {
		b.flush()
		b.style = s
	}
	b.text.WriteString(cluster)
	b.width += width
}

func (b *builder) flush() {
	if b.text.Len() > 0 {
		b.done = append(b.done, span{b.text.String(), b.style})
		b.text.Reset()
	}
}

// take returns the line and begins another.
func (b *builder) take() line {
	b.flush()
	l := b.done
	*b = builder{style: b.style}
	return l
}

// cell is a character.
type cell struct {
	cluster string
	width   int
	style   style
}

func (l line) cells(yield func(cell) bool) {
	for _, s := range l {
		for cluster, width := range characters(s.text) {
			if !yield(cell{cluster, width, s.style}) {
				return
			}
		}
	}
}

// wrap breaks a line into lines that are not wider than width, between words where possible. Each line except the first
// begins with indent, if that leaves room.
func (l line) wrap(width int, indent line) []line {
	width = max(width, 1)
	if l.short(width) {
		return []line{l}
	}
	before := indent.width()
	if before > width/2 {
		indent, before = nil, 0
	}
	var (
		out   []line
		b     builder
		word  []cell // what may move to the next line
		wordW int
		gap   []cell // spaces before the word
		gapW  int
	)
	start := func() {
		for _, s := range indent {
			b.add(s.text, 0, s.style)
		}
		b.width = before
	}
	first := 0      // the width of a line that is still empty
	goesOn := false // the beginning of the word is already on the line
	flush := func() {
		if len(word) == 0 {
			return
		}
		if !goesOn && b.width+gapW+wordW > width && b.width > first {
			out = append(out, b.take())
			start()
			first = before
			gap, gapW = gap[:0], 0
		}
		for _, c := range append(gap, word...) {
			if b.width+c.width > width && b.width > first {
				out = append(out, b.take())
				start()
				first = before
			}
			if first+c.width > width {
				c = cell{"?", 1, c.style} // too wide for any line
			}
			b.add(c.cluster, c.width, c.style)
		}
		word, wordW, gap, gapW = word[:0], 0, gap[:0], 0
	}
	for c := range l.cells {
		if c.cluster == " " {
			flush()
			goesOn = false
			gap = append(gap, c)
			gapW++
			continue
		}
		word = append(word, c)
		if wordW += c.width; c.width == 2 || wordW >= width {
			flush() // scripts of wide characters have no spaces; a word that is too long for a line need not wait
			goesOn = c.width != 2
		}
	}
	flush()
	for _, c := range gap { // spaces at the end are kept as far as there is room, because they may have a background
		if b.width+c.width > width {
			break
		}
		b.add(c.cluster, c.width, c.style)
	}
	return append(out, b.take())
}

// short reports whether a line obviously fits, without looking at each character.
func (l line) short(width int) bool {
	n := 0
	for _, s := range l {
		if n += len(s.text); n > width {
			return false
		}
		for i := range len(s.text) {
			if s.text[i] >= utf8.RuneSelf {
				return false
			}
		}
	}
	return true
}

// clip returns the beginning of a line that is not wider than width. If something is left out, the line ends with more.
func (l line) clip(width int, more string) line {
	if l.short(width) || l.width() <= width {
		return l
	}
	room := width - textWidth(more)
	if room < 0 {
		more, room = "", max(width, 0)
	}
	var b builder
	for c := range l.cells {
		if b.width+c.width > room {
			break
		}
		b.add(c.cluster, c.width, c.style)
	}
	b.add(more, 0, b.style)
	return b.take()
}

// pad returns the line padded with spaces to a width.
func (l line) pad(width int, s style) line {
	if n := width - l.width(); n > 0 {
		l = append(l[:len(l):len(l)], span{strings.Repeat(" ", n), s})
	}
	return l
}

// string returns the line for the terminal.
func (l line) string(t *Theme) string {
	if t.styles == stylesNone {
		return l.text()
	}
	var b strings.Builder
	var now style
	for _, s := range l {
		if s.text == "" {
			continue
		}
		if t.styles == stylesAttributes {
			s.style.Fg, s.style.Bg = nil, nil
		}
		if s.style != now {
			now = s.style
			b.WriteString(sgr(now))
		}
		b.WriteString(s.text)
	}
	if now != (style{}) {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// strings returns the lines for the terminal, which must not be wider than width.
func (t *Theme) strings(lines []line, width int) []string {
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		for _, l := range l.wrap(width, nil) {
			out = append(out, l.string(t))
		}
	}
	return out
}

// parse splits a text that may have SGR sequences, produced by a library from clean text. All other sequences are
// dropped, and other control characters are shown as package plain does.
func parse(text string) []line {
	var (
		out []line
		b   builder
		now style
	)
	decode(text, func(seq string, p *ansi.Parser) {
		switch {
		case seq == "\n":
			out = append(out, b.take())
		case isSequence(seq):
			apply(&now, seq, p) // other sequences are dropped
		default:
			for cluster, width := range characters(clean(seq)) {
				b.add(cluster, width, now)
			}
		}
	})
	return append(out, b.take())
}

// decode calls use for each sequence and each character of a text, with the parser that has read it.
func decode(text string, use func(seq string, p *ansi.Parser)) {
	p := ansi.GetParser()
	defer ansi.PutParser(p)
	for state := byte(0); len(text) > 0; {
		seq, _, n, after := ansi.DecodeSequence(text, state, p)
		if n <= 0 {
			return
		}
		state, text = after, text[n:]
		use(seq, p)
	}
}

// isSequence reports whether a text that was decoded as a unit is an escape sequence, complete or not.
func isSequence(seq string) bool {
	c := seq[0]
	return c == 0x1b || c >= 0x80 && c < 0xa0 && !utf8.ValidString(seq)
}

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
	for cluster, width := range characters(text) {
		switch cluster {
		case "\t":
			width = tabWidth - column%tabWidth
			b.WriteString("    "[:width])
		case "\n":
			b.WriteByte('\n')
			column, width = 0, 0
		default:
			b.WriteString(cluster)
		}
		column += width
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

// maxHighlight is how many bytes are highlighted at once; longer code is drawn in one color.
const maxHighlight = 256 << 10

// highlight returns the lines of a clean text, highlighted for a language or for the language of a file name.
func (p *painter) highlight(text, language, file string) []line {
	lines := linesOf(text)
	plain := func() []line {
		out := make([]line, len(lines))
		for i, l := range lines {
			out[i] = line{{l, p.text}}
		}
		return out
	}
	if p.code == nil || len(text) > maxHighlight {
		return plain()
	}
	lexer := lexerOf(language, file[strings.LastIndexAny(file, `/\`)+1:])
	if lexer == nil {
		return plain()
	}
	out, ok := p.tokens(lexer, strings.Join(lines, "\n")+"\n")
	if !ok || len(out) < len(lines) {
		return plain()
	}
	return out[:len(lines)]
}

// maxName is the maximum length of a name for looking up a lexer, because the name is compared with hundreds of
// patterns.
const maxName = 64

// lexerCache stores lexers by language and file name, for all painters: looking one up takes milliseconds.
var lexerCache struct {
	sync.Mutex
	lexers map[string]chroma.Lexer
}

// lexerOf returns the lexer of a language, or else of a file name, or nil.
func lexerOf(language, file string) chroma.Lexer {
	name := language + "\n" + file
	if name == "\n" || len(name) > maxName {
		return nil
	}
	c := &lexerCache
	c.Lock()
	defer c.Unlock()
	lexer, known := c.lexers[name]
	if known {
		return lexer
	}
	if language != "" {
		lexer = lexers.Get(language)
	} else {
		lexer = lexers.Match(file)
	}
	if c.lexers == nil || len(c.lexers) >= 1000 {
		c.lexers = map[string]chroma.Lexer{}
	}
	c.lexers[name] = lexer
	return lexer
}

// maxLexing is the maximum time for highlighting a text: a text made for that purpose may keep the expressions of a
// lexer busy for very long. Tests change it.
var maxLexing = 200 * time.Millisecond

// tokens returns the lines of a text as split by a lexer.
func (p *painter) tokens(lexer chroma.Lexer, text string) (out []line, ok bool) {
	defer func() {
		// A lexer is third-party code run on third-party text.
		if recover() != nil {
			out, ok = nil, false
		}
	}()
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, text)
	if err != nil {
		return nil, false
	}
	var now line
	var all strings.Builder
	began := time.Now()
	for token := tokens(); token != chroma.EOF; token = tokens() {
		if time.Since(began) > maxLexing {
			return nil, false
		}
		all.WriteString(token.Value)
		s := p.tokenStyle(token.Type)
		for i, piece := range strings.Split(token.Value, "\n") {
			if i > 0 {
				out = append(out, now)
				now = nil
			}
			now.add(piece, s)
		}
	}
	if len(now) > 0 {
		out = append(out, now)
	}
	return out, strings.TrimRight(all.String(), "\n") == strings.TrimRight(text, "\n")
}

// errSlow says that highlighting takes too long.
var errSlow = errors.New("draw: highlighting takes too long")

// formatter is the formatter for code in lists and quotations, which glamour draws, with the same time limit as for
// other code.
const formatter = "acp"

var _ = formatters.Register(formatter,
	chroma.FormatterFunc(func(w io.Writer, s *chroma.Style, tokens chroma.Iterator) error {
		began := time.Now()
		var b strings.Builder
		for token := tokens(); token != chroma.EOF; token = tokens() {
			if time.Since(began) > maxLexing {
				return errSlow
			}
			b.WriteString(sgr(styleOf(s.Get(token.Type))) + token.Value)
		}
		b.WriteString("\x1b[0m")
		_, err := io.WriteString(w, b.String())
		return err
	}))

func (p *painter) tokenStyle(t chroma.TokenType) style { return merge(p.text, styleOf(p.code.Get(t))) }

func styleOf(entry chroma.StyleEntry) style {
	var s style
	if entry.Colour.IsSet() {
		s.Fg = color.RGBA{entry.Colour.Red(), entry.Colour.Green(), entry.Colour.Blue(), 255}
	}
	if entry.Bold == chroma.Yes {
		s.Attrs |= bold
	}
	if entry.Italic == chroma.Yes {
		s.Attrs |= italic
	}
	return s
}

// codeBlock draws code with a bar on the left. Long lines are wrapped.
func (p *painter) codeBlock(text, info string, width int) []line {
	language, _, _ := strings.Cut(strings.TrimSpace(info), " ")
	return wrapAll(line{{p.marks.vertical + " ", p.dim}}, p.highlight(text, language, ""), width)
}

// indent is the beginning of lines that belong to the one above.
var indent = line{{"  ", style{}}}

// wrapAll draws lines after a prefix.
func wrapAll(prefix line, lines []line, width int) (out []line) {
	for _, l := range lines {
		out = append(out, wrapBehind(prefix, prefix, l, width)...)
	}
	return out
}

// wrapBehind draws a line after the prefix first; continuation lines have the prefix rest, which has the same width.
func wrapBehind(first, rest, l line, width int) []line {
	room := width - max(first.width(), rest.width())
	if room < 4 {
		return append(first[:len(first):len(first)], l...).wrap(width, nil)
	}
	var out []line
	for i, piece := range l.wrap(room, nil) {
		prefix := rest
		if i == 0 {
			prefix = first
		}
		out = append(out, append(prefix[:len(prefix):len(prefix)], piece...))
	}
	return out
}
