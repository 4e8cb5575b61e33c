package agentkit_test

import (
	"context"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/acpv2/agentkit"
	"github.com/acpgo/sdk/acp/sessionstore"
)

// BenchmarkUpdate is a piece of text of 64 bytes: as the connection sends it, by the session, which stores it, and by a
// Text.
func BenchmarkUpdate(b *testing.B) {
	words := strings.Repeat("x", 64)
	update := acpv2.AgentMessageText("m", words)
	for name, send := range map[string]func(context.Context, *session, *agentkit.Text) error{
		"plain": func(ctx context.Context, s *session, _ *agentkit.Text) error {
			return s.AgentSession.Update(ctx, update)
		},
		"stored": func(ctx context.Context, s *session, _ *agentkit.Text) error { return s.Update(ctx, update) },
		"text": func(_ context.Context, _ *session, text *agentkit.Text) error {
			_, err := text.WriteString(words)
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			store, err := agentkit.OpenStore(b.TempDir(), &sessionstore.Options{MaxSession: 1 << 40})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			config := agentkit.Config[state]{Store: store}
			config.Prompt = func(ctx context.Context, s *session, _ *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
				text := s.NewMessage(ctx)
				b.ReportAllocs()
				for b.Loop() {
					if err := send(ctx, s, text); err != nil {
						return acpv2.IdleStateUpdate{}, err
					}
				}
				return acpv2.EndTurn(), nil
			}
			sessions := agentkit.NewSessions(config)
			defer sessions.Close()
			theirs, ours := acpv2.Pipe()
			agent, err := acpv2.StartAgent(b.Context(), theirs, sessions.Handlers(), &acpv2.AgentOptions{Info: acpv2.Implementation{Name: "a", Version: "1"}})
			if err != nil {
				b.Fatal(err)
			}
			defer agent.Wait()
			c, err := acpv2.Connect(b.Context(), ours, acpv2.ClientHandlers{
				SessionUpdate: func(context.Context, *acpv2.ClientSession, *acpv2.UpdateSessionNotification) error { return nil },
			}, &acpv2.ClientOptions{Info: acpv2.Implementation{Name: "c", Version: "1"}})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			s, err := c.NewSession(b.Context(), &acpv2.NewSessionRequest{Cwd: "/w"})
			if err != nil {
				b.Fatal(err)
			}
			if res, err := s.Prompt(b.Context(), acpv2.TextBlock("go")); err != nil || res.Idle.StopReason() != "end_turn" {
				b.Fatal(res, err)
			}
		})
	}
}
