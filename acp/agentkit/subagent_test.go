package agentkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

type helper = agentkit.Subagent[struct{}]

// family is a client that shows subagents.
type family struct {
	*acp.ClientConn

	mu    sync.Mutex
	told  []string
	child acp.SessionID
	begun chan acp.SessionID // gets the id of a subagent that has said something
}

// see notes what the agent sends, in the order of the wire.
func (f *family) see(m conformance.Message) {
	var msg struct {
		Method string
		Params struct {
			SessionID acp.SessionID
			ToolCall  acp.ToolCallUpdate
			Message   string
			Update    json.RawMessage
		}
	}
	if err := json.Unmarshal(m.Line, &msg); err != nil {
		panic(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var text string
	switch msg.Method {
	case acp.MethodRequestPermission:
		text = "asked: " + msg.Params.ToolCall.Title.Value()
	case acp.MethodCreateElicitation:
		text = "asked: " + msg.Params.Message
	case acp.MethodSessionUpdate:
		var update acp.SessionUpdate
		if err := json.Unmarshal(msg.Params.Update, &update); err != nil {
			panic(err)
		}
		text = line(update)
		if u, ok := update.Variant.(*acp.SessionUpdateSubagentUpdate); ok {
			f.child = u.SessionID
			text = strings.Replace(string(msg.Params.Update), fmt.Sprintf(`"sessionUpdate":"subagent_update","sessionId":%q,`, u.SessionID), "", 1)
		}
	default:
		return
	}
	if msg.Params.SessionID == f.child {
		if text = "child " + text; strings.HasPrefix(text, "child agent") {
			f.begun <- f.child
		}
	}
	f.told = append(f.told, text)
}

// lines returns what was told since the last call.
func (f *family) lines() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	told := f.told
	f.told = nil
	return told
}

// raise connects a client to an agent whose turns do what do does.
func raise(t *testing.T, config agentkit.Config[struct{}], shows bool, do func(context.Context, *anyTurn) error) (*family, *acp.ClientSession) {
	t.Helper()
	config.Subagents, config.Logger = true, quiet
	config.Title = func([]acp.ContentBlock) string { return "" }
	config.Prompt = func(ctx context.Context, t *anyTurn, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		return nil, do(ctx, t)
	}
	sessions := agentkit.NewSessions(config)
	near, far := acp.Pipe()
	agent, err := acp.StartAgent(t.Context(), far, sessions.Handlers(), sessions.Options(&acp.AgentOptions{Conn: acp.ConnOptions{Logger: slog.New(slog.DiscardHandler)}}))
	if err != nil {
		t.Fatal(err)
	}
	f := &family{begun: make(chan acp.SessionID, 10)}
	tap := conformance.Tap(t, conformance.Client, near, &conformance.TapOptions{Schema: conformance.V1Unstable(), OnMessage: f.see})
	f.ClientConn, err = acp.Connect(t.Context(), tap, acp.ClientHandlers{
		RequestPermission: func(_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(req.Options[0].OptionID)}, nil
		},
		CreateElicitation: func(context.Context, *acp.ClientConn, *acp.CreateElicitationRequest) (*acp.CreateElicitationResponse, error) {
			res := acp.NewCreateElicitationResponseDecline()
			return &res, nil
		},
	}, &acp.ClientOptions{
		Subagents: shows, Experimental: acp.FeatureSubagents,
		Elicitation: acp.ElicitationCapabilities{
			Form: acp.Some(acp.ElicitationFormCapabilities{}), URL: acp.Some(acp.ElicitationURLCapabilities{}),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(f.Close(), agent.Wait()); err != nil {
			t.Error(err)
		}
		sessions.Close()
	})
	s := must.Get(f.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(t)
	return f, s
}

const (
	announced = `{"title":"Tester","description":"Runs the tests"}`
	works     = `{"capabilities":{"cancel":{}},"state":{"state":"running"}}`
	stopped   = `{"capabilities":null,"state":{"state":"idle","stopReason":"%s"}}`
)

// A subagent is announced, works in its own session, and its end is reported after everything that it has sent. A
// client that loads the session learns that there was one.
func TestSubagent(t *testing.T) {
	config := agentkit.Config[struct{}]{Store: open(t, t.TempDir())}
	f, s := raise(t, config, true, func(ctx context.Context, turn *anyTurn) error {
		err := turn.Subagent(ctx, "Tester", "Runs the tests", func(ctx context.Context, a *helper) error {
			if _, err := agentkit.NewMessage(ctx, a).WriteString("Here I am."); err != nil {
				return err
			}
			call, err := agentkit.StartToolCall(ctx, a, "Test", agentkit.WithToolCallID("c"))
			if err != nil {
				return err
			}
			_, err = call.Ask(ctx)
			return err // the call is left open
		})
		return errors.Join(err, turn.Sayf(ctx, "Back."))
	})
	wantStop(t, s, "go", acp.StopReasonEndTurn)
	wantLines(t, "told", f.lines(), announced, works, "child agent: Here I am.", "child call: c Test pending", "child asked: Test",
		"child call: c in_progress", "child call: c failed", fmt.Sprintf(stopped, "end_turn"), "agent: Back.")
	must.Do(t, s.Close(t.Context()))
	must.Get(f.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}))(t)
	wantLines(t, "replayed", f.lines(), "user: go", announced, fmt.Sprintf(stopped, "end_turn"), "agent: Back.")
}

// The end of a subagent is reported although the data of its error cannot be sent.
func TestSubagentErrorThatCannotBeSent(t *testing.T) {
	f, s := raise(t, agentkit.Config[struct{}]{}, true, func(ctx context.Context, turn *anyTurn) error {
		err := turn.Subagent(ctx, "Tester", "Runs the tests", func(context.Context, *helper) error {
			return &acp.Error{Code: -32000, Message: "no", Data: json.RawMessage("{")}
		})
		if e, ok := errors.AsType[*acp.Error](err); !ok || e.Message != "no" {
			t.Errorf("got %v", err)
		}
		return nil
	})
	wantStop(t, s, "go", acp.StopReasonEndTurn)
	wantLines(t, "told", f.lines(), announced, works,
		`{"capabilities":null,"state":{"state":"idle","stopReason":"error","error":{"code":-32000,"message":"no"}}}`)
}

// Questions of a turn and of a subagent come after the texts before them.
func TestQuestionsAfterTexts(t *testing.T) {
	type asker interface {
		agentkit.Sender
		ElicitForm(context.Context, string, acp.ElicitationSchema) (*acp.CreateElicitationResponse, error)
		ElicitURL(context.Context, string, acp.ElicitationID, string) (*acp.CreateElicitationResponse, error)
	}
	const rounds = 20
	ask := func(ctx context.Context, a asker) error {
		message := agentkit.NewMessage(ctx, a)
		for n := range rounds {
			_, wrote := message.WriteString("Form.")
			_, form := a.ElicitForm(ctx, "form", acp.ElicitationSchema{})
			_, also := message.WriteString("URL.")
			_, url := a.ElicitURL(ctx, "url", acp.ElicitationID(fmt.Sprint(n)), "https://example.com")
			if err := errors.Join(wrote, form, also, url); err != nil {
				return err
			}
		}
		return nil
	}
	f, s := raise(t, agentkit.Config[struct{}]{}, true, func(ctx context.Context, turn *anyTurn) error {
		if err := ask(ctx, turn); err != nil {
			return err
		}
		return turn.Subagent(ctx, "Tester", "Runs the tests", func(ctx context.Context, a *helper) error { return ask(ctx, a) })
	})
	f.begun = make(chan acp.SessionID, 2*rounds)
	wantStop(t, s, "go", acp.StopReasonEndTurn)
	round := []string{"agent: Form.", "asked: form", "agent: URL.", "asked: url"}
	want := slices.Concat(slices.Repeat(round, rounds), []string{announced, works})
	for _, line := range slices.Repeat(round, rounds) {
		want = append(want, "child "+line)
	}
	wantLines(t, "told", f.lines(), append(want, fmt.Sprintf(stopped, "end_turn"))...)
}

// The client cancels a subagent alone, or the turn with its subagent.
func TestSubagentCancelled(t *testing.T) {
	for _, alone := range []bool{true, false} {
		var ended error
		f, s := raise(t, agentkit.Config[struct{}]{}, true, func(ctx context.Context, turn *anyTurn) error {
			ended = turn.Subagent(ctx, "Tester", "Runs the tests", func(ctx context.Context, a *helper) error {
				if err := a.Update(ctx, acp.AgentMessageText("waiting")); err != nil {
					return err
				}
				<-ctx.Done()
				return context.Cause(ctx)
			})
			return turn.Sayf(ctx, "Back.")
		})
		go func() {
			id := <-f.begun
			if !alone {
				id = s.ID()
			}
			if err := f.Session(id).Cancel(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		want := acp.StopReasonEndTurn
		if !alone {
			want = acp.StopReasonCancelled
		}
		wantStop(t, s, "go", want)
		wantLines(t, "told", f.lines(), announced, works, "child agent: waiting", fmt.Sprintf(stopped, "cancelled"), "agent: Back.")
		if errors.Is(ended, acp.ErrTurnCancelled) == alone || errors.Is(ended, agentkit.ErrSubagentCancelled) != alone {
			t.Errorf("alone %v: the subagent ended with %v", alone, ended)
		}
	}
}

// The end of a subagent is reported also when its work was given up for another reason than a cancellation.
func TestSubagentGivenUp(t *testing.T) {
	f, s := raise(t, agentkit.Config[struct{}]{}, true, func(ctx context.Context, turn *anyTurn) error {
		late, cancel := context.WithCancel(ctx)
		err := turn.Subagent(late, "Tester", "Runs the tests", func(context.Context, *helper) error {
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		return nil
	})
	wantStop(t, s, "go", acp.StopReasonEndTurn)
	wantLines(t, "told", f.lines(), announced, works, fmt.Sprintf(stopped, "cancelled"))
}

// A subagent that fails, one that panics, and a client that does not show any.
func TestSubagentFails(t *testing.T) {
	var ended error
	fail := func() error { return acp.Public(errors.New("no tests")) }
	do := func(ctx context.Context, turn *anyTurn) error {
		ended = turn.Subagent(ctx, "Tester", "Runs the tests", func(context.Context, *helper) error { return fail() })
		return nil
	}
	f, s := raise(t, agentkit.Config[struct{}]{}, true, do)
	wantStop(t, s, "go", acp.StopReasonEndTurn)
	const failed = `{"capabilities":null,"state":{"state":"idle","stopReason":"error","error":{"code":-32603,"message":"%s"}}}`
	wantLines(t, "failed", f.lines(), announced, works, fmt.Sprintf(failed, "no tests"))
	if ended == nil || ended.Error() != "no tests" {
		t.Errorf("failed with %v", ended)
	}
	fail = func() error { panic("oh") }
	if _, err := s.Prompt(t.Context(), acp.TextBlock("go")); err == nil {
		t.Error("a panic did not fail the turn")
	}
	wantLines(t, "panicked", f.lines(), announced, works, fmt.Sprintf(failed, "Internal error"))

	f, s = raise(t, agentkit.Config[struct{}]{}, false, do)
	wantStop(t, s, "go", acp.StopReasonEndTurn)
	wantLines(t, "not shown", f.lines())
	if !errors.Is(ended, acp.ErrUnsupported) {
		t.Errorf("got %v, want ErrUnsupported", ended)
	}
}
