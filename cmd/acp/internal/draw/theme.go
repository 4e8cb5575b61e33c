package draw

import (
	"cmp"

	glamour "charm.land/glamour/v2/ansi"
	"charm.land/glamour/v2/styles"
	"charm.land/lipgloss/v2"
	"github.com/alecthomas/chroma/v2"
	chromastyles "github.com/alecthomas/chroma/v2/styles"
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
	config := *styles.DefaultStyles[styles.DarkStyle]
	t := newTheme(stylesAll, unicodeMarks, config, "github-dark")
	title := "39"
	t.markdown.H1.Color = &title
	t.dim = style{Fg: palette(245)}
	t.strong = style{Attrs: bold}
	t.user = style{Fg: palette(117)}
	t.thought = style{Fg: palette(245), Attrs: italic}
	t.accent = style{Fg: palette(39)}
	t.title = style{Fg: palette(39), Attrs: bold}
	t.good = style{Fg: palette(78)}
	t.bad = style{Fg: palette(203)}
	t.warn = style{Fg: palette(214)}
	t.added = style{Bg: lipgloss.Color("#12351f")}
	t.removed = style{Bg: lipgloss.Color("#42181c")}
	t.hunk = style{Fg: palette(75)}
	return t
}

// Light is the theme for terminals with a light background.
func Light() *Theme {
	config := *styles.DefaultStyles[styles.LightStyle]
	t := newTheme(stylesAll, unicodeMarks, config, "github")
	title := "27"
	t.markdown.H1.Color = &title
	t.dim = style{Fg: palette(242)}
	t.strong = style{Attrs: bold}
	t.user = style{Fg: palette(25)}
	t.thought = style{Fg: palette(242), Attrs: italic}
	t.accent = style{Fg: palette(27)}
	t.title = style{Fg: palette(27), Attrs: bold}
	t.good = style{Fg: palette(28)}
	t.bad = style{Fg: palette(160)}
	t.warn = style{Fg: palette(130)}
	t.added = style{Bg: lipgloss.Color("#dafbe1")}
	t.removed = style{Bg: lipgloss.Color("#ffebe9")}
	t.hunk = style{Fg: palette(25)}
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
