package proc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// A group whose processes have all ended is never taken for another one that has got its number.
func TestNumberOfAnotherGroup(t *testing.T) {
	tier.Need(t, tier.Normal)
	const last = "/proc/sys/kernel/ns_last_pid" // the next process gets the next number
	old := exec.Command("sh", "-c", "read -r line <&3 & echo")
	wait, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	old.ExtraFiles = []*os.File{wait}
	out := must.Get(old.StdoutPipe())(t)
	g := must.Get(Start(old))(t)
	defer g.Free()
	wait.Close()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Error(err)
	}
	if err := old.Wait(); err != nil {
		t.Error(err)
	}
	g.Reaped() // a process is left
	id := old.Process.Pid
	end.Close()
	for syscall.Kill(-id, 0) == nil { // until it has ended, and the system has collected it
		must.Do(t, exec.Command("true").Run())
	}
	for range 1000 {
		if err := os.WriteFile(last, fmt.Append(nil, id-1), 0); err != nil {
			t.Skip(err)
		}
		other := exec.Command("sleep", "1000")
		o := must.Get(Start(other))(t)
		got := other.Process.Pid == id
		if got {
			g.Kill()
		}
		if err := other.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		other.Wait()
		o.Free()
		if got {
			if status := other.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
				t.Errorf("another group was ended by %v", status.Signal())
			}
			return
		}
	}
	t.Skip("no other process has got the number")
}
