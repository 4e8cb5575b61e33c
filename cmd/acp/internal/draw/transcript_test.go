package draw

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
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

// visibleMark returns the line with the mark, or "".
func visibleMark(tr *Transcript, height int) string {
	for _, l := range tr.Lines(height) {
		if strings.HasPrefix(l, tr.p.marks.marked) {
			return l
		}
	}
	return ""
}

// The mark moves from item to item, and is always visible.
func TestMark(t *testing.T) {
	s := conversation(t, 10)
	tr := NewTranscript(&Options{Width: 40, Theme: Plain()})
	tr.Update(s.Snapshot())
	tr.View(12)
	steps := 0
	for tr.Prev() {
		steps++
		if visibleMark(tr, 12) == "" {
			t.Fatalf("the mark of item %d is not visible:\n%s", tr.Marked().Index, tr.View(12))
		}
	}
	if tr.Marked().Index != 0 || steps != s.Snapshot().End() {
		t.Errorf("item %d is marked after %d steps", tr.Marked().Index, steps)
	}
	for tr.Next() {
		if visibleMark(tr, 12) == "" {
			t.Fatalf("the mark of item %d is not visible:\n%s", tr.Marked().Index, tr.View(12))
		}
	}
	if tr.Marked().Index != s.Snapshot().End()-1 {
		t.Errorf("item %d is marked at the end", tr.Marked().Index)
	}
	tr.Mark(-1)
	if tr.Marked() != nil || visibleMark(tr, 12) != "" {
		t.Error("a mark that was removed")
	}
}

// Thoughts and tool calls are initially folded, with their state; unfolding one shows its content, and the lines above
// it stay in place.
func TestFold(t *testing.T) {
	s := conversation(t, 5)
	tr := NewTranscript(&Options{Width: 60, Theme: Plain()})
	tr.Update(s.Snapshot())
	tr.View(20)
	tr.Top()
	before := tr.Lines(40)
	if got := strings.Join(before, "\n"); strings.Contains(got, "And more.") || !strings.Contains(got, "+ Thought  Thinking about it") ||
		!strings.Contains(got, "[x] edit Edit main.go  +1 -1") || !strings.Contains(got, "[!] execute Run tests  failed") {
		t.Fatal(got)
	}
	for tr.Marked() == nil || !Foldable(tr.Marked()) {
		if !tr.Next() {
			t.Fatal("nothing can be folded")
		}
	}
	if !tr.Toggle() {
		t.Fatal("the thought cannot be unfolded")
	}
	after := tr.Lines(40)
	if got := strings.Join(after, "\n"); !strings.Contains(got, "And more.") || after[0] != before[0] || after[1] != before[1] {
		t.Fatal(got)
	}
	tr.Toggle()
	tr.Mark(-1)
	if got := tr.Lines(40); strings.Join(got, "\n") != strings.Join(before, "\n") {
		t.Errorf("after folding:\n%s", strings.Join(got, "\n"))
	}
	tr.ToggleAll()
	if got := strings.Join(tr.Lines(60), "\n"); !strings.Contains(got, "And more.") || !strings.Contains(got, "2 - b") || !tr.opts.Unfolded {
		t.Errorf("everything unfolded:\n%s", got)
	}
	long := view.New(nil)
	long.Update(acp.AgentThoughtText("a thought"))
	for i := range 100 {
		long.Update(acp.AgentMessageText(fmt.Sprintf("Paragraph %d.\n\n", i)))
	}
	in := NewTranscript(&Options{Width: 60, Theme: Plain()})
	in.Update(long.Snapshot())
	in.View(10)
	in.Top()
	in.Scroll(91)
	want := in.View(10)
	if in.ToggleAll(); in.View(10) != want {
		t.Errorf("in the middle of a message:\n%s\nwant\n%s", in.View(10), want)
	}
	tr.Mark(0)
	if tr.Toggle() {
		t.Error("what the user said was folded")
	}
}

// A text is found from item to item, also in folded ones, and is visible.
func TestFind(t *testing.T) {
	s := view.New(nil)
	for i := range 50 {
		s.Update(acp.AgentMessageText(fmt.Sprintf("Message %d\n\n%s", i, strings.Repeat("filler\n\n", 30))))
		text := "nothing"
		if i%20 == 10 {
			text = "the NEEDLE is here"
		}
		s.Update(acp.NewSessionUpdateToolCall(acp.ToolCall{ToolCallID: acp.ToolCallID(fmt.Sprint(i)), Title: "call", Content: []acp.ToolCallContent{acp.ToolText(text)}}))
	}
	tr := NewTranscript(&Options{Width: 60})
	tr.Update(s.Snapshot())
	tr.View(10)
	var found []int
	for range 3 {
		if !tr.Find("needle") {
			t.Fatal("not found")
		}
		found = append(found, tr.Marked().Index)
		if got := tr.View(10); !strings.Contains(got, "NEEDLE") {
			t.Errorf("%q", got)
		}
	}
	if fmt.Sprint(found) != "[61 21 61]" {
		t.Errorf("found in %v", found)
	}
	if tr.Find("no such text") {
		t.Error("what there is not is found")
	}
}

// After a session is loaded again, nothing of its earlier state is left, and dropped items are gone.
func TestResetAndDropped(t *testing.T) {
	s := view.New(&view.Options{MaxItems: 20})
	add := func(i int) {
		s.Update(update(t, fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"%d","title":"call %d"}`, i, i)))
	}
	for i := range 20 {
		add(i)
	}
	tr := NewTranscript(&Options{Width: 60, Theme: Plain()})
	tr.Update(s.Snapshot())
	tr.View(5)
	tr.Top()
	tr.Mark(2)
	for i := range 15 {
		add(20 + i)
	}
	tr.Update(s.Snapshot())
	if got := tr.Lines(5); !strings.HasSuffix(got[0], "call 15") || tr.Marked().Index != 15 {
		t.Errorf("%q, item %d marked", got, tr.Marked().Index)
	}
	if len(tr.items) > 25 {
		t.Errorf("%d items are remembered", len(tr.items))
	}
	s.Reset()
	add(99)
	tr.Update(s.Snapshot())
	if got := strings.TrimSpace(tr.View(5)); got != "[ ] other call 99" || tr.Marked() != nil || !tr.AtBottom() {
		t.Errorf("%q", got)
	}
}

// long returns a session of about n updates.
func long(t testing.TB, n int) *view.State {
	s := view.New(nil)
	for i := 0; i < n; i += 20 {
		turn := s.Prompt(acp.TextBlock(fmt.Sprintf("question %d", i)))
		for k := range 10 {
			s.Update(acp.AgentMessageText(fmt.Sprintf("Some words of chunk %d, with `code`. ", k)))
		}
		s.Update(acp.AgentMessageText("\n\n```go\nfunc f() {}\n```\n\n"))
		for k := range 4 {
			s.Update(update(t, fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"%d-%d","title":"Edit file %d","kind":"edit","status":"completed",
				"content":[{"type":"diff","path":"/w/f.go","oldText":"a\nb\n","newText":"a\nc\n"}]}`, i, k, k)))
		}
		s.Update(acp.AgentMessageText("The end of this answer."))
		turn.End(&acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil)
	}
	return s
}

// A session of 100,000 updates takes bounded memory in addition to the session itself, even after all of it was viewed;
// only what is visible is drawn; and a chunk at the end costs as much as in a short session.
func TestLarge(t *testing.T) {
	tier.Need(t, tier.Normal)
	s := long(t, 100_000)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	began := time.Now()
	tr := NewTranscript(&Options{Width: 100})
	tr.Update(s.Snapshot())
	tr.View(50)
	t.Logf("first view: %v, %d parts drawn", time.Since(began), tr.drawn)
	if tr.drawn > 60 {
		t.Errorf("%d parts were drawn for the first view", tr.drawn)
	}
	tr.Top()
	tr.View(50)
	lines := 50
	for tr.Scroll(50); !tr.AtBottom() && lines < 20_000; tr.Scroll(50) {
		tr.View(50)
		lines += 50
	}
	if len(tr.items) > 200 {
		t.Errorf("%d items are remembered", len(tr.items))
	}
	used := heap() - before
	t.Logf("%d lines were looked at, %.1f MiB are used", lines, float64(used)/(1<<20))
	if int64(used) > 64<<20 {
		t.Errorf("%d bytes of memory", used)
	}
	tr.Bottom()
	tr.View(50)
	tr.drawn = 0
	for i := range 200 {
		s.Update(acp.AgentMessageText(fmt.Sprintf("more %d ", i)))
		tr.Update(s.Snapshot())
		tr.View(50)
	}
	if tr.drawn > 210 {
		t.Errorf("%d parts were drawn for 200 chunks", tr.drawn)
	}
	runtime.KeepAlive(s)
}

// A message of 16 MiB is shown immediately.
func TestLargeMessage(t *testing.T) {
	tier.Need(t, tier.Normal)
	s := view.New(nil)
	s.Update(acp.AgentMessageText(strings.Repeat("A paragraph of some words.\n\n- a list\n- of two\n\n", 16<<20/50)))
	tr := NewTranscript(&Options{Width: 80})
	began := time.Now()
	tr.Update(s.Snapshot())
	tr.View(50)
	if tr.drawn > 60 {
		t.Errorf("%d parts were drawn", tr.drawn)
	}
	t.Logf("first view: %v", time.Since(began))
	tr.drawn = 0
	tr.Top()
	tr.View(50)
	if tr.drawn > 60 {
		t.Errorf("%d parts were drawn at the top", tr.drawn)
	}
}

// The number of items that a State has dropped is reported, and nothing else is missing.
func TestExportWhole(t *testing.T) {
	s := view.New(&view.Options{MaxItems: 10})
	for i := range 20 {
		s.Update(acp.NewSessionUpdateUserMessageChunk(acp.ContentChunk{Content: acp.TextBlock(fmt.Sprintf("message %d", i)), MessageID: acp.Some(acp.MessageID(fmt.Sprint(i)))}))
	}
	var b strings.Builder
	must.Do(t, Export(&b, s.Snapshot(), &ExportOptions{}))
	if got := b.String(); !strings.Contains(got, "(10 older items are not stored)") || strings.Count(got, "message ") != 10 {
		t.Error(got)
	}
}

// An error of the writer is returned.
func TestExportError(t *testing.T) {
	r, w := io.Pipe()
	r.Close()
	if err := Export(w, story(t).Snapshot(), &ExportOptions{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
}

// Scrolling shows the lines to which the same moves lead if all lines are known.
func TestScroll(t *testing.T) {
	tr := NewTranscript(&Options{Width: 40, Theme: Plain(), Unfolded: true})
	tr.Update(conversation(t, 8).Snapshot())
	lines := all(tr)
	const height = 11
	tr.View(height)
	top, last := len(lines)-height, len(lines)-height
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		n := r.IntN(60) - 30
		tr.Scroll(n)
		top = min(max(top+n, 0), last)
		if got, want := tr.View(height), strings.Join(lines[top:top+height], "\n"); got != want || tr.AtBottom() != (top == last) {
			t.Fatalf("at line %d of %d, at the bottom %v:\ngot\n%s\nwant\n%s", top, len(lines), tr.AtBottom(), got, want)
		}
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
