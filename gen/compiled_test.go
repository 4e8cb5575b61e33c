package gen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/sample"
)

// patience is how long a schema may take, even while the machine does other work, before it counts as hanging.
const patience = 5 * time.Minute

// generateOnce generates code for a schema. Its error may be a panic. A schema that takes too long, or exhausts the
// stack, ends the test.
func generateOnce(schema []byte) (files map[string][]byte, err error) {
	hanging := time.AfterFunc(patience, func() { panic(fmt.Sprintf("no result after %v: %s", patience, schema)) })
	defer func() {
		hanging.Stop()
		if r := recover(); r != nil {
			files, err = nil, fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return Generate(Config{Schema: schema, Source: "schema.json", Package: "generated", Module: module, Tests: true})
}

// misplaced returns one of the problems of a schema that is not an Error with a place in the document, or nil.
func misplaced(document []byte, err error) error {
	for _, problem := range Problems(err) {
		if failure, ok := errors.AsType[*Error](problem); !ok || !hasPlace(document, failure.Pointer) {
			return problem
		}
	}
	return nil
}

// A task is a value to be read and written by the generated package of that number.
type task struct {
	Package    int
	Definition string
	Value      json.RawMessage
}

// An outcome is the result of a task; see the program in testdata.
type outcome struct {
	Missing bool
	Panic   string
	Error   string
	Foreign bool
	Pointer string
	Repairs []string
	Value   json.RawMessage
	Unsent  string
	Differs string
}

// broken returns an error if the outcome is wrong for any value.
func (o *outcome) broken() error {
	switch {
	case o.Missing:
		return errors.New("the definition has no type")
	case o.Panic != "":
		return fmt.Errorf("panic: %s", o.Panic)
	case o.Foreign:
		return fmt.Errorf("an error that is not codec's: %s", o.Error)
	case o.Differs != "":
		return errors.New(o.Differs)
	}
	return nil
}

// writes returns an error if what was written is not the wanted value.
func (o *outcome) writes(want json.RawMessage) error {
	if o.Value == nil {
		return fmt.Errorf("not sent: %s", o.Unsent)
	}
	a, err := sample.Parse(want)
	if err != nil {
		return err
	}
	b, err := sample.Parse(o.Value)
	if err != nil {
		return err
	}
	return sample.Equal(a, b)
}

// A binary is a program compiled from generated packages, with tasks for it.
type binary struct {
	dir   string
	count int
	tasks []task
	names []string
	check []func(outcome) error
}

// newBinary starts a separate module, as another vendor would.
func newBinary(t testing.TB) *binary {
	t.Helper()
	return &binary{dir: t.TempDir()}
}

// add adds a package, and returns its number.
func (p *binary) add(t testing.TB, files map[string][]byte) int {
	t.Helper()
	number := p.count
	p.count++
	out := map[string][]byte{}
	for name, text := range files {
		if name == "definitions_gen_test.go" {
			name = "definitions.go"
		}
		out[name] = text
	}
	out["export.go"] = []byte("package generated\n\nvar X_Definitions = definitions\n")
	writeFiles(t, filepath.Join(p.dir, fmt.Sprintf("p%d", number)), out)
	return number
}

// buildFlags are for go build and go test: they compile generated packages without optimisation and debug information,
// which takes a quarter less time.
var buildFlags = []string{"-mod=mod", "-gcflags=" + module + "/built/...=-N -l -dwarf=false"}

// try adds a task with the name of its test. check returns an error if the outcome is wrong.
func (p *binary) try(name string, what task, check func(outcome) error) {
	p.tasks, p.names, p.check = append(p.tasks, what), append(p.names, name), append(p.check, check)
}

// compile compiles the program, and returns its path.
func (p *binary) compile(t testing.TB) (path string) {
	t.Helper()
	var imports, packages strings.Builder
	for i := range p.count {
		fmt.Fprintf(&imports, "\tp%d %q\n", i, fmt.Sprintf("%s/built/p%d", module, i))
		fmt.Fprintf(&packages, "\tp%d.X_Definitions,\n", i)
	}
	source := must.Get(os.ReadFile("testdata/program.go.txt"))(t)
	main := strings.NewReplacer("\t// imports\n", imports.String(), "\t// packages\n", packages.String()).Replace(string(source))
	writeModule(t, p.dir, map[string][]byte{"main.go": []byte(main)})
	path = filepath.Join(p.dir, "program.exe")
	compiler := exec.Command("go", append(append([]string{"build"}, buildFlags...), "-ldflags=-s -w", "-o", path, ".")...)
	compiler.Dir = p.dir
	compiler.Env = append(os.Environ(), "GOWORK=off")
	if out, err := compiler.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out[:min(len(out), 8000)])
	}
	return path
}

// run compiles the program, and runs it with the tasks.
func (p *binary) run(t testing.TB) {
	t.Helper()
	if len(p.tasks) == 0 {
		return
	}
	var in, stderr bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, task := range p.tasks {
		must.Do(t, enc.Encode(task))
	}
	cmd := exec.Command(p.compile(t))
	cmd.Stdin, cmd.Stderr = &in, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%.4000s", err, stderr.Bytes())
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	for i, task := range p.tasks {
		var o outcome
		if err := dec.Decode(&o); err != nil {
			t.Fatalf("outcome %d of %d: %v", i, len(p.tasks), err)
		}
		err := o.broken()
		if err == nil {
			err = p.check[i](o)
		}
		if err != nil {
			t.Errorf("%s: %s: %s: %v", p.names[i], task.Definition, task.Value, err)
		}
	}
}

// writeModule writes the files of a module that has this one's requirements, and this one.
func writeModule(t testing.TB, dir string, files map[string][]byte) {
	t.Helper()
	goMod := must.Get(os.ReadFile("../go.mod"))(t)
	files["go.sum"] = must.Get(os.ReadFile("../go.sum"))(t)
	root := must.Get(filepath.Abs(".."))(t)
	_, required, _ := strings.Cut(string(goMod), "\n")
	files["go.mod"] = fmt.Appendf(nil, "module %s/built\n%s\nrequire %s v0.0.0\nreplace %s => %s\n", module, required, module, module, root)
	writeFiles(t, dir, files)
}
