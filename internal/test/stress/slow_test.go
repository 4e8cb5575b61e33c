package stress

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/gentest"
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

// With an agent that does not read, writers do not wait longer than their contexts, memory is bounded, and Close
// returns.
func TestPeerThatDoesNotRead(t *testing.T) {
	tier.Need(t, tier.Normal)
	transport, _ := command("faulty")
	transport.StopTime, transport.KillTime = 200*time.Millisecond, time.Second
	conn, err := acp.Connect(t.Context(), transport, acp.ClientHandlers{},
		&acp.ClientOptions{Conn: acp.ConnOptions{CloseTime: 200 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	session := newSession(t, conn)
	if err := rpc.Notify(t.Context(), conn.RPC(), methodFault, &fault{Kind: faultDeaf}); err != nil {
		t.Fatal(err)
	}
	agent := &subprocess{conn, transport.Cmd}
	memory := watchMemory(agent)

	const writers, each = 64, 100
	const patient = 500 * time.Millisecond
	begin := time.Now()
	var sent, waited atomic.Int32
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patient)
			defer cancel()
			for range each {
				err := rpc.Notify(ctx, conn.RPC(), methodEcho, &echo{Text: strings.Repeat("x", 10_000)})
				switch {
				case err == nil:
					sent.Add(1)
				case errors.Is(err, context.DeadlineExceeded):
					waited.Add(1)
					return
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	receive(t, "the writers", done)
	gaveUp := time.Since(begin)
	if waited.Load() != writers {
		t.Errorf("%d of %d writers waited", waited.Load(), writers)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := session.Prompt(t.Context(), acp.TextBlock("hello"))
		failed <- err
	}()
	begin = time.Now()
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	closed := time.Since(begin)
	if err := receive(t, "the prompt", failed); !errors.Is(err, acp.ErrClosed) {
		t.Errorf("the prompt ended with %v", err)
	}
	if closed > patience/2 || transport.Cmd.ProcessState == nil {
		t.Errorf("Close took %v, the process: %v", closed, transport.Cmd.ProcessState)
	}
	most, growth := memory.client.peak()
	if growth > smallGrowth && !gentest.Race {
		t.Errorf("the client grew by %s", mib(growth))
	}
	newTable(t, "writers", "sent before the pipe was full", "waiting for "+patient.String(), "all returned after", "Close took", "the agent", "peak of the client").
		row(strconv.Itoa(writers), fmt.Sprintf("%d × 10 KB", sent.Load()), strconv.Itoa(int(waited.Load())), gaveUp.Round(time.Millisecond).String(),
			closed.Round(time.Millisecond).String(), transport.Cmd.ProcessState.String(), fmt.Sprintf("%s (+%s)", mib(most), mib(growth)))
}

// An agent that writes one byte at a time.
func TestPeerThatTrickles(t *testing.T) {
	tier.Need(t, tier.Normal)
	const updates, size = 300, 64
	arr := newArrival(t)
	books := &books{wrong: t.Errorf}
	agent := start(t, "trickle", acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			arr.update(&n.Update)
			return nil
		},
		RequestPermission: func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("yes")}, nil
		},
	}, acp.ConnOptions{Hooks: books.hooks()}, 0)
	session := newSession(t, agent.ClientConn)
	begin := time.Now()
	if _, err := session.Prompt(bounded(t, updates), plan{Updates: updates, Size: size, AskEvery: updates / 3, Progress: arr.path}.block()); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	arr.done(updates, size, defaultQueue)
	_, received := books.flows()
	newTable(t, "updates", "bytes, each written alone", "time for a byte").
		row(strconv.Itoa(arr.next), strconv.Itoa(received.Bytes), rate(received.Bytes, took))
}

// If an agent ends while its client is busy, everything that it wrote is delivered, however long that takes (rule 12).
func TestPeerThatEndsBeforeItIsRead(t *testing.T) {
	// The reader stops at the second update, its buffer holds 64 KiB at most, and whole pages fill the pipe.
	const page = 4 << 10
	const updates, queue = 64<<10/page + 1, 1 << 10
	busy := tier.Pick(10*time.Millisecond, 100*time.Millisecond, 2500*time.Millisecond, 2500*time.Millisecond)
	_, least := lengths(t, numberSize)
	size := page - least + numberSize
	arr := newArrival(t)
	books := &books{wrong: t.Errorf, ending: true}
	released := make(chan struct{})
	transport, said := command("faulty")
	conn, err := acp.Connect(t.Context(), transport, acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			<-released
			arr.update(&n.Update)
			return nil
		},
	}, &acp.ClientOptions{Conn: acp.ConnOptions{Hooks: books.hooks(), QueueBytes: queue, DrainTime: patience}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	session := newSession(t, conn)
	answer := make(chan error, 1)
	go func() {
		_, err := session.Prompt(t.Context(), plan{Updates: updates, Size: size, Exit: true}.block())
		answer <- err
	}()
	receive(t, "the exit of the agent", said.begun)
	time.Sleep(busy)
	close(released)
	books.note(receive(t, "the answer", answer)) // it may or may not have been written
	arr.done(updates, size, queue)
	if err := errors.Join(conn.Wait(), conn.Close()); err != nil {
		t.Error(err)
	}
	_, received := books.flows()
	var written int
	if _, err := fmt.Sscanf(said.String(), linesWritten, &written); err != nil || written != received.Messages {
		t.Errorf("%d lines were read; the agent said %q", received.Messages, said)
	}
	newTable(t, "read after the agent's exit by", "lines written", "read", "updates").
		row(busy.String(), strconv.Itoa(written), strconv.Itoa(received.Messages), strconv.Itoa(arr.next))
}
