package agentkit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/internal/test/must"
)

const (
	turnChunks = 1000
	turnCalls  = 20
)

// BenchmarkPlain compares a turn on this package with the same turn written with package acp alone, which keeps no
// sessions, orders nothing and closes nothing. An operation is a turn. The client is the same, and counts the updates.
func BenchmarkPlain(b *testing.B) {
	text := strings.Repeat("x", 64)
	chunks := func(ctx context.Context, t *agentkit.Turn[state]) error {
		for range turnChunks {
			if err := t.Update(ctx, acp.AgentMessageText(text)); err != nil {
				return err
			}
		}
		return nil
	}
	plainChunks := func(ctx context.Context, s *acp.AgentSession) error {
		for range turnChunks {
			if err := s.Update(ctx, acp.AgentMessageText(text)); err != nil {
				return err
			}
		}
		return nil
	}
	message := func(ctx context.Context, t *agentkit.Turn[state]) error {
		m := t.NewMessage(ctx)
		for range turnChunks {
			if _, err := m.WriteString(text); err != nil {
				return err
			}
		}
		return m.Close()
	}
	calls := func(ctx context.Context, t *agentkit.Turn[state]) error {
		for range turnCalls {
			call, err := t.StartToolCall(ctx, "Read a file", acp.WithKind(acp.ToolKindRead))
			if err != nil {
				return err
			}
			if err := call.Done(acp.WithContent(acp.ToolText(text))); err != nil {
				return err
			}
		}
		return nil
	}
	plainCalls := func(ctx context.Context, s *acp.AgentSession) error {
		for i := range turnCalls {
			id := acp.ToolCallID(fmt.Sprint("call_", i))
			if err := s.Update(ctx, acp.StartToolCall(id, "Read a file", acp.WithKind(acp.ToolKindRead))); err != nil {
				return err
			}
			end := acp.UpdateToolCall(id, acp.WithStatus(acp.ToolCallStatusCompleted), acp.WithContent(acp.ToolText(text)))
			if err := s.Update(ctx, end); err != nil {
				return err
			}
		}
		return nil
	}
	for _, c := range []struct {
		name  string
		store sessionstore.Store
		ours  func(context.Context, *agentkit.Turn[state]) error
		plain func(context.Context, *acp.AgentSession) error
		sent  int // bytes of text, or ends of calls
	}{
		{"chunks", nil, chunks, plainChunks, turnChunks * len(text)},
		{"chunks, stored", &lastStored{}, chunks, plainChunks, turnChunks * len(text)},
		{"message", nil, message, plainChunks, turnChunks * len(text)},
		{"calls", nil, calls, plainCalls, turnCalls},
		{"calls, stored", &lastStored{}, calls, plainCalls, turnCalls},
	} {
		b.Run(c.name+"/ours", func(b *testing.B) {
			sessions := agentkit.NewSessions(agentkit.Config[state]{
				Store: c.store,
				Prompt: func(ctx context.Context, t *agentkit.Turn[state], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
					return nil, c.ours(ctx, t)
				},
			})
			defer sessions.Close()
			runTurns(b, sessions.Handlers(), c.sent)
		})
		b.Run(c.name+"/plain", func(b *testing.B) {
			runTurns(b, acp.AgentHandlers{
				NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
					return &acp.NewSessionResponse{SessionID: "s"}, nil
				},
				Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
					return nil, c.plain(ctx, s)
				},
			}, c.sent)
		})
	}
}

// runTurns measures turns of an agent, and checks what each has sent.
func runTurns(b *testing.B, handlers acp.AgentHandlers, want int) {
	theirs, ours := acp.Pipe()
	agent := must.Get(acp.StartAgent(b.Context(), theirs, handlers, nil))(b)
	sent := 0
	conn, err := acp.Connect(b.Context(), ours, acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			switch u := n.Update.Variant.(type) {
			case *acp.SessionUpdateAgentMessageChunk:
				if text, ok := u.Content.Variant.(*acp.ContentBlockText); ok {
					sent += len(text.Text)
				}
			case *acp.SessionUpdateToolCallUpdate:
				if u.Status.Value() == acp.ToolCallStatusCompleted {
					sent++
				}
			}
			return nil
		},
	}, nil)
	if err != nil {
		b.Fatal(err)
	}
	session := must.Get(conn.NewSession(b.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(b)
	b.ReportAllocs()
	for b.Loop() {
		sent = 0
		must.Get(session.Prompt(b.Context(), acp.TextBlock("go")))(b)
		if sent != want {
			b.Fatalf("%d were sent, want %d", sent, want)
		}
	}
	if err := conn.Close(); err != nil {
		b.Error(err)
	}
	if err := agent.Wait(); err != nil {
		b.Error(err)
	}
}

// lastStored is a store of one session in memory, which keeps only the updates of the last call of Append.
type lastStored struct {
	sessionstore.Store
	record  sessionstore.Record
	updates []acp.SessionUpdate
}

func (s *lastStored) Create(_ context.Context, r sessionstore.Record) error {
	s.record = r
	return nil
}

func (s *lastStored) Change(_ context.Context, _ acp.SessionID, change func(*sessionstore.Record) error) error {
	return change(&s.record)
}

func (s *lastStored) Append(_ context.Context, _ acp.SessionID, updates ...acp.SessionUpdate) error {
	s.updates = append(s.updates[:0], updates...)
	return nil
}
