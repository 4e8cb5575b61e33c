package gen

// The tests of the report on two schemas. They compare the report with the results of the compiler for programs written
// for the old package, and for a program that uses everything in it.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	gobuild "go/build"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/internal/gen/api"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// Each archive in testdata/api contains two schemas, a program for the first one, and the report. The program compiles
// with the package of the old schema. With the package of the new schema, exactly the lines with a "breaks" comment
// fail, and the report lists them too.
func TestCompare(t *testing.T) {
	imports := must.Get(runtime())(t)
	for path, archive := range archives(t, "testdata/api/*.txtar") {
		t.Run(path, func(t *testing.T) {
			before, after := configIn(t, archive, "old.json"), configIn(t, archive, "new.json")
			before.Package, after.Package = "generated", "generated"
			before.Facade, after.Facade = before.Overrides != nil, after.Overrides != nil
			report := must.Get(Compare(before, after, imports))(t)
			data := must.Get(json.MarshalIndent(report, "", "  "))(t)
			compare(t, path, archive, map[string][]byte{"report.md": []byte(report.Markdown()), "report.json": append(data, '\n')})

			requireBreaks(t, optional(archive, "user.go"), declarations(t, before), declarations(t, after), runtime, report)
		})
	}
}

// requireBreaks requires that a program compiles with the old package, and that with the new one exactly the lines with
// a "breaks" comment fail. The report must list what the comments name.
func requireBreaks(t *testing.T, user []byte, old, new *types.Package, imports func() (types.Importer, error), report *api.Report) {
	t.Helper()
	if failed := compile(t, user, old, imports); len(failed) > 0 {
		t.Fatalf("the program does not compile with the old package: %v", failed)
	}
	failed := compile(t, user, new, imports)
	for i, line := range strings.Split(string(user), "\n") {
		_, subject, breaks := strings.Cut(line, "// breaks: ")
		message, fails := failed[i+1]
		switch {
		case fails && !breaks:
			t.Errorf("line %d does not compile: %s", i+1, message)
		case breaks && !fails:
			t.Errorf("line %d compiles", i+1)
		case breaks && !slices.ContainsFunc(report.Changes, func(c api.Change) bool { return c.Level == api.Breaking && c.Subject == subject }):
			t.Errorf("the report does not say that %s breaks", subject)
		}
	}
}

// docs/reference/schemas.md shows the report for the step from 2.0.0 to 2.4.0, and a program written for 2.0.0 compiles with package
// acp as it was generated then and as it is generated now.
func TestBump(t *testing.T) {
	dir := installPublished(t)
	if dir == "" {
		t.Skip("SKIPPED: the old schema needs npm, in tier full")
	}
	config := func(release, path string) Config {
		data := must.Get(os.ReadFile(path))(t)
		return Config{Schema: data, Source: "schema.json of @agentclientprotocol/sdk " + release, Package: "acp", Module: module, Overrides: Overrides["v1"], Facade: true}
	}
	npm := func(release string) Config {
		return config(release, filepath.Join(dir, "node_modules", "acp-"+release, "schema", "v1", "schema.json"))
	}
	imports := must.Get(runtime())(t)
	report := must.Get(Compare(npm("2.0.0"), npm("2.4.0"), imports))(t)
	report.Stale = nil // it is about later decisions
	page, err := os.ReadFile("../docs/reference/schemas.md")
	if err != nil {
		t.Fatal(err)
	}
	if text := report.Markdown(); !strings.Contains(string(page), "\n````markdown\n"+text+"````\n") {
		t.Errorf("docs/reference/schemas.md does not show the report:\n%s", text)
	}

	experimental := func(release, path, stable string) Config {
		c := config(release, path)
		c.Overrides, c.Source = Overrides["v1.unstable"], release
		if c.Stable, err = os.ReadFile(stable); err != nil {
			t.Fatal(err)
		}
		return c
	}
	folder := filepath.Join(dir, "node_modules", "acp-2.0.0", "schema", "v1")
	old := experimental("2.0.0", filepath.Join(folder, "schema.unstable.json"), filepath.Join(folder, "schema.json"))
	current := experimental(now, "../schema/v1.unstable.json", "../schema.json")
	report, err = Compare(old, current, imports)
	if err != nil {
		t.Fatal(err)
	}
	user := must.Get(os.ReadFile("testdata/user.go.txt"))(t)
	hand := must.Get(gobuild.ImportDir("../acp", 0))(t)
	all := sync.OnceValues(func() (types.Importer, error) { return api.Importer("..", hand.Imports...) })
	requireBreaks(t, user, whole(t, old, hand.GoFiles, all), whole(t, current, hand.GoFiles, all), all, report)
}

// now is the source of the current schema.
const now = "now"

// whole returns package acp with the code generated from a schema. Hand-written code may use declarations that an older
// schema does not have. Its errors are ignored, because errors in the user's program show what is missing.
func whole(t *testing.T, c Config, goFiles []string, imports func() (types.Importer, error)) *types.Package {
	t.Helper()
	c.keepStale = true
	out, err := generate(c)
	if err != nil {
		t.Fatal(err)
	}
	sources := out.Files
	for _, name := range goFiles {
		if strings.HasSuffix(name, "_gen.go") {
			continue
		}
		if sources[name], err = os.ReadFile(filepath.Join("../acp", name)); err != nil {
			t.Fatal(err)
		}
	}
	importer := must.Get(imports())(t)
	check := &checker{token.NewFileSet(), importer}
	config := types.Config{Importer: importer, Error: func(err error) {
		if e := err.(types.Error); c.Source == now || strings.HasSuffix(e.Fset.Position(e.Pos).Filename, "_gen.go") && !strings.Contains(e.Msg, "has no field or method") {
			t.Error(err)
		}
	}}
	files := must.Get(check.parse(sources))(t)
	checked, _ := config.Check(module+"/acp", check.files, files, nil) // its first error was reported
	return checked
}

// declarations generates a package and type-checks it.
func declarations(t *testing.T, c Config) *types.Package {
	t.Helper()
	return must.Get(version(c, must.Get(runtime())(t)))(t).Go
}

// compile compiles a program that uses pkg, and returns the first error of each line.
func compile(t *testing.T, source []byte, pkg *types.Package, imports func() (types.Importer, error)) map[int]string {
	t.Helper()
	importer := must.Get(imports())(t)
	failed := map[int]string{}
	fset := token.NewFileSet()
	f := must.Get(parser.ParseFile(fset, "user.go", source, parser.SkipObjectResolution))(t)
	config := types.Config{Importer: overlay{importer, pkg}, Error: func(err error) {
		if e := err.(types.Error); failed[fset.Position(e.Pos).Line] == "" {
			failed[fset.Position(e.Pos).Line] = e.Msg
		}
	}}
	_, _ = config.Check("example.com/user", fset, []*ast.File{f}, nil) // the errors are in failed
	return failed
}

// overlay imports one package in addition to those of another importer.
type overlay struct {
	types.Importer
	pkg *types.Package
}

func (o overlay) Import(path string) (*types.Package, error) {
	if path == o.pkg.Path() {
		return o.pkg, nil
	}
	return o.Importer.Import(path)
}

// The report's breaking changes between any two schemas are those that break programs: a program that uses all of the
// old package fails to compile with the new package at these changes, and nowhere else.
func TestCompareCorpus(t *testing.T) {
	tier.Need(t, tier.Normal)
	schemas := corpus(t)
	schemas = sampleOf(schemas, tier.Pick(0, 0, 2, len(schemas)))
	imports := must.Get(runtime())(t)
	if tier.Current() < tier.Full { // one step, forward and back
		schemas = schemas[:2]
	}
	slices.SortFunc(schemas, func(a, b published) int { return strings.Compare(a.name, b.name) })
	if gentest.Race {
		schemas = spread(schemas, (len(schemas)+3)/4)
		t.Log("a sample only: run it without the race detector for all")
	}
	var all []api.Version
	for _, s := range schemas {
		all = append(all, must.Get(version(Config{Schema: s.data, Source: s.name, Package: "generated", Module: module}, imports))(t))
	}
	steps, breaking := 0, 0
	for i := range len(all) - 1 {
		for _, step := range [][2]api.Version{{all[i], all[i+1]}, {all[i+1], all[i]}} {
			breaking += requireExact(t, step[0], step[1])
			steps++
		}
	}
	if breaking == 0 {
		t.Error("nothing breaks in any step")
	}
	t.Logf("%d steps between %d schemas, %d breaking changes, each as the compiler finds it", steps, len(all), breaking)
}

// requireExact requires that the report of a step agrees with the compiler, and returns the number of breaking changes.
func requireExact(t *testing.T, old, new api.Version) (breaking int) {
	t.Helper()
	report := api.Compare(old, new)
	said := map[string]bool{}
	for _, c := range report.Changes {
		if c.Level == api.Breaking {
			said[c.Subject] = true
		}
	}
	source, subjects := everything(old.Go)
	if failed := compile(t, source, old.Go, runtime); len(failed) > 0 {
		t.Fatalf("the program does not compile with %s itself: %v", old.Name, failed)
	}
	found := map[string]bool{}
	for line, message := range compile(t, source, new.Go, runtime) {
		explained := false
		for _, subject := range subjects[line] {
			found[subject] = true
			explained = explained || said[subject]
		}
		if !explained {
			t.Errorf("%s to %s: %v breaks, but the report does not say so: %s", old.Name, new.Name, subjects[line], message)
		}
	}
	for subject := range said {
		if !found[subject] {
			t.Errorf("%s to %s: the report says that %s breaks, but it does not", old.Name, new.Name, subject)
		}
	}
	return len(said)
}

// everything returns a program that uses everything that a generated package exports, one declaration per line, and the
// names for each line. If a line does not compile, the report must say that one of its names breaks.
func everything(pkg *types.Package) (source []byte, subjects map[int][]string) {
	p := &program{pkg: pkg, imports: map[string]bool{pkg.Path(): true}, subjects: map[int][]string{}}
	for _, name := range pkg.Scope().Names() {
		if obj := pkg.Scope().Lookup(name); obj.Exported() {
			p.object(obj)
		}
	}
	var head strings.Builder
	head.WriteString("package user; import (")
	for _, path := range slices.Sorted(maps.Keys(p.imports)) {
		fmt.Fprintf(&head, "%q;", path)
	}
	return append([]byte(head.String()+")\n"), p.body.Bytes()...), p.subjects
}

type program struct {
	pkg      *types.Package
	imports  map[string]bool
	body     bytes.Buffer
	subjects map[int][]string
	lines    int
}

// use adds a line.
func (p *program) use(subjects []string, format string, args ...any) {
	fmt.Fprintf(&p.body, format+"\n", args...)
	p.lines++
	p.subjects[p.lines+1] = subjects // the first line is the head
}

func (p *program) typ(t types.Type) string {
	return types.TypeString(t, func(other *types.Package) string {
		p.imports[other.Path()] = true
		return other.Name()
	})
}

func (p *program) object(obj types.Object) {
	name, q := obj.Name(), p.pkg.Name()+"."+obj.Name()
	switch obj := obj.(type) {
	case *types.Const:
		subjects := []string{name}
		if named, ok := obj.Type().(*types.Named); ok {
			subjects = append(subjects, named.Obj().Name())
			p.use(subjects, "const _ %s = %s", p.typ(named), q)
		}
		p.use(subjects, "var _ = map[bool]bool{false: true, %s == %s: true}", q, obj.Val().ExactString())
	case *types.Func:
		subjects := []string{name}
		if named, ok := obj.Signature().Results().At(0).Type().(*types.Named); ok {
			subjects = append(subjects, named.Obj().Name())
		}
		p.use(subjects, "var _ %s = %s", p.typ(obj.Type()), q)
	case *types.Var:
		p.use([]string{name}, "var _ %s = %s", p.typ(obj.Type()), q)
	case *types.TypeName:
		p.named(obj, q)
	default:
		panic(fmt.Sprintf("%s is a %T", name, obj))
	}
}

func (p *program) named(obj *types.TypeName, q string) {
	name := obj.Name()
	p.use([]string{name}, "var _ %s", q)
	payload := []string{name}
	_, isStruct := obj.Type().Underlying().(*types.Struct)
	for _, other := range p.pkg.Scope().Names() { // a struct may be defined by another type, whose name is used then
		if !isStruct {
			break
		}
		if o, ok := p.pkg.Scope().Lookup(other).(*types.TypeName); ok && o != obj && o.Type().Underlying() == obj.Type().Underlying() {
			payload = append(payload, other)
		}
	}
	if types.Comparable(obj.Type()) && !types.IsInterface(obj.Type()) {
		p.use(payload, "func _(a, b %s) bool { return a == b }", q)
	}
	switch u := obj.Type().Underlying().(type) {
	case *types.Struct:
		for f := range u.Fields() {
			subjects := slices.Clone(payload)
			for _, of := range payload {
				subjects = append(subjects, of+"."+f.Name())
			}
			p.use(subjects, "func _(x *%s) *%s { return &x.%s }", q, p.typ(f.Type()), f.Name())
		}
	case *types.Interface:
		for _, other := range p.pkg.Scope().Names() {
			o, ok := p.pkg.Scope().Lookup(other).(*types.TypeName)
			if !ok || types.IsInterface(o.Type()) {
				continue
			}
			switch {
			case types.Implements(o.Type(), u):
				p.use([]string{name, other}, "var _ %s = *new(%s)", q, p.typ(o.Type()))
			case types.Implements(types.NewPointer(o.Type()), u):
				p.use([]string{name, other}, "var _ %s = (*%s)(nil)", q, p.typ(o.Type()))
			}
		}
	default:
		p.use([]string{name}, "func f%d[T ~%s]() {}; var _ = f%[1]d[%[3]s]", p.lines, p.typ(u), q)
	}
	if types.IsInterface(obj.Type()) {
		return
	}
	values := types.NewMethodSet(obj.Type())
	for sel := range types.NewMethodSet(types.NewPointer(obj.Type())).Methods() {
		m := sel.Obj().(*types.Func)
		if !m.Exported() {
			continue
		}
		from := "*" + q
		if values.Lookup(m.Pkg(), m.Name()) != nil {
			from = q
		}
		p.use([]string{name, name + "." + m.Name()}, "func _(x func() %s) %s { return x().%s }", from, p.typ(m.Type()), m.Name())
	}
}
