//go:build linux

package attack

// This file owns the tests: which attacks run, and the table that is printed of them.

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

	"github.com/acpgo/sdk/internal/gentest"
)

var (
	full  = flag.Bool("attack.full", false, "make the attacks in full")
	table = flag.String("attack.table", "", "a file to write the table to")
)

// everybody is who is there.
var everybody *census

// bin is where the programs are.
var bin string

// programs are what is attacked, and what attacks, by the names under which they are built.
var programs = map[string]string{
	"hostile-agent":  "./internal/attack/agent",
	"hostile-client": "./internal/attack/client",
	"victim":         "./internal/attack/victim",
	"example-client": "./examples/client",
	"example-agent":  "./examples/agent",
	"dual-client":    "./examples/dual/client",
	"dual-agent":     "./examples/dual/agent",
	"proxy":          "./examples/proxy",
	"acpgen":         "./cmd/acpgen",
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	if !*full {
		// Most of the time is waiting, and there is memory for so many at once.
		if err := flag.Set("test.parallel", "6"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	var err error
	if bin, err = os.MkdirTemp("", "acp-attack"); err == nil {
		defer os.RemoveAll(bin)
		err = build()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "building the programs:", err)
		return 1
	}
	everybody = newCensus()
	status := m.Run()
	everybody.close()
	if err := printTable(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

func build() error {
	for name, pkg := range programs {
		args := []string{"build", "-o", filepath.Join(bin, name)}
		// The programs that attack need no race detector, which would slow them down.
		if gentest.Race && !strings.HasPrefix(name, "hostile") {
			args = append(args, "-race")
		}
		cmd := exec.Command("go", append(args, pkg)...)
		cmd.Dir, cmd.Stderr = filepath.Join("..", ".."), os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", pkg, err)
		}
	}
	return nil
}

// results are those of all attacks.
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

// printTable prints a row for each attack, and what was found.
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
	fmt.Print(text.String())
	if *table != "" {
		return os.WriteFile(*table, []byte(text.String()), 0o666)
	}
	return nil
}

// TestAttacks makes all attacks on clients and agents.
func TestAttacks(t *testing.T) {
	for _, c := range cases() {
		if c.inFull && !*full {
			continue
		}
		t.Run(c.victim+"/"+c.attack, func(t *testing.T) {
			if (c.amount || c.bound > small) && gentest.Race && !*full {
				t.Skip("it is about memory, whose bound the race detector makes meaningless; without it, or in full, it runs")
			}
			t.Parallel()
			c.run(t)
		})
	}
}
