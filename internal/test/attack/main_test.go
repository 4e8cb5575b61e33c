//go:build linux

package attack

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/tier"
)

var table = flag.String("attack.table", "", "a file to write the table to")

// full reports whether the attacks run in their full sizes. They never do with the race detector, because those sizes
// test memory, and the race detector has its own memory; also, a single attack could take an hour.
func full() bool { return tier.Current() == tier.Nightly && !gentest.Race }

// processes lists the processes that the tests have started, so that none outlives the tests.
var processes *census

// bin is the directory with the programs.
var bin string

// programs holds the folders of the victims and the attackers, by the names under which they are built.
var programs = map[string]string{
	"hostile-agent":  "./internal/test/attack/agent",
	"hostile-client": "./internal/test/attack/client",
	"victim":         "./internal/test/attack/victim",
	"victim-v2":      "./acp/acpv2/internal/victim",
	"kit-agent":      "./examples/kit-agent",
	"proxy":          "./examples/proxy",
	"acpgen":         "./cmd/acpgen",
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	if tier.Current() == tier.Short {
		return m.Run() // every test is skipped
	}
	if tier.Current() < tier.Nightly {
		// Most of the time is spent waiting, and there is memory for this number of tests at a time.
		if err := flag.Set("test.parallel", "6"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	var err error
	if bin, err = os.MkdirTemp("", "acp-attack"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(bin)
	processes = newCensus()
	status := m.Run()
	processes.close()
	if err := printTable(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

// built holds the programs that were built, or are being built, by name: each is a func() error.
var built sync.Map

// program builds one of the programs once, and returns its path.
func program(name string) (string, error) {
	path := filepath.Join(bin, name)
	build, _ := built.LoadOrStore(name, sync.OnceValue(func() error {
		args := []string{"build", "-o", path}
		// The attackers do not need the race detector, which would slow them down.
		if gentest.Race && !strings.HasPrefix(name, "hostile") {
			args = append(args, "-race")
		}
		cmd := exec.Command("go", append(args, ".")...)
		cmd.Dir = filepath.Join("..", "..", "..", programs[name]) // it may be in a module of its own
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w: %s", name, err, out)
		}
		return nil
	}))
	return path, build.(func() error)()
}

// results are the results of all attacks.
var results struct {
	sync.Mutex
	list []*result
}

// A result is a row of the table.
type result struct {
	attack, victim string
	bound, peak    int // MiB
	time           time.Duration
	findings       []string
	notes          []string
}

func (r *result) verdict() string {
	if len(r.findings) == 0 {
		return "ok"
	}
	return "FINDING"
}

// printTable prints a row for each attack, with its findings.
func printTable() error {
	results.Lock()
	defer results.Unlock()
	if len(results.list) == 0 {
		return nil
	}
	slices.SortFunc(results.list, func(a, b *result) int {
		return strings.Compare(a.victim+" "+a.attack, b.victim+" "+b.attack)
	})
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "attack\ton\tbound MiB\tpeak MiB\ttime\tresult\t")
	findings := 0
	for _, r := range results.list {
		note := strings.Join(append(slices.Clone(r.findings), r.notes...), "; ")
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%.1fs\t%s\t%.300s\n",
			r.attack, r.victim, r.bound, r.peak, r.time.Seconds(), r.verdict(), strings.ReplaceAll(note, "\n", " "))
		findings += min(1, len(r.findings))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(&text, "%d attacks, %d with findings\n", len(results.list), findings)
	if findings > 0 || tier.Current() == tier.Nightly || testing.Verbose() {
		fmt.Print(text.String())
	}
	if *table != "" {
		return os.WriteFile(*table, []byte(text.String()), 0o666)
	}
	return nil
}

// inNormal are the attacks in tier Normal: one of each kind. They need one victim of each side and two attackers.
var inNormal = map[string]bool{
	"local/none": true, "local/update-flood": true, "local/bad-lines": true, "local/cancellations": true, "local/paths": true,
	"local/close-session": true, "local/dies": true, "local/answer-id": true, "victim-v2/v2-sessions": true,
	"agent/none": true, "agent/garbage": true, "agent/duplicate-ids": true, "agent/too-early": true, "agent/half-closed": true,
}

// TestAttacks attacks clients and agents: with all attacks in tier Nightly, with small versions of all except those
// marked inNightly in tier Full, and with one attack of each kind in tier Normal.
func TestAttacks(t *testing.T) {
	tier.Need(t, tier.Normal)
	for _, c := range cases() {
		if c.inNightly && tier.Current() < tier.Nightly || tier.Current() == tier.Normal && !inNormal[c.victim+"/"+c.attack] {
			continue
		}
		t.Run(c.victim+"/"+c.attack, func(t *testing.T) {
			if (c.amount || c.bound > small) && gentest.Race && tier.Current() < tier.Nightly {
				t.Skip("it is about memory, whose bound the race detector makes meaningless")
			}
			t.Parallel()
			c.run(t)
		})
	}
}
