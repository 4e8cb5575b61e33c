//go:build linux

package attack

// This file owns what is known of processes, from /proc.

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A process is one of a run.
type process struct {
	pid  int
	name string // of its executable
}

// marked finds the processes that have a variable in their environment.
func marked(mark string) (found []process) {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is right
	for _, path := range paths {
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(env, []byte(mark+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		exe, err := os.Readlink(filepath.Join(filepath.Dir(path), "exe"))
		if err != nil {
			continue // it has ended meanwhile
		}
		found = append(found, process{pid, filepath.Base(exe)})
	}
	return found
}

// watch looks at the processes of a run now and then.
type watch struct {
	mark      string
	watched   map[int]bool // the victims: those that are judged
	peak      int          // MiB, the most that one of them has had
	processes int          // the most at once, victims and attackers not counted
	looked    time.Time    // for processes
}

func newWatch(mark string, pid int) *watch {
	return &watch{mark: mark, watched: map[int]bool{pid: true}}
}

// look takes note of what is now.
func (w *watch) look() {
	for pid := range w.watched {
		w.peak = max(w.peak, highWater(pid))
	}
	if time.Since(w.looked) < 100*time.Millisecond {
		return
	}
	w.looked = time.Now()
	others := 0
	for _, p := range marked(w.mark) {
		switch {
		case strings.HasPrefix(p.name, "hostile"):
		case programs[p.name] != "":
			w.watched[p.pid] = true
		default:
			others++
		}
	}
	w.processes = max(w.processes, others)
}

// kill ends all processes of the run.
func (w *watch) kill() {
	for range 3 { // for those that were just being started
		for _, p := range marked(w.mark) {
			syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
}

// highWater is the most memory that a process has had, in MiB, or 0 when it has ended. What the system says of a process
// that has ended is of no use: it counts in the children that the process has waited for, which are the attackers.
func highWater(pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut(string(status), "\nVmHWM:")
	if !ok {
		return 0
	}
	line, _, _ := strings.Cut(rest, "\n")
	kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "kB")))
	if err != nil {
		return 0
	}
	return kib >> 10
}
