// Command victim is the target of the hostile programs: the smallest client that serves files and terminals, and the
// smallest agent, as in the README.
//
//	victim [flags] client -- AGENT [arguments]
//	victim [flags] agent
//
// The client has two turns with the agent, "attack" and "again". The second one must be an ordinary turn. The client
// writes a report with the faults, and the numbers of goroutines at most and at the end.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/acpgo/sdk/internal/test/attack/hostile"
)

// config is what the command line says.
type config struct {
	root     string
	ask      string        // what becomes of requests for permission
	callback bool          // updates are answered with a call
	anew     bool          // the second turn is with another agent process: the first is not expected to live
	patience time.Duration // for the turn with the attack
	grace    time.Duration // for the agent to end a turn that was cancelled; 0 is the default
	sessions int           // opened and closed, one after the other
	others   bool          // a second agent is connected, and has files of its own
	v2       bool
	stderr   bool // show what the agent writes to standard error
	agent    []string
}

func main() {
	var c config
	report := flag.String("report", "", "where to write the report; nowhere if it is empty")
	flag.StringVar(&c.root, "root", ".", "the directory of the sessions")
	flag.StringVar(&c.ask, "ask", "reject", "`what` becomes of requests for permission: reject, or wait for a user who does not come")
	flag.BoolVar(&c.callback, "callback", false, "call the agent for each update")
	flag.BoolVar(&c.anew, "anew", false, "have the second turn on another connection")
	flag.DurationVar(&c.patience, "patience", 2*time.Hour, "how long the attack may take; by default the driver decides")
	flag.DurationVar(&c.grace, "grace", 0, "how long a cancelled turn waits for its answer")
	flag.IntVar(&c.sessions, "sessions", 0, "open and close so many sessions")
	flag.BoolVar(&c.others, "others", false, "serve a second agent from the same directories")
	flag.BoolVar(&c.v2, "v2", false, "speak version 2")
	flag.BoolVar(&c.stderr, "stderr", false, "show what the agent writes to its standard error")
	flag.Parse()
	r := hostile.NewReport(*report)
	var err error
	switch {
	case flag.Arg(0) == "agent":
		err = serve(r)
	case flag.Arg(0) == "client" && flag.NArg() > 1 && flag.Arg(1) == "--":
		c.agent = flag.Args()[2:]
		err = c.live(r)
	default:
		err = fmt.Errorf("usage: victim [flags] client -- AGENT [arguments], or victim [flags] agent")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "victim:", err)
		os.Exit(1)
	}
}

// live has the client live, and notes what became of it.
func (c config) live(r *hostile.Report) error {
	before := runtime.NumGoroutine()
	watch := watch()
	err := c.client(r)
	most, memory := watch()
	r.Note("%d goroutines and %d MiB of Go's at most", most, memory)
	if most > maxGoroutines {
		r.Problem("%d goroutines, want %d at most", most, maxGoroutines)
	}
	if left := settle(before); left > before {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		r.Problem("%d goroutines are left, %d at the start: %.3000s", left, before, stacks)
	}
	if err != nil {
		r.Problem("%v", err)
	}
	return r.Ran()
}

// maxGoroutines is how many goroutines a connection may have: one for each request in progress, one for each
// session with notifications that wait, of which there may be 4096 each.
const maxGoroutines = 3 * 4096

// watch looks at goroutines and memory until the function that it returns is called, which says how many there were,
// and how many MiB Go had of the system. That is without what the race detector has.
func watch() (most func() (goroutines int, memory uint64)) {
	stop, done := make(chan struct{}), make(chan struct{})
	goroutines, memory := 0, uint64(0)
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		for {
			metrics.Read(samples)
			goroutines = max(goroutines, runtime.NumGoroutine())
			memory = max(memory, samples[0].Value.Uint64()-samples[1].Value.Uint64())
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() (int, uint64) {
		close(stop)
		<-done
		return goroutines, memory >> 20
	}
}

// settle waits until there are no more goroutines than there were, for a while, and returns how many there are.
func settle(before int) int {
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if n := runtime.NumGoroutine(); n <= before {
			return n
		}
	}
	return runtime.NumGoroutine()
}
