package draw

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/tier"
)

// diffText returns a whole diff.
func diffText(d *acp.Diff) string {
	p := newPainter(Plain())
	return strings.Join(p.strings(p.diff(d, maxDiffAll, 80), 80), "\n")
}

func TestDiffKinds(t *testing.T) {
	for name, test := range map[string]struct {
		diff acp.Diff
		want string
	}{
		"new":       {acp.Diff{Path: "/a", NewText: "x\n"}, "/a  new file, 1 line\n1 + x"},
		"empty new": {acp.Diff{Path: "/a", NewText: ""}, "/a  new file, 0 lines"},
		"emptied":   {acp.Diff{Path: "/a", OldText: acp.Some("x\ny\n"), NewText: ""}, "/a  emptied, 2 lines removed\n1 - x\n2 - y"},
		"same":      {acp.Diff{Path: "/a", OldText: acp.Some("x\n"), NewText: "x\n"}, "/a  no change"},
		"crlf":      {acp.Diff{Path: "/a", OldText: acp.Some("x\r\ny\r\n"), NewText: "x\r\nz\r\n"}, "/a  +1 -1, CRLF\n1   x\n2 - y\n2 + z"},
		"to crlf":   {acp.Diff{Path: "/a", OldText: acp.Some("x\n"), NewText: "x\r\n"}, "/a  +1 -1\n1 - x\n1 + x\\r"},
		"end":       {acp.Diff{Path: "/a", OldText: acp.Some("x"), NewText: "x\n"}, "/a  +1 -1\n1 - x\n\\ no newline at the end\n1 + x"},
		"part":      {acp.Diff{Path: "/a", OldText: acp.Some("x\ny"), NewText: "x\nz"}, "/a  +1 -1\n1   x\n2 - y\n2 + z"},
		"tabs":      {acp.Diff{Path: "/a", OldText: acp.Some("\tx\n"), NewText: "a\tx\n"}, "/a  +1 -1\n1 -     x\n1 + a   x"},
		"controls":  {acp.Diff{Path: "/\x1b[31m", OldText: acp.Some("\x1b[2J\n"), NewText: "\u202e\n"}, "/\\x1b[31m  +1 -1\n1 - \\x1b[2J\n1 + \\u202e"},
	} {
		if got := diffText(&test.diff); got != test.want {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", name, got, test.want)
		}
	}
}

// A huge diff is bounded, says what it leaves out, and does not take long.
func TestDiffHuge(t *testing.T) {
	tier.Need(t, tier.Normal)
	var old, new strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&old, "line %d\n", i)
		fmt.Fprintf(&new, "line %d\n", i*7%200_000)
	}
	began := time.Now()
	lines := strings.Split(diffText(&acp.Diff{Path: "/a", OldText: acp.Some(old.String()), NewText: new.String()}), "\n")
	t.Logf("%d lines in %v", len(lines), time.Since(began))
	if len(lines) > maxDiffAll+1000 || !strings.Contains(lines[len(lines)-1], " more not shown)") {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
	p := newPainter(Plain())
	few := p.diff(&acp.Diff{Path: "/a", NewText: new.String()}, maxDiffLines, 80)
	if len(few) != maxDiffLines+2 || few[len(few)-1].text() != "(199600 lines more not shown)" {
		t.Errorf("%d lines, the last is %q", len(few), few[len(few)-1].text())
	}
	long := diffText(&acp.Diff{Path: "/a", NewText: strings.Repeat("x", 1<<20)})
	if n := strings.Count(long, "x"); n != 1<<20 {
		t.Errorf("%d characters of a long line where everything is shown", n)
	}
}

func TestTerminal(t *testing.T) {
	for name, test := range map[string]struct{ output, want string }{
		"text":          {"one\ntwo\n", "one|two"},
		"colour":        {"\x1b[31mred\x1b[0m x", "\x1b[0;31mred\x1b[0m x"},
		"colour stays":  {"\x1b[1;38;5;200ma\nb", "\x1b[0;1;38;5;200ma\x1b[0m|\x1b[0;1;38;5;200mb\x1b[0m"},
		"any colour":    {"\x1b[38;2;1;2;3ma\x1b[48:2::4:5:6mb", "\x1b[0;38;2;1;2;3ma\x1b[0;38;2;1;2;3;48;2;4;5;6mb\x1b[0m"},
		"no blinking":   {"\x1b[5;8mhidden", "hidden"},
		"progress":      {"10%\r50%\r100%\ndone", "100%|done"},
		"shorter":       {"working\rok", "okrking"},
		"erased":        {"working\r\x1b[Kok", "ok"},
		"backspace":     {"ab\b\bcd", "cd"},
		"crlf":          {"a\r\nb\r\n", "a|b"},
		"up":            {"a: 1\nb: 1\n\x1b[2Aa: 2\n\x1b[Kb: 2\n", "a: 2|b: 2"},
		"column":        {"abc\x1b[1GX\x1b[5GY", "Xbc Y"},
		"forward":       {"a\x1b[3Cb", "a   b"},
		"clear":         {"old\nold\n\x1b[2J\x1b[Hnew", "new"},
		"insert mode":   {"\x1b[4habc", "abc"},
		"screen":        {"\x1b[?1049hx\x1b[?1049l", "x"},
		"title":         {"\x1b]0;title\x07x\x1b]2;t\x1b\\y", "xy"},
		"clipboard":     {"\x1b]52;c;AAAA\x07x", "x"},
		"link":          {"\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"},
		"device":        {"\x1bP+q544e\x1b\\x\x1b_G\x1b\\y\x1b^p\x1b\\z\x1bXs\x1b\\", "xyz"},
		"reports":       {"\x1b[6n\x1b[c\x1b[>c\x05x", "x"},
		"c1":            {"\u009b31mx\u009d0;t\u009cy", "31mx0;ty"},
		"bell":          {"a\a\x00\x0e\x0fb\x7f", "ab"},
		"bidi":          {"\u202egnp", `\u202egnp`},
		"wide":          {"世界\rX", "X 界"},
		"combining":     {"e\u0301x", "e\u0301x"},
		"tab":           {"a\tb", "a       b"},
		"cut sequence":  {"x\x1b[3", "x"},
		"huge movement": {"x\x1b[999999999C\x1b[999999999Ay\x1b[99999999999999999999B", "x" + strings.Repeat(" ", maxColumns-1) + ""},
	} {
		lines := outputLines(Dark(), Output{Text: test.output}, 1<<20)
		if got := strings.TrimRight(strings.Join(lines, "|"), " "); got != strings.TrimRight(test.want, " ") {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// The command of an agent's own terminal cannot imitate its output.
func TestTerminalCommand(t *testing.T) {
	lines := outputLines(Plain(), Output{Command: "go test\n\x1b[31mok", Text: "FAIL"}, 100)
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "$ go test ") || strings.Contains(lines[0], "\x1b[31m") || lines[1] != "FAIL" {
		t.Errorf("%q", lines)
	}
}

// The end of an endless output is kept, in bounded time.
func TestTerminalBounded(t *testing.T) {
	var b strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&b, "\x1b[3%dmline %d\x1b[0m\n", i%8, i)
	}
	for name, output := range map[string]string{
		"lines": b.String(), "one line": strings.Repeat("x", 10<<20), "down": strings.Repeat("\x1b[100B\n", 1<<18), "columns": strings.Repeat("\x1b[4000Gx\n", 1<<16),
	} {
		began := time.Now()
		lines := outputLines(Plain(), Output{Text: output}, 100)
		if len(lines) > 50*maxOutputLines || name == "lines" && (lines[len(lines)-1] != "line 999999" || !strings.Contains(lines[0], "omitted")) {
			t.Errorf("%s: %d lines, the last is %q", name, len(lines), lines[len(lines)-1])
		}
		t.Logf("%s: %d lines in %v", name, len(lines), time.Since(began))
	}
}

func outputLines(theme *Theme, o Output, width int) []string {
	p := newPainter(theme)
	return p.strings(p.output(o, width), width)
}

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

// TestStrangeCost: a cost of any size has few characters.
func TestStrangeCost(t *testing.T) {
	for _, amount := range []float64{-1e300, 1e300, 5e9, 1e-300} {
		u := acp.UsageUpdate{Used: 1, Size: 2, Cost: acp.Some(acp.Cost{Amount: amount, Currency: "USD"})}
		if text := Usage(nil, u); len(text) > 40 {
			t.Errorf("%v: %q", amount, text)
		}
	}
}
