package stress

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/acpgo/sdk/internal/test/gentest"
)

// table is the output of a test, with columns separated by tabs.
type table struct {
	text strings.Builder
	w    *tabwriter.Writer
}

// newTable returns a table that is printed at the end of the test.
func newTable(t *testing.T, head ...string) *table {
	tab := &table{}
	tab.w = tabwriter.NewWriter(&tab.text, 0, 0, 2, ' ', 0)
	tab.row(head...)
	t.Cleanup(func() {
		tab.w.Flush()
		t.Log("\n" + tab.text.String())
	})
	return tab
}

func (tab *table) row(cells ...string) { fmt.Fprintln(tab.w, strings.Join(cells, "\t")) }

// mib formats a number of bytes in MiB.
func mib(n int) string { return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20)) }

// vm returns a memory value of a process in bytes, or 0 if it is not available.
func vm(pid int, name string) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// memory measures how the memory of a client and its agent grows.
type memory struct {
	client, agent process
}

type process struct {
	pid   int
	start int // resident memory at the start
}

// watchMemory starts at the current memory of both processes.
func watchMemory(agent *subprocess) *memory {
	return &memory{watch(os.Getpid()), watch(agent.cmd.Process.Pid)}
}

// watch resets the process's peak to its current memory.
func watch(pid int) process {
	if pid == os.Getpid() {
		debug.FreeOSMemory()
	}
	const resetPeak = "5" // see proc_pid_clear_refs(5)
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte(resetPeak), 0); err != nil {
		return process{}
	}
	return process{pid, vm(pid, "VmRSS")}
}

// peak returns the peak memory of the process since the start, and how much it grew.
func (p process) peak() (most, growth int) {
	if p.pid == 0 {
		return 0, 0
	}
	most = vm(p.pid, "VmHWM")
	return most, most - p.start
}

// cells formats both peaks, and requires that neither grew by more than its limit. With the race detector, it requires
// nothing, because the race detector has its own memory.
func (m *memory) cells(t *testing.T, clientLimit, agentLimit int) []string {
	t.Helper()
	var cells []string
	for _, p := range []struct {
		name  string
		of    process
		limit int
	}{{"client", m.client, clientLimit}, {"agent", m.agent, agentLimit}} {
		most, growth := p.of.peak()
		if growth > p.limit && !gentest.Race {
			t.Errorf("the %s grew by %s to %s, want %s at most", p.name, mib(growth), mib(most), mib(p.limit))
		}
		cells = append(cells, fmt.Sprintf("%s (+%s, limit +%s)", mib(most), mib(growth), mib(p.limit)))
	}
	return cells
}

// rate formats the time for n things, in total and for each.
func rate(n int, d time.Duration) string {
	return fmt.Sprintf("%v (%.2f µs each)", d.Round(time.Millisecond), float64(d.Nanoseconds())/1000/float64(n))
}

// progress is a number that two processes share in a file.
type progress struct{ f *os.File }

// progressStep is the number of updates that are reported at a time, before they are sent.
const progressStep = 100

func openProgress(path string) (*progress, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &progress{f}, nil
}

func (p *progress) set(n int) error {
	_, err := p.f.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(n)), 0)
	return err
}

// get returns the number, or 0 before it is set.
func (p *progress) get() int {
	var b [8]byte
	if _, err := p.f.ReadAt(b[:], 0); err != nil {
		return 0
	}
	return int(binary.LittleEndian.Uint64(b[:]))
}

func (p *progress) close() error { return p.f.Close() }
