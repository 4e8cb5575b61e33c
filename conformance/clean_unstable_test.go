package conformance_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

// TestCleanUnstable uses each of the unstable methods once.
func TestCleanUnstable(t *testing.T) {
	const name = "v1u-methods"
	state := acp.AuthState("unauthenticated")
	synctest.Test(t, func(t *testing.T) {
		var recording conformance.Recording
		agentEnd, clientEnd := acp.Pipe()
		agent := must.Get(acp.StartAgent(t.Context(), agentEnd, acp.AgentHandlers{
			Authenticate: func(ctx context.Context, conn *acp.AgentConn, _ *acp.AuthenticateRequest) (*acp.AuthenticateResponse, error) {
				state = "authenticated"
				return nil, conn.AuthStatusUpdate(ctx, &acp.AuthStatusUpdateNotification{State: state})
			},
			AuthStatus: func(context.Context, *acp.AgentConn, *acp.AuthStatusRequest) (*acp.AuthStatusResponse, error) {
				return &acp.AuthStatusResponse{State: state}, nil
			},
			ListProviders: func(context.Context, *acp.AgentConn, *acp.ListProvidersRequest) (*acp.ListProvidersResponse, error) {
				return &acp.ListProvidersResponse{Providers: []acp.ProviderInfo{{ProviderID: "main", Supported: []acp.LLMProtocol{"openai"}}}}, nil
			},
			SetProvider: func(context.Context, *acp.AgentConn, *acp.SetProviderRequest) (*acp.SetProviderResponse, error) {
				return nil, nil
			},
			DisableProvider: func(context.Context, *acp.AgentConn, *acp.DisableProviderRequest) (*acp.DisableProviderResponse, error) {
				return nil, nil
			},
			NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
				return &acp.NewSessionResponse{SessionID: "sess_1"}, nil
			},
			ForkSession: func(context.Context, *acp.AgentSession, *acp.ForkSessionRequest) (*acp.ForkSessionResponse, error) {
				return &acp.ForkSessionResponse{SessionID: "sess_2"}, nil
			},
			SetSessionTitle: func(_ context.Context, _ *acp.AgentSession, req *acp.SetSessionTitleRequest) (*acp.SetSessionTitleResponse, error) {
				return &acp.SetSessionTitleResponse{Title: req.Title}, nil
			},
			SessionStatus: func(context.Context, *acp.AgentSession, *acp.SessionStatusRequest) (*acp.SessionStatusResponse, error) {
				return &acp.SessionStatusResponse{Status: acp.SessionStatusOpen}, nil
			},
			CloseSession: func(context.Context, *acp.AgentSession, *acp.CloseSessionRequest) (*acp.CloseSessionResponse, error) {
				return nil, nil
			},
			ListSessions: func(context.Context, *acp.AgentConn, *acp.ListSessionsRequest) (*acp.ListSessionsResponse, error) {
				return &acp.ListSessionsResponse{}, nil
			},
			ArchiveSession: func(context.Context, *acp.AgentSession, *acp.ArchiveSessionRequest) (*acp.ArchiveSessionResponse, error) {
				return nil, nil
			},
			UnarchiveSession: func(context.Context, *acp.AgentSession, *acp.UnarchiveSessionRequest) (*acp.UnarchiveSessionResponse, error) {
				return nil, nil
			},
			Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
				return &acp.PromptResponse{
					StopReason: acp.StopReasonEndTurn, Usage: acp.Some(acp.Usage{InputTokens: 100, OutputTokens: 20, TotalTokens: 120}),
				}, s.Update(ctx, acp.AgentMessageText("Hello."))
			},
		}, &acp.AgentOptions{
			Info: acp.Implementation{Name: "clean-agent", Version: "1.0.0"}, Experimental: acp.AllFeatures,
			AuthMethods: []acp.AuthMethod{acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "browser", Name: "In the browser"})},
		}))(t)
		tapped := conformance.Tap(t, conformance.Client, clientEnd, &conformance.TapOptions{Schema: cleanSchema(name), OnMessage: recording.Add})
		client := must.Get(acp.Connect(t.Context(), tapped, acp.ClientHandlers{
			AuthStatusUpdate: func(context.Context, *acp.ClientConn, *acp.AuthStatusUpdateNotification) error { return nil },
		}, &acp.ClientOptions{Info: acp.Implementation{Name: "clean-client", Version: "1.0.0"}, Experimental: acp.AllFeatures}))(t)
		defer func() { // also when the rest ends early
			if err := errors.Join(client.Close(), agent.Wait()); err != nil {
				t.Error(err)
			}
			if !t.Failed() {
				cleanDir.Keep(t, name, &recording, *update)
			}
		}()
		ctx := t.Context()
		must.Get(client.AuthStatus(ctx, &acp.AuthStatusRequest{}))(t)
		must.Get(client.Authenticate(ctx, &acp.AuthenticateRequest{MethodID: "browser"}))(t)
		must.Get(client.ListProviders(ctx, &acp.ListProvidersRequest{}))(t)
		must.Get(client.SetProvider(ctx, &acp.SetProviderRequest{ProviderID: "main", ApiType: "openai", BaseURL: "https://example.com/v1"}))(t)
		must.Get(client.DisableProvider(ctx, &acp.DisableProviderRequest{ProviderID: "main"}))(t)
		s := must.Get(client.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/home/ada/shop"}))(t)
		must.Get(s.Prompt(ctx, acp.TextBlock("Hello")))(t)
		fork := must.Get(s.Fork(ctx, &acp.ForkSessionRequest{Cwd: "/home/ada/shop"}))(t)
		must.Get(fork.SetTitle(ctx, "Forked"))(t)
		must.Get(fork.Prompt(ctx, acp.TextBlock("Hello")))(t)
		must.Get(fork.Status(ctx))(t)
		must.Do(t, fork.Close(ctx))
		must.Do(t, fork.Archive(ctx))
		must.Do(t, fork.Unarchive(ctx))
		must.Get(s.Prompt(ctx, acp.TextBlock("Hello")))(t)
		synctest.Wait()
	})
}
