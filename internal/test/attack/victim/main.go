// Command victim is the target of the hostile programs: the smallest client that serves files and terminals, and the
// smallest agent, as in the README. The one of version 2 is in package github.com/acpgo/sdk/acp/acpv2/internal/victim.
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
	stderr   bool          // show what the agent writes to standard error
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
	flag.BoolVar(&c.stderr, "stderr", false, "show what the agent writes to its standard error")
	flag.Parse()
	r := hostile.NewReport(*report)
	var err error
	switch {
	case flag.Arg(0) == "agent":
		err = serve(r)
	case flag.Arg(0) == "client" && flag.NArg() > 1 && flag.Arg(1) == "--":
		c.agent = flag.Args()[2:]
		err = hostile.Live(r, func() error { return c.client(r) })
	default:
		err = fmt.Errorf("usage: victim [flags] client -- AGENT [arguments], or victim [flags] agent")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "victim:", err)
		os.Exit(1)
	}
}
