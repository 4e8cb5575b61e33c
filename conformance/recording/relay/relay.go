// Package relay stands between a client and an agent, as the agent's command: it starts the agent, passes all bytes on
// as they come, and records them beside.
//
// To the client the relay is the agent, and to the agent it is the client. Whatever ends the one ends the other: the end
// of the input and of the output, a closed pipe, a signal. The agent is in the relay's process group, so that signals
// to the group reach it too. On Linux it is killed when the relay is killed.
package relay

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
)

// Options configure Run. What is recorded, and what the functions are called for, is done by one goroutine
// beside the traffic: who is slow there delays no message.
type Options struct {
	// Stdin is what the client writes, Stdout what it reads, and Stderr what it sees of the agent's
	// standard error. Run closes Stdin and Stdout, if the agent starts. A nil Stderr discards.
	Stdin  io.ReadCloser
	Stdout io.WriteCloser
	Stderr io.Writer
	// Signals are handed on to the agent, if not nil. See Notify.
	Signals <-chan os.Signal
	// Writer gets all that passes, and the end. It may be nil.
	Writer *recording.Writer
	// RecordStderr says that the lines of standard error are recorded too.
	RecordStderr bool
	// OnMessage is called for each line that a side writes, after it was written to the Writer. It may be nil.
	OnMessage func(conformance.Message)
	// Idle is called when all that has passed was recorded: a place to flush the Writer's file. It may be nil.
	Idle func() error
	// MaxPending bounds what has passed and is not recorded yet, in bytes; 0 means DefaultMaxPending. What finds no
	// room is not recorded, and the recording says so.
	MaxPending int
}

// DefaultMaxPending is Options.MaxPending unless told otherwise.
const DefaultMaxPending = 256 << 20

// lingerTime is how long after the end of the agent's process its output may stay silent before it is taken to have
// ended too: a child of the process can hold it open.
const lingerTime = time.Second

// bufferSize is how many bytes are passed on at once: what a pipe holds.
const bufferSize = 64 << 10

// Result says how it went.
type Result struct {
	// State is how the agent ended.
	State *os.ProcessState
	// Closed is the side that ended the connection.
	Closed conformance.Side
	// Lost is how many bytes were passed on and not recorded.
	Lost int64
	// Err is why the recording is not complete, or nil.
	Err error
}

// Run starts the agent and returns when it has ended and all is recorded. Its error says that the agent did not
// start. The command's Stdin and Stdout must not be set.
//
// It waits for all its goroutines, but for one that reads a Stdin whose Read does not return when it is closed, as
// that of an os.File may not.
func Run(cmd *exec.Cmd, options Options) (*Result, error) {
	r := &run{options: options, cmd: cmd}
	return r.run()
}

type run struct {
	options      Options
	cmd          *exec.Cmd
	record       *recorder
	clientClosed atomic.Bool
}

func (r *run) run() (*Result, error) {
	// The thread that starts the agent must live as long as the agent does: see attach.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	childIn, toChild, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromChild, childOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, childIn.Close(), toChild.Close())
	}
	child, ours := []*os.File{childIn, childOut}, []*os.File{toChild, fromChild}
	r.cmd.Stdin, r.cmd.Stdout = childIn, childOut
	var errFromChild *os.File
	switch file, isFile := r.options.Stderr.(*os.File); {
	case isFile && !r.options.RecordStderr:
		r.cmd.Stderr = file // without a detour
	case r.options.Stderr != nil || r.options.RecordStderr:
		var childErr *os.File
		if errFromChild, childErr, err = os.Pipe(); err != nil {
			return nil, errors.Join(err, closeAll(child), closeAll(ours))
		}
		child, ours = append(child, childErr), append(ours, errFromChild)
		r.cmd.Stderr = childErr
	}
	attach(r.cmd)
	if err := r.cmd.Start(); err != nil {
		return nil, errors.Join(err, closeAll(child), closeAll(ours))
	}
	_ = closeAll(child) // the agent has its own

	r.record = newRecorder(r.options)
	var signals, input, output, errOutput sync.WaitGroup
	exited := make(chan struct{})
	if r.options.Signals != nil {
		signals.Go(func() { r.forward(exited) })
	}
	interruptible := canInterrupt(r.options.Stdin)
	input.Go(func() {
		if r.pass(fromClient, r.options.Stdin, toChild) {
			r.clientClosed.Store(true)
		}
	})
	var heard atomic.Int64
	output.Go(func() { r.pass(fromAgent, &hearing{fromChild, &heard}, r.options.Stdout) })
	if errFromChild != nil {
		errOutput.Go(func() {
			to := r.options.Stderr
			if to == nil {
				to = io.Discard
			}
			r.pass(fromStderr, &hearing{errFromChild, &heard}, keepOpen{to})
		})
	}

	waitErr := r.cmd.Wait()
	close(exited)
	closed := conformance.Agent
	if r.clientClosed.Load() {
		closed = conformance.Client
	}
	stop := linger(&heard, fromChild, errFromChild)
	output.Wait()
	errOutput.Wait()
	stop()
	// Whatever the client still says, nobody hears it.
	_ = r.options.Stdin.Close()
	if interruptible {
		input.Wait()
	}
	signals.Wait()
	result := r.record.end(r.cmd.ProcessState, closed)
	if _, isExit := errors.AsType[*exec.ExitError](waitErr); waitErr != nil && !isExit {
		result.Err = errors.Join(result.Err, waitErr)
	}
	return result, nil
}

func closeAll(files []*os.File) error {
	var all error
	for _, f := range files {
		all = errors.Join(all, f.Close())
	}
	return all
}

// forward hands signals on until the agent has ended.
func (r *run) forward(exited <-chan struct{}) {
	for {
		select {
		case s, ok := <-r.options.Signals:
			if !ok {
				return
			}
			if !reachesGroup(s) {
				_ = r.cmd.Process.Signal(s) // it fails if the agent has just ended
			}
		case <-exited:
			return
		}
	}
}

// pass passes bytes on until one end is closed, and then closes the other. It reports whether the reading end was the
// first.
func (r *run) pass(s source, from io.ReadCloser, to io.WriteCloser) (ended bool) {
	buf := make([]byte, bufferSize)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			r.record.add(s, buf[:n])
			_, writeErr := to.Write(buf[:n])
			r.record.wake()
			if writeErr != nil {
				// The one who writes learns of it as it would without the relay: its pipe is closed.
				_ = from.Close()
				_ = to.Close()
				return false
			}
		}
		if err != nil {
			_ = to.Close()
			_ = from.Close()
			return errors.Is(err, io.EOF)
		}
	}
}

// keepOpen is a writer whose Close does nothing.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// hearing is a file that notes when it was read.
type hearing struct {
	*os.File
	at *atomic.Int64
}

func (h *hearing) Read(b []byte) (int, error) {
	n, err := h.File.Read(b)
	h.at.Add(1)
	return n, err
}

// linger ends reading the agent's outputs when they have been silent for lingerTime. The function it returns stops that.
func linger(heard *atomic.Int64, files ...*os.File) (stop func()) {
	var mu sync.Mutex
	var timer *time.Timer
	stopped := false
	last := heard.Load()
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(lingerTime, func() {
		mu.Lock()
		defer mu.Unlock()
		if now := heard.Load(); now != last && !stopped {
			last = now
			timer.Reset(lingerTime)
			return
		}
		for _, f := range files {
			if f != nil {
				_ = f.SetReadDeadline(time.Unix(0, 1))
			}
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

// canInterrupt reports whether closing a reader ends its Read.
func canInterrupt(from io.Reader) bool {
	if f, ok := from.(*os.File); ok {
		return f.SetReadDeadline(time.Time{}) == nil
	}
	return true
}

// ExitStatus is the exit status of a process as a shell gives it: 128 and the signal when one ended it.
func ExitStatus(state *os.ProcessState) int {
	if s, ok := signalOf(state); ok {
		return 128 + int(s)
	}
	return state.ExitCode()
}

// End is how a process ended, for a recording.
func End(state *os.ProcessState) *recording.End {
	if s, ok := signalOf(state); ok {
		return &recording.End{Signal: signalName(s)}
	}
	code := state.ExitCode()
	return &recording.End{Code: &code}
}

func signalName(s syscall.Signal) string {
	if name, ok := signalNames[s]; ok {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}
