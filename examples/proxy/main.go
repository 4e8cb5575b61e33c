// Command proxy stands between a client and an agent.
//
//	proxy [-v] [-- AGENT [arguments]]
//
// It starts the agent and passes every message on, both ways, byte for byte; one that is longer than 128 MiB is
// refused. With -v it prints the beginning of each message on standard error. What the agent writes to standard error
// is printed there too, with "agent: " in front of each line, and can do nothing to a terminal but appear. The proxy
// ends with the client, after the agent has had time to answer, or with the agent; its exit status is the agent's.
// Without an agent it is a component that a conductor starts.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/acpgo/sdk/acp/proxy"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/view"
)

// maxMessage is the longest message that is passed on, in bytes: more than the ends accept if they use this library.
const maxMessage = 2 * rpc.DefaultMaxMessage

func main() {
	verbose := flag.Bool("v", false, "print what passes")
	flag.Parse()
	opts := &proxy.Options{}
	if *verbose {
		opts.Message = func(from proxy.Side, message []byte) {
			fmt.Fprintf(os.Stderr, "%s → %s\n", from, view.PrintableLine(string(message[:min(len(message), 200)])))
		}
	}
	up := rpc.Stdio()
	up.MaxMessage = maxMessage
	agent := &exec.Cmd{}
	var down rpc.Transport
	stderr := view.NewPrintableWriter(os.Stderr, "agent: ")
	if flag.NArg() > 0 {
		agent = exec.Command(flag.Arg(0), flag.Args()[1:]...)
		agent.Stderr = stderr
		// What the agent is given to end adds up to less than clients wait for a proxy.
		down = &rpc.CommandTransport{Cmd: agent, MaxMessage: maxMessage, StopTime: 500 * time.Millisecond,
			KillTime: time.Second}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := proxy.Serve(ctx, up, down, proxy.Hooks{}, opts) // to do more than pass messages on, set hooks
	stop()
	stderr.Flush()
	if err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", view.PrintableLine(err.Error()))
	}
	os.Exit(status(agent.ProcessState, err))
}

// status is the agent's exit status, as a shell gives it: 128 and the signal if one ended it.
func status(agent *os.ProcessState, err error) int {
	if agent == nil || agent.Success() {
		if err != nil {
			return 1
		}
		return 0
	}
	if s, ok := agent.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal())
	}
	return agent.ExitCode()
}
