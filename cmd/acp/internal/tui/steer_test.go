package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
)

// steerable is an agent that accepts prompts in a running turn.
type steerable struct {
	t       *testing.T
	outcome string
	fails   bool

	mu   sync.Mutex
	said []string
}

type steerParams struct {
	SessionID acp.SessionID      `json:"sessionId"`
	Prompt    []acp.ContentBlock `json:"prompt"`
	Meta      struct {
		Steering struct {
			IdleBehavior string `json:"idleBehavior"`
		} `json:"steering"`
	} `json:"_meta"`
}

func (a *steerable) connect(context.Context) (acp.Transport, error) {
	client, agent := acp.Pipe()
	extensions := &acp.Extensions[acp.AgentConn]{}
	rpc.Handle(extensions, "_session/steering", func(_ context.Context, _ *acp.AgentConn, p *steerParams) (*map[string]string, error) {
		text := p.Prompt[0].Text()
		a.mu.Lock()
		defer a.mu.Unlock()
		a.said = append(a.said, fmt.Sprintf("%s: %s (%s)", p.SessionID, text, p.Meta.Steering.IdleBehavior))
		if a.fails {
			return nil, errors.New("not now")
		}
		return &map[string]string{"outcome": a.outcome}, nil
	})
	_, err := acp.StartAgent(context.Background(), agent, complete(acp.AgentHandlers{Prompt: slow, Extensions: extensions}), &acp.AgentOptions{
		Info: acp.Implementation{Name: "tester", Version: "1"},
		Initialize: func(_ context.Context, _ *acp.InitializeRequest, res *acp.InitializeResponse) error {
			return res.Meta.Set("steering", map[string]bool{"supported": true})
		},
	})
	return conformance.Tap(a.t, conformance.Client, client, &conformance.TapOptions{Schema: conformance.Negotiated(conformance.V1Unstable(), conformance.V2Unstable())}), err
}

// TestSteer: a prompt sent into a turn reaches the agent at once; if the agent does not accept it, it is queued.
func TestSteer(t *testing.T) {
	for _, test := range []struct {
		outcome string
		fails   bool
		want    string
		waits   bool
	}{
		{"injected", false, "Sent into the turn: left", false},
		{"startedNewTurn", false, "a new one has begun: left", false},
		{"promptRequired", false, "⏳ left", true},
		{"failed", false, "The agent says: failed", true},
		{"", true, "queued until its end", true},
	} {
		t.Run(test.outcome, func(t *testing.T) {
			a := &steerable{t: t, outcome: test.outcome, fails: test.fails}
			inWorld(t, acp.AgentHandlers{}, func(o *Options) { o.Talk.Agent.Connect = a.connect }, func(w *world) {
				w.settle()
				w.say("go")
				w.sleep(time.Second)
				w.typ("left")
				w.key("alt+s")
				w.sleep(time.Second)
				w.want(test.want, "Begun: go.")
				if got, want := a.said, []string{"s1: left (promptRequired)"}; !slices.Equal(got, want) {
					t.Errorf("the agent got %q, want %q", got, want)
				}
				w.say("then")
				w.key("alt+q", "alt+s") // the last queued one
				w.sleep(time.Second)
				if len(a.said) != 2 {
					t.Errorf("the agent got %q", a.said)
				}
				w.sleep(2 * time.Minute)
				if test.waits {
					w.want("Begun: left.")
				} else {
					w.wantNot("Begun: left.")
				}
			})
		})
	}
}

// TestSteerCannot: an agent that does not accept prompts in a running turn gets them afterwards.
func TestSteerCannot(t *testing.T) {
	inWorld(t, acp.AgentHandlers{Prompt: slow}, nil, func(w *world) {
		w.settle()
		w.typ("one")
		w.key("alt+s") // no turn is running
		w.sleep(time.Second)
		w.want("Begun: one.")
		w.typ("two")
		w.key("alt+s")
		w.sleep(time.Second)
		w.want("does not accept prompts in a running turn", "⏳ two")
		w.sleep(time.Minute)
		w.want("Begun: two.")
	})
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
