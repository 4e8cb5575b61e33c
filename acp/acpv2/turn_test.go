package acpv2_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // passing tests print nothing
	goleak.VerifyTestMain(m)
}

const session acpv2.SessionID = "s"

// handlers are those that every agent with sessions needs.
func handlers(prompt func(context.Context, *acpv2.AgentSession, *acpv2.PromptRequest) (*acpv2.PromptResponse, error)) (h acpv2.AgentHandlers) {
	h.NewSession = func(context.Context, *acpv2.AgentConn, *acpv2.NewSessionRequest) (*acpv2.NewSessionResponse, error) {
		return &acpv2.NewSessionResponse{SessionID: session}, nil
	}
	h.ListSessions = func(context.Context, *acpv2.AgentConn, *acpv2.ListSessionsRequest) (*acpv2.ListSessionsResponse, error) {
		return &acpv2.ListSessionsResponse{}, nil
	}
	h.ResumeSession, h.CloseSession, h.Prompt = nothing, nothing, prompt
	return h
}

var info = acpv2.Implementation{Name: "test", Version: "1"}

// tapAgent judges the messages of an agent's connection; with a raw client, those of the agent alone.
func tapAgent(t *testing.T, transport rpc.Transport, raw bool) rpc.Transport {
	t.Helper()
	return conformance.Tap(t, conformance.Agent, transport, &conformance.TapOptions{
		Schema: conformance.V2(),
		Ignore: func(f conformance.Finding) bool { return raw && f.Direction == conformance.ToAgent },
	})
}

// tapClient judges the messages of a client's connection.
func tapClient(t *testing.T, transport rpc.Transport) rpc.Transport {
	t.Helper()
	return conformance.Tap(t, conformance.Client, transport, &conformance.TapOptions{Schema: conformance.V2()})
}

// connect starts an agent and a client of it. Options may be nil.
func connect(t *testing.T, agent acpv2.AgentHandlers, client acpv2.ClientHandlers, opts *acpv2.AgentOptions) *acpv2.ClientConn {
	t.Helper()
	return connectThat(t, nil, agent, client, opts)
}

// connectThat is connect for a test that breaks rules on purpose: their ids, with the reasons.
func connectThat(
	t *testing.T, breaks map[string]string, agent acpv2.AgentHandlers, client acpv2.ClientHandlers, opts *acpv2.AgentOptions,
) *acpv2.ClientConn {
	t.Helper()
	if opts == nil {
		opts = &acpv2.AgentOptions{}
	}
	opts.Info = info
	near, far := acpv2.Pipe()
	tap := &conformance.TapOptions{Schema: conformance.V2(), Accept: breaks}
	served := must.Get(acpv2.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, far, tap), agent, opts))(t)
	conn := must.Get(acpv2.Connect(t.Context(), conformance.Tap(t, conformance.Client, near, tap), client, &acpv2.ClientOptions{
		Info: info, Conn: acpv2.ConnOptions{
			CancelGrace: time.Minute,
			Hooks: acpv2.Hooks{Message: func(sent bool, message []byte) {
				if sent && t.Name() != "TestTakeBack" && bytes.Contains(message, []byte(`"$/cancel_request"`)) {
					t.Error("a prompt was cancelled as if its answer were waited for")
				}
			}},
		},
	}))(t)
	t.Cleanup(func() { must.Do(t, errors.Join(conn.Close(), served.Wait())) })
	return conn
}

func newSession(t *testing.T, conn *acpv2.ClientConn) *acpv2.ClientSession {
	t.Helper()
	s := must.Get(conn.NewSession(t.Context(), &acpv2.NewSessionRequest{Cwd: "/"}))(t)
	return s
}

// working is an agent's handler of prompts that does work.
func working(work work) func(context.Context, *acpv2.AgentSession, *acpv2.PromptRequest) (*acpv2.PromptResponse, error) {
	return func(ctx context.Context, s *acpv2.AgentSession, req *acpv2.PromptRequest) (*acpv2.PromptResponse, error) {
		return s.StartTurn(ctx, req, func(ctx context.Context) (acpv2.IdleStateUpdate, error) { return work(ctx, s) })
	}
}

// kind is an update in a word.
func kind(u acpv2.SessionUpdate) string {
	switch u := u.Variant.(type) {
	case *acpv2.SessionUpdateUserMessage:
		return "user"
	case *acpv2.SessionUpdateAgentMessageChunk:
		text := u.Content.Text()
		return text
	case *acpv2.SessionUpdateStateUpdate:
		switch u.Variant.(type) {
		case *acpv2.StateUpdateRunning:
			return "running"
		case *acpv2.StateUpdateRequiresAction:
			return "requires_action"
		case *acpv2.StateUpdateIdle:
			return "idle"
		}
	}
	return "?"
}

// ends checks how a turn has ended, and returns its result.
func ends(t *testing.T, want string) func(*acpv2.TurnResult, error) *acpv2.TurnResult {
	t.Helper()
	return func(res *acpv2.TurnResult, err error) *acpv2.TurnResult {
		t.Helper()
		must.Do(t, err)
		if stop := res.Idle.StopReason(); stop != want {
			t.Errorf("got %s, want %s", stop, want)
		}
		return res
	}
}

// heard has the updates that reach a client's handler, each in a word.
type heard struct {
	mu    sync.Mutex
	words []string
}

func (h *heard) handlers() acpv2.ClientHandlers {
	return acpv2.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acpv2.ClientSession, n *acpv2.UpdateSessionNotification) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.words = append(h.words, kind(n.Update))
			return nil
		},
	}
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.words, " ")
}

// read returns the updates of a turn, each in a word.
func read(turn *acpv2.Turn) string {
	var words []string
	for u := range turn.Updates() {
		words = append(words, kind(u))
	}
	return strings.Join(words, " ")
}

// work is an agent's work in a turn.
type work = func(ctx context.Context, s *acpv2.AgentSession) (acpv2.IdleStateUpdate, error)

// waits is work that waits until it is cancelled. What it returns then makes no difference.
func waits(begun chan<- struct{}) work {
	return func(ctx context.Context, _ *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
		close(begun)
		<-ctx.Done()
		return acpv2.MaxTokens(), nil
	}
}

// done is work without any.
func done(context.Context, *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
	return acpv2.EndTurn(), nil
}

// holds is a client's handler that leaves a question open until its turn ends.
func holds(asked chan<- struct{}) func(context.Context, *acpv2.ClientSession, *acpv2.RequestPermissionRequest) (*acpv2.RequestPermissionResponse, error) {
	return func(ctx context.Context, _ *acpv2.ClientSession, _ *acpv2.RequestPermissionRequest) (*acpv2.RequestPermissionResponse, error) {
		close(asked)
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

// nothing is a handler that answers with nothing.
func nothing[Of, P, R any](context.Context, Of, P) (res R, err error) { return res, nil }

// state is an update with a state.
func state(s acpv2.StateUpdate) acpv2.SessionUpdate {
	return acpv2.NewSessionUpdateStateUpdate(s)
}

var (
	running = state(acpv2.NewStateUpdateRunning(acpv2.RunningStateUpdate{}))
	idle    = state(acpv2.NewStateUpdateIdle(acpv2.EndTurn()))
)

func send(t *testing.T, ctx context.Context, s *acpv2.AgentSession, updates ...acpv2.SessionUpdate) {
	t.Helper()
	for _, u := range updates {
		must.Do(t, s.Update(ctx, u))
	}
}

func TestTurn(t *testing.T) {
	conn := connect(t, handlers(working(func(ctx context.Context, s *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
		send(t, ctx, s, acpv2.AgentMessageText("m", "hello"))
		outcome, err := s.RequestPermission(ctx, &acpv2.RequestPermissionRequest{Title: "May I?", Options: mayI})
		if err != nil {
			return acpv2.IdleStateUpdate{}, err
		}
		option, _ := outcome.Selected()
		return acpv2.MaxTokens(), s.Update(ctx, acpv2.AgentMessageText("m", string(option)))
	})), acpv2.ClientHandlers{
		RequestPermission: func(context.Context, *acpv2.ClientSession, *acpv2.RequestPermissionRequest) (*acpv2.RequestPermissionResponse, error) {
			return &acpv2.RequestPermissionResponse{Outcome: acpv2.PermissionSelected("yes")}, nil
		},
	}, nil)
	turn := newSession(t, conn).Stream(t.Context(), acpv2.TextBlock("hi"))
	var got []string
	var shown acpv2.MessageID
	for u := range turn.Updates() {
		got = append(got, kind(u))
		if user, ok := u.Variant.(*acpv2.SessionUpdateUserMessage); ok {
			shown = user.MessageID
		}
	}
	res := ends(t, "max_tokens")(turn.Result())
	if want := "user running hello requires_action running yes idle"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if res.MessageID == "" || res.MessageID != shown {
		t.Errorf("the answer has the message %q, the update %q", res.MessageID, shown)
	}
}

// A question about another session, or on another connection, says nothing of the turn in which it is asked.
func TestQuestionElsewhere(t *testing.T) {
	client := acpv2.ClientHandlers{RequestPermission: func(context.Context, *acpv2.ClientSession, *acpv2.RequestPermissionRequest) (*acpv2.RequestPermissionResponse, error) {
		return &acpv2.RequestPermissionResponse{Outcome: acpv2.PermissionSelected("yes")}, nil
	}}
	var there *acpv2.AgentSession // on the other connection
	agent := handlers(working(func(ctx context.Context, s *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
		if there == nil {
			there = s
			return acpv2.EndTurn(), nil
		}
		for _, other := range []*acpv2.AgentSession{there, s.Conn().Session("another")} {
			if _, err := other.RequestPermission(ctx, &acpv2.RequestPermissionRequest{Title: "May I?", Options: mayI}); err != nil {
				t.Error(err)
			}
		}
		return acpv2.EndTurn(), nil
	}))
	for range 2 {
		conn := connectThat(t, map[string]string{"ADD-2": "no such session is made"}, agent, client, nil)
		turn := newSession(t, conn).Stream(t.Context(), acpv2.TextBlock("hi"))
		if got := read(turn); got != "user running idle" {
			t.Errorf("got %q", got)
		}
		ends(t, "end_turn")(turn.Result())
	}
}

// A turn that was cancelled with a question open: the question is answered as cancelled, whatever the
// client's handler does.
func TestCancelAnswersQuestions(t *testing.T) {
	asked := make(chan struct{})
	conn := connect(t, handlers(working(func(ctx context.Context, s *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
		_, err := s.RequestPermission(ctx, &acpv2.RequestPermissionRequest{Title: "May I?", Options: mayI})
		return acpv2.IdleStateUpdate{}, err
	})), acpv2.ClientHandlers{RequestPermission: holds(asked)}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	turn := newSession(t, conn).Stream(ctx, acpv2.TextBlock("hi"))
	<-asked
	cancel()
	ends(t, "cancelled")(turn.Result())
}

func TestEnds(t *testing.T) {
	tests := map[string]struct {
		work acpv2.Work
		want string
		says string // by an error
	}{
		"reason": {func(context.Context) (acpv2.IdleStateUpdate, error) { return acpv2.Refusal(), nil }, "refusal", ""},
		"zero":   {func(context.Context) (acpv2.IdleStateUpdate, error) { return acpv2.IdleStateUpdate{}, nil }, "end_turn", ""},
		"error": {func(context.Context) (acpv2.IdleStateUpdate, error) {
			return acpv2.IdleStateUpdate{}, errors.New("secret")
		}, "error", "Internal error"},
		"public error": {func(context.Context) (acpv2.IdleStateUpdate, error) {
			return acpv2.IdleStateUpdate{}, acpv2.Public(errors.New("no model"))
		}, "error", "no model"},
		"panic":  {func(context.Context) (acpv2.IdleStateUpdate, error) { panic("secret") }, "error", "Internal error"},
		"goexit": {func(context.Context) (acpv2.IdleStateUpdate, error) { runtime.Goexit(); panic("not here") }, "error", "Internal error"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, handlers(func(ctx context.Context, session *acpv2.AgentSession, req *acpv2.PromptRequest) (*acpv2.PromptResponse, error) {
				return session.StartTurn(ctx, req, test.work)
			}), acpv2.ClientHandlers{}, nil)
			s := newSession(t, conn)
			for range 2 { // the session takes the next turn as soon as the client hears of the end
				res := ends(t, test.want)(s.Prompt(t.Context(), acpv2.TextBlock("hi")))
				if failed, ok := res.Idle.Variant.(*acpv2.IdleStateUpdateError); ok && failed.Error.Value().Message != test.says {
					t.Errorf("got the error %v, want %q", failed.Error, test.says)
				}
			}
		})
	}
}

// An agent that sends the states itself: in which order they come, and what ends the turn.
func TestPlainAgents(t *testing.T) {
	const id acpv2.MessageID = "mine"
	user := acpv2.NewSessionUpdateUserMessage(acpv2.UserMessage{MessageID: id})
	end := acpv2.AgentMessageText("m", "end")
	tests := map[string]struct {
		before, after []acpv2.SessionUpdate
		want          string
	}{
		"all after the answer":         {nil, []acpv2.SessionUpdate{user, running, end, idle}, "user running end idle"},
		"all before the answer":        {[]acpv2.SessionUpdate{user, running, end, idle}, nil, "user running end idle"},
		"running first":                {[]acpv2.SessionUpdate{running, user}, []acpv2.SessionUpdate{end, idle}, "running user end idle"},
		"other work ends before":       {[]acpv2.SessionUpdate{running, idle, running}, []acpv2.SessionUpdate{user, end, idle}, "running idle running user end idle"},
		"other message's work ends":    {[]acpv2.SessionUpdate{acpv2.NewSessionUpdateUserMessage(acpv2.UserMessage{MessageID: "other"}), running, idle}, []acpv2.SessionUpdate{user, running, end, idle}, "user running idle user running end idle"},
		"idle said once more":          {nil, []acpv2.SessionUpdate{user, idle, idle, running, end, idle}, "user idle idle running end idle"},
		"the message comes in chunks":  {[]acpv2.SessionUpdate{acpv2.NewSessionUpdateUserMessageChunk(acpv2.ContentChunk{MessageID: id, Content: acpv2.TextBlock("x")}), running, end, idle}, nil, "? running end idle"},
		"user action is required last": {nil, []acpv2.SessionUpdate{user, state(acpv2.NewStateUpdateRequiresAction(acpv2.RequiresActionStateUpdate{})), idle}, "user requires_action idle"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			conn := connectThat(t, map[string]string{"V2-2": "it says idle again before it has worked"}, handlers(func(ctx context.Context, s *acpv2.AgentSession, req *acpv2.PromptRequest) (*acpv2.PromptResponse, error) {
				send(t, ctx, s, test.before...)
				acpv2.AfterResponse(ctx, func(ctx context.Context) { send(t, ctx, s, test.after...) })
				return &acpv2.PromptResponse{MessageID: id}, nil
			}), acpv2.ClientHandlers{}, nil)
			turn := newSession(t, conn).Stream(t.Context(), acpv2.TextBlock("hi"))
			got := read(turn)
			ends(t, "end_turn")(turn.Result())
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// A prompt in a session that works already joins that work, if the agent allows it, and ends with it.
func TestJoin(t *testing.T) {
	first, release := make(chan struct{}), make(chan struct{})
	var ends atomic.Int32
	turns := 0
	conn := connect(t, handlers(working(func(ctx context.Context, s *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
		if turns++; turns == 1 {
			close(first)
			<-release
			return acpv2.EndTurn(), nil
		}
		close(release)
		return acpv2.Refusal(), nil
	})), acpv2.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acpv2.ClientSession, n *acpv2.UpdateSessionNotification) error {
			if kind(n.Update) == "idle" {
				ends.Add(1)
			}
			return nil
		},
	}, &acpv2.AgentOptions{Steer: true})
	s := newSession(t, conn)
	one := s.Stream(t.Context(), acpv2.TextBlock("one"))
	<-first
	two := s.Stream(t.Context(), acpv2.TextBlock("two"))
	got := read(one)
	if want := "user running user idle"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	a, b := must.Get(one.Result())(t), must.Get(two.Result())(t)
	if err := s.Close(t.Context()); err != nil { // its answer comes after all updates
		t.Fatal(err)
	}
	if a.Idle.StopReason() != b.Idle.StopReason() || a.MessageID == b.MessageID || ends.Load() != 0 { // the first loop has it
		t.Errorf("got %+v and %+v, and idle %d times", a, b, ends.Load())
	}
}

// Prompts in a session that works are held, and worked off in their order.
func TestHold(t *testing.T) {
	release, begun := make(chan struct{}), make(chan struct{}, 3)
	conn := connect(t, handlers(working(func(context.Context, *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
		begun <- struct{}{}
		<-release
		return acpv2.EndTurn(), nil
	})), acpv2.ClientHandlers{}, nil)
	s := newSession(t, conn)
	turns := []*acpv2.Turn{s.Stream(t.Context(), acpv2.TextBlock("one"))}
	<-begun
	turns = append(turns, s.Stream(t.Context(), acpv2.TextBlock("two")))
	close(release)
	for i, turn := range turns {
		got := read(turn)
		if ends(t, "end_turn")(turn.Result()); got != "user running idle" {
			t.Errorf("turn %d: got %q", i, got)
		}
	}
}

// holding runs two turns of a session: the first works, and the second is held behind it.
func holding(t *testing.T, work acpv2.Work) (s *acpv2.ClientSession, one, two *acpv2.Turn) {
	t.Helper()
	begun, held := make(chan struct{}), make(chan struct{})
	prompts := 0
	prompt := working(func(ctx context.Context, _ *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
		close(begun)
		return work(ctx)
	})
	conn := connect(t, handlers(func(ctx context.Context, session *acpv2.AgentSession, req *acpv2.PromptRequest) (*acpv2.PromptResponse, error) {
		if prompts++; prompts == 2 {
			close(held)
		}
		return prompt(ctx, session, req)
	}), acpv2.ClientHandlers{}, nil)
	s = newSession(t, conn)
	one = s.Stream(t.Context(), acpv2.TextBlock("one"))
	<-begun
	two = s.Stream(t.Context(), acpv2.TextBlock("two"))
	<-held
	return s, one, two
}

// A cancellation is also for the prompts that are held, which then do not become a part of the conversation.
func TestCancelHeld(t *testing.T) {
	s, one, two := holding(t, func(ctx context.Context) (acpv2.IdleStateUpdate, error) {
		<-ctx.Done()
		return acpv2.IdleStateUpdate{}, ctx.Err()
	})
	must.Do(t, s.Cancel(t.Context()))
	ends(t, "cancelled")(one.Result())
	if _, err := two.Result(); !errors.Is(err, acpv2.ErrRequestCancelled) {
		t.Errorf("got %v", err)
	}
}

// A held prompt is withdrawn without a message to the work that blocks it.
func TestTakeBack(t *testing.T) {
	release := make(chan struct{})
	_, one, two := holding(t, func(ctx context.Context) (acpv2.IdleStateUpdate, error) {
		<-release
		return acpv2.EndTurn(), ctx.Err()
	})
	two.Cancel()
	if _, err := two.Result(); !errors.Is(err, acpv2.ErrRequestCancelled) {
		t.Errorf("got %v", err)
	}
	close(release)
	ends(t, "end_turn")(one.Result())
}

// A prompt that is cancelled before the agent has taken it is answered as cancelled, and did not become a
// part of the conversation.
func TestCancelBeforeInsertion(t *testing.T) {
	begun := make(chan struct{})
	conn := connect(t, handlers(func(ctx context.Context, session *acpv2.AgentSession, req *acpv2.PromptRequest) (*acpv2.PromptResponse, error) {
		close(begun)
		<-ctx.Done()
		return session.StartTurn(ctx, req, func(context.Context) (acpv2.IdleStateUpdate, error) {
			t.Error("the work was done")
			return acpv2.EndTurn(), nil
		})
	}), acpv2.ClientHandlers{}, nil)
	s := newSession(t, conn)
	turn := s.Stream(t.Context(), acpv2.TextBlock("hi"))
	<-begun
	must.Do(t, s.Cancel(t.Context()))
	if _, err := turn.Result(); !errors.Is(err, acpv2.ErrRequestCancelled) {
		t.Errorf("got %v", err)
	}
}

// A cancelled turn that the agent does not end is given up after a while.
func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan struct{})
		var client *acpv2.ClientConn
		client = connect(t, handlers(working(func(ctx context.Context, s *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
			close(begun)
			<-client.Done()
			return acpv2.EndTurn(), nil
		})), acpv2.ClientHandlers{}, nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("enough")
		turn := newSession(t, client).Stream(ctx, acpv2.TextBlock("hi"))
		<-begun
		cancelled := time.Now()
		cancel(reason)
		if _, err := turn.Result(); !errors.Is(err, reason) {
			t.Errorf("got %v, want %v", err, reason)
		}
		if took := time.Since(cancelled); took != time.Minute {
			t.Errorf("it was given up after %v", took)
		}
	})
}

// Closing a session ends its turn first.
func TestClose(t *testing.T) {
	begun := make(chan struct{})
	var got heard
	s := newSession(t, connect(t, handlers(working(waits(begun))), got.handlers(), nil))
	result := prompting(t, s)
	<-begun
	must.Do(t, s.Close(t.Context()))
	if got.String() != "user running idle" {
		t.Errorf("before the answer came %q", &got)
	}
	ends(t, "cancelled")(result())
}

// Work of the agent's own accord is reported, and cancelled, like that of a prompt.
func TestRunTurn(t *testing.T) {
	ended := make(chan struct{})
	var once sync.Once
	updates := make(chan string, 10)
	var served *acpv2.AgentSession
	begun := make(chan struct{})
	agent := handlers(working(done))
	agent.NewSession = func(ctx context.Context, client *acpv2.AgentConn, _ *acpv2.NewSessionRequest) (*acpv2.NewSessionResponse, error) {
		served = client.Session(session)
		acpv2.AfterResponse(ctx, func(ctx context.Context) {
			defer close(ended)
			err := served.RunTurn(ctx, func(ctx context.Context) (acpv2.IdleStateUpdate, error) {
				once.Do(func() { close(begun) })
				<-ctx.Done()
				return acpv2.IdleStateUpdate{}, context.Cause(ctx)
			})
			if err != nil {
				t.Error(err)
			}
		})
		return &acpv2.NewSessionResponse{SessionID: session}, nil
	}
	conn := connect(t, agent, acpv2.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acpv2.ClientSession, n *acpv2.UpdateSessionNotification) error {
			updates <- kind(n.Update)
			return nil
		},
	}, nil)
	s := newSession(t, conn)
	<-begun
	must.Do(t, s.Cancel(t.Context()))
	<-ended
	if a, b := <-updates, <-updates; a != "running" || b != "idle" {
		t.Errorf("got %s, %s", a, b)
	}
	ends(t, "end_turn")(s.Prompt(t.Context(), acpv2.TextBlock("hi")))
}

// Whoever resumes a session hears its state before the answer.
func TestResume(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	var got heard
	conn := connect(t, handlers(working(func(context.Context, *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
		close(begun)
		<-release
		return acpv2.EndTurn(), nil
	})), got.handlers(), &acpv2.AgentOptions{Background: func(acpv2.SessionID) []acpv2.BackgroundWork { return []acpv2.BackgroundWork{} }})
	resume := func() string {
		must.Get(conn.ResumeSession(t.Context(), &acpv2.ResumeSessionRequest{SessionID: session, Cwd: "/"}))(t)
		return got.String()
	}
	if got := resume(); got != "idle" {
		t.Errorf("got %q", got)
	}
	result := prompting(t, conn.Session(session))
	<-begun
	if got := resume(); got != "idle user running running" {
		t.Errorf("got %q", got)
	}
	close(release)
	if res := ends(t, "end_turn")(result()); !res.Idle.Background.Present() {
		t.Errorf("got the background %v", res.Idle.Background)
	}
}

// A turn inside the handler of its own session's updates ends, although its updates wait for that handler.
func TestPromptInsideHandler(t *testing.T) {
	result := make(chan error, 1)
	once := true
	conn := connect(t, handlers(working(done)), acpv2.ClientHandlers{
		SessionUpdate: func(ctx context.Context, session *acpv2.ClientSession, n *acpv2.UpdateSessionNotification) error {
			if once && kind(n.Update) == "idle" {
				once = false
				_, err := session.Prompt(ctx, acpv2.TextBlock("again"))
				result <- err
			}
			return nil
		},
	}, nil)
	must.Get(newSession(t, conn).Prompt(t.Context(), acpv2.TextBlock("hi")))(t)
	must.Do(t, <-result)
}

// A turn whose connection ends fails, and says why.
func TestConnectionEnds(t *testing.T) {
	begun := make(chan struct{})
	near, far := acpv2.Pipe()
	served := must.Get(acpv2.StartAgent(t.Context(), tapAgent(t, far, false), handlers(working(func(ctx context.Context, _ *acpv2.AgentSession) (acpv2.IdleStateUpdate, error) {
		close(begun)
		<-ctx.Done()
		return acpv2.IdleStateUpdate{}, ctx.Err()
	})), &acpv2.AgentOptions{Info: info}))(t)
	conn := must.Get(acpv2.Connect(t.Context(), tapClient(t, near), acpv2.ClientHandlers{}, &acpv2.ClientOptions{Info: info}))(t)
	turn := newSession(t, conn).Stream(t.Context(), acpv2.TextBlock("hi"))
	<-begun
	must.Do(t, served.Close())
	res, err := turn.Result()
	if err == nil { // what the agent still sends may arrive
		ends(t, "error")(res, err)
	} else if !errors.Is(err, acpv2.ErrClosed) {
		t.Errorf("got %v", err)
	}
	must.Do(t, conn.Close())
}

// prompting prompts in the background, so that updates go to the client's handler. The function that it returns waits
// for the end.
func prompting(t *testing.T, s *acpv2.ClientSession) (result func() (*acpv2.TurnResult, error)) {
	type ended struct {
		res *acpv2.TurnResult
		err error
	}
	done := make(chan ended, 1)
	go func() {
		res, err := s.Prompt(t.Context(), acpv2.TextBlock("hi"))
		done <- ended{res, err}
	}()
	return func() (*acpv2.TurnResult, error) {
		e := <-done
		return e.res, e.err
	}
}

// SES-31: updates for a new session that its handler sends follow the answer.
func TestUpdatesOfANewSession(t *testing.T) {
	agent := handlers(unprompted)
	agent.NewSession = func(ctx context.Context, conn *acpv2.AgentConn, _ *acpv2.NewSessionRequest) (*acpv2.NewSessionResponse, error) {
		return &acpv2.NewSessionResponse{SessionID: session}, conn.Session(session).Update(ctx, acpv2.AgentMessageText("m", "hello"))
	}
	updated := make(chan struct{})
	near, far := acpv2.Pipe()
	served := must.Get(acpv2.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, far, &conformance.TapOptions{
		Schema: conformance.V2(), Level: conformance.Should,
	}), agent, &acpv2.AgentOptions{Info: info}))(t)
	conn := must.Get(acpv2.Connect(t.Context(), near, acpv2.ClientHandlers{
		SessionUpdate: func(context.Context, *acpv2.ClientSession, *acpv2.UpdateSessionNotification) error {
			close(updated)
			return nil
		},
	}, &acpv2.ClientOptions{Info: info}))(t)
	must.Get(conn.NewSession(t.Context(), &acpv2.NewSessionRequest{Cwd: "/w"}))(t)
	<-updated
	must.Do(t, errors.Join(conn.Close(), served.Wait()))
}
