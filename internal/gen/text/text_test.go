package text

import (
	"go/build/constraint"
	"go/format"
	"strings"
	"testing"
)

// all calls a function with each text in tests, which has the results.
func all[T comparable](t *testing.T, name string, f func(string) T, tests map[string]T) {
	t.Helper()
	for in, want := range tests {
		if got := f(in); got != want {
			t.Errorf("%s(%q) = %#v, want %#v", name, in, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	tests := map[string]string{
		"":                       "",
		"plain, text":            "plain, text",
		"a\nb\r\nc\td":           "a b  c d",
		"a\u2028b\u2029c\u0085d": "a b c d",
		"\x1b[31mred\x1b[0m":     `\x1b[31mred\x1b[0m`,
		"\a\x00\x7f\u009b":       `\a\x00\x7f\u009b`,
		"\u202eevil\u2066\u2069": `\u202eevil\u2066\u2069`,
		"\ufeffa\u200bb\u00adc":  `\ufeffa\u200bb\u00adc`,
		"a\xffb\xc3":             `a\xffb\xc3`,
		"Größe 名前 e\u0301 €":     "Größe 名前 e\u0301 €",
		"\U000e0041":             `\U000e0041`,
	}
	all(t, "Line", Line, tests)
}

func TestBrief(t *testing.T) {
	for _, in := range []string{"", "a\nb", strings.Repeat("a", longest), "\x1b[m" + strings.Repeat("名", 1000)} {
		got := Brief(in)
		if len(in) <= longest && got != Line(in) || len(in) > longest && (len(got) > longest+10 || strings.Contains(got, `\xe5`)) {
			t.Errorf("Brief(%.50q of %d bytes) = %q", in, len(in), got)
		}
	}
	if got, want := Brief(strings.Repeat("\x80", 3*longest)), 1000; len(got) < want {
		t.Errorf("got %q", got)
	}
	if got := Brief("begin" + strings.Repeat("é", longest) + "end"); !strings.HasPrefix(got, "beginé") || !strings.HasSuffix(got, "éend") || !strings.Contains(got, "é … é") {
		t.Errorf("got %q", got)
	}
}

func TestComment(t *testing.T) {
	for _, in := range []string{
		"", " ", "plain", "a\n//go:build ignore", "*/ func init() {} /*", "go:build ignore", "+build ignore", "  +build ignore", "\n+build ignore", "line x.go:1",
		"\r//line x.go:1", "export f", "\u2028func init() {}",
	} {
		got := Comment(in)
		if strings.ContainsAny(got, "\n\r") || !strings.HasPrefix(got+" ", "// ") {
			t.Errorf("Comment(%q) = %q", in, got)
		}
		if constraint.IsGoBuild(got) || constraint.IsPlusBuild(got) {
			t.Errorf("Comment(%q) = %q, a constraint", in, got)
		}
		source, err := format.Source([]byte("package p\n\n" + got + "\ntype T int\n"))
		if err != nil || strings.Contains(string(source), "\n//go:") || strings.HasPrefix(string(source), "//") {
			t.Errorf("Comment(%q) in a file: %s, %v", in, source, err)
		}
	}
}

func TestMarkdown(t *testing.T) {
	codes := map[string]string{
		"":               "",
		"a":              "`a`",
		"a`b":            "`` a`b ``",
		"``":             "``` `` ```",
		"a\nb":           "`a b`",
		" a ":            "`  a  `",
		"<b>":            "`<b>`",
		"\x1b[2J\u202e.": "`\\x1b[2J\\u202e.`",
	}
	all(t, "Code", Code, codes)
	texts := map[string]string{
		"schema.json of @a/b 2.0.0":           "schema.json of @a/b 2.0.0",
		"a_b _c_":                             `a_b \_c\_`,
		"[x](https://x) <script> & `c` **b**": "\\[x\\](https://x) \\<script\\> \\& \\`c\\` \\*\\*b\\*\\*",
		"a\n# b":                              "a # b",
		"x|y |":                               `x|y \|`,
	}
	all(t, "Markdown", Markdown, texts)
}

func TestNames(t *testing.T) {
	packages := map[string]bool{"a": true, "größe": true, "": false, "_": false, "func": false, "init": false, "a b": false, "a\nimport \"C\"": false, "a-b": false}
	all(t, "IsPackage", IsPackage, packages)
	paths := map[string]bool{"example.com/a-b_c/v2": true, "": false, "C": false, "a b": false, "a\"b": false, "a\nb": false, "a\u202eb": false, "a\xff": false, "a`b": false}
	all(t, "IsImportPath", IsImportPath, paths)
	exported := map[string]bool{"A": true, "Éa": true, "a": false, "": false, "名": false, "A b": false, "A\n": false, "1": false}
	all(t, "IsExported", IsExported, exported)
}
