package proxy_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/conduct"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/proxy"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// allTransparent has a hook that changes nothing for every method.
func allTransparent() proxy.Hooks {
	var hooks proxy.Hooks
	v := reflect.ValueOf(&hooks).Elem()
	for _, f := range v.Fields() {
		if f.Kind() == reflect.Func {
			f.Set(reflect.MakeFunc(f.Type(), func(args []reflect.Value) []reflect.Value {
				return args[2].Call(args[:2]) // next(ctx, req)
			}))
		}
	}
	return hooks
}

// A whole turn through proxies is what it is without them, and nobody sends what the protocol does not allow.
func TestWholeTurn(t *testing.T) {
	tier.Need(t, tier.Normal)
	exampleAgent := buildtest.Program(t, "../../internal/test/actor/actor")
	dir := t.TempDir()
	type chain struct {
		name      string
		hops      int
		hooks     proxy.Hooks
		conductor bool
	}
	var direct []string
	for _, c := range []chain{
		{name: "direct"},
		{name: "one", hops: 1},
		{name: "one with hooks", hops: 1, hooks: allTransparent()},
		{name: "three", hops: 3},
		{name: "three with hooks", hops: 3, hooks: allTransparent()},
		{name: "conductor, none", conductor: true},
		{name: "conductor, one", hops: 1, conductor: true},
		{name: "conductor, three with hooks", hops: 3, hooks: allTransparent(), conductor: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(exampleAgent, "-state", t.TempDir())
			var agent acp.Transport = conformance.Tap(t, conformance.Client, acp.Command(cmd), &conformance.TapOptions{Level: conformance.Advice})
			var hops sync.WaitGroup
			defer hops.Wait()
			serve := func(up, down acp.Transport) {
				hops.Go(func() {
					if err := proxy.Serve(t.Context(), up, down, c.hooks, nil); err != nil {
						t.Errorf("a proxy ended with %v", err)
					}
				})
			}
			if c.conductor {
				var components []conduct.Component
				for i := range c.hops {
					near, far := acp.Pipe()
					serve(far, nil)
					components = append(components, conduct.Component{Name: fmt.Sprint("hop ", i), Transport: judged{near, t}})
				}
				near, far := acp.Pipe()
				last := &conduct.Component{Name: "agent", Transport: agent}
				hops.Go(func() {
					if err := conduct.Run(t.Context(), far, components, last, nil); err != nil {
						t.Errorf("the conductor ended with %v", err)
					}
				})
				agent = near
			} else {
				for range c.hops {
					near, far := acp.Pipe()
					serve(far, agent)
					agent = near
				}
			}
			got := wholeTurn(t, agent, dir)
			if c.name == "direct" {
				direct = got
				if len(direct) < 30 {
					t.Fatalf("the turn has only %d messages", len(direct))
				}
				return
			}
			want := direct
			if c.conductor { // which gives the requests other ids
				want = slices.Clone(want)
				for i := range got {
					got[i] = anyID.ReplaceAllString(got[i], "ID,")
				}
				for i := range want {
					want[i] = anyID.ReplaceAllString(want[i], "ID,")
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// judged is a transport between a conductor and a proxy on which each message is judged: those in envelopes as those of a
// client, the others as those of an agent, and the envelopes by the schema.
type judged struct {
	acp.Transport
	t *testing.T
}

func (j judged) Connect(ctx context.Context) (rpc.Stream, error) {
	stream, err := j.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	envelopes := conformance.NewValidator(conformance.V1Unstable())
	judges := [2]*conformance.Judge{conformance.NewJudge(conformance.V1(), nil), conformance.NewJudge(conformance.V1(), nil)}
	wrapped := map[string]int{} // whether a request was in an envelope, by its sender and id
	report := func(line []byte, findings []conformance.Finding) {
		for _, f := range findings {
			j.t.Errorf("at a proxy: %s\n\t%.300s", f, line)
		}
	}
	see := func(d conformance.Direction, line []byte) {
		mu.Lock()
		defer mu.Unlock()
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ RequestID json.RawMessage }
		}
		if err := json.Unmarshal(line, &m); err != nil {
			j.t.Errorf("%v: %.300s", err, line)
			return
		}
		text, as := strings.Replace(string(line), `"proxy/initialize"`, `"initialize"`, 1), 0
		switch m.Method {
		case "":
			as = wrapped[d.Sender().Peer().String()+string(m.ID)]
		case "$/cancel_request":
			as = wrapped[d.Sender().String()+string(m.Params.RequestID)]
		case "proxy/successor":
			report(line, envelopes.Message(d, line))
			head, inner, _ := strings.Cut(text, `"method":"proxy/successor","params":{`)
			text, as = head+strings.TrimSuffix(inner, "}"), 1
		}
		if m.Method != "" {
			wrapped[d.Sender().String()+string(m.ID)] = as
		}
		if as == 1 { // the proxy is the client
			d = conformance.ToAgent + conformance.ToClient - d
		}
		report(line, judges[as].Message(conformance.Message{Direction: d, Line: []byte(text)}))
	}
	j.t.Cleanup(func() {
		for _, judge := range judges {
			judge.Closed(conformance.Client)
			report(nil, judge.End())
		}
	})
	return rpc.Wrap(stream, rpc.Wrapper{
		Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
			line, err := next()
			if err == nil {
				see(conformance.ToClient, line)
			}
			return line, err
		},
		Write: func(line []byte) ([]byte, error) {
			see(conformance.ToAgent, line)
			return line, nil
		},
	}), nil
}

var (
	anyID  = regexp.MustCompile(`"id":(\d+|"[^"]*"),`)
	random = regexp.MustCompile(`(call|msg|term)_[A-Z0-9]+|[-0-9]{10}T[:.0-9]+Z`)
)

// wholeTurn drives the reference agent, and returns what the client has sent and received, in the order of each
// direction. The last turn is cancelled while the agent asks.
func wholeTurn(t *testing.T, transport acp.Transport, dir string) []string {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("Buy milk.\n"), 0o600))
	var recording conformance.Recording
	commands := make(chan struct{})
	last := false
	handlers := acp.ClientHandlers{
		RequestPermission: func(ctx context.Context, session *acp.ClientSession, _ *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			if last {
				err := session.Cancel(ctx)
				<-ctx.Done()
				return nil, errors.Join(err, ctx.Err())
			}
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("allow")}, nil
		},
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			if _, ok := n.Update.Variant.(*acp.SessionUpdateAvailableCommandsUpdate); ok {
				close(commands)
			}
			return nil
		},
	}
	machine := must.Get(local.Serve(&handlers, local.Trusted(), dir))(t)
	defer machine.Close()
	tap := conformance.Tap(t, conformance.Client, transport, &conformance.TapOptions{OnMessage: recording.Add, Level: conformance.Advice})
	agent := must.Get(acp.Connect(t.Context(), tap, handlers, &acp.ClientOptions{Info: acp.Implementation{Name: "test", Version: "1"}}))(t)
	session := must.Get(agent.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir}))(t)
	<-commands // they may also come in the turn
	for _, turn := range []struct {
		prompt string
		want   acp.StopReason
	}{
		{"plan, think, read notes.txt, edit notes.txt, run `echo hello`, permission", acp.StopReasonEndTurn},
		{"fail", acp.StopReasonEndTurn}, {"mode", acp.StopReasonEndTurn}, {"refuse", acp.StopReasonRefusal},
		{"permission", acp.StopReasonCancelled},
	} {
		last = turn.want == acp.StopReasonCancelled
		if res, err := session.Prompt(t.Context(), acp.TextBlock(turn.prompt)); err != nil || res.StopReason != turn.want {
			t.Errorf("%s: %v, %v", turn.prompt, res, err)
		}
	}
	if _, err := agent.Authenticate(t.Context(), &acp.AuthenticateRequest{MethodID: "no such"}); err == nil {
		t.Error("there is every way to log in")
	}
	must.Do(t, agent.Close())
	var out []string
	for _, m := range recording.Messages() {
		line := strings.ReplaceAll(string(m.Line), string(session.ID()), "SESSION")
		if strings.Contains(line, `"$/cancel_request"`) {
			continue // which the agent sends only if the client's answer, which follows the cancellation, does not come first
		}
		line = random.ReplaceAllString(line, "$1")
		out = append(out, fmt.Sprintf("%s %s", m.Direction, line))
	}
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(a[:5], b[:5]) })
	return out
}
