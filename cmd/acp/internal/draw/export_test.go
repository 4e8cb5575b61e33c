package draw

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// outline returns the top-level headings and code blocks of a Markdown document.
func outline(source string) (headings, code []string) {
	doc := goldmark.New().Parser().Parse(text.NewReader([]byte(source)))
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		var b strings.Builder
		for i := range n.Lines().Len() {
			l := n.Lines().At(i)
			b.Write(l.Value([]byte(source)))
		}
		switch n.Kind() {
		case ast.KindHeading:
			headings = append(headings, b.String())
		case ast.KindFencedCodeBlock:
			code = append(code, b.String())
		}
	}
	return headings, code
}

// Another Markdown parser finds every fenced text unchanged, whatever fences it contains, and every message under its
// heading, whatever the previous message leaves open.
func TestExportRoundTrip(t *testing.T) {
	fragments := []string{"```\n", "````\n", "``` x\n", "~~~\n", "text\n", "\n", "  ```go\n", "- ```\n  x\n", "> ```\n", "# heading\n", "    indented\n", "`", "\ttab", "<!-- open\n", "<pre>\n", "<script>\n\n", "1. ~~~~\n\n   y\n"}
	for seed := range 3000 {
		r := rand.New(rand.NewPCG(uint64(seed), 5))
		random := func() string {
			var b strings.Builder
			for range r.IntN(8) {
				b.WriteString(fragments[r.IntN(len(fragments))])
			}
			return b.String()
		}
		s := view.New(nil)
		s.Update(acp.AgentMessageText("before\n\n" + random()))
		first, second := random(), random()
		s.Update(acp.NewSessionUpdateToolCall(acp.ToolCall{ToolCallID: "1", Title: "TOOL", Status: acp.ToolCallStatusCompleted,
			Content: []acp.ToolCallContent{acp.ToolText(first), acp.ToolTerminal("t")}}))
		s.Update(acp.AgentMessageText(random()))
		s.Update(acp.NewSessionUpdateUserMessageChunk(acp.ContentChunk{Content: acp.TextBlock("THE END")}))
		var b strings.Builder
		err := Export(&b, s.Snapshot(), &ExportOptions{Title: "T", Terminal: func(acp.TerminalID) (Output, bool) { return Output{Text: second}, true }})
		if err != nil {
			t.Fatal(err)
		}
		headings, code := outline(b.String())
		for _, h := range []string{"T", "Agent", "✓ other: TOOL", "User"} {
			if !slices.Contains(headings, h) {
				t.Fatalf("the heading %q is missing in\n%s", h, b.String())
			}
		}
		if first != "" && !slices.Contains(code, strings.TrimSuffix(first, "\n")+"\n") {
			t.Fatalf("%q is not a code block of\n%s\n%q", first, b.String(), code)
		}
		lines := linesOf(strings.ReplaceAll(second, "\ttab", strings.Repeat(" ", 8)+"tab"))
		if want := strings.TrimRight(strings.Join(lines, "\n"), "\n"); want != "" && !strings.Contains(second, "\t") && !slices.Contains(code, want+"\n") {
			t.Fatalf("%q is not a code block of\n%s\n%q", want, b.String(), code)
		}
	}
}

type brokenWriter struct{ n int }

var errBroken = errors.New("broken")

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.n -= len(p); w.n < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

// An error of the writer is returned, wherever it occurs.
func TestExportError(t *testing.T) {
	s := story(t).Snapshot()
	for _, n := range []int{0, 1000, 4096} {
		if err := Export(&brokenWriter{n}, s, nil); !errors.Is(err, errBroken) && n < 4096 {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

// The number of items that a State has dropped is reported, and nothing else is missing.
func TestExportWhole(t *testing.T) {
	s := view.New(&view.Options{MaxItems: 10})
	for i := range 20 {
		s.Update(acp.NewSessionUpdateUserMessageChunk(acp.ContentChunk{Content: acp.TextBlock(fmt.Sprintf("message %d", i)), MessageID: acp.Some(acp.MessageID(fmt.Sprint(i)))}))
	}
	var b strings.Builder
	if err := Export(&b, s.Snapshot(), nil); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "*(10 older items are not stored)*") || strings.Count(got, "message ") != 10 {
		t.Error(got)
	}
}
