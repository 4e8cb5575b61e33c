// Package relay implements a relay between a client and an agent. The client runs it in place of the agent's command:
// it starts the agent, passes all bytes on immediately, and records them.
//
// To the client, the relay is the agent; to the agent, it is the client. It passes on everything that ends one side to
// the other: the end of the input or output, a closed pipe, a signal. The agent is in the relay's process group, so
// that signals to the group reach it too. On Linux, the agent is killed if the relay is killed.
package relay

import (
	"cmp"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/proc"
)

// Options configures Run. A separate goroutine records and calls the functions, so that a slow function delays no
// message.
type Options struct {
	// Stdin has the client's output, Stdout is the client's input, and Stderr receives the agent's standard error. Run
	// closes Stdin and Stdout if the agent starts. If Stderr is nil, standard error is discarded.
	Stdin  io.ReadCloser
	Stdout io.WriteCloser
	Stderr io.Writer
	// Signals has signals to pass on to the agent. It may be nil. See Notify.
	Signals <-chan os.Signal
	// Writer records all lines and the end. It may be nil.
	Writer *recording.Writer
	// RecordStderr enables the recording of standard error.
	RecordStderr bool
	// OnMessage is called for each line that a side writes, after the Writer has recorded it. It may be nil.
	OnMessage func(conformance.Message)
	// Idle is called when everything so far has been recorded. It is a place to flush the Writer's file. It may be nil.
	Idle func() error
	// MaxPending bounds the number of bytes that were passed on but not yet recorded. 0 means DefaultMaxPending. Bytes
	// beyond it are not recorded, and the recording has a gap entry for them.
	MaxPending int
}

// DefaultMaxPending is the default of Options.MaxPending.
const DefaultMaxPending = 256 << 20

// lingerTime is how long the agent's output may stay silent after the end of its process before it is considered ended
// too. A child of the process may hold it open.
const lingerTime = time.Second

// bufferSize is the maximum number of bytes that are passed on at once, which is the capacity of a pipe.
const bufferSize = 64 << 10

// Result is the result of Run.
type Result struct {
	// State is the final state of the agent's process.
	State *os.ProcessState
	// Closed is the side that ended the connection.
	Closed conformance.Side
	// Lost is the number of bytes that were passed on but not recorded.
	Lost int64
	// Err is the reason why the recording is incomplete, or nil.
	Err error
}

// Run starts the agent, and returns when the agent has ended and everything is recorded. It returns an error if the
// agent does not start. The Stdin and Stdout of the command must not be set.
//
// Run waits for all its goroutines, with one exception: the reader of a Stdin whose Read does not return on Close, as
// may be the case for an os.File.
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
	// The thread that starts the agent must live as long as the agent; see attach.
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
		r.cmd.Stderr = file // directly, without copying
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
	_ = closeAll(child) // the agent has its own copies

	r.record = newRecorder(r.options)
	var signals, input, output, errOutput sync.WaitGroup
	exited := make(chan struct{})
	if r.options.Signals != nil {
		signals.Go(func() { r.forward(exited) })
	}
	interruptible := canInterrupt(r.options.Stdin)
	input.Go(func() { r.pass(fromClient, r.options.Stdin, toChild) })
	var heard atomic.Int64
	output.Go(func() { r.pass(fromAgent, &hearing{fromChild, &heard}, r.options.Stdout) })
	if errFromChild != nil {
		errOutput.Go(func() {
			to := cmp.Or(r.options.Stderr, io.Discard)
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
	// Nothing reads what the client still writes.
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

// forward passes signals on until the agent has ended.
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

// pass passes bytes on until one end is closed, and then closes the other.
func (r *run) pass(s source, from io.ReadCloser, to io.WriteCloser) {
	buf := make([]byte, bufferSize)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			r.record.add(s, buf[:n])
			_, writeErr := to.Write(buf[:n])
			r.record.wake()
			if writeErr != nil {
				// The writer notices it as it would without the relay, because its pipe is closed.
				_ = from.Close()
				_ = to.Close()
				return
			}
		}
		if err != nil {
			if s == fromClient && errors.Is(err, io.EOF) {
				r.clientClosed.Store(true) // first, because the agent may end at once
			}
			_ = to.Close()
			_ = from.Close()
			return
		}
	}
}

// keepOpen is a writer whose Close does nothing.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// hearing is a file that records when it was last read.
type hearing struct {
	*os.File
	at *atomic.Int64
}

func (h *hearing) Read(b []byte) (int, error) {
	n, err := h.File.Read(b)
	h.at.Add(1)
	return n, err
}

// linger stops reading the agent's outputs when they have been silent for lingerTime. The returned function cancels
// that.
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

// ExitStatus returns the exit status of a process as a shell reports it: 128 plus the signal if a signal ended it.
func ExitStatus(state *os.ProcessState) int {
	if s, name := proc.EndedBy(state); name != "" {
		return 128 + int(s)
	}
	return state.ExitCode()
}

// End returns the end of a process for a recording.
func End(state *os.ProcessState) *recording.End {
	if _, name := proc.EndedBy(state); name != "" {
		return &recording.End{Signal: name}
	}
	code := state.ExitCode()
	return &recording.End{Code: &code}
}
