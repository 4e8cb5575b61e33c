// Command proxy stands between a client and an agent.
//
//	proxy [-v] -- AGENT [arguments]
//
// It starts the agent and passes every message on, both ways, byte for byte: also those that it does not
// understand. One that is longer than 128 MiB is not passed on; who waits for it gets an error in its place. With -v it
// says on standard error what passes, in a line for each message. What the agent writes to standard error comes there
// too, with "agent: " in front of each line; nothing there makes a terminal do more than show it. When the client ends
// the connection, so does the agent's, which still gets time to answer; when the agent ends, so does the proxy, with the
// same exit status.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/view"
)

// What the agent is given to end, after its input has. It adds up to less than clients wait for a proxy.
const (
	drainTime = time.Second            // to answer what it was asked, and to end by itself
	stopTime  = 500 * time.Millisecond // before it is asked to end
	killTime  = time.Second            // before it is killed
)

// maxMessage is the longest message that is passed on, in bytes: more than the ends accept if they have this library's
// limit, and no more than the proxy should hold for each direction.
const maxMessage = 2 * rpc.DefaultMaxMessage

func main() {
	verbose := flag.Bool("v", false, "say what passes")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: proxy [-v] -- AGENT [arguments]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	w := &watcher{pending: map[string]string{}}
	if *verbose {
		w.out = os.Stderr
	}
	cmd := exec.Command(flag.Arg(0), flag.Args()[1:]...)
	stderr := view.NewPrintableWriter(os.Stderr, "agent: ")
	cmd.Stderr = stderr
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, cmd, w)
	stop()
	if err := errors.Join(err, stderr.Flush()); err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", view.PrintableLine(err.Error()))
	}
	os.Exit(exitStatus(cmd, err))
}

// run connects both ends, and returns when both are over. It fails when it could not start.
func run(ctx context.Context, cmd *exec.Cmd, w *watcher) error {
	down := rpc.Command(cmd)
	down.MaxMessage, down.StopTime, down.KillTime = maxMessage, stopTime, killTime
	agent, err := down.Connect(ctx)
	if err != nil {
		return err
	}
	up := rpc.Stdio()
	up.MaxMessage = maxMessage
	client, err := up.Connect(ctx)
	if err != nil {
		return errors.Join(err, agent.Close())
	}
	defer context.AfterFunc(ctx, func() { agent.Close() })()

	var toAgent sync.WaitGroup
	var drained *time.Timer
	clientEnd, agentEnd := &end{Stream: client}, &end{Stream: agent}
	toAgent.Go(func() {
		w.pass(toTheAgent, clientEnd, agentEnd)
		// The client is gone, or the agent is.
		if h, ok := agent.(rpc.HalfCloser); ok {
			if err := h.CloseWrite(); err != nil {
				w.printf("%s: %v", toTheAgent, err)
			}
		}
		drained = time.AfterFunc(drainTime, func() { agent.Close() })
	})
	w.pass(toTheClient, agentEnd, clientEnd)
	err = errors.Join(agent.Close(), client.Close())
	toAgent.Wait()
	drained.Stop()
	return err
}

// An end is a stream that both directions write to: one passes messages on, the other refuses what it has read.
type end struct {
	rpc.Stream
	writing sync.Mutex
}

// Write sends one message. It may be called concurrently.
func (e *end) Write(message []byte) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	return e.Stream.Write(message)
}

// pass passes messages on until one of the streams ends.
func (w *watcher) pass(d direction, from, to rpc.Stream) {
	for {
		line, err := from.Read()
		if long, ok := errors.AsType[*rpc.TooLongError](err); ok {
			err = w.refuse(d, long, from, to)
		} else if err == nil {
			w.see(d, line)
			err = to.Write(line)
		}
		if err != nil {
			w.printf("%s: ended: %v", d, err)
			return
		}
	}
}

// refuse answers a message that is too long, as an end with this library does. If it is an answer itself, the one who
// waits for it gets an error in its place.
func (w *watcher) refuse(d direction, long *rpc.TooLongError, from, to rpc.Stream) error {
	w.printf("%s: not passed on: %v", d, long)
	id, response, known := long.ID()
	if response && !known {
		return nil
	}
	failure := rpc.Errorf(rpc.ErrInvalidRequest, "message longer than %d bytes", long.Limit)
	if response {
		failure = rpc.Errorf(rpc.ErrInternal, "answer longer than %d bytes", long.Limit)
	}
	answer, err := json.Marshal(struct {
		JSONRPC string     `json:"jsonrpc"`
		ID      rpc.ID     `json:"id"`
		Error   *rpc.Error `json:"error"`
	}{"2.0", id, failure})
	if err != nil {
		return err
	}
	if !response {
		return from.Write(answer)
	}
	w.see(d, answer)
	return to.Write(answer)
}

// exitStatus is the agent's, as a shell would give it: 128 and the signal when one ended it.
func exitStatus(cmd *exec.Cmd, err error) int {
	state := cmd.ProcessState
	if state == nil || err != nil {
		return 1
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
