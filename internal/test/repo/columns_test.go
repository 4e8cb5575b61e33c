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

// mostLong is how many lines of code have more than maxColumns. It may only fall: break lines that you change.
const (
	maxColumns = 120
	mostLong   = 21
)

// TestColumns requires that comments outside tests have at most 120 columns, where a tab counts one, and that no more
// lines of code exceed that than did. Raw strings and generated code are exempt.
func TestColumns(t *testing.T) {
	generated := regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	long := 0
	walkTree(t, func(path string) {
		name := filepath.ToSlash(path)
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/test/") {
			return
		}
		text := readFile(t, path)
		if generated.MatchString(text) {
			return
		}
		comments, raw := map[int]bool{}, map[int]bool{}
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
			switch {
			case kind == token.COMMENT:
				comments[line] = true
			case kind == token.STRING && literal[0] == '`':
				for i := range strings.Count(literal, "\n") + 1 {
					raw[line+i] = true
				}
			}
		}
		for i, line := range strings.Split(text, "\n") {
			switch columns := utf8.RuneCountInString(line); {
			case columns <= maxColumns || raw[i+1]:
			case comments[i+1] && strings.HasPrefix(strings.TrimSpace(line), "//"):
				t.Errorf("%s:%d: the comment has %d columns, which is more than %d", path, i+1, columns, maxColumns)
			default:
				long++
			}
		}
	})
	if long > mostLong {
		t.Errorf("%d lines of code have more than %d columns, which were %d: break those that you have added", long, maxColumns, mostLong)
	}
	t.Logf("%d lines of code have more than %d columns", long, maxColumns)
}
