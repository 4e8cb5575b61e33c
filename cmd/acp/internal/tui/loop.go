package tui

import (
	"bytes"
	"cmp"
	"context"
	"reflect"
	"runtime"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/draw"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
)

// tasks are the goroutines that run next to the loop. They all end with end.
type tasks struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	ended   bool
	running sync.WaitGroup
}

func newTasks(ctx context.Context) *tasks {
	t := &tasks{}
	t.ctx, t.cancel = context.WithCancel(ctx)
	return t
}

// begin reports whether a task may begin. The task must call running.Done when it ends.
func (t *tasks) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.running.Add(1)
	}
	return !t.ended
}

// start runs a task in a goroutine.
func (t *tasks) start(f func(ctx context.Context)) {
	if t.begin() {
		go func() {
			defer t.running.Done()
			f(t.ctx)
		}()
	}
}

// end ends all tasks and waits for them.
func (t *tasks) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.cancel()
	t.running.Wait()
}

// cmd returns a command of the loop that runs as a task.
func (t *tasks) cmd(f func(ctx context.Context) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		if !t.begin() {
			return nil
		}
		defer t.running.Done()
		return f(t.ctx)
	}
}

// commandsIn returns the commands of a batch or a sequence, whose type is not exported; nil for other messages. It does
// not copy them.
func commandsIn(msg tea.Msg) []tea.Cmd {
	v := reflect.ValueOf(msg)
	if v.Kind() != reflect.Slice || v.Type().Elem() != reflect.TypeFor[tea.Cmd]() {
		return nil
	}
	return v.Convert(reflect.TypeFor[[]tea.Cmd]()).Interface().([]tea.Cmd)
}

// How the client's goroutines send messages to the loop. They never wait for the loop, which may be busy or have lent
// the terminal to a login, and many messages are combined into few.

// frame is the time between two drawings of a chat that changes.
const frame = time.Second / 30

// The messages of a client that come in great numbers.
type (
	eventMsg  talk.Event
	stderrMsg []string // lines of the agent's standard error
	outputMsg struct { // new output of a terminal
		session  acp.SessionID
		terminal acp.TerminalID
	}
)

// maxLines is how many lines of a list are kept.
const maxLines = 1000

// mailbox holds messages until the loop takes them, all at once.
type mailbox struct {
	wake chan struct{}

	mu      sync.Mutex
	msgs    []tea.Msg
	stderr  []string
	outputs map[outputMsg]bool
}

// mailMsg are the messages of a mailbox.
type mailMsg []tea.Msg

func newMailbox() *mailbox {
	return &mailbox{wake: make(chan struct{}, 1), outputs: map[outputMsg]bool{}}
}

// put adds a message. For the agent's standard error, only the last lines are kept, and for a terminal, only that it
// has changed.
func (b *mailbox) put(msg tea.Msg) {
	b.mu.Lock()
	switch msg := msg.(type) {
	case outputMsg:
		b.outputs[msg] = true
	case eventMsg:
		if msg.Kind != talk.Stderr {
			b.msgs = append(b.msgs, msg)
			break
		}
		if b.stderr = append(b.stderr, msg.Text); len(b.stderr) > 2*maxLines {
			b.stderr = append(b.stderr[:0], b.stderr[maxLines:]...)
		}
	default:
		b.msgs = append(b.msgs, msg)
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take removes and returns all messages.
func (b *mailbox) take() mailMsg {
	b.mu.Lock()
	defer b.mu.Unlock()
	var mail mailMsg
	if len(b.stderr) > 0 {
		mail = append(mail, stderrMsg(b.stderr))
		b.stderr = nil
	}
	for o := range b.outputs {
		mail = append(mail, o)
	}
	clear(b.outputs)
	mail = append(mail, b.msgs...)
	b.msgs = nil
	return mail
}

// deliver sends the messages to the loop, at most once per half a frame.
func (b *mailbox) deliver(ctx context.Context, send func(tea.Msg)) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-b.wake:
		case <-ctx.Done():
			return
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		if mail := b.take(); len(mail) > 0 {
			send(mail)
		}
		pause.Reset(frame / 2)
	}
}

// rendererTime is how long the renderer may take to stop. Other Bubble Tea programs in the process, such as in tests,
// have their own renderer.
const rendererTime = 10 * time.Second

// released is a command for the released terminal that begins only when the renderer has stopped.
//
// Bubble Tea signals the renderer's goroutine to stop and does not wait for it. If the goroutine stops the ticker of
// the frames only after the terminal has been taken back, which restarts the ticker, nothing is ever drawn again. That
// happens on a busy machine, and when the process is stopped in between.
type released struct{ tea.ExecCommand }

// Run implements tea.ExecCommand.
func (r released) Run() error {
	for end := time.Now().Add(rendererTime); rendering() && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	return r.ExecCommand.Run()
}

// rendering reports whether a goroutine of Bubble Tea's renderer runs.
func rendering() bool {
	for size := 1 << 16; ; size *= 2 {
		stacks := make([]byte, size)
		if n := runtime.Stack(stacks, true); n < size {
			return bytes.Contains(stacks[:n], []byte(".(*Program).startRenderer.func"))
		}
	}
}

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

func newTimes(now func() time.Time, long time.Duration) *times {
	t := &times{now: now, long: long, began: map[acp.ToolCallID]time.Time{},
		calls: map[acp.ToolCallID]time.Duration{}, turns: map[int]time.Duration{}}
	t.long = cmp.Or(t.long, longTime)
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
