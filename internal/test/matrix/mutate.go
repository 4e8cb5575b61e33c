package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is a change of one place, which the compiled code makes if the environment variable MUTANT has its number.
type mutant struct {
	file string
	line int
	what string
}

// runtime is the file of the package under test that decides which code runs. A mutant that is reached for the first
// time appends its number to the file MUTANT_TRACE.
const runtime = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var mutantNow, mutantTrace = func() (int, *os.File) {
	n, _ := strconv.Atoi(os.Getenv("MUTANT"))
	f, _ := os.OpenFile(os.Getenv("MUTANT_TRACE"), os.O_APPEND|os.O_WRONLY, 0)
	return n, f
}()

var mutantReached [%d]atomic.Bool

func mutantIs(n int) bool {
	if mutantTrace != nil && !mutantReached[n].Swap(true) {
		mutantTrace.WriteString(strconv.Itoa(n) + "\n")
	}
	return n == mutantNow
}

func mutantError(n int, err error) error {
	if mutantIs(n) {
		return nil
	}
	return err
}

type mutantNumber interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

func mutantCompare[T mutantNumber](n int, less, equal, greater, edge bool, a, b T) bool {
	if mutantIs(n) {
		equal = edge
	}
	return less && a < b || equal && a == b || greater && a > b
}

func mutantAdd[T mutantNumber](n int, a, b T) T {
	if mutantIs(n) {
		return a - b
	}
	return a + b
}
`

// edit puts text before and after a part of a file.
type edit struct {
	from, to      int
	before, after string
}

// source is a file in which mutants are written.
type source struct {
	name  string
	text  []byte
	fset  *token.FileSet
	info  *types.Info
	edits []edit
	all   *[]mutant
}

// mutate writes a copy of a package's files that has all mutants to dir, and returns the files that the copies replace.
func mutate(pkg, dir string) (all []mutant, replaced map[string]string, err error) {
	out, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,Dir,Name,GoFiles", pkg).Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list %s: %w", pkg, err)
	}
	var last struct { // the package comes after those that it imports
		ImportPath, Export, Dir, Name string
		GoFiles                       []string
	}
	compiled := map[string]string{}
	for list := json.NewDecoder(bytes.NewReader(out)); list.More(); {
		last.GoFiles = nil
		if err := list.Decode(&last); err != nil {
			return nil, nil, err
		}
		compiled[last.ImportPath] = last.Export
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range last.GoFiles {
		mode := parser.ParseComments | parser.SkipObjectResolution
		file, err := parser.ParseFile(fset, filepath.Join(last.Dir, name), nil, mode)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, file)
	}
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
	}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(compiled[name])
	})}
	if _, err := config.Check(last.ImportPath, fset, files, info); err != nil {
		return nil, nil, err
	}
	all = make([]mutant, 1) // numbers begin at 1
	replaced = map[string]string{}
	for i, tree := range files {
		if ast.IsGenerated(tree) {
			continue
		}
		name := filepath.Join(last.Dir, last.GoFiles[i])
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, nil, err
		}
		s := &source{name: name, text: text, fset: fset, info: info, all: &all}
		for _, decl := range tree.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
				ast.Inspect(fn.Body, s.visit)
			}
		}
		replaced[name] = filepath.Join(dir, last.GoFiles[i])
		if err := os.WriteFile(replaced[name], s.written(), 0o600); err != nil {
			return nil, nil, err
		}
	}
	added := filepath.Join(dir, "mutants.go")
	replaced[filepath.Join(last.Dir, "mutants_of_matrix.go")] = added
	return all, replaced, os.WriteFile(added, fmt.Appendf(nil, runtime, last.Name, len(all)), 0o600)
}

func (s *source) code(n ast.Node) string { return string(s.text[s.at(n.Pos()):s.at(n.End())]) }

func (s *source) at(p token.Pos) int { return s.fset.Position(p).Offset }

// add adds a mutant: before and after are put around the code from n to last; before has its number as %[1]d.
func (s *source) add(n, last ast.Node, before, after, what string) {
	what, _, _ = strings.Cut(what, "\n")
	s.edits = append(s.edits, edit{s.at(n.Pos()), s.at(last.End()), fmt.Sprintf(before, len(*s.all)), after})
	*s.all = append(*s.all, mutant{filepath.Base(s.name), s.fset.Position(n.Pos()).Line, what})
}

// visit adds the mutants of one node.
func (s *source) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		s.add(n.Cond, n.Cond, "(mutantIs(%[1]d) != bool(", "))", "if negated: "+s.code(n.Cond))
	case *ast.BinaryExpr:
		s.binary(n)
	case *ast.BlockStmt:
		s.statements(n.List)
	case *ast.CaseClause:
		s.statements(n.Body)
	case *ast.CommClause:
		s.statements(n.Body)
	case *ast.ReturnStmt:
		if len(n.Results) == 0 {
			break
		}
		last := n.Results[len(n.Results)-1]
		_, isCall := last.(*ast.CallExpr) // its result may be several
		if t := s.info.TypeOf(last); !isCall && t != nil && types.Identical(t, types.Universe.Lookup("error").Type()) {
			s.add(last, last, "mutantError(%[1]d, ", ")", "error not returned: "+s.code(last))
		}
	}
	return true
}

// binary adds a mutant of an expression whose value is not constant: a condition of several left out, the edge of a
// comparison moved, or a sum that is a difference.
func (s *source) binary(n *ast.BinaryExpr) {
	if tv := s.info.Types[n]; tv.Value != nil {
		return
	}
	number := func(e ast.Expr) bool {
		t := s.info.TypeOf(e)
		if _, ok := t.(*types.TypeParam); ok {
			return false
		}
		b, ok := t.Underlying().(*types.Basic)
		return ok && b.Info()&types.IsInteger != 0 && b.Kind() != types.Uintptr
	}
	between := func(before, what string) {
		if number(n.X) && number(n.Y) {
			s.add(n, n, before, ")", what+": "+s.code(n))
			s.edits = append(s.edits, edit{s.at(n.OpPos), s.at(n.OpPos) + len(n.Op.String()), "\x00", ","})
		}
	}
	switch n.Op {
	case token.LAND:
		s.add(n.Y, n.Y, "(mutantIs(%[1]d) || bool(", "))", "condition left out: "+s.code(n.Y))
	case token.LOR:
		s.add(n.Y, n.Y, "(!mutantIs(%[1]d) && bool(", "))", "condition left out: "+s.code(n.Y))
	case token.LSS:
		between("mutantCompare(%[1]d, true, false, false, true, ", "edge")
	case token.LEQ:
		between("mutantCompare(%[1]d, true, true, false, false, ", "edge")
	case token.GTR:
		between("mutantCompare(%[1]d, false, false, true, true, ", "edge")
	case token.GEQ:
		between("mutantCompare(%[1]d, false, true, true, false, ", "edge")
	case token.ADD:
		between("mutantAdd(%[1]d, ", "difference")
	}
}

// statements adds the mutants of a list of statements: one left out, or two calls in the other order.
func (s *source) statements(list []ast.Stmt) {
	for i, n := range list {
		switch n := n.(type) {
		case *ast.ExprStmt:
			if call, ok := n.X.(*ast.CallExpr); ok && s.code(call.Fun) == "panic" {
				continue
			}
			if i+1 < len(list) {
				if next, ok := list[i+1].(*ast.ExprStmt); ok {
					swapped := "} else {\n" + s.code(next) + "\n" + s.code(n) + "\n}"
					s.add(n, next, "if !mutantIs(%[1]d) {", "\n"+swapped, "after the next: "+s.code(n))
				}
			}
		case *ast.SendStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt:
		case *ast.BranchStmt:
			if n.Tok != token.BREAK && n.Tok != token.CONTINUE {
				continue
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				continue
			}
		case *ast.ReturnStmt:
			if len(n.Results) > 0 {
				continue
			}
		default:
			continue
		}
		s.add(n, n, "if !mutantIs(%[1]d) {", "}", "without "+s.code(n))
	}
}

// written returns the file with its edits.
func (s *source) written() []byte {
	slices.SortStableFunc(s.edits, func(a, b edit) int { // the outer ones first
		if a.from != b.from {
			return a.from - b.from
		}
		return b.to - a.to
	})
	var out bytes.Buffer
	var open []edit
	pos := 0
	copyTo := func(to int) {
		for ; pos < to; pos++ {
			out.WriteByte(s.text[pos])
		}
	}
	closeUntil := func(at int) {
		for len(open) > 0 && open[len(open)-1].to <= at {
			copyTo(open[len(open)-1].to)
			out.WriteString(open[len(open)-1].after)
			open = open[:len(open)-1]
		}
	}
	for _, e := range s.edits {
		closeUntil(e.from)
		copyTo(e.from)
		if e.before == "\x00" { // it replaces an operator
			out.WriteString(e.after)
			pos = e.to
			continue
		}
		out.WriteString(e.before)
		open = append(open, e)
	}
	closeUntil(len(s.text))
	copyTo(len(s.text))
	return out.Bytes()
}
