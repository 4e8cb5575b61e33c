package main

import (
	"context"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// agentVariable makes the test binary be an agent by the library that it names.
const agentVariable = "BENCH_TEST_AGENT"

func TestMain(m *testing.M) {
	if name := os.Getenv(agentVariable); name != "" {
		lib, err := libraryNamed(name)
		if err == nil {
			err = lib.serve(context.Background(), stdio())
		}
		if err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// Every library holds every kind of conversation, and nothing is lost or out of order.
func TestConversations(t *testing.T) {
	conversations := map[string]conversation{
		"chunks":   {Script: script{Updates: 100, Size: 64}, Time: time.Millisecond},
		"large":    {Script: script{Updates: 2, Size: 1 << 20}},
		"calls":    {Script: script{Reads: 50, InFlight: 16}},
		"turn":     {Script: script{Updates: 20, Size: 64, Asks: 2}},
		"sparse":   {Script: script{Updates: 3, Every: time.Millisecond}},
		"sessions": {Script: script{Updates: 5, Size: 64}, Sessions: 20, Parallel: 4},
		"start":    {Start: true},
	}
	for _, lib := range libraries {
		if lib.name != nameACP && tier.Current() == tier.Short {
			continue
		}
		t.Setenv(agentVariable, lib.name)
		for name, conv := range conversations {
			r := converse(lib, conv, []string{os.Args[0]})
			if r.Error != "" || r.Lost != 0 || r.Swapped != 0 || r.Ops == 0 || r.Nanoseconds <= 0 {
				t.Errorf("%s, %s: got %+v", lib.name, name, r)
			}
			if conv.Script.Every > 0 && (r.P50 <= 0 || r.P99 < r.P50) {
				t.Errorf("%s, %s: got latencies %v and %v", lib.name, name, r.P50, r.P99)
			}
			if !conv.Start && (r.Agent.Allocs <= 0 || r.Agent.Peak <= 0) {
				t.Errorf("%s, %s: got of the agent %+v", lib.name, name, r.Agent)
			}
		}
	}
}

// The TypeScript programs hold the same ones.
func TestTypeScript(t *testing.T) {
	tier.Need(t, tier.Full)
	dir, err := installNode(t.TempDir())
	must.Do(t, err)
	if dir == "" {
		t.Skip("SKIPPED: there is no Node with npm")
	}
	b := &bench{node: dir}
	for name, conv := range map[string]conversation{
		"turn":     {Script: script{Updates: 20, Size: 64, Asks: 2, Reads: 5, InFlight: 2}},
		"sparse":   {Script: script{Updates: 3, Every: time.Millisecond}},
		"sessions": {Script: script{Updates: 5, Size: 64}, Sessions: 20, Parallel: 4},
		"start":    {Start: true},
	} {
		r := measure(conv.command(b, nameTypeScript))
		if r.Error != "" || r.Lost != 0 || r.Swapped != 0 || r.Ops == 0 || r.Nanoseconds <= 0 {
			t.Errorf("%s: got %+v", name, r)
		}
		if conv.Script.Every > 0 && (r.P50 <= 0 || r.P99 < r.P50) {
			t.Errorf("%s: got latencies %v and %v", name, r.P50, r.P99)
		}
	}
}

// What is missing or comes in another order is counted.
func TestCount(t *testing.T) {
	c := &consumer{sessions: make([]progress, 2)}
	talk := talk{client: unreliable{c}, consumer: c, ids: []string{"sess_000000", "sess_000001"},
		conversation: conversation{Script: script{Updates: 3}, Sessions: 2, Parallel: 1}}
	if r := talk.measure(t.Context()); r.Lost != 1 || r.Swapped != 2 || r.Ops != 6 || r.Error != "" {
		t.Errorf("got %+v, want 1 update lost and 2 out of order", r)
	}
}

// unreliable is a client that gets updates in another order, and in one session not the last.
type unreliable struct{ *consumer }

func (unreliable) NewSession(context.Context) (string, error) { return "", nil }
func (unreliable) Close() error                               { return nil }

func (u unreliable) Prompt(_ context.Context, session, text string) error {
	if text == (script{Memory: true}).String() {
		return nil
	}
	numbers := []int{0, 2, 1}
	if session == "sess_000001" {
		numbers = []int{0, 1}
	}
	for _, n := range numbers {
		u.update(session, numbered(n, 64))
	}
	return nil
}

func TestStatistics(t *testing.T) {
	v := []float64{5, 1, 4, 2, 3}
	if got := []float64{quantile(v, 0.25), quantile(v, 0.5), quantile(v, 0.75)}; !slices.Equal(got, []float64{2, 3, 4}) {
		t.Errorf("got quartiles %v, want 2, 3, 4", got)
	}
	if got := quantile([]float64{2, math.NaN(), 1}, 0.5); got != 1.5 {
		t.Errorf("got median %v, want 1.5", got)
	}
	for v, want := range map[float64]string{0: "0", 0.12345: "0.123", 1.5: "1.50", 23.456: "23.5", 4294.9: "4,295", 1234567: "1,234,567"} {
		if got := digits(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
}
