package conduct_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/conduct"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// exampleCommand is the reference agent as a component.
func exampleCommand(t *testing.T) conduct.Component {
	t.Helper()
	return conduct.Component{Name: "agent", Transport: started(exec.Command(exampleAgent, "-state", t.TempDir()))}
}

// judged is a proxy each of whose messages is judged: those that it exchanges with its predecessor as those of an agent,
// those with its successor as those of a client, and the envelopes by the schema.
func judged(t *testing.T, proxy conduct.Component) conduct.Component {
	t.Helper()
	h := &hop{t: t, name: proxy.Name, agent: conformance.NewJudge(conformance.V1(), nil), client: conformance.NewJudge(conformance.V1(), nil), envelopes: conformance.NewValidator(conformance.V1Unstable()), wrapped: map[string]bool{}}
	t.Cleanup(func() {
		h.agent.Closed(conformance.Client)
		h.client.Closed(conformance.Client)
		h.report(nil, h.agent.End())
		h.report(nil, h.client.End())
		if h.count == 0 {
			t.Errorf("%s: no message was judged", h.name)
		}
	})
	inner := proxy.Transport
	proxy.Transport = transport(func(ctx context.Context) (rpc.Stream, error) {
		s, err := inner.Connect(ctx)
		if err != nil {
			return nil, err
		}
		return rpc.Wrap(s, rpc.Wrapper{
			Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
				line, err := next()
				if err == nil {
					h.see(false, line)
				}
				return line, err
			},
			Write: func(line []byte) ([]byte, error) {
				h.see(true, line)
				return line, nil
			},
		}), nil
	})
	return proxy
}

type hop struct {
	t             *testing.T
	name          string
	agent, client *conformance.Judge // of the proxy as an agent, and as a client
	envelopes     *conformance.Validator

	mu      sync.Mutex
	wrapped map[string]bool // whether a request was in an envelope, by its sender and id
	count   int
}

// see judges a message between the conductor and the proxy.
func (h *hop) see(toProxy bool, line []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count++
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		h.t.Errorf("%s: %v: %s", h.name, err, line)
		return
	}
	var wrapped bool
	switch {
	case m.Method == "":
		wrapped = h.wrapped[fmt.Sprint(!toProxy, string(m.ID))]
	case m.Method == "$/cancel_request":
		var p struct{ RequestID json.RawMessage }
		if err := json.Unmarshal(m.Params, &p); err != nil {
			h.t.Errorf("%s: %v: %s", h.name, err, line)
		}
		wrapped = h.wrapped[fmt.Sprint(toProxy, string(p.RequestID))]
	case m.Method == "proxy/successor":
		wrapped = true
		d := conformance.ToClient
		if toProxy {
			d = conformance.ToAgent
		}
		h.report(line, h.envelopes.Message(d, line))
		var inner message
		if err := json.Unmarshal(m.Params, &inner); err != nil {
			h.t.Errorf("%s: %v: %s", h.name, err, line)
		}
		m.Method, m.Params = inner.Method, inner.Params
	case m.Method == "proxy/initialize":
		m.Method = "initialize"
	}
	if m.Method != "" && m.ID != nil {
		h.wrapped[fmt.Sprint(toProxy, string(m.ID))] = wrapped
	}
	if m.Method != "" {
		line, _ = json.Marshal(m) // it was decoded
	}
	judge, d := h.agent, conformance.ToClient
	if wrapped {
		judge, d = h.client, conformance.ToAgent
	}
	if toProxy {
		d = conformance.ToAgent + conformance.ToClient - d
	}
	h.report(line, judge.Message(conformance.Message{Direction: d, Line: line}))
}

func (h *hop) report(line []byte, findings []conformance.Finding) {
	for _, f := range findings {
		h.t.Errorf("%s: %s\n\t%.300s", h.name, f, line)
	}
}

// The conversation of a client with the reference agent is the same through any number of proxies, and each hop is judged.
func TestChains(t *testing.T) {
	tier.Need(t, tier.Normal)
	var direct []string
	for _, way := range []string{"direct", "processes", "1", "0", "2", "3"}[:tier.Pick(0, 3, 6, 6)] {
		t.Run(way, func(t *testing.T) {
			agent := exampleCommand(t)
			agent.Transport = conformance.Tap(t, conformance.Client, agent.Transport, &conformance.TapOptions{Level: conformance.Advice})
			to := agent.Transport
			var proxies []conduct.Component
			n := 0
			switch way {
			case "direct":
			case "processes":
				proxies = []conduct.Component{program(t, "pass"), program(t, "pass"), program(t, "pass")}
			default:
				fmt.Sscan(way, &n)
				for i := range n {
					proxies = append(proxies, inMemory(t, fmt.Sprintf("P%d", i), passOn))
				}
			}
			for i := range proxies {
				proxies[i] = judged(t, proxies[i])
			}
			if way != "direct" {
				client, ended := run(t.Context(), proxies, &agent, nil)
				defer func() {
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}()
				to = client
			}
			talk := talkToExample(t, to)
			if way == "direct" {
				direct = talk
				return
			}
			compare(t, talk, direct)
			t.Logf("%d messages", len(talk))
		})
	}
}

// talkToExample talks to the reference agent, and returns what passed.
func talkToExample(t *testing.T, to rpc.Transport) []string {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("Buy milk.\n"), 0o600))
	var recording conformance.Recording
	answers := 0
	handlers := acp.ClientHandlers{
		RequestPermission: func(ctx context.Context, session *acp.ClientSession, _ *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			if answers++; answers == 4 { // in the last turn
				if err := session.Cancel(ctx); err != nil {
					t.Error(err)
				}
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("allow")}, nil
		},
	}
	machine := must.Get(local.Serve(&handlers, local.Trusted(), dir))(t)
	defer machine.Close()
	tap := conformance.Tap(t, conformance.Client, to, &conformance.TapOptions{OnMessage: recording.Add, Level: conformance.Advice})
	agent := must.Get(acp.Connect(t.Context(), tap, handlers, &acp.ClientOptions{Info: acp.Implementation{Name: "test", Version: "1"}}))(t)
	session := must.Get(agent.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir}))(t)
	for _, prompt := range []string{"plan, think, read notes.txt, edit notes.txt, run `echo hello`, permission", "fail", "mode", "refuse"} {
		if _, err := session.Prompt(t.Context(), acp.TextBlock(prompt)); err != nil {
			t.Errorf("%s: %v", prompt, err)
		}
	}
	if res, err := session.Prompt(t.Context(), acp.TextBlock("permission")); err != nil || res.StopReason != acp.StopReasonCancelled || answers != 4 {
		t.Errorf("cancelled: %v, %v, after %d questions", res, err, answers)
	}
	if _, err := agent.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: "no-such-session", Cwd: dir}); err == nil {
		t.Error("an unknown session is no error")
	}
	must.Do(t, agent.Close())
	return normalized(recording.Messages(), dir)
}

// changing is what differs from run to run: ids, times, and the numbers of processes.
var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[0-9:.]+Z|[a-zA-Z2-7]{26}|[0-9a-f]{16,}`)

// normalized are the messages of each direction, without ids and what changes. The agent cancels its question only if that
// is not answered yet: the client's answer, which follows its cancellation, may come first.
func normalized(messages []conformance.Message, dir string) []string {
	var all []string
	for _, d := range []conformance.Direction{conformance.ToAgent, conformance.ToClient} {
		for _, m := range messages {
			if m.Direction != d {
				continue
			}
			var fields map[string]json.RawMessage
			if json.Unmarshal(m.Line, &fields) == nil && string(fields["method"]) == `"$/cancel_request"` {
				continue
			}
			if fields["id"] != nil {
				m.Line = bytes.Replace(m.Line, append([]byte(`"id":`), fields["id"]...), []byte(`"id":ID`), 1)
			}
			line := strings.ReplaceAll(string(m.Line), dir, "DIR")
			all = append(all, d.String()+": "+changing.ReplaceAllString(line, "CHANGING"))
		}
	}
	return all
}

// compare compares conversations.
func compare(t *testing.T, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("message %d of %d, %d:\n got %.400s\nwant %.400s", i, len(got), len(want), g, w)
			return
		}
	}
}
