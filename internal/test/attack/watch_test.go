//go:build linux

package attack

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A process is one of a run.
type process struct {
	pid  int
	name string // of its executable
}

// markName is the variable by which the processes of a run are known. Its value is the run's.
const markName = "ACP_ATTACK="

// scan finds the processes of all runs, by their marks. It reads no more of each process than it needs: where there are
// thousands, this is what takes the most time of all that the tests do.
func scan() map[string][]process {
	found := map[string][]process{}
	dir, err := os.Open("/proc")
	if err != nil {
		return found
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what is known is better than nothing
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		env, err := os.ReadFile("/proc/" + name + "/environ")
		if err != nil {
			continue
		}
		_, rest, ok := bytes.Cut(append([]byte{0}, env...), []byte("\x00"+markName))
		if !ok {
			continue
		}
		mark, _, _ := bytes.Cut(rest, []byte{0})
		exe, err := os.Readlink("/proc/" + name + "/exe")
		if err != nil {
			continue // it has ended meanwhile
		}
		found[markName+string(mark)] = append(found[markName+string(mark)], process{pid, filepath.Base(exe)})
	}
	return found
}

// marked finds the processes of a run as they are now.
func marked(mark string) []process { return scan()[mark] }

// A census scans again and again, for all runs together, and rests for most of the time: what it takes is missing to
// those that are watched.
type census struct {
	latest atomic.Pointer[map[string][]process]
	stop   chan struct{}
	ended  sync.WaitGroup
}

func newCensus() *census {
	c := &census{stop: make(chan struct{})}
	c.latest.Store(&map[string][]process{})
	c.ended.Go(func() {
		for {
			began := time.Now()
			found := scan()
			c.latest.Store(&found)
			select {
			case <-time.After(max(100*time.Millisecond, 4*time.Since(began))):
			case <-c.stop:
				return
			}
		}
	})
	return c
}

// of returns the processes of a run as they were lately.
func (c *census) of(mark string) []process { return (*c.latest.Load())[mark] }

func (c *census) close() {
	close(c.stop)
	c.ended.Wait()
}

// watch looks at the processes of a run now and then.
type watch struct {
	mark      string
	watched   map[int]string // the victims: those that are judged, with their names
	peak      int            // MiB, the most that one of them has had
	processes int            // the most at once, victims and attackers not counted
}

func newWatch(mark string, victim process) *watch {
	return &watch{mark: mark, watched: map[int]string{victim.pid: victim.name}}
}

// look takes note of what is now, and of the processes that there were lately.
func (w *watch) look(lately []process) {
	for pid, name := range w.watched {
		w.peak = max(w.peak, highWater(pid, name))
	}
	others := 0
	for _, p := range lately {
		switch {
		case strings.HasPrefix(p.name, "hostile"):
		case programs[p.name] != "":
			w.watched[p.pid] = p.name
		default:
			others++
		}
	}
	w.processes = max(w.processes, others)
}

// states says what the processes of the run do: how many of each name are in which state and wait in the system where.
func (w *watch) states() string {
	counts := map[string]int{}
	for _, p := range marked(w.mark) {
		dir := fmt.Sprintf("/proc/%d/", p.pid)
		stat, _ := os.ReadFile(dir + "stat") // it may have ended meanwhile
		where, _ := os.ReadFile(dir + "wchan")
		state, _, _ := strings.Cut(strings.TrimSpace(string(stat[bytes.LastIndexByte(stat, ')')+1:])), " ")
		counts[fmt.Sprintf("%s %s %s", p.name, state, where)]++
	}
	var all []string
	for what, n := range counts {
		all = append(all, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// kill ends all processes of the run.
func (w *watch) kill() {
	for range 3 { // for those that were just being started
		for _, p := range marked(w.mark) {
			syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
}

// highWater is the most memory that a process has had, in MiB, or 0 when it has ended and its number is another's. What
// the system says of a process that has ended is of no use: it counts in the children that the process has waited for,
// which are the attackers.
func highWater(pid int, name string) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil || !bytes.HasPrefix(status, []byte("Name:\t"+name[:min(len(name), maxName)]+"\n")) {
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

// maxName is how much of a name Linux keeps.
const maxName = 15
