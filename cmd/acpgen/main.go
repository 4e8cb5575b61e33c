// Acpgen turns schemas of the Agent Client Protocol into Go packages.
//
// Usage:
//
//	acpgen [-check] [-root DIR]
//	acpgen [-check] -schema FILE -package NAME [-out DIR] [-runtime PATH] [-protocol NAME] [-facade] [-tests] [-versions FILE]
//	acpgen -api [-package NAME] [-runtime PATH] [-protocol NAME] [-facade] OLD NEW
//
// The first form generates what this repository holds: the package that embeds the schemas which
// schema/VERSIONS lists, and the packages of gen.Targets. Its root is -root, or else the nearest parent
// folder with a schema/VERSIONS.
//
// The second form generates one package from any schema. It can be told which protocol the schema is
// of, to apply what this project has decided about that, and to add handlers, connections and sessions, which
// need hand-written files beside them.
//
// The third form writes nothing. It prints, as Markdown, what the step from one schema to another does to
// programs that use the generated package: what breaks them first, what is to be looked at, what was
// added, and what is only read differently. It runs the go command, in a module that has the runtime. Its
// exit status is 1 if something breaks. Which release a schema is of, a schema/VERSIONS beside it says.
//
// With -check nothing is written: acpgen names the files that it would have changed, and its exit
// status is 1 if there are any. For wrong usage and wrong schemas it is 2; then nothing was written
// either.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acpgo/sdk/gen"
	"github.com/acpgo/sdk/gen/api"
	"github.com/acpgo/sdk/gen/emit"
	"github.com/acpgo/sdk/gen/schema"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// module is this module's import path.
const module = "github.com/acpgo/sdk"

var versionsFile = filepath.Join("schema", "VERSIONS")

// The exit statuses.
const (
	ok      = 0
	differs = 1
	failed  = 2
)

type options struct {
	schema, pkg, out, root, module, protocol, versions string

	base                      *gen.Base // of a target of this repository
	facade, tests, check, api bool
}

func run(args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("acpgen", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.schema, "schema", "", "schema `file`")
	flags.StringVar(&o.pkg, "package", "", "`name` of the generated package")
	flags.StringVar(&o.out, "out", ".", "`folder` of the generated package")
	flags.StringVar(&o.root, "root", "", "root `folder` of this repository")
	flags.StringVar(&o.module, "runtime", module, "import `path` of the module that holds acp/codec and acp/rpc")
	flags.StringVar(&o.protocol, "protocol", "", "`protocol` of the schema, for what is decided about it by hand: v1, v1.unstable, v2, v2.unstable")
	flags.StringVar(&o.versions, "versions", "", "`file` like schema/VERSIONS, which must list the schema")
	flags.BoolVar(&o.facade, "facade", false, "also generate handlers, connections and sessions")
	flags.BoolVar(&o.tests, "tests", false, "also generate the tables that tests of the package need")
	flags.BoolVar(&o.check, "check", false, "write nothing; exit with 1 if something would change")
	flags.BoolVar(&o.api, "api", false, "write nothing; compare two schemas, and exit with 1 if the step breaks programs")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return ok
		}
		return failed
	}
	status, err := o.run(flags.Args(), stdout)
	if err != nil {
		fmt.Fprintf(stderr, "acpgen: %v\n", err)
		return failed
	}
	return status
}

// run does what the options say and returns the exit status.
func (o *options) run(args []string, stdout io.Writer) (status int, err error) {
	if o.api {
		return o.compare(args, stdout)
	}
	changed, err := o.generate(len(args))
	if err != nil || !o.check || len(changed) == 0 {
		return ok, err
	}
	for _, line := range changed {
		fmt.Fprintln(stdout, line)
	}
	return differs, nil
}

// compare prints how the packages of two schemas differ, or, for two folders like this repository's root,
// all packages of gen.Targets whose schemas both have.
func (o *options) compare(args []string, stdout io.Writer) (status int, err error) {
	if len(args) != 2 || o.schema != "" || o.root != "" || o.check {
		return 0, errors.New("want -api with two schema files, and neither -schema, -root nor -check; -help explains")
	}
	imports, err := api.Importer(".", o.module+"/acp/rpc")
	if err != nil {
		return 0, err
	}
	pairs := []pair{{*o, args[0], args[1]}}
	if isFolder(args[0]) && isFolder(args[1]) {
		pairs = targets(o.module, args[0], args[1])
	}
	for i, p := range pairs {
		report, err := p.report(imports)
		if err != nil {
			return 0, err
		}
		if report.Breaks() {
			status = differs
		}
		text := report.Markdown()
		if i > 0 {
			text = "\n" + text
		}
		if _, err := io.WriteString(stdout, text); err != nil {
			return 0, err
		}
	}
	return status, nil
}

// A pair is two schema files, and the options for what they become.
type pair struct {
	options
	old, new string
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// targets returns the pairs of schemas that both folders have.
func targets(module, old, new string) []pair {
	var out []pair
	for _, t := range gen.Targets {
		p := pair{
			options{pkg: t.Package, module: module, protocol: t.Protocol, facade: true},
			filepath.Join(old, filepath.FromSlash(t.Schema)), filepath.Join(new, filepath.FromSlash(t.Schema)),
		}
		if _, err := os.Stat(p.old); err == nil {
			out = append(out, p)
		}
	}
	return out
}

func (p pair) report(imports types.Importer) (*api.Report, error) {
	if p.pkg == "" {
		p.pkg = "generated"
	}
	var configs [2]gen.Config
	for i, file := range []string{p.old, p.new} {
		data, err := readSchema(file)
		if err != nil {
			return nil, err
		}
		if configs[i], err = p.config(data); err != nil {
			return nil, err
		}
		configs[i].Source = release(file, data)
	}
	return gen.Compare(configs[0], configs[1], imports)
}

// release says which release a schema is of, if a list of schemas beside it does, or else its file.
func release(file string, data []byte) string {
	dir := filepath.Dir(file)
	for _, list := range []string{filepath.Join(dir, versionsFile), filepath.Join(dir, "VERSIONS")} {
		if versions, err := readVersions(list); err == nil {
			if source, err := gen.Source(versions, data); err == nil {
				return source
			}
		}
	}
	return filepath.ToSlash(file)
}

// A folder is what is generated into one.
type folder struct {
	dir   string
	files map[string][]byte
}

// generate returns what it changed or would have changed. Everything is generated before anything is
// written.
func (o *options) generate(extra int) (changed []string, err error) {
	var folders []folder
	switch {
	case extra > 0:
		return nil, errors.New("want flags only; -help explains")
	case o.schema == "" && o.pkg == "":
		folders, err = o.repository()
	case o.schema == "" || o.pkg == "" || o.root != "":
		return nil, errors.New("want -schema and -package together, and no -root; -help explains")
	default:
		folders, err = o.single()
	}
	if err != nil {
		return nil, err
	}
	for _, f := range folders {
		lines, err := f.apply(o.check)
		if err != nil {
			return nil, err
		}
		changed = append(changed, lines...)
	}
	return changed, nil
}

// single generates one package.
func (o *options) single() ([]folder, error) {
	data, err := readSchema(o.schema)
	if err != nil {
		return nil, err
	}
	c, err := o.config(data)
	if err != nil {
		return nil, err
	}
	c.Source, c.Tests = filepath.Base(o.schema), o.tests
	if o.versions != "" {
		versions, err := readVersions(o.versions)
		if err != nil {
			return nil, err
		}
		if c.Source, err = gen.Source(versions, data); err != nil {
			return nil, fmt.Errorf("%s: %w", o.schema, err)
		}
	}
	documented, err := hasDoc(o.out)
	if err != nil {
		return nil, err
	}
	if !documented {
		c.Doc = fmt.Sprintf("Package %s holds the types and methods that %s describes, generated by acpgen.", o.pkg, filepath.Base(o.schema))
	}
	files, err := gen.Generate(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.schema, err)
	}
	return []folder{{o.out, files}}, nil
}

// config returns what the options say about a schema.
func (o *options) config(data []byte) (gen.Config, error) {
	c := gen.Config{Schema: data, Package: o.pkg, Module: o.module, Facade: o.facade, Base: o.base}
	if o.protocol != "" {
		overrides, known := gen.Overrides[o.protocol]
		if !known {
			return c, fmt.Errorf("unknown protocol %q", o.protocol)
		}
		c.Overrides = overrides
	}
	return c, nil
}

// repository generates what this repository holds.
func (o *options) repository() ([]folder, error) {
	root := o.root
	if root == "" {
		var err error
		if root, err = findRoot(); err != nil {
			return nil, err
		}
	}
	versions, err := readVersions(filepath.Join(root, versionsFile))
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		data, err := readSchema(filepath.Join(root, filepath.FromSlash(v.Path)))
		if err != nil {
			return nil, err
		}
		if _, err := gen.Source([]gen.Version{v}, data); err != nil {
			return nil, fmt.Errorf("%s: %w", v.Path, err)
		}
	}
	files, err := gen.Root(gen.RootPackage, versions)
	if err != nil {
		return nil, err
	}
	folders := []folder{{root, files}}
	for _, t := range gen.Targets {
		target := options{
			schema: filepath.Join(root, filepath.FromSlash(t.Schema)), versions: filepath.Join(root, versionsFile),
			pkg: t.Package, out: filepath.Join(root, filepath.FromSlash(t.Dir)), protocol: t.Protocol, module: module,
			facade: true, tests: true,
		}
		if target.base, err = base(root, t); err != nil {
			return nil, err
		}
		more, err := target.single()
		if err != nil {
			return nil, err
		}
		if err := share(root, t, more[0].files); err != nil {
			return nil, err
		}
		folders = append(folders, more...)
	}
	return folders, nil
}

// base returns the package that a target extends, or nil.
func base(root string, t gen.Target) (*gen.Base, error) {
	for _, b := range gen.Targets {
		if t.Base != "" && b.Dir == t.Base {
			data, err := readSchema(filepath.Join(root, filepath.FromSlash(b.Schema)))
			return &gen.Base{Path: module + "/" + b.Dir, Schema: data, Overrides: gen.Overrides[b.Protocol]}, err
		}
	}
	return nil, nil
}

// share adds to files what the package shares with others. What a package declares itself, or shares with
// a later one, is its own where it shares with an earlier one.
func share(root string, t gen.Target, files map[string][]byte) error {
	own, inBase := gen.Declared{}, gen.Declared{}
	if aliases, ok := files["aliases_gen.go"]; ok {
		if err := inBase.Add("aliases_gen.go", aliases); err != nil {
			return err
		}
	}
	for _, shared := range slices.Backward(append(slices.Clone(t.Shares), gen.Shared{Dir: t.Dir})) {
		paths, err := written(filepath.Join(root, filepath.FromSlash(shared.Dir)))
		if err != nil {
			return err
		}
		declared := gen.Declared{}
		for _, path := range paths {
			name := strings.TrimSuffix(filepath.Base(path), ".go")
			if shared.Files != nil && !slices.Contains(shared.Files, name) || name == "doc" {
				continue
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if err := declared.Add(path, source); err != nil {
				return err
			}
			if shared.Dir == t.Dir {
				continue
			}
			copied, err := gen.Copy(source, shared.Dir+"/"+filepath.Base(path), t.Package, own, inBase)
			if err != nil {
				return err
			}
			if copied != nil {
				files[filepath.Base(shared.Dir)+"_"+name+"_gen.go"] = copied
			}
		}
		maps.Copy(own, declared)
	}
	return nil
}

// hasDoc reports whether a hand-written file of a folder has a package comment.
func hasDoc(dir string) (bool, error) {
	paths, err := written(dir)
	if err != nil {
		return false, err
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return false, err
		}
		if file.Doc != nil {
			return true, nil
		}
	}
	return false, nil
}

// written returns the Go files of a folder that are neither generated nor tests.
func written(dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	return slices.DeleteFunc(paths, func(path string) bool {
		return strings.HasSuffix(path, "_gen.go") || strings.HasSuffix(path, "_test.go")
	}), err
}

// findRoot returns the nearest parent of the working folder that has a list of schemas.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, versionsFile)); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no parent folder has a schema/VERSIONS: want -root, or -schema and -package")
		}
		dir = parent
	}
}

func readVersions(file string) ([]gen.Version, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	versions, err := gen.ParseVersions(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return versions, nil
}

// readSchema reads a file, but no more of it than a schema may have.
func readSchema(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, schema.MaxSize+1))
}

// apply makes the folder be as generated, or with check only says how it differs.
func (f folder) apply(check bool) (changed []string, err error) {
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		path := filepath.Join(f.dir, name)
		old, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			changed = append(changed, path+": missing")
		case err != nil:
			return nil, err
		case bytes.Equal(old, f.files[name]):
			continue
		default:
			changed = append(changed, path+": differs")
		}
		if !check {
			if err := write(path, f.files[name]); err != nil {
				return nil, err
			}
		}
	}
	stale, err := staleFiles(f.dir, f.files)
	if err != nil {
		return nil, err
	}
	for _, path := range stale {
		changed = append(changed, path+": stale")
		if !check {
			if err := os.Remove(path); err != nil {
				return nil, err
			}
		}
	}
	return changed, nil
}

// staleFiles returns the generated files of the folder that are not among files.
func staleFiles(dir string, files map[string][]byte) ([]string, error) {
	var paths []string
	for _, pattern := range []string{"*_gen.go", "*_gen_test.go"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	var out []string
	for _, path := range paths {
		if _, current := files[filepath.Base(path)]; current {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if bytes.HasPrefix(text, []byte(emit.Header)) {
			out = append(out, path)
		}
	}
	return out, nil
}

// write replaces a file in one step, so that no reader sees half of it.
func write(path string, data []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(data); err != nil {
		f.Close()
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
