// Command matrix measures what tests protect. It changes one place of a package at a time, runs tests against each
// change, called a mutant, and prints which tests have noticed it:
//
//	go run ./internal/test/matrix [flags] PACKAGE [TESTS...]
//
// PACKAGE is the package to change, and TESTS are the packages whose tests run; by default, those of PACKAGE. With -cover
// it also runs each test alone, and prints how many statements of PACKAGE only that test reaches. In the end it names the
// tests without which the others still reach all statements and kill all mutants. These may be deleted if other
// mutants, drawn with another -seed, are killed as before. Survivors need a test, or an explanation why the program does
// the same.
package main

import (
	"bufio"
	"bytes"
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
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	n := flag.Int("n", 40, "how many mutants to try")
	seed := flag.Uint64("seed", 1, "which ones")
	limit := flag.Duration("timeout", time.Minute, "how long the tests of a mutant may run")
	only := flag.String("only", "", "the numbers of the mutants to try, separated by commas")
	covered := flag.Bool("cover", false, "run each test alone, and count the statements that it reaches")
	args := flag.String("args", "", "further arguments for go test, separated by spaces")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	tests := flag.Args()[1:]
	if len(tests) == 0 {
		tests = flag.Args()[:1]
	}
	m := matrix{limit: *limit, only: strings.FieldsFunc(*only, func(r rune) bool { return r == ',' }), args: strings.Fields(*args), tests: tests, kills: map[string][]int{}, reached: map[string][]string{}}
	if *covered {
		if err := m.cover(flag.Arg(0)); err != nil {
			fmt.Fprintln(os.Stderr, "matrix:", err)
			os.Exit(1)
		}
	}
	if err := m.run(flag.Arg(0), *n, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

// mutant is a change of one place.
type mutant struct {
	file       string
	line       int
	start, end int // of the bytes that it replaces
	text       string
	what       string
}

type matrix struct {
	limit time.Duration
	args  []string
	only  []string
	tests []string
	kills map[string][]int // the mutants that a test has noticed

	reached map[string][]string // the blocks of statements that a test reaches
}

func (m *matrix) run(pkg string, n int, seed uint64) error {
	if failed, err := m.test(""); err != nil || len(failed) > 0 {
		return fmt.Errorf("without a mutant: %v fail: %w", slices.Sorted(maps.Keys(failed)), err)
	}
	all, err := mutants(pkg)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(seed, 0))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	tried, killed, useless := 0, 0, 0
	for i, mu := range all {
		number := i + 1
		if tried == n {
			break
		} else if len(m.only) > 0 && !slices.Contains(m.only, strconv.Itoa(number)) {
			continue
		}
		failed, err := m.try(mu)
		if err != nil {
			useless++
			continue
		}
		tried++
		names := slices.Sorted(maps.Keys(failed))
		if len(names) > 0 {
			killed++
		}
		for _, name := range names {
			m.kills[name] = append(m.kills[name], number)
		}
		verdict := "SURVIVES"
		if len(names) > 0 {
			verdict = fmt.Sprintf("killed by %d", len(names))
		}
		if len(names) == 1 {
			verdict = "killed by " + names[0] + " alone"
		}
		fmt.Printf("%3d  %s:%d  %s  %s\n", number, filepath.Base(mu.file), mu.line, mu.what, verdict)
	}
	fmt.Printf("%d of %d mutants killed; %d more did not compile\n\n", killed, tried, useless)
	m.report()
	return nil
}

// cover runs each test alone.
func (m *matrix) cover(pkg string) error {
	dir, err := os.MkdirTemp("", "matrix")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, profile := filepath.Join(dir, "test"), filepath.Join(dir, "profile")
	for _, tests := range m.tests {
		place, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{.Dir}}", tests).Output()
		if err != nil {
			return fmt.Errorf("go list %s: %w", tests, err)
		}
		path, home, _ := strings.Cut(strings.TrimSpace(string(place)), " ")
		if out, err := exec.Command("go", "test", "-c", "-cover", "-coverpkg", pkg, "-o", binary, tests).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", tests, err, out)
		}
		run := func(args ...string) ([]byte, error) {
			cmd := exec.Command(binary, args...)
			cmd.Dir = home
			return cmd.Output()
		}
		names, err := run("-test.list", "^(Test|Fuzz|Example)")
		if err != nil {
			return fmt.Errorf("%s: %w", tests, err)
		}
		for name := range strings.FieldsSeq(string(names)) {
			args := []string{"-test.run", "^" + name + "$", "-test.coverprofile", profile, "-test.timeout", m.limit.String()}
			for _, arg := range m.args {
				args = append(args, strings.Replace(arg, "-", "-test.", 1))
			}
			_, _ = run(args...) // what fails alone reaches something, too
			text, err := os.ReadFile(profile)
			if err != nil {
				continue
			}
			for line := range strings.Lines(string(text)) {
				if block, count, _ := strings.Cut(line, " "); !strings.HasPrefix(line, "mode:") && !strings.HasSuffix(count, " 0\n") {
					m.reached[path+"."+name] = append(m.reached[path+"."+name], block)
				}
			}
			_ = os.Remove(profile)
		}
	}
	return nil
}

// report prints, for each test, how many mutants it has noticed, which ones and how many blocks only it reaches, and then
// the tests that the others replace.
func (m *matrix) report() {
	marks := map[string][]string{} // of each test: what it reaches and kills
	tests := map[string]int{}      // of each mark: by how many tests
	maps.Copy(marks, m.reached)
	for name, killed := range m.kills {
		for _, i := range killed {
			marks[name] = append(marks[name], strconv.Itoa(i))
		}
	}
	for _, list := range marks {
		for _, mark := range list {
			tests[mark]++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(marks)) {
		var killed []string
		blocks := 0
		for _, mark := range marks[name] {
			if strings.Contains(mark, ":") && tests[mark] == 1 {
				blocks++
			} else if tests[mark] == 1 {
				killed = append(killed, mark)
			}
		}
		fmt.Printf("%4d  %s  alone: %d blocks, mutants %v\n", len(m.kills[name]), name, blocks, killed)
	}
	fmt.Println("\nThe others replace:")
	for _, name := range slices.SortedFunc(maps.Keys(marks), func(a, b string) int { return len(marks[a]) - len(marks[b]) }) {
		if !slices.ContainsFunc(marks[name], func(mark string) bool { return tests[mark] == 1 }) {
			fmt.Println("  " + name)
			for _, mark := range marks[name] {
				tests[mark]--
			}
		}
	}
}

// mutants returns all changes of a package's files that this command knows.
func mutants(pkg string) (all []mutant, err error) {
	out, err := exec.Command("go", "list", "-json=Dir,GoFiles", pkg).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pkg, err)
	}
	var p struct {
		Dir     string
		GoFiles []string
	}
	if err := json.Unmarshal(out, &p); err != nil {
		return nil, err
	}
	for _, name := range p.GoFiles {
		if strings.HasSuffix(name, "_gen.go") {
			continue
		}
		file := filepath.Join(p.Dir, name)
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, file, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		add := func(from, to token.Pos, text, what string) {
			at := fset.Position(from)
			all = append(all, mutant{file, at.Line, at.Offset, fset.Position(to).Offset, text, what})
		}
		code := func(n ast.Node) string {
			return string(source[fset.Position(n.Pos()).Offset:fset.Position(n.End()).Offset])
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			visit(n, add, code)
			return true
		})
	}
	return all, nil
}

var swapped = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD: token.SUB, token.SUB: token.ADD,
}

// visit adds the mutants of one node.
func visit(n ast.Node, add func(from, to token.Pos, text, what string), code func(ast.Node) string) {
	switch n := n.(type) {
	case *ast.IfStmt:
		add(n.Cond.Pos(), n.Cond.End(), "!("+code(n.Cond)+")", "if negated")
	case *ast.BinaryExpr:
		if to, ok := swapped[n.Op]; ok {
			add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), to.String(), n.Op.String()+" became "+to.String())
		}
	case *ast.BlockStmt:
		statements(n.List, add, code)
	case *ast.CaseClause:
		statements(n.Body, add, code)
	case *ast.CommClause:
		statements(n.Body, add, code)
	}
}

// statements adds the mutants of a list of statements: one left out, or two calls in the other order.
func statements(list []ast.Stmt, add func(from, to token.Pos, text, what string), code func(ast.Node) string) {
	for i, s := range list {
		what := ""
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.SendStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.BranchStmt:
			what = code(s)
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				what = code(s)
			}
		case *ast.ReturnStmt:
			if len(s.Results) == 0 {
				what = "return"
			}
		}
		if what == "" {
			continue
		}
		what, _, _ = strings.Cut(what, "\n")
		add(s.Pos(), s.End(), "", "without "+what)
		if i+1 < len(list) && isCall(s) && isCall(list[i+1]) {
			add(s.Pos(), list[i+1].End(), code(list[i+1])+"; "+code(s), "after the next: "+what)
		}
	}
}

func isCall(s ast.Stmt) bool {
	_, ok := s.(*ast.ExprStmt)
	return ok
}

var errBuild = errors.New("does not compile")

// try tests one mutant, and returns the tests that fail.
func (m *matrix) try(mu mutant) (map[string]bool, error) {
	source, err := os.ReadFile(mu.file)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "matrix")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	changed, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	text := slices.Concat(source[:mu.start], []byte(mu.text), source[mu.end:])
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{mu.file: changed}})
	if err = errors.Join(err, os.WriteFile(changed, text, 0o644), os.WriteFile(overlay, list, 0o644)); err != nil {
		return nil, err
	}
	return m.test(overlay)
}

// test runs the tests, and returns those that fail: their packages and names, or a package alone if it ends otherwise.
func (m *matrix) test(overlay string) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), m.limit+5*time.Minute) // building is not limited
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-json", "-vet=off", "-count=1", "-timeout", m.limit.String(), "-overlay", overlay)
	cmd.Args = append(append(cmd.Args, m.args...), m.tests...)
	out, err := cmd.Output() // an error says only that something has failed
	failed, ended := map[string]bool{}, map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var event struct{ Action, Package, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue
		}
		if event.Action == "build-fail" {
			return nil, errBuild
		}
		if hung, ok := strings.CutPrefix(event.Output, "\t\tTest"); ok { // in the list of a panic because of the time
			hung, _, _ = strings.Cut("Test"+hung, " ")
			hung, _, _ = strings.Cut(hung, "/")
			failed[event.Package+"."+hung], ended[event.Package] = true, true
		}
		name, _, sub := strings.Cut(event.Test, "/")
		if event.Action != "fail" || sub {
			continue
		}
		if name != "" {
			failed[event.Package+"."+name], ended[event.Package] = true, true
		} else if !ended[event.Package] {
			failed[event.Package] = true
		}
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(failed) == 0 {
		return nil, fmt.Errorf("go test: %w\n%s%s", err, out, exit.Stderr)
	}
	return failed, nil
}
