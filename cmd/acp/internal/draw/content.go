package draw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/plain"
)

// maxText is how many bytes of a text of a tool call are drawn.
const maxText = 1 << 20

// content draws a content block.
func (p *painter) content(b acp.ContentBlock, width int) []line {
	one := func(l line) []line { return l.wrap(width, line{{"  ", style{}}}) }
	named := func(kind, name, mime string, bytes int64) line {
		l := line{{p.marks.bullet + " " + kind, p.accent}}
		if name != "" {
			l.add(" "+label(name), p.text)
		}
		if mime != "" {
			l.add("  "+label(mime), p.dim)
		}
		if bytes >= 0 {
			l.add("  "+size(bytes), p.dim)
		}
		return l
	}
	switch v := b.Variant.(type) {
	case *acp.ContentBlockText:
		return p.markdownText(v.Text, width)
	case *acp.ContentBlockImage:
		return one(named("image", v.URI.Value(), v.MimeType, decoded(v.Data)))
	case *acp.ContentBlockAudio:
		return one(named("audio", "", v.MimeType, decoded(v.Data)))
	case *acp.ContentBlockResource:
		switch r := v.Resource.Variant.(type) {
		case *acp.TextResourceContents:
			out := one(named("resource", r.URI, r.MimeType.Value(), int64(len(r.Text))))
			return append(out, p.codeBlock(clean(limit(r.Text, maxText)), "", width)...)
		case *acp.BlobResourceContents:
			return one(named("resource", r.URI, r.MimeType.Value(), decoded(r.Blob)))
		default:
			return one(named("resource of an unknown kind", "", "", -1))
		}
	case *acp.ContentBlockResourceLink:
		name := v.Title.Value()
		if name == "" {
			name = v.Name
		}
		bytes := int64(-1)
		if n, ok := v.Size.Get(); ok {
			bytes = n
		}
		l := named("link", name, v.MimeType.Value(), bytes)
		l.add("  "+label(v.URI), p.accent)
		out := one(l)
		if d := v.Description.Value(); d != "" {
			out = append(out, wrapAll(paragraph(d, p.dim), width, "  ")...)
		}
		return out
	default:
		return p.unknownContent(b, false, width)
	}
}

// markdownText draws complete Markdown of any length.
func (p *painter) markdownText(text string, width int) []line {
	s := &splitter{}
	text = limit(text, maxText)
	s.extend(text)
	blocks := s.done
	if s.open.start < len(text) {
		s.open.end = len(text)
		blocks = append(blocks, s.open)
	}
	var out []line
	for _, b := range blocks {
		lines := p.block(text[b.start:b.end], b, s, 0, width)
		if len(out) > 0 && len(lines) > 0 && !b.joined {
			out = append(out, nil)
		}
		out = append(out, lines...)
	}
	return out
}

// limit returns the beginning of a text and says how much is missing.
func limit(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return fmt.Sprintf("%s\n(%s more not shown)", strings.ToValidUTF8(text[:n], ""), size(int64(len(text)-n)))
}

// json draws JSON with a name before it, on several lines.
func (p *painter) json(name string, raw []byte, width int) []line {
	text := string(raw)
	if len(raw) <= maxHighlight {
		var b bytes.Buffer
		if json.Indent(&b, plain.JSON(raw), "", "  ") == nil {
			text = b.String()
		}
	}
	var out []line
	if name != "" {
		out = append(out, line{{name, p.dim}})
	}
	return append(out, p.codeBlock(clean(limit(text, maxText)), "json", width)...)
}

// decoded returns how many bytes a base64 text encodes.
func decoded(data string) int64 {
	n := int64(len(data))
	return n/4*3 + max(n%4-1, 0) - int64(strings.Count(data[max(0, len(data)-2):], "="))
}

// size formats a number of bytes for people.
func size(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// count formats a large number for people, with three digits.
func count(n uint64) string {
	switch {
	case n < 1000:
		return strconv.FormatUint(n, 10)
	case n < 100_000:
		return strconv.FormatFloat(float64(n/100)/10, 'f', -1, 64) + "k"
	case n < 1_000_000:
		return strconv.FormatUint(n/1000, 10) + "k"
	}
	return strconv.FormatFloat(float64(n/100_000)/10, 'f', -1, 64) + "M"
}
