package repo_test

import (
	"go/scanner"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const maxColumns = 120

// TestColumns requires that lines outside tests have at most 120 columns, where a tab counts one. Raw strings and
// generated code are exempt.
func TestColumns(t *testing.T) {
	generated := regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	walkTree(t, func(path string) {
		name := filepath.ToSlash(path)
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/test/") {
			return
		}
		text := readFile(t, path)
		if generated.MatchString(text) {
			return
		}
		raw := map[int]bool{}
		files := token.NewFileSet()
		file := files.AddFile(path, -1, len(text))
		var s scanner.Scanner
		s.Init(file, []byte(text), nil, scanner.ScanComments)
		for {
			pos, kind, literal := s.Scan()
			if kind == token.EOF {
				break
			}
			line := file.Line(pos)
			if kind == token.STRING && literal[0] == '`' {
				for i := range strings.Count(literal, "\n") + 1 {
					raw[line+i] = true
				}
			}
		}
		for i, line := range strings.Split(text, "\n") {
			if columns := utf8.RuneCountInString(line); columns > maxColumns && !raw[i+1] {
				t.Errorf("%s:%d: %d columns, which is more than %d", path, i+1, columns, maxColumns)
			}
		}
	})
}
