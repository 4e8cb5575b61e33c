package agentkit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// stage is an agent whose turns continue when the test says so.
type stage struct {
	*agentkit.Sessions[struct{}]
	*client
	session *acp.ClientSession
	begun   chan string                   // the text of each prompt whose turn has begun
	play    map[string]func(*scene) error // what turns do, by the text of their prompts; others end at once

	mu     sync.Mutex
	events []string // what passes the client, in order
	sent   []string // the texts of prompts, in the order in which they passed
	failed []string // the codes of errors
	wg     sync.WaitGroup
}

type scene struct {
	*agentkit.Turn[struct{}]
	ctx context.Context
}

// onStage runs a test in a bubble, in which synctest.Wait waits until nothing more happens.
func onStage(t *testing.T, busy agentkit.WhileBusy, play map[string]func(*scene) error, test func(*testing.T, *stage)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store := open(t, dir)
		x := &stage{begun: make(chan string, 300), play: play}
		x.Sessions = agentkit.NewSessions(agentkit.Config[struct{}]{
			Store: store, WhileBusy: busy, MaxWaiting: 200, Title: func([]acp.ContentBlock) string { return "" },
			Prompt: func(ctx context.Context, turn *agentkit.Turn[struct{}], req *acp.PromptRequest) (*acp.PromptResponse, error) {
				text := promptText(req)
				x.begun <- text
				if err := turn.Update(ctx, acp.AgentMessageText("begin "+text)); err != nil {
					return nil, err
				}
				res := &acp.PromptResponse{StopReason: acp.StopReasonMaxTokens}
				if play := x.play[text]; play != nil {
					if err := play(&scene{turn, ctx}); err != nil {
						return nil, err
					}
				}
				return res, turn.Update(ctx, acp.AgentMessageText("end "+text))
			},
		})
		tap := &conformance.TapOptions{
			OnMessage: x.see,
			Accept: map[string]string{
				"PRM-15": "prompts that come while one runs are what is tested",
			},
		}
		x.client = connect(t, x.Sessions, &acp.AgentOptions{Conn: acp.ConnOptions{Hooks: acp.Hooks{Serve: slow}}}, tap)
		session := must.Get(x.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(t)
		x.session = session
		test(t, x)
		x.wg.Wait()
	})
}

// slow is middleware that holds the answers to prompts back a while.
func slow(ctx context.Context, call *acp.CallInfo, next func(context.Context) error) error {
	err := next(ctx)
	if call.Method == acp.MethodPrompt {
		time.Sleep(time.Second) // of the bubble
	}
	return err
}

// see notes what passes the client: updates, and answers to prompts.
func (x *stage) see(m conformance.Message) {
	text := string(m.Line)
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, chunk, ok := strings.Cut(text, `"type":"text","text":"`); ok && strings.Contains(text, "agent_message_chunk") {
		word, _, _ := strings.Cut(chunk, `"`)
		x.events = append(x.events, word)
	}
	if _, chunk, ok := strings.Cut(text, `"type":"text","text":"`); ok && strings.Contains(text, acp.MethodPrompt) {
		word, _, _ := strings.Cut(chunk, `"`)
		x.sent = append(x.sent, word)
	}
	if _, code, ok := strings.Cut(text, `"error":{"code":`); ok {
		word, _, _ := strings.Cut(code, ",")
		x.failed = append(x.failed, word)
	}
	if _, reason, ok := strings.Cut(text, `"stopReason":"`); ok {
		word, _, _ := strings.Cut(reason, `"`)
		x.events = append(x.events, "answer "+word)
	}
}

func (x *stage) seen() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.events)
}

func (x *stage) prompts() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.sent)
}

func (x *stage) codes() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.failed)
}

// answer is that of a prompt which was sent.
type answer struct {
	res *acp.PromptResponse
	err error
}

// ask sends a prompt as a plain request, whose context ends it by $/cancel_request.
func (x *stage) ask(ctx context.Context, text string) <-chan answer {
	answers := make(chan answer, 1)
	req := &acp.PromptRequest{SessionID: x.session.ID(), Prompt: []acp.ContentBlock{acp.TextBlock(text)}}
	m := rpc.RequestMethod[acp.PromptRequest, acp.PromptResponse]{Name: acp.MethodPrompt}
	x.wg.Go(func() {
		res, err := m.Call(ctx, x.RPC(), req)
		answers <- answer{res, err}
	})
	synctest.Wait() // it is on its way, behind those before
	return answers
}

func (a answer) check(t *testing.T, what string, reason acp.StopReason) {
	t.Helper()
	if a.err != nil || a.res.StopReason != reason {
		t.Errorf("%s: got %v, %v, want %s", what, a.res, a.err, reason)
	}
}

// hold is a turn that waits for the test, or for its end.
func hold(release chan struct{}) func(*scene) error {
	return func(s *scene) error {
		select {
		case <-release:
			return nil
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
}

func TestRefuse(t *testing.T) {
	var gate chan struct{}
	play := map[string]func(*scene) error{"one": func(s *scene) error { return hold(gate)(s) }}
	onStage(t, agentkit.Refuse, play, func(t *testing.T, x *stage) {
		gate = make(chan struct{})
		one := x.ask(t.Context(), "one")
		if two := <-x.ask(t.Context(), "two"); !errors.Is(two.err, acp.ErrInvalidRequest) || !strings.Contains(two.err.Error(), "busy") {
			t.Errorf("the second prompt: %v", two.err)
		}
		close(gate)
		(<-one).check(t, "the first prompt", acp.StopReasonMaxTokens)
		(<-x.ask(t.Context(), "three")).check(t, "the third prompt", acp.StopReasonMaxTokens)
	})
}

// Prompts that wait become turns in the order in which they came, each after the answer to the one before.
func TestQueue(t *testing.T) {
	tier.Need(t, tier.Normal)
	const n = 100
	var gate chan struct{}
	play := map[string]func(*scene) error{"0": func(s *scene) error { return hold(gate)(s) }}
	onStage(t, agentkit.Queue, play, func(t *testing.T, x *stage) {
		gate = make(chan struct{})
		var answers []<-chan answer
		var want []string
		for i := range n {
			answers = append(answers, x.ask(t.Context(), fmt.Sprint(i)))
			want = append(want, fmt.Sprint("begin ", i), fmt.Sprint("end ", i), "answer max_tokens")
		}
		if got := len(x.begun); got != 1 {
			t.Errorf("%d turns have begun", got)
		}
		close(gate)
		for i, answer := range answers {
			(<-answer).check(t, fmt.Sprint("prompt ", i), acp.StopReasonMaxTokens)
		}
		synctest.Wait()
		wantLines(t, "what passed", x.seen(), want...)
	})
}

// The order is that of the messages, also when they come at once and their handlers race.
func TestQueueOrderAtOnce(t *testing.T) {
	tier.Need(t, tier.Normal)
	const n = 150
	onStage(t, agentkit.Queue, nil, func(t *testing.T, x *stage) {
		var answers []*acp.Turn
		for i := range n {
			answers = append(answers, x.session.Stream(t.Context(), acp.TextBlock(fmt.Sprint(i))))
			answers[i].Discard()
		}
		var sent []string
		for i := range n {
			if res, err := answers[i].Result(); err != nil || res.StopReason != acp.StopReasonMaxTokens {
				t.Fatal(res, err)
			}
		}
		for range n {
			sent = append(sent, <-x.begun)
		}
		synctest.Wait()
		var arrived []string
		for _, event := range x.seen() {
			if text, ok := strings.CutPrefix(event, "begin "); ok {
				arrived = append(arrived, text)
			}
		}
		wantLines(t, "turns began", sent, arrived...)
		wantLines(t, "prompts were sent", x.prompts(), sent...)
	})
}

func TestQueueIsBounded(t *testing.T) {
	tier.Need(t, tier.Normal)
	var gate chan struct{}
	play := map[string]func(*scene) error{"0": func(s *scene) error { return hold(gate)(s) }}
	onStage(t, agentkit.Queue, play, func(t *testing.T, x *stage) {
		gate = make(chan struct{})
		var answers []<-chan answer
		for i := range 201 {
			answers = append(answers, x.ask(t.Context(), fmt.Sprint(i)))
		}
		if last := <-x.ask(t.Context(), "one too many"); !errors.Is(last.err, acp.ErrInvalidRequest) || !strings.Contains(last.err.Error(), "200 prompts are waiting") {
			t.Errorf("one too many: %v", last.err)
		}
		close(gate)
		for i, answer := range answers {
			(<-answer).check(t, fmt.Sprint("prompt ", i), acp.StopReasonMaxTokens)
		}
	})
}

// session/cancel is about the turn that runs and those that wait, none of which begins; the next prompt is not
// cancelled.
func TestCancelWhileWaiting(t *testing.T) {
	for _, busy := range []agentkit.WhileBusy{agentkit.Queue, agentkit.Steer} {
		var gate chan struct{}
		play := map[string]func(*scene) error{"one": func(s *scene) error {
			<-s.ctx.Done()
			<-gate
			return s.Update(s.ctx, acp.AgentMessageText("last words"))
		}}
		onStage(t, busy, play, func(t *testing.T, x *stage) {
			gate = make(chan struct{})
			one := x.ask(t.Context(), "one")
			waiting := []<-chan answer{x.ask(t.Context(), "two"), x.ask(t.Context(), "three")}
			must.Do(t, x.session.Cancel(t.Context()))
			for _, answer := range waiting {
				(<-answer).check(t, "a prompt that waits", acp.StopReasonCancelled)
			}
			next := x.ask(t.Context(), "next")
			close(gate)
			(<-one).check(t, "the prompt that runs", acp.StopReasonCancelled)
			(<-next).check(t, "the next prompt", acp.StopReasonMaxTokens)
			close(x.begun)
			var begun []string
			for text := range x.begun {
				begun = append(begun, text)
			}
			wantLines(t, "turns began", begun, "one", "next")
		})
	}
}

// $/cancel_request takes one prompt out of the line.
func TestOnePromptIsTakenBack(t *testing.T) {
	for _, busy := range []agentkit.WhileBusy{agentkit.Queue, agentkit.Steer} {
		var gate chan struct{}
		play := map[string]func(*scene) error{"one": func(s *scene) error { return hold(gate)(s) }}
		onStage(t, busy, play, func(t *testing.T, x *stage) {
			gate = make(chan struct{})
			one := x.ask(t.Context(), "one")
			ctx, cancel := context.WithCancel(t.Context())
			two, three := x.ask(ctx, "two"), x.ask(t.Context(), "three")
			cancel()
			if got := <-two; !errors.Is(got.err, context.Canceled) {
				t.Errorf("the prompt that was taken back: %v", got.err)
			}
			synctest.Wait()
			close(gate)
			(<-one).check(t, "the prompt that runs", acp.StopReasonMaxTokens)
			(<-three).check(t, "the prompt behind it", acp.StopReasonMaxTokens)
			close(x.begun)
			var begun []string
			for text := range x.begun {
				begun = append(begun, text)
			}
			wantLines(t, "turns began", begun, "one", "three")
			synctest.Wait()
			if codes := x.codes(); !slices.Equal(codes, []string{"-32800"}) {
				t.Errorf("the agent answered with the errors %v", codes)
			}
		})
	}
}

// A turn takes the prompts that come meanwhile, in order; they are answered with it. One that it did not take becomes
// the next turn.
func TestSteer(t *testing.T) {
	var gate chan struct{}
	play := map[string]func(*scene) error{"one": func(s *scene) error {
		for range 2 {
			for {
				<-s.Queued()
				if req := s.NextPrompt(); req != nil {
					if err := s.Update(s.ctx, acp.AgentMessageText("took "+promptText(req))); err != nil {
						return err
					}
					break
				}
			}
		}
		<-gate
		return nil
	}}
	onStage(t, agentkit.Steer, play, func(t *testing.T, x *stage) {
		gate = make(chan struct{})
		one, two, three, four := x.ask(t.Context(), "one"), x.ask(t.Context(), "two"), x.ask(t.Context(), "three"), x.ask(t.Context(), "four")
		synctest.Wait()
		if len(two)+len(three)+len(four) != 0 {
			t.Error("a prompt was answered while the turn runs")
		}
		close(gate)
		for what, answer := range map[string]<-chan answer{"one": one, "two": two, "three": three, "four": four} {
			(<-answer).check(t, what, acp.StopReasonMaxTokens)
		}
		synctest.Wait()
		wantLines(t, "what passed", x.seen(), "begin one", "took two", "took three", "end one",
			"answer max_tokens", "answer max_tokens", "answer max_tokens", "begin four", "end four", "answer max_tokens")
		must.Do(t, x.session.Close(t.Context()))
		must.Get(x.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: x.session.ID(), Cwd: "/w"}))(t)
		heard := x.heard()
		wantLines(t, "replayed", heard[len(heard)-8:], "user: one", "agent: begin one", "user: two", "agent: took two", "user: three", "agent: took threeend one",
			"user: four", "agent: begin fourend four")
	})
}

// A turn that fails fails the prompts that it has taken, and none of those that it has not.
func TestSteerIntoFailure(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return acp.Public(errors.New("the model is gone")) },
		"panic": func() error { panic("in a test") },
	} {
		t.Run(name, func(t *testing.T) {
			play := map[string]func(*scene) error{"one": func(s *scene) error {
				<-s.Queued()
				if s.NextPrompt() == nil {
					return errors.New("nothing to take")
				}
				<-s.Queued()
				return fail()
			}}
			onStage(t, agentkit.Steer, play, func(t *testing.T, x *stage) {
				one, two, three := x.ask(t.Context(), "one"), x.ask(t.Context(), "two"), x.ask(t.Context(), "three")
				for what, answer := range map[string]<-chan answer{"one": one, "two": two} {
					if got := <-answer; !errors.Is(got.err, rpc.ErrInternal) {
						t.Errorf("%s: %v, %v", what, got.res, got.err)
					}
				}
				(<-three).check(t, "three", acp.StopReasonMaxTokens)
			})
		})
	}
}

// A turn that was cancelled still takes nothing, and what it has taken is answered as cancelled behind its updates.
func TestCancelAfterTake(t *testing.T) {
	play := map[string]func(*scene) error{"one": func(s *scene) error {
		<-s.Queued()
		if s.NextPrompt() == nil {
			return errors.New("nothing to take")
		}
		<-s.ctx.Done()
		time.Sleep(time.Second) // of the bubble: the answer to the second prompt must wait for this
		if s.NextPrompt() != nil {
			return errors.New("took a prompt that was cancelled")
		}
		return errors.Join(s.Update(s.ctx, acp.AgentMessageText("last words")), context.Cause(s.ctx))
	}}
	onStage(t, agentkit.Steer, play, func(t *testing.T, x *stage) {
		one, two := x.ask(t.Context(), "one"), x.ask(t.Context(), "two")
		must.Do(t, x.session.Cancel(t.Context()))
		(<-one).check(t, "one", acp.StopReasonCancelled)
		(<-two).check(t, "two", acp.StopReasonCancelled)
		synctest.Wait()
		wantLines(t, "what passed", x.seen(), "begin one", "last words", "answer cancelled", "answer cancelled")
	})
}

// Closing a session cancels what runs and what waits.
func TestCloseWhileWaiting(t *testing.T) {
	play := map[string]func(*scene) error{"one": func(s *scene) error { <-s.ctx.Done(); return context.Cause(s.ctx) }}
	onStage(t, agentkit.Queue, play, func(t *testing.T, x *stage) {
		one, two := x.ask(t.Context(), "one"), x.ask(t.Context(), "two")
		must.Do(t, x.session.Close(t.Context()))
		(<-one).check(t, "one", acp.StopReasonCancelled)
		(<-two).check(t, "two", acp.StopReasonCancelled)
	})
}

// What is given to AtEnd is done before the answer, the last first, also of a turn that was cancelled.
func TestAtEnd(t *testing.T) {
	play := map[string]func(*scene) error{"one": func(s *scene) error {
		for i := range 3 {
			stop := s.AtEnd(func(ctx context.Context) error {
				if ctx.Err() != nil {
					t.Error("the context at the end has ended")
				}
				return s.Update(ctx, acp.AgentMessageText(fmt.Sprint("end ", i)))
			})
			if i == 1 && (!stop() || stop()) {
				t.Error("stop does not say what it has done")
			}
		}
		message := agentkit.NewMessage(s.ctx, s)
		if _, err := message.WriteString("left open"); err != nil {
			return err
		}
		<-s.ctx.Done()
		return context.Cause(s.ctx)
	}}
	onStage(t, agentkit.Queue, play, func(t *testing.T, x *stage) {
		one := x.ask(t.Context(), "one")
		must.Do(t, x.session.Cancel(t.Context()))
		(<-one).check(t, "one", acp.StopReasonCancelled)
		synctest.Wait()
		wantLines(t, "what passed", x.seen(), "begin one", "left open", "end 2", "end 0", "answer cancelled")
	})
}
