package codec

import (
	"bytes"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	lows  = 0x0101010101010101 // the lowest bit of each byte
	highs = 0x8080808080808080 // the highest bit of each byte
)

// special marks in the highest bit of each byte of w whether that is a quote, a backslash or a
// control character. Only the lowest mark is reliable: a borrow may add some above it.
//
// Flipping the second bit makes a quote the only character less than '!' other than the control characters, which stay
// less: one comparison finds both.
func special(w uint64) uint64 {
	low := (w ^ lows*2) - lows*'!'
	slash := (w ^ lows*'\\') - lows
	return (low | slash) &^ w & highs
}

// word returns eight bytes of s as they would be loaded from little-endian memory; the compiler generates a single
// load.
func word[T string | []byte](s T, i int) uint64 {
	s = s[i : i+8]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// slashes marks in the highest bit of each byte of w whether that is a backslash, as special does.
func slashes(w uint64) uint64 {
	slash := w ^ lows*'\\'
	return (slash - lows) &^ slash & highs
}

// putWord stores w in dst as word loads it.
func putWord(dst []byte, w uint64) {
	dst = dst[:8]
	dst[0], dst[1], dst[2], dst[3] = byte(w), byte(w>>8), byte(w>>16), byte(w>>24)
	dst[4], dst[5], dst[6], dst[7] = byte(w>>32), byte(w>>40), byte(w>>48), byte(w>>56)
}

// plain returns the offset, from i on, of the first byte of s that may not stand in a JSON string
// as it is, or len(s), and whether all that precedes it from i on is ASCII.
func plain[T string | []byte](s T, i int) (end int, ascii bool) {
	var seen uint64
	far := i + 64
	for len(s)-i >= 8 {
		w := word(s, i)
		if m := special(w); m != 0 {
			seen |= w & (m&-m - 1)
			return i + bits.TrailingZeros64(m)/8, seen&highs == 0
		}
		seen |= w
		if i += 8; i == far {
			i, seen = plainWords(s, i, seen)
		}
	}
	for i < len(s) && s[i] >= ' ' && s[i] != '"' && s[i] != '\\' {
		seen |= uint64(s[i])
		i++
	}
	return i, seen&highs == 0
}

// plainWords is plain by four words at a time, as far as that goes: a fifth faster where a text continues
// without escapes, slower where it does not.
func plainWords[T string | []byte](s T, i int, seen uint64) (int, uint64) {
	for len(s)-i >= 32 {
		a, b, c, d := word(s, i), word(s, i+8), word(s, i+16), word(s, i+24)
		if special(a)|special(b)|special(c)|special(d) != 0 {
			break
		}
		seen |= a | b | c | d
		i += 32
	}
	return i, seen
}

// AppendString appends s to dst as a JSON string, as [Encoder.Str] writes it.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for {
		n, ascii := plain(s, 0)
		if ascii || utf8.ValidString(s[:n]) {
			dst = append(dst, s[:n]...)
		} else {
			for _, r := range s[:n] {
				dst = utf8.AppendRune(dst, r)
			}
		}
		if n == len(s) {
			return append(dst, '"')
		}
		dst = appendEscape(dst, s[n])
		if s = s[n+1:]; n < 8*farApart {
			dst, s = appendDense(dst, s)
		}
	}
}

// farApart is how many words without an escape are enough for plain to be faster.
const farApart = 3

// appendDense appends the beginning of s, word by word, as long as it is ASCII and its escapes are not far apart, as in
// source code. It returns the rest.
func appendDense(dst []byte, s string) (longer []byte, rest string) {
	for words := 0; len(s) >= 8 && words < farApart; words++ {
		w := word(s, 0)
		if w&highs != 0 {
			break
		}
		if cap(dst)-len(dst) < 8 {
			dst = slices.Grow(dst, 8)
		}
		n := len(dst)
		putWord(dst[n:n+8], w)
		if m := special(w); m != 0 {
			escaped := bits.TrailingZeros64(m) / 8
			dst = appendEscape(dst[:n+escaped], s[escaped])
			s, words = s[escaped+1:], -1
			continue
		}
		dst, s = dst[:n+8], s[8:]
	}
	return dst, s
}

func appendEscape(dst []byte, c byte) []byte {
	const digits = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&0xf])
}

// escapes maps the character after a backslash to the character that the two stand for.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// short returns the character of the escape sequence at the beginning of s, if the sequence is one of two bytes, or 0.
// It is escape for nearly all of them, inlined.
func short(s []byte) byte {
	if len(s) < 2 {
		return 0
	}
	return escapes[s[1]]
}

// escape reads the escape sequence that s starts with. Its length is 0 if it is malformed; lone reports an unpaired
// surrogate, which stands for U+FFFD.
func escape(s []byte) (r rune, size int, lone bool) {
	if c := short(s); c != 0 {
		return rune(c), 2, false
	}
	r, ok := hex(s)
	if !ok {
		return 0, 0, false
	}
	if !utf16.IsSurrogate(r) {
		return r, 6, false
	}
	if low, ok := hex(s[6:]); ok {
		if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
			return both, 12, false
		}
	}
	return utf8.RuneError, 6, true
}

// hex reads the \uXXXX that s starts with.
func hex(s []byte) (r rune, ok bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	for _, c := range s[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unescape returns the text of the content of a JSON string, which has size bytes; lone reports whether it had an
// unpaired surrogate.
func unescape(s []byte, size int) (text string, lone bool) {
	if size <= fewBytes {
		var buf [fewBytes + wordAndRune]byte
		n, rest, lone := unescapeWords(buf[:], s)
		if len(rest) > 0 { // only if the text has not been checked
			return string(buf[:n]) + string(rest), lone
		}
		return string(buf[:n]), lone
	}
	var b strings.Builder
	b.Grow(size)
	if (len(s)-size)*dense > len(s) {
		s, lone = unescapeDense(&b, s)
	}
	for {
		n := bytes.IndexByte(s, '\\')
		if n < 0 {
			b.Write(s)
			return b.String(), lone
		}
		b.Write(s[:n])
		s = s[n:]
		if c := short(s); c != 0 {
			b.WriteByte(c)
			s = s[2:]
			continue
		}
		r, length, l := escape(s)
		if length == 0 { // only if the text has not been checked
			b.Write(s)
			return b.String(), lone
		}
		b.WriteRune(r)
		lone = lone || l
		s = s[length:]
	}
}

// The best way to find escape sequences depends on the text. If it is short, or if escape sequences are dense, with
// more than one in this many bytes, as in source code, going word by word saves a tenth of the reading time.
const (
	fewBytes = 100
	dense    = 16
)

func unescapeDense(b *strings.Builder, s []byte) (rest []byte, lone bool) {
	var buf [256]byte
	for {
		n, rest, l := unescapeWords(buf[:], s)
		if n == 0 {
			return rest, lone
		}
		b.Write(buf[:n])
		s, lone = rest, lone || l
	}
}

// wordAndRune is the least space that unescapeWords needs.
const wordAndRune = 8 + utf8.UTFMax

// unescapeWords is unescape into the beginning of buf, as long as there is space. It copies whole words, so bytes after
// n may be garbage. It returns how much it wrote, and the rest of s.
func unescapeWords(buf, s []byte) (n int, rest []byte, lone bool) {
	for len(s) > 0 && n <= len(buf)-wordAndRune {
		plain := 0
		if len(s) >= 8 {
			w := word(s, 0)
			putWord(buf[n:], w)
			m := slashes(w)
			if m == 0 {
				s, n = s[8:], n+8
				continue
			}
			plain = bits.TrailingZeros64(m) / 8
		} else {
			for plain < len(s) && s[plain] != '\\' {
				buf[n+plain] = s[plain]
				plain++
			}
			if plain == len(s) {
				return n + plain, nil, lone
			}
		}
		s, n = s[plain:], n+plain
		if c := short(s); c != 0 {
			buf[n] = c
			s, n = s[2:], n+1
			continue
		}
		r, length, l := escape(s)
		if length == 0 { // only if the text has not been checked
			break
		}
		n += utf8.EncodeRune(buf[n:], r)
		lone = lone || l
		s = s[length:]
	}
	return n, s, lone
}
