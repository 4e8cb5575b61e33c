package agentkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

type steering struct {
	SessionID acp.SessionID      `json:"sessionId"`
	Prompt    []acp.ContentBlock `json:"prompt"`
	Meta      acp.Meta           `json:"_meta,omitempty"`
}

type steered struct{ Outcome, Reason string }

// Messages of the extension go into the running turn and are answered when it takes them; one that it does not take is
// sent back, before the next prompt begins.
func TestSteeringExtension(t *testing.T) {
	take, gate := make(chan struct{}), make(chan struct{})
	play := map[string]func(*scene) error{"one": func(s *scene) error {
		<-s.Queued()
		<-take
		if err := s.Update(s.ctx, acp.AgentMessageText("took "+promptText(s.NextPrompt()))); err != nil {
			return err
		}
		<-gate
		return nil
	}}
	onStage(t, agentkit.Steer, play, func(t *testing.T, x *stage) {
		take, gate = make(chan struct{}), make(chan struct{})
		var optedIn acp.Meta
		must.Do(t, optedIn.Set("steering", map[string]string{"idleBehavior": "promptRequired"}))
		message := func(text string, meta acp.Meta) steering {
			return steering{x.session.ID(), []acp.ContentBlock{acp.TextBlock(text)}, meta}
		}
		steer := func(text string) <-chan steered {
			answer := make(chan steered, 1)
			go func() {
				res, err := rpc.Call[steered](t.Context(), x.RPC(), "_session/steering", message(text, optedIn))
				if err != nil {
					t.Error(err)
					res = &steered{}
				}
				answer <- *res
			}()
			return answer
		}
		want := func(what string, answer <-chan steered, want steered) {
			t.Helper()
			if got := <-answer; got != want {
				t.Errorf("%s: got %+v, want %+v", what, got, want)
			}
		}
		late := steered{"promptRequired", "noRunningTurn"}
		var supported struct{ Supported bool }
		if ok, err := x.Initialized().Meta.Get("steering", &supported); !ok || err != nil || !supported.Supported {
			t.Errorf("advertised %v, %v, %v", ok, err, supported)
		}
		want("without a turn", steer("zero"), late)
		_, err := rpc.Call[steered](t.Context(), x.RPC(), "_session/steering", message("zero", nil))
		wantError(t, "without a turn, and not opted in", err, acp.ErrInvalidRequest)
		one := x.ask(t.Context(), "one")
		synctest.Wait()
		taken := steer("now")
		synctest.Wait()
		if len(taken) != 0 {
			t.Error("answered before it was taken")
		}
		close(take)
		want("taken", taken, steered{"injected", ""})
		left := steer("left")
		synctest.Wait()
		two := x.ask(t.Context(), "two")
		synctest.Wait()
		close(gate)
		want("left", left, late)
		(<-one).check(t, "one", acp.StopReasonMaxTokens)
		(<-two).check(t, "two", acp.StopReasonMaxTokens)
		synctest.Wait()
		wantLines(t, "what passed", x.seen(), "begin one", "took now", "end one", "answer max_tokens", "begin two", "end two", "answer max_tokens")
		_, err = rpc.Call[steered](t.Context(), x.RPC(), "_session/steering", steering{SessionID: "nobody"})
		wantError(t, "an unknown session", err, acp.ErrResourceNotFound)
	})
}

// An author adds extensions with and without Steer.
func TestExtensions(t *testing.T) {
	prompt := func(context.Context, *anyTurn, *acp.PromptRequest) (*acp.PromptResponse, error) { return nil, nil }
	for _, busy := range []agentkit.WhileBusy{agentkit.Refuse, agentkit.Steer} {
		sessions := agentkit.NewSessions(agentkit.Config[struct{}]{Prompt: prompt, WhileBusy: busy})
		handlers := sessions.Handlers()
		rpc.Handle(handlers.Extensions, "_own", func(context.Context, *acp.AgentConn, *struct{}) (*struct{}, error) { return &struct{}{}, nil })
		near, far := acp.Pipe()
		agent := must.Get(acp.StartAgent(t.Context(), far, handlers, sessions.Options(nil)))(t)
		c := must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, near, nil), acp.ClientHandlers{}, nil))(t)
		if _, err := rpc.Call[struct{}](t.Context(), c.RPC(), "_own", struct{}{}); err != nil {
			t.Error(err)
		}
		if err := errors.Join(c.Close(), agent.Wait()); err != nil {
			t.Error(err)
		}
		sessions.Close()
	}
}

// Messages that a client sends right after the prompt, without waiting for answers, reach the turn in their order and
// are answered in it, whether the turn takes them or not.
func TestSteeringOrder(t *testing.T) {
	const messages = 16 // as many as may wait
	for _, takes := range []int{messages, messages / 2, 0} {
		t.Run(fmt.Sprintf("%d taken", takes), func(t *testing.T) {
			for range tier.Pick(10, 15, 30, 50) {
				steerAtOnce(t, messages, takes)
			}
		})
	}
}

func steerAtOnce(t *testing.T, messages, takes int) {
	t.Helper()
	var took []string
	sessions := agentkit.NewSessions(agentkit.Config[struct{}]{
		WhileBusy: agentkit.Steer,
		Prompt: func(ctx context.Context, turn *anyTurn, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			for len(took) < takes {
				select {
				case <-turn.Queued():
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
				for len(took) < takes {
					req := turn.NextPrompt()
					if req == nil {
						break
					}
					took = append(took, promptText(req))
				}
			}
			return nil, nil
		},
	})
	defer sessions.Close()
	near, far := acp.Pipe()
	agent := must.Get(acp.StartAgent(t.Context(), far, sessions.Handlers(), sessions.Options(nil)))(t)
	stream := must.Get(conformance.Tap(t, conformance.Client, near, nil).Connect(t.Context()))(t)
	next := func() (m struct {
		ID     *int
		Result struct{ SessionID string }
	}) {
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
	send := func(lines ...string) {
		t.Helper()
		for _, line := range lines {
			must.Do(t, stream.Write([]byte(line)))
		}
	}
	send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	next()
	send(`{"jsonrpc":"2.0","id":0,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`)
	session := next().Result.SessionID
	message := `{"jsonrpc":"2.0","id":%d,"method":"%s","params":{"sessionId":"` + session + `","prompt":[{"type":"text","text":"%[1]d"}]}}`
	lines := []string{fmt.Sprintf(message, 0, "session/prompt")}
	var want, answered []int
	var texts []string
	for n := range messages {
		lines = append(lines, fmt.Sprintf(message, n+1, "_session/steering"))
		want, texts = append(want, n+1), append(texts, fmt.Sprint(n+1))
	}
	send(lines...)
	for len(answered) < len(lines) {
		if m := next(); m.ID != nil {
			answered = append(answered, *m.ID)
		}
	}
	answered = slices.DeleteFunc(answered, func(id int) bool { return id == 0 }) // the prompt
	if !slices.Equal(took, texts[:takes]) {
		t.Errorf("took %q", took)
	}
	if !slices.Equal(answered, want) {
		t.Errorf("answered %v", answered)
	}
	if err := errors.Join(stream.Close(), agent.Wait()); err != nil {
		t.Error(err)
	}
}
