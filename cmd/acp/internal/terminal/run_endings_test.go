//go:build linux || darwin

package terminal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/acpgo/sdk/cmd/acp/internal/test/screen"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// The maximum delays before a program is ended: after its start, and after the beginning of a turn in which the agent
// and terminals have processes.
const (
	startingTime = 300 * time.Millisecond
	turnTime     = 600 * time.Millisecond
)

// ending is a way to end a program.
type ending struct {
	name string
	do   func(t *testing.T, p *play)
	// wants returns what is wrong with the end, or "".
	wants func(p *play, end *screen.End) string
}

// statusIn expects one of several exit statuses, in the form that shells use for signals.
func statusIn(statuses ...int) func(*play, *screen.End) string {
	return func(_ *play, end *screen.End) string {
		status := end.State.ExitCode()
		if w, ok := end.State.Sys().(syscall.WaitStatus); ok && w.Signaled() { // it had not installed its handlers yet
			status = 128 + int(w.Signal())
		}
		if slices.Contains(statuses, status) {
			return ""
		}
		return fmt.Sprintf("it ended with %v, want one of the statuses %d", end.State, statuses)
	}
}

// killAgent kills the agent as soon as it runs.
func killAgent(t *testing.T, p *play) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: processes are found on Linux only")
	}
	for end := time.Now().Add(screen.Deadline); ; time.Sleep(5 * time.Millisecond) {
		for _, pid := range p.Processes() {
			if !isStage(pid) {
				continue
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
				t.Fatal(err)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no agent among the processes %v\n%s", p.Processes(), p.Frame().Dump())
		}
	}
}

// isStage reports whether a process is the agent.
func isStage(pid int) bool {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	name, _, _ := bytes.Cut(line, []byte{0})
	return err == nil && filepath.Base(string(name)) == "stage"
}

// endings tries each ending three times, or 100 times in tier Nightly. turn makes the program start a turn.
func endings(t *testing.T, s staging, turn func(p *play), all []ending) {
	tier.Need(t, tier.Full)
	for _, e := range all {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			random := rand.New(rand.NewPCG(seed, 0))
			for i := range tier.Pick(0, 0, 3, 100) {
				var at moment
				switch i % 3 {
				case 0: // while all processes are there
					at = moment{whole: true}
				case 1:
					at = moment{turn: true, delay: time.Duration(random.Int64N(int64(turnTime)))}
				default:
					at = moment{delay: time.Duration(random.Int64N(int64(startingTime)))}
				}
				endOnce(t, s, turn, e, at)
			}
		})
	}
}

// moment is a time at which a program is ended.
type moment struct {
	turn, whole bool
	delay       time.Duration
}

func endOnce(t *testing.T, s staging, turn func(p *play), e ending, at moment) {
	t.Helper()
	p := begin(t, s)
	if at.turn || at.whole {
		turn(p)
	}
	if at.whole {
		p.Wait("I wait for you.")
	} else {
		time.Sleep(at.delay) // a random moment is the point of the test
	}
	began := time.Now()
	e.do(t, p)
	end := p.End()
	t.Logf("%+v: %v after %v", at, end.State, time.Since(began).Round(time.Millisecond))
	if wrong := e.wants(p, end); wrong != "" {
		t.Errorf("%+v: %s\n%s\n%q", at, wrong, end.Frame.Dump(), tail(p.Raw()))
	}
	p.Clean(end)
}

func tail(raw []byte) []byte { return raw[max(0, len(raw)-2000):] }

// interruptUntilEnd presses Ctrl-C until the program ends.
func interruptUntilEnd(t *testing.T, p *play) {
	p.Press("ctrl+c", "ctrl+c")
}

func withSignal(sig syscall.Signal) func(*testing.T, *play) {
	return func(_ *testing.T, p *play) { p.Signal(sig) }
}

func hangup(_ *testing.T, p *play) { p.Hangup() }

// anyEnd accepts any status, because the terminal is gone.
func anyEnd(*play, *screen.End) string { return "" }

func TestRunEndings(t *testing.T) {
	turn := func(p *play) {
		p.Wait(" ready ")
		p.say("tree")
	}
	endings(t, staging{}, turn, []ending{
		{"Ctrl-C", interruptUntilEnd, statusIn(0, 130)},
		{"SIGTERM", withSignal(syscall.SIGTERM), statusIn(143)},
		{"SIGINT", withSignal(syscall.SIGINT), statusIn(130)},
		{"the agent is killed", func(t *testing.T, p *play) {
			killAgent(t, p)
			p.Press("ctrl+c", "ctrl+c")
		}, statusIn(0, 130, 6)},
		{"hangup", hangup, anyEnd},
	})
}

// SIGKILL ends the program before it can do anything; the agent ends because its standard input ends.
func TestRunKilled(t *testing.T) {
	p := ready(t, staging{})
	p.say("wait")
	p.Wait("I wait for you.")
	p.Signal(syscall.SIGKILL)
	p.End()
	for _, pid := range p.Processes() {
		if isStage(pid) {
			waitGone(t, pid)
		}
	}
}

// waitGone waits for the end of a process that is not a child.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(screen.Deadline); syscall.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the process %d does not end", pid)
		}
	}
}

func TestExecEndings(t *testing.T) {
	endings(t, staging{command: []string{"exec", "tree"}}, func(*play) {}, []ending{
		{"Ctrl-C", func(_ *testing.T, p *play) { p.Press("ctrl+c") }, statusIn(130)},
		{"SIGTERM", withSignal(syscall.SIGTERM), statusIn(143)},
		{"the agent is killed", killAgent, statusIn(6)},
		{"hangup", hangup, anyEnd},
	})
}

// A program whose standard output is closed ends without a message.
func TestRunClosedPipe(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	must.Do(t, err)
	p := begin(t, staging{prepare: func(_ *play, cmd *exec.Cmd) { cmd.Stdout = w }})
	w.Close()
	r.Close()
	p.Press("ctrl+c", "ctrl+c")
	end := p.End()
	if end.State.Success() {
		t.Errorf("it ended with %v", end.State)
	}
	p.Clean(end)
}
