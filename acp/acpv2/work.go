package acpv2

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/engine"
)

// Work does the agent's work in a turn. It returns the reason why it stopped, such as EndTurn(), which is also the
// meaning of the zero value. An error ends the turn with the stop reason error; the client sees the same part of the
// error as it would of a handler's error. If the turn is cancelled, ctx ends with the cause ErrTurnCancelled, and the
// turn ends with the stop reason cancelled, whatever Work returns.
type Work func(ctx context.Context) (IdleStateUpdate, error)

// StartTurn accepts a prompt and starts work for it. The handler of prompts calls it with its own context, and returns
// the result of StartTurn. To refuse a prompt, the handler returns an error instead.
//
// The runtime answers with the id of the user's message, shows the message to the client, reports that the session is
// running, calls work, and reports that the session is idle, and why. The context of work ends on session/cancel, when
// the session is closed, and when the connection ends.
//
// While the session is working, StartTurn holds the prompt until the work is done; prompts are processed in the order
// in which they arrived. If a prompt is cancelled before that, StartTurn returns an error, and so should the handler.
// With AgentOptions.Steer, prompts are accepted at once, and work that runs concurrently is reported as one.
func (s *AgentSession) StartTurn(ctx context.Context, req *PromptRequest, work Work) (*PromptResponse, error) {
	return s.StartTurnWith(ctx, UserMessage{MessageID: newMessageID(), Content: Some(req.Prompt)}, work)
}

// StartTurnWith is like StartTurn, but the agent chooses the message that is shown to the client, and its id.
func (s *AgentSession) StartTurnWith(ctx context.Context, message UserMessage, work Work) (*PromptResponse, error) {
	if err := s.AwaitTurn(ctx); err != nil {
		return nil, err
	}
	f := s.enter()
	run := func(ctx context.Context, free func()) {
		f.work(ctx, free, work, func(ctx context.Context) error {
			return s.Update(ctx, NewSessionUpdateUserMessage(message))
		})
	}
	drop := func() { f.leave(ctx, func() {}, NewIdleStateUpdateNone()) }
	if !engine.KeepTurn(ctx, run, drop) {
		drop()
		return nil, errors.New("acp: StartTurn is for the handler of prompts")
	}
	return &PromptResponse{MessageID: message.MessageID}, nil
}

// RunTurn does foreground work that the agent starts on its own: it reports that the session is running, calls work,
// and reports that it is idle. See StartTurn for when the context of work ends, and for what happens if the session is
// already working. Work that calls RunTurn for its own session and waits for it deadlocks. RunTurn returns an error if
// work was not called.
func (s *AgentSession) RunTurn(ctx context.Context, work Work) error {
	ctx, free, end, err := (*engine.Conn)(s.conn.rpc).OpenTurn(ctx, string(s.id))
	if err != nil {
		return err
	}
	defer end()
	if err := s.AwaitTurn(ctx); err != nil {
		return err
	}
	s.enter().work(ctx, free, work, func(context.Context) error { return nil })
	return nil
}

// AwaitTurn waits until the session is ready for the prompt that ctx belongs to; StartTurn does this too. It is for a
// handler that must do something before it accepts the prompt, such as storing it, and refuses the prompt if that
// fails. If ctx has ended, AwaitTurn returns its cause.
func (s *AgentSession) AwaitTurn(ctx context.Context) error {
	if !s.conn.steer {
		if err := engine.AwaitTurn(ctx); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// newMessageID returns a unique id.
func newMessageID() MessageID { return MessageID("msg_" + rand.Text()) }

// enter adds an accepted turn.
func (s *AgentSession) enter() *foreground {
	for {
		s.conn.mu.Lock()
		f := s.conn.foregrounds[s.id]
		if f == nil {
			f = &foreground{session: s}
			if s.conn.foregrounds == nil {
				s.conn.foregrounds = map[SessionID]*foreground{}
			}
			s.conn.foregrounds[s.id] = f
		}
		s.conn.mu.Unlock()
		if f.join() {
			return f
		}
	}
}

// join adds a turn. It returns false if the last one has ended in the meantime.
func (f *foreground) join() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.turns < 0 {
		return false
	}
	f.turns++
	return true
}

// workKey is the context key of a turn's foreground.
type workKey struct{}

// work runs the work of a turn and reports the states before and after it.
func (f *foreground) work(ctx context.Context, free func(), work Work, first func(context.Context) error) {
	idle := failed(rpc.ErrorOf(rpc.ErrInternal)) // if work panics
	defer func() { f.leave(ctx, free, idle) }()
	err := first(ctx)
	if err = cmp.Or(err, f.begin(ctx)); err != nil { // always begin, so that the end is reported
		idle = outcome(ctx, IdleStateUpdate{}, err)
		return
	}
	result, err := work(context.WithValue(ctx, workKey{}, f))
	if err != nil {
		(*engine.Conn)(f.session.conn.rpc).ReportFailure(ctx, "turn failed", MethodPrompt, err)
	}
	idle = outcome(ctx, result, err)
}

// outcome returns the state with which a turn ends.
func outcome(ctx context.Context, idle IdleStateUpdate, err error) IdleStateUpdate {
	switch {
	case errors.Is(context.Cause(ctx), ErrTurnCancelled):
		idle.Variant = Cancelled().Variant
	case err != nil:
		return failed(rpc.ErrorOf(err))
	case idle.Variant == nil:
		idle.Variant = EndTurn().Variant
	}
	return idle
}

func failed(err *Error) IdleStateUpdate {
	return NewIdleStateUpdateError(ErrorStopReason{Error: Some(*err)})
}

// begin reports that the session is running, unless that was already reported.
func (f *foreground) begin(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running {
		return nil
	}
	f.running = true
	return f.report(ctx, running())
}

// leave ends a turn. The last one makes the session idle. free lets the session start its next turn before the client
// is notified.
func (f *foreground) leave(ctx context.Context, free func(), idle IdleStateUpdate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	free()
	if f.turns--; f.turns > 0 {
		return
	}
	if f.running {
		if err := f.reportFinally(ctx, NewStateUpdateIdle(idle)); err != nil && !errors.Is(err, ErrClosed) {
			f.session.reportUnsent(ctx, err)
		}
	}
	f.turns = -1
	conn := f.session.conn
	conn.mu.Lock()
	defer conn.mu.Unlock()
	delete(conn.foregrounds, f.session.id)
}

// requiringAction calls ask, which asks the user something. If ctx belongs to a turn of the session, it reports that
// the session waits for the user.
func requiringAction[R any](ctx context.Context, s *AgentSession, ask func() (*R, error)) (*R, error) {
	f, _ := ctx.Value(workKey{}).(*foreground)
	if f == nil || f.session.conn != s.conn || f.session.id != s.id {
		return ask()
	}
	var res *R
	err := f.asking(ctx, 1)
	if err == nil {
		res, err = ask()
	}
	if err == nil && errors.Is(context.Cause(ctx), ErrTurnCancelled) {
		err = ErrTurnCancelled // the answer arrived right after session/cancel
	}
	if err = cmp.Or(err, f.asking(ctx, -1)); err != nil {
		return nil, err
	}
	return res, nil
}

// asking changes the number of open questions.
func (f *foreground) asking(ctx context.Context, change int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.questions += change
	switch {
	case change > 0 && f.questions == 1:
		return f.report(ctx, NewStateUpdateRequiresAction(RequiresActionStateUpdate{}))
	case change < 0 && f.questions == 0 && !errors.Is(context.Cause(ctx), ErrTurnCancelled):
		return f.reportFinally(ctx, running())
	}
	return nil
}

// reportFinally is report for states that the client must receive even if ctx has ended, unless the connection has
// ended too.
func (f *foreground) reportFinally(ctx context.Context, state StateUpdate) error {
	err := f.report(ctx, state)
	if err == nil || ctx.Err() == nil || errors.Is(err, ErrClosed) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	return f.report(ctx, state)
}

func running() StateUpdate { return NewStateUpdateRunning(RunningStateUpdate{}) }

// report sends the state of the session to the client.
func (f *foreground) report(ctx context.Context, state StateUpdate) error {
	return f.session.report(ctx, state)
}

// report sends a state of the session. If the author's part of it cannot be sent, the state is sent without: a client
// waits for the states.
func (s *AgentSession) report(ctx context.Context, state StateUpdate) error {
	err := s.Update(ctx, NewSessionUpdateStateUpdate(s.withBackground(state)))
	if _, unsent := errors.AsType[*engine.UnsentError](err); !unsent {
		return err
	}
	s.reportUnsent(ctx, err)
	return s.Update(ctx, NewSessionUpdateStateUpdate(bare(state)))
}

func (s *AgentSession) reportUnsent(ctx context.Context, err error) {
	(*engine.Conn)(s.conn.rpc).ReportFailure(ctx, "a state of the session cannot be sent as it is", MethodSessionUpdate,
		err)
}

// bare returns a state with nothing that an author has given.
func bare(state StateUpdate) StateUpdate {
	switch v := state.Variant.(type) {
	case *StateUpdateRunning:
		return running()
	case *StateUpdateRequiresAction:
		return NewStateUpdateRequiresAction(RequiresActionStateUpdate{})
	case *StateUpdateIdle:
		return NewStateUpdateIdle(bareIdle((*IdleStateUpdate)(v)))
	default:
		return state
	}
}

// bareIdle is bare for the end of the work. If the reason is not one that the protocol has, it is an error.
func bareIdle(idle *IdleStateUpdate) IdleStateUpdate {
	switch v := idle.Variant.(type) {
	case *IdleStateUpdateEndTurn, *IdleStateUpdateMaxTokens, *IdleStateUpdateMaxTurnRequests, *IdleStateUpdateRefusal,
		*IdleStateUpdateCancelled:
		if !missing(v) {
			return IdleStateUpdate{Variant: v}
		}
	case *IdleStateUpdateNone:
		return NewIdleStateUpdateNone()
	case *IdleStateUpdateError:
		if v != nil && v.Error.Present() {
			return failed(&Error{Code: v.Error.Value().Code, Message: v.Error.Value().Message})
		}
	default: // an unknown reason
	}
	return failed(rpc.ErrorOf(rpc.ErrInternal))
}

// withBackground adds the work that runs in the background, if the agent reports it.
func (s *AgentSession) withBackground(state StateUpdate) StateUpdate {
	if s.conn.background == nil {
		return state
	}
	work := s.conn.background(s.id)
	if work == nil {
		return state
	}
	background := Some(work)
	switch v := state.Variant.(type) {
	case *StateUpdateRunning:
		v.Background = background
	case *StateUpdateRequiresAction:
		v.Background = background
	case *StateUpdateIdle:
		if v.Background.IsZero() {
			v.Background = background
		}
	default: // has no member for background work
	}
	return state
}

// repeatState sends the current state of the session, as a client needs it after resuming the session.
func (s *AgentSession) repeatState(ctx context.Context) error {
	s.conn.mu.Lock()
	f := s.conn.foregrounds[s.id]
	s.conn.mu.Unlock()
	state := NewStateUpdateIdle(NewIdleStateUpdateNone())
	if f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch {
		case f.turns < 0: // the work has just ended
		case f.questions > 0:
			state = NewStateUpdateRequiresAction(RequiresActionStateUpdate{})
		case f.running:
			state = running()
		}
	}
	return s.report(ctx, state)
}
