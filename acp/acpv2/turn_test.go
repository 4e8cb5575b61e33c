package v2draft_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"runtime"
	"slices"
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
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // passing tests print nothing
	goleak.VerifyTestMain(m)
}

const session v2draft.SessionID = "s"

// handlers are those that every agent with sessions needs.
func handlers(prompt func(context.Context, *v2draft.AgentSession, *v2draft.PromptRequest) (*v2draft.PromptResponse, error)) v2draft.AgentHandlers {
	return v2draft.AgentHandlers{
		NewSession: func(context.Context, *v2draft.AgentConn, *v2draft.NewSessionRequest) (*v2draft.NewSessionResponse, error) {
			return &v2draft.NewSessionResponse{SessionID: session}, nil
		},
		ListSessions: func(context.Context, *v2draft.AgentConn, *v2draft.ListSessionsRequest) (*v2draft.ListSessionsResponse, error) {
			return &v2draft.ListSessionsResponse{}, nil
		},
		ResumeSession: func(context.Context, *v2draft.AgentSession, *v2draft.ResumeSessionRequest) (*v2draft.ResumeSessionResponse, error) {
			return nil, nil
		},
		CloseSession: func(context.Context, *v2draft.AgentSession, *v2draft.CloseSessionRequest) (*v2draft.CloseSessionResponse, error) {
			return nil, nil
		},
		Prompt: prompt,
	}
}

var info = v2draft.Implementation{Name: "test", Version: "1"}

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
func connect(t *testing.T, agent v2draft.AgentHandlers, client v2draft.ClientHandlers, opts *v2draft.AgentOptions) *v2draft.ClientConn {
	t.Helper()
	return connectThat(t, nil, agent, client, opts)
}

// connectThat is connect for a test that breaks rules on purpose: their ids, with the reasons.
func connectThat(
	t *testing.T, breaks map[string]string, agent v2draft.AgentHandlers, client v2draft.ClientHandlers, opts *v2draft.AgentOptions,
) *v2draft.ClientConn {
	t.Helper()
	if opts == nil {
		opts = &v2draft.AgentOptions{}
	}
	opts.Info = info
	near, far := v2draft.Pipe()
	tap := &conformance.TapOptions{Schema: conformance.V2(), Accept: breaks}
	served, err := v2draft.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, far, tap), agent, opts)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := v2draft.Connect(t.Context(), conformance.Tap(t, conformance.Client, near, tap), client, &v2draft.ClientOptions{
		Info: info, Conn: v2draft.ConnOptions{
			CancelGrace: time.Minute,
			Hooks: v2draft.Hooks{Message: func(sent bool, message []byte) {
				if sent && t.Name() != "TestTakeBack" && bytes.Contains(message, []byte(`"$/cancel_request"`)) {
					t.Error("a prompt was cancelled as if its answer were waited for")
				}
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if err := served.Wait(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

func newSession(t *testing.T, conn *v2draft.ClientConn) *v2draft.ClientSession {
	t.Helper()
	s, err := conn.NewSession(t.Context(), &v2draft.NewSessionRequest{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// working is an agent's handler of prompts that does work.
func working(work func(ctx context.Context, s *v2draft.AgentSession) (v2draft.IdleStateUpdate, error)) func(context.Context, *v2draft.AgentSession, *v2draft.PromptRequest) (*v2draft.PromptResponse, error) {
	return func(ctx context.Context, s *v2draft.AgentSession, req *v2draft.PromptRequest) (*v2draft.PromptResponse, error) {
		return s.StartTurn(ctx, req, func(ctx context.Context) (v2draft.IdleStateUpdate, error) { return work(ctx, s) })
	}
}

// kind is an update in a word.
func kind(u v2draft.SessionUpdate) string {
	switch u := u.Variant.(type) {
	case *v2draft.SessionUpdateUserMessage:
		return "user"
	case *v2draft.SessionUpdateAgentMessageChunk:
		text, _ := u.Content.Text()
		return text
	case *v2draft.SessionUpdateStateUpdate:
		switch u.Variant.(type) {
		case *v2draft.StateUpdateRunning:
			return "running"
		case *v2draft.StateUpdateRequiresAction:
			return "requires_action"
		case *v2draft.StateUpdateIdle:
			return "idle"
		}
	}
	return "?"
}

// stopped returns the tag of why a turn ended.
func stopped(t *testing.T, res *v2draft.TurnResult, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(reflect.TypeOf(res.Idle.Variant).Elem().Name(), "IdleStateUpdate")
}

// state is an update with a state.
func state(s v2draft.StateUpdate) v2draft.SessionUpdate {
	return v2draft.NewSessionUpdateStateUpdate(s)
}

var (
	running = state(v2draft.NewStateUpdateRunning(v2draft.RunningStateUpdate{}))
	idle    = state(v2draft.NewStateUpdateIdle(v2draft.EndTurn()))
)

func send(t *testing.T, ctx context.Context, s *v2draft.AgentSession, updates ...v2draft.SessionUpdate) {
	t.Helper()
	for _, u := range updates {
		if err := s.Update(ctx, u); err != nil {
			t.Error(err)
		}
	}
}

func TestTurn(t *testing.T) {
	conn := connect(t, handlers(working(func(ctx context.Context, s *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
		send(t, ctx, s, v2draft.AgentMessageText("m", "hello"))
		outcome, err := s.RequestPermission(ctx, &v2draft.RequestPermissionRequest{
			Title:   "May I?",
			Options: []v2draft.PermissionOption{{OptionID: "yes", Name: "Yes", Kind: v2draft.PermissionOptionKindAllowOnce}},
		})
		if err != nil {
			return v2draft.IdleStateUpdate{}, err
		}
		option, _ := outcome.Selected()
		return v2draft.MaxTokens(), s.Update(ctx, v2draft.AgentMessageText("m", string(option)))
	})), v2draft.ClientHandlers{
		RequestPermission: func(context.Context, *v2draft.ClientSession, *v2draft.RequestPermissionRequest) (*v2draft.RequestPermissionResponse, error) {
			return &v2draft.RequestPermissionResponse{Outcome: v2draft.PermissionSelected("yes")}, nil
		},
	}, nil)
	turn := newSession(t, conn).Stream(t.Context(), v2draft.TextBlock("hi"))
	var got []string
	var shown v2draft.MessageID
	for u := range turn.Updates() {
		got = append(got, kind(u))
		if user, ok := u.Variant.(*v2draft.SessionUpdateUserMessage); ok {
			shown = user.MessageID
		}
	}
	res, err := turn.Result()
	if stop := stopped(t, res, err); stop != "MaxTokens" {
		t.Errorf("got %s", stop)
	}
	if want := "user running hello requires_action running yes idle"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if res.MessageID == "" || res.MessageID != shown {
		t.Errorf("the answer has the message %q, the update %q", res.MessageID, shown)
	}
}

func TestCancel(t *testing.T) {
	begun := make(chan struct{})
	conn := connect(t, handlers(working(func(ctx context.Context, s *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
		close(begun)
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), v2draft.ErrTurnCancelled) {
			t.Errorf("got the cause %v", context.Cause(ctx))
		}
		send(t, ctx, s, v2draft.AgentMessageText("m", "late"))
		return v2draft.IdleStateUpdate{}, ctx.Err()
	})), v2draft.ClientHandlers{}, nil)
	s := newSession(t, conn)
	turn := s.Stream(t.Context(), v2draft.TextBlock("hi"))
	<-begun
	if err := s.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for u := range turn.Updates() {
		got = append(got, kind(u))
	}
	res, err := turn.Result()
	if stop := stopped(t, res, err); stop != "Cancelled" {
		t.Errorf("got %s", stop)
	}
	if want := "user running late idle"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A turn that was cancelled with a question open: the question is answered as cancelled, whatever the
// client's handler does.
func TestCancelAnswersQuestions(t *testing.T) {
	asked := make(chan struct{})
	conn := connect(t, handlers(working(func(ctx context.Context, s *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
		_, err := s.RequestPermission(ctx, &v2draft.RequestPermissionRequest{
			Title:   "May I?",
			Options: []v2draft.PermissionOption{{OptionID: "yes", Name: "Yes", Kind: v2draft.PermissionOptionKindAllowOnce}},
		})
		return v2draft.IdleStateUpdate{}, err
	})), v2draft.ClientHandlers{
		RequestPermission: func(ctx context.Context, _ *v2draft.ClientSession, _ *v2draft.RequestPermissionRequest) (*v2draft.RequestPermissionResponse, error) {
			close(asked)
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	turn := newSession(t, conn).Stream(ctx, v2draft.TextBlock("hi"))
	<-asked
	cancel()
	res, err := turn.Result()
	if stop := stopped(t, res, err); stop != "Cancelled" {
		t.Errorf("got %s", stop)
	}
}

func TestEnds(t *testing.T) {
	tests := map[string]struct {
		work v2draft.Work
		want string
		says string // by an error
	}{
		"reason": {func(context.Context) (v2draft.IdleStateUpdate, error) { return v2draft.Refusal(), nil }, "Refusal", ""},
		"zero":   {func(context.Context) (v2draft.IdleStateUpdate, error) { return v2draft.IdleStateUpdate{}, nil }, "EndTurn", ""},
		"error": {func(context.Context) (v2draft.IdleStateUpdate, error) {
			return v2draft.IdleStateUpdate{}, errors.New("secret")
		}, "Error", "Internal error"},
		"public error": {func(context.Context) (v2draft.IdleStateUpdate, error) {
			return v2draft.IdleStateUpdate{}, v2draft.Public(errors.New("no model"))
		}, "Error", "no model"},
		"panic":  {func(context.Context) (v2draft.IdleStateUpdate, error) { panic("secret") }, "Error", "Internal error"},
		"goexit": {func(context.Context) (v2draft.IdleStateUpdate, error) { runtime.Goexit(); panic("not here") }, "Error", "Internal error"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, handlers(func(ctx context.Context, session *v2draft.AgentSession, req *v2draft.PromptRequest) (*v2draft.PromptResponse, error) {
				return session.StartTurn(ctx, req, test.work)
			}), v2draft.ClientHandlers{}, nil)
			s := newSession(t, conn)
			for range 2 { // the session takes the next turn as soon as the client hears of the end
				res, err := s.Prompt(t.Context(), v2draft.TextBlock("hi"))
				if stop := stopped(t, res, err); stop != test.want {
					t.Errorf("got %s, want %s", stop, test.want)
				}
				if failed, ok := res.Idle.Variant.(*v2draft.IdleStateUpdateError); ok && failed.Error.Value().Message != test.says {
					t.Errorf("got the error %v, want %q", failed.Error, test.says)
				}
			}
		})
	}
}

// An agent that sends the states itself: in which order they come, and what ends the turn.
func TestPlainAgents(t *testing.T) {
	const id v2draft.MessageID = "mine"
	user := v2draft.NewSessionUpdateUserMessage(v2draft.UserMessage{MessageID: id})
	end := v2draft.AgentMessageText("m", "end")
	tests := map[string]struct {
		before, after []v2draft.SessionUpdate
		want          string
	}{
		"all after the answer":         {nil, []v2draft.SessionUpdate{user, running, end, idle}, "user running end idle"},
		"all before the answer":        {[]v2draft.SessionUpdate{user, running, end, idle}, nil, "user running end idle"},
		"running first":                {[]v2draft.SessionUpdate{running, user}, []v2draft.SessionUpdate{end, idle}, "running user end idle"},
		"other work ends before":       {[]v2draft.SessionUpdate{running, idle, running}, []v2draft.SessionUpdate{user, end, idle}, "running idle running user end idle"},
		"other message's work ends":    {[]v2draft.SessionUpdate{v2draft.NewSessionUpdateUserMessage(v2draft.UserMessage{MessageID: "other"}), running, idle}, []v2draft.SessionUpdate{user, running, end, idle}, "user running idle user running end idle"},
		"idle said once more":          {nil, []v2draft.SessionUpdate{user, idle, idle, running, end, idle}, "user idle idle running end idle"},
		"the message comes in chunks":  {[]v2draft.SessionUpdate{v2draft.NewSessionUpdateUserMessageChunk(v2draft.ContentChunk{MessageID: id, Content: v2draft.TextBlock("x")}), running, end, idle}, nil, "? running end idle"},
		"user action is required last": {nil, []v2draft.SessionUpdate{user, state(v2draft.NewStateUpdateRequiresAction(v2draft.RequiresActionStateUpdate{})), idle}, "user requires_action idle"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			conn := connectThat(t, map[string]string{"V2-2": "it says idle again before it has worked"}, handlers(func(ctx context.Context, s *v2draft.AgentSession, req *v2draft.PromptRequest) (*v2draft.PromptResponse, error) {
				send(t, ctx, s, test.before...)
				v2draft.AfterResponse(ctx, func(ctx context.Context) { send(t, ctx, s, test.after...) })
				return &v2draft.PromptResponse{MessageID: id}, nil
			}), v2draft.ClientHandlers{}, nil)
			turn := newSession(t, conn).Stream(t.Context(), v2draft.TextBlock("hi"))
			var got []string
			for u := range turn.Updates() {
				got = append(got, kind(u))
			}
			res, err := turn.Result()
			if stop := stopped(t, res, err); stop != "EndTurn" {
				t.Errorf("got %s", stop)
			}
			if strings.Join(got, " ") != test.want {
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
	conn := connect(t, handlers(working(func(ctx context.Context, s *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
		if turns++; turns == 1 {
			close(first)
			<-release
			return v2draft.EndTurn(), nil
		}
		close(release)
		return v2draft.Refusal(), nil
	})), v2draft.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *v2draft.ClientSession, n *v2draft.UpdateSessionNotification) error {
			if kind(n.Update) == "idle" {
				ends.Add(1)
			}
			return nil
		},
	}, &v2draft.AgentOptions{Steer: true})
	s := newSession(t, conn)
	one := s.Stream(t.Context(), v2draft.TextBlock("one"))
	<-first
	two := s.Stream(t.Context(), v2draft.TextBlock("two"))
	var got []string
	for u := range one.Updates() {
		got = append(got, kind(u))
	}
	if want := "user running user idle"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	a, err := one.Result()
	stop := stopped(t, a, err)
	b, err := two.Result()
	other := stopped(t, b, err)
	if err := s.Close(t.Context()); err != nil { // its answer comes after all updates
		t.Fatal(err)
	}
	if stop != other || a.MessageID == b.MessageID || ends.Load() != 0 { // the first loop has it
		t.Errorf("got %+v and %+v, and idle %d times", a, b, ends.Load())
	}
}

// Prompts in a session that works are held, and worked off in their order.
func TestHold(t *testing.T) {
	release, begun := make(chan struct{}), make(chan struct{}, 3)
	conn := connect(t, handlers(working(func(context.Context, *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
		begun <- struct{}{}
		<-release
		return v2draft.EndTurn(), nil
	})), v2draft.ClientHandlers{}, nil)
	s := newSession(t, conn)
	turns := []*v2draft.Turn{s.Stream(t.Context(), v2draft.TextBlock("one"))}
	<-begun
	turns = append(turns, s.Stream(t.Context(), v2draft.TextBlock("two")))
	close(release)
	for i, turn := range turns {
		var got []string
		for u := range turn.Updates() {
			got = append(got, kind(u))
		}
		res, err := turn.Result()
		if stop := stopped(t, res, err); stop != "EndTurn" || strings.Join(got, " ") != "user running idle" {
			t.Errorf("turn %d: got %s and %q", i, stop, got)
		}
	}
}

// holding runs two turns of a session: the first works, and the second is held behind it.
func holding(t *testing.T, work v2draft.Work) (s *v2draft.ClientSession, one, two *v2draft.Turn) {
	t.Helper()
	begun, held := make(chan struct{}), make(chan struct{})
	prompts := 0
	prompt := working(func(ctx context.Context, _ *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
		close(begun)
		return work(ctx)
	})
	conn := connect(t, handlers(func(ctx context.Context, session *v2draft.AgentSession, req *v2draft.PromptRequest) (*v2draft.PromptResponse, error) {
		if prompts++; prompts == 2 {
			close(held)
		}
		return prompt(ctx, session, req)
	}), v2draft.ClientHandlers{}, nil)
	s = newSession(t, conn)
	one = s.Stream(t.Context(), v2draft.TextBlock("one"))
	<-begun
	two = s.Stream(t.Context(), v2draft.TextBlock("two"))
	<-held
	return s, one, two
}

// A cancellation is also for the prompts that are held, which then do not become a part of the conversation.
func TestCancelHeld(t *testing.T) {
	s, one, two := holding(t, func(ctx context.Context) (v2draft.IdleStateUpdate, error) {
		<-ctx.Done()
		return v2draft.IdleStateUpdate{}, ctx.Err()
	})
	if err := s.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	res, err := one.Result()
	if stop := stopped(t, res, err); stop != "Cancelled" {
		t.Errorf("got %s", stop)
	}
	if _, err := two.Result(); !errors.Is(err, v2draft.ErrRequestCancelled) {
		t.Errorf("got %v", err)
	}
}

// A prompt that is held is taken back without a word to the work that holds it up.
func TestTakeBack(t *testing.T) {
	release := make(chan struct{})
	_, one, two := holding(t, func(ctx context.Context) (v2draft.IdleStateUpdate, error) {
		<-release
		return v2draft.EndTurn(), ctx.Err()
	})
	two.Cancel()
	if _, err := two.Result(); !errors.Is(err, v2draft.ErrRequestCancelled) {
		t.Errorf("got %v", err)
	}
	close(release)
	res, err := one.Result()
	if stop := stopped(t, res, err); stop != "EndTurn" {
		t.Errorf("got %s", stop)
	}
}

// A prompt that is cancelled before the agent has taken it is answered as cancelled, and did not become a
// part of the conversation.
func TestCancelBeforeInsertion(t *testing.T) {
	begun := make(chan struct{})
	conn := connect(t, handlers(func(ctx context.Context, session *v2draft.AgentSession, req *v2draft.PromptRequest) (*v2draft.PromptResponse, error) {
		close(begun)
		<-ctx.Done()
		return session.StartTurn(ctx, req, func(context.Context) (v2draft.IdleStateUpdate, error) {
			t.Error("the work was done")
			return v2draft.EndTurn(), nil
		})
	}), v2draft.ClientHandlers{}, nil)
	s := newSession(t, conn)
	turn := s.Stream(t.Context(), v2draft.TextBlock("hi"))
	<-begun
	if err := s.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := turn.Result(); !errors.Is(err, v2draft.ErrRequestCancelled) {
		t.Errorf("got %v", err)
	}
}

// A cancelled turn that the agent does not end is given up after a while.
func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan struct{})
		var client *v2draft.ClientConn
		client = connect(t, handlers(working(func(ctx context.Context, s *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
			close(begun)
			<-client.Done()
			return v2draft.EndTurn(), nil
		})), v2draft.ClientHandlers{}, nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("enough")
		turn := newSession(t, client).Stream(ctx, v2draft.TextBlock("hi"))
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
	agent := handlers(working(func(ctx context.Context, s *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
		close(begun)
		<-ctx.Done()
		return v2draft.IdleStateUpdate{}, ctx.Err()
	}))
	var mu sync.Mutex
	var got []string
	conn := connect(t, agent, v2draft.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *v2draft.ClientSession, n *v2draft.UpdateSessionNotification) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, kind(n.Update))
			return nil
		},
	}, nil)
	s := newSession(t, conn)
	result := prompting(t, s)
	<-begun
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	if !slices.Equal(got, []string{"user", "running", "idle"}) {
		t.Errorf("before the answer came %q", got)
	}
	mu.Unlock()
	res, err := result()
	if stop := stopped(t, res, err); stop != "Cancelled" {
		t.Errorf("got %s", stop)
	}
}

// Work of the agent's own accord is reported, and cancelled, like that of a prompt.
func TestRunTurn(t *testing.T) {
	ended := make(chan struct{})
	var once sync.Once
	updates := make(chan string, 10)
	var served *v2draft.AgentSession
	begun := make(chan struct{})
	agent := handlers(working(func(context.Context, *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
		return v2draft.EndTurn(), nil
	}))
	agent.NewSession = func(ctx context.Context, client *v2draft.AgentConn, _ *v2draft.NewSessionRequest) (*v2draft.NewSessionResponse, error) {
		served = client.Session(session)
		v2draft.AfterResponse(ctx, func(ctx context.Context) {
			defer close(ended)
			err := served.RunTurn(ctx, func(ctx context.Context) (v2draft.IdleStateUpdate, error) {
				once.Do(func() { close(begun) })
				<-ctx.Done()
				return v2draft.IdleStateUpdate{}, context.Cause(ctx)
			})
			if err != nil {
				t.Error(err)
			}
		})
		return &v2draft.NewSessionResponse{SessionID: session}, nil
	}
	conn := connect(t, agent, v2draft.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *v2draft.ClientSession, n *v2draft.UpdateSessionNotification) error {
			updates <- kind(n.Update)
			return nil
		},
	}, nil)
	s := newSession(t, conn)
	<-begun
	if err := s.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-ended
	if a, b := <-updates, <-updates; a != "running" || b != "idle" {
		t.Errorf("got %s, %s", a, b)
	}
	res, err := s.Prompt(t.Context(), v2draft.TextBlock("hi"))
	if stop := stopped(t, res, err); stop != "EndTurn" {
		t.Errorf("got %s", stop)
	}
}

// Whoever resumes a session hears its state before the answer.
func TestResume(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	var got []string
	conn := connect(t, handlers(working(func(context.Context, *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
		close(begun)
		<-release
		return v2draft.EndTurn(), nil
	})), v2draft.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *v2draft.ClientSession, n *v2draft.UpdateSessionNotification) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, kind(n.Update))
			return nil
		},
	}, &v2draft.AgentOptions{Background: func(v2draft.SessionID) []v2draft.BackgroundWork { return []v2draft.BackgroundWork{} }})
	resume := func() string {
		if _, err := conn.ResumeSession(t.Context(), &v2draft.ResumeSessionRequest{SessionID: session, Cwd: "/"}); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(got, " ")
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
	res, err := result()
	if stop := stopped(t, res, err); stop != "EndTurn" || !res.Idle.Background.Present() {
		t.Errorf("got %s, with the background %v", stop, res.Idle.Background)
	}
}

// A turn inside the handler of its own session's updates ends, although its updates wait for that handler.
func TestPromptInsideHandler(t *testing.T) {
	result := make(chan error, 1)
	once := true
	conn := connect(t, handlers(working(func(context.Context, *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
		return v2draft.EndTurn(), nil
	})), v2draft.ClientHandlers{
		SessionUpdate: func(ctx context.Context, session *v2draft.ClientSession, n *v2draft.UpdateSessionNotification) error {
			if once && kind(n.Update) == "idle" {
				once = false
				_, err := session.Prompt(ctx, v2draft.TextBlock("again"))
				result <- err
			}
			return nil
		},
	}, nil)
	if _, err := newSession(t, conn).Prompt(t.Context(), v2draft.TextBlock("hi")); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
}

// A turn whose connection ends fails, and says why.
func TestConnectionEnds(t *testing.T) {
	begun := make(chan struct{})
	near, far := v2draft.Pipe()
	served, err := v2draft.StartAgent(t.Context(), tapAgent(t, far, false), handlers(working(func(ctx context.Context, s *v2draft.AgentSession) (v2draft.IdleStateUpdate, error) {
		close(begun)
		<-ctx.Done()
		return v2draft.IdleStateUpdate{}, ctx.Err()
	})), &v2draft.AgentOptions{Info: info})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := v2draft.Connect(t.Context(), tapClient(t, near), v2draft.ClientHandlers{}, &v2draft.ClientOptions{Info: info})
	if err != nil {
		t.Fatal(err)
	}
	turn := newSession(t, conn).Stream(t.Context(), v2draft.TextBlock("hi"))
	<-begun
	if err := served.Close(); err != nil {
		t.Error(err)
	}
	res, err := turn.Result()
	if err == nil { // what the agent still sends may arrive
		if stop := stopped(t, res, err); stop != "Error" {
			t.Errorf("got %s", stop)
		}
	} else if !errors.Is(err, v2draft.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// prompting prompts in the background, so that updates go to the client's handler. The function that it returns waits
// for the end.
func prompting(t *testing.T, s *v2draft.ClientSession) (result func() (*v2draft.TurnResult, error)) {
	type ended struct {
		res *v2draft.TurnResult
		err error
	}
	done := make(chan ended, 1)
	go func() {
		res, err := s.Prompt(t.Context(), v2draft.TextBlock("hi"))
		done <- ended{res, err}
	}()
	return func() (*v2draft.TurnResult, error) {
		e := <-done
		return e.res, e.err
	}
}
