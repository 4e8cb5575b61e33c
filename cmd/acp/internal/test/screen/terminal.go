//go:build linux || darwin

package screen

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/acpgo/sdk/internal/test/must"
)

// Deadline is how long a test waits for the screen to show something. It is for programs that hang: a machine may be
// slow.
const Deadline = 3 * time.Minute

// mark is the environment variable of all processes that a terminal's program starts.
const mark = "ACP_SCREEN_MARK"

var marks atomic.Int64

// Programs inherit ignored hangups, which nohup and some CI systems set, unless their parent handles them.
func init() {
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
}

// A Terminal is a terminal with a program. Its methods must be called from the goroutine of the test, except
// [Terminal.Raw].
type Terminal struct {
	t    testing.TB
	e    *emulator
	term int
	cmd  *exec.Cmd
	mark string

	master, slave *os.File
	before        unix.Termios
	replies       chan []byte   // from the terminal to the program
	exited        chan struct{} // closed when the program has ended
	drained       chan struct{} // closed when no process has the terminal open anymore, and everything has been shown
	after         unix.Termios  // valid when exited is closed
	waitErr       error         // valid when exited is closed
	readErr       error         // valid when drained is closed
	hungUp        bool

	mu      sync.Mutex
	raw     []byte
	version int           // incremented when something new is shown
	changed chan struct{} // closed when there is a newer version, or all output is read
	times   []Chunk
}

// A Chunk is the data of one write of a program.
type Chunk struct {
	At    time.Duration // since the program started
	Bytes []byte
}

// Env returns the environment of the test without variables about its own terminal, with variables that describe this
// terminal, and with extra.
func Env(extra ...string) (env []string) {
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case name == "TERM", name == "COLORTERM", name == "NO_COLOR", name == "CI", name == "TMUX", name == "COLUMNS",
			name == "LINES",
			strings.HasPrefix(name, "TERM_"), strings.HasPrefix(name, "LC_"), strings.HasPrefix(name, "CLICOLOR"),
			strings.HasPrefix(name, "ACP_"),
			strings.HasPrefix(name, "XDG_"), strings.HasPrefix(name, "SSH_"), name == "EDITOR", name == "VISUAL",
			name == "SHELL":
		default:
			env = append(env, v)
		}
	}
	env = append(env, "TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8", "TZ=UTC", "SHELL=/bin/sh")
	return append(env, extra...)
}

// Start starts a program in a new terminal, which is its controlling terminal. The terminal is also its standard files,
// except those that cmd sets. If cmd has no environment, it gets [Env]. The program is killed when the test ends.
func Start(t testing.TB, cmd *exec.Cmd, cols, rows int) *Terminal {
	t.Helper()
	e := need(t)
	if cmd.Env == nil {
		cmd.Env = Env()
	}
	x := &Terminal{
		t: t, e: e, cmd: cmd, mark: fmt.Sprintf("%s=%d-%d", mark, os.Getpid(), marks.Add(1)),
		replies: make(chan []byte, 64), exited: make(chan struct{}), drained: make(chan struct{}),
		changed: make(chan struct{}),
	}
	cmd.Env = append(cmd.Env, x.mark)
	var err error
	if x.master, x.slave, err = open(); err != nil {
		t.Fatal(err)
	}
	must.Do(t, x.setSize(cols, rows))
	if x.before, err = termios(x.slave); err != nil {
		t.Fatal(err)
	}
	if x.term, err = e.open(cols, rows, x.reply); err != nil {
		t.Fatal(err)
	}
	if cmd.Stdin == nil {
		cmd.Stdin = x.slave
	}
	if cmd.Stdout == nil {
		cmd.Stdout = x.slave
	}
	if cmd.Stderr == nil {
		cmd.Stderr = x.slave
	}
	// The terminal is also an additional file of the program, so that it can be the controlling terminal whatever the
	// standard files are.
	cmd.ExtraFiles = append([]*os.File{x.slave}, cmd.ExtraFiles...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(errors.Join(err, x.master.Close(), x.slave.Close()))
	}
	var tasks sync.WaitGroup
	tasks.Go(func() { x.read(start) })
	tasks.Go(x.answer)
	tasks.Go(x.wait)
	t.Cleanup(func() {
		// Processes may have ended meanwhile. The number of the program may then belong to another one, which Kill notices.
		for _, p := range x.Processes() {
			_ = syscall.Kill(p, syscall.SIGKILL)
		}
		_ = cmd.Process.Kill()
		<-x.exited
		x.Hangup()
		tasks.Wait()
		must.Do(t, e.close(x.term))
	})
	return x
}

// open opens a pseudo-terminal whose master can be closed while it is read.
func open() (master, slave *os.File, err error) {
	blocking, slave, err := pty.Open()
	if err != nil {
		return nil, nil, err
	}
	fd, err := unix.FcntlInt(blocking.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err := errors.Join(err, blocking.Close()); err != nil {
		return nil, nil, errors.Join(err, slave.Close())
	}
	return os.NewFile(uintptr(fd), "terminal"), slave, nil
}

// control calls does with the descriptor of a file, and does not change the file's mode.
func control(f *os.File, does func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = does(int(fd)) })
	return errors.Join(err, failed)
}

func (x *Terminal) setSize(cols, rows int) error {
	return control(x.master, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(cols), Row: uint16(rows)})
	})
}

// termios returns the settings of a terminal line.
func termios(f *os.File) (settings unix.Termios, err error) {
	err = control(f, func(fd int) error {
		got, err := unix.IoctlGetTermios(fd, getTermios)
		if err == nil {
			settings = *got
		}
		return err
	})
	return settings, err
}

// reply is called with the terminal's answers to the program.
func (x *Terminal) reply(text []byte) {
	select {
	case x.replies <- text:
	default: // the program keeps asking and never reads the answers
	}
}

// answer types the terminal's answers to the program.
func (x *Terminal) answer() {
	for {
		select {
		case text := <-x.replies:
			if _, err := x.master.Write(text); err != nil {
				return
			}
		case <-x.drained:
			return
		}
	}
}

// read shows what the program writes.
func (x *Terminal) read(start time.Time) {
	defer close(x.drained)
	buffer := make([]byte, 64<<10)
	for {
		n, err := x.master.Read(buffer)
		x.mu.Lock()
		x.raw = append(x.raw, buffer[:n]...)
		x.times = append(x.times, Chunk{time.Since(start), bytes.Clone(buffer[:n])})
		x.mu.Unlock()
		if n > 0 {
			if err := x.e.ask(request{Op: "write", Term: x.term, Data: buffer[:n]}, nil); err != nil {
				x.readErr = err
				return
			}
		}
		x.mu.Lock()
		x.version++
		close(x.changed)
		x.changed = make(chan struct{})
		x.mu.Unlock()
		if err != nil {
			// these are the usual ends of a terminal that no process has open
			if !errors.Is(err, syscall.EIO) && !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				x.readErr = err
			}
			return
		}
	}
}

// wait waits for the end of the program.
func (x *Terminal) wait() {
	x.waitErr = x.cmd.Wait()
	var err error
	if x.after, err = termios(x.slave); err != nil && x.waitErr == nil {
		x.waitErr = err
	}
	x.slave.Close()
	close(x.exited)
}

// Pid returns the process id of the program.
func (x *Terminal) Pid() int { return x.cmd.Process.Pid }

// Raw returns everything that the program has written so far.
func (x *Terminal) Raw() []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	return bytes.Clone(x.raw)
}

// Chunks returns what the program has written, with the times.
func (x *Terminal) Chunks() []Chunk {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]Chunk(nil), x.times...)
}

// Type types a text.
func (x *Terminal) Type(text string) {
	x.t.Helper()
	if _, err := io.WriteString(x.master, text); err != nil {
		x.fail("typing %q: %v", text, err)
	}
}

// keys maps names of keys to what they send.
var keys = map[string]string{
	"enter": "\r", "esc": "\x1b", "tab": "\t", "shift+tab": "\x1b[Z", "backspace": "\x7f", "space": " ",
	"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
	"shift+up": "\x1b[1;2A", "shift+down": "\x1b[1;2B", "ctrl+up": "\x1b[1;5A", "ctrl+down": "\x1b[1;5B",
	"alt+up": "\x1b[1;3A", "alt+down": "\x1b[1;3B",
	"ctrl+home": "\x1b[1;5H", "ctrl+end": "\x1b[1;5F",
	"insert": "\x1b[2~", "delete": "\x1b[3~", "pgup": "\x1b[5~", "pgdown": "\x1b[6~",
	"f1": "\x1bOP", "f2": "\x1bOQ", "f3": "\x1bOR", "f4": "\x1bOS", "f5": "\x1b[15~", "f6": "\x1b[17~", "f7": "\x1b[18~",
	"f8": "\x1b[19~",
	"f9": "\x1b[20~", "f10": "\x1b[21~", "f11": "\x1b[23~", "f12": "\x1b[24~",
}

// Press presses keys: one character, a name such as "enter", "up" or "f1", and "ctrl+" or "alt+" before a character.
func (x *Terminal) Press(names ...string) {
	x.t.Helper()
	for _, name := range names {
		x.Type(key(x.t, name))
	}
}

func key(t testing.TB, name string) string {
	t.Helper()
	if sent := keys[name]; sent != "" {
		return sent
	}
	if c, is := strings.CutPrefix(name, "ctrl+"); is && len(c) == 1 {
		return string(rune(c[0] & 0x1f))
	}
	if rest, is := strings.CutPrefix(name, "alt+"); is {
		return "\x1b" + key(t, rest)
	}
	if len([]rune(name)) != 1 {
		t.Fatalf("there is no key %q", name)
	}
	return name
}

// Paste pastes a text, in brackets if the program has asked for them.
func (x *Terminal) Paste(text string) {
	x.t.Helper()
	if on, _ := x.Frame().Modes["2004"].(bool); on {
		text = "\x1b[200~" + text + "\x1b[201~"
	}
	x.Type(text)
}

// Resize changes the size of the terminal.
func (x *Terminal) Resize(cols, rows int) {
	x.t.Helper()
	must.Do(x.t, x.e.ask(request{Op: "resize", Term: x.term, Cols: cols, Rows: rows}, nil))
	must.Do(x.t, x.setSize(cols, rows))
}

// Signal sends a signal to the program only.
func (x *Terminal) Signal(sig syscall.Signal) {
	x.t.Helper()
	if err := x.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		x.t.Fatal(err)
	}
}

// Hangup closes the terminal, as when a terminal window is closed.
func (x *Terminal) Hangup() {
	if !x.hungUp {
		x.hungUp = true
		x.master.Close()
	}
}

// Frame returns what the screen shows now.
func (x *Terminal) Frame() *Frame {
	x.t.Helper()
	return x.frame(false)
}

// Whole returns what the screen shows now, cell by cell.
func (x *Terminal) Whole() *Frame {
	x.t.Helper()
	return x.frame(true)
}

func (x *Terminal) frame(cells bool) *Frame {
	x.t.Helper()
	var f Frame
	must.Do(x.t, x.e.ask(request{Op: "frame", Term: x.term, Cells: cells}, &f))
	return &f
}

// History returns everything that the terminal has stored, including what was scrolled out of the screen. Lines that
// the terminal has broken are joined.
func (x *Terminal) History() string {
	x.t.Helper()
	var lines []Line
	must.Do(x.t, x.e.ask(request{Op: "history", Term: x.term}, &lines))
	var b strings.Builder
	for i, line := range lines {
		if i > 0 && !line.Wrapped {
			b.WriteByte('\n')
		}
		b.WriteString(line.Text)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// Wait waits until the screen shows all of the texts at once.
func (x *Terminal) Wait(texts ...string) *Frame {
	x.t.Helper()
	return x.Until(fmt.Sprintf("%q", texts), func(f *Frame) bool {
		for _, text := range texts {
			if !f.Has(text) {
				return false
			}
		}
		return true
	})
}

// Gone waits until the screen no longer shows a text.
func (x *Terminal) Gone(text string) *Frame {
	x.t.Helper()
	return x.Until(fmt.Sprintf("no %q", text), func(f *Frame) bool { return !f.Has(text) })
}

// Until waits until is returns true for the screen; what describes the condition.
func (x *Terminal) Until(what string, is func(*Frame) bool) *Frame {
	x.t.Helper()
	return x.within(Deadline, what, is)
}

func (x *Terminal) within(most time.Duration, what string, is func(*Frame) bool) *Frame {
	x.t.Helper()
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	for {
		x.mu.Lock()
		changed := x.changed
		x.mu.Unlock()
		drained := false
		select {
		case <-x.drained:
			drained = true
		default:
		}
		f := x.Frame()
		switch {
		case is(f):
			return f
		case drained:
			x.fail("the program has ended, and the screen does not show %s", what)
		}
		select {
		case <-changed:
		case <-x.drained:
		case <-deadline.C:
			x.fail("after %v, the screen does not show %s", most, what)
		}
	}
}

// fail ends the test with everything that is known.
func (x *Terminal) fail(format string, args ...any) {
	x.t.Helper()
	const most = 4000
	raw := x.Raw()
	cut := raw[max(0, len(raw)-most):]
	x.t.Fatalf("%s\n%s\nthe last %d of %d bytes: %q", fmt.Sprintf(format, args...), x.Frame().Dump(), len(cut), len(raw),
		cut)
}

// An End describes how a program ended.
type End struct {
	State *os.ProcessState
	// Frame is the last one.
	Frame *Frame
	// Left lists what was not restored: modes of the terminal and settings of its line.
	Left []string
}

// End waits for the end of the program, and until no process has its terminal open.
func (x *Terminal) End() *End {
	x.t.Helper()
	deadline := time.NewTimer(Deadline)
	defer deadline.Stop()
	for _, over := range []<-chan struct{}{x.exited, x.drained} {
		select {
		case <-over:
		case <-deadline.C:
			select {
			case <-x.exited:
				x.fail("the program has ended, and something still has its terminal open: %v", x.Processes())
			default:
				x.fail("the program does not end")
			}
		}
	}
	if x.readErr != nil {
		x.t.Fatal(x.readErr)
	}
	if _, is := errors.AsType[*exec.ExitError](x.waitErr); !is && x.waitErr != nil && !x.hungUp {
		x.t.Fatal(x.waitErr)
	}
	f := x.Frame()
	end := &End{State: x.cmd.ProcessState, Frame: f}
	if !x.hungUp { // otherwise there is no terminal to check
		end.Left = f.Changed()
		if x.before != x.after {
			end.Left = append(end.Left, fmt.Sprintf("the line: %+v, and was %+v", x.after, x.before))
		}
	}
	return end
}

// Leave waits for the end of a program, which must have the given exit status and leave the terminal as it was, and no
// process behind.
func (x *Terminal) Leave(status int) *End {
	x.t.Helper()
	end := x.End()
	if got := end.State.ExitCode(); got != status {
		x.t.Errorf("it ended with %v, want status %d\n%s", end.State, status, end.Frame.Dump())
	}
	x.Clean(end)
	return end
}

// Clean requires that a program that has ended left the terminal as it was, and no process behind. Killed processes may
// take a moment to end.
func (x *Terminal) Clean(end *End) {
	x.t.Helper()
	if len(end.Left) > 0 {
		x.t.Errorf("it left behind in the terminal: %s\n%s", strings.Join(end.Left, ", "), end.Frame.Dump())
	}
	if left := x.survivors(); len(left) > 0 {
		x.t.Errorf("it left behind the processes %v", left)
	}
}
