package agentkit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/acpv2/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
)

// steerable is an agent whose turns note the prompts that they begin with, and those that they take.
type steerable struct {
	begun chan string
	end   chan struct{} // a value ends a turn
	ends  acpv2.IdleStateUpdate
}

func (a *steerable) connect(t *testing.T) (*client, *acpv2.ClientSession) {
	t.Helper()
	config := agentkit.Config[state]{Store: open(t, t.TempDir(), nil), WhileBusy: agentkit.Steer, MaxWaiting: 1, Prompt: a.prompt}
	c, _ := connect(t, config, acpv2.AgentOptions{})
	return c, c.create(t, "/w")
}

func (a *steerable) prompt(ctx context.Context, s *session, req *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
	text, _ := req.Prompt[0].Text()
	a.begun <- "begin " + text
	for {
		select {
		case <-s.Waiting():
			if req := s.Take(); req != nil {
				text, _ := req.Prompt[0].Text()
				a.begun <- "take " + text
			}
		case <-a.end:
			return a.ends, nil
		case <-ctx.Done():
			return acpv2.IdleStateUpdate{}, context.Cause(ctx)
		}
	}
}

func (a *steerable) wants(t *testing.T, want string) {
	t.Helper()
	if got := <-a.begun; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

type result struct {
	reason string
	err    error
}

func say(t *testing.T, s *acpv2.ClientSession, text string) <-chan result {
	done := make(chan result, 1)
	go func() {
		res, err := s.Prompt(t.Context(), acpv2.TextBlock(text))
		if err != nil {
			done <- result{"", err}
			return
		}
		done <- result{res.Idle.StopReason(), nil}
	}()
	return done
}

// A turn takes the prompts that come while it runs. They end with it, and are part of the conversation.
func TestSteer(t *testing.T) {
	a := &steerable{make(chan string, 10), make(chan struct{}), acpv2.Refusal()}
	c, s := a.connect(t)
	one := say(t, s, "one")
	a.wants(t, "begin one")
	two := say(t, s, "two")
	a.wants(t, "take two")
	three := say(t, s, "three")
	a.wants(t, "take three")
	a.end <- struct{}{}
	for what, done := range map[string]<-chan result{"one": one, "two": two, "three": three} {
		if res := <-done; res != (result{"refusal", nil}) {
			t.Errorf("%s ended with %+v", what, res)
		}
	}
	five := say(t, s, "five")
	a.wants(t, "begin five")
	a.end <- struct{}{}
	if res := <-five; res.err != nil {
		t.Error(res.err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.heard()
	if _, err := c.resume(t, s.ID()); err != nil {
		t.Fatal(err)
	}
	updates, _ := c.heard()
	var said []string
	for _, u := range updates {
		if m, ok := u.Variant.(*acpv2.SessionUpdateUserMessage); ok {
			said = append(said, blocks(m.Content.Value()))
		}
	}
	if want := []string{"one", "two", "three", "five"}; !slices.Equal(said, want) {
		t.Errorf("replayed %q, want %q", said, want)
	}
}

// A cancellation ends the turn and the prompts that it has taken.
func TestSteerCancelled(t *testing.T) {
	a := &steerable{make(chan string, 10), make(chan struct{}), acpv2.EndTurn()}
	_, s := a.connect(t)
	one := say(t, s, "one")
	a.wants(t, "begin one")
	two := say(t, s, "two")
	a.wants(t, "take two")
	if err := s.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, done := range []<-chan result{one, two} {
		if res := <-done; res.reason != "cancelled" && !errors.Is(res.err, context.Canceled) && !errors.Is(res.err, acpv2.ErrTurnCancelled) {
			t.Errorf("ended with %+v", res)
		}
	}
	three := say(t, s, "three")
	a.wants(t, "begin three")
	a.end <- struct{}{}
	if res := <-three; res != (result{"end_turn", nil}) {
		t.Errorf("the next turn ended with %+v", res)
	}
}

// MaxWaiting limits the prompts that wait for a turn which takes none.
func TestSteerMaxWaiting(t *testing.T) {
	begun, end := make(chan string, 3), make(chan struct{})
	config := agentkit.Config[state]{Store: open(t, t.TempDir(), nil), WhileBusy: agentkit.Steer, MaxWaiting: 1}
	config.Prompt = func(_ context.Context, s *session, req *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
		text, _ := req.Prompt[0].Text()
		begun <- text
		if text == "one" {
			<-s.Waiting()
			begun <- "waiting"
		}
		<-end
		return acpv2.EndTurn(), nil
	}
	c, _ := connect(t, config, acpv2.AgentOptions{})
	s := c.create(t, "/w")
	one := say(t, s, "one")
	<-begun
	two := say(t, s, "two")
	<-begun
	if res := <-say(t, s, "three"); !errors.Is(res.err, acpv2.ErrInvalidRequest) {
		t.Errorf("a second prompt that would wait: %+v", res)
	}
	close(end)
	for _, done := range []<-chan result{one, two} {
		if res := <-done; res.err != nil {
			t.Error(res.err)
		}
	}
}

// Questions come after the texts before them.
func TestQuestionsAfterTexts(t *testing.T) {
	const rounds = 20
	var mu sync.Mutex
	var sent []string
	opts := acpv2.AgentOptions{Conn: acpv2.ConnOptions{Hooks: rpc.Hooks{Message: func(out bool, message []byte) {
		mu.Lock()
		defer mu.Unlock()
		for _, text := range []string{"Form.", "URL.", `"form"`, `"url"`} {
			if out && bytes.Contains(message, []byte(text)) {
				sent = append(sent, text)
				return
			}
		}
	}}}}
	config := agentkit.Config[state]{Store: open(t, t.TempDir(), nil)}
	config.Prompt = func(ctx context.Context, s *session, _ *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
		message := s.NewMessage(ctx)
		for n := range rounds {
			_, wrote := message.WriteString("Form.")
			_, form := s.ElicitForm(ctx, "?", acpv2.ElicitationSchema{Type: acpv2.ElicitationSchemaTypeObject})
			_, also := message.WriteString("URL.")
			_, url := s.ElicitURL(ctx, "?", acpv2.ElicitationID(fmt.Sprint(n)), "https://example.com")
			if err := errors.Join(wrote, form, also, url); err != nil {
				return acpv2.IdleStateUpdate{}, err
			}
		}
		return acpv2.EndTurn(), nil
	}
	c, _ := connect(t, config, opts)
	prompt(t, c.create(t, "/w"), "go")
	mu.Lock()
	defer mu.Unlock()
	if want := slices.Repeat([]string{"Form.", `"form"`, "URL.", `"url"`}, rounds); !slices.Equal(sent, want) {
		t.Errorf("sent %q", sent)
	}
}

// A prompt that the turn has not taken is the next one.
func TestSteerNotTaken(t *testing.T) {
	begun, end := make(chan string, 2), make(chan struct{})
	config := agentkit.Config[state]{Store: open(t, t.TempDir(), nil), WhileBusy: agentkit.Steer}
	config.Prompt = func(_ context.Context, s *session, req *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
		text, _ := req.Prompt[0].Text()
		begun <- text
		if text == "one" {
			<-s.Waiting()
		}
		<-end
		return acpv2.EndTurn(), nil
	}
	c, _ := connect(t, config, acpv2.AgentOptions{})
	s := c.create(t, "/w")
	one := say(t, s, "one")
	first := <-begun
	two := say(t, s, "two")
	end <- struct{}{}
	second := <-begun
	end <- struct{}{}
	if first != "one" || second != "two" {
		t.Errorf("began with %q and %q", first, second)
	}
	for _, done := range []<-chan result{one, two} {
		if res := <-done; res.err != nil {
			t.Error(res.err)
		}
	}
}

// panicking is a store that panics once.
type panicking struct {
	agentkit.Store
	armed atomic.Bool
}

func (s *panicking) Append(ctx context.Context, id acp.SessionID, updates ...acpv2.SessionUpdate) error {
	if s.armed.CompareAndSwap(true, false) {
		panic("a mistake of the store")
	}
	return s.Store.Append(ctx, id, updates...)
}

// A prompt that is lost on the way to its turn does not keep the session busy.
func TestSteerLost(t *testing.T) {
	store := &panicking{Store: open(t, t.TempDir(), nil)}
	var refuse atomic.Bool
	opts := acpv2.AgentOptions{Conn: acpv2.ConnOptions{
		Logger: slog.New(slog.DiscardHandler),
		Hooks: rpc.Hooks{Serve: func(ctx context.Context, call *rpc.CallInfo, next func(context.Context) error) error {
			err := next(ctx)
			if call.Method == acpv2.MethodPrompt && refuse.CompareAndSwap(true, false) {
				return errors.New("refused")
			}
			return err
		}},
	}}
	config := agentkit.Config[state]{
		Store: store, WhileBusy: agentkit.Steer, Logger: slog.New(slog.DiscardHandler),
		Prompt: func(context.Context, *session, *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
			return acpv2.EndTurn(), nil
		},
	}
	c, _ := connect(t, config, opts)
	s := c.create(t, "/w")
	for what, arm := range map[string]*atomic.Bool{"the store panics": &store.armed, "middleware refuses": &refuse} {
		arm.Store(true)
		if res := <-say(t, s, "lost"); res.err == nil {
			t.Errorf("%s: the prompt ended with %+v", what, res)
		}
		prompt(t, s, what)
	}
}

// Prompts that a client sends without waiting for answers are taken, answered, shown and stored in their order.
func TestSteerOrder(t *testing.T) {
	const prompts = 16
	var want []string
	for n := range prompts {
		want = append(want, fmt.Sprint(n+1))
	}
	for range 20 {
		var took []string
		store := open(t, t.TempDir(), nil)
		config := agentkit.Config[state]{Store: store, WhileBusy: agentkit.Steer}
		config.Prompt = func(ctx context.Context, s *session, req *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
			for {
				text, _ := req.Prompt[0].Text()
				if took = append(took, text); len(took) == prompts {
					return acpv2.EndTurn(), nil
				}
				for req = s.Take(); req == nil; req = s.Take() {
					select {
					case <-s.Waiting():
					case <-ctx.Done():
						return acpv2.IdleStateUpdate{}, context.Cause(ctx)
					}
				}
			}
		}
		sessions := agentkit.NewSessions(config)
		near, far := acpv2.Pipe()
		agent, err := acpv2.StartAgent(t.Context(), far, sessions.Handlers(), sessions.Options(&acpv2.AgentOptions{Info: acpv2.Implementation{Name: "agent", Version: "1"}}))
		if err != nil {
			t.Fatal(err)
		}
		stream, err := conformance.Tap(t, conformance.Client, near, &conformance.TapOptions{Schema: conformance.V2()}).Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		type message struct {
			ID     json.RawMessage
			Result struct{ SessionID string }
			Params struct {
				Update struct {
					SessionUpdate string
					Content       []struct{ Text string }
				}
			}
		}
		next := func() (m message) {
			t.Helper()
			line, err := stream.Read()
			if err == nil {
				err = json.Unmarshal(line, &m)
			}
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		send := func(line string) {
			t.Helper()
			if err := stream.Write([]byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"test","version":"1"},"capabilities":{}}}`)
		next()
		send(`{"jsonrpc":"2.0","id":0,"method":"session/new","params":{"cwd":"/w"}}`)
		id := next().Result.SessionID
		for _, n := range want {
			send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"%[1]s"}]}}`, n, id))
		}
		var answered, shown []string
		for len(answered) < prompts || len(shown) < prompts {
			if m := next(); m.ID != nil {
				answered = append(answered, string(m.ID))
			} else if m.Params.Update.SessionUpdate == "user_message" {
				shown = append(shown, m.Params.Update.Content[0].Text)
			}
		}
		if err := errors.Join(stream.Close(), agent.Wait()); err != nil {
			t.Error(err)
		}
		sessions.Close()
		if !slices.Equal(took, want) || !slices.Equal(answered, want) || !slices.Equal(shown, want) {
			t.Fatalf("took %q\nanswered %q\nshown %q", took, answered, shown)
		}
	}
}
