package main

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/tier"
)

// agentVariable makes the test binary be an agent by the library that it names.
const agentVariable = "BENCH_TEST_AGENT"

func TestMain(m *testing.M) {
	if name := os.Getenv(agentVariable); name != "" {
		if err := serve(name); err != nil {
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
		"memory":   {Script: script{Updates: 100, Size: 64}, Pipe: true},
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
			if !conv.Pipe && !conv.Start && (r.Agent.Allocs <= 0 || r.Agent.Peak <= 0) {
				t.Errorf("%s, %s: got of the agent %+v", lib.name, name, r.Agent)
			}
		}
	}
}

// The TypeScript programs hold the same ones.
func TestTypeScript(t *testing.T) {
	tier.Need(t, tier.Full)
	dir, err := installNode(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
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
		conversation: conversation{Script: script{Updates: 3}, Sessions: 2, Parallel: 1, Pipe: true}}
	if r := talk.measure(t.Context()); r.Lost != 1 || r.Swapped != 2 || r.Ops != 6 || r.Error != "" {
		t.Errorf("got %+v, want 1 update lost and 2 out of order", r)
	}
}

// unreliable is a client that gets updates in another order, and in one session not the last.
type unreliable struct{ *consumer }

func (unreliable) NewSession(context.Context) (string, error) { return "", nil }
func (unreliable) Close() error                               { return nil }

func (u unreliable) Prompt(_ context.Context, session, _ string) error {
	numbers := []int{0, 2, 1}
	if session == "sess_000001" {
		numbers = []int{0, 1}
	}
	for _, n := range numbers {
		u.update(session, numbered(n, 64))
	}
	return nil
}

// Every library writes what it has read.
func TestSame(t *testing.T) {
	for _, m := range messages {
		want := parse(t, []byte(m.text))
		for _, l := range marshallers {
			v, err := l.decode([]byte(m.text))
			if err != nil {
				t.Errorf("%s %s: %v", l.name, m.name, err)
				continue
			}
			out, err := l.encode(nil, v)
			if err != nil {
				t.Errorf("%s %s: %v", l.name, m.name, err)
				continue
			}
			if got := parse(t, out); !reflect.DeepEqual(got, want) {
				t.Errorf("%s %s: got %.1000s", l.name, m.name, out)
			}
		}
	}
}

func parse(t *testing.T, data []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// What is promised of allocations: none to encode into a buffer that is large enough, three to decode a
// chunk: the notification, the chunk with its content, the text.
func TestAllocations(t *testing.T) {
	own := marshallers[0]
	for _, m := range messages[:2] {
		data := []byte(m.text)
		v, err := own.decode(data)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 0, 2*len(data))
		if got := testing.AllocsPerRun(1000, func() { buf, _ = own.encode(buf, v) }); got > 0 {
			t.Errorf("%s: %v allocations to encode, want 0", m.name, got)
		}
		if got := testing.AllocsPerRun(1000, func() { v, _ = own.decode(data) }); got > 3 {
			t.Errorf("%s: %v allocations to decode, want at most 3", m.name, got)
		}
	}
}

func TestStatistics(t *testing.T) {
	v := []float64{5, 1, 4, 2, 3}
	if got := []float64{quantile(v, 0.25), quantile(v, 0.5), quantile(v, 0.75)}; !slices.Equal(got, []float64{2, 3, 4}) {
		t.Errorf("got quartiles %v, want 2, 3, 4", got)
	}
	if got := quantile([]float64{2, math.NaN(), 1}, 0.5); got != 1.5 {
		t.Errorf("got median %v, want 1.5", got)
	}
	if got := exponent([]float64{1, 10, 100}, []float64{3, 300, 30000}); math.Abs(got-2) > 1e-9 {
		t.Errorf("got exponent %v, want 2", got)
	}
	for v, want := range map[float64]string{0: "0", 0.12345: "0.123", 1.5: "1.50", 23.456: "23.5", 4294.9: "4,295", 1234567: "1,234,567"} {
		if got := digits(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
}

// The last table is found again in what was written, and what changed is reported.
func TestCompare(t *testing.T) {
	table := func(own, other float64) string {
		l := line{what: "chunk", unit: "µs", cells: map[string]cell{
			nameACP: {values: []float64{own, own}}, nameCoder: {values: []float64{other, other}},
		}}
		var text strings.Builder
		writeTable(&text, []line{l})
		return text.String()
	}
	if got := changes(table(1, 20), table(1, 20.5)); len(got) != 0 {
		t.Errorf("got %q, want nothing", got)
	}
	got := changes(table(1, 20), table(2, 20))
	if want := []string{"chunk: × coder was 20, is 10"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
