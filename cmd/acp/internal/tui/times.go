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
	asked span                   // how long the user has been asked in this turn
	open  map[acp.ToolCallID]int // the questions that wait for the user, by their tool calls, of which "" stands for none
}

// span is a time that can be stopped. That of a tool call does not include waiting for the user.
type span struct {
	began time.Time // zero while the time is stopped
	taken time.Duration
	ended bool
}

func newTimes(m *Model) *times {
	t := &times{now: m.now, long: m.opts.Long, calls: map[acp.ToolCallID]*span{}, turns: map[int]time.Duration{},
		open: map[acp.ToolCallID]int{}}
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
			sp.ended = true
			if sp.stop(now); sp.taken < t.long {
				delete(t.calls, id) // it is not shown
			}
		case draw.WaitsForPermission(c), t.open[id] > 0:
			sp.stop(now)
		default:
			sp.start(now)
		}
	}
}

// ask stops the time of the turn, and that of a tool call, while the user is asked.
func (t *times) ask(call acp.ToolCallID) {
	t.asked.start(t.now())
	if t.open[call]++; t.calls[call] != nil {
		t.calls[call].stop(t.now())
	}
}

// answered is called when a question is over.
func (t *times) answered(call acp.ToolCallID) {
	if t.open[call] == 0 { // it was asked before the chat was open
		return
	}
	if t.open[call]--; t.open[call] > 0 {
		return
	}
	if delete(t.open, call); t.calls[call] != nil {
		t.calls[call].start(t.now())
	}
	if len(t.open) == 0 {
		t.asked.stop(t.now())
	}
}

// begin begins a turn.
func (t *times) begin() {
	t.asked = span{}
	if len(t.open) > 0 {
		t.asked.start(t.now())
	}
}

// worked returns how much of the time of a turn passed without the user being asked.
func (t *times) worked(d time.Duration) time.Duration { return d - t.asked.total(t.now()) }

func (s *span) start(now time.Time) {
	if s.began.IsZero() && !s.ended {
		s.began = now
	}
}

func (s *span) total(now time.Time) time.Duration {
	if s.began.IsZero() {
		return s.taken
	}
	return s.taken + now.Sub(s.began)
}

func (s *span) stop(now time.Time) {
	s.taken, s.began = s.total(now), time.Time{}
}

// elapsed returns how long a tool call has been running; 0 if that is too short to be shown.
func (t *times) elapsed(id acp.ToolCallID) time.Duration {
	s := t.calls[id]
	if s == nil {
		return 0
	}
	return t.ifLong(s.total(t.now()))
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
