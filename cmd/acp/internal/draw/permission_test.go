package draw

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
)

// squeezed is a text without spaces and newlines, as which lines that were wrapped are compared, and without the marks of
// lines that go on.
func squeezed(text string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '\n' || r == '|' {
			return -1
		}
		return r
	}, text)
}

// Whatever members a request for permission has, everything in them can be read, at any width.
func TestPermissionShowsEverything(t *testing.T) {
	for seed := range 300 {
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
		p := Permission{Agent: word("agent")}
		p.Call.ToolCallID = "id"
		p.Call.Title = word("title")
		maybe(func() { p.Call.Title += "\n" + word("second") + "\n" + word("third") })
		maybe(func() { p.Session = word("session") })
		maybe(func() { p.Reason = word("reason") + "\n" + word("because") })
		maybe(func() { p.Call.Kind = acp.ToolKind(word("kind")) })
		maybe(func() { p.Call.Name = acp.Some(word("name")) })
		maybe(func() {
			p.Call.RawInput, _ = json.Marshal(map[string]any{"command": []string{word("cmd"), word("arg")}, word("key"): map[string]any{word("deep"): []any{word("value"), 12}}})
		})
		for range r.IntN(3) {
			p.Call.Locations = append(p.Call.Locations, acp.ToolCallLocation{Path: "/" + word("path"), Line: acp.Some(uint32(77))})
		}
		for range r.IntN(4) {
			switch r.IntN(5) {
			case 0:
				p.Call.Content = append(p.Call.Content, acp.ToolText(word("text")+" and "+word("more")))
			case 1:
				p.Call.Content = append(p.Call.Content, acp.ToolEdit("/"+word("file"), word("old")+"\nsame\n"+word("gone")+"\n", word("new")+"\nsame\n"+word("put")+"\n"))
			case 2:
				p.Call.Content = append(p.Call.Content, acp.ToolDiff("/"+word("file"), strings.Repeat("x\n", 2000)+word("new")+"\n"))
			case 3:
				p.Call.Content = append(p.Call.Content, acp.ToolContent(acp.ResourceLinkBlock(word("link"), "file:///"+word("uri"))))
			case 4:
				p.Call.Content = append(p.Call.Content, acp.ToolTerminal(acp.TerminalID(word("terminal"))))
			}
		}
		width := 10 + r.IntN(120)
		layout := DiffLayout(r.IntN(2))
		got := squeezed(strings.Join(p.Content(Plain(), layout, nil, width), "\n"))
		for _, w := range words {
			if strings.HasPrefix(w, "new") || strings.HasPrefix(w, "old") || strings.HasPrefix(w, "gone") || strings.HasPrefix(w, "put") {
				continue // lines of diffs have signs and numbers in front of what goes on: see below
			}
			if !strings.Contains(got, w) {
				t.Fatalf("width %d: %s is missing in\n%s", width, w, strings.Join(p.Content(Plain(), layout, nil, width), "\n"))
			}
		}
		wide := strings.Join(p.Content(Plain(), DiffUnified, nil, 300), "\n")
		for _, w := range words {
			if !strings.Contains(wide, w) {
				t.Fatalf("%s is missing in\n%s", w, wide)
			}
		}
	}
}

// A pager shows all lines, each where it is said to be.
func TestPager(t *testing.T) {
	var lines []string
	for i := range 30 {
		lines = append(lines, fmt.Sprint(i))
	}
	var g Pager
	g.SetLines(lines)
	var seen []string
	for {
		shown, above, below := g.View(7)
		if len(shown) != 7 || above+7+below != 30 || shown[0] != lines[above] {
			t.Fatalf("%v, %d above, %d below", shown, above, below)
		}
		for _, l := range shown {
			if !slices.Contains(seen, l) {
				seen = append(seen, l)
			}
		}
		if below == 0 {
			break
		}
		g.Scroll(5, 7)
	}
	if len(seen) != 30 || g.Where(7) != "lines 24-30 of 30" {
		t.Errorf("%d lines seen, %s", len(seen), g.Where(7))
	}
	g.SetLines(lines[:3])
	if shown, above, below := g.View(5); len(shown) != 5 || above != 0 || below != 0 || g.Where(5) != "" {
		t.Errorf("%v %d %d", shown, above, below)
	}
}
