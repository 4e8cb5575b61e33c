package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// experiment is a conversation, possibly at several sizes, with the rows for its results.
type experiment struct {
	name   string
	points []conversation
	rounds int // at most; 0 is no limit
	rows   []row
}

// row is one line of the table. Less is better.
type row struct {
	what   string // behind the experiment's name
	unit   string
	of     func(points []result) float64 // NaN is nothing
	failed bool                          // also of conversations that failed
}

// usual is how long a conversation is repeated.
const usual = 150 * time.Millisecond

func experiments() []experiment {
	return slices.Concat(chunkExperiments(), callExperiments(), turnExperiments())
}

func chunkExperiments() (all []experiment) {
	for _, size := range []struct {
		name    string
		bytes   int
		updates int // in a turn; coder closes a connection with more than 1,024 waiting
	}{
		{name: "64 B", bytes: 64, updates: 1000},
		{name: "1 KB", bytes: 1 << 10, updates: 1000},
		{name: "1 MB", bytes: 1 << 20, updates: 8},
	} {
		rows := []row{{unit: "µs", of: microseconds}}
		if size.bytes < 1<<20 {
			rows = append(rows,
				row{what: ", allocations of the sender", unit: allocations,
					of: func(p []result) float64 { return nanIfZero(p[0].Agent.Allocs) }},
				row{what: ", allocations of the receiver", unit: allocations,
					of: func(p []result) float64 { return nanIfZero(p[0].Client.Allocs) }})
		} else {
			rows = append(rows, row{what: ", bytes allocated to receive it", unit: "× the text",
				of: func(p []result) float64 { return nanIfZero(p[0].Client.Bytes) / float64(size.bytes) }})
		}
		conv := conversation{Script: script{Updates: size.updates, Size: size.bytes}, Time: usual}
		all = append(all, experiment{name: "chunk of " + size.name, points: []conversation{conv}, rows: rows})
	}
	return all
}

func callExperiments() (all []experiment) {
	for _, inFlight := range []int{1, 16, 256} {
		all = append(all, experiment{
			name:   fmt.Sprintf("fs/read_text_file of 1 KB, %d in flight", inFlight),
			points: []conversation{{Script: script{Reads: 1024, InFlight: inFlight}, Time: usual}},
			rows: []row{
				{unit: "µs", of: microseconds},
				{what: ", allocations of both sides", unit: allocations,
					of: func(p []result) float64 { return nanIfZero(p[0].Agent.Allocs + p[0].Client.Allocs) }},
			},
		})
	}
	return all
}

func turnExperiments() []experiment {
	slow := func(updates int) conversation {
		return conversation{Script: script{Updates: updates, Size: 1 << 10}, Slow: true}
	}
	whole := script{Updates: 200, Size: 64, Asks: 2}
	return []experiment{
		{
			name:   "a turn of 200 updates and two permissions",
			points: []conversation{{Script: whole, Time: usual}},
			rows:   []row{{unit: "µs", of: func(p []result) float64 { return microseconds(p) * float64(whole.ops()) }}},
		},
		{
			name:   "one update each 5 ms",
			points: []conversation{{Script: script{Updates: 160, Every: 5 * time.Millisecond}}},
			rows: []row{
				{what: ", latency p50", unit: "µs",
					of: func(p []result) float64 { return p[0].P50 / 1e3 }},
				{what: ", latency p99", unit: "µs",
					of: func(p []result) float64 { return p[0].P99 / 1e3 }},
			},
		},
		{
			name:   "start, to the answer of session/new",
			points: []conversation{{Start: true, Time: usual}},
			rows:   []row{{unit: "µs", of: microseconds}},
		},
		{
			name:   "1,000 sessions, 32 turns of 10 updates at a time",
			points: []conversation{{Script: script{Updates: 10, Size: 64}, Sessions: 1000, Parallel: 32, Time: usual}},
			rows:   []row{{what: ", an update", unit: "µs", of: microseconds}},
		},
		{
			name:   "20,000 updates of 1 KB to a slow client",
			points: []conversation{slow(20_000), slow(10_000)},
			rounds: 3, // they take seconds, and count
			rows: []row{
				{what: ", lost", unit: "updates", failed: true,
					of: func(p []result) float64 { return float64(p[0].Lost) }},
				{what: ", out of order", unit: "updates", failed: true,
					of: func(p []result) float64 { return float64(p[0].Swapped) }},
				{what: ", peak memory of the client", unit: "MB",
					of: func(p []result) float64 { return nanIfZero(p[0].Client.Peak) / 1e6 }},
				{what: ", peak memory of the client", unit: "× that with 10,000",
					of: func(p []result) float64 { return p[0].Client.Peak / p[1].Client.Peak }},
				{what: ", peak memory of the agent", unit: "MB",
					of: func(p []result) float64 { return nanIfZero(p[0].Agent.Peak) / 1e6 }},
				{what: ", peak memory of the agent", unit: "× that with 10,000",
					of: func(p []result) float64 { return p[0].Agent.Peak / p[1].Agent.Peak }},
			},
		},
	}
}

const allocations = "allocations"

// nanIfZero returns a count, or NaN if it is zero, because the TypeScript programs do not have it.
func nanIfZero(v float64) float64 {
	if v == 0 {
		return math.NaN()
	}
	return v
}

func microseconds(p []result) float64 { return p[0].Nanoseconds / 1e3 }
