package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestComparedTests checks that the tests named in docs/reference/run-compared.md exist, and that each row names one.
func TestComparedTests(t *testing.T) {
	known := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				known[f.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/reference/run-compared.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	table, _, _ := strings.Cut(string(text), "\n## ")
	for line := range strings.Lines(table) {
		columns := strings.Split(line, "|")
		if len(columns) < 4 || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| feature") {
			continue
		}
		rows++
		if len(columns) != 11 {
			t.Errorf("%d columns: %s", len(columns)-2, line)
		}
		tests := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(columns[3], -1)
		if len(tests) == 0 && !strings.HasPrefix(strings.TrimSpace(columns[2]), "no") {
			t.Errorf("no test shows it: %s", line)
		}
		for _, test := range tests {
			if !known[test[1]] {
				t.Errorf("there is no test %s: %s", test[1], line)
			}
		}
	}
	if rows < 20 {
		t.Errorf("only %d rows", rows)
	}
}
