package acp_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/transcript"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // passing tests print nothing
	goleak.VerifyTestMain(m)
}

// shop is the agent of the transcripts.
type shop struct {
	session acp.SessionID
	prompt  func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error)
}

func (a *shop) handlers() acp.AgentHandlers {
	return acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: a.session}, nil
		},
		Prompt: func(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			run := a.prompt
			if text := req.Prompt[0].Text(); text == "Are you still there?" {
				run = func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
					return acp.StopReasonEndTurn, s.Update(ctx, acp.AgentMessageText("Yes."))
				}
			}
			reason, err := run(ctx, session)
			if err != nil {
				return nil, err
			}
			return &acp.PromptResponse{StopReason: reason}, nil
		},
	}
}

// say sends updates until one fails.
func say(ctx context.Context, s *acp.AgentSession, updates ...acp.SessionUpdate) error {
	for _, u := range updates {
		if err := s.Update(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

func options(yes, no string) []acp.PermissionOption {
	return []acp.PermissionOption{
		{OptionID: "yes", Name: yes, Kind: acp.PermissionOptionKindAllowOnce},
		{OptionID: "no", Name: no, Kind: acp.PermissionOptionKindRejectOnce},
	}
}

func status(s acp.ToolCallStatus, content ...acp.ToolCallContent) acp.SessionUpdate {
	u := acp.ToolCallUpdate{ToolCallID: "call_1", Status: acp.Some(s)}
	if content != nil {
		u.Content = acp.Some(content)
	}
	return acp.NewSessionUpdateToolCallUpdate(u)
}

var turns = map[string]func(context.Context, *acp.AgentSession) (acp.StopReason, error){
	"turn-allowed": func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
		err := say(ctx, s,
			acp.UpdatePlan(
				acp.PlanEntry{Content: "Reproduce the missing cent", Priority: "high", Status: "in_progress"},
				acp.PlanEntry{Content: "Count in cents instead of in floats", Priority: "medium", Status: "pending"}),
			acp.AgentMessageText("Sums of floats lose cents. I run the test to be sure."),
			acp.NewSessionUpdateToolCall(acp.ToolCall{
				ToolCallID: "call_1", Title: "go test ./...", Kind: acp.ToolKindExecute, Status: acp.ToolCallStatusPending,
			}))
		if err != nil {
			return "", err
		}
		outcome, err := s.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: "call_1"}, options("Run it", "Do not run it")...)
		if err != nil {
			return "", err
		}
		if option, ok := outcome.Selected(); !ok || option != "yes" {
			return "", errors.New("not allowed")
		}
		return acp.StopReasonEndTurn, say(ctx, s,
			status(acp.ToolCallStatusInProgress),
			status(acp.ToolCallStatusCompleted, acp.ToolContent(acp.TextBlock("FAIL: got 29.97, want 29.98"))))
	},
	"turn-rejected": func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
		err := say(ctx, s, acp.NewSessionUpdateToolCall(acp.ToolCall{
			ToolCallID: "call_1", Title: "rm -r invoices/2019", Kind: acp.ToolKindDelete, Status: acp.ToolCallStatusPending,
			Locations: []acp.ToolCallLocation{{Path: "/home/ada/shop/invoices/2019"}},
		}))
		if err != nil {
			return "", err
		}
		outcome, err := s.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: "call_1"}, options("Delete", "Keep")...)
		if err != nil {
			return "", err
		}
		if option, ok := outcome.Selected(); !ok || option != "no" {
			return "", errors.New("not rejected")
		}
		return acp.StopReasonEndTurn, say(ctx, s,
			status(acp.ToolCallStatusFailed), acp.AgentMessageText("I left the invoices alone."))
	},
	"turn-cancelled": func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
		err := say(ctx, s, acp.AgentMessageText("I begin with the cart."), acp.NewSessionUpdateToolCall(acp.ToolCall{
			ToolCallID: "call_1", Title: "Edit cart.go", Kind: acp.ToolKindEdit, Status: acp.ToolCallStatusPending,
		}))
		if err != nil {
			return "", err
		}
		_, err = s.RequestPermission(context.WithoutCancel(ctx), acp.ToolCallUpdate{ToolCallID: "call_1"}, options("Edit", "Do not edit")...)
		if err != nil {
			return "", err
		}
		<-ctx.Done()
		if err := say(ctx, s, status(acp.ToolCallStatusFailed)); err != nil {
			return "", err
		}
		return "", ctx.Err()
	},
	"turn-cancelled-stream": func(ctx context.Context, s *acp.AgentSession) (acp.StopReason, error) {
		for ctx.Err() == nil {
			if err := s.Update(ctx, acp.AgentMessageText("a cent, ")); err != nil {
				return "", err
			}
		}
		return "", context.Cause(ctx)
	},
	"bad-input-agent": nil,
}

func load(t *testing.T, name string) *transcript.Script {
	t.Helper()
	script, err := transcript.Load("../conformance/testdata/" + name + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	return script
}

func TestAgentFollowsTranscripts(t *testing.T) {
	for name, prompt := range turns {
		t.Run(name, func(t *testing.T) {
			tap := &conformance.TapOptions{}
			if name == "bad-input-agent" {
				tap.Ignore = func(f conformance.Finding) bool { return f.Direction == conformance.ToAgent }
			}
			ours, theirs := acp.Pipe()
			a := &shop{session: "sess", prompt: prompt}
			agent, err := acp.StartAgent(t.Context(), conformance.Tap(t, conformance.Agent, ours, tap), a.handlers(), &acp.AgentOptions{Prompt: acp.PromptCapabilities{EmbeddedContext: true}})
			if err != nil {
				t.Fatal(err)
			}
			transcript.Run(t, load(t, name), conformance.Client, theirs)
			if err := agent.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// choose answers permission requests with an option.
func choose(option acp.PermissionOptionID) func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
	return func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
		return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(option)}, nil
	}
}

func TestClientFollowsTranscripts(t *testing.T) {
	const cart = "func total(p []float64) (t float64) {\n\tfor _, x := range p {\n\t\tt += x\n\t}\n\treturn\n}\n"
	for _, test := range []struct {
		name, dir string
		ask       acp.PermissionOptionID
		prompt    []acp.ContentBlock
		again     string // a second prompt
		cancel    string // when to cancel: "", "ask" or "text"
		want      acp.StopReason
		updates   int // at least
	}{
		{
			name: "turn-rejected", dir: "/home/ada/shop", ask: "no", want: acp.StopReasonEndTurn, updates: 3,
			prompt: []acp.ContentBlock{acp.TextBlock("Delete the old invoices.")},
		},
		{
			name: "turn-cancelled", dir: "/home/ada/shop", cancel: "ask", want: acp.StopReasonCancelled, updates: 3,
			prompt: []acp.ContentBlock{acp.TextBlock("Rewrite the shop in one go.")}, again: "Are you still there?",
		},
		{
			name: "turn-cancelled-stream", dir: "/home/ada/shop", cancel: "text", want: acp.StopReasonCancelled, updates: 1,
			prompt: []acp.ContentBlock{acp.TextBlock("Write a very long story about a cent.")},
		},
		{
			name: "bad-input-client", dir: "/home/ada", ask: "yes", want: acp.StopReasonEndTurn, updates: 2,
			prompt: []acp.ContentBlock{acp.TextBlock("Hello")},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			tap := &conformance.TapOptions{}
			if test.name == "bad-input-client" {
				tap.Ignore = func(f conformance.Finding) bool { return f.Direction == conformance.ToClient }
			}
			ours, theirs := acp.Pipe()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			handlers := acp.ClientHandlers{RequestPermission: choose(test.ask)}
			if test.cancel == "ask" {
				handlers.RequestPermission = func(
					ctx context.Context, _ *acp.ClientSession, _ *acp.RequestPermissionRequest,
				) (*acp.RequestPermissionResponse, error) {
					cancel()
					<-ctx.Done()
					return nil, ctx.Err()
				}
			}
			played := make(chan struct{})
			go func() {
				defer close(played)
				transcript.Run(t, load(t, test.name), conformance.Agent, theirs)
			}()
			agent, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, ours, tap), handlers, nil)
			if err != nil {
				t.Fatal(err)
			}
			session, err := agent.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: test.dir})
			if err != nil {
				t.Fatal(err)
			}
			turn := session.Stream(ctx, test.prompt...)
			updates := 0
			for range turn.Updates() {
				if updates++; test.cancel == "text" {
					turn.Cancel()
				}
			}
			res, err := turn.Result()
			if err != nil || res.StopReason != test.want {
				t.Errorf("got %v, %v", res, err)
			}
			if updates < test.updates {
				t.Errorf("%d updates", updates)
			}
			if test.again != "" {
				res, err := session.Prompt(t.Context(), acp.TextBlock(test.again))
				if err != nil || res.StopReason != acp.StopReasonEndTurn {
					t.Errorf("got %v, %v", res, err)
				}
			}
			<-played
			if err := agent.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	// The one whose agent names what the client must say of itself.
	t.Run("turn-allowed", func(t *testing.T) {
		text, err := os.ReadFile("../conformance/testdata/turn-allowed.txtar")
		if err != nil {
			t.Fatal(err)
		}
		// This agent takes embedded resources, which the transcript's agent need not say.
		script, err := transcript.Parse("turn-allowed", []byte(strings.Replace(string(text),
			`"protocolVersion": 1, "...": "..."`,
			`"protocolVersion": 1, "agentCapabilities": {"promptCapabilities": {"embeddedContext": true}}`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := acp.Pipe()
		played := make(chan struct{})
		go func() {
			defer close(played)
			transcript.Run(t, script, conformance.Agent, theirs)
		}()
		agent, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, ours, nil),
			acp.ClientHandlers{RequestPermission: choose("yes")},
			&acp.ClientOptions{Info: acp.Implementation{Name: "script", Version: "1"}})
		if err != nil {
			t.Fatal(err)
		}
		session, err := agent.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/home/ada/shop"})
		if err != nil {
			t.Fatal(err)
		}
		resource := acp.TextResourceContents{URI: "file:///home/ada/shop/total.go", MimeType: acp.Some("text/x-go"), Text: cart}
		res, err := session.Prompt(t.Context(),
			acp.TextBlock("The total is one cent short. Please find out why."),
			acp.ResourceBlock(acp.EmbeddedResourceResource{Variant: &resource}))
		if err != nil || res.StopReason != acp.StopReasonEndTurn {
			t.Errorf("got %v, %v", res, err)
		}
		<-played
		if err := agent.Close(); err != nil {
			t.Error(err)
		}
	})
}
