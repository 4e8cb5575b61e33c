package draw

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/tier"
)

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
	if len(tr.items) > maxItems+100 {
		t.Errorf("%d items are remembered", len(tr.items))
	}
	if tr.count(); tr.kept > 2*maxKept {
		t.Errorf("%d bytes of lines are kept", tr.kept)
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
