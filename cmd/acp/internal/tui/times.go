package tui

import (
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/draw"
)

// longTime is the shortest duration of a tool call or a turn that is shown.
const longTime = 2 * time.Second

// times are the durations of the tool calls and turns of a chat.
type times struct {
	now   func() time.Time
	long  time.Duration
	began map[acp.ToolCallID]time.Time // of the calls in progress; that of one that waits for permission begins anew
	calls map[acp.ToolCallID]time.Duration
	turns map[int]time.Duration
}

func newTimes(m *Model) *times {
	t := &times{now: m.now, long: m.opts.Long, began: map[acp.ToolCallID]time.Time{},
		calls: map[acp.ToolCallID]time.Duration{}, turns: map[int]time.Duration{}}
	if t.long == 0 {
		t.long = longTime
	}
	return t
}

// take handles the changes in a chat whose turn is in progress or has just ended.
func (t *times) take(since, s *view.Snapshot) {
	for item := range s.Changed(since) {
		c, ok := item.Variant.(*view.ToolCall)
		if !ok {
			continue
		}
		id := c.Call.ToolCallID
		began, running := t.began[id]
		switch {
		case draw.Ended(c):
			if d := t.now().Sub(began); running && d >= t.long {
				t.calls[id] = d
			}
			delete(t.began, id)
		case draw.WaitsForPermission(c):
			delete(t.began, id)
		case !running:
			t.began[id] = t.now()
		}
	}
}

// elapsed returns how long a tool call has been running; 0 if that is too short to be shown.
func (t *times) elapsed(id acp.ToolCallID) time.Duration {
	d := t.calls[id]
	if began, running := t.began[id]; running {
		d = t.now().Sub(began)
	}
	if d < t.long {
		return 0
	}
	return d
}

// took returns how long a turn took; 0 if that is unknown or too short to be shown.
func (t *times) took(turn int) time.Duration { return t.turns[turn] }

// ended records how long the last turn took.
func (t *times) ended(s *view.Snapshot, d time.Duration) {
	if d < t.long {
		return
	}
	last := 0
	for turn := range s.Turns() {
		last = turn.Number
	}
	t.turns[last] = d
}

// take handles a newer snapshot of a chat.
func (c *chat) take(s *view.Snapshot) {
	if c.cancel != nil {
		c.times.take(c.snapshot, s)
	}
	c.snapshot = s
}
