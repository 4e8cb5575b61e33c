package stress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/tier"
)

// ending is a way in which connections end.
type ending struct {
	name string
	// idle is true if the traffic ends first, so that everything must add up.
	idle bool
	// own is true if this side ends the connection, which discards queued messages.
	own bool
	// end ends the connection.
	end func(*link) error
	// exit judges how the agent ended and the result of Wait. It is nil if anything is allowed.
	exit func(state *os.ProcessState, wait error) bool
}

// clean reports whether an agent ended without errors.
func clean(state *os.ProcessState, wait error) bool { return state.Success() && wait == nil }

// given reports whether an agent ended as it may with only its drain time, which may cut its output.
func given(state *os.ProcessState, wait error) bool {
	return state.Success() && (wait == nil || errors.Is(wait, io.ErrUnexpectedEOF))
}

// exited returns a function that reports whether an agent ended with a status.
func exited(status int) func(*os.ProcessState, error) bool {
	return func(state *os.ProcessState, wait error) bool {
		exit, ok := errors.AsType[*acp.ExitError](wait)
		return ok && errors.Is(wait, acp.ErrClosed) && exit.State == state && state.ExitCode() == status
	}
}

var endings = []ending{
	{name: "Close, idle", idle: true, end: (*link).close, exit: clean},
	{name: "Close, busy", own: true, end: (*link).close},
	{name: "SIGKILL", end: func(l *link) error { return l.transport.Cmd.Process.Kill() }, exit: exited(-1)},
	{name: "truncated line", end: fails(faultTruncate), exit: exited(truncatedExit)},
	{name: "exit", end: fails(faultExit), exit: clean},
	{name: "agent closes its output", end: fails(faultHangUp)},
	{name: "client closes its output", end: func(l *link) error { return l.faults.hangUp() }, exit: given},
	{name: "agent reads no more, Close", own: true, end: func(l *link) error {
		return errors.Join(fails(faultDeaf)(l), l.close())
	}},
}

// fails returns a function that causes a fault in the agent.
func fails(kind string) func(*link) error {
	return func(l *link) error {
		return rpc.Notify(context.Background(), l.conn.RPC(), methodFault, &fault{Kind: kind, Seed: l.rand.Uint64()})
	}
}

// soak is the whole run.
type soak struct {
	t    *testing.T
	seed uint64
	rest atomic.Bool // no more connections

	mu     sync.Mutex
	totals map[string]*total // by ending
}

// total is the sum of the accounts of connections.
type total struct {
	links, sessions  int
	sent, received   flow
	updates, handled int
	calls            calls
	invalid, lost    int
}

// Mixed traffic over connections that end in all ways, for the time given by the flag: nothing is lost, nothing hangs,
// every call ends once, in one of the documented ways, and nothing is left.
func TestSoak(t *testing.T) {
	tier.Need(t, tier.Normal)
	s := &soak{t: t, seed: *soakSeed, totals: map[string]*total{}}
	if s.seed == 0 {
		s.seed = rand.Uint64()
	}
	t.Logf("seed %d", s.seed)
	s.run(0) // everything that is kept forever exists from now on
	start := s.residue()

	const workers = 3
	stop := time.AfterFunc(soaking(), func() { s.rest.Store(true) })
	defer stop.Stop()
	var wg sync.WaitGroup
	var links atomic.Int64
	for range workers {
		wg.Go(func() {
			for !s.rest.Load() && !t.Failed() {
				s.run(int(links.Add(1)))
			}
		})
	}
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	for running := true; running; {
		select {
		case <-minute.C:
			t.Logf("%d connections: %v", links.Load(), s.residue())
		case <-done:
			running = false
		}
	}
	end := s.residue()
	t.Logf("at the start: %v", start)
	t.Logf("at the end:   %v", end)
	if end.goroutines > start.goroutines || end.files > start.files || end.processes > 0 || end.heap > start.heap+smallGrowth {
		t.Error("resources are left behind")
	}
	s.print()
}

func (s *soak) print() {
	tab := newTable(s.t, "ended by", "connections", "sessions", "messages out", "in", "MiB", "updates read", "handled", "calls answered", "given up", "failed", "calls served", "bad lines", "lost")
	var sum total
	add := func(name string, n *total) {
		cells := []string{name}
		for _, v := range []int{
			n.links, n.sessions, n.sent.Messages, n.received.Messages, (n.sent.Bytes + n.received.Bytes) >> 20, n.updates, n.handled,
			n.calls.Answered, n.calls.GivenUp, n.calls.Closed, n.received.Requests, n.invalid, n.lost,
		} {
			cells = append(cells, strconv.Itoa(v))
		}
		tab.row(cells...)
	}
	for _, e := range endings {
		if n := s.totals[e.name]; n != nil {
			add(e.name, n)
			sum.add(n)
		}
	}
	add("all", &sum)
}

func (n *total) add(m *total) {
	for _, pair := range []struct{ to, from *int }{
		{&n.links, &m.links}, {&n.sessions, &m.sessions}, {&n.updates, &m.updates}, {&n.handled, &m.handled}, {&n.invalid, &m.invalid}, {&n.lost, &m.lost},
		{&n.sent.Messages, &m.sent.Messages}, {&n.sent.Bytes, &m.sent.Bytes}, {&n.sent.Requests, &m.sent.Requests},
		{&n.received.Messages, &m.received.Messages}, {&n.received.Bytes, &m.received.Bytes}, {&n.received.Requests, &m.received.Requests},
		{&n.calls.Answered, &m.calls.Answered}, {&n.calls.GivenUp, &m.calls.GivenUp}, {&n.calls.Closed, &m.calls.Closed},
	} {
		*pair.to += *pair.from
	}
}

// residue is the resource usage of a process when nothing is in progress.
type residue struct {
	goroutines, files, processes int
	heap, resident               int
}

func (r residue) String() string {
	return fmt.Sprintf("%d goroutines, %d open files, %d child processes, heap %s, resident %s",
		r.goroutines, r.files, r.processes, mib(r.heap), mib(r.resident))
}

func (s *soak) residue() residue {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		s.t.Log("the number of open files is not available:", err)
	}
	return residue{runtime.NumGoroutine(), len(files), children(), int(m.HeapAlloc), vm(os.Getpid(), "VmRSS")}
}

// children returns the number of processes that this one has started and not waited for.
func children() int {
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		return 0
	}
	n := 0
	for _, task := range tasks {
		if list, err := os.ReadFile(task); err == nil {
			n += len(strings.Fields(string(list)))
		}
	}
	return n
}
