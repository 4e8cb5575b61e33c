package draw

import (
	"image/color"
	"strconv"
	"strings"
)

// attr are attributes of a character.
type attr uint8

const (
	bold attr = 1 << iota
	faint
	italic
	underline
	reverse
	strike
)

// hue is a color: 0 is the terminal's default, others are one of its palette of 256 or any RGB value.
type hue uint32

const (
	paletteHue hue = 1 << 24
	rgbHue     hue = 2 << 24
)

func palette(n uint8) hue   { return paletteHue | hue(n) }
func rgb(r, g, b uint8) hue { return rgbHue | hue(r)<<16 | hue(g)<<8 | hue(b) }
func hueOf(c color.Color) hue {
	r, g, b, _ := c.RGBA()
	return rgb(uint8(r>>8), uint8(g>>8), uint8(b>>8))
}

// style is the appearance of a character.
type style struct {
	fg, bg hue
	attr   attr
}

// merge returns the style overridden by the fields that top sets.
func (s style) merge(top style) style {
	if top.fg != 0 {
		s.fg = top.fg
	}
	if top.bg != 0 {
		s.bg = top.bg
	}
	s.attr |= top.attr
	return s
}

// sgr writes the sequence that sets exactly this style.
func (s style) sgr(b *strings.Builder) {
	b.WriteString("\x1b[0")
	for i, n := range [...]int{1, 2, 3, 4, 7, 9} {
		if s.attr>>i&1 != 0 {
			b.WriteByte(';')
			b.WriteString(strconv.Itoa(n))
		}
	}
	s.fg.sgr(b, 30)
	s.bg.sgr(b, 40)
	b.WriteByte('m')
}

// sgr writes the parameters of a color; base is 30 for the foreground.
func (h hue) sgr(b *strings.Builder, base int) {
	n := int(h & 0xffffff)
	switch {
	case h == 0:
		return
	case h&rgbHue != 0:
		for _, p := range [...]int{base + 8, 2, n >> 16, n >> 8 & 0xff, n & 0xff} {
			b.WriteByte(';')
			b.WriteString(strconv.Itoa(p))
		}
		return
	case n < 8:
		n += base
	case n < 16:
		n += base + 60 - 8
	default:
		b.WriteByte(';')
		b.WriteString(strconv.Itoa(base + 8))
		b.WriteString(";5")
	}
	b.WriteByte(';')
	b.WriteString(strconv.Itoa(n))
}

// apply applies the parameters of an SGR sequence to the style. Unknown ones are ignored.
func (s *style) apply(params string) {
	fields := strings.FieldsFunc(params, func(r rune) bool { return r == ';' || r == ':' })
	if len(fields) == 0 {
		*s = style{}
		return
	}
	codes := make([]int, len(fields))
	for i, f := range fields {
		n, err := strconv.Atoi(f)
		if err != nil {
			return
		}
		codes[i] = n
	}
	for len(codes) > 0 {
		codes = codes[s.one(codes):]
	}
}

// one applies the first of the codes, and returns how many belong to it.
func (s *style) one(codes []int) int {
	set := func(a attr) { s.attr |= a }
	clear := func(a attr) { s.attr &^= a }
	switch n := codes[0]; {
	case n == 0:
		*s = style{}
	case n == 1:
		set(bold)
	case n == 2:
		set(faint)
	case n == 3:
		set(italic)
	case n == 4:
		set(underline)
	case n == 7:
		set(reverse)
	case n == 9:
		set(strike)
	case n == 22:
		clear(bold | faint)
	case n == 23:
		clear(italic)
	case n == 24:
		clear(underline)
	case n == 27:
		clear(reverse)
	case n == 29:
		clear(strike)
	case n >= 30 && n <= 37:
		s.fg = palette(uint8(n - 30))
	case n == 39:
		s.fg = 0
	case n >= 40 && n <= 47:
		s.bg = palette(uint8(n - 40))
	case n == 49:
		s.bg = 0
	case n >= 90 && n <= 97:
		s.fg = palette(uint8(n - 90 + 8))
	case n >= 100 && n <= 107:
		s.bg = palette(uint8(n - 100 + 8))
	case n == 38 || n == 48 || n == 58:
		h, used := extended(codes[1:])
		if h != 0 && n == 38 {
			s.fg = h
		} else if h != 0 && n == 48 {
			s.bg = h
		}
		return 1 + used
	}
	return 1
}

// extended reads a color of the palette of 256 or an RGB value, and returns the number of codes.
func extended(codes []int) (hue, int) {
	inRange := func(codes []int) bool {
		for _, n := range codes {
			if n < 0 || n > 255 {
				return false
			}
		}
		return true
	}
	switch {
	case len(codes) >= 2 && codes[0] == 5:
		if !inRange(codes[:2]) {
			return 0, 2
		}
		return palette(uint8(codes[1])), 2
	case len(codes) >= 4 && codes[0] == 2:
		if !inRange(codes[:4]) {
			return 0, 4
		}
		return rgb(uint8(codes[1]), uint8(codes[2]), uint8(codes[3])), 4
	}
	return 0, len(codes)
}
