package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// conversation describes what to do, and for how long.
type conversation struct {
	Script   script
	Sessions int           // default 1; each plays the script in each turn
	Parallel int           // turns at a time; default 1
	Time     time.Duration // turns are repeated for so long; 0 is one turn, without any before it to warm up
	Slow     bool          // the client takes its time
	Start    bool          // measure starting, up to the first session
}

// result has the measurements. All values except the counts are per operation.
type result struct {
	Ops           int
	Nanoseconds   float64
	Client, Agent usage
	P50, P99      float64 // nanoseconds from sending to handling
	Lost, Swapped int     // updates
	Error         string  `json:",omitempty"`
}

// usage has the allocations of one side.
type usage struct{ Allocs, Bytes, Peak float64 }

func (m memory) subtract(before memory, ops int) usage {
	return usage{
		Allocs: float64(m.Allocs-before.Allocs) / float64(ops),
		Bytes:  float64(m.Bytes-before.Bytes) / float64(ops),
		Peak:   float64(m.Peak),
	}
}

// consumer processes the updates on the client's side: it checks their numbers and times.
type consumer struct {
	slow     bool
	sessions []progress
	agent    memory // as reported last

	mu        sync.Mutex
	latencies []float64
}

type progress struct {
	next, got, swapped atomic.Int64
	_                  [5]int64 // sessions do not share cache lines
}

func (c *consumer) update(session, text string) {
	if text[0] == '{' {
		if err := json.Unmarshal([]byte(text), &c.agent); err != nil {
			panic(err) // this program wrote it
		}
		return
	}
	p := &c.sessions[sessionNumber(session)%len(c.sessions)] // the ids of a conversation follow each other
	n := int64(number(text))
	if n != p.next.Load() {
		p.swapped.Add(1)
	}
	p.next.Store((n + 1) % cycle)
	p.got.Add(1)
	if c.slow && n%10 == 9 { // sleeping less is not exact
		time.Sleep(time.Millisecond)
	}
	if stamp := text[numberWidth:]; len(stamp) > 20 && stamp[0] == ' ' {
		if sent, err := strconv.ParseInt(stamp[1:20], 10, 64); err == nil {
			c.mu.Lock()
			c.latencies = append(c.latencies, float64(time.Now().UnixNano()-sent))
			c.mu.Unlock()
		}
	}
}

// talk is a conversation under way.
type talk struct {
	conversation
	consumer *consumer
	client   client
	ids      []string
	expected int
}

const patience = time.Minute

// converse measures one conversation. Its errors are part of the result.
func converse(lib library, conv conversation, agent []string) result {
	conv.Sessions, conv.Parallel = max(conv.Sessions, 1), max(conv.Parallel, 1)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if conv.Start {
		return measureStart(ctx, lib, conv, agent)
	}
	t, err := open(ctx, lib, conv, agent)
	if err != nil {
		return result{Error: err.Error()}
	}
	r := t.measure(ctx)
	if err := t.client.Close(); err != nil && r.Error == "" {
		r.Error = err.Error()
	}
	return r
}

// open starts the agent and connects to it.
func open(ctx context.Context, lib library, conv conversation, agent []string) (*talk, error) {
	t := &talk{conversation: conv, consumer: &consumer{slow: conv.Slow, sessions: make([]progress, conv.Sessions)}}
	command := exec.Command(agent[0], agent[1:]...)
	command.Stderr = os.Stderr
	var err error
	if t.client, err = lib.connect(ctx, &link{command: command}, t.consumer); err != nil {
		return nil, err
	}
	for len(t.ids) < conv.Sessions && err == nil {
		var id string
		id, err = t.client.NewSession(ctx)
		t.ids = append(t.ids, id)
	}
	if err != nil {
		return nil, errors.Join(err, t.client.Close())
	}
	return t, nil
}

func (t *talk) measure(ctx context.Context) (r result) {
	if err := t.turns(ctx, &r); err != nil {
		r.Error = err.Error()
	}
	r.Lost = t.expected
	for i := range t.consumer.sessions {
		p := &t.consumer.sessions[i]
		r.Lost -= int(p.got.Load())
		r.Swapped += int(p.swapped.Load())
	}
	slices.Sort(t.consumer.latencies)
	if l := t.consumer.latencies; len(l) > 0 {
		r.P50, r.P99 = l[len(l)/2], l[len(l)*99/100]
	}
	return r
}

// turns plays turns until the time is over, after some turns to warm up.
func (t *talk) turns(ctx context.Context, r *result) error {
	for start := time.Now(); time.Since(start) < t.Time/5; {
		if err := t.turn(ctx); err != nil {
			return err
		}
	}
	t.consumer.latencies = nil
	agentBefore, err := t.agentMemory(ctx)
	if err != nil {
		return err
	}
	before, start := readMemory(), time.Now()
	for r.Ops == 0 || time.Since(start) < t.Time {
		if err := t.turn(ctx); err != nil {
			return err
		}
		r.Ops += t.Script.ops() * t.Sessions
	}
	r.Nanoseconds = float64(time.Since(start)) / float64(r.Ops)
	r.Client = readMemory().subtract(before, r.Ops)
	agentAfter, err := t.agentMemory(ctx)
	if err != nil {
		return err
	}
	r.Agent = agentAfter.subtract(agentBefore, r.Ops)
	return nil
}

// turn plays the script in all sessions.
func (t *talk) turn(ctx context.Context) error {
	for i := range t.consumer.sessions {
		t.consumer.sessions[i].next.Store(0)
	}
	t.expected += t.Script.Updates * t.Sessions
	text := t.Script.String()
	if t.Sessions == 1 {
		return t.client.Prompt(ctx, t.ids[0], text)
	}
	var group sync.WaitGroup
	failures := make(chan error, t.Parallel)
	var next atomic.Int64
	for range t.Parallel {
		group.Go(func() {
			for i := next.Add(1) - 1; int(i) < t.Sessions; i = next.Add(1) - 1 {
				if err := t.client.Prompt(ctx, t.ids[i], text); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(failures)
	return <-failures
}

func (t *talk) agentMemory(ctx context.Context) (memory, error) {
	err := t.client.Prompt(ctx, t.ids[0], script{Memory: true}.String())
	return t.consumer.agent, err
}

// measureStart measures the time from the start of the agent to its first session.
func measureStart(ctx context.Context, lib library, conv conversation, agent []string) (r result) {
	for start := time.Now(); r.Ops == 0 || time.Since(start) < conv.Time; r.Ops++ {
		began := time.Now()
		t, err := open(ctx, lib, conv, agent)
		r.Nanoseconds += float64(time.Since(began))
		if err == nil {
			err = t.client.Close()
		}
		if err != nil {
			r.Error = fmt.Sprintf("start %d: %v", r.Ops, err)
			return r
		}
	}
	r.Nanoseconds /= float64(r.Ops)
	return r
}
