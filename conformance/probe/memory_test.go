package probe_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// connect starts an echo in memory: a small agent that repeats its prompts, and a few of them for ever.
func connect(t *testing.T) func() rpc.Transport {
	return func() rpc.Transport {
		client, agent := rpc.Pipe()
		answer := func(ctx context.Context, turn *agentkit.Turn[any], req *acp.PromptRequest) (*acp.PromptResponse, error) {
			text := agentkit.PromptText(req)
			for strings.HasPrefix(text, "Write a very long") {
				if err := turn.Sayf(ctx, "On and on. "); err != nil {
					return nil, err
				}
				select {
				case <-time.After(time.Millisecond):
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
			}
			return nil, turn.Sayf(ctx, "%s", text)
		}
		sessions := agentkit.NewSessions(agentkit.Config[any]{Prompt: answer})
		ctx := context.WithoutCancel(t.Context())
		go func() {
			err := sessions.Serve(ctx, agent, &acp.AgentOptions{Info: acp.Implementation{Name: "echo", Version: "1"}})
			if err != nil && !errors.Is(err, rpc.ErrClosed) {
				t.Logf("the agent ended: %v", err)
			}
		}()
		return client
	}
}

// The echo cannot meet SES-25, which is a MUST, because it has no use for MCP servers. Without a fake server, SES-25 is
// not exercised.
func TestCheckAgent(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	began := time.Now()
	probe.CheckAgent(t, connect(t))
	t.Logf("in %v", time.Since(began))
}

// TestRuns: an agent that breaks a rule in every second launch is flaky there, and nowhere else.
func TestRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, n := connect(t), 0
		r := must.Get(probe.Agent(t.Context(), func(ctx context.Context, dir string) (*probe.Target, error) {
			n++
			f := fault{}
			if n%2 == 0 {
				f = answersTwice
			}
			return mutate(probe.InMemory(start), f)(ctx, dir)
		}, &probe.Options{Scratch: t.TempDir(), Only: []string{"start"}, Runs: 4, Answer: 5 * time.Second, Quiet: 100 * time.Millisecond}))(t)
		if got := strings.Join(r.Summary.Unstable, " "); got != "SCH-2" || r.Conforms {
			t.Errorf("flaky: %q, conforms: %v", got, r.Conforms)
		}
	})
}

// TestReportIsMasked: a report does not show the secrets of the program, as recordings do not.
func TestReportIsMasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaks := after("session/prompt", func(_ *state, m *line) []string {
			return []string{m.text, strings.Replace(chunk(sessionOf(m)), "mutant", "PGPASSWORD=hunter2secret psql", 1)}
		})
		r := must.Get(probe.Agent(t.Context(), mutate(probe.InMemory(connect(t)), leaks), &probe.Options{
			Target: "agent --token hunter2secret", Scratch: t.TempDir(), Only: []string{"start"}, Answer: 5 * time.Second, Quiet: 100 * time.Millisecond,
			Repeat: func(scenario string) string { return scenario + " agent --token hunter2secret" },
		}))(t)
		text := must.Get(json.Marshal(r))(t)
		if strings.Contains(string(text), "hunter2") || !strings.HasPrefix(r.Repeat, "start agent --token") || strings.Count(string(text), "PGPASSWORD=masked-") == 0 {
			t.Errorf("got %s", text)
		}
	})
}

// TestBaseline: a known failure does not count, and an entry that does not fail is reported.
func TestBaseline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := must.Get(probe.Agent(t.Context(), mutate(probe.InMemory(connect(t)), answersTwice), &probe.Options{
			Scratch: t.TempDir(), Only: []string{"start"}, Answer: 5 * time.Second, Quiet: 100 * time.Millisecond,
			Baseline: map[string]string{"SCH-2": "twice", "SES-2": "not broken"},
		}))(t)
		if !r.Conforms || strings.Join(r.Summary.Known, " ") != "SCH-2" || strings.Join(r.Summary.Stale, " ") != "SES-2" {
			t.Errorf("conforms: %v, known: %v, stale: %v", r.Conforms, r.Summary.Known, r.Summary.Stale)
		}
	})
}

// TestRows: each requirement that applies to agents and can be judged automatically is in the table, with a scenario
// that can exercise it.
func TestRows(t *testing.T) {
	for _, problem := range probe.CheckRows() {
		t.Error(problem)
	}
}

// fakeTest is a test that is only observed.
type fakeTest struct {
	t      *testing.T
	name   string
	failed *[]string
}

func (f *fakeTest) Helper()                           {}
func (f *fakeTest) Errorf(format string, args ...any) { *f.failed = append(*f.failed, f.name) }
func (f *fakeTest) Fatal(args ...any)                 { f.t.Fatal(args...) }
func (f *fakeTest) Logf(string, ...any)               {}
func (f *fakeTest) Skip(...any)                       {}
func (f *fakeTest) TempDir() string                   { return f.t.TempDir() }
func (f *fakeTest) Context() context.Context          { return f.t.Context() }
func (f *fakeTest) Run(name string, run func(*fakeTest)) bool {
	run(&fakeTest{f.t, name, f.failed})
	return true
}

// TestCheckFails: a check fails the subtest of the scenario in which the agent breaks a MUST.
func TestCheckFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed []string
		probe.Check(&fakeTest{t, "", &failed}, mutate(probe.InMemory(connect(t)), answersTwice), &probe.Options{
			Only: []string{"start", "ids"}, Answer: 5 * time.Second, Quiet: 100 * time.Millisecond,
		})
		if strings.Join(failed, " ") != "start" {
			t.Errorf("failed: %q, want the scenario start", failed)
		}
	})
}
