// Package translate_test tests package translate between programs that are written in version 1 and in version 2.
package translate_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // passing tests print nothing
	goleak.VerifyTestMain(m)
}

// agent1 is an agent of version 1 that asks for permission.
func agent1(ctx context.Context, t rpc.Transport) error {
	return acp.ServeAgent(ctx, t, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			if text := req.Prompt[0].Text(); text == "log in" {
				return nil, acp.ErrAuthRequired
			} else if text == "wait" {
				<-ctx.Done()
				return &acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
			}
			if err := s.Update(ctx, acp.StartToolCall("t", "Edit", acp.WithKind(acp.ToolKindEdit))); err != nil {
				return nil, err
			}
			answer, err := s.RequestPermission(ctx, acp.ToolCallRef("t"), acp.AllowOnce("y", "Yes"), acp.RejectOnce("n", "No"))
			if err != nil {
				return nil, err
			}
			chosen, _ := answer.Selected()
			if err := s.Update(ctx, acp.AgentMessageText("chosen: "+string(chosen))); err != nil {
				return nil, err
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}, nil)
}

// agent2 is the same in version 2.
func agent2(ctx context.Context, t rpc.Transport) error {
	var turns atomic.Int64
	return acpv2.ServeAgent(ctx, t, acpv2.AgentHandlers{
		NewSession: func(context.Context, *acpv2.AgentConn, *acpv2.NewSessionRequest) (*acpv2.NewSessionResponse, error) {
			return &acpv2.NewSessionResponse{SessionID: "s"}, nil
		},
		ListSessions: func(context.Context, *acpv2.AgentConn, *acpv2.ListSessionsRequest) (*acpv2.ListSessionsResponse, error) {
			return &acpv2.ListSessionsResponse{}, nil
		},
		ResumeSession: func(context.Context, *acpv2.AgentSession, *acpv2.ResumeSessionRequest) (*acpv2.ResumeSessionResponse, error) {
			return nil, nil
		},
		CloseSession: func(context.Context, *acpv2.AgentSession, *acpv2.CloseSessionRequest) (*acpv2.CloseSessionResponse, error) {
			return nil, nil
		},
		Prompt: func(ctx context.Context, s *acpv2.AgentSession, req *acpv2.PromptRequest) (*acpv2.PromptResponse, error) {
			text := req.Prompt[0].Text()
			if text == "log in" {
				return nil, acpv2.ErrAuthRequired
			}
			n := fmt.Sprint(turns.Add(1))
			message := acpv2.UserMessage{MessageID: acpv2.MessageID("u" + n), Content: acpv2.Some(req.Prompt)}
			return s.StartTurnWith(ctx, message, func(ctx context.Context) (acpv2.IdleStateUpdate, error) {
				if text == "wait" {
					<-ctx.Done()
					return acpv2.IdleStateUpdate{}, ctx.Err()
				}
				if err := s.Update(ctx, acpv2.StartToolCall(acpv2.ToolCallID("t"+n), "Edit", acpv2.WithKind(acpv2.ToolKindEdit))); err != nil {
					return acpv2.IdleStateUpdate{}, err
				}
				answer, err := s.RequestPermission(ctx, &acpv2.RequestPermissionRequest{
					Title: "Edit?", Subject: acpv2.Some(acpv2.PermissionForToolCall(acpv2.ToolCallRef(acpv2.ToolCallID("t" + n)))),
					Options: []acpv2.PermissionOption{acpv2.AllowOnce("y", "Yes"), acpv2.RejectOnce("n", "No")},
				})
				if err != nil {
					return acpv2.IdleStateUpdate{}, err
				}
				chosen, _ := answer.Selected()
				return acpv2.EndTurn(), s.Update(ctx, acpv2.AgentMessageText(acpv2.MessageID("m"+n), "chosen: "+string(chosen)))
			})
		},
	}, &acpv2.AgentOptions{Info: acpv2.Implementation{Name: "agent", Version: "1"}})
}

// both serves either version natively.
func both(ctx context.Context, transport rpc.Transport) error {
	version, transport, err := translate.Asked(ctx, transport)
	switch {
	case err != nil:
		return err
	case version == 2:
		return agent2(ctx, transport)
	}
	return agent1(ctx, transport)
}

// client is the connection of a client of either version, which allows everything.
type client struct {
	prompt func(ctx context.Context, text string) (stop string, err error)
	close  func() error
	text   string // of the agent's messages
}

func client1(t *testing.T, transport rpc.Transport) *client {
	c := &client{}
	conn := must.Get(acp.Connect(t.Context(), transport, acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			text := n.Update.AgentText()
			c.text += text
			return nil
		},
		RequestPermission: func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("y")}, nil
		},
	}, nil))(t)
	s := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(t)
	c.close = conn.Close
	c.prompt = func(ctx context.Context, text string) (string, error) {
		result, err := s.Prompt(ctx, acp.TextBlock(text))
		if err != nil {
			return "", err
		}
		return string(result.StopReason), nil
	}
	return c
}

func client2(t *testing.T, transport rpc.Transport) *client {
	c := &client{}
	conn := must.Get(acpv2.Connect(t.Context(), transport, acpv2.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acpv2.ClientSession, n *acpv2.UpdateSessionNotification) error {
			text := n.Update.AgentText()
			c.text += text
			switch u := n.Update.Variant.(type) {
			case *acpv2.SessionUpdateTerminalUpdate:
				c.text += u.Command.Value()
				if exit, ok := u.ExitStatus.Get(); ok {
					c.text += fmt.Sprintf("[%d]", exit.ExitCode.Value())
				}
			case *acpv2.SessionUpdateTerminalOutputChunk:
				output, err := base64.StdEncoding.DecodeString(u.Data)
				c.text += string(output)
				return err
			}
			return nil
		},
		RequestPermission: func(context.Context, *acpv2.ClientSession, *acpv2.RequestPermissionRequest) (*acpv2.RequestPermissionResponse, error) {
			return &acpv2.RequestPermissionResponse{Outcome: acpv2.PermissionSelected("y")}, nil
		},
	}, &acpv2.ClientOptions{Info: acpv2.Implementation{Name: "client", Version: "1"}}))(t)
	s := must.Get(conn.NewSession(t.Context(), &acpv2.NewSessionRequest{Cwd: "/w"}))(t)
	c.close = conn.Close
	c.prompt = func(ctx context.Context, text string) (string, error) {
		result, err := s.Prompt(ctx, acpv2.TextBlock(text))
		if err != nil {
			return "", err
		}
		return string(result.Idle.StopReason()), nil
	}
	return c
}

// TestPrograms connects clients and agents of both versions. All see whole turns, refusals and cancellations, and the
// judge of the wire between them sees the version that they agree on.
func TestPrograms(t *testing.T) {
	other := func(side translate.Side) func(rpc.Transport) rpc.Transport {
		return func(t rpc.Transport) rpc.Transport { return translate.Transport(t, side, 2, nil) }
	}
	none := func(t rpc.Transport) rpc.Transport { return t }
	for _, c := range []struct {
		name              string
		client            func(*testing.T, rpc.Transport) *client
		ofClient, ofAgent func(rpc.Transport) rpc.Transport
		agent             func(context.Context, rpc.Transport) error
		version           int
	}{
		{"client 2, agent with both", client2, none, none, both, 2},
		{"client 1, agent with both", client1, none, none, both, 1},
		{"client 2, agent 1", client2, none, translate.Agent, agent1, 2},
		{"client 1, agent 1", client1, none, translate.Agent, agent1, 1},
		{"client 1, agent 2", client1, translate.Client, none, agent2, 2},
		{"client 1 with translation, agent 1", client1, translate.Client, none, agent1, 1},
		{"both with translation", client1, translate.Client, translate.Agent, agent1, 1},
		{"native client 2, agent 1", client2, other(translate.ClientSide), none, agent1, 1},
		{"native client 2, agent 2", client2, other(translate.ClientSide), none, agent2, 2},
		{"client 1, native agent 2", client1, none, other(translate.AgentSide), agent2, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agentEnd, clientEnd := rpc.Pipe()
				done := make(chan error)
				go func() { done <- c.agent(t.Context(), c.ofAgent(agentEnd)) }()
				var wire conformance.Recording
				tapped := conformance.Tap(t, conformance.Client, clientEnd, &conformance.TapOptions{
					Schema: conformance.Negotiated(conformance.V1(), conformance.V2()), OnMessage: wire.Add,
				})
				client := c.client(t, c.ofClient(tapped))
				if stop, err := client.prompt(t.Context(), "edit"); err != nil || stop != "end_turn" {
					t.Errorf("got %q, %v", stop, err)
				}
				if _, err := client.prompt(t.Context(), "log in"); !errors.Is(err, rpc.ErrAuthRequired) {
					t.Errorf("got %v, want a refusal", err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				stopped := make(chan struct{})
				go func() {
					defer close(stopped)
					if stop, err := client.prompt(ctx, "wait"); err == nil && stop != "cancelled" {
						t.Errorf("got %q", stop)
					}
				}()
				synctest.Wait()
				cancel()
				<-stopped
				if stop, err := client.prompt(t.Context(), "edit"); err != nil || stop != "end_turn" {
					t.Errorf("after the cancellation: got %q, %v", stop, err)
				}
				synctest.Wait()
				if client.text != "chosen: ychosen: y" {
					t.Errorf("got the text %q", client.text)
				}
				must.Do(t, errors.Join(client.close(), <-done))
				if got := version(t, wire.Messages()); got != c.version {
					t.Errorf("version %d on the wire, want %d", got, c.version)
				}
			})
		})
	}
}

// kitAgent is agent1 as authors write it: Serve translates.
func kitAgent(ctx context.Context, t rpc.Transport) error {
	type state struct{}
	sessions := agentkit.NewSessions(agentkit.Config[state]{
		Prompt: func(ctx context.Context, t *agentkit.Turn[state], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			call, err := t.StartToolCall(ctx, "Edit", acp.WithKind(acp.ToolKindEdit))
			if err != nil {
				return nil, err
			}
			chosen, err := call.Ask(ctx, acp.AllowOnce("y", "Yes"), acp.RejectOnce("n", "No"))
			if err != nil {
				return nil, err
			}
			terminal, err := call.StartTerminal("$ make\n", t.Cwd())
			if err != nil {
				return nil, err
			}
			_, err = terminal.Write([]byte("made\n"))
			return nil, errors.Join(err, terminal.Exited(2), call.Done(), t.Sayf(ctx, "chosen: %s", chosen.OptionID))
		},
	})
	return sessions.Serve(ctx, t, nil)
}

// TestPipes plays a whole turn through pipes of the system.
func TestPipes(t *testing.T) {
	for _, c := range []struct {
		name   string
		client func(*testing.T, rpc.Transport) *client
		agent  func(context.Context, rpc.Transport) error
		want   string
	}{
		{"client 2, kit agent", client2, kitAgent, "$ make\nmade\n[2]chosen: y"},
		{"client 1, agent 2", func(t *testing.T, transport rpc.Transport) *client { return client1(t, translate.Client(transport)) }, agent2, "chosen: y"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r1, w1, err1 := os.Pipe()
			r2, w2, err2 := os.Pipe()
			must.Do(t, errors.Join(err1, err2))
			done := make(chan error)
			go func() { done <- c.agent(t.Context(), rpc.IO(r1, w2, 0)) }()
			client := c.client(t, conformance.Tap(t, conformance.Client, rpc.IO(r2, w1, 0), &conformance.TapOptions{
				Schema: conformance.Negotiated(conformance.V1(), conformance.V2()),
			}))
			for range 20 {
				if stop, err := client.prompt(t.Context(), "edit"); err != nil || stop != "end_turn" {
					t.Fatalf("got %q, %v", stop, err)
				}
			}
			if want := strings.Repeat(c.want, 20); client.text != want {
				t.Errorf("got the text %q", client.text)
			}
			must.Do(t, errors.Join(client.close(), <-done))
		})
	}
}

// TestCancelOneCall cancels the command of a kit agent's tool call, and then the call; the turn continues.
func TestCancelOneCall(t *testing.T) {
	type state struct{}
	sessions := agentkit.NewSessions(agentkit.Config[state]{
		Prompt: func(ctx context.Context, t *agentkit.Turn[state], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			call, err := t.StartToolCall(ctx, "Wait", agentkit.WithToolCallID("c"))
			if err != nil {
				return nil, err
			}
			work, err1 := call.Cancellable()
			terminal, err2 := call.StartTerminal("sleep", t.Cwd())
			if err := errors.Join(err1, err2); err != nil {
				return nil, err
			}
			command, err := terminal.Cancellable()
			if err != nil {
				return nil, err
			}
			<-command.Done()
			if err := terminal.Exit(acp.TerminalExitStatus{Signal: acp.Some("SIGTERM")}); err != nil {
				return nil, err
			}
			<-work.Done()
			return nil, errors.Join(call.End(context.Cause(work)), t.Sayf(ctx, "next"))
		},
	})
	near, far := acp.Pipe()
	done := make(chan error, 1)
	go func() { done <- sessions.Serve(t.Context(), far, nil) }()
	heard := make(chan string, 100)
	conn := must.Get(acpv2.Connect(t.Context(), conformance.Tap(t, conformance.Client, near, &conformance.TapOptions{
		Schema: conformance.Negotiated(conformance.V1(), conformance.V2()),
	}), acpv2.ClientHandlers{
		SessionUpdate: func(_ context.Context, s *acpv2.ClientSession, n *acpv2.UpdateSessionNotification) error {
			switch u := n.Update.Variant.(type) {
			case *acpv2.SessionUpdateTerminalUpdate:
				if u.Capabilities.Value().Cancel.Present() {
					heard <- string(u.TerminalID)
				} else if u.Capabilities.IsNull() {
					heard <- u.ExitStatus.Value().Signal.Value()
				}
			case *acpv2.SessionUpdateToolCallUpdate:
				if u.Capabilities.Value().Cancel.Present() {
					heard <- string(u.ToolCallID)
				} else if u.Capabilities.IsNull() {
					heard <- string(u.Status.Value())
				}
			}
			return nil
		},
	}, &acpv2.ClientOptions{Info: acpv2.Implementation{Name: "client", Version: "1"}}))(t)
	s := must.Get(conn.NewSession(t.Context(), &acpv2.NewSessionRequest{Cwd: "/w"}))(t)
	ended := make(chan string, 1)
	go func() {
		result, err := s.Prompt(t.Context(), acpv2.TextBlock("go"))
		if err != nil {
			ended <- err.Error()
			return
		}
		ended <- string(result.Idle.StopReason())
	}()
	call, terminal := acpv2.ToolCallID(<-heard), acpv2.TerminalID(<-heard)
	must.Do(t, s.CancelTerminal(t.Context(), terminal))
	if got := <-heard; got != "SIGTERM" {
		t.Errorf("the terminal: %s", got)
	}
	must.Do(t, s.CancelToolCall(t.Context(), call))
	if got := <-heard; got != "cancelled" {
		t.Errorf("the call: %s", got)
	}
	if got := <-ended; got != "end_turn" {
		t.Errorf("the turn: %s", got)
	}
	must.Do(t, errors.Join(conn.Close(), <-done))
}

// version returns the version that a recording's agent chose.
func version(t testing.TB, messages []conformance.Message) int {
	for _, m := range messages {
		var answer struct{ Result struct{ ProtocolVersion int } }
		if m.Direction == conformance.ToClient && json.Unmarshal(m.Line, &answer) == nil && answer.Result.ProtocolVersion > 0 {
			return answer.Result.ProtocolVersion
		}
	}
	t.Fatal("no version")
	return 0
}
