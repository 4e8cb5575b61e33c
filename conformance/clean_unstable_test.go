package conformance_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/acp/unstable"
	"github.com/acpgo/sdk/conformance"
)

// TestCleanUnstable has each of the unstable methods once.
func TestCleanUnstable(t *testing.T) {
	const name = "v1u-methods"
	state := unstable.AuthState("unauthenticated")
	synctest.Test(t, func(t *testing.T) {
		var recording conformance.Recording
		agentEnd, clientEnd := unstable.Pipe()
		agent, err := unstable.StartAgent(t.Context(), agentEnd, unstable.AgentHandlers{
			Authenticate: func(ctx context.Context, conn *unstable.AgentConn, _ *unstable.AuthenticateRequest) (*unstable.AuthenticateResponse, error) {
				state = "authenticated"
				return nil, conn.AuthStatusUpdate(ctx, &unstable.AuthStatusUpdateNotification{State: state})
			},
			AuthStatus: func(context.Context, *unstable.AgentConn, *unstable.AuthStatusRequest) (*unstable.AuthStatusResponse, error) {
				return &unstable.AuthStatusResponse{State: state}, nil
			},
			ListProviders: func(context.Context, *unstable.AgentConn, *unstable.ListProvidersRequest) (*unstable.ListProvidersResponse, error) {
				return &unstable.ListProvidersResponse{Providers: []unstable.ProviderInfo{{ProviderID: "main", Supported: []unstable.LLMProtocol{"openai"}}}}, nil
			},
			SetProvider: func(context.Context, *unstable.AgentConn, *unstable.SetProviderRequest) (*unstable.SetProviderResponse, error) {
				return nil, nil
			},
			DisableProvider: func(context.Context, *unstable.AgentConn, *unstable.DisableProviderRequest) (*unstable.DisableProviderResponse, error) {
				return nil, nil
			},
			NewSession: func(context.Context, *unstable.AgentConn, *unstable.NewSessionRequest) (*unstable.NewSessionResponse, error) {
				return &unstable.NewSessionResponse{SessionID: "sess_1"}, nil
			},
			ForkSession: func(context.Context, *unstable.AgentSession, *unstable.ForkSessionRequest) (*unstable.ForkSessionResponse, error) {
				return &unstable.ForkSessionResponse{SessionID: "sess_2"}, nil
			},
			SetSessionTitle: func(_ context.Context, _ *unstable.AgentSession, req *unstable.SetSessionTitleRequest) (*unstable.SetSessionTitleResponse, error) {
				return &unstable.SetSessionTitleResponse{Title: req.Title}, nil
			},
			SessionStatus: func(context.Context, *unstable.AgentSession, *unstable.SessionStatusRequest) (*unstable.SessionStatusResponse, error) {
				return &unstable.SessionStatusResponse{Status: unstable.SessionStatusOpen}, nil
			},
			CloseSession: func(context.Context, *unstable.AgentSession, *unstable.CloseSessionRequest) (*unstable.CloseSessionResponse, error) {
				return nil, nil
			},
			ArchiveSession: func(context.Context, *unstable.AgentSession, *unstable.ArchiveSessionRequest) (*unstable.ArchiveSessionResponse, error) {
				return nil, nil
			},
			UnarchiveSession: func(context.Context, *unstable.AgentSession, *unstable.UnarchiveSessionRequest) (*unstable.UnarchiveSessionResponse, error) {
				return nil, nil
			},
			Prompt: func(ctx context.Context, s *unstable.AgentSession, _ *unstable.PromptRequest) (*unstable.PromptResponse, error) {
				return &unstable.PromptResponse{
					StopReason: unstable.StopReasonEndTurn, Usage: unstable.Some(unstable.Usage{InputTokens: 100, OutputTokens: 20, TotalTokens: 120}),
				}, s.Update(ctx, unstable.AgentMessageText("Hello."))
			},
		}, &unstable.AgentOptions{
			Info:        unstable.Implementation{Name: "clean-agent", Version: "1.0.0"},
			AuthMethods: []unstable.AuthMethod{unstable.NewAuthMethodAgent(unstable.AuthMethodAgent{ID: "browser", Name: "In the browser"})},
		})
		must(t, err)
		tapped := conformance.Tap(t, conformance.Client, clientEnd, &conformance.TapOptions{Schema: cleanSchema(name), OnMessage: recording.Add})
		client, err := unstable.Connect(t.Context(), tapped, unstable.ClientHandlers{
			AuthStatusUpdate: func(context.Context, *unstable.ClientConn, *unstable.AuthStatusUpdateNotification) error { return nil },
		}, &unstable.ClientOptions{Info: unstable.Implementation{Name: "clean-client", Version: "1.0.0"}})
		must(t, err)
		defer func() { // also when the rest ends early
			if err := errors.Join(client.Close(), agent.Wait()); err != nil {
				t.Error(err)
			}
			if !t.Failed() {
				keep(t, name, &recording)
			}
		}()
		ctx := t.Context()
		_, err = client.AuthStatus(ctx, &unstable.AuthStatusRequest{})
		must(t, err)
		_, err = client.Authenticate(ctx, &unstable.AuthenticateRequest{MethodID: "browser"})
		must(t, err)
		_, err = client.ListProviders(ctx, &unstable.ListProvidersRequest{})
		must(t, err)
		_, err = client.SetProvider(ctx, &unstable.SetProviderRequest{ProviderID: "main", ApiType: "openai", BaseURL: "https://example.com/v1"})
		must(t, err)
		_, err = client.DisableProvider(ctx, &unstable.DisableProviderRequest{ProviderID: "main"})
		must(t, err)
		s, err := client.NewSession(ctx, &unstable.NewSessionRequest{Cwd: "/home/ada/shop"})
		must(t, err)
		_, err = s.Prompt(ctx, unstable.TextBlock("Hello"))
		must(t, err)
		fork, err := s.Fork(ctx, &unstable.ForkSessionRequest{Cwd: "/home/ada/shop"})
		must(t, err)
		_, err = fork.SetTitle(ctx, "Forked")
		must(t, err)
		_, err = fork.Prompt(ctx, unstable.TextBlock("Hello"))
		must(t, err)
		_, err = fork.Status(ctx)
		must(t, err)
		must(t, fork.Close(ctx))
		must(t, fork.Archive(ctx))
		must(t, fork.Unarchive(ctx))
		_, err = s.Prompt(ctx, unstable.TextBlock("Hello"))
		must(t, err)
		synctest.Wait()
	})
}
