package draw

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark/ast"
	textpkg "github.com/yuin/goldmark/text"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// corpus are texts that a terminal would interpret, that change the appearance of other text, or that make lines of a
// wrong width.
var corpus = []string{
	"\x1b[2J\x1b[H", "\x1b[31mred\x1b[0m", "\x1b[5m\x1b[8mhidden", "\x1b[38;2;1;2;3mrgb", "\x1b[?1049h", "\x1b[6n", "\x1b[c", "\x1b[20t", "\x1b[1;1H",
	"\x1b]0;title\x07", "\x1b]52;c;cm0gLXJm\x07", "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "\x1b]8;;file:///etc/passwd\x07x", "\x1b]1337;File=:AAAA\x07",
	"\x1b]9;note\x07", "\x1b]777;notify;a;b\x07", "\x1b]4;1;?\x07", "\x1b]10;?\x07",
	"\x1bPq#0\x1b\\", "\x1bP$q m\x1b\\", "\x1bP+q\x1b\\", "\x1b_Gf=100;AAAA\x1b\\", "\x1b^pm\x1b\\", "\x1bXsos\x1b\\", "\x1bc", "\x1b7\x1b8", "\x1b(0", "\x1b#8", "\x1bM", "\x1b=", "\x1b%G",
	"\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1b]8;;", "\x1b[38;5;", "\x1b\x1b[31m", "\x1b[\x1b[31m", "\x1b[3\n1m", "\x1b\n[31m",
	"\u009b31m", "\u009d0;t\u009c", "\u0090q\u009c", "\u009fx\u009c", "\u0098x", "\u009ex", "\u0085", "\u0084\u008d",
	"\x9b31m", "\x9d0;t\x9c", "\x90q\x9c", "\x9f\x9c", "\xff\xfe", "\xc2", "\xe2\x82", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x9b31m",
	"\x07bell", "a\bb\b\b", "a\rb", "a\r\nb\r", "\x00nul", "\x7fdel", "\x0e\x0f", "\v\f", "\x05", "\x18\x1a",
	"\u202egnp.exe", "\u2066x\u2069", "\u200f\u200e\u061c", "\u2028\u2029", "\ufeff\u200b\u2060", "\u00ad\u034f\u180e", "\U000e0041\U000e0042", "\ufff9a\ufffab\ufffb", "\ue000\U000f0000",
	"e\u0301\u0302", strings.Repeat("\u0301", 500), "a" + strings.Repeat("\u0336", 300), "👩\u200d👩\u200d👧\u200d👦", "🏳\ufe0f\u200d🌈", "🇩🇪🇫", "☺\ufe0f☺\ufe0e", "世界", "ｱﾞ", "\u1100\u1161\u11a8", "நி", "ﷺ", "𒐫", "\u0e33\u0e4d", "#\ufe0f\u20e3",
	"&#27;[38;2;1;2;3mx", "- &#27[38;2;1;2;3mx", "| a |\n|---|\n| &#x1b[38;2;1;2;3mx |\n", "&#27;[31m", "&#x1b;]0;x&#7;", "&#27[31m", "&#x1B", "&amp;#27;[2J", "&amp;amp;#27;x", "&#0;&#155;31m", "&#x9b;", "&#8238;x", "&rlm;&lrm;&zwj;&shy;&NewLine;&Tab;", "&#38;#27;[31m", "\\&#27;", "`&#27;[31m`",
	"[a](http://x/\x1b[31m)", "[a](<http://x/\x1b]0;y\x07>)", "[a](http://x/&#27;[31m)", "[a](http://x/%1b%5b31m)", "<http://x/\u009b31m>", "![i](\x1b[31m)", "[\x1b[31m]: http://x", "[x](javascript:a \"\x1b[31mt\")",
	"```\x1b[31m\ncode\x1b[2J\n```", "```go\x07\n\x1b[31m\n", "~~~ \u202e\nx\n~~~", "    \x1b[31mindented", "| \x1b[31m | b |\n|---|---|\n| \x07 | [l](http://\x1b) |\n", "# \x1b[31m", "> \x1b[31m", "- \x1b[31m\n  - \x07", "<b onclick=\x1b[31m>", "<!-- \x1b[31m -->",
	"::add-mask::x", "##[error]x", "a ::set-output::", "\n::warning::y",
	strings.Repeat("x", 3000), strings.Repeat("世", 500), strings.Repeat("a ", 2000), strings.Repeat("\t", 50) + "x", "\ta\tbb\tccc", strings.Repeat("> ", 100) + "deep", strings.Repeat("- ", 100) + "deep", strings.Repeat("*", 300), strings.Repeat("[", 300), strings.Repeat("`", 300), strings.Repeat("\n", 50), "|" + strings.Repeat("a|", 60) + "\n|" + strings.Repeat("-|", 60) + "\n",
	"- ```" + strings.Repeat("x", 5000) + "\n  code\n  ```\n", "> ~~~" + strings.Repeat("go", 2000) + "\n> code\n",
	"", " ", "\n", "%s %d %!x(MISSING)", "{{.text}}", "\\x1b[31m",
}

// templates are updates in which @ stands for each text of the agent.
var templates = []string{
	`{"sessionUpdate":"user_message_chunk","messageId":"@","content":{"type":"text","text":"@"}}`,
	`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"@"}}`,
	`{"sessionUpdate":"agent_message_chunk","content":{"type":"image","mimeType":"@","data":"@","uri":"@"}}`,
	`{"sessionUpdate":"agent_message_chunk","content":{"type":"audio","mimeType":"@","data":"@"}}`,
	`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource","resource":{"uri":"@","mimeType":"@","text":"@"}}}`,
	`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource","resource":{"uri":"@","mimeType":"@","blob":"@"}}}`,
	`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource_link","uri":"@","name":"@","title":"@","description":"@","mimeType":"@","size":12}}`,
	`{"sessionUpdate":"agent_message_chunk","content":{"type":"_new","text":"@"}}`,
	`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"@"}}`,
	`{"sessionUpdate":"tool_call","toolCallId":"@1","title":"@","name":"@","kind":"@","status":"@","rawInput":{"command":"@","args":["@"],"@":"@"},"rawOutput":"@",
		"locations":[{"path":"@","line":3},{"path":"@"}],
		"content":[{"type":"content","content":{"type":"text","text":"@"}},{"type":"diff","path":"@.go","oldText":"a\n@\nb","newText":"a\n@@\nb\n"},
			{"type":"diff","path":"@","newText":"@"},{"type":"terminal","terminalId":"@"},{"type":"_new","x":"@"}]}`,
	`{"sessionUpdate":"tool_call","toolCallId":"2","title":"@","kind":"edit","status":"pending","rawInput":{"command":["@","@"]}}`,
	`{"sessionUpdate":"plan","entries":[{"content":"@","priority":"@","status":"@"},{"content":"@","priority":"high","status":"in_progress"},{"content":"@","priority":"low","status":"completed"}]}`,
	`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"@","description":"@","input":{"hint":"@"}}]}`,
	`{"sessionUpdate":"current_mode_update","currentModeId":"@"}`,
	`{"sessionUpdate":"usage_update","used":53000,"size":200000,"cost":{"amount":0.05,"currency":"@"}}`,
	`{"sessionUpdate":"session_info_update","title":"@"}`,
	`{"sessionUpdate":"compaction_update","compactionId":"@","status":"failed","error":"@"}`,
	`{"sessionUpdate":"compaction_summary_chunk","compactionId":"@","content":{"type":"text","text":"@"}}`,
	`{"sessionUpdate":"notice","severity":"@","title":"@ ","description":"@"}`,
	`{"sessionUpdate":"_@","x":"@"}`,
	`{"sessionUpdate":"subagent_update","sessionId":"@","title":"@","description":"@","cwd":"@","additionalDirectories":["@"],"state":{"state":"running"}}`,
	`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"@","entries":[{"content":"@","priority":"@","status":"@"}]}}`,
	`{"sessionUpdate":"plan_update","plan":{"type":"file","planId":"f","uri":"@"}}`,
	`{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"m","content":"@"}}`,
}

// hostileState returns a state with a text in every member of every update.
func hostileState(t testing.TB, text string) (*view.State, map[string]Output) {
	quoted := must.Get(json.Marshal(text))(t)
	in := string(quoted[1 : len(quoted)-1])
	s := view.New(nil)
	turn := s.Prompt(acp.TextBlock(text), acp.ResourceLinkBlock(text, text))
	for _, tmpl := range templates {
		var u acp.SessionUpdate
		if err := json.Unmarshal([]byte(strings.ReplaceAll(tmpl, "@", in)), &u); err != nil {
			t.Fatalf("%s: %v", tmpl, err)
		}
		s.Update(u)
	}
	// JSON cannot carry bytes that are not UTF-8, but such a text may arrive in another way.
	s.Update(acp.AgentMessageText(text))
	s.Update(acp.AgentThoughtText(text))
	s.BeginPermission(&acp.RequestPermissionRequest{ToolCall: acp.ToolCallUpdate{ToolCallID: "2"}, Options: []acp.PermissionOption{{OptionID: "x", Name: text, Kind: acp.PermissionOptionKind(text)}}})(
		&acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("x")})
	turn.End(&acp.PromptResponse{StopReason: acp.StopReason(text)}, nil)
	failed := s.Prompt(acp.TextBlock(text))
	data, _ := json.Marshal(text)
	failed.End(nil, fmt.Errorf("prompt: %w", &rpc.Error{Code: -32603, Message: text, Data: data}))
	out := map[string]Output{text: {Text: text + "\n" + text, Status: text}, string([]rune(text)): {Text: text, Status: text}}
	return s, out
}

// drawn calls use with the output of every function of the package for a text.
func drawn(t testing.TB, theme *Theme, text string, width int, use func(name string, lines []string)) {
	s, outputs := hostileState(t, text)
	snapshot := s.Snapshot()
	terminal := func(id acp.TerminalID) (Output, bool) {
		out, ok := outputs[string(id)]
		return out, ok
	}
	{
		for _, unfolded := range []bool{false, true} {
			tr := NewTranscript(&Options{Theme: theme, Width: width, Terminal: terminal, Unfolded: unfolded})
			tr.Update(snapshot)
			tr.Lines(20)
			tr.Find(text)
			tr.Top()
			tr.Next()
			for range 50 {
				use("Transcript", tr.Lines(40))
				if tr.AtBottom() {
					break
				}
				tr.Scroll(40)
			}
		}
		o := &view.QuestionOptions{Agent: text, Session: text, Reason: text, Found: []view.Fact{{Name: "path", Text: text}}, Notes: []view.Fact{{Name: text, Text: text}}}
		for item := range snapshot.Items() {
			if c, ok := item.Variant.(*view.ToolCall); ok {
				drawn := Permission(view.NewQuestion(&c.Call, nil, o), theme, terminal, width)
				use("Permission", slices.Concat(drawn.Head, drawn.Body))
				use("ToolCall", ToolCall(theme, c, true, terminal, width))
			}
		}
		lines, _ := TurnDiffs(theme, snapshot, 0, width)
		use("TurnDiffs", lines)
	}
	use("Plan", Plan(theme, snapshot, width, 7))
	use("Line", []string{Line(theme, text, width)})
	p := newPainter(theme)
	for name, lines := range map[string][]line{
		"Diff":      p.diff(&acp.Diff{Path: text, OldText: acp.Some(text), NewText: text + text}, maxDiffAll, width),
		"Paragraph": paragraph(text, style{}), "Markdown": p.markdownText(text, width), "Error": p.error(errors.New(text)),
		"Terminal": p.output(Output{Text: text, Status: text}, width),
	} {
		use(name, p.strings(lines, width))
	}
	use("NewChoice", []string{clipFor(view.NewChoice(acp.PermissionOption{Name: text, Kind: acp.PermissionOptionKind(text)}).Text, width)})
	if u, ok := snapshot.Usage.Get(); ok {
		use("Usage", []string{clipFor(Usage(theme, u), width)})
	}
	for turn := range snapshot.Turns() {
		use("TurnEnd", TurnEnd(theme, turn, time.Minute, width))
	}
}

// clipFor clips a text as callers do.
func clipFor(text string, width int) string { return line{{text, style{}}}.clip(width, "").text() }

var sgrSequence = regexp.MustCompile(`\x1b\[0(;[0-9]+)*m`)

// check returns an error if a line contains anything that a terminal would interpret, except styles of this package, or
// if it is too wide.
func check(theme *Theme, l string, width int) error {
	rest := l
	if theme.styles != stylesNone {
		rest = sgrSequence.ReplaceAllString(l, "")
	}
	if !utf8.ValidString(rest) {
		return errors.New("invalid UTF-8")
	}
	for _, r := range rest {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200d' && r != '\u200c' || r == '\u2028' || r == '\u2029' {
			return fmt.Errorf("the character %U", r)
		}
	}
	for _, seq := range sgrSequence.FindAllString(l, -1) {
		for _, bad := range []string{";5m", ";8m", ";38;2;1;2;3"} {
			if strings.Contains(seq, bad) && !strings.Contains(seq, "8;5") {
				return fmt.Errorf("the style %q of the agent", seq)
			}
		}
		if theme.styles == stylesAttributes && strings.Contains(seq, "8;") {
			return fmt.Errorf("the colour %q without colours", seq)
		}
	}
	// An independent parser does not see anything else either.
	p := ansi.GetParser()
	defer ansi.PutParser(p)
	var err error
	note := func(what string) { err = errors.Join(err, fmt.Errorf("the parser sees %s", what)) }
	p.SetHandler(ansi.Handler{
		HandleCsi: func(cmd ansi.Cmd, _ ansi.Params) {
			if cmd != 'm' {
				note(fmt.Sprintf("CSI %q", rune(cmd)))
			}
		},
		HandleEsc: func(cmd ansi.Cmd) { note(fmt.Sprintf("ESC %q", rune(cmd))) },
		HandleOsc: func(cmd int, _ []byte) { note("OSC") },
		HandleDcs: func(ansi.Cmd, ansi.Params, []byte) { note("DCS") },
		HandleApc: func([]byte) { note("APC") },
		HandlePm:  func([]byte) { note("PM") },
		HandleSos: func([]byte) { note("SOS") },
		Execute:   func(b byte) { note(fmt.Sprintf("the control %#x", b)) },
	})
	p.Parse([]byte(l))
	if err != nil {
		return err
	}
	if n := max(ansi.StringWidth(l), ansi.StringWidthWc(l)); n > width {
		return fmt.Errorf("%d columns, more than %d", n, width)
	}
	return nil
}

func themes() map[string]*Theme {
	return map[string]*Theme{"dark": Dark(), "light": Light(), "no colours": NoColor(), "plain": Plain()}
}

// No byte of an agent's text affects the terminal, in whatever member of whatever update it arrives, and no line is too
// wide. Tier Nightly draws each text in all themes.
func TestHostile(t *testing.T) {
	all, names := themes(), []string{"dark", "light", "no colours", "plain"}
	for i, text := range corpus {
		for n, name := range names {
			if n != i%len(names) && tier.Current() < tier.Nightly || i%tier.Pick(3, 2, 2, 1) != 0 {
				continue
			}
			theme, width := all[name], []int{40, 80, 121}[i%3]
			drawn(t, theme, "a "+text+" b\n"+text, width, func(function string, lines []string) {
				for _, l := range lines {
					if function == "Terminal" || function == "Transcript" || function == "ToolCall" || function == "Permission" {
						l = strings.ReplaceAll(l, ";38;2;1;2;3", "") // colors in the output of terminals are kept
					}
					if err := check(theme, l, width); err != nil {
						t.Fatalf("%s of %q with theme %s: %v in\n%q", function, text, name, err, l)
					}
				}
			})
		}
	}
}

// Long names of languages and files are not looked up, because that would take minutes.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("x", 5000)
	p := newPainter(Dark())
	for text, kept := range map[string]bool{"- ```" + long + "\n  code\n  ```\n": false, "> ```go\n> code\n": true} {
		known := false
		_ = ast.Walk(p.renderer(0).Parser().Parse(textpkg.NewReader([]byte(text))), func(n ast.Node, _ bool) (ast.WalkStatus, error) {
			if code, ok := n.(*ast.FencedCodeBlock); ok && code.Info != nil {
				known = true
			}
			return ast.WalkContinue, nil
		})
		if known != kept {
			t.Errorf("%.20q: the language is looked up: %v", text, known)
		}
	}
	p.codeBlock("code\n", long, 80)
	p.diff(&acp.Diff{Path: "/w/" + long, NewText: "x"}, 10, 80)
	for name := range lexerCache.lexers {
		if len(name) > maxName {
			t.Errorf("%.20q was looked up", name)
		}
	}
}

// The exported file has no control characters either.
func TestHostileExport(t *testing.T) {
	for i, text := range corpus {
		if i%tier.Pick(4, 1, 1, 1) != 0 {
			continue
		}
		s, outputs := hostileState(t, text)
		var b strings.Builder
		err := Export(&b, s.Snapshot(), &ExportOptions{Title: text, Facts: []string{text},
			Terminal: func(id acp.TerminalID) (Output, bool) { out, ok := outputs[string(id)]; return out, ok }})
		must.Do(t, err)
		for l := range strings.Lines(b.String()) {
			if err := check(Plain(), strings.TrimSuffix(l, "\n"), exportWidth); err != nil {
				t.Fatalf("%q: %v in %q", text, err, l)
			}
		}
	}
}

// Lines fit every width from 1 to 200, with characters of every width, and nothing panics.
func TestWidths(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	all := themes()
	for width := 1; width <= 200; width++ {
		if width > tier.Pick(4, 12, 12, 24) && width%tier.Pick(40, 23, 23, 1) != 0 {
			continue
		}
		var b strings.Builder
		for range 6 {
			b.WriteString(corpus[r.IntN(len(corpus))])
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		text := b.String()
		theme := all[[]string{"dark", "plain"}[width%2]]
		drawn(t, theme, text, width, func(function string, lines []string) {
			for _, l := range lines {
				l = strings.ReplaceAll(l, ";38;2;1;2;3", "")
				if err := check(theme, l, width); err != nil {
					t.Fatalf("%s of %q at width %d: %v in\n%q", function, text, width, err, l)
				}
			}
		})
	}
}

func FuzzDraw(f *testing.F) {
	for i, text := range corpus {
		if i%tier.Pick(8, 3, 3, 1) == 0 {
			f.Add(text, 80)
		}
	}
	all := themes()
	f.Fuzz(func(t *testing.T, text string, width int) {
		if width < 1 || width > 200 || len(text) > 5000 || strings.Contains(text, "\x1b[") || strings.Contains(text, "\u009b") {
			t.Skip() // what colours of terminals there are is seen by TestHostile
		}
		theme := all[[]string{"dark", "plain"}[width%2]]
		drawn(t, theme, text, width, func(function string, lines []string) {
			for _, l := range lines {
				if err := check(theme, l, width); err != nil {
					t.Fatalf("%s: %v in\n%q", function, err, l)
				}
			}
		})
		s, _ := hostileState(t, text)
		must.Do(t, Export(io.Discard, s.Snapshot(), &ExportOptions{}))
	})
}
