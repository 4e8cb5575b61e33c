package stress

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/test/tier"
)

// A consumer that is slow, or blocks, makes the agent wait; nothing is lost, and memory stays flat (rule 3).
func TestSlowConsumer(t *testing.T) {
	tier.Need(t, tier.Normal)
	const size, queue = 1000, 1 << 20
	updates := tier.Pick(4000, 4000, 20_000, 20_000) // more than can be in flight
	tab := newTable(t, "consumer", "updates", "time", "on their way at most", "peak of the client", "peak of the agent")
	for _, c := range []struct {
		name    string
		queues  int
		consume func(*testing.T, *arrival, acp.ConnOptions, plan) *memory
	}{
		{"SessionUpdate stands still until released", 1, consumeReleased},
		{"Turn.Updates read slowly", 2, consumeSlowly},
	} {
		t.Run(c.name, func(t *testing.T) {
			arr := newArrival(t)
			begin := time.Now()
			memory := c.consume(t, arr, acp.ConnOptions{QueueBytes: queue}, plan{Updates: updates, Size: size, Progress: arr.path})
			took := time.Since(begin)
			limit := arr.done(updates, size, c.queues*queue)
			tab.row(append([]string{c.name, strconv.Itoa(arr.next), rate(updates, took), fmt.Sprintf("%d, limit %d", arr.worst, limit)},
				memory.cells(t, c.queues*queue*queueFactor+smallGrowth, smallGrowth)...)...)
		})
	}
}

// consumeReleased handles nothing until the agent cannot send any more.
func consumeReleased(t *testing.T, arr *arrival, opts acp.ConnOptions, p plan) *memory {
	released := make(chan struct{})
	agent := start(t, "agent", acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			<-released
			arr.update(&n.Update)
			return nil
		},
	}, opts, 0)
	memory := watchMemory(agent)
	answer := make(chan error, 1)
	session := newSession(t, agent.ClientConn)
	go func() {
		_, err := session.Prompt(bounded(t, p.Updates), p.block())
		answer <- err
	}()
	stopped := standstill(arr.progress)
	close(released)
	if stopped >= p.Updates {
		t.Error("the agent did not have to wait")
	}
	if err := receive(t, "the answer", answer); err != nil {
		t.Error(err)
	}
	return memory
}

// consumeSlowly pauses after some updates.
func consumeSlowly(t *testing.T, arr *arrival, opts acp.ConnOptions, p plan) *memory {
	agent := start(t, "agent", acp.ClientHandlers{}, opts, 0)
	memory := watchMemory(agent)
	turn := newSession(t, agent.ClientConn).Stream(bounded(t, p.Updates), p.block())
	for update := range turn.Updates() {
		arr.update(&update)
		if arr.next%20 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	if _, err := turn.Result(); err != nil {
		t.Error(err)
	}
	return memory
}

// standstill waits until an agent that has started to send stops, and returns the number of updates it has sent.
func standstill(p *progress) int {
	for last := -1; ; {
		now := p.get()
		if now > 0 && now == last {
			return now
		}
		last = now
		time.Sleep(300 * time.Millisecond) // many times longer than the agent needs for an update
	}
}
