package draw

import (
	"errors"
	"image/color"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/formatters"
	"github.com/alecthomas/chroma/v2/lexers"
)

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
	var out []line
	bar := line{{p.marks.vertical + " ", p.dim}}
	for _, l := range p.highlight(text, language, "") {
		out = append(out, wrapBehind(bar, bar, l, width)...)
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
