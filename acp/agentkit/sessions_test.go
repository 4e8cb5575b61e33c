package agentkit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// atOnce plays a conversation whose actions do not wait for one another, except the last ones, and returns what came of
// it.
func atOnce(t *testing.T, settings string, actions []string, last ...string) (said []string) {
	t.Helper()
	text := settings + "> new\n>& " + strings.Join(actions, "\n>& ") + "\n> " + strings.Join(append([]string{"sleep 1s"}, last...), "\n> ") + "\n"
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		for line := range strings.Lines(perform(t, dir, text)) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "< ") {
				said = append(said, line)
			}
		}
	})
	return said[1:] // without the new session
}

// The order of turns is that of the messages, also when they come at once and their handlers race, with one another and
// with changes of the mode. Nothing of the state is lost.
func TestQueueOrderAtOnce(t *testing.T) {
	tier.Need(t, tier.Normal)
	const n = 100
	var actions, want []string
	for i := range n {
		actions = append(actions, fmt.Sprintf("prompt#a%d say %d; mode loud; count", i, i), "mode loud")
		want = append(want, fmt.Sprintf("< agent: %d", i), fmt.Sprintf("< a%d: end_turn", i))
	}
	settings := fmt.Sprintf("store\nbusy queue\nuntitled\nmodes plain loud\nconfig {\"MaxWaiting\":%d}\n", n)
	said := atOnce(t, settings, actions, "close", "load", "prompt state")
	var turns []string
	for _, line := range said {
		if strings.HasPrefix(line, "< a") && len(turns) < len(want) {
			turns = append(turns, line)
		}
	}
	wantLines(t, "what passed", turns, want...)
	for _, line := range []string{"< load: mode loud of plain loud; options: mode=loud", fmt.Sprintf("- %d prompts, 0 quoted, style , loud false, model", n)} {
		if !slices.Contains(said, line) {
			t.Errorf("no line %q", line)
		}
	}
}

// Messages that a client sends right after the prompt, without waiting for answers, reach the turn in their order and
// are answered in it, whether the turn takes them or not.
func TestSteeringOrder(t *testing.T) {
	const messages = 16 // as many as may wait
	for _, takes := range []int{messages, messages / 2, 0} {
		t.Run(fmt.Sprintf("%d taken", takes), func(t *testing.T) {
			actions := []string{fmt.Sprintf("prompt times %d { grab }", takes)}
			var took, answered []string
			for n := range messages {
				actions = append(actions, fmt.Sprintf("steer#m%d %d", n, n))
				if n < takes {
					took = append(took, fmt.Sprintf("- took %d", n))
				}
				answered = append(answered, fmt.Sprintf("< m%d", n))
			}
			for range tier.Pick(10, 15, 30, 50) {
				var gotTook, gotAnswered []string
				for _, line := range atOnce(t, "busy steer\nuntitled\n", actions) {
					if label, _, _ := strings.Cut(line, ":"); strings.HasPrefix(line, "- ") {
						gotTook = append(gotTook, line)
					} else if strings.HasPrefix(line, "< m") {
						gotAnswered = append(gotAnswered, label)
					}
				}
				wantLines(t, "taken", gotTook, took...)
				wantLines(t, "answered", gotAnswered, answered...)
			}
		})
	}
}

// A prompt that is sent together with the end of its session, behind another one, is cancelled with it or refused.
func TestPromptBehindAClose(t *testing.T) {
	for _, busy := range []string{"queue", "steer"} {
		t.Run(busy, func(t *testing.T) {
			// The rule takes a prompt that was sent after session/close, and before its answer, for one that it must cancel.
			settings := "accept SES-15 prompts are sent behind the close on purpose\nuntitled\nbusy " + busy + "\n"
			for range 100 {
				said := atOnce(t, settings, []string{"prompt until; error cause", "close", "prompt#behind until; error cause"})
				answers := 0
				for _, line := range said {
					answer, is := strings.CutPrefix(line, "< behind: ")
					if is {
						answers++
					}
					if is && answer != "cancelled" && !strings.HasPrefix(answer, "error -32002 ") && !strings.HasPrefix(answer, "error -32600 ") {
						t.Fatalf("answered %s", answer)
					}
				}
				if answers != 1 || len(said) != 3 {
					t.Fatalf("answered %q", said)
				}
			}
		})
	}
}

// Config.Extend adds to what Serve serves, with the options that the sessions need; Serve closes them after the client.
func TestExtend(t *testing.T) {
	var closed []string
	sessions := agentkit.NewSessions(agentkit.Config[state]{
		Prompt:    silent[state],
		WhileBusy: agentkit.Queue,
		Close:     func(s *agentkit.Session[state]) { closed = append(closed, s.Cwd()) },
		Extend: func(handlers *acp.AgentHandlers, opts *acp.AgentOptions) {
			opts.MCP.HTTP = true
			opts.Info.Version = "2"
			handlers.Logout = func(context.Context, *acp.AgentConn, *acp.LogoutRequest) (*acp.LogoutResponse, error) {
				return &acp.LogoutResponse{}, nil
			}
		},
	})
	theirs, ours := acp.Pipe()
	given := &acp.AgentOptions{Info: acp.Implementation{Name: "agent", Version: "1"}}
	served := make(chan error, 1)
	go func() { served <- sessions.Serve(context.Background(), theirs, given) }()
	c := must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, ours, nil), acp.ClientHandlers{}, nil))(t)
	told := c.Initialized()
	if caps := told.AgentCapabilities; !caps.MCPCapabilities.HTTP || !caps.Auth.Logout.Present() || told.AgentInfo.Value().Version != "2" {
		t.Errorf("advertised %+v", told)
	}
	if given.MCP.HTTP || given.Info.Version != "1" {
		t.Errorf("Extend has changed the options of the caller: %+v", given)
	}
	must.Get(c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}))(t)
	must.Do(t, errors.Join(c.Close(), <-served))
	wantLines(t, "closed", closed, "/w")
}

// An author adds extensions with and without Steer, and the options of the sessions keep the author's.
func TestExtensions(t *testing.T) {
	for _, busy := range []agentkit.WhileBusy{agentkit.Refuse, agentkit.Steer} {
		sessions := agentkit.NewSessions(agentkit.Config[any]{Prompt: silent[any], WhileBusy: busy})
		handlers := sessions.Handlers()
		rpc.Handle(handlers.Extensions, "_own", func(context.Context, *acp.AgentConn, *struct{}) (*struct{}, error) { return &struct{}{}, nil })
		near, far := acp.Pipe()
		agent := must.Get(acp.StartAgent(t.Context(), far, handlers, sessions.Options(nil)))(t)
		c := must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, near, nil), acp.ClientHandlers{}, nil))(t)
		must.Get(rpc.Call[struct{}](t.Context(), c.RPC(), "_own", struct{}{}))(t)
		must.Do(t, errors.Join(c.Close(), agent.Wait()))
		sessions.Close()
	}
	sessions := agentkit.NewSessions(agentkit.Config[any]{Prompt: silent[any], Store: open(t, t.TempDir()), Fork: true})
	_, far := acp.Pipe()
	opts := &acp.AgentOptions{Experimental: acp.FeatureUsage}
	if _, err := acp.StartAgent(t.Context(), far, sessions.Handlers(), opts); !errors.Is(err, acp.ErrExperimental) {
		t.Errorf("without Sessions.Options: %v", err)
	}
	if got := sessions.Options(opts).Experimental; got != acp.FeatureUsage|acp.FeatureFork {
		t.Errorf("enabled: %v", got)
	}
}

// NewSessions panics for commands that are not complete; a nil plan shows nothing.
func TestWrongUses(t *testing.T) {
	run := func(context.Context, *agentkit.Turn[any], string) error { return nil }
	for _, wrong := range [][]agentkit.Command[any]{
		{{Run: run}}, {{Name: "a b", Run: run}}, {{Name: "a"}}, {{Name: "a", Run: run}, {Name: "a", Run: run}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("taken: %+v", wrong)
				}
			}()
			agentkit.NewSessions(agentkit.Config[any]{Prompt: silent[any], Commands: wrong})
		}()
	}
	var none *agentkit.Plan
	broken := errors.New("broken")
	if err := errors.Join(none.Start(0), none.Done(7)); err != nil || !errors.Is(none.Do(0, func() error { return broken }), broken) {
		t.Error(err)
	}
	if _, err := agentkit.NewSessions(agentkit.Config[any]{Prompt: silent[any]}).Fork(
		t.Context(), (&acp.AgentSession{}).Conn(), "none", &acp.NewSessionRequest{}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("forked without a store: %v", err)
	}
}
