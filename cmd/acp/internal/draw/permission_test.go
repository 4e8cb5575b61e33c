package draw

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/tier"
)

// squeezed returns a text without spaces, newlines and the marks of continuation lines, for comparing wrapped lines.
func squeezed(text string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '\n' || r == '|' {
			return -1
		}
		return r
	}, text)
}

// Whatever members a permission request has, everything in them can be read, at any width.
func TestPermissionShowsEverything(t *testing.T) {
	for seed := range tier.Pick(60, 300, 300, 300) {
		r := rand.New(rand.NewPCG(uint64(seed), 4))
		var words []string
		word := func(name string) string {
			w := fmt.Sprintf("%s%dq%s", name, len(words), strings.Repeat("z", r.IntN(60)))
			words = append(words, w)
			return w
		}
		maybe := func(f func()) {
			if r.IntN(3) > 0 {
				f()
			}
		}
		var p view.QuestionOptions
		var call acp.ToolCall
		p.Agent, call.ToolCallID = word("agent"), "id"
		call.Title = word("title")
		maybe(func() { call.Title += "\n" + word("second") + "\n" + word("third") })
		maybe(func() { p.Session = word("session") })
		maybe(func() { p.Reason = word("reason") + "\n" + word("because") })
		maybe(func() { call.Kind = acp.ToolKind(word("kind")) })
		maybe(func() { call.Name = acp.Some(word("name")) })
		maybe(func() {
			call.RawInput, _ = json.Marshal(map[string]any{"command": []string{word("cmd"), word("arg")}, word("key"): map[string]any{word("deep"): []any{word("value"), 12}}})
		})
		for range r.IntN(3) {
			call.Locations = append(call.Locations, acp.ToolCallLocation{Path: "/" + word("path"), Line: acp.Some(uint32(77))})
		}
		for range r.IntN(4) {
			switch r.IntN(5) {
			case 0:
				call.Content = append(call.Content, acp.ToolText(word("text")+" and "+word("more")))
			case 1:
				call.Content = append(call.Content, acp.ToolEdit("/"+word("file"), word("old")+"\nsame\n"+word("gone")+"\n", word("new")+"\nsame\n"+word("put")+"\n"))
			case 2:
				call.Content = append(call.Content, acp.ToolDiff("/"+word("file"), strings.Repeat("x\n", 2000)+word("new")+"\n"))
			case 3:
				call.Content = append(call.Content, acp.ToolContent(acp.ResourceLinkBlock(word("link"), "file:///"+word("uri"))))
			case 4:
				call.Content = append(call.Content, acp.ToolTerminal(acp.TerminalID(word("terminal"))))
			}
		}
		width := 10 + r.IntN(120)
		layout := DiffLayout(r.IntN(2))
		content := func(layout DiffLayout, width int) string {
			drawn := Permission(view.NewQuestion(&call, nil, &p), Plain(), layout, nil, width)
			return strings.Join(slices.Concat(drawn.Head, drawn.Body), "\n")
		}
		got := squeezed(content(layout, width))
		for _, w := range words {
			if strings.HasPrefix(w, "new") || strings.HasPrefix(w, "old") || strings.HasPrefix(w, "gone") || strings.HasPrefix(w, "put") {
				continue // continuation lines of diffs begin with signs and numbers; see below
			}
			if !strings.Contains(got, w) {
				t.Fatalf("width %d: %s is missing in\n%s", width, w, content(layout, width))
			}
		}
		wide := content(DiffUnified, 300)
		for _, w := range words {
			if !strings.Contains(wide, w) {
				t.Fatalf("%s is missing in\n%s", w, wide)
			}
		}
	}
}
