package draw

import (
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

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

func palette(n uint8) ansi.IndexedColor { return ansi.IndexedColor(n) }

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
