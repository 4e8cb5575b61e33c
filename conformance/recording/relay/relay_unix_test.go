//go:build unix

package relay_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

func init() {
	// prints its process number, and then each signal that it receives; USR2 ends it
	agents["signals"] = func() {
		c := make(chan os.Signal, 16)
		signal.Notify(c, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2)
		fmt.Println(os.Getpid())
		for s := range c {
			fmt.Println(s)
			if s == syscall.SIGUSR2 {
				os.Exit(5)
			}
		}
	}
	// kills itself with the signal that it reads
	agents["suicide"] = func() {
		line, err := bufio.NewReader(os.Stdin).ReadString('\n')
		number, err2 := strconv.Atoi(strings.TrimSpace(line))
		if err := errors.Join(err, err2); err != nil {
			panic(err)
		}
		// A Go program cannot be killed by all signals, but a shell can.
		if err := syscall.Exec("/bin/sh", []string{"sh", "-c", fmt.Sprintf("ulimit -c 0; kill -%d $$; sleep 60", number)}, os.Environ()); err != nil {
			panic(err)
		}
	}
	// writes until its output is no longer read
	agents["writer"] = func() {
		fmt.Fprintln(os.Stderr, os.Getpid())
		for {
			if _, err := fmt.Println(strings.Repeat("x", 1000)); err != nil {
				os.Exit(1)
			}
		}
	}
	// leaves a process behind that keeps its outputs open
	agents["parent"] = func() {
		child := exec.Command("sleep", "60")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
		fmt.Println(child.Process.Pid)
		os.Exit(4)
	}
}

// started returns a relay with an agent that has written its first line.
func started(t *testing.T, role string) (cmd *exec.Cmd, in io.WriteCloser, out *bufio.Reader, first, file string) {
	t.Helper()
	cmd, file = through(t, role)
	in = must.Get(cmd.StdinPipe())(t)
	pipe := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	timer := time.AfterFunc(10*time.Minute, func() { cmd.Process.Kill() })
	t.Cleanup(func() { timer.Stop() })
	out = bufio.NewReader(pipe)
	first = must.Get(out.ReadString('\n'))(t)
	return cmd, in, out, strings.TrimSpace(first), file
}

// Each signal to the relay reaches the agent once, and the agent decides whether to end.
func TestSignals(t *testing.T) {
	cmd, in, out, _, file := started(t, "signals")
	defer in.Close()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR2} {
		must.Do(t, cmd.Process.Signal(s))
		if got, err := out.ReadString('\n'); err != nil || got != s.String()+"\n" {
			t.Errorf("got %q, %v, want %v", got, err, s)
		}
	}
	if rest, err := io.ReadAll(out); len(rest) > 0 || err != nil {
		t.Errorf("then %q, %v", rest, err)
	}
	if exit, ok := errors.AsType[*exec.ExitError](cmd.Wait()); !ok || exit.ExitCode() != 5 {
		t.Errorf("ended with %v", exit)
	}
	all := readFile(t, file)
	if end := all[len(all)-1]; end.Kind != recording.KindEnd || end.End.Closed != conformance.Agent {
		t.Errorf("got %+v", end.End)
	}
}

// The relay dies from the same signal as the agent.
func TestDiesByTheSameSignal(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGINT, syscall.SIGSEGV, syscall.SIGABRT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGPIPE} {
		cmd, file := through(t, "suicide")
		cmd.Stdin = strings.NewReader(strconv.Itoa(int(s)) + "\n")
		out, err := cmd.CombinedOutput()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || !exit.Sys().(syscall.WaitStatus).Signaled() || exit.Sys().(syscall.WaitStatus).Signal() != s || len(out) > 0 {
			t.Errorf("%v: got %v, %s", s, err, out)
		}
		all := readFile(t, file)
		if end := all[len(all)-1].End; end == nil || end.Code != nil || !strings.HasPrefix(end.Signal, "SIG") {
			t.Errorf("%v: got %+v", s, end)
		}
	}
}

// When the relay is killed, the agent is not left behind. Only Linux can end both processes together; elsewhere, the
// agent's input ends.
func TestRelayIsKilled(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux")
	}
	for _, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSEGV} {
		cmd, _ := through(t, "signals")
		held, stderr, err := os.Pipe() // the agent has it too
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = stderr
		in := must.Get(cmd.StdinPipe())(t)
		out := must.Get(cmd.StdoutPipe())(t)
		must.Do(t, errors.Join(cmd.Start(), stderr.Close()))
		must.Get(bufio.NewReader(out).ReadString('\n'))(t)
		must.Do(t, cmd.Process.Signal(s))
		cmd.Wait()
		must.Do(t, held.SetReadDeadline(time.Now().Add(time.Minute)))
		if _, err := io.Copy(io.Discard, held); err != nil {
			t.Errorf("%v: the agent is still there: %v", s, err)
		}
		in.Close()
		held.Close()
	}
}

// When the client stops reading, the agent's writes fail as they would without the relay.
func TestClientStopsReading(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	cmd, _ := through(t, "writer")
	out := must.Get(cmd.StdoutPipe())(t)
	in := must.Get(cmd.StdinPipe())(t) // stays open
	defer in.Close()
	must.Do(t, cmd.Start())
	must.Get(out.Read(make([]byte, 100)))(t)
	must.Do(t, out.Close())
	err := cmd.Wait()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGPIPE {
		t.Errorf("ended with %v, want the agent's SIGPIPE", err)
	}
}

// When the agent stops reading, the client's writes fail as they would without the relay.
func TestAgentStopsReading(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	cmd, in, _, _, _ := started(t, "deaf")
	for {
		if _, err := in.Write([]byte("x\n")); err != nil {
			if !errors.Is(err, syscall.EPIPE) {
				t.Errorf("got %v", err)
			}
			break
		}
	}
	must.Do(t, cmd.Process.Signal(syscall.SIGTERM))
	if exit, ok := errors.AsType[*exec.ExitError](cmd.Wait()); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("ended with %v", exit)
	}
}

// A process that the agent leaves behind does not keep the relay running.
func TestOutputIsHeld(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	cmd, in, out, first, _ := started(t, "parent")
	defer in.Close()
	if rest, err := io.ReadAll(out); len(rest) > 0 || err != nil {
		t.Errorf("got %q, %v", rest, err)
	}
	if exit, ok := errors.AsType[*exec.ExitError](cmd.Wait()); !ok || exit.ExitCode() != 4 {
		t.Errorf("ended with %v", exit)
	}
	pid := must.Get(strconv.Atoi(first))(t)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the process that the agent left behind is not running: %v", err)
	}
}
