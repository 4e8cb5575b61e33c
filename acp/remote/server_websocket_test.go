package remote_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/pipenet"
)

// TestREM72_PermissionOfALostClient: what the agent asks its client waits for the grace and then fails with
// ErrClosed; nothing is taken for a rejection.
func TestREM72_PermissionOfALostClient(t *testing.T) {
	const grace = 30 * time.Second
	for _, scheme := range []string{"ws", "http"} {
		synctest.Test(t, func(t *testing.T) {
			failed := make(chan error, 1)
			server := remote.Handler(func(ctx context.Context, tr rpc.Transport, _ *remote.Peer) error {
				return acp.ServeAgent(ctx, tr, acp.AgentHandlers{
					NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
						return &acp.NewSessionResponse{SessionID: "s1"}, nil
					},
					Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
						_, err := s.RequestPermission(ctx, acp.ToolCallUpdate{ToolCallID: "t1"}, acp.AllowOnce("ok", "ok"))
						failed <- err
						return nil, err
					},
				}, nil)
			}, &remote.HandlerOptions{Grace: grace, Expiry: grace, KeepAlive: -1})
			l := pipenet.Listen()
			web := remote.NewHTTPServer(server)
			go web.Serve(l)
			var mu sync.Mutex
			var conns []net.Conn
			network := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				conn, err := l.Dial(ctx, "", "")
				mu.Lock()
				defer mu.Unlock()
				conns = append(conns, conn)
				return conn, err
			}}
			asked := make(chan bool)
			transport := remote.Dial(scheme+"://localhost", &remote.DialOptions{HTTPClient: &http.Client{Transport: network}})
			client := must.Get(acp.Connect(t.Context(), transport, acp.ClientHandlers{
				RequestPermission: func(ctx context.Context, _ *acp.ClientSession, _ *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
					close(asked)
					<-ctx.Done()
					return nil, ctx.Err()
				},
			}, nil))(t)
			session := must.Get(client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"}))(t)
			turn := session.Stream(t.Context(), acp.TextBlock("ask"))
			<-asked
			synctest.Wait()
			began := time.Now()
			l.Close()
			for _, conn := range conns {
				conn.Close()
			}
			if err := <-failed; !errors.Is(err, rpc.ErrClosed) || scheme == "http" && !errors.Is(err, remote.ErrExpired) {
				t.Errorf("%s: %v", scheme, err)
			}
			if waited := time.Since(began).Round(time.Second); waited != grace {
				t.Errorf("%s: it failed after %v", scheme, waited)
			}
			client.Close()
			turn.Result()
			server.Shutdown(t.Context())
			network.CloseIdleConnections()
			web.Close()
		})
	}
}
