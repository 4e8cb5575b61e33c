package draw

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/must"
)

// update decodes an update from JSON.
func update(t testing.TB, text string) acp.SessionUpdate {
	t.Helper()
	var u acp.SessionUpdate
	if err := json.Unmarshal([]byte(text), &u); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return u
}

// conversation returns n turns with many kinds of items.
func conversation(t testing.TB, n int) *view.State {
	s := view.New(nil)
	for i := range n {
		turn := s.Prompt(acp.TextBlock(fmt.Sprintf("question %d\nsecond line", i)))
		s.Update(acp.AgentThoughtText("Thinking about it, at some length, until a line is full.\n\nAnd more."))
		s.Update(acp.AgentMessageText(fmt.Sprintf("# Answer %d\n\nSome *text* with `code`, which goes on for longer than a line has room for.\n\n- one\n- two\n\n```go\nfunc f%d() {}\n```\n\nEnd.", i, i)))
		s.Update(update(t, fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"a%d","title":"Edit main.go","kind":"edit","status":"completed",
			"content":[{"type":"diff","path":"/w/main.go","oldText":"a\nb\nc\n","newText":"a\nB\nc\n"}]}`, i)))
		s.Update(update(t, fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"b%d","title":"Run tests","kind":"execute","status":"failed"}`, i)))
		turn.End(&acp.PromptResponse{StopReason: acp.StopReasonMaxTokens}, nil)
	}
	return s
}

// all returns all lines of a transcript.
func all(tr *Transcript) []string {
	var out []string
	for i := tr.snapshot.First(); i < tr.snapshot.End(); i++ {
		for part := range tr.partsOf(i) {
			for _, l := range tr.lines(i, part) {
				out = append(out, tr.finish(l, i))
			}
		}
	}
	return out
}

// Whatever the scrolling, the visible lines are a part of all lines, at the position to which the same moves lead if
// all lines are known.
func TestScroll(t *testing.T) {
	s := conversation(t, 8)
	tr := NewTranscript(&Options{Width: 40, Theme: Plain(), Unfolded: true})
	tr.Update(s.Snapshot())
	lines := all(tr)
	const height = 11
	tr.View(height)
	top := len(lines) - height
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		switch n := r.IntN(20); n {
		case 0:
			tr.Top()
			top = 0
		case 1:
			tr.Bottom()
			top = len(lines) - height
		default:
			n := r.IntN(60) - 30
			tr.Scroll(n)
			top = min(max(top+n, 0), len(lines)-height)
		}
		want := strings.Join(lines[top:top+height], "\n")
		if got := tr.View(height); got != want {
			t.Fatalf("at line %d:\ngot\n%s\nwant\n%s", top, got, want)
		}
		if tr.AtBottom() != (top == len(lines)-height) {
			t.Fatalf("at line %d of %d: AtBottom is %v", top, len(lines), tr.AtBottom())
		}
	}
}

// While the end is visible, it stays visible; otherwise the position stays the same.
func TestFollow(t *testing.T) {
	s := conversation(t, 3)
	tr := NewTranscript(&Options{Width: 40, Theme: Plain()})
	tr.Update(s.Snapshot())
	s.Update(acp.AgentMessageText("the newest"))
	tr.Update(s.Snapshot())
	if got := tr.View(5); !strings.Contains(got, "the newest") || !tr.AtBottom() {
		t.Errorf("at the bottom:\n%s", got)
	}
	tr.Scroll(-10)
	before := tr.View(5)
	if tr.AtBottom() || strings.Contains(before, "the newest") {
		t.Fatalf("after scrolling:\n%s", before)
	}
	for i := range 50 {
		s.Update(acp.AgentMessageText(fmt.Sprintf("\n\nmore %d", i)))
		s.Update(update(t, `{"sessionUpdate":"tool_call","toolCallId":"x`+fmt.Sprint(i)+`","title":"t"}`))
	}
	tr.Update(s.Snapshot())
	if got := tr.View(5); got != before {
		t.Errorf("the place changed:\n%s\nwas\n%s", got, before)
	}
	if tr.AtBottom() {
		t.Error("nothing below")
	}
	tr.Bottom()
	if got := tr.View(5); !strings.Contains(got, "[ ] other t") {
		t.Errorf("at the bottom again:\n%s", got)
	}
}

// The line at the top of the screen stays there when the width changes.
func TestResizeKeepsPlace(t *testing.T) {
	s := view.New(nil)
	for i := range 100 {
		s.Update(acp.AgentMessageText(fmt.Sprintf("Paragraph %d has words.\n\n", i)))
		s.Update(update(t, fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"%d","title":"call %d"}`, i, i)))
	}
	tr := NewTranscript(&Options{Width: 80, Theme: Plain()})
	tr.Update(s.Snapshot())
	tr.View(10)
	tr.Top()
	tr.Scroll(120)
	want := strings.TrimSpace(tr.Lines(10)[0] + tr.Lines(10)[1])
	for _, width := range []int{30, 200, 20, 61, 80} {
		tr.Resize(width)
		lines := tr.Lines(10)
		if got := strings.TrimSpace(lines[0] + lines[1]); !strings.HasPrefix(got, want[:10]) {
			t.Errorf("width %d: %q at the top, want %q", width, got, want)
		}
	}
}

// Only visible parts are drawn, and drawn parts are kept while the last block of a message arrives.
func TestDrawnOnce(t *testing.T) {
	s := conversation(t, 1000)
	tr := NewTranscript(&Options{Width: 80})
	tr.Update(s.Snapshot())
	tr.View(40)
	if tr.drawn > 60 {
		t.Errorf("%d parts were drawn for 40 lines", tr.drawn)
	}
	tr.drawn = 0
	tr.View(40)
	if tr.drawn != 0 {
		t.Errorf("%d parts were drawn again", tr.drawn)
	}
	for i := range 1000 {
		s.Update(acp.AgentMessageText(fmt.Sprintf("word %d ", i)))
		if i%10 == 9 {
			s.Update(acp.AgentMessageText("\n\n"))
		}
		tr.Update(s.Snapshot())
		tr.View(40)
	}
	if tr.drawn > 1100 {
		t.Errorf("%d parts were drawn for 1000 chunks", tr.drawn)
	}
}

// A folded plan is one line with the current entry.
func TestPlanInOneLine(t *testing.T) {
	s := view.New(nil)
	s.Update(update(t, `{"sessionUpdate":"plan","entries":[{"content":"read","priority":"low","status":"completed"},
		{"content":"mend","priority":"low","status":"in_progress"},{"content":"test","priority":"low","status":"pending"}]}`))
	if got := strings.Join(Plan(Plain(), s.Snapshot(), 40, 1), "|"); got != "Plan 1/3  mend" {
		t.Errorf("%q", got)
	}
}

// A folded tool call shows the last lines of a running command; when the command has ended, they are folded.
func TestLastOutput(t *testing.T) {
	s := view.New(nil)
	s.Update(update(t, `{"sessionUpdate":"tool_call","toolCallId":"a","title":"Run","kind":"execute","status":"in_progress","content":[{"type":"terminal","terminalId":"t"}]}`))
	var output strings.Builder
	for i := range 20 {
		output.WriteString(fmt.Sprintf("line %d\n", i))
	}
	tr := NewTranscript(&Options{Width: 40, Theme: Plain(), Terminal: func(acp.TerminalID) (Output, bool) { return Output{Text: output.String()}, true }})
	tr.Update(s.Snapshot())
	if got := strings.Join(all(tr), "\n"); strings.Contains(got, "line 13\n") || !strings.Contains(got, "line 14\n") || !strings.Contains(got, "line 19") {
		t.Error(got)
	}
	s.Update(update(t, `{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed"}`))
	tr.Update(s.Snapshot())
	if got := strings.Join(all(tr), "\n"); strings.Contains(got, "line") {
		t.Error(got)
	}
}

// The state of a subagent is described in words.
func TestSubagentState(t *testing.T) {
	for state, want := range map[string]string{
		`{"state":"running"}`: "working", `{"state":"requires_action"}`: "waiting for an answer", `{"state":"idle"}`: "done",
		`{"state":"idle","stopReason":"end_turn"}`: "done", `{"state":"idle","stopReason":"refusal"}`: "refused",
		`{"state":"idle","stopReason":"tired"}`: "stopped: tired", `{"state":"asleep"}`: "asleep",
	} {
		var s acp.StateUpdate
		must.Do(t, json.Unmarshal([]byte(state), &s))
		if got := stateWords(&s); got != want {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
	}
}

// A snapshot older than the drawn one changes nothing: the end of a turn and earlier changes may arrive in any order.
func TestOlderSnapshot(t *testing.T) {
	s := view.New(nil)
	s.Update(acp.AgentMessageText("first paragraph"))
	older := s.Snapshot()
	s.Update(acp.AgentMessageText("\n\nsecond paragraph\n\nthird"))
	tr := NewTranscript(&Options{Width: 40, Theme: Plain()})
	tr.Update(s.Snapshot())
	want := strings.Join(all(tr), "\n")
	tr.Update(older)
	if got := strings.Join(all(tr), "\n"); got != want {
		t.Errorf("%s\n\nwant\n\n%s", got, want)
	}
}

// Top shows the beginning.
func (t *Transcript) Top() { t.place(anchor{item: t.snapshot.First()}) }

// AtBottom reports whether the end is visible and stays visible when the conversation grows.
func (t *Transcript) AtBottom() bool { return t.follow }
