package draw

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/must"
)

var updateGoldens = flag.Bool("update", false, "write the files of testdata")

// golden compares lines, without styles, with a file.
func golden(t *testing.T, name string, lines []string) {
	t.Helper()
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(ansi.Strip(l), " ") + "\n")
	}
	goldenText(t, name, b.String())
}

func goldenText(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *updateGoldens {
		must.Do(t, os.MkdirAll("testdata", 0o777))
		must.Do(t, os.WriteFile(file, []byte(got), 0o666))
		return
	}
	want := must.Get(os.ReadFile(file))(t)
	if got != string(want) {
		t.Errorf("%s:\ngot\n%s\nwant\n%s", name, got, want)
	}
}

const article = "# Title\n\nA paragraph with *emphasis*, **strong**, `code`, ~~struck~~ and [a link](https://example.com/page), which is longer than a line.\n\n" +
	"- one\n- two, which goes on until the line is full and then some more words\n\n  a second paragraph\n- [ ] to do\n- [x] done\n\n1. first\n   - nested\n2. second\n\n" +
	"> quoted, and also quite a bit longer than fits on a single line\n\n" +
	"```go\nfunc main() {\n\tfmt.Println(\"a line that is longer than the width of this transcript allows\")\n}\n```\n\n" +
	"| name | size |\n|------|-----:|\n| a.go | 10 |\n| 世界 | 2 |\n\n---\n\nHTML <b>stays</b>, as does Option<T>. See [the docs][ref] and https://example.com/auto.\n\n[ref]: https://example.com/docs\n"

const oldFile = "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(\"hello\")\n}\n\nfunc unused() {}\n"
const newFile = "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\nfunc main() {\n\tfmt.Println(\"hello\", os.Args[1:])\n}\n"

// story returns a session with all kinds of content.
func story(t testing.TB) *view.State {
	s := view.New(nil)
	add := func(text string) { s.Update(update(t, text)) }
	add(`{"sessionUpdate":"session_info_update","title":"Test the build"}`)
	turn := s.Prompt(acp.TextBlock("Please mend the build.\nIt fails since yesterday."), acp.ResourceLinkBlock("build.log", "file:///w/build.log"))
	s.Update(acp.AgentThoughtText("The log says that a file is missing.\n\nI look at it first."))
	s.Update(acp.AgentMessageText(article))
	add(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"Read main.go","kind":"read","status":"completed","locations":[{"path":"/w/main.go","line":3}],
		"content":[{"type":"content","content":{"type":"text","text":"package main"}}]}`)
	s.Update(acp.NewSessionUpdateToolCall(acp.ToolCall{ToolCallID: "2", Title: "Edit main.go", Kind: acp.ToolKindEdit, Status: acp.ToolCallStatusCompleted,
		Content: []acp.ToolCallContent{acp.ToolEdit("/w/main.go", oldFile, newFile), acp.ToolDiff("/w/new.txt", "one\ntwo")}}))
	add(`{"sessionUpdate":"tool_call","toolCallId":"3","title":"go test ./...","kind":"execute","status":"failed","rawInput":{"command":"go","args":["test","./...","-run","A B"]},
		"content":[{"type":"terminal","terminalId":"t1"}],"rawOutput":{"exitCode":1}}`)
	add(`{"sessionUpdate":"tool_call","toolCallId":"4","title":"Look at it","kind":"_new","status":"_odd"}`)
	s.BeginPermission(&acp.RequestPermissionRequest{ToolCall: acp.ToolCallUpdate{ToolCallID: "5", Title: acp.Some("rm -rf build")}, Options: []acp.PermissionOption{acp.AllowOnce("a", "Allow")}})
	add(`{"sessionUpdate":"agent_message_chunk","content":{"type":"image","mimeType":"image/png","data":"iVBORw0KGgoAAAAN"}}`)
	add(`{"sessionUpdate":"plan","entries":[{"content":"Read the log","priority":"medium","status":"completed"},{"content":"Edit main.go","priority":"high","status":"in_progress"},{"content":"Run the tests","priority":"low","status":"pending"}]}`)
	add(`{"sessionUpdate":"usage_update","used":53210,"size":200000,"cost":{"amount":0.4321,"currency":"USD"}}`)
	add(`{"sessionUpdate":"notice","severity":"warning","title":"The quota is nearly used","description":"5 requests are left."}`)
	add(`{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed"}`)
	add(`{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"What was done."}}`)
	add(`{"sessionUpdate":"_vendor_thing","value":[1,2]}`)
	turn.End(&acp.PromptResponse{StopReason: acp.StopReasonMaxTokens}, nil)
	second := s.Prompt(acp.TextBlock("Go on."))
	second.End(nil, fmt.Errorf("prompt: %w", errors.Join(&rpc.Error{Code: -32603, Message: "the model is overloaded", Data: []byte(`{"retry":10}`)})))
	return s
}

func storyTerminal(acp.TerminalID) (Output, bool) {
	return Output{Text: "building 10%\rbuilding 100%\n\x1b[31mFAIL\x1b[0m\tw/pkg\n", Status: "exit status 1", Failed: true}, true
}

func TestGoldens(t *testing.T) {
	s := story(t).Snapshot()
	for _, theme := range []struct {
		name  string
		theme *Theme
	}{{"unicode", Dark()}, {"plain", Plain()}} {
		for _, unfolded := range []bool{false, true} {
			name := theme.name + "-folded.txt"
			if unfolded {
				name = theme.name + "-unfolded.txt"
			}
			tr := NewTranscript(&Options{Theme: theme.theme, Width: 64, Terminal: storyTerminal, Unfolded: unfolded})
			tr.Update(s)
			golden(t, name, all(tr))
		}
	}
	narrow := NewTranscript(&Options{Width: 20, Terminal: storyTerminal, Unfolded: true})
	narrow.Update(s)
	golden(t, "narrow.txt", all(narrow))
	lines, n := TurnDiffs(Dark(), s, 1, 80)
	if n != 2 {
		t.Errorf("%d diffs in the turn", n)
	}
	golden(t, "diffs.txt", lines)
	call := acp.ToolCall{ToolCallID: "9", Title: "Run a command\nand edit", Name: acp.Some("shell"), Kind: acp.ToolKindExecute,
		RawInput:  []byte(`{"command":["sh","-c","make clean && make"],"cwd":"/w","timeout":120}`),
		Locations: []acp.ToolCallLocation{{Path: "/w/Makefile", Line: acp.Some(uint32(7))}, {Path: "/w/out"}},
		Content:   []acp.ToolCallContent{acp.ToolText("This *removes* the directory `out`."), acp.ToolEdit("/w/Makefile", "all:\n\tgo build\n", "all:\n\tgo build ./...\n")}}
	drawn := Permission(view.NewQuestion(&call, nil, &view.QuestionOptions{
		Agent: "claude", Session: "Test the build", Reason: "no rule allows it", Found: []view.Fact{{Name: "path", Text: "/w/Makefile"}, {Name: "line", Text: "sh -c 'make clean && make'"}},
		Notes: []view.Fact{{Name: "warning", Text: "command \"**\" allows all"}, {Name: "allow always", Text: `for this session: {"effect":"allow","line":["make"]}`}},
	}), Dark(), storyTerminal, 60)
	golden(t, "permission.txt", slices.Concat(drawn.Head, []string{fmt.Sprintf("--- facts: %d", drawn.Facts)}, drawn.Body))
	golden(t, "plan.txt", Plan(Dark(), s, 40, 10))
	golden(t, "usage.txt", []string{Usage(Dark(), s.Usage.Value()), Usage(Plain(), s.Usage.Value())})
	var b strings.Builder
	must.Do(t, Export(&b, s, &ExportOptions{Facts: []string{"agent: claude", "directory: /w"}, Terminal: storyTerminal}))
	goldenText(t, "export.txt", b.String())
}

// A folded tool call that has failed says why, whatever form the reason has.
func TestFailureIsShown(t *testing.T) {
	rejected := &view.Permission{Options: []acp.PermissionOption{acp.RejectOnce("no", "No")}, Outcome: acp.Some(acp.PermissionSelected("no"))}
	for want, c := range map[string]view.ToolCall{
		"| three;| four;| five":           {Call: acp.ToolCall{Content: []acp.ToolCallContent{acp.ToolText("```\none\ntwo\nthree\n\nfour\nfive\n```\n")}}},
		"| a && b: no such file":          {Call: acp.ToolCall{RawOutput: []byte(`{"code":1,"error":{"message":"a \u0026\u0026 b: no such file"}}`)}},
		"| broken":                        {Call: acp.ToolCall{RawOutput: []byte(`"broken"`), Content: []acp.ToolCallContent{acp.ToolEdit("/x", "", "y")}}},
		"| building 100%;| FAIL    w/pkg": {Call: acp.ToolCall{Content: []acp.ToolCallContent{acp.ToolTerminal("t")}}},
		"| permission reject once: No":    {Permission: rejected},
		"":                                {Call: acp.ToolCall{RawOutput: []byte(`[1]`)}},
	} {
		c.Call.Title, c.Call.Status = "x", acp.ToolCallStatusFailed
		if got := strings.Join(ToolCall(Plain(), &c, false, storyTerminal, 60)[1:], ";"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestMain lets highlighting take its time, so that what is drawn does not depend on how busy the machine is.
func TestMain(m *testing.M) {
	maxLexing = time.Minute
	m.Run()
}
