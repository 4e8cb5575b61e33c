package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
)

// No form of a request for files or terminals reaches the client, and nothing else is kept from it.
func TestGuard(t *testing.T) {
	refused := map[string]string{ // what the agent gets
		`{"jsonrpc":"2.0","id":1,"method":"fs/write_text_file","params":{"sessionId":"s"}}`: `"id":1,"error":{"code":-32601`,
		`{"id":"a","method":"terminal/create"}`:                                             `"id":"a","error":{"code":-32601`,
		`{"id":1,"method":"\u0066s/read_text_file"}`:                                        `"id":1,"error":{"code":-32601`,
		`{"id":1,"method":"terminal/create","method":"session/update"}`:                     `"id":null,"error":{"code":-32600`,
		`{"id":1,"method":"session/update","METHOD":"terminal/create"}`:                     `"id":null,"error":{"code":-32600`,
		`{"id":1,"method":"terminal/future","result":{}}`:                                   `"id":null,"error":{"code":-32600`,
		` [{"id":1,"method":"terminal/create"}]`:                                            `"id":null,"error":{"code":-32600`,
		`{"id":1,"method":"terminal/create"`:                                                `"id":null,"error":{"code":-32600`,
		`{"id":1,"method":"a"} {"id":1,"method":"terminal/create"}`:                         `"id":null,"error":{"code":-32600`,
		`{"id":1,"method":"terminal/create",}`:                                              `"id":null,"error":{"code":-32600`,
		// A response with a login in a terminal, for some readers.
		`{"id":1,"METHOD":"x","result":{"authMethods":[{"type":"terminal"}]}}`:         `"id":null,"error":{"code":-32600`,
		`{"id":1,"method":"session/x","result":{"authMethods":[{"type":"terminal"}]}}`: `"id":null,"error":{"code":-32600`,
		`{"id":1,"result":{"authMethods":[{"type":"terminal"}]},"result":{}}`:          `"id":null,"error":{"code":-32600`,
		`{"id":1,"Result":{"authMethods":[{"type":"terminal"}]}}`:                      `"id":null,"error":{"code":-32600`,
		`{"id":1,"method":"session/x","error":{}}`:                                     `"id":null,"error":{"code":-32600`,
		`{"id":1,"method":""}`:         `"id":null,"error":{"code":-32600`,
		`{"method":"terminal/create"}`: "",
	}
	passes := map[string]string{ // what the client gets
		`{"id":1,"method":"session/request_permission","params":{"method":"terminal/create"}}`: "",
		"{\"x\":\r{\"id\":1,\"method\":\"terminal/create\"}\n}":                                `{"x": {"id":1,"method":"terminal/create"} }`,
		`{"method":"session/update","params":{}}`:                                              "",
		`{"id":1,"result":{"stopReason":"end_turn"}}`:                                          "",
		`{"id":1,"result":{"authMethods":[{"id":"a"},{"id":"b","type":"terminal","args":["x"]},{"id":"c","type":"agent","_meta":{"terminal-auth":{"command":"x"}}}],` +
			`"AuthMethods":[{"type":"terminal"}],"protocolVersion":1}}`: `{"id":1,"result":{"authMethods":[{"id":"a"}],"protocolVersion":1}}`,
		`{"id":1,"result":{"authMethods":[{"id":"b","type":"agent","type":"terminal"}]}}`: `{"id":1,"result":{"authMethods":[]}}`,
		`{"id":1,"result":{"authMethods":[{"id":"b","type":"agent"}]}}`:                   `{"id":1,"result":{"authMethods":[{"id":"b","type":"agent"}]}}`,
		`{"id":1,"method":null,"result":{"authMethods":[{"type":"terminal"}]}}`:           `{"id":1,"method":null,"result":{"authMethods":[]}}`,
		`{"id":1,"result":{"authMethods":[{"id":"b","_Meta":{"Terminal-Auth":{}}}]}}`:     `{"id":1,"result":{"authMethods":[]}}`,
	}
	const initialize = `{"id":0,"method":"initialize","params":{"clientCapabilities":{"fs":{"readTextFile":true},"terminal":true,"auth":{"terminal":true},` +
		`"elicitation":{},"_meta":{"terminal-auth":true,"x":1}},"protocolVersion":1}}`
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	// pass returns what the client gets of the agent's lines, and what the agent gets.
	pass := func(g *Guard, toAgent []string, fromAgent ...string) (client, agent []string) {
		t.Helper()
		g.Logger = log
		inner := &linesStream{in: fromAgent}
		stream := must.Get(g.Transport(inner).Connect(t.Context()))(t)
		for _, line := range toAgent {
			must.Do(t, stream.Write([]byte(line)))
		}
		for {
			line, err := stream.Read()
			if err == io.EOF {
				return client, inner.out
			} else if err != nil {
				t.Fatal(err)
			}
			client = append(client, string(line))
		}
	}
	for line, want := range refused {
		client, agent := pass(&Guard{}, nil, line)
		if len(client) > 0 || (len(agent) == 1) != (want != "") || want != "" && !strings.Contains(agent[0], want) {
			t.Errorf("%s: the client gets %s, the agent gets %s, want %s", line, client, agent, want)
		}
	}
	for line, want := range passes {
		if want == "" {
			want = line
		}
		if client, agent := pass(&Guard{}, nil, line); len(agent) > 0 || len(client) != 1 || client[0] != want {
			t.Errorf("%s: the client gets %s, the agent gets %s", line, client, agent)
		}
	}
	for _, g := range []Guard{{}, {Files: true}, {Terminals: true}, {Files: true, Terminals: true}} {
		client, agent := pass(&g, []string{initialize}, `{"id":1,"method":"fs/read_text_file"}`, `{"id":1,"method":"terminal/output"}`)
		for part, passes := range map[string]bool{`"capabilities"`: false, `"fs"`: g.Files, `"terminal":true`: g.Terminals, `"terminal-auth"`: g.Terminals, `"elicitation":{}`: true, `"x":1`: true} {
			if strings.Contains(agent[0], part) != passes {
				t.Errorf("%+v: initialize is %s", g, agent[0])
			}
		}
		got := strings.Join(client, "")
		if strings.Contains(got, "fs/") != g.Files || strings.Contains(got, "terminal/") != g.Terminals {
			t.Errorf("%+v: the client gets %s", g, got)
		}
	}
	const other = `{"id":1,"method":"_x","params":{"clientCapabilities":{"fs":{}}}}`
	if _, agent := pass(&Guard{}, []string{other}); agent[0] != other {
		t.Errorf("the agent gets %s", agent[0])
	}
	// Each method is logged once, and not any number of them.
	var many []string
	for i := range 2 * maxRefused {
		many = append(many, fmt.Sprintf(`{"method":"fs/%d"}`, i/2), fmt.Sprintf(`{"method":"fs/x%d"}`, i))
	}
	logged.Reset()
	pass(&Guard{}, nil, many...)
	if n := strings.Count(logged.String(), "level=WARN"); n != maxRefused {
		t.Errorf("%d refusals are logged, want %d", n, maxRefused)
	}
}

// linesStream is the stream of an agent that writes some lines and ends.
type linesStream struct{ in, out []string }

func (s *linesStream) Connect(context.Context) (rpc.Stream, error) { return s, nil }
func (s *linesStream) Close() error                                { return nil }

func (s *linesStream) Read() ([]byte, error) {
	if len(s.in) == 0 {
		return nil, io.EOF
	}
	line := s.in[0]
	s.in = s.in[1:]
	return []byte(line), nil
}

func (s *linesStream) Write(line []byte) error {
	s.out = append(s.out, string(line))
	return nil
}
