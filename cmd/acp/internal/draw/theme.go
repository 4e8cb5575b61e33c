package draw

import (
	"cmp"
	"image/color"

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
	added, removed, hunk         style // lines of diffs
	found                        style
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

func lipglossColor(name string) hue { return hueOf(color.Color(lipgloss.Color(name))) }

// Dark is the theme for terminals with a dark background.
func Dark() *Theme {
	config := *styles.DefaultStyles[styles.DarkStyle]
	t := newTheme(stylesAll, unicodeMarks, config, "github-dark")
	title := "39"
	t.markdown.H1.Color = &title
	t.dim = style{fg: palette(245)}
	t.strong = style{attr: bold}
	t.user = style{fg: palette(117)}
	t.thought = style{fg: palette(245), attr: italic}
	t.accent = style{fg: palette(39)}
	t.title = style{fg: palette(39), attr: bold}
	t.good = style{fg: palette(78)}
	t.bad = style{fg: palette(203)}
	t.warn = style{fg: palette(214)}
	t.added = style{bg: lipglossColor("#12351f")}
	t.removed = style{bg: lipglossColor("#42181c")}
	t.hunk = style{fg: palette(75)}
	t.found = style{attr: reverse}
	return t
}

// Light is the theme for terminals with a light background.
func Light() *Theme {
	config := *styles.DefaultStyles[styles.LightStyle]
	t := newTheme(stylesAll, unicodeMarks, config, "github")
	title := "27"
	t.markdown.H1.Color = &title
	t.dim = style{fg: palette(242)}
	t.strong = style{attr: bold}
	t.user = style{fg: palette(25)}
	t.thought = style{fg: palette(242), attr: italic}
	t.accent = style{fg: palette(27)}
	t.title = style{fg: palette(27), attr: bold}
	t.good = style{fg: palette(28)}
	t.bad = style{fg: palette(160)}
	t.warn = style{fg: palette(130)}
	t.added = style{bg: lipglossColor("#dafbe1")}
	t.removed = style{bg: lipglossColor("#ffebe9")}
	t.hunk = style{fg: palette(25)}
	t.found = style{attr: reverse}
	return t
}

// NoColor is the theme for NO_COLOR: attributes such as bold, but no colors.
func NoColor() *Theme {
	t := newTheme(stylesAttributes, unicodeMarks, *styles.DefaultStyles[styles.DarkStyle], "")
	t.markdown.Code.Prefix, t.markdown.Code.Suffix = "`", "`"
	t.dim = style{attr: faint}
	t.strong = style{attr: bold}
	t.title = style{attr: bold}
	t.accent = style{attr: bold}
	t.thought = style{attr: italic}
	t.bad = style{attr: bold}
	t.warn = style{attr: bold}
	t.hunk = style{attr: faint}
	t.found = style{attr: reverse}
	return t
}

// Plain is the theme for TERM=dumb, screen readers and pipes: no styles, and ASCII marks. Its output also contains no
// commands for CI servers; see package plain.
func Plain() *Theme {
	t := newTheme(stylesNone, asciiMarks, *styles.DefaultStyles[styles.AsciiStyle], "")
	t.markdown.Code.Prefix, t.markdown.Code.Suffix = "`", "`"
	t.markdown.Item.BlockPrefix = "* "
	return t
}
