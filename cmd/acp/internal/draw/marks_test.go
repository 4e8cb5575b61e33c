package draw

import (
	"fmt"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

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
		if !tr.Find("needle", true) {
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
	if !tr.Find("Message 4", false) || tr.Marked().Index != 80 {
		t.Errorf("forwards: item %d", tr.Marked().Index)
	}
	if tr.Find("no such text", false) {
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
