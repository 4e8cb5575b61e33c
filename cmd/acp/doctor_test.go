package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
)

// TestDoctorAtURL examines an agent at a URL: with the token it answers, without the token the reason is reported, and
// secrets are never shown.
func TestDoctorAtURL(t *testing.T) {
	const token = "the-token-of-the-agent"
	handler := remote.Handler(func(ctx context.Context, transport rpc.Transport, _ *remote.Peer) error {
		return acp.ServeAgent(ctx, transport, acp.AgentHandlers{
			NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
				return nil, acp.ErrAuthRequired
			},
			Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
				return nil, nil
			},
		}, &acp.AgentOptions{Info: acp.Implementation{Name: "far\x1b[2J", Version: "1.0"}})
	}, &remote.HandlerOptions{Authenticate: remote.BearerToken(map[string]string{"": token})})
	server := httptest.NewServer(handler)
	defer server.Close()
	defer func() {
		if err := handler.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("ACP_CONFIG", write(t, "config.toml", []byte("[agents.far]\nurl = \""+server.URL+"/acp?x=hidden\"\ntoken-env = \"FAR_TOKEN\"\n")))
	doctor := func(args ...string) (status int, out string) {
		var stdout, stderr bytes.Buffer
		status = run(&program{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr}, append([]string{"agents", "doctor"}, args...))
		if text := stdout.String() + stderr.String(); strings.Contains(text, token) || strings.Contains(text, "hidden") || strings.Contains(text, "\x1b") {
			t.Errorf("%q: %s", args, text)
		}
		return status, stdout.String()
	}
	for _, scheme := range []string{"http", "ws"} {
		address := scheme + strings.TrimPrefix(server.URL, "http") + "/acp"
		if status, out := doctor(address); status != statusFindings || !strings.Contains(out, "problem: not reached: ") || !strings.Contains(out, "401") {
			t.Errorf("%s without a token: %d\n%s", scheme, status, out)
		}
		t.Setenv("MY_TOKEN", token)
		if status, out := doctor("--token-env", "MY_TOKEN", address); status != statusOK || !strings.Contains(out, `agent:   far\x1b[2J 1.0, protocol version 1`) {
			t.Errorf("%s: %d\n%s", scheme, status, out)
		}
	}
	// An agent of the configuration has its own token and is not sent that of the settings.
	if status, out := doctor("--token-env", "MY_TOKEN", "far"); status != statusFindings || !strings.Contains(out, "401") {
		t.Errorf("the token of the settings: %d\n%s", status, out)
	}
	t.Setenv("FAR_TOKEN", token)
	status, out := doctor("--json", "far")
	var d diagnosis
	if err := json.Unmarshal([]byte(out), &d); err != nil || status != statusOK || !d.OK || d.Name != "far" || d.Protocol != 1 || d.URL != server.URL+"/acp" {
		t.Errorf("%d, %v\n%s", status, err, out)
	}
}
