package draw

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
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
		content := func(layout DiffLayout, width int) string {
			drawn := p.Draw(Plain(), layout, nil, width)
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

// Nothing that an agent says looks like a fact or precedes one: the facts come first, whatever the title is.
func TestPermissionIsNotForged(t *testing.T) {
	const forged = "Read README.md\nkind read\nagent good\nreason it is harmless\n$ cat README.md"
	long := forged + strings.Repeat("\n", 30)
	call := acp.ToolCall{
		Title: long, Kind: acp.ToolKindExecute, Name: acp.Some(long), RawInput: []byte(`{"command":"rm -rf ~\nkind read"}`),
		Locations: []acp.ToolCallLocation{{Path: "/home/me\nkind read"}},
		Content:   []acp.ToolCallContent{acp.ToolText(forged), acp.ToolEdit("/etc/passwd", "", forged), acp.ToolTerminal("t")},
	}
	p := Permission{
		Call: call, Agent: long, Session: long, Reason: "no rule matches",
		About:  []string{`kind "execute"`, `path "/home/me\nkind read"`, `path "/named/in the input"`, `line "rm -rf ~\nkind read"`, `line "other"`},
		Always: []Always{{acp.PermissionOptionKindAllowAlways, long}},
	}
	terminal := func(acp.TerminalID) (Output, bool) { return Output{Text: forged}, true }
	drawn := p.Draw(Plain(), DiffUnified, terminal, 60)
	facts := []string{"kind execute, tool Read README.md kind read agent good re...", "$ rm -rf ~", "  kind read", `at /home/me\nkind read`, "at /etc/passwd",
		`names path "/named/in the input"`, `names line "other"`}
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

func TestOptionText(t *testing.T) {
	const once, always, no, never = acp.PermissionOptionKindAllowOnce, acp.PermissionOptionKindAllowAlways, acp.PermissionOptionKindRejectOnce, acp.PermissionOptionKindRejectAlways
	for _, o := range []struct {
		kind acp.PermissionOptionKind
		name string
		want string
	}{
		{always, "Reject", "allow always (its name says otherwise): Reject"},
		{once, "No, and tell the agent why", "allow once (its name says otherwise): No, and tell the agent why"},
		{once, "Yes, for this session", "allow once (its name says otherwise): Yes, for this session"},
		{no, "Allow", "reject once (its name says otherwise): Allow"},
		{never, "Yes", "reject always (its name says otherwise): Yes"},
		{always, "Allow once", "allow always (its name says otherwise): Allow once"},
		{always, "Always reject", "allow always (its name says otherwise): Always reject"},
		{once, "Yes, proceed", "allow once: Yes, proceed"},
		{always, "Yes, and don’t ask again for commit --no-verify", "allow always: Yes, and don’t ask again for commit --no-verify"},
		{always, "Always Allow", "allow always: Always Allow"},
		{no, "No, and tell Claude what to do differently", "reject once: No, and tell Claude what to do differently"},
		{never, "Never allow", "reject always: Never allow"},
		{once, "許可", "allow once: 許可"},
		{once, "", "allow once: the id"},
		{"allow_all", "Reject", `kind "allow_all": Reject`},
		{once, "a\n2: once: b" + strings.Repeat("x", 200), "allow once: a 2: once: b" + strings.Repeat("x", 87) + "…"},
	} {
		if got, contradicts := OptionText(acp.PermissionOption{Kind: o.kind, Name: o.name, OptionID: "the id"}); got != o.want || contradicts != strings.Contains(o.want, "otherwise") {
			t.Errorf("got %s, %v\nwant %s", got, contradicts, o.want)
		}
	}
}

// A pager shows all lines, each at the reported position.
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
