package view

import (
	"encoding/json"
	"iter"
	"strings"

	"github.com/acpgo/sdk/acp"
)

// Content is content that arrived in pieces: consecutive pieces of plain text are joined into one text. It is
// immutable.
type Content struct {
	// Dropped is the approximate number of bytes that arrived after Options.MaxMessageBytes and were not kept.
	Dropped int

	blocks []acp.ContentBlock // only appended to
	tail   string             // the text after blocks, which may grow
	// the buffer of tail; only the State writes to it, and only after the part that tails contain
	text *strings.Builder
	size int
}

// Blocks returns an iterator over the content as blocks, with the text joined.
func (c Content) Blocks() iter.Seq[acp.ContentBlock] {
	return func(yield func(acp.ContentBlock) bool) {
		for _, block := range c.blocks {
			if !yield(block) {
				return
			}
		}
		if c.text != nil {
			yield(acp.TextBlock(c.tail))
		}
	}
}

// Text returns the text of all text blocks. It does not copy if there are no other blocks.
func (c Content) Text() string {
	if len(c.blocks) == 0 {
		return c.tail
	}
	var b strings.Builder
	for block := range c.Blocks() {
		if text, ok := block.Variant.(*acp.ContentBlockText); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

// add appends a piece. The content may share its data with older copies of itself.
func (c *Content) add(block acp.ContentBlock, limit int) {
	size := blockSize(block)
	if c.Dropped > 0 || c.size+size > limit {
		c.Dropped += size
		return
	}
	c.size += size
	if text, ok := plainText(block); ok {
		if c.text == nil {
			c.text = &strings.Builder{}
		}
		c.text.WriteString(text)
		c.tail = c.text.String()
		return
	}
	if c.text != nil {
		c.blocks = append(c.blocks, acp.TextBlock(c.tail))
		c.tail, c.text = "", nil
	}
	c.blocks = append(c.blocks, block)
}

// replace replaces all content with blocks.
func (c *Content) replace(blocks []acp.ContentBlock, limit int) {
	*c = Content{}
	for _, block := range blocks {
		c.add(block, limit)
	}
}

// plainText returns the text of a block that contains nothing else.
func plainText(block acp.ContentBlock) (string, bool) {
	text, ok := block.Variant.(*acp.ContentBlockText)
	if !ok || text == nil || text.Annotations.Present() || text.Meta != nil {
		return "", false
	}
	return text.Text, true
}

// overhead is roughly how many bytes of memory anything takes in addition to its text.
const overhead = 128

// blockSize returns the approximate size of a block in bytes.
func blockSize(block acp.ContentBlock) int {
	switch b := block.Variant.(type) {
	case *acp.ContentBlockText:
		if _, plain := plainText(block); plain {
			return len(b.Text)
		}
		return overhead + len(b.Text) + metaSize(b.Meta)
	case *acp.ContentBlockImage:
		return overhead + len(b.Data) + len(b.MimeType) + len(b.URI.Value()) + metaSize(b.Meta)
	case *acp.ContentBlockAudio:
		return overhead + len(b.Data) + len(b.MimeType) + metaSize(b.Meta)
	default:
		return overhead + jsonSize(block)
	}
}

// jsonSize returns the size of a value's JSON, or 0 if it has none, which also bounds variants of newer schemas.
func jsonSize(value json.Marshaler) int {
	raw, _ := value.MarshalJSON()
	return len(raw)
}

func metaSize(meta acp.Meta) int {
	if len(meta) == 0 { // the usual case; beginning a loop costs more
		return 0
	}
	size := 0
	for key, value := range meta {
		size += len(key) + len(value)
	}
	return size
}
