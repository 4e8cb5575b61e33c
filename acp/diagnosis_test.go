package acp_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
)

// A call that the peer has not seen says so, and others do not.
func TestErrNotSent(t *testing.T) {
	stop := make(chan struct{})
	agent := acp.AgentHandlers{NewSession: newSession, Prompt: func(
		ctx context.Context, _ *acp.AgentSession, _ *acp.PromptRequest,
	) (*acp.PromptResponse, error) {
		close(stop)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	conn := connect(t, agent, nil, acp.ClientHandlers{}, nil)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	s := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(t)
	closing := make(chan error)
	go func() {
		<-stop
		closing <- conn.Close()
	}()
	_, lost := s.Prompt(t.Context(), acp.TextBlock("wait"))
	<-closing
	_, invalid := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "."})
	_, cancelled := conn.NewSession(over, &acp.NewSessionRequest{Cwd: "/w"})
	_, closed := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"})
	_, prompt := s.Prompt(t.Context(), acp.TextBlock("again"))
	_, unsupported := conn.ListSessions(t.Context(), &acp.ListSessionsRequest{})
	for _, test := range []struct {
		err, is error
		unsent  bool
	}{
		{lost, acp.ErrClosed, false}, {invalid, acp.ErrInvalidParams, true}, {cancelled, context.Canceled, true},
		{closed, acp.ErrClosed, true}, {prompt, acp.ErrClosed, true}, {unsupported, acp.ErrUnsupported, true},
	} {
		if !errors.Is(test.err, test.is) || errors.Is(test.err, acp.ErrNotSent) != test.unsent {
			t.Errorf("%v: it is not %v, or ErrNotSent is not %v", test.err, test.is, test.unsent)
		}
	}
}

func TestNoTransport(t *testing.T) {
	_, err := acp.Connect(t.Context(), nil, acp.ClientHandlers{}, nil)
	if err == nil || !strings.Contains(err.Error(), "no transport") {
		t.Error(err)
	}
	if err := acp.ServeAgent(t.Context(), nil, complete(acp.AgentHandlers{}), nil); err == nil || !strings.Contains(err.Error(), "no transport") {
		t.Error(err)
	}
}

// The first line that is not a message is a warning, the others are not; nobody is told where lines are expected.
func TestNoiseIsReportedOnce(t *testing.T) {
	for name, test := range map[string]struct {
		opts acp.ConnOptions
		want int
	}{
		"as it is":  {acp.ConnOptions{}, 1},
		"skipped":   {acp.ConnOptions{SkipNoise: true}, 0},
		"with hook": {acp.ConnOptions{Hooks: acp.Hooks{Invalid: func([]byte, error) {}}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			test.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
			here, there := rpc.Pipe()
			conn := must.Get(rpc.Connect(t.Context(), here, nil, &test.opts))(t)
			peer := must.Get(there.Connect(t.Context()))(t)
			for _, line := range []string{"starting up", `{"jsonrpc":"2.0","method":"_x"}`, "still starting"} {
				must.Do(t, peer.Write([]byte(line)))
			}
			must.Do(t, peer.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"_y"}`)))
			for { // the answer to the request comes behind those to the lines
				line := must.Get(peer.Read())(t)
				if bytes.Contains(line, []byte("-32601")) {
					break
				}
			}
			must.Do(t, errors.Join(conn.Close(), peer.Close()))
			if n := strings.Count(log.String(), "level=WARN"); n != test.want || test.want > 0 && !strings.Contains(log.String(), "starting up") {
				t.Errorf("%d warnings: %s", n, &log)
			}
		})
	}
}

// A result of another type says what came and what was wanted.
func TestResultOfAnotherType(t *testing.T) {
	ext := &rpc.Extensions[rpc.Conn]{}
	rpc.Handle(ext, "_greet", func(context.Context, *rpc.Conn, *struct{}) (*string, error) { s := "hello"; return &s, nil })
	here, there := rpc.Pipe()
	serving := must.Get(rpc.Connect(t.Context(), there, ext, nil))(t)
	conn, err := rpc.Connect(t.Context(), here, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = rpc.Call[int](t.Context(), conn, "_greet", struct{}{})
	if err == nil || !strings.Contains(err.Error(), "got string, expected integer") {
		t.Error(err)
	}
	must.Do(t, errors.Join(conn.Close(), serving.Wait()))
}
