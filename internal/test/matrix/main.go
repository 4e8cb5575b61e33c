// Command matrix measures what tests protect. It compiles a package with many small changes, called mutants, of which at
// most one is active at a time, runs each test against those that it reaches, and prints which tests notice which:
//
//	go run ./internal/test/matrix [flags] PACKAGE [TESTS...]
//
// PACKAGE is the package to change, and TESTS are the packages whose tests run; by default, those of PACKAGE. Survivors
// need a test, or an explanation why the program does the same. In the end come the tests without which the others still
// reach all places and notice all mutants. These may be deleted if, of the mutants that another -seed draws, the others
// notice all that the deleted tests noticed.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	m := matrix{}
	flag.IntVar(&m.n, "n", 100, "how many mutants to try, of those that a test reaches")
	flag.Uint64Var(&m.seed, "seed", 1, "which ones")
	flag.DurationVar(&m.limit, "timeout", 30*time.Second, "how long a test may take with a mutant, if it is slow without one")
	flag.IntVar(&m.parallel, "p", 2, "how many tests run at a time")
	flag.BoolVar(&m.race, "race", false, "use the race detector")
	flag.BoolVar(&m.short, "short", false, "run the tests with -short")
	run := flag.String("run", "", "only the tests whose names match")
	only := flag.String("only", "", "the numbers of the mutants to try, separated by commas")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	m.only = strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	if err := m.measure(flag.Arg(0), flag.Args()[min(1, flag.NArg()-1):], *run); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

type matrix struct {
	n, parallel int
	seed        uint64
	limit       time.Duration
	race, short bool
	only        []string

	mutants []mutant
	tests   []*test
}

// test is a test of one of the binaries.
type test struct {
	binary, dir, name string
	lines             int // of its function
	took              time.Duration
	reaches           []int        // the mutants, whether they are tried or not
	kills             map[int]bool // those that it notices
}

func (m *matrix) measure(pkg string, tests []string, run string) error {
	matching, err := regexp.Compile(run)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "matrix")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var replaced map[string]string
	if m.mutants, replaced, err = mutate(pkg, dir); err != nil {
		return err
	}
	overlay := filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err = errors.Join(err, os.WriteFile(overlay, text, 0o600)); err != nil {
		return err
	}
	for i, pkg := range tests {
		if err := m.compile(pkg, filepath.Join(dir, strconv.Itoa(i)), overlay, matching); err != nil {
			return err
		}
	}
	m.trace(dir)
	tried := m.draw()
	m.each(func(t *test) {
		for _, i := range t.reaches {
			if !slices.Contains(tried, i) {
				continue
			}
			if err := m.run(t, min(m.limit, 10*t.took+2*time.Second), "MUTANT="+strconv.Itoa(i)); err != nil {
				t.kills[i] = true
			}
		}
	})
	m.report(tried)
	return nil
}

// compile builds the tests of a package, and lists them.
func (m *matrix) compile(pkg, binary, overlay string, matching *regexp.Regexp) error {
	args := []string{"test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, pkg}
	if m.race {
		args = slices.Insert(args, 1, "-race")
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", pkg, err, out)
	}
	out, err := exec.Command("go", "list", "-json=Dir,TestGoFiles,XTestGoFiles", pkg).Output()
	if err != nil {
		return fmt.Errorf("go list %s: %w", pkg, err)
	}
	var p struct {
		Dir                       string
		TestGoFiles, XTestGoFiles []string
	}
	if err := json.Unmarshal(out, &p); err != nil {
		return err
	}
	lines := map[string]int{}
	for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				lines[fn.Name.Name] = fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
			}
		}
	}
	list := exec.Command(binary, "-test.list", "^(Test|Fuzz|Example)")
	list.Dir = p.Dir
	if out, err = list.Output(); err != nil {
		return fmt.Errorf("%s: %w", pkg, err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		if matching.MatchString(name) && lines[name] > 0 {
			m.tests = append(m.tests, &test{binary: binary, dir: p.Dir, name: name, lines: lines[name], kills: map[int]bool{}})
		}
	}
	return nil
}

// trace runs each test without a mutant, to learn which ones it reaches. A test that fails alone is left out.
func (m *matrix) trace(dir string) {
	m.each(func(t *test) {
		file, err := os.CreateTemp(dir, "trace")
		if err != nil {
			panic(err)
		}
		defer file.Close()
		start := time.Now()
		err = m.run(t, 10*m.limit, "MUTANT_TRACE="+file.Name())
		t.took = time.Since(start)
		text, _ := os.ReadFile(file.Name())
		seen := map[int]bool{} // subprocesses write, too
		for number := range strings.FieldsSeq(string(text)) {
			if i, err := strconv.Atoi(number); err == nil && i < len(m.mutants) {
				seen[i] = true
			}
		}
		t.reaches = slices.Sorted(maps.Keys(seen))
		if err != nil {
			fmt.Printf("%s fails without a mutant: %v\n", t.name, err)
			t.reaches = nil
		}
	})
}

// each runs a function for each test, those that take long first.
func (m *matrix) each(do func(*test)) {
	queue := make(chan *test)
	var all sync.WaitGroup
	for range m.parallel {
		all.Go(func() {
			for t := range queue {
				do(t)
			}
		})
	}
	slowest := func(a, b *test) int { return cmp.Compare(b.took, a.took) }
	for _, t := range slices.SortedStableFunc(slices.Values(m.tests), slowest) {
		queue <- t
	}
	close(queue)
	all.Wait()
}

// run runs one test.
func (m *matrix) run(t *test, limit time.Duration, env string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, t.binary, "-test.run", "^"+t.name+"$", "-test.short="+strconv.FormatBool(m.short))
	cmd.Dir = t.dir
	cmd.Env = append(os.Environ(), env)
	cmd.WaitDelay = time.Second
	return cmd.Run()
}

// draw returns the mutants to try.
func (m *matrix) draw() (tried []int) {
	reached := map[int]bool{}
	for _, t := range m.tests {
		for _, i := range t.reaches {
			reached[i] = true
		}
	}
	fmt.Printf("%d tests reach %d of %d mutants\n", len(m.tests), len(reached), len(m.mutants)-1)
	all := slices.Sorted(maps.Keys(reached))
	if len(m.only) > 0 {
		return slices.DeleteFunc(all, func(i int) bool { return !slices.Contains(m.only, strconv.Itoa(i)) })
	}
	rand.New(rand.NewPCG(m.seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(m.n, len(all))]
}

// report prints the mutants, the tests, and the tests that the others replace, those with many lines first.
func (m *matrix) report(tried []int) {
	killed := 0
	for _, i := range slices.Sorted(slices.Values(tried)) {
		var names []string
		for _, t := range m.tests {
			if t.kills[i] {
				names = append(names, t.name)
			}
		}
		verdict := fmt.Sprintf("killed by %d", len(names))
		switch len(names) {
		case 0:
			verdict = "SURVIVES"
		case 1:
			verdict = "killed by " + names[0] + " alone"
		}
		killed += min(1, len(names))
		fmt.Printf("%4d  %s:%d  %s  %s\n", i, m.mutants[i].file, m.mutants[i].line, m.mutants[i].what, verdict)
	}
	fmt.Printf("%d of %d mutants killed\n\nEach test: kills, alone, reaches alone, lines, seconds\n", killed, len(tried))
	reach, kill := map[int]int{}, map[int]int{}
	for _, t := range m.tests {
		for _, i := range t.reaches {
			reach[i]++
		}
		for i := range t.kills {
			kill[i]++
		}
	}
	for _, t := range m.tests {
		kills, reaches := alone(maps.Keys(t.kills), kill), alone(slices.Values(t.reaches), reach)
		fmt.Printf("%4d %4d %4d %4d %5.1f  %s\n", len(t.kills), kills, reaches, t.lines, t.took.Seconds(), t.name)
	}
	fmt.Println("\nThe others replace:")
	sum := 0
	for _, t := range slices.SortedStableFunc(slices.Values(m.tests), func(a, b *test) int { return b.lines - a.lines }) {
		if alone(maps.Keys(t.kills), kill)+alone(slices.Values(t.reaches), reach) > 0 {
			continue
		}
		sum += t.lines
		fmt.Printf("%5d lines  %s\n", t.lines, t.name)
		for _, i := range t.reaches {
			reach[i]--
		}
		for i := range t.kills {
			kill[i]--
		}
	}
	fmt.Printf("%5d lines\n", sum)
}

// alone counts the mutants of which only one test knows.
func alone(mutants func(func(int) bool), tests map[int]int) (n int) {
	for i := range mutants {
		if tests[i] == 1 {
			n++
		}
	}
	return n
}
