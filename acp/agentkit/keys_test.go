package agentkit_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

// TestKeys sends prompts with idempotency keys again, to the same process of an agent and to one that has loaded the
// session. Each is run once, unless it was refused.
func TestKeys(t *testing.T) {
	store := open(t, t.TempDir())
	runs := map[string]int{}
	started := make(chan struct{})
	start := func() (*agentkit.Sessions[any], *client) {
		sessions := agentkit.NewSessions(agentkit.Config[any]{Store: store, Prompt: func(
			ctx context.Context, turn *agentkit.Turn[any], req *acp.PromptRequest,
		) (*acp.PromptResponse, error) {
			text := agentkit.PromptText(req)
			switch runs[text]++; text {
			case "login":
				return nil, acp.ErrAuthRequired
			case "fail":
				return nil, errors.New("no")
			case "hang":
				close(started)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonMaxTokens}, turn.Sayf(ctx, "yes")
		}})
		req, res := &acp.InitializeRequest{}, &acp.InitializeResponse{}
		err := errors.Join(req.ClientCapabilities.Meta.Set(translate.MetaIdempotencyKey, true), sessions.Options(nil).Initialize(t.Context(), req, res))
		if err != nil || res.Meta[translate.MetaIdempotencyKey] == nil {
			t.Errorf("the agent does not say that it honours keys: %v", err)
		}
		return sessions, connect(t, sessions, &acp.AgentOptions{Conn: acp.ConnOptions{Logger: quiet}}, &conformance.TapOptions{
			Accept: map[string]string{"PRM-5": "the connection ends in a turn", "PRM-7": "which was cancelled on another connection"},
		})
	}
	sessions, conn := start()
	s := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(t)
	prompt := func(conn *client, key, text string) (string, error) {
		req := &acp.PromptRequest{SessionID: s.ID(), Prompt: []acp.ContentBlock{acp.TextBlock(text)}}
		if err := req.Meta.Set(translate.MetaIdempotencyKey, key); err != nil {
			t.Error(err)
		}
		res, err := conn.Prompt(t.Context(), req)
		if err != nil {
			return "", err
		}
		again := string(res.Meta[translate.MetaIdempotencyKey])
		return string(res.StopReason) + again[:min(5, len(again))], nil
	}
	want := func(conn *client, key, text, want string, failure error) {
		t.Helper()
		got, err := prompt(conn, key, text)
		if got != want || !errors.Is(err, failure) {
			t.Errorf("%s %s: %s, %v", key, text, got, err)
		}
	}
	want(conn, "a", "go", "max_tokens", nil)
	want(conn, "a", "go", `max_tokens"msg_`, nil)
	want(conn, "a", "another", "", rpc.ErrInvalidParams)
	want(conn, "b", "login", "", acp.ErrAuthRequired)
	want(conn, "b", "login", "", acp.ErrAuthRequired)
	want(conn, "c", "fail", "", rpc.ErrInternal)
	lost := make(chan error)
	go func() {
		_, err := prompt(conn, "d", "hang")
		lost <- err
	}()
	<-started
	conn.Close() // which cancels it
	if err := <-lost; !errors.Is(err, acp.ErrClosed) {
		t.Error(err)
	}
	sessions.Close()
	_, conn = start()
	must.Get(conn.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}))(t)
	want(conn, "a", "go", `max_tokens"msg_`, nil)
	want(conn, "a", "another", "", rpc.ErrInvalidParams)
	for key, text := range map[string]string{"c": "fail", "d": "hang"} {
		got, err := prompt(conn, key, text)
		unknown := err != nil && strings.Contains(err.Error(), "outcome is not known")
		if !unknown && (text == "fail" || got != `cancelled"msg_`) { // if the cancellation was faster than the end
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	want(conn, "e", "go", "max_tokens", nil)
	if runs["go"] != 2 || runs["login"] != 2 || runs["fail"] != 1 || runs["hang"] != 1 || runs["another"] != 0 {
		t.Errorf("they ran %v", runs)
	}
}
