package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// experiment is a task, possibly at several sizes, with the rows for its results.
type experiment struct {
	name   string
	points []task
	only   []string // libraries; nil is all that converse
	rounds int      // at most; 0 is no limit
	rows   []row
}

// task is run by a library in a separate process, which prints a result.
type task interface {
	command(b *bench, library string) []string
}

// row is one line of the table. Less is better.
type row struct {
	what    string // behind the experiment's name
	unit    string
	of      func(points []result) float64 // NaN is nothing
	failed  bool                          // also of tasks that failed
	targets []target
}

// target is the target of this library in a row.
type target struct {
	against string // a library: so many times as fast; "": the value itself, at most
	limit   float64
}

func (e experiment) libraries() []string {
	if e.only != nil {
		return e.only
	}
	return []string{nameACP, nameCoder, nameTypeScript, nameByHand}
}

const (
	usual = 150 * time.Millisecond // how long a task is repeated
	brief = 60 * time.Millisecond
)

var (
	inMemory = []string{nameACP, nameCoder, nameByHand}
	growing  = []string{nameACP, nameCoder, nameByHand}
)

func experiments() []experiment {
	return slices.Concat(codecExperiments(), chunkExperiments(), callExperiments(), turnExperiments(), growthExperiments())
}

func codecExperiments() (all []experiment) {
	var names []string
	for _, m := range marshallers {
		names = append(names, m.name)
	}
	for _, decode := range []bool{false, true} {
		name := map[bool]string{false: "encode", true: "decode"}[decode]
		for i, m := range messages {
			all = append(all, experiment{
				name:   name + " a " + m.name,
				points: []task{coding{Message: i, Decode: decode, Time: brief}},
				only:   names,
				rows: []row{
					{unit: "µs", of: microseconds},
					{what: ", allocations", unit: allocations, of: func(p []result) float64 { return p[0].Client.Allocs }},
				},
			})
		}
	}
	return all
}

func chunkExperiments() (all []experiment) {
	for _, size := range []struct {
		name            string
		bytes           int
		updates         int // in a turn; coder closes a connection with more than 1,024 waiting
		coder, hand, ts float64
	}{
		{name: "64 B", bytes: 64, updates: 1000, coder: 20, hand: 0.7, ts: 25},
		{name: "1 KB", bytes: 1 << 10, updates: 1000, coder: 20, hand: 0.85},
		{name: "1 MB", bytes: 1 << 20, updates: 8, coder: 30, hand: 0.85},
	} {
		conv := conversation{Script: script{Updates: size.updates, Size: size.bytes}, Time: usual}
		goals := []target{{nameCoder, size.coder}, {nameByHand, size.hand}}
		if size.ts > 0 {
			goals = append(goals, target{nameTypeScript, size.ts})
		}
		rows := []row{{unit: "µs", of: microseconds, targets: goals}}
		if size.bytes < 1<<20 {
			rows = append(rows,
				row{what: ", allocations of the sender", unit: allocations, targets: []target{{limit: 1}},
					of: func(p []result) float64 { return nanIfZero(p[0].Agent.Allocs) }},
				row{what: ", allocations of the receiver", unit: allocations, targets: []target{{limit: 3}},
					of: func(p []result) float64 { return nanIfZero(p[0].Client.Allocs) }})
		} else {
			rows = append(rows, row{what: ", bytes allocated to receive it", unit: "× the text",
				targets: []target{{limit: 1.15}},
				of:      func(p []result) float64 { return nanIfZero(p[0].Client.Bytes) / float64(size.bytes) }})
		}
		all = append(all, experiment{name: "chunk of " + size.name + ", subprocess", points: []task{conv}, rows: rows})
		conv.Pipe = true
		all = append(all, experiment{name: "chunk of " + size.name + ", in memory", points: []task{conv}, only: inMemory,
			rows: []row{{unit: "µs", of: microseconds}}})
	}
	return all
}

func callExperiments() (all []experiment) {
	for _, c := range []struct {
		inFlight int
		coder    float64
		ts       float64
	}{{1, 3.3, 5}, {16, 4.5, 5}, {256, 4.5, 5}} {
		all = append(all, experiment{
			name:   fmt.Sprintf("fs/read_text_file of 1 KB, %d in flight", c.inFlight),
			points: []task{conversation{Script: script{Reads: 1024, InFlight: c.inFlight}, Time: usual}},
			rows: []row{
				{unit: "µs", of: microseconds, targets: []target{{nameCoder, c.coder}, {nameTypeScript, c.ts}}},
				{what: ", allocations of both sides", unit: allocations, targets: []target{{limit: 20}},
					of: func(p []result) float64 { return nanIfZero(p[0].Agent.Allocs + p[0].Client.Allocs) }},
			},
		})
	}
	return all
}

func turnExperiments() []experiment {
	slow := func(updates int) task {
		return conversation{Script: script{Updates: updates, Size: 1 << 10}, Slow: true}
	}
	whole := script{Updates: 200, Size: 64, Asks: 2}
	return []experiment{
		{
			name:   "a turn of 200 updates and two permissions",
			points: []task{conversation{Script: whole, Time: usual}},
			rows:   []row{{unit: "µs", of: func(p []result) float64 { return microseconds(p) * float64(whole.ops()) }}},
		},
		{
			name:   "one update each 5 ms",
			points: []task{conversation{Script: script{Updates: 160, Every: 5 * time.Millisecond}}},
			rows: []row{
				{what: ", latency p50", unit: "µs", targets: []target{{nameCoder, 1}},
					of: func(p []result) float64 { return p[0].P50 / 1e3 }},
				{what: ", latency p99", unit: "µs", targets: []target{{nameCoder, 1}},
					of: func(p []result) float64 { return p[0].P99 / 1e3 }},
			},
		},
		{
			name:   "start, to the answer of session/new",
			points: []task{conversation{Start: true, Time: usual}},
			rows:   []row{{unit: "µs", of: microseconds}},
		},
		{
			name:   "1,000 sessions, 32 turns of 10 updates at a time",
			points: []task{conversation{Script: script{Updates: 10, Size: 64}, Sessions: 1000, Parallel: 32, Time: usual}},
			rows:   []row{{what: ", an update", unit: "µs", of: microseconds}},
		},
		{
			name:   "20,000 updates of 1 KB to a slow client",
			points: []task{slow(20_000), slow(10_000)},
			only:   []string{nameACP, nameCoder, nameTypeScript},
			rounds: 3, // they take seconds, and count
			rows: []row{
				{what: ", lost", unit: "updates", failed: true, targets: []target{{}},
					of: func(p []result) float64 { return float64(p[0].Lost) }},
				{what: ", out of order", unit: "updates", failed: true, targets: []target{{}},
					of: func(p []result) float64 { return float64(p[0].Swapped) }},
				{what: ", peak memory of the client", unit: "MB",
					of: func(p []result) float64 { return nanIfZero(p[0].Client.Peak) / 1e6 }},
				{what: ", peak memory of the client", unit: "× that with 10,000", targets: []target{{limit: 1.2}},
					of: func(p []result) float64 { return p[0].Client.Peak / p[1].Client.Peak }},
				{what: ", peak memory of the agent", unit: "MB",
					of: func(p []result) float64 { return nanIfZero(p[0].Agent.Peak) / 1e6 }},
				{what: ", peak memory of the agent", unit: "× that with 10,000", targets: []target{{limit: 1.2}},
					of: func(p []result) float64 { return p[0].Agent.Peak / p[1].Agent.Peak }},
			},
		},
	}
}

// growthExperiments measure how time and memory grow with size and count.
func growthExperiments() (all []experiment) {
	for _, g := range []struct {
		name string
		at   []int
		conv func(n int) conversation
	}{
		{"message size, 64 KB to 4 MB", []int{64 << 10, 256 << 10, 1 << 20, 4 << 20}, func(n int) conversation {
			return conversation{Script: script{Updates: 4 << 20 / n, Size: n}}
		}},
		{"sessions, 16 to 1,024, all in a turn of 10 updates", []int{16, 64, 256, 1024}, func(n int) conversation {
			return conversation{Script: script{Updates: 10, Size: 64}, Sessions: n, Parallel: n}
		}},
		{"calls in flight, 16 to 1,024", []int{16, 64, 256, 1024}, func(n int) conversation {
			return conversation{Script: script{Reads: n, InFlight: n}}
		}},
	} {
		e := experiment{name: "growth with " + g.name, only: growing}
		var at, ops []float64 // what one measurement of a row is of
		for _, n := range g.at {
			conv := g.conv(n)
			conv.Time = brief
			e.points = append(e.points, conv)
			at = append(at, float64(n))
			if conv.Script.Size > 64 {
				ops = append(ops, 1) // a message
			} else {
				ops = append(ops, float64(conv.Script.ops()*max(conv.Sessions, 1))) // all of them
			}
		}
		fit := func(of func(result) float64) func([]result) float64 {
			return func(points []result) float64 {
				var values []float64
				for i, p := range points {
					values = append(values, of(p)*ops[i])
				}
				return exponent(at, values)
			}
		}
		linear := []target{{limit: 1.05}}
		e.rows = []row{
			{what: ": time", unit: "exponent", targets: linear, of: fit(func(r result) float64 { return r.Nanoseconds })},
			{what: ": bytes allocated", unit: "exponent", targets: linear,
				of: fit(func(r result) float64 { return r.Client.Bytes + r.Agent.Bytes })},
		}
		all = append(all, e)
	}
	return all
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

// exponent is the slope of the line through the logarithms.
func exponent(x, y []float64) float64 {
	var n, sx, sy, sxx, sxy float64
	for i := range x {
		lx, ly := math.Log(x[i]), math.Log(y[i])
		n, sx, sy, sxx, sxy = n+1, sx+lx, sy+ly, sxx+lx*lx, sxy+lx*ly
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
