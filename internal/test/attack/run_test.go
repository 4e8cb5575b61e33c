//go:build linux

package attack

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/attack/hostile"
	"github.com/acpgo/sdk/internal/test/gentest"
)

// attackRun is an attack in progress.
type attackRun struct {
	*testCase
	result
	dir, root, state   string // everything; the directory of the session; the agent's state
	secret, secretText string // a file outside the root
	hostileReport      string
	victimReport       string
	mark               string // in the environment of every process of this run
	screen             *screen
	cmd                *exec.Cmd // the victim, which the driver has started
}

// programs returns the programs that the attack needs.
func (c *testCase) programs() []string {
	switch c.victim {
	case "agent":
		return []string{"victim", "hostile-client"}
	case "kit-agent":
		return []string{c.victim, "hostile-client"}
	case "local":
		return []string{"victim", "hostile-agent"}
	case "proxy":
		return []string{"victim", "proxy", "hostile-agent"}
	}
	return []string{c.victim, "hostile-agent"}
}

// find records a finding, which must not occur.
func (r *attackRun) find(format string, args ...any) {
	r.findings = append(r.findings, fmt.Sprintf(format, args...))
}

func (c *testCase) run(t *testing.T) {
	r := &attackRun{testCase: c, screen: &screen{}}
	r.result.attack, r.result.victim, r.result.bound = c.attack, c.victim, c.memory()
	for _, name := range r.programs() {
		if _, err := program(name); err != nil {
			t.Fatal(err)
		}
	}
	r.dir = t.TempDir()
	r.mark = markName + filepath.Base(filepath.Dir(r.dir)) + filepath.Base(r.dir) + c.victim + c.attack
	if err := r.make(); err != nil {
		r.find("%v", err)
	}
	if c.check != nil {
		c.check(r)
	}
	r.done(t)
}

// done adds the result to the table, and fails the test if there are findings.
func (r *attackRun) done(t *testing.T) {
	results.Lock()
	results.list = append(results.list, &r.result)
	results.Unlock()
	for _, note := range r.notes {
		t.Log(note)
	}
	for _, finding := range r.findings {
		t.Error(finding)
	}
	if t.Failed() {
		t.Logf("the end of the output:\n%s", r.screen.tail())
	}
}

// make runs the attack. An error is a finding.
func (r *attackRun) make() error {
	r.root, r.state = filepath.Join(r.dir, "root"), filepath.Join(r.dir, "state")
	r.secret, r.secretText = filepath.Join(r.dir, "outside", "secret.txt"), "the secret of "+r.mark+"\n"
	r.hostileReport, r.victimReport = filepath.Join(r.dir, "hostile.json"), filepath.Join(r.dir, "victim.json")
	for _, dir := range []string{r.root, r.state, filepath.Dir(r.secret), filepath.Join(r.dir, "tmp")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(r.secret, []byte(r.secretText), 0o600); err != nil {
		return err
	}
	start := time.Now()
	var err error
	switch r.testCase.victim {
	case "agent", "kit-agent":
		err = r.onAgent()
	default:
		err = r.onClient()
	}
	r.time = time.Since(start)
	r.leftBehind()
	if errors.Is(err, errKilled) {
		return nil // errKilled is a finding already, and its consequences are not findings
	}
	r.read("the attacker", r.hostileReport)
	switch r.testCase.victim {
	case "local", "victim-v2", "agent", "proxy":
		r.read("the victim", r.victimReport)
	}
	return err
}

// read adopts the contents of a report.
func (r *attackRun) read(who, path string) {
	report, err := hostile.ReadReport(path)
	if err != nil || !report.Ran {
		r.find("%s has not come to its end: %v", who, err)
	}
	if r.testCase.fatal && who == "the victim" { // its connection was broken
		report.Problems = nil
	}
	for _, problem := range report.Problems {
		r.find("%s", problem)
	}
	r.notes = append(r.notes, report.Notes...)
}

// command returns a command for a program of this run.
func (r *attackRun) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, name), args...)
	cmd.Dir = r.root
	// The race detector would delay each exit by a second.
	cmd.Env = append(os.Environ(), r.mark, "GORACE=atexit_sleep_ms=0", "TMPDIR="+filepath.Join(r.dir, "tmp"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// hostileAgent returns the command line of the attacker.
func (r *attackRun) hostileAgent() []string {
	args := []string{filepath.Join(bin, "hostile-agent"), "-case", r.testCase.attack, "-report", r.hostileReport, "-secret", r.secret}
	if full() {
		args = append(args, "-full")
	}
	return args
}

// onClient attacks a client with the hostile agent.
func (r *attackRun) onClient() error {
	agent := r.hostileAgent()
	flags := r.flags
	switch r.testCase.victim {
	case "proxy":
		agent = append([]string{filepath.Join(bin, "proxy"), "-v", "--"}, agent...)
		flags = append([]string{"-stderr"}, flags...)
		fallthrough
	case "local", "victim-v2":
		args := append([]string{"-root", r.root, "-report", r.victimReport}, flags...)
		r.cmd = r.command(r.programs()[0], append(append(args, "client", "--"), agent...)...)
	}
	r.cmd.Stdout, r.cmd.Stderr = r.screen, r.screen
	if err := r.cmd.Start(); err != nil {
		return err
	}
	err := r.wait()
	if r.testCase.fatal {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the victim: %w", err)
	}
	return nil
}

// onAgent attacks an agent with the hostile client.
func (r *attackRun) onAgent() error {
	switch r.testCase.victim {
	case "agent":
		r.cmd = r.command("victim", "-report", r.victimReport, "agent")
	case "kit-agent":
		r.cmd = r.command("kit-agent", append([]string{"-state", r.state}, r.flags...)...)
	}
	args := []string{"-case", r.testCase.attack, "-report", r.hostileReport, "-cwd", r.root, "-state", r.state}
	if full() {
		args = append(args, "-full")
	}
	attacker := r.command("hostile-client", args...)
	toVictim, fromAttacker, err := os.Pipe()
	if err != nil {
		return err
	}
	toAttacker, fromVictim, err := os.Pipe()
	if err != nil {
		return err
	}
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = toVictim, fromVictim, r.screen
	attacker.Stdin, attacker.Stdout, attacker.Stderr = toAttacker, fromAttacker, r.screen
	err = r.cmd.Start()
	if err == nil {
		err = attacker.Start()
	}
	for _, f := range []*os.File{toVictim, fromAttacker, toAttacker, fromVictim} {
		f.Close()
	}
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- attacker.Wait() }()
	err = r.wait()
	select {
	case failed := <-ended:
		if failed != nil {
			r.find("the attacker: %v", failed)
		}
	case <-time.After(2 * time.Minute):
		syscall.Kill(-attacker.Process.Pid, syscall.SIGKILL)
		<-ended
	}
	if err != nil && !r.testCase.fatal {
		return fmt.Errorf("the victim: %w", err)
	}
	return nil
}

// errKilled means that the driver has killed the victim, and has recorded the reason.
var errKilled = errors.New("killed by the driver")

// wait waits until the victim ends, and watches it meanwhile. It kills the victim if it exceeds its memory or time.
func (r *attackRun) wait() error {
	ended := make(chan error, 1)
	go func() { ended <- r.cmd.Wait() }()
	watch := newWatch(r.mark, process{r.cmd.Process.Pid, filepath.Base(r.cmd.Path)})
	watch.look(nil)
	clock := hostile.NewClock()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	killed := false
	kill := func(format string, args ...any) {
		if !killed {
			killed = true
			r.find(format, args...)
			watch.kill()
			r.cmd.Process.Kill() // even if the watch does not know it
		}
	}
	for {
		select {
		case err := <-ended:
			r.peak = watch.peak
			if r.procs > 0 && watch.processes > r.procs {
				r.find("%d processes at once, want %d at most", watch.processes, r.procs)
			}
			if killed {
				return errKilled
			}
			if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Sys().(syscall.WaitStatus).Signaled() {
				r.find("the victim was ended by a signal: %v", err)
			}
			if gentest.Race && r.cmd.ProcessState.ExitCode() == 66 {
				r.find("the race detector has found a race")
			}
			if bytes.Contains(r.screen.tail(), []byte("goroutine ")) && bytes.Contains(r.screen.tail(), []byte("[running]")) {
				r.find("the victim panics")
			}
			return err
		case <-tick.C:
			watch.look(processes.of(r.mark))
			if watch.peak > r.memory() {
				kill("more than %d MiB of memory", r.memory())
			}
			if !killed && clock.Passed() > timeLimit() {
				r.stuck(watch, ended)
				kill("it does not end within %v", timeLimit())
			}
		}
	}
}

// stuck shows where a victim hangs: its processes, and its goroutines, which Go prints on SIGQUIT.
func (r *attackRun) stuck(watch *watch, ended chan error) {
	r.notes = append(r.notes, watch.states())
	r.screen.keepMore()
	for pid := range watch.watched { // the pid of a process that has ended since is unlikely to be reused already
		syscall.Kill(pid, syscall.SIGQUIT)
	}
	select {
	case err := <-ended:
		ended <- err
	case <-time.After(5 * time.Second):
	}
}

// leftBehind requires that no process of the run is left, and kills remaining ones.
func (r *attackRun) leftBehind() {
	var left []process
	patience := 10 * time.Second
	if r.outlive {
		patience = time.Second
	}
	for clock := hostile.NewClock(); clock.Passed() < patience; time.Sleep(100 * time.Millisecond) {
		if left = marked(r.mark); len(left) == 0 {
			return
		}
	}
	var names []string
	for _, p := range left {
		names = append(names, p.name)
		syscall.Kill(p.pid, syscall.SIGKILL)
	}
	if r.outlive {
		r.notes = append(r.notes, fmt.Sprintf("%d processes are left, as SECURITY.md says: %.200s", len(left), strings.Join(names, ", ")))
		return
	}
	r.find("%d processes are left: %.200s", len(left), strings.Join(names, ", "))
}
