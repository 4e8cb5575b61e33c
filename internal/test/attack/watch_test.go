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

// A process is a process of a run.
type process struct {
	pid  int
	name string // of its executable
}

// markName is the environment variable that identifies the processes of a run. Each run has its own value.
const markName = "ACP_ATTACK="

// scan finds the processes of all runs, by their marks. It reads only the necessary data of each process, because with
// thousands of processes this takes more time than anything else in the tests.
func scan() map[string][]process {
	found := map[string][]process{}
	dir, err := os.Open("/proc")
	if err != nil {
		return found
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // a partial list is better than none
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

// marked finds the current processes of a run.
func marked(mark string) []process { return scan()[mark] }

// A census scans repeatedly, for all runs together, and rests for most of the time, because it takes processor time
// from the watched processes.
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

// of returns the processes of a run at the last scan.
func (c *census) of(mark string) []process { return (*c.latest.Load())[mark] }

func (c *census) close() {
	close(c.stop)
	c.ended.Wait()
}

// watch checks the processes of a run from time to time.
type watch struct {
	mark      string
	watched   map[int]string // the names of the victims, which are judged
	peak      int            // MiB, the maximum of one of them
	processes int            // the maximum at a time, without victims and attackers
}

func newWatch(mark string, victim process) *watch {
	return &watch{mark: mark, watched: map[int]string{victim.pid: victim.name}}
}

// look records the current state, and the processes of the last scan.
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

// states describes the activity of the run's processes: how many of each name are in which state, and where in the
// system they wait.
func (w *watch) states() string {
	counts := map[string]int{}
	for _, p := range marked(w.mark) {
		dir := fmt.Sprintf("/proc/%d/", p.pid)
		stat, _ := os.ReadFile(dir + "stat") // the process may have ended meanwhile
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

// highWater returns the peak memory of a process in MiB, or 0 if it has ended and its pid belongs to another process.
// The system's data about an ended process is not usable, because it includes the children that the process has waited
// for, which are the attackers.
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

// maxName is the length of a name that Linux keeps.
const maxName = 15
