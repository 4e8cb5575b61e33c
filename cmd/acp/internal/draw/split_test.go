package draw

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/tier"
)

// pieces are the parts of the test documents.
var pieces = []string{
	"A paragraph with *emphasis*, `code` and [a link](https://example.com/a).\n",
	"A paragraph\nof three lines\nof text.\n",
	"\n", "\n", "\n", "\n\n",
	"# Heading\n", "## Another\n", "   ### Indented\n", "#NoHeading\n",
	"Setext\n===\n", "Setext two\n---\n", "---\n", "***\n", "- - -\n",
	"- one\n- two\n", "- one\n\n- two\n", "* a\n  * b\n    * c\n", "1. first\n2. second\n", "7. seven\n", "14) fourteen\n",
	"- item\n  goes on\n", "- item\n\n  second paragraph\n", "- item\nlazy\n", "-\n", "+ plus\n", "- [ ] to do\n- [x] done\n",
	"  indented two\n", "   indented three\n", "    indented four\n", "\tindented by a tab\n",
	"```go\nfunc f() {}\n\n// ```\n```\n", "~~~\ntilde\n\n```\n~~~\n", "````\n```\n````\n", "```\nnot closed\n",
	"- ```\n  in a list\n\n  more\n  ```\n", "- a\n\n  ```go\n  x\n\n  y\n  ```\n- b\n", "1. ~~~\n   z\n\n   ~~~\n", "- ```\n  not closed\n",
	"> quoted\n> more\n", "> quoted\nlazy\n", "> ```\n> code\n> ```\n", "> - list\n>   more\n", ">\n",
	"| a | b |\n|---|---|\n| 1 | 2 |\n", "text\n| a | b |\n|---|:-:|\n| 1 | 2 |\n| 3 | 4 |\n", "| no | table |\n",
	"<div>\nhtml\n</div>\n", "<!-- comment\n\nmore -->\n", "<b>bold</b> text Option<T>\n", "<script>\nx\n\ny\n</script>\n",
	"[ref]: https://example.com/ref\n", "[Other Ref]: <https://example.com/o> \"title\"\n", "[ref]: https://example.com/second\n",
	"See [ref], [text][ref] and [x][other  ref].\n", "![image](https://example.com/i.png)\n", "https://example.com/auto\n",
	"&amp; &lt; &#65; &copy;\n", "\\*escaped\\* \\# x\n", "hard  \nbreak\n", "**bold**\n", "~~struck~~\n", "a\u00a0\u00a0- b\n", "line\r\nends\r\n",
	"世界 is wide 👩\u200d🚀\n",
}

// document returns a random document.
func document(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(12) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// texts returns lines without empty ones, for comparison, because this package itself determines the distance between
// blocks.
func texts(lines []line) []string {
	var out []string
	for _, l := range lines {
		if text := strings.TrimRight(l.text(), " "); strings.TrimSpace(text) != "" {
			out = append(out, text)
		}
	}
	return out
}

// Markdown that arrives in pieces and is drawn block by block looks like the whole document drawn at once. Top-level
// fenced code blocks are drawn by this package, so only the lines of their code are compared.
func TestBlocksLikeWhole(t *testing.T) {
	p := newPainter(Plain())
	for seed := range tier.Pick(50, 500, 500, 20_000) {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		doc := document(r)
		s := &splitter{}
		cuts := 0
		for at := 0; at < len(doc); {
			at = min(at+1+r.IntN(20), len(doc))
			s.extend(doc[:at])
			if len(s.done) < cuts {
				t.Fatalf("%q: a finished block is not any more", doc)
			}
			cuts = len(s.done)
		}
		blocks := s.done
		if s.open.start < len(doc) {
			s.open.end = len(doc)
			blocks = append(blocks, s.open)
		}
		var got []string
		code := false
		for _, b := range blocks {
			code = code || strings.Contains(doc, "```") || strings.Contains(doc, "~~~")
			got = append(got, texts(p.block(doc[b.start:b.end], b, s, view.Agent, 60))...)
		}
		want := texts(p.markdownLines(clean(doc), &splitter{}, 60))
		if code {
			got, want = words(got), words(want)
		}
		g, w := strings.Join(got, "\n"), strings.Join(want, "\n")
		if strings.Contains(w, "-----") { // glamour wraps what is drawn together with a table
			g, w = squeezed(g), squeezed(w)
		}
		if g != w {
			t.Fatalf("seed %d: %q\nblocks %+v\ngot\n%s\nwant\n%s", seed, doc, blocks, g, w)
		}
	}
}

// words returns lines without the bar of this package's own code blocks.
func words(lines []string) []string {
	var out []string
	for _, l := range lines {
		if l = strings.Join(strings.Fields(strings.ReplaceAll(l, "|", " ")), " "); l != "" {
			out = append(out, l)
		}
	}
	return out
}

// Where a document is cut does not depend on how it arrives.
func TestSplitStreaming(t *testing.T) {
	for seed := range tier.Pick(200, 2000, 2000, 20_000) {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		doc := document(r)
		whole := &splitter{}
		whole.extend(doc)
		pieces := &splitter{}
		for at := 0; at < len(doc); {
			at = min(at+1+r.IntN(5), len(doc))
			pieces.extend(doc[:at])
		}
		if got, want := fmt.Sprint(pieces.done, pieces.open), fmt.Sprint(whole.done, whole.open); got != want {
			t.Fatalf("%q: got %s, want %s", doc, got, want)
		}
	}
}

// Every block is bounded, whatever arrives: a line, a list or a paragraph that does not end, or a code block.
func TestSplitBounded(t *testing.T) {
	tier.Need(t, tier.Full)
	for name, text := range map[string]string{
		"line":      strings.Repeat("word ", 100_000),
		"no spaces": strings.Repeat("世", 200_000),
		"paragraph": strings.Repeat("word word word\n", 50_000),
		"list":      strings.Repeat("- item\n", 100_000),
		"quote":     strings.Repeat("> item\n", 100_000),
		"code":      "```go\n" + strings.Repeat("x := 1\n", 100_000),
		"code line": "```go\n" + strings.Repeat("x := 1; ", 100_000),
		"indented":  strings.Repeat("    x := 1\n\n", 100_000),
	} {
		s := &splitter{}
		for at := 0; at < len(text); {
			at = min(at+1000, len(text))
			s.extend(text[:at])
			if open := at - s.open.start; open > maxBlock {
				t.Fatalf("%s: a block of %d bytes is open", name, open)
			}
		}
		at := 0
		for _, b := range s.done {
			if b.start != at || b.end <= b.start {
				t.Fatalf("%s: block %+v at %d", name, b, at)
			}
			at = b.end
		}
	}
}

// A definition that arrives after a link that refers to it is used for the link.
func TestLateDefinition(t *testing.T) {
	s := view.New(nil)
	tr := NewTranscript(&Options{Width: 60, Theme: Plain()})
	add := func(text string) string {
		s.Update(acp.AgentMessageText(text))
		tr.Update(s.Snapshot())
		return tr.View(20)
	}
	if got := add("See [the text][Ref].\n\nMore.\n\n"); strings.Contains(got, "example.com") {
		t.Fatal(got)
	}
	if got := add("[ref]: https://example.com/late\n\n"); !strings.Contains(got, "the text https://example.com/late") {
		t.Errorf("got\n%s", got)
	}
}
