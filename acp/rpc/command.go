package rpc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/internal/proc"
	"github.com/acpgo/sdk/internal/wire"
)

// CommandTransport starts a subprocess and talks to it over its standard input and output. The process and everything
// that it starts run in a process group of their own (on Windows a job object), which is ended with the connection:
// standard input is closed; processes that are still running after StopTime get SIGTERM, and after KillTime they are
// killed. On Unix, processes that move to another session or group, as daemons do, cannot be reached and keep running.
// A CommandTransport connects once.
//
// Text before a message on the same line, such as a banner without a newline, is treated as a separate line that is not
// a message; see Options.SkipNoise.
type CommandTransport struct {
	// Cmd is the command. Its Stdin and Stdout must not be set. The standard error of the process goes to Cmd.Stderr,
	// if that is set. If Cmd.Env is nil, the process gets this process's environment, including any secrets in it.
	Cmd *exec.Cmd
	// MaxMessage is the longest message accepted, in bytes; 0 means DefaultMaxMessage.
	MaxMessage int
	// StopTime is how long the process may take to end after its input has been closed. The default is 2 s.
	StopTime time.Duration
	// KillTime is how long it may take after it has been asked to end. The default is 3 s.
	KillTime time.Duration
	// StderrTail is how much of the end of standard error an *ExitError keeps, in bytes. The default is 8 KiB; a
	// negative value means that none is kept.
	StderrTail int

	once once
}

// Command returns the transport that starts cmd. Its fields may be set before it is connected.
func Command(cmd *exec.Cmd) *CommandTransport { return &CommandTransport{Cmd: cmd} }

// Connect starts the process. The end of the context does not end it; closing the connection does.
func (t *CommandTransport) Connect(context.Context) (Stream, error) {
	if err := t.once.use(); err != nil {
		return nil, err
	}
	return t.start()
}

// ExitError reports that the subprocess of a connection has ended. It matches io.EOF.
type ExitError struct {
	// State says how the process ended.
	State *os.ProcessState
	// ProcessOutput is the output that the process wrote.
	ProcessOutput
}

// Error returns the state and the most likely reason; see ProcessOutput.Reason.
func (e *ExitError) Error() string {
	msg := "subprocess ended: " + e.State.String()
	if why := e.Reason(); why != "" {
		msg += ": " + why
	}
	return msg + e.rest()
}

func (e *ExitError) success() bool { return e.State.Success() }

// Unwrap returns io.EOF, because the stream has ended.
func (e *ExitError) Unwrap() error { return io.EOF }

// lingerTime is how long to wait for the process to end after its output has ended, or the reverse, before treating one
// as the other: a child of the process can hold the output open, and a process can close its output and keep running.
const lingerTime = time.Second

// process is the stream of a CommandTransport. Two goroutines belong to it: one waits for the process,
// one reads its standard error; Close waits for both.
type process struct {
	*lineStream
	cmd      *exec.Cmd
	stopTime time.Duration
	killTime time.Duration
	group    *proc.Group
	stdin    *os.File
	stdout   *os.File
	stderr   *os.File
	tail     tail
	noise    tail
	began    time.Time
	heard    atomic.Int64  // time of the last output, in nanoseconds since began
	endedAt  atomic.Int64  // time at which the output ended, or 0
	behind   []byte        // a message that followed noise on its line; owned by the reader
	messages bool          // at least one message was read; owned by the reader
	exited   chan struct{} // closed when the process has ended
	drained  chan struct{} // closed when its standard error has ended
	ended    chan struct{} // closed by Read when its output has ended
	endOnce  sync.Once
}

func (t *CommandTransport) start() (Stream, error) {
	cmd := t.Cmd
	if cmd.Stdin != nil || cmd.Stdout != nil {
		return nil, errors.New("the command's Stdin or Stdout is set")
	}
	p := &process{
		cmd:      cmd,
		stopTime: cmp.Or(t.StopTime, 2*time.Second),
		killTime: cmp.Or(t.KillTime, 3*time.Second),
		tail:     tail{max: max(0, cmp.Or(t.StderrTail, 8<<10)), also: cmd.Stderr},
		noise:    tail{max: noiseTail},
		exited:   make(chan struct{}),
		drained:  make(chan struct{}),
		ended:    make(chan struct{}),
	}
	var child []*os.File
	pipe := func(childReads bool) (ours, theirs *os.File, err error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, nil, err
		}
		if childReads {
			r, w = w, r
		}
		child = append(child, w)
		return r, w, nil
	}
	fail := func(err error) (Stream, error) {
		closeAll(append(child, p.stdin, p.stdout, p.stderr)...)
		return nil, err
	}
	var stdin, stdout, stderr *os.File
	var err error
	if p.stdin, stdin, err = pipe(true); err != nil {
		return fail(err)
	}
	if p.stdout, stdout, err = pipe(false); err != nil {
		return fail(err)
	}
	if p.stderr, stderr, err = pipe(false); err != nil {
		return fail(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	widen(p.stdin)
	widen(p.stdout)
	if p.group, err = proc.Start(cmd); err != nil {
		return fail(err)
	}
	closeAll(child...)
	p.began = time.Now()
	p.lineStream = newLineStream(&output{File: p.stdout, left: leftover, p: p}, p.stdin, t.MaxMessage, p.stop)
	go p.watch()
	go p.readStderr()
	return p, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// watch waits for the process, and ends its outputs if a child keeps them open.
func (p *process) watch() {
	defer close(p.exited)
	// The ProcessState has the exit status.
	_ = p.cmd.Wait()
	p.group.Reaped()
	select {
	case <-p.ended:
	case <-time.After(lingerTime):
		p.stdout.SetReadDeadline(time.Now())
		p.stderr.SetReadDeadline(time.Now())
	}
}

// leftover is how many bytes of output may be read after the process has ended: at least what a pipe holds, but bounded
// in case a child keeps writing.
const leftover = 1 << 20

// output is the standard output of a process. After its deadline it does not wait for more; available output is still
// read.
type output struct {
	*os.File
	pastDeadline bool
	left         int // bytes that may still be read after the deadline
	p            *process
}

func (o *output) Read(b []byte) (int, error) {
	n, err := o.read(b)
	if n > 0 {
		o.p.heard.Store(int64(time.Since(o.p.began)))
	}
	return n, err
}

func (o *output) read(b []byte) (int, error) {
	if !o.pastDeadline {
		n, err := o.File.Read(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		o.pastDeadline = true
	}
	if o.left == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	o.SetReadDeadline(time.Now().Add(lingerTime / 10))
	n, err := o.File.Read(b[:min(len(b), o.left)])
	o.left -= n
	return n, err
}

func (p *process) readStderr() {
	defer close(p.drained)
	_, _ = io.Copy(&p.tail, p.stderr) // ends with the process, or by Close
}

func (p *process) Read() ([]byte, error) { return p.ReadLine(nil) }

// ReadLine returns an *ExitError at the end of the output if the process has ended too. A message after text without a
// newline is a separate line.
func (p *process) ReadLine(beforeWait func()) ([]byte, error) {
	if line := p.behind; line != nil {
		p.behind = nil
		return line, nil
	}
	line, err := p.lineStream.ReadLine(beforeWait)
	if err == nil {
		if wire.IsNoise(line) {
			if at, ok := wire.MessageBehind(line, !p.messages); ok {
				line, p.behind, p.messages = line[:at], line[at:], true
			}
			text := bytes.TrimSpace(line)
			p.noise.Write(text[:min(len(text), noiseTail)])
			p.noise.Write([]byte{'\n'})
		} else {
			p.messages = true
		}
		return line, nil
	}
	if _, long := errors.AsType[*TooLongError](err); long {
		return nil, err
	}
	p.endOnce.Do(func() {
		p.endedAt.Store(int64(time.Since(p.began)))
		close(p.ended)
	})
	p.awaitEnd()
	switch exit := p.exitError(); {
	case exit != nil && errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("%w: %w", err, exit)
	case exit != nil:
		err = exit
	default:
		if output := p.outputSoFar(); output.String() != "" {
			err = fmt.Errorf("subprocess has closed its output (%s): %w", output, err)
		}
	}
	return nil, err
}

// Write writes a message; see WriteLines.
func (p *process) Write(message []byte) error { return p.explain(p.lineStream.Write(message)) }

// WriteLines returns an *ExitError if the process has ended and no longer reads.
func (p *process) WriteLines(lines []byte) error { return p.explain(p.lineStream.WriteLines(lines)) }

// explain replaces a write error with the end of the process, if that caused it.
func (p *process) explain(err error) error {
	if err == nil {
		return nil
	}
	p.awaitEnd()
	if exit := p.exitError(); exit != nil {
		return exit
	}
	return err
}

// exitTime bounds the wait for a process that the system is ending, which takes long only on a busy machine.
const exitTime = time.Minute

// awaitEnd waits for the end of the process and of its standard error, for lingerTime each.
func (p *process) awaitEnd() {
	if !lingers(p.exited) && !(proc.Exiting(p.cmd.Process.Pid) && p.exitsWithin(exitTime)) {
		return
	}
	lingers(p.drained)
}

// lingers waits for done, for lingerTime. It waits in parts, so that goroutines that a busy machine has held up run
// before the time is over.
func lingers(done <-chan struct{}) bool {
	const parts = 20
	for range parts {
		select {
		case <-done:
			return true
		case <-time.After(lingerTime / parts):
		}
	}
	return false
}

// exitError returns how the process ended, or nil while it runs.
func (p *process) exitError() error {
	select {
	case <-p.exited:
		if state := p.cmd.ProcessState; state != nil {
			return &ExitError{State: state, ProcessOutput: p.outputSoFar()}
		}
	default:
	}
	return nil
}

// outputSoFar returns the output of the process so far, other than its messages.
func (p *process) outputSoFar() ProcessOutput {
	now := time.Duration(p.endedAt.Load())
	if now == 0 {
		now = time.Since(p.began)
	}
	return ProcessOutput{
		Stderr: p.tail.String(),
		Noise:  p.noise.String(),
		Silent: max(0, now-time.Duration(p.heard.Load())),
	}
}

// stop ends the process and everything that it started.
func (p *process) stop() error {
	p.CloseWrite()
	if !p.exitsWithin(p.stopTime) && (!p.group.Ask() || !p.exitsWithin(p.killTime)) {
		p.group.Kill()
		<-p.exited
	}
	p.group.Kill() // processes that it left running
	p.group.Free()
	p.stdout.Close()
	p.stderr.SetReadDeadline(time.Now().Add(lingerTime)) // a process that left the group may hold it open
	select {
	case <-p.drained:
	case <-time.After(2 * lingerTime): // Cmd.Stderr blocks; the goroutine ends when it no longer does
	}
	p.stderr.Close()
	return nil
}

func (p *process) exitsWithin(d time.Duration) bool {
	select {
	case <-p.exited:
		return true
	case <-time.After(d):
		return false
	}
}
