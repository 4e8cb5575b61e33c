package gen

import (
	"encoding/json"
	"go/ast"
	"go/build/constraint"
	"go/format"
	"go/parser"
	"go/token"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/acpgo/sdk/internal/gen/schema"
	"github.com/acpgo/sdk/internal/gen/text"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// hostileTexts are texts that end a comment, a literal or a line in Go, begin a directive, or hide other text.
var hostileTexts = []string{
	"A\n}\nfunc init() { panic(1) }\n//go:build ignore\n/* */ \"+`+\"` \\ %s \x1b[2J\u202e\u2066\u2028\u2029\u0085\r\x00\ufeff",
	"go:build ignore\n+build ignore\n// +build ignore\nline x.go:1\nexport f\ngo:generate touch x ",
	"[the docs\nfunc init(){}\n//](https://x) [a]: https://y\n\n[b]: `z`\n\n",
	"\r\n//line x.go:1\r\n//export f\r\n// #include <x>\nimport \"C\"\n",
	"*/ import \"C\" /*",
	"+build ignore\n\n+build ignore\n",
	"`\"`; panic(\"\"); //` json:\"x\" \\\" ",
	"\\\"\\u0022\\\n\"+os.Exit(1)+\"",
	"a%!d(string=x)%n\x7f${IFS}$(touch x)`touch x`",
	"\u2029func init(){}\u2028é名9",
	"A\xc2\xa0\u200b\u00ad\u061c\U000e0041",
}

// harmless returns a text with the same words.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, s)
}

// stringInJSON matches a string in a JSON text.
var stringInJSON = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// eachText calls f for each of the texts in a schema: descriptions, values, keywords and names. change returns the schema
// with another text before it wherever it occurs, and in the references to it.
func eachText(t *testing.T, document []byte, f func(text string, change func(put string) []byte)) {
	t.Helper()
	unquoted := func(quoted []byte) (s string) {
		must.Do(t, json.Unmarshal(quoted, &s))
		return s
	}
	seen := map[string]bool{}
	for _, quoted := range stringInJSON.FindAll(document, -1) {
		s := unquoted(quoted)
		if strings.HasPrefix(s, "#/$defs/") || seen[s] {
			continue
		}
		seen[s] = true
		f(s, func(put string) []byte {
			return stringInJSON.ReplaceAllFunc(document, func(quoted []byte) []byte {
				switch unquoted(quoted) {
				case s:
					return marshal(t, put+s)
				case "#/$defs/" + s:
					return marshal(t, "#/$defs/"+url.PathEscape(schema.Escape(put+s)))
				}
				return quoted
			})
		})
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	return must.Get(json.Marshal(v))(t)
}

// shape returns the declarations and statements of a file, without comments, tags and the texts of strings.
func shape(t *testing.T, name string, source []byte) string {
	t.Helper()
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("%s is not Go: %v", name, err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				n.Value = `""`
			}
		}
		return true
	})
	var b strings.Builder
	must.Do(t, format.Node(&b, files, f))
	return strings.Join(strings.Fields(b.String()), " ") // what is left out moves line breaks
}

// requireShown requires that a file has no invisible characters, and no comments with an effect.
func requireShown(t *testing.T, name string, source []byte) {
	t.Helper()
	for line := range strings.SplitSeq(string(source), "\n") {
		if line = strings.ReplaceAll(line, "\t", ""); text.Line(line) != line {
			t.Errorf("%s has the line %q", name, line)
		}
	}
	f, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("%s is not Go: %v", name, err)
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			if c.Text != "//" && !strings.HasPrefix(c.Text, "// ") && !strings.HasPrefix(c.Text, "//\t") || constraint.IsPlusBuild(c.Text) || strings.Contains(c.Text, "\n") {
				t.Errorf("%s has the comment %q", name, c.Text)
			}
		}
	}
}

// requireLines requires that each error is one line of visible text.
func requireLines(t *testing.T, err error) {
	t.Helper()
	requireErrors(t, err)
	for _, err := range Problems(err) {
		if s := err.Error(); text.Line(s) != s {
			t.Errorf("an error is %q", s)
		}
	}
}

// Wherever hostile text occurs in a schema, the schema is refused in plain lines, or it becomes the same Go code as
// with harmless text of the same words. The schemas are those of all golden files, which have each construct.
func TestHostileText(t *testing.T) {
	tier.Need(t, tier.Normal)
	check := newChecker(t)
	put, refused, compiled, number, every := 0, 0, 0, 0, tier.Pick(0, 5, 2, 1)
	try := func(path string, config Config) {
		config.Tests, config.keepStale, config.Facade = true, true, config.Overrides != nil
		eachText(t, config.Schema, func(where string, change func(string) []byte) {
			if number++; number%every != 0 {
				return
			}
			for _, s := range []string{hostileTexts[0], hostileTexts[1+number%(len(hostileTexts)-1)]} {
				put++
				want, harmlessErr := generateFrom(config, change(harmless(s)))
				files, err := generateFrom(config, change(s))
				if err != nil {
					requireLines(t, err)
					refused++
					if harmlessErr == nil && !strings.Contains(err.Error(), "no variant can be told by the member ") {
						t.Errorf("%s: %s: %q was refused: %v", path, where, s, err)
					}
					continue
				}
				if harmlessErr != nil {
					t.Errorf("%s: %s: %q was accepted, but harmless text was not: %v", path, where, s, harmlessErr)
					continue
				}
				for name := range want {
					requireShown(t, name, files[name])
					if got, want := shape(t, name, files[name]), shape(t, name, want[name]); got != want {
						t.Errorf("%s: %s: with %q %s is\n%s", path, where, s, name, files[name])
					}
				}
				if len(files) != len(want) {
					t.Errorf("%s: %s: %q gives %d files, not %d", path, where, s, len(files), len(want))
				}
				if number/every%8 == 0 && !config.Facade {
					delete(files, "definitions_gen_test.go") // other files use it
					if _, err := check.check(files); err != nil {
						t.Errorf("%s: %s: with %q it does not compile: %v", path, where, s, err)
					}
					compiled++
				}
				if t.Failed() {
					t.FailNow()
				}
			}
		})
	}
	for path, archive := range archives(t, "testdata/*.txtar") {
		config := configIn(t, archive, "schema.json")
		config.Stable = nil
		try(path, config)
	}
	for path, archive := range archives(t, "testdata/api/*.txtar") {
		try(path, configIn(t, archive, "new.json"))
	}
	t.Logf("%d texts: %d refused, the others harmless, %d of them compiled", put, refused, compiled)
}

func generateFrom(c Config, document []byte) (map[string][]byte, error) {
	c.Schema = document
	out, err := generate(c)
	if err != nil {
		return nil, err
	}
	return out.Files, nil
}

// Hostile text from the caller is handled as well: the names of packages are refused, and other text is shown.
func TestHostileConfig(t *testing.T) {
	config := Config{Schema: []byte(`{"$defs":{"A":{"type":"object","properties":{"b":{"type":"string"}}}}}`), Source: "schema.json", Package: "golden", Module: module, Doc: "Package golden is harmless."}
	want := must.Get(Generate(config))(t)
	for _, s := range append(slices.Clone(hostileTexts), "a\xff", "", "func", "C") {
		shown := config
		shown.Source, shown.Doc = s, s+s
		files, err := Generate(shown)
		if err != nil {
			t.Errorf("%q: %v", s, err)
		}
		for name, source := range files {
			requireShown(t, name, source)
			if name != "doc_gen.go" && shape(t, name, source) != shape(t, name, want[name]) {
				t.Errorf("%q: %s is\n%s", s, name, source)
			}
		}
		for field, set := range map[string]func(*Config){
			"Package": func(c *Config) { c.Package = s },
			"Module":  func(c *Config) { c.Module = s },
		} {
			c := config
			set(&c)
			if s == "func" && field != "Package" || s == "C" && field == "Package" {
				continue // it is a valid one
			}
			if files, err := Generate(c); err == nil || files != nil || text.Line(err.Error()) != err.Error() {
				t.Errorf("%s is %q: %v", field, s, err)
			}
		}
	}
}

// In reports and descriptions, text cannot leave its line, or the Markdown code or text that contains it.
func TestHostileReports(t *testing.T) {
	tier.Need(t, tier.Normal)
	imports := must.Get(runtime())(t)
	compared, number, every := 0, 0, tier.Pick(0, 3, 1, 1)
	for path, archive := range archives(t, "testdata/api/*.txtar") {
		old, changed := configIn(t, archive, "old.json"), configIn(t, archive, "new.json")
		old.Facade, changed.Facade = old.Overrides != nil, changed.Overrides != nil
		data := changed.Schema
		reports := func(document []byte, source string) (report string, err error) {
			changed.Schema, changed.Source = document, source
			r, err := Compare(old, changed, imports)
			if err != nil {
				return "", err
			}
			return r.Markdown(), nil
		}
		eachText(t, data, func(where string, change func(string) []byte) {
			if number++; number%every != 0 {
				return
			}
			s := hostileTexts[number/every%len(hostileTexts)]
			report, err := reports(change(s), s)
			if err != nil {
				for _, problem := range Problems(err) {
					if line := text.Line(problem.Error()); strings.Contains(line, "\n") {
						t.Errorf("%s: %s: an error is %q", path, where, problem)
					}
				}
				return
			}
			compared++
			wantReport, err := reports(change(harmless(s)), harmless(s))
			if err != nil {
				t.Fatalf("%s: %s: %v", path, where, err)
			}
			got, want := strings.Split(report, "\n"), strings.Split(wantReport, "\n")
			if len(got) != len(want) {
				t.Errorf("%s: %s: with %q there are %d lines, not %d:\n%s", path, where, s, len(got), len(want), report)
				return
			}
			for i, line := range got {
				if text.Line(line) != line || strings.HasPrefix(line, "#") != strings.HasPrefix(want[i], "#") ||
					strings.ContainsAny(codeOrEscape.ReplaceAllString(line, ""), "<`") {
					t.Errorf("%s: %s: the report has the line %q", path, where, line)
				}
			}
		})
	}
	if compared < 60/every {
		t.Errorf("only %d reports were compared", compared)
	}
	t.Logf("%d reports consist of visible lines", compared)
}

// codeOrEscape matches a code span or an escaped character in Markdown. No text has two backquotes in a row, so no fence
// has more than two.
var codeOrEscape = regexp.MustCompile("``.*?[^`]``|`[^`]+`|\\\\.")
