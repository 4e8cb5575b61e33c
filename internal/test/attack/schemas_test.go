//go:build linux

package attack

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/attack/hostile"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// A schemaCase is a hostile schema.
type schemaCase struct {
	name   string
	schema func() string // its text; a path with the prefix "file:" is used unchanged
	bound  int           // MiB
	refuse bool          // it must be refused; otherwise it may be refused
}

// hostileText contains Go code instead of text, and sequences that end comments, literals and lines.
const hostileText = "x */ `+\"\\\n\r\u2028}\nfunc init() { panic(\"FAKE\") }\n//go:generate touch FAKE\n//go:build ignore\n//line FAKE.go:1\n//export FAKE\n/*line FAKE.go:1*/import \"C\"\x1b[2J\u202e\x00"

func size(small, large int) int {
	if full() {
		return large
	}
	return small
}

// definitions returns a schema with the given definitions.
func definitions(defs ...string) string {
	return `{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{` + strings.Join(defs, ",") + `}}`
}

func times(n int, make func(i int) string) (list []string) {
	for i := range n {
		list = append(list, make(i))
	}
	return list
}

func schemaCases() []*schemaCase {
	q := hostile.Quote(hostileText)
	texts := definitions(
		`"Text":{"description":`+q+`,"title":`+q+`,"type":"object","properties":{"a":{"description":`+q+`,"type":"string","default":`+q+`},`+
			`"b":{"type":"string","pattern":"^[^x]*$","description":`+q+`},"c":{"$ref":"#/$defs/Choice"}},"required":["a"]}`,
		`"Choice":{"description":`+q+`,"oneOf":[{"const":`+q+`,"description":`+q+`},{"const":"plain"}]}`,
		`"DoRequest":{"description":`+q+`,"type":"object","x-method":"do/it","x-side":"agent"}`,
		`"DoResponse":{"description":`+q+`,"type":"object","x-method":"do/it","x-side":"agent"}`)
	return []*schemaCase{
		{name: "text", bound: small, schema: func() string { return texts }},
		{name: "method names", bound: small, schema: func() string {
			return definitions(`"DoRequest":{"type":"object","x-method":`+q+`,"x-side":"agent"}`, `"DoResponse":{"type":"object","x-method":`+q+`,"x-side":"agent"}`)
		}},
		{name: "definition names", bound: small, refuse: true, schema: func() string {
			return definitions(q+`:{"type":"object"}`, `"../../x":{"type":"object"}`, `"init":{"type":"object"}`, `"":{"type":"object"}`)
		}},
		{name: "property names", bound: small, schema: func() string {
			return definitions(`"P":{"type":"object","properties":{` + q + `:{"type":"string"},"_":{"type":"string"},"type":{"type":"string"},"\u0000":{"type":"string"},"a\"b":{"type":"string"}}}`)
		}},
		{name: "deep arrays", bound: large, schema: func() string {
			n := size(100_000, 2_000_000)
			return definitions(`"D":` + strings.Repeat(`{"type":"array","items":`, n) + `{"type":"string"}` + strings.Repeat("}", n))
		}},
		{name: "deep objects", bound: large, schema: func() string {
			n := size(20_000, 500_000)
			return definitions(`"D":` + strings.Repeat(`{"type":"object","properties":{"a":`, n) + `{"type":"string"}` + strings.Repeat("}}", n))
		}},
		{name: "deep choices", bound: large, schema: func() string {
			n := size(20_000, 500_000)
			return definitions(`"D":` + strings.Repeat(`{"anyOf":[{"type":"null"},`, n) + `{"type":"string"}` + strings.Repeat("]}", n))
		}},
		{name: "not closed", bound: large, refuse: true, schema: func() string { return strings.Repeat(`{"a":[`, size(500_000, 5_000_000)) }},
		{name: "cycle of references", bound: small, schema: func() string {
			n := size(1000, 20_000)
			return definitions(times(n, func(i int) string { return fmt.Sprintf(`"R%d":{"$ref":"#/$defs/R%d"}`, i, (i+1)%n) })...)
		}},
		{name: "cycle of bases", bound: small, schema: func() string {
			n := size(300, 3000)
			return definitions(times(n, func(i int) string {
				return fmt.Sprintf(`"R%d":{"allOf":[{"$ref":"#/$defs/R%d"}],"type":"object","properties":{"p%d":{"type":"string"}}}`, i, (i+1)%n, i)
			})...)
		}},
		{name: "doubling bases", bound: medium, schema: func() string {
			n := size(60, 300)
			return definitions(append(times(n, func(i int) string {
				return fmt.Sprintf(`"R%d":{"type":"object","allOf":[{"$ref":"#/$defs/R%d"},{"$ref":"#/$defs/R%d"}]}`, i, i+1, i+1)
			}), fmt.Sprintf(`"R%d":{"type":"object","properties":{"a":{"type":"string"}}}`, n))...)
		}},
		{name: "doubling choices", bound: medium, schema: func() string {
			n := size(60, 300)
			return definitions(append(times(n, func(i int) string {
				return fmt.Sprintf(`"R%d":{"anyOf":[{"$ref":"#/$defs/R%d"},{"$ref":"#/$defs/R%d"}]}`, i, i+1, i+1)
			}), fmt.Sprintf(`"R%d":{"type":"string"}`, n))...)
		}},
		{name: "many definitions", bound: 2 * large, schema: func() string {
			return definitions(times(size(1000, 10_000), func(i int) string {
				return fmt.Sprintf(`"T%dx":{"type":"object","properties":{"a":{"type":"string"}}}`, i)
			})...)
		}},
		{name: "many values", bound: 2 * large, schema: func() string {
			return definitions(`"E":{"type":"string","enum":["v` + strings.Join(times(size(3000, 30_000), strconv.Itoa), `","v`) + `"]}`)
		}},
		{name: "long text", bound: large, schema: func() string {
			return definitions(`"T":{"type":"object","description":"` + strings.Repeat("word ", size(500_000, 6_000_000)) + `"}`)
		}},
		{name: "long name", bound: large, schema: func() string {
			return definitions(`"T` + strings.Repeat("n", size(1, 20)*1<<20) + `":{"type":"object"}`)
		}},
		{name: "far references", bound: small, refuse: true, schema: func() string {
			return definitions(times(8, func(i int) string {
				ref := []string{"http://127.0.0.1:1/x", "file:///etc/passwd", "/etc/passwd", "../../../etc/passwd", "#/../..", "#", "#/$defs", "#/$defs/%00"}[i]
				return fmt.Sprintf(`"R%d":{"$ref":%q}`, i, ref)
			})...)
		}},
		{name: "bounds without end", bound: small, schema: func() string {
			return definitions(`"B":{"type":"object","properties":{"a":{"type":"string","minLength":1e999,"maxLength":-1},"b":{"type":"array","items":{"type":"string"},"maxItems":123456789012345678901234567890},` +
				`"c":{"type":"integer","minimum":-1e400,"maximum":1e-400},"d":{"type":"number","multipleOf":0}}}`)
		}},
		{name: "patterns", bound: medium, schema: func() string {
			return definitions(`"P":{"type":"object","properties":{"a":{"type":"string","pattern":"^(a+)+$"},"b":{"type":"string","pattern":"((a{1000}){1000}){1000}"},"c":{"type":"string","pattern":` +
				hostile.Quote(strings.Repeat("(", size(50_000, 1_000_000))) + `},"d":{"type":"string","pattern":"` + strings.Repeat("a?", size(50_000, 1_000_000)) + `"}}}`)
		}},
		{name: "default without end", bound: large, schema: func() string {
			n := size(100_000, 2_000_000)
			return definitions(`"D":{"type":"object","properties":{"a":{"default":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}}}`)
		}},
		{name: "choices as bases", bound: small, refuse: true, schema: func() string {
			n := size(40, 400)
			return definitions(append(times(n, func(i int) string {
				branch := func(name string) string {
					return fmt.Sprintf(`{"allOf":[{"$ref":"#/$defs/L%d"},{"type":"object","properties":{"%s%d":{}},"required":["%[2]s%[3]d"]}]}`, i+1, name, i)
				}
				return fmt.Sprintf(`"L%d":{"anyOf":[%s,%s]}`, i, branch("p"), branch("q"))
			}), fmt.Sprintf(`"L%d":{"type":"object","properties":{"z":{"type":"string"}}}`, n))...)
		}},
		{name: "tags as bases", bound: large, refuse: true, schema: func() string {
			n := size(40, 100)
			return definitions(append(times(n, func(i int) string {
				branch := func(tag string) string {
					return fmt.Sprintf(`{"allOf":[{"$ref":"#/$defs/L%d"}],"properties":{"t%d":{"const":%q}},"required":["t%[2]d"]}`, i+1, i, tag)
				}
				return fmt.Sprintf(`"L%d":{"oneOf":[%s,%s]}`, i, branch("a"), branch("b"))
			}), fmt.Sprintf(`"L%d":{"type":"object","properties":{"z":{"type":"string"}}}`, n))...)
		}},
		{name: "words of Go", bound: small, schema: func() string {
			words := []string{"string", "error", "init", "main", "nil", "type", "Extra", "EncodeJSON", "DecodeJSON", "codec", "true", "len", "json", "func", "Kind", "Variant", "New"}
			return definitions(times(len(words), func(i int) string {
				return fmt.Sprintf(`%q:{"type":"object","properties":{%s}}`, words[i], strings.Join(times(len(words), func(i int) string { return fmt.Sprintf(`%q:{"type":"string"}`, words[i]) }), ","))
			})...)
		}},
		{name: "numbers without end", bound: small, refuse: true, schema: func() string {
			return definitions(times(8, func(i int) string {
				keyword := []string{"const", "default", "minimum", "exclusiveMaximum", "multipleOf", "minLength", "maxItems", "minimum"}[i]
				number := []string{"1e1000000000", "1e-1000000000", strings.Repeat("9", size(10_000, 1_000_000))}[i%3]
				return fmt.Sprintf(`"N%d":{"type":"object","properties":{"a":{"type":["integer","string","array"],%q:%s}}}`, i, keyword, number)
			})...)
		}},
		{name: "itself in every place", bound: small, refuse: true, schema: func() string {
			self := `{"$ref":"#/$defs/S"}`
			return definitions(`"S":{"not":`+self+`,"items":`+self+`,"additionalProperties":`+self+`,"anyOf":[`+self+`,{"type":"null"}],"allOf":[`+self+`],"properties":{"a":`+self+`}}`,
				`"A":{"anyOf":[{"$ref":"#/$defs/B"},{"type":"string"}]}`, `"B":{"anyOf":[{"$ref":"#/$defs/A"},{"type":"null"}]}`)
		}},
		{name: "names twice", bound: small, refuse: true, schema: func() string {
			return definitions(`"A":{"type":"object"}`, `"A":{"type":"string"}`)
		}},
		{name: "not UTF-8", bound: small, refuse: true, schema: func() string { return definitions("\"A\xff\":{\"type\":\"object\"}") }},
		{name: "no end", bound: large, refuse: true, schema: func() string { return "file:/dev/zero" }},
		{name: "a directory", bound: small, refuse: true, schema: func() string { return "file:/" }},
	}
}

// TestSchemas attacks acpgen with hostile schemas; below tier Full, only with the one whose texts are Go.
func TestSchemas(t *testing.T) {
	tier.Need(t, tier.Normal)
	for _, c := range schemaCases() {
		if tier.Current() == tier.Normal && c.name != "text" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if gentest.Race {
				t.Skip("acpgen does one thing after the other")
			}
			t.Parallel()
			c.run(t)
		})
	}
}

func (c *schemaCase) run(t *testing.T) {
	if _, err := program("acpgen"); err != nil {
		t.Fatal(err)
	}
	r := &attackRun{
		testCase: &testCase{attack: c.name, victim: "acpgen", bound: c.bound},
		screen:   &screen{}, dir: t.TempDir(),
	}
	r.result.attack, r.result.victim, r.result.bound = c.name, "acpgen", r.memory()
	r.mark = markName + filepath.Base(filepath.Dir(r.dir)) + c.name
	r.root = filepath.Join(r.dir, "root")
	if err := c.generate(r); err != nil && !errors.Is(err, errKilled) {
		r.find("%v", err)
	}
	r.done(t)
}

// generate runs acpgen, and checks its output.
func (c *schemaCase) generate(r *attackRun) error {
	file := filepath.Join(r.dir, "hostile.json")
	text := c.schema()
	if path, ok := strings.CutPrefix(text, "file:"); ok {
		file = path
	} else if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	out := filepath.Join(r.root, "out")
	if err := os.MkdirAll(out, 0o700); err != nil {
		return err
	}
	r.cmd = r.command("acpgen", "-schema", file, "-package", "generated", "-out", out)
	r.cmd.Env = append(r.cmd.Env, "TMPDIR="+r.dir)
	r.cmd.Stdout, r.cmd.Stderr = r.screen, r.screen
	start := time.Now()
	err := r.cmd.Start()
	if err == nil {
		err = r.wait()
	}
	r.time = time.Since(start)
	r.leftBehind()
	if errors.Is(err, errKilled) {
		return err
	}
	screenClean(r)
	status := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		status = exit.ExitCode()
	} else if err != nil {
		return err
	}
	wrote, err := c.written(r, out)
	switch {
	case err != nil:
		return err
	case status == 2 && wrote > 0:
		r.find("the schema was refused, and %d files were written", wrote)
	case status == 0 && c.refuse:
		r.find("the schema was accepted")
	case status == 0 && wrote == 0:
		r.find("the schema was accepted, and nothing was written")
	case status != 0 && status != 2:
		r.find("the exit status is %d", status)
	}
	if n := r.screen.size; n > 4*len(text)+keptEnd { // a line for each definition may be correct
		r.find("the report has %d bytes, the schema %d", n, len(text))
	}
	r.notes = append(r.notes, map[bool]string{true: "refused", false: "accepted"}[status != 0])
	return nil
}

var directive = regexp.MustCompile(`(?m)^\s*(//(go:|line |export |extern )|/\*line |// ?\+build)`)

// written checks the files, all of which must be Go code with nothing from the schema except comments, literals and
// names.
func (c *schemaCase) written(r *attackRun, out string) (n int, err error) {
	err = filepath.WalkDir(r.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(path) == "hostile.json" {
			return err
		}
		if filepath.Dir(path) != out {
			r.find("a file outside of the package: %s", path)
			return nil
		}
		n++
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range directive.FindAllString(string(src), -1) {
			r.find("%s has a directive: %q", filepath.Base(path), found)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ParseComments)
		if err != nil {
			r.find("what was written is not Go: %.300v", err)
			return nil
		}
		for _, imported := range file.Imports {
			name, err := strconv.Unquote(imported.Path.Value)
			if err != nil || name == "C" || name == "unsafe" || name == "os" || name == "os/exec" {
				r.find("%s imports %s", filepath.Base(path), imported.Path.Value)
			}
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				r.find("%s has a func init", filepath.Base(path))
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "panic" {
					r.find("%s calls panic", filepath.Base(path))
				}
			}
			return true
		})
		return nil
	})
	return n, err
}
