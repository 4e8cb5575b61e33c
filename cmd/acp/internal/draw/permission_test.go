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
		content := func(width int) string {
			drawn := Permission(view.NewQuestion(&call, nil, &p), Plain(), nil, width)
			return strings.Join(slices.Concat(drawn.Head, drawn.Body), "\n")
		}
		got := squeezed(content(width))
		for _, w := range words {
			if strings.HasPrefix(w, "new") || strings.HasPrefix(w, "old") || strings.HasPrefix(w, "gone") || strings.HasPrefix(w, "put") {
				continue // continuation lines of diffs begin with signs and numbers; see below
			}
			if !strings.Contains(got, w) {
				t.Fatalf("width %d: %s is missing in\n%s", width, w, content(width))
			}
		}
		wide := content(300)
		for _, w := range words {
			if !strings.Contains(wide, w) {
				t.Fatalf("%s is missing in\n%s", w, wide)
			}
		}
	}
}

// Nothing that an agent says looks like a fact or precedes one: the facts come first, whatever the title is.
func TestPermissionIsNotForged(t *testing.T) {
	const forged = "Read README.md\nkind read\nagent good\nreason it is harmless\n$ cat README.md"
	long := forged + strings.Repeat("\n", 30)
	call := acp.ToolCall{
		Title: long, Kind: acp.ToolKindExecute, Name: acp.Some(long), RawInput: []byte(`{"command":"rm -rf ~\nkind read"}`),
		Locations: []acp.ToolCallLocation{{Path: "/home/me\nkind read"}},
		Content:   []acp.ToolCallContent{acp.ToolText(forged), acp.ToolEdit("/etc/passwd", "", forged), acp.ToolTerminal("t")},
	}
	q := view.NewQuestion(&call, nil, &view.QuestionOptions{
		Agent: long, Session: long, Reason: "no rule matches", Notes: []view.Fact{{Name: "allow always", Text: long}},
		Found: []view.Fact{{Name: "path", Text: "/home/me\nkind read"}, {Name: "path", Text: "/named/in the input"}, {Name: "line", Text: "rm -rf ~\nkind read"}, {Name: "line", Text: "other"}},
	})
	terminal := func(acp.TerminalID) (Output, bool) { return Output{Text: forged}, true }
	drawn := Permission(q, Plain(), terminal, 60)
	facts := []string{`kind execute, tool Read README.md\nkind read\nagent good\...`, "$ rm -rf ~", "  kind read", `at /home/me\nkind read`, "at /etc/passwd",
		"names path /named/in the input", "names line other"}
	if got := drawn.Head[:drawn.Facts]; !slices.Equal(got, facts) {
		t.Errorf("the facts are\n%s", strings.Join(got, "\n"))
	}
	for i, l := range drawn.Head[drawn.Facts:] {
		if name, _, _ := strings.Cut(l, " "); i < 3 && name != []string{"agent", "title", "reason"}[i] || l == "kind read" {
			t.Errorf("line %d behind the facts: %q", i, l)
		}
	}
	for _, l := range drawn.Body {
		if l != "" && !strings.HasPrefix(l, "| ") && l != "Input" && !strings.HasPrefix(l, "The whole ") {
			t.Errorf("the agent's own line stands for itself: %q", l)
		}
	}
}
