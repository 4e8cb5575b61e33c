//go:build linux

package terminal

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// measuring reports whether to measure the acp that users get, and to compare it with the targets: tier Nightly does
// that, on a machine that does nothing else.
func measuring() bool { return tier.Current() == tier.Nightly }

// The targets on an idle machine.
const (
	startTarget  = 50 * time.Millisecond // to the first frame
	keyTarget    = 100 * time.Millisecond
	memoryTarget = 300 << 20
)

// builtProgram returns the acp that users get, or that of the tests if nothing is measured.
func builtProgram(t *testing.T) string {
	t.Helper()
	if !measuring() {
		return acpPath(t)
	}
	file := filepath.Join(t.TempDir(), "acp")
	for _, flags := range [][]string{{"-trimpath"}, {"-trimpath", "-ldflags=-s -w"}} {
		build := exec.Command("go", append(append([]string{"build", "-o", file}, flags...), "../..")...)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		info := must.Get(os.Stat(file))(t)
		t.Logf("size with %q: %.1f MiB", flags, float64(info.Size())/(1<<20))
	}
	return file
}

// within checks times against a target when measuring.
func within(t *testing.T, what string, times []time.Duration, target time.Duration) {
	t.Helper()
	slices.Sort(times)
	median := times[len(times)/2]
	t.Logf("%s: median %v of %d, from %v to %v (target %v)", what, median.Round(time.Microsecond), len(times),
		times[0].Round(time.Microsecond), times[len(times)-1].Round(time.Microsecond), target)
	if measuring() && median > target {
		t.Errorf("%s: %v, want at most %v", what, median, target)
	}
}

// TestRunStart measures the time to the first frame.
func TestRunStart(t *testing.T) {
	n := 2
	if measuring() {
		n = 40
	}
	program := builtProgram(t)
	var frames []time.Duration
	for range n {
		p := begin(t, staging{prepare: func(_ *play, cmd *exec.Cmd) { cmd.Path = program }})
		p.Wait(" ready ")
		var raw []byte
		for _, c := range p.Chunks() {
			raw = append(raw, c.Bytes...)
			if bytes.Contains(raw, []byte("ready")) || bytes.Contains(raw, []byte("starting")) {
				frames = append(frames, c.At)
				break
			}
		}
		p.Press("ctrl+d")
		p.End()
	}
	within(t, "the first frame", frames, startTarget)
}

var memoryLine = regexp.MustCompile(`(VmRSS|VmHWM):\s+(\d+) kB`)

// memory returns the current and the peak memory of a process.
func memory(t *testing.T, pid int) (now, most int) {
	t.Helper()
	status := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))(t)
	for _, found := range memoryLine.FindAllStringSubmatch(string(status), -1) {
		kB := must.Get(strconv.Atoi(found[2]))(t)
		if found[1] == "VmRSS" {
			now = kB << 10
		} else {
			most = kB << 10
		}
	}
	return now, most
}

// TestRunManyUpdates measures the time and the memory of a session of 100,000 updates, and then how long it takes to
// show a key while updates keep arriving. It plays 10,000 if nothing is measured.
func TestRunManyUpdates(t *testing.T) {
	updates := 10_000
	if measuring() {
		updates = 100_000
	}
	program := builtProgram(t)
	p := begin(t, staging{prepare: func(_ *play, cmd *exec.Cmd) { cmd.Path = program }})
	p.Wait(" ready ")
	start, _ := memory(t, p.Pid())
	began := time.Now()
	p.say(fmt.Sprintf("flood %d", updates))
	p.answered(fmt.Sprintf("The last of %d.", updates))
	took := time.Since(began)
	now, most := memory(t, p.Pid())
	t.Logf("%d updates in %v; memory %.1f MiB at first, %.1f MiB now, %.1f MiB at most", updates, took.Round(time.Millisecond),
		float64(start)/(1<<20), float64(now)/(1<<20), float64(most)/(1<<20))
	if measuring() && most > memoryTarget {
		t.Errorf("it had %d MiB, want at most %d", most>>20, memoryTarget>>20)
	}

	p.say("flood 100000000") // endless
	p.Wait("working")
	var keys []time.Duration
	typed := ""
	for len(typed) < 30 {
		typed += "x"
		sent := time.Now()
		p.Type("x")
		p.Wait(typed)
		keys = append(keys, time.Since(sent))
	}
	within(t, "a key in a flood", keys, keyTarget)
	p.Press("ctrl+c")
	p.answered(typed)
	p.Press("ctrl+c", "ctrl+c")
	p.Clean(p.End())
}
