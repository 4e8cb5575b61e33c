package attack

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/tier"
)

// crowd starts n processes with a mark, and their parent.
func crowd(t *testing.T, mark string, n int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", fmt.Sprintf("for i in $(seq %d); do sleep 1000 & done; echo; wait", n))
	cmd.Env = append(os.Environ(), mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	// A process that starts to run sleep has no readable environment for a moment.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		got := 0
		for _, p := range marked(mark) {
			if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid)); err == nil && strings.HasPrefix(string(text), "sleep") {
				got++
			}
		}
		if got == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d processes sleep", got, n)
		}
	}
}

// A scan finds only the processes of each run.
func TestScan(t *testing.T) {
	tier.Need(t, tier.Normal)
	first, second := markName+t.Name()+"1", markName+t.Name()+"12"
	crowd(t, first, 3)
	crowd(t, second, 5)
	found := scan()
	for mark, want := range map[string]int{first: 4, second: 6, markName + t.Name(): 0} {
		if got := len(found[mark]); got != want {
			t.Errorf("%s: %d processes, want %d: %v", mark, got, want, found[mark])
		}
	}
	w := newWatch(first, process{os.Getpid(), filepath.Base(os.Args[0])})
	w.look(found[first])
	if w.processes != 4 || w.peak == 0 {
		t.Errorf("watched %d processes, %d MiB", w.processes, w.peak)
	}
	// A process that has just started does not sleep yet.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		states := w.states()
		if strings.Contains(states, "3 sleep") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the states are %q", states)
		}
	}
	if n := highWater(os.Getpid(), "another"); n != 0 {
		t.Errorf("%d MiB of a process of another name", n)
	}
}

// Watching hundreds of processes takes little processor time, because the watched processes need it.
func TestScanIsCheap(t *testing.T) {
	tier.Need(t, tier.Full)
	crowd(t, markName+t.Name(), 400)
	var pids []int
	for _, p := range marked(markName + t.Name()) {
		pids = append(pids, p.pid)
	}
	if len(pids) != 401 {
		t.Fatalf("%d processes", len(pids))
	}
	names, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var took, least time.Duration
	for range 5 { // other programs interfere
		// The minimum to find them all is to read the environment of every process.
		least = work(t, func() {
			for _, name := range names {
				os.ReadFile("/proc/" + name.Name() + "/environ")
			}
		})
		if took = work(t, func() { scan() }); took <= 4*least {
			return
		}
	}
	t.Errorf("a scan takes %v of processor time, reading every environment takes %v", took, least)
}

// work returns the processor time of f, whatever else is running.
func work(t *testing.T, f func()) time.Duration {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used := func() time.Duration {
		const thisThread = 1 // RUSAGE_THREAD
		var usage syscall.Rusage
		if err := syscall.Getrusage(thisThread, &usage); err != nil {
			t.Fatal(err)
		}
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	best := time.Hour
	for range 5 {
		began := used()
		f()
		best = min(best, used()-began)
	}
	return best
}
