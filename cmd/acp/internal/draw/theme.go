// Package draw converts what an agent sends to lines of text for a terminal: the conversation of a session, its plan,
// permission requests, the output of terminals. It also writes a session to a text file.
//
// The package only computes: it starts no goroutines, reads nothing, and writes nothing except in [Export]. Its types
// are not safe for concurrent use.
//
// # What reaches the terminal
//
// Lines that functions of this package return contain only printable characters and sequences that set colors and
// attributes (SGR), which this package composes itself. Text of an agent is cleaned by package plain before anything
// else: what a terminal would interpret is shown as Go writes it in a string, such as \x1b. The output of libraries for
// cleaned text (Markdown, highlighting) is split into characters and styles again, and everything else in it is
// dropped. Lines are independent of each other: each begins and ends without a style.
//
// No line is wider than requested. The width of a character is the largest that any terminal uses for it.
package draw

import (
	"cmp"
	"strings"

	glamour "charm.land/glamour/v2/ansi"
	"charm.land/glamour/v2/styles"
	"charm.land/lipgloss/v2"
	"github.com/alecthomas/chroma/v2"
	chromastyles "github.com/alecthomas/chroma/v2/styles"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// styling says which parts of a style are shown.
type styling int

const (
	stylesAll        styling = iota
	stylesAttributes         // attributes such as bold, without colors
	stylesNone
)

// Theme is the appearance of everything. Themes are created by [Dark], [Light], [NoColor] and [Plain], and may be
// shared.
type Theme struct {
	styles styling
	marks  marks

	text, dim, strong            style
	user, thought, accent, title style
	good, bad, warn              style
	added, removed, hunk         style         // lines of diffs
	code                         *chroma.Style // nil: no highlighting
	markdown                     glamour.StyleConfig
}

// marks are the characters that this package draws with.
type marks struct {
	bar, marked, folded, unfolded         string
	pending, running, done, failed, ended string
	ellipsis, vertical, arrow, up, down   string
	todo, doing, did, bullet, dot         string
	notice                                string
}

var unicodeMarks = marks{
	bar: "┃", marked: "▌", folded: "▸", unfolded: "▾",
	pending: "○", running: "◐", done: "✓", failed: "✗", ended: "⊘",
	ellipsis: "…", vertical: "│", arrow: "→", up: "↑", down: "↓",
	todo: "○", doing: "◐", did: "✓", bullet: "•", dot: "·",
	notice: "●",
}

var asciiMarks = marks{
	bar: "|", marked: ">", folded: "+", unfolded: "-",
	pending: "[ ]", running: "[~]", done: "[x]", failed: "[!]", ended: "[-]",
	ellipsis: "...", vertical: "|", arrow: "->", up: "^", down: "v",
	todo: "[ ]", doing: "[~]", did: "[x]", bullet: "*", dot: "-",
	notice: "*",
}

func newTheme(s styling, m marks, config glamour.StyleConfig, code string) *Theme {
	t := &Theme{styles: s, marks: m, markdown: config}
	if code != "" {
		t.code = chromastyles.Get(code)
	}
	// Callers draw the margins, and empty lines between blocks are counted here. Code uses a style of the registry,
	// because glamour would register a style of its own only once for all themes.
	none := uint(0)
	t.markdown.Document.Margin = &none
	t.markdown.Document.BlockPrefix, t.markdown.Document.BlockSuffix = "", ""
	t.markdown.Document.Color = nil
	// without one, glamour changes the code
	t.markdown.CodeBlock.Chroma, t.markdown.CodeBlock.Theme = nil, cmp.Or(code, "github")
	t.markdown.CodeBlock.Margin = &none
	t.markdown.H1.Prefix, t.markdown.H1.Suffix, t.markdown.H1.BackgroundColor = "# ", "", nil
	return t
}

// Dark is the theme for terminals with a dark background.
func Dark() *Theme {
	return colored(styles.DarkStyle, "github-dark", "#12351f", "#42181c",
		palette{dim: "245", user: "117", accent: "39", good: "78", bad: "203", warn: "214", hunk: "75"})
}

// Light is the theme for terminals with a light background.
func Light() *Theme {
	return colored(styles.LightStyle, "github", "#dafbe1", "#ffebe9",
		palette{dim: "242", user: "25", accent: "27", good: "28", bad: "160", warn: "130", hunk: "25"})
}

// palette are the numbers of colors.
type palette struct{ dim, user, accent, good, bad, warn, hunk string }

// colored returns a theme with the colors of text, and the backgrounds of added and removed lines.
func colored(markdown, code, added, removed string, p palette) *Theme {
	t := newTheme(stylesAll, unicodeMarks, *styles.DefaultStyles[markdown], code)
	t.markdown.H1.Color = &p.accent
	fg := func(number string) style { return style{Fg: lipgloss.Color(number)} }
	t.dim, t.thought = fg(p.dim), style{Fg: lipgloss.Color(p.dim), Attrs: italic}
	t.accent, t.title = fg(p.accent), style{Fg: lipgloss.Color(p.accent), Attrs: bold}
	t.user, t.good, t.bad, t.warn, t.hunk = fg(p.user), fg(p.good), fg(p.bad), fg(p.warn), fg(p.hunk)
	t.strong = style{Attrs: bold}
	t.added, t.removed = style{Bg: lipgloss.Color(added)}, style{Bg: lipgloss.Color(removed)}
	return t
}

// NoColor is the theme for NO_COLOR: attributes such as bold, but no colors.
func NoColor() *Theme {
	t := newTheme(stylesAttributes, unicodeMarks, *styles.DefaultStyles[styles.DarkStyle], "")
	t.markdown.Code.Prefix, t.markdown.Code.Suffix = "`", "`"
	t.dim = style{Attrs: faint}
	t.strong = style{Attrs: bold}
	t.title = style{Attrs: bold}
	t.accent = style{Attrs: bold}
	t.thought = style{Attrs: italic}
	t.bad = style{Attrs: bold}
	t.warn = style{Attrs: bold}
	t.hunk = style{Attrs: faint}
	return t
}

// Plain is the theme for TERM=dumb, screen readers and files: no styles, and ASCII marks.
func Plain() *Theme {
	t := newTheme(stylesNone, asciiMarks, *styles.DefaultStyles[styles.AsciiStyle], "")
	t.markdown.Code.Prefix, t.markdown.Code.Suffix = "`", "`"
	t.markdown.Item.BlockPrefix = "* "
	return t
}

// style is the appearance of a character: its colors, and the attributes in shown.
type style = uv.Style

// The attributes that are shown.
const (
	bold    = uv.AttrBold
	faint   = uv.AttrFaint
	italic  = uv.AttrItalic
	reverse = uv.AttrReverse
	shown   = bold | faint | italic | reverse | uv.AttrStrikethrough
)

// merge returns a style overridden by what top sets.
func merge(s, top style) style {
	if top.Fg != nil {
		s.Fg = top.Fg
	}
	if top.Bg != nil {
		s.Bg = top.Bg
	}
	s.Underline = max(s.Underline, top.Underline)
	s.Attrs |= top.Attrs
	return s
}

// sgr returns the sequence that sets exactly a style.
func sgr(s style) string {
	if s.IsZero() {
		return "\x1b[0m"
	}
	return strings.Replace(s.String(), "\x1b[", "\x1b[0;", 1)
}

// apply changes a style by the sequence that was decoded last. It reports whether that is one that sets the style.
func apply(s *style, seq string, p *ansi.Parser) bool {
	if p.Command() != 'm' || !strings.HasPrefix(seq, "\x1b[") || !strings.HasSuffix(seq, "m") {
		return false
	}
	uv.ReadStyle(p.Params(), s)
	s.Attrs &= shown
	s.Underline, s.UnderlineColor = min(s.Underline, uv.UnderlineSingle), nil
	return true
}
