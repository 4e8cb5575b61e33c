package v2draft

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"sync"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/engine"
)

// Work is what an agent does in a turn. It returns why it stopped, such as EndTurn(), which is also what
// the zero value means. An error ends the turn with the stop reason error, and the client sees of it what
// it would see of a handler's. When the turn was cancelled, the context has ended with the cause
// ErrTurnCancelled, and whatever is returned ends the turn with the stop reason cancelled.
type Work func(ctx context.Context) (IdleStateUpdate, error)

// StartTurn takes a prompt and has work done for it. It is for the handler of prompts, with the context
// that this was given, and the handler returns what StartTurn returns; a prompt that the agent does not
// take the handler refuses with an error instead.
//
// The runtime answers with the id of the user's message, shows the message to the client, reports that
// the session is running, calls work, and reports that the session is idle, and why. session/cancel,
// closing the session and the end of the connection end the context of work.
//
// While the session works, StartTurn holds the prompt until that is done, and prompts are worked off in
// the order in which they came; for one that is cancelled before StartTurn returns an error, and so should
// the handler. With AgentOptions.Steer prompts are taken at once, and work that runs at the same time is
// reported as one.
func (s *AgentSession) StartTurn(ctx context.Context, req *PromptRequest, work Work) (*PromptResponse, error) {
	return s.StartTurnWith(ctx, UserMessage{MessageID: newMessageID(), Content: Some(req.Prompt)}, work)
}

// StartTurnWith is StartTurn with the message that the client is shown, whose id the agent chooses.
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

// RunTurn does foreground work of the agent's own accord: it reports that the session is running, calls
// work, and reports that it is idle. See StartTurn for what ends the context of work, and for what happens
// when the session works already; work that calls RunTurn for its own session and waits for it waits for itself. It
// returns an error when work was not called.
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

// AwaitTurn waits until the session takes the prompt that ctx belongs to, as StartTurn does by itself. It is for a handler
// of prompts that has something to do before the prompt is accepted, such as storing it, and refuses the prompt when that
// fails. It returns the cause of ctx if that has ended.
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

// newMessageID returns an id that no other message has.
func newMessageID() MessageID { return MessageID("msg_" + rand.Text()) }

// foreground is what is going on in a session that is not idle. The client hears of it as a whole: that it
// is running when there is work, and idle when there is none any more.
type foreground struct {
	session *AgentSession

	mu        sync.Mutex // also held while a state is sent, so that states are sent in order
	turns     int        // that were taken and are not over
	questions int        // questions to the user that are open
	running   bool       // that work goes on was reported
}

// enter notes that a turn was taken.
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

// join adds a turn. It returns false when the last one has ended meanwhile.
func (f *foreground) join() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.turns < 0 {
		return false
	}
	f.turns++
	return true
}

// workKey is the context key under which a turn's foreground is found.
type workKey struct{}

// work does the work of a turn between the reports of its states.
func (f *foreground) work(ctx context.Context, free func(), work Work, first func(context.Context) error) {
	idle := failed(rpc.ErrorOf(rpc.ErrInternal)) // if work panics
	defer func() { f.leave(ctx, free, idle) }()
	err := first(ctx)
	if err = cmp.Or(err, f.begin(ctx)); err != nil { // begun in any case, so that its end is reported
		idle = outcome(ctx, IdleStateUpdate{}, err)
		return
	}
	result, err := work(context.WithValue(ctx, workKey{}, f))
	if err != nil {
		(*engine.Conn)(f.session.conn.rpc).ReportFailure(ctx, "turn failed", MethodPrompt, err)
	}
	idle = outcome(ctx, result, err)
}

// outcome is the state that a turn ends with.
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

// begin reports that the session is running, if that is new.
func (f *foreground) begin(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running {
		return nil
	}
	f.running = true
	return f.report(ctx, running())
}

// leave ends a turn. The last one makes the session idle; free lets it take the next turn, before the
// client hears that.
func (f *foreground) leave(ctx context.Context, free func(), idle IdleStateUpdate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	free()
	if f.turns--; f.turns > 0 {
		return
	}
	if f.running {
		// What cannot be sent any more nobody waits for: the connection is over.
		_ = f.reportFinally(ctx, NewStateUpdateIdle(idle))
	}
	f.turns = -1
	conn := f.session.conn
	conn.mu.Lock()
	defer conn.mu.Unlock()
	delete(conn.foregrounds, f.session.id)
}

// requiringAction asks the user something, and reports that the session waits for that if ctx is of its
// turn.
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
		err = ErrTurnCancelled // the answer came right behind session/cancel
	}
	if err = cmp.Or(err, f.asking(ctx, -1)); err != nil {
		return nil, err
	}
	return res, nil
}

// asking notes that a question was asked, or answered.
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

// reportFinally is report for what the client must hear, also when ctx has ended, unless the connection has.
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

// report tells the client the state of the session.
func (f *foreground) report(ctx context.Context, state StateUpdate) error {
	return f.session.Update(ctx, NewSessionUpdateStateUpdate(f.session.withBackground(state)))
}

// withBackground adds what runs in the background, if the agent says that.
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
	}
	return state
}

// repeatState tells the client in which state the session is, as it must hear when it resumes one.
func (s *AgentSession) repeatState(ctx context.Context) error {
	s.conn.mu.Lock()
	f := s.conn.foregrounds[s.id]
	s.conn.mu.Unlock()
	state := NewStateUpdateIdle(NewIdleStateUpdateNone())
	if f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch {
		case f.turns < 0: // they have just ended
		case f.questions > 0:
			state = NewStateUpdateRequiresAction(RequiresActionStateUpdate{})
		case f.running:
			state = running()
		}
	}
	return s.Update(ctx, NewSessionUpdateStateUpdate(s.withBackground(state)))
}
