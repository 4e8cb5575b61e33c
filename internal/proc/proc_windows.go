package proc

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

var (
	kernel32                 = syscall.NewLazyDLL("kernel32.dll")
	createJobObject          = kernel32.NewProc("CreateJobObjectW")
	assignProcessToJobObject = kernel32.NewProc("AssignProcessToJobObject")
	terminateJobObject       = kernel32.NewProc("TerminateJobObject")
	ntResumeProcess          = syscall.NewLazyDLL("ntdll.dll").NewProc("NtResumeProcess")
)

const (
	createSuspended = 0x00000004
	createNoWindow  = 0x08000000
)

// killedCode is the exit code of killed processes: Windows has no signals to report.
const killedCode = 1

// A Group is a command and the processes that it started. Its methods are safe for concurrent use.
type Group struct {
	mu  sync.Mutex
	job syscall.Handle // 0 once freed
}

// Start starts a command without a window; a Ctrl-C meant for this program does not reach it. The command is suspended
// until it belongs to its job, so that none of its children is outside the job.
func Start(cmd *exec.Cmd) (*Group, error) {
	job, _, err := createJobObject.Call(0, 0)
	if job == 0 {
		return nil, os.NewSyscallError("CreateJobObject", err)
	}
	g := &Group{job: syscall.Handle(job)}
	attributes(cmd).CreationFlags |= createSuspended | createNoWindow | syscall.CREATE_NEW_PROCESS_GROUP
	if err := cmd.Start(); err != nil {
		g.Free()
		return nil, err
	}
	var failed error
	err = cmd.Process.WithHandle(func(process uintptr) {
		if ok, _, err := assignProcessToJobObject.Call(job, process); ok == 0 {
			failed = os.NewSyscallError("AssignProcessToJobObject", err)
		} else if status, _, _ := ntResumeProcess.Call(process); status != 0 {
			failed = fmt.Errorf("NtResumeProcess: status %#x", status)
		}
	})
	if err != nil {
		failed = err
	}
	if failed != nil {
		cmd.Process.Kill() // still suspended: it cannot have started anything
		cmd.Wait()
		g.Free()
		return nil, failed
	}
	return g, nil
}

// Ask returns false: there is no way to ask a process without a window to end.
func (g *Group) Ask() bool { return false }

// Kill ends all processes.
func (g *Group) Kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		terminateJobObject.Call(uintptr(g.job), killedCode) // fails only if all have ended
	}
}

// Reaped does nothing: the job lasts until it is freed.
func (g *Group) Reaped() {}

// Free releases the job.
func (g *Group) Free() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.job != 0 {
		syscall.CloseHandle(g.job)
		g.job = 0
	}
}

// EndedBy returns nothing: Windows has no signals.
func EndedBy(*os.ProcessState) (sig syscall.Signal, name string) { return 0, "" }
