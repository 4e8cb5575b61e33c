package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

// exchange plays lines over a pipe whose client end is wrapped: the client writes lines with "> ", and the agent those
// with "< ". One WriteLines carries all consecutive lines of a side.
func exchange(t *testing.T, wrap func(rpc.Transport) rpc.Transport, lines ...string) {
	t.Helper()
	a, b := rpc.Pipe()
	client := must.Get(wrap(a).Connect(context.Background()))(t)
	agent := must.Get(b.Connect(context.Background()))(t)
	for len(lines) > 0 {
		from, to, mark := client, agent, lines[0][:2]
		if mark == "< " {
			from, to = to, from
		}
		n := slices.IndexFunc(lines, func(l string) bool { return l[:2] != mark })
		if n < 0 {
			n = len(lines)
		}
		var batch strings.Builder
		for _, line := range lines[:n] {
			batch.WriteString(line[2:] + "\n")
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := from.(rpc.FastStream).WriteLines([]byte(batch.String())); err != nil {
				t.Error(err)
			}
		})
		for _, line := range lines[:n] {
			got, err := to.Read()
			if err != nil || string(got) != line[2:] {
				t.Errorf("got %q, %v, want %q", got, err, line[2:])
			}
		}
		wg.Wait()
		lines = lines[n:]
	}
	must.Do(t, errors.Join(client.Close(), agent.Close()))
	if _, err := client.Read(); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("read after close: %v", err)
	}
}

var talk = []string{
	`> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`,
	`> {"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/"}}`,
	`< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{},"extra":0}}`,
	`< {"jsonrpc":"2.0","id":2,"result":{}}`,
	`< not JSON`,
}

var talkFindings = []string{
	`client → agent: INI-3 SHOULD: initialize request 1: /clientInfo: the client does not give its name and version`,
	`client → agent: INI-6 MUST: session/new request 2: missing property "mcpServers" (NewSessionRequest)`,
	`client → agent: INI-1 MUST: session/new request 2: the client sent this before the answer to initialize`,
	`agent → client: EXT-2 MUST NOT: initialize response 1: /extra: unknown member "extra" (InitializeResponse)`,
	`agent → client: INI-5 SHOULD: initialize response 1: /agentInfo: the agent does not give its name and version`,
	`agent → client: INI-6 MUST: session/new response 2: missing property "sessionId" (NewSessionResponse)`,
	`agent → client: TRN-5 MUST NOT: message: not JSON: invalid character 'o' in literal null (expecting 'u') (byte 2) (JSON-RPC)`,
}

func TestMonitor(t *testing.T) {
	var lines, findings []string
	m := conformance.NewMonitor(conformance.V1(), &conformance.MonitorOptions{
		OnMessage: func(m conformance.Message) {
			lines = append(lines, string(m.Line))
			for _, f := range m.Findings {
				findings = append(findings, fmt.Sprintf("%s: %s", f.Direction, f))
			}
		},
	})
	exchange(t, m.WrapClient, talk...)
	if len(lines) != len(talk) {
		t.Errorf("got %d messages, want %d", len(lines), len(talk))
	}
	if !slices.Equal(findings, talkFindings) {
		t.Errorf("got %s\nwant %s", list(findings), list(talkFindings))
	}
	if got, want := m.Stats(), (conformance.Stats{Messages: 5, Must: 5, Should: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := m.Stats().String(), "5 messages, 7 findings (5 MUST, 2 SHOULD, 0 advice)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// A second connection has its own ids, and the same counts.
	exchange(t, m.WrapClient, talk[:1]...)
	if got, want := m.Stats(), (conformance.Stats{Messages: 6, Must: 5, Should: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestMonitorConnectError(t *testing.T) {
	a, _ := rpc.Pipe()
	m := conformance.NewMonitor(conformance.V1(), nil)
	wrapped := m.WrapClient(a)
	s := must.Get(wrapped.Connect(context.Background()))(t)
	if _, err := wrapped.Connect(context.Background()); err == nil {
		t.Error("a pipe connected twice")
	}
	must.Do(t, s.Close())
	if err := s.Write([]byte("{}")); err == nil {
		t.Error("a closed stream took a message")
	}
}

// recorder is a test that is observed from outside.
type recorder struct {
	errors, logs []string
	cleanups     []func()
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) Logf(format string, args ...any) {
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) end() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}

func tapTalk(t *testing.T, options *conformance.TapOptions) *recorder {
	t.Helper()
	r := &recorder{}
	exchange(t, func(inner rpc.Transport) rpc.Transport {
		return conformance.Tap(r, conformance.Client, inner, options)
	}, talk...)
	r.end()
	return r
}

func TestTap(t *testing.T) {
	r := tapTalk(t, &conformance.TapOptions{Level: conformance.Should})
	if len(r.errors) != len(talkFindings) {
		t.Fatalf("got %s", list(r.errors))
	}
	for i, want := range talkFindings {
		if !strings.HasPrefix(r.errors[i], want+"\n\t") {
			t.Errorf("got %q, want %q", r.errors[i], want)
		}
	}
	if want := []string{"conformance: 5 messages, 7 findings (5 MUST, 2 SHOULD, 0 advice)"}; !slices.Equal(r.logs, want) {
		t.Errorf("got %q, want %q", r.logs, want)
	}
}

func TestTapExpect(t *testing.T) {
	messages := 0
	options := &conformance.TapOptions{
		Schema: conformance.V1(),
		Expect: []string{`session/new request 2: missing property "mcpServers"`, "INI-1", "not JSON", "never seen"},
		Ignore: func(f conformance.Finding) bool {
			return f.Direction == conformance.ToClient && f.Kind == conformance.Response
		},
		OnMessage: func(conformance.Message) { messages++ },
	}
	r := tapTalk(t, options)
	if want := []string{`conformance: no finding contained "never seen"`}; !slices.Equal(r.errors, want) {
		t.Errorf("got %q, want %q", r.errors, want)
	}
	if messages != len(talk) {
		t.Errorf("got %d messages, want %d", messages, len(talk))
	}
}

// TestTapConcurrently reads and writes concurrently, and continues after the end of the test.
func TestTapConcurrently(t *testing.T) {
	r := &recorder{}
	a, b := rpc.Pipe()
	client := must.Get(conformance.Tap(r, conformance.Client, a, nil).Connect(context.Background()))(t)
	agent := must.Get(b.Connect(context.Background()))(t)
	const n = 200
	var wg sync.WaitGroup
	for _, s := range []rpc.Stream{client, agent} {
		wg.Go(func() {
			for range n {
				if _, err := s.Read(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	write := func(s rpc.Stream, line string) {
		for range n {
			if err := s.Write([]byte(line)); err != nil {
				t.Error(err)
				return
			}
		}
	}
	const note = `{"jsonrpc":"2.0","method":"$/note"}`
	wg.Go(func() { write(client, note) })
	wg.Go(func() { write(agent, note) })
	wg.Wait()
	r.end()
	if want := []string{fmt.Sprintf("conformance: %d messages, 0 findings", 2*n)}; !slices.Equal(r.logs, want) {
		t.Errorf("got %q, want %q", r.logs, want)
	}
	wg.Go(func() {
		if _, err := agent.Read(); err != nil {
			t.Error(err)
		}
	})
	must.Do(t, client.Write([]byte("late")))
	wg.Wait()
	if len(r.errors) > 0 {
		t.Errorf("got %s", list(r.errors))
	}
	must.Do(t, errors.Join(client.Close(), agent.Close()))
}

// TestMonitorEnd ends the connection while a prompt is in flight. This is the agent's fault if the agent closed the
// connection, but not if the client did. An answer that the stream knows to be lost is no end.
func TestMonitorEnd(t *testing.T) {
	for name, test := range map[string]struct {
		first conformance.Side // who closes first
		wrap  conformance.Side // the end with the monitor
		lost  error            // what the client reads before that
		want  string
	}{
		"the agent, seen by the client":   {conformance.Agent, conformance.Client, nil, "PRM-5"},
		"the agent, seen by the agent":    {conformance.Agent, conformance.Agent, nil, "PRM-5"},
		"the client, seen by the client":  {conformance.Client, conformance.Client, nil, ""},
		"the client, seen by the agent":   {conformance.Client, conformance.Agent, nil, ""},
		"the client, after a lost answer": {conformance.Client, conformance.Client, &rpc.CallLostError{ID: rpc.IntID(2)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var found []string
			m := conformance.NewMonitor(conformance.V1(), &conformance.MonitorOptions{OnEnd: func(findings []conformance.Finding) {
				for _, f := range findings {
					found = append(found, f.Rule)
				}
			}})
			var lost error
			var atClient, atAgent rpc.Transport = rpc.Pipe()
			atClient = failing{atClient, &lost}
			if test.wrap == conformance.Client {
				atClient = m.WrapClient(atClient)
			} else {
				atAgent = m.WrapAgent(atAgent)
			}
			client := must.Get(atClient.Connect(t.Context()))(t)
			agent := must.Get(atAgent.Connect(t.Context()))(t)
			pass := func(from, to rpc.Stream, line string) {
				t.Helper()
				var wg sync.WaitGroup
				wg.Go(func() {
					if err := from.Write([]byte(line)); err != nil {
						t.Error(err)
					}
				})
				if _, err := to.Read(); err != nil {
					t.Error(err)
				}
				wg.Wait()
			}
			pass(client, agent, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
			pass(agent, client, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"a","version":"1"}}}`)
			pass(client, agent, `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
			pass(agent, client, `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`)
			pass(client, agent, `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}}`)
			if lost = test.lost; lost != nil {
				if _, err := client.Read(); err != lost {
					t.Error(err)
				}
				lost = nil
			}
			ends := []rpc.Stream{client, agent}
			if test.first == conformance.Agent {
				slices.Reverse(ends)
			}
			must.Do(t, ends[0].Close())
			for _, end := range ends { // each end reads the end of the stream
				if line, err := end.Read(); err == nil {
					t.Errorf("read %q", line)
				}
			}
			must.Do(t, ends[1].Close())
			if got := strings.Join(found, " "); got != test.want || m.Stats().Findings() != len(found) {
				t.Errorf("got %q and %s, want %q", got, m.Stats(), test.want)
			}
		})
	}
}

// failing is a transport whose streams fail to read while there is an error.
type failing struct {
	rpc.Transport
	err *error
}

func (f failing) Connect(ctx context.Context) (rpc.Stream, error) {
	stream, err := f.Transport.Connect(ctx)
	return rpc.Wrap(stream, rpc.Wrapper{Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
		if *f.err != nil {
			return nil, *f.err
		}
		return next()
	}}), err
}
