package stress

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/test/tier"
)

// onTheWay is the maximum number of bytes in flight between two connections in addition to the queued ones: the
// writer's two buffers of 256 KiB, the pipe, the reader's buffer, and the data that the reader collects.
const onTheWay = 2*256<<10 + 256<<10 + 64<<10 + 16<<10

// How much more memory a process may hold for a byte of queued parameters, including the garbage collector's share, and
// for a connection without any load.
const (
	queueFactor = 10
	smallGrowth = 16 << 20
)

// defaultQueue is the default of Options.QueueBytes.
const defaultQueue = 4 << 20

// arrival checks the updates of a session as they arrive.
type arrival struct {
	t        *testing.T
	progress *progress
	path     string
	next     int
	wrong    int
	worst    int // the maximum number that were sent but not handled
}

func newArrival(t *testing.T) *arrival {
	t.Helper()
	path := filepath.Join(t.TempDir(), "progress")
	p, err := openProgress(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	})
	return &arrival{t: t, progress: p, path: path}
}

func (a *arrival) update(u *acp.SessionUpdate) {
	if n := numberOf(u); n != a.next {
		if a.wrong++; a.wrong <= 3 {
			a.t.Errorf("update %d arrived instead of %d", n, a.next)
		}
	}
	if a.next%progressStep == 0 {
		a.worst = max(a.worst, a.progress.get()-a.next)
	}
	a.next++
}

// done checks that all updates have arrived, and that there were never more in flight than the queues allow.
func (a *arrival) done(want, size, queueBytes int) (limit int) {
	a.t.Helper()
	if a.next != want || a.wrong > 0 {
		a.t.Errorf("%d of %d updates before the answer, %d out of order", a.next, want, a.wrong)
	}
	params, line := lengths(a.t, size)
	limit = queueBytes/params + onTheWay/line + 2*progressStep
	if a.worst > limit {
		a.t.Errorf("%d updates were sent but not handled, want %d at most", a.worst, limit)
	}
	return limit
}

// lengths returns the lengths of an update's parameters and of its line.
func lengths(t *testing.T, size int) (params, line int) {
	t.Helper()
	b, err := json.Marshal(&acp.SessionNotification{SessionID: "session 0", Update: numbered(0, size)})
	if err != nil {
		t.Fatal(err)
	}
	return len(b), len(b) + len(`{"jsonrpc":"2.0","method":"session/update","params":}`+"\n")
}

// All updates of a turn arrive, in order and before its answer, however many there are and however slow their handler
// is; the agent waits for a slow handler, and memory stays flat (rules 2 and 3).
func TestBurst(t *testing.T) {
	const size = 64
	sleep := func() { time.Sleep(10 * time.Microsecond) }
	spin := func() {
		for start := time.Now(); time.Since(start) < 10*time.Microsecond; {
		}
	}
	n := of(*loadUpdates, 500, 2000, 10_000, 10_000)
	tab := newTable(t, "handler", "QueueBytes", "updates", "time", "on their way at most", "peak of the client", "peak of the agent")
	for _, c := range []struct {
		name  string
		queue int
		work  func() // if nil, a loop over Turn.Updates instead of a handler
	}{
		{"nothing", defaultQueue, func() {}},
		{"none, Turn.Updates", 256 << 10, nil},
		{"busy for 10 µs", 256 << 10, spin},
		{"busy for 10 µs", defaultQueue, spin},
		{"time.Sleep(10µs)", 256 << 10, sleep}, // its time depends on the system's timers
	}[:tier.Pick(1, 3, 5, 5)] {
		t.Run(c.name+", "+mib(c.queue), func(t *testing.T) {
			arr := newArrival(t)
			var handlers acp.ClientHandlers
			queues := 2 // one of the session, and one of the turn
			if c.work != nil {
				queues = 1
				handlers.SessionUpdate = func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
					arr.update(&n.Update)
					c.work()
					return nil
				}
			}
			agent := start(t, "agent", handlers, acp.ConnOptions{QueueBytes: c.queue}, 0)
			session := newSession(t, agent.ClientConn)
			memory := watchMemory(agent)

			begin := time.Now()
			p := plan{Updates: n, Size: size, Progress: arr.path}
			var err error
			if c.work != nil {
				_, err = session.Prompt(bounded(t, n), p.block())
			} else {
				turn := session.Stream(bounded(t, n), p.block())
				for update := range turn.Updates() {
					arr.update(&update)
				}
				_, err = turn.Result()
			}
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(begin)
			limit := arr.done(n, size, queues*c.queue)
			cells := memory.cells(t, queues*c.queue*queueFactor+smallGrowth, smallGrowth)
			tab.row(append([]string{c.name, mib(c.queue), fmt.Sprint(arr.next), rate(n, took),
				fmt.Sprintf("%d, limit %d", arr.worst, limit)}, cells...)...)
		})
	}
}
