package remote_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/pipenet"
)

// TestREM72_PermissionOfALostClient: what the agent asks its client waits for the grace and then fails with
// ErrClosed; nothing is taken for a rejection.
func TestREM72_PermissionOfALostClient(t *testing.T) {
	const grace = 30 * time.Second
	ask := func(failed chan<- error) func(context.Context, rpc.Transport, *remote.Peer) error {
		return func(ctx context.Context, tr rpc.Transport, _ *remote.Peer) error {
			return acp.ServeAgent(ctx, tr, acp.AgentHandlers{
				NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
					return &acp.NewSessionResponse{SessionID: "s1"}, nil
				},
				Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
					_, err := s.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: "t1"},
						acp.PermissionOption{OptionID: "ok", Name: "ok", Kind: acp.PermissionOptionKindAllowOnce})
					failed <- err
					return nil, err
				},
			}, nil)
		}
	}
	const newSession = `{"cwd":"/","mcpServers":[]}`
	const prompt = `{"sessionId":"s1","prompt":[]}`
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan error, 1)
		f, _ := newFixture(t, nil, nil)
		f.patience = time.Hour
		s := remote.Handler(ask(failed), &remote.HandlerOptions{Grace: grace, Expiry: grace, KeepAlive: -1})
		l := pipenet.Listen()
		srv := remote.NewHTTPServer(s)
		go srv.Serve(l)
		f.client.Transport = &http.Transport{DialContext: l.Dial}
		f.url = "http://localhost/acp"
		defer srv.Close()
		defer s.Shutdown(t.Context())
		defer f.client.CloseIdleConnections()

		ws := f.dial(nil)
		ws.send(initialize)
		ws.message()
		ws.send(request(1, "session/new", newSession))
		ws.message()
		ws.send(request(2, "session/prompt", prompt))
		if m := parse(t, ws.message()); m.Method != "session/request_permission" {
			t.Fatalf("%+v", m)
		}
		began := time.Now()
		ws.CloseNow()
		if err := <-failed; !errors.Is(err, rpc.ErrClosed) {
			t.Errorf("over WebSocket: %v", err)
		}
		if waited := time.Since(began); waited != grace {
			t.Errorf("over WebSocket it failed after %v", waited)
		}

		resp, _ := f.do("POST", initialize)
		p := &peer{fixture: f, id: resp.Header.Get("Acp-Connection-Id")}
		own, session := p.get(""), p.get("s1")
		p.post(request(1, "session/new", newSession))
		own.message()
		p.post(request(2, "session/prompt", prompt))
		session.message()
		own.close()
		session.close()
		began = time.Now()
		if err := <-failed; !errors.Is(err, rpc.ErrClosed) || !errors.Is(err, remote.ErrExpired) {
			t.Errorf("over HTTP: %v", err)
		}
		if waited := time.Since(began).Round(time.Second); waited != grace {
			t.Errorf("over HTTP it failed after %v", waited)
		}
	})
}
