package interop

// This file owns goose, an agent in Rust with a server of its own for HTTP and WebSocket, which runs on a model that is
// made up. Its program has 250 MB, so ACP_GOOSE says where it is; make remote fetches it.

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/modelstub"
)

// startGoose starts goose's server and returns its address and secret.
func startGoose(t *testing.T, root string) (address, secret string) {
	t.Helper()
	program := os.Getenv("ACP_GOOSE")
	if program == "" {
		t.Skip("ACP_GOOSE does not say where goose is")
	}
	model := httptest.NewServer(modelstub.New(&modelstub.Options{Root: root}))
	t.Cleanup(model.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	secret = "open-sesame"
	home := t.TempDir()
	goose := exec.Command(program, "serve", "--port", port)
	goose.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, "config"), "XDG_DATA_HOME="+filepath.Join(home, "data"),
		"GOOSE_DISABLE_KEYRING=1", "GOOSE_PROVIDER=openai", "OPENAI_API_KEY=x", "OPENAI_HOST="+model.URL, "GOOSE_MODEL=gpt-4o", "GOOSE_MODE=auto",
		"GOOSE_SERVER__SECRET_KEY="+secret)
	goose.Stdout, goose.Stderr = io.Discard, t.Output()
	goose.Dir = root
	if err := goose.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = goose.Process.Signal(syscall.SIGTERM) // it may have ended
		timer := time.AfterFunc(10*time.Second, func() { _ = goose.Process.Kill() })
		defer timer.Stop()
		_ = goose.Wait() // its status after a signal means nothing
	})
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return address, secret
		}
		if time.Since(begin) > 60*time.Second {
			t.Fatal("goose does not listen")
		}
	}
}

// TestRemoteGooseServer has whole turns with goose's server: a turn, one that is cancelled, and the session loaded again
// on another connection.
func TestRemoteGooseServer(t *testing.T) {
	root := t.TempDir()
	address, secret := startGoose(t, root)
	for _, scheme := range schemes {
		t.Run(scheme, func(t *testing.T) {
			transport := remote.Dial(scheme+"://"+address+"/acp", &remote.DialOptions{
				Header: func(context.Context) (http.Header, error) { return http.Header{"X-Secret-Key": {secret}}, nil },
			})
			var messages conformance.Recording
			connect := func() (*acp.ClientConn, chan string) {
				updates := make(chan string, 1000)
				tap := conformance.Tap(t, conformance.Client, transport, &conformance.TapOptions{
					OnMessage: messages.Add,
					Accept:    map[string]string{"EXT-2": "goose sends usage, which is not in version 1"},
				})
				conn, err := acp.Connect(t.Context(), tap, acp.ClientHandlers{
					RequestPermission: func(_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
						return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(req.Options[0].OptionID)}, nil
					},
					SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
						updates <- fmt.Sprintf("%T", n.Update.Variant)
						return nil
					},
				}, &acp.ClientOptions{Info: acp.Implementation{Name: "go-client", Version: "1.0.0"}})
				if err != nil {
					t.Fatal(err)
				}
				return conn, updates
			}
			conn, updates := connect()
			session, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: root})
			if err != nil {
				t.Fatal(err)
			}
			res, err := session.Prompt(t.Context(), acp.TextBlock("Say hello."))
			if err != nil || res.StopReason != acp.StopReasonEndTurn {
				t.Fatalf("got %+v, %v", res, err)
			}
			if len(updates) == 0 {
				t.Error("no updates")
			}
			turn := session.Stream(t.Context(), acp.TextBlock("Tell me a long story."))
			for update := range turn.Updates() {
				if _, text := update.Variant.(*acp.SessionUpdateAgentMessageChunk); text {
					turn.Cancel()
				}
			}
			if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonCancelled {
				t.Errorf("cancelled: %+v, %v", res, err)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			conn, updates = connect()
			if _, err := conn.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: session.ID(), Cwd: root}); err != nil {
				t.Fatal(err)
			}
			t.Logf("%d updates when it was loaded", len(updates))
			if res, err := conn.Session(session.ID()).Prompt(t.Context(), acp.TextBlock("Say hello again.")); err != nil || res.StopReason != acp.StopReasonEndTurn {
				t.Errorf("got %+v, %v", res, err)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			t.Logf("%d messages", len(messages.Messages()))
			if _, err := acp.Connect(t.Context(), remote.Dial(scheme+"://"+address+"/acp", nil), acp.ClientHandlers{}, nil); err == nil {
				t.Error("connected without the secret")
			}
		})
	}
}
