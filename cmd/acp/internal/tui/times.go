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
	calls map[acp.ToolCallID]*span
	turns map[int]time.Duration
}

// span is the time of a tool call. It does not include waiting for the user's permission.
type span struct {
	began time.Time // zero while the time is stopped
	taken time.Duration
}

func newTimes(m *Model) *times {
	t := &times{now: m.now, long: m.opts.Long, calls: map[acp.ToolCallID]*span{}, turns: map[int]time.Duration{}}
	if t.long == 0 {
		t.long = longTime
	}
	return t
}

// take handles the changes in a chat whose turn is in progress or has just ended.
func (t *times) take(since, s *view.Snapshot) {
	now := t.now()
	for item := range s.Changed(since) {
		c, ok := item.Variant.(*view.ToolCall)
		if !ok {
			continue
		}
		id := c.Call.ToolCallID
		switch sp := t.calls[id]; {
		case sp == nil:
			if !draw.Ended(c) && !draw.WaitsForPermission(c) {
				t.calls[id] = &span{began: now}
			}
		case draw.Ended(c):
			if sp.stop(now); sp.taken < t.long {
				delete(t.calls, id) // it is not shown
			}
		case draw.WaitsForPermission(c):
			sp.stop(now)
		case sp.began.IsZero():
			sp.began = now
		}
	}
}

func (s *span) stop(now time.Time) {
	if !s.began.IsZero() {
		s.taken += now.Sub(s.began)
		s.began = time.Time{}
	}
}

// elapsed returns how long a tool call has been running; 0 if that is too short to be shown.
func (t *times) elapsed(id acp.ToolCallID) time.Duration {
	s := t.calls[id]
	if s == nil {
		return 0
	}
	d := s.taken
	if !s.began.IsZero() {
		d += t.now().Sub(s.began)
	}
	return t.ifLong(d)
}

// took returns how long a turn took; 0 if that is unknown or too short to be shown.
func (t *times) took(turn int) time.Duration { return t.ifLong(t.turns[turn]) }

func (t *times) ifLong(d time.Duration) time.Duration {
	if d < t.long {
		return 0
	}
	return d
}

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
