package view

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/internal/turns"
)

// TurnState is a turn: the user's prompt, and everything up to the agent's answer. It is immutable: later snapshots
// have another one with the same Number.
type TurnState struct {
	// Number counts the turns from 1.
	Number int
	// First is the index of the turn's first item, which is the user's message.
	First int
	// Ended reports whether the turn is over.
	Ended bool
	// Cancelled reports whether [Turn.Cancel] was called.
	Cancelled bool
	// Replayed reports whether the turn comes from a session's history, which does not record how turns ended, and not
	// from this client.
	Replayed bool
	// StopReason is why the agent stopped; "" if it has not stopped, or gave no reason.
	StopReason acp.StopReason
	// Err is the reason why there is no answer from the agent.
	Err error
	// Usage is the token usage in the answer.
	//
	// Experimental: any minor release may change or remove it. The agent reports it only if it enables it.
	Usage acp.Opt[acp.Usage]
}

// Turn is a turn in progress that this client started with a prompt. Its methods are safe for concurrent use.
type Turn struct {
	state      *State
	generation uint64
	number     int
}

// Prompt adds the user's message, and begins a turn. Call it before the prompt is sent, and call the Turn's End when
// the turn is over; or use [Prompt], which does both. While the turn is in progress, chunks of a user message that
// repeat the prompt from its beginning are an echo, and are not added again; agents may or may not send one. To add a
// session's history, only Update is needed.
//
// A turn may begin before an earlier one has ended, if the agent queues prompts. Updates then belong to the oldest turn
// that has not ended.
func (s *State) Prompt(prompt ...acp.ContentBlock) *Turn {
	s.begin()
	defer s.end()
	if len(s.running) == 0 {
		s.open = -1
		s.endReplay()
	}
	turn := s.beginTurn(false)
	s.running = append(s.running, turn)
	m := &Message{Role: User, Sent: true}
	for _, block := range prompt {
		m.add(block, s.maxMessage)
	}
	index := s.addTo(turn, m)
	if len(prompt) > 0 {
		s.echoes = append(s.echoes, &echo{turn: turn, message: index, rest: slices.Clone(prompt)})
	}
	return &Turn{s, s.generation, turn}
}

// beginTurn adds a turn, and returns its number.
func (s *State) beginTurn(replayed bool) int {
	number := s.now.turns.next + 1
	s.now.turns.add(&TurnState{Number: number, First: s.now.items.next, Replayed: replayed})
	return number
}

// turn returns the number of the turn that the next updates belong to.
func (s *State) turn() int {
	if len(s.running) > 0 {
		return s.running[0]
	}
	return s.now.turns.next
}

// inProgress reports whether a turn is in progress.
func (s *State) inProgress(turn int) bool {
	return s.now.turns.has(turn-1) && !s.now.turns.get(turn-1).Ended
}

// replayTurn begins a turn of a history.
func (s *State) replayTurn() {
	s.open = -1
	s.endReplay()
	s.beginTurn(true)
}

// endReplay ends the last turn if it is one of a history.
func (s *State) endReplay() {
	if last := s.now.turns.next; s.inProgress(last) && s.now.turns.get(last-1).Replayed {
		s.editTurn(last, func(t *TurnState) { t.Ended = true })
		s.leave(last, func(c *ToolCall) { c.Unfinished = true })
	}
}

// editTurn changes a turn, which must exist.
func (s *State) editTurn(number int, change func(*TurnState)) {
	turn := *s.now.turns.get(number - 1)
	change(&turn)
	s.now.turns.set(number-1, &turn, s.epoch)
}

// leave marks the open tool calls of a turn, and no longer treats them as open.
func (s *State) leave(turn int, mark func(*ToolCall)) {
	for _, index := range s.opened[turn] {
		mark(s.edit(index).Variant.(*ToolCall))
	}
	delete(s.opened, turn)
}

// Cancel marks the tool calls of the turn that have not ended as cancelled. Call it when session/cancel is sent.
// Updates of them are still accepted.
func (t *Turn) Cancel() {
	s := t.state
	s.begin()
	defer s.end()
	if t.generation != s.generation || !s.inProgress(t.number) {
		return
	}
	s.editTurn(t.number, func(t *TurnState) { t.Cancelled = true })
	for _, index := range s.opened[t.number] {
		s.edit(index).Variant.(*ToolCall).Cancelled = true
	}
}

// End ends the turn with the results of the call of session/prompt. A turn that has ended, or whose State was reset,
// stays as it is.
func (t *Turn) End(res *acp.PromptResponse, err error) {
	res = cmp.Or(res, &acp.PromptResponse{})
	s := t.state
	s.begin()
	defer s.end()
	i := slices.Index(s.running, t.number)
	if t.generation != s.generation || i < 0 {
		return
	}
	s.leave(t.number, func(c *ToolCall) { c.Unfinished = true })
	if i == 0 {
		s.open = -1
	}
	s.running = slices.Delete(s.running, i, i+1)
	s.echoes = slices.DeleteFunc(s.echoes, func(e *echo) bool { return e.turn == t.number })
	s.editTurn(t.number, func(t *TurnState) {
		t.Ended, t.StopReason, t.Usage, t.Err = true, res.StopReason, res.Usage, err
	})
}

// Prompter sends prompts: an *acp.ClientSession or a *reconnect.Session.
type Prompter interface {
	Prompt(ctx context.Context, prompt ...acp.ContentBlock) (*acp.PromptResponse, error)
}

// Prompt sends a prompt as a turn of a State, and waits for its end. When ctx ends, which cancels the turn, its open
// tool calls are marked at once. If the session is one of package reconnect and its connection is lost, the turn begins
// when the connection is restored, after any replayed history.
func Prompt(ctx context.Context, s *State, session Prompter, prompt ...acp.ContentBlock) (*acp.PromptResponse, error) {
	if lost, ok := session.(interface {
		Live(context.Context) (*acp.ClientSession, error)
	}); ok {
		if _, err := lost.Live(ctx); err != nil {
			return nil, err
		}
	}
	turn := s.Prompt(prompt...)
	defer context.AfterFunc(ctx, turn.Cancel)()
	res, err := session.Prompt(ctx, prompt...)
	turn.End(res, err)
	return res, err
}

// BeginPermission folds the tool call of a permission request into the conversation, and records that the request is
// waiting. Call the returned function with the answer, or with nil if there was none.
func (s *State) BeginPermission(req *acp.RequestPermissionRequest) (answered func(*acp.RequestPermissionResponse)) {
	_, answered = s.ask(req)
	return answered
}

// ask is BeginPermission, and returns the request with all that is known of the tool call; later updates do not change
// it.
func (s *State) ask(req *acp.RequestPermissionRequest) (*acp.RequestPermissionRequest,
	func(*acp.RequestPermissionResponse)) {
	s.begin()
	defer s.end()
	index := s.toolCallUpdate(&req.ToolCall, true)
	generation := s.generation
	asked := &Permission{Options: req.Options}
	whole := *req
	if s.now.items.has(index) {
		call := s.edit(index).Variant.(*ToolCall)
		call.Permission = asked
		whole.ToolCall = turns.Whole(call.Call)
	}
	return &whole, func(res *acp.RequestPermissionResponse) {
		s.begin()
		defer s.end()
		if generation != s.generation || !s.now.items.has(index) ||
			s.now.items.get(index).Variant.(*ToolCall).Permission != asked {
			return
		}
		outcome := acp.Null[acp.RequestPermissionOutcome]()
		if res != nil {
			outcome = acp.Some(res.Outcome)
		}
		s.edit(index).Variant.(*ToolCall).Permission = &Permission{Options: asked.Options, Outcome: outcome}
	}
}

// TrackPermissions wraps a handler of session/request_permission: it records the request in the session's State,
// passes the whole tool call, as currently known, to the handler, and records the answer.
func TrackPermissions(
	sessions *Sessions,
	ask func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error),
) func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
	return func(
		ctx context.Context, session *acp.ClientSession, req *acp.RequestPermissionRequest,
	) (res *acp.RequestPermissionResponse, err error) {
		state, err := sessions.received(session.ID())
		if err != nil {
			return nil, err
		}
		whole, answered := state.ask(req)
		defer func() { answered(res) }()
		return ask(ctx, session, whole)
	}
}

// echo is a prompt that the agent may repeat.
type echo struct {
	turn    int
	message int                // the index of the message that was sent
	rest    []acp.ContentBlock // the part not repeated so far
	taken   []*acp.ContentChunk
}

// echoed consumes a chunk of a user message if it repeats a prompt. If the next chunk shows that it did not, the
// consumed chunks are added after all.
func (s *State) echoed(c *acp.ContentChunk) bool {
	for i, e := range s.echoes {
		if e.takes(c) {
			s.adoptID(e.message, c)
			if len(e.rest) == 0 {
				s.echoes = slices.Delete(s.echoes, i, i+1)
			}
			return true
		}
		if len(e.taken) > 0 { // it began like the prompt but is something else
			s.echoes = slices.Delete(s.echoes, i, i+1)
			s.unnamed(e)
			for _, c := range e.taken {
				s.say(User, c)
			}
			return false
		}
	}
	return false
}

// takes consumes a chunk if it is the next part of the prompt.
func (e *echo) takes(c *acp.ContentChunk) bool {
	if len(e.taken) > 0 && e.taken[0].MessageID.Value() != c.MessageID.Value() {
		return false
	}
	next := e.rest[0]
	sent, plain := plainText(next)
	got, repeated := plainText(c.Content)
	switch {
	case plain && repeated:
		rest, ok := strings.CutPrefix(sent, got)
		if !ok {
			return false
		}
		e.rest[0] = acp.TextBlock(rest)
		if rest != "" {
			if got != "" {
				e.taken = append(e.taken, c)
			}
			return true
		}
	case !sameBlock(next, c.Content):
		return false
	}
	e.rest = e.rest[1:]
	e.taken = append(e.taken, c)
	return true
}

func sameBlock(a, b acp.ContentBlock) bool {
	one, err := json.Marshal(a)
	other, err2 := json.Marshal(b)
	return err == nil && err2 == nil && bytes.Equal(one, other)
}

// adoptID gives the sent message the id that its echo has, unless another message has it.
func (s *State) adoptID(index int, c *acp.ContentChunk) {
	id, ok := c.MessageID.Get()
	if _, taken := s.messages[messageKey{User, id}]; !ok || taken || !s.now.items.has(index) {
		return
	}
	s.edit(index).Variant.(*Message).ID = id
	s.messages[messageKey{User, id}] = index
}

// unnamed removes that id again.
func (s *State) unnamed(e *echo) {
	if !s.now.items.has(e.message) {
		return
	}
	m := s.edit(e.message).Variant.(*Message)
	unlist(s.messages, messageKey{User, m.ID}, e.message)
	m.ID = ""
}
