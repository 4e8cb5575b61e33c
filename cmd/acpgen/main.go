// Acpgen generates Go packages from schemas of the Agent Client Protocol.
//
// Usage:
//
//	acpgen [-check] [-root DIR]
//	acpgen [-check] -schema FILE -package NAME [-out DIR] [-runtime PATH] [-protocol NAME]
//	       [-overrides FILE] [-facade] [-tests] [-versions FILE]
//	acpgen -api [-json] [-package NAME] [-runtime PATH] [-protocol NAME] [-overrides FILE] [-facade] OLD NEW
//
// The first form generates the packages of this repository: the package that embeds the schemas listed in
// schema/VERSIONS, and the packages of gen.Targets. The root of the repository is -root, or else the nearest parent
// folder with a schema/VERSIONS.
//
// The second form generates one package from any schema. The flag -protocol applies this project's decisions about a
// protocol. The flag -facade adds handlers, connections and sessions, which need hand-written files next to them.
//
// The third form writes no files. It prints, as Markdown or with -json as JSON, how the step from one schema to another
// affects programs that use the generated package: breaking changes first, then changes to review, additions, and
// values that are only read differently. It runs the go command in a module that has the runtime. Its exit status is 1
// if something breaks. The release of a schema is taken from a schema/VERSIONS next to it. Two folders like the root of
// this repository are compared package by package.
//
// A file of overrides has decisions that a schema leaves open, one per line: the kind of the decision, its subject, the
// decision and the reason. If a schema needs overrides, acpgen prints suggestions as lines of such a file after the
// errors. Unused overrides are errors; all of them are reported at once.
//
//	Member       Thing/a_b = AUnderB        # aB has the default name
//	Value        Color/dark_red = DarkRed2  # dark-red has the default name
//	Constructor  Shape/circle = Circle      # the default name is long
//	Name         Thing/part = Detail        # the default name is taken
//	Ignored      /$defs/Thing/if            # what it forbids is harmless
//
// The kinds Name, Member, Value, Variant and Constructor name a type, a field, a constant, a variant's type and its
// constructor. The subject is a definition, a part of one after slashes, or the JSON pointer in an error. Ignored
// leaves out a keyword or a member, as if the schema did not have it. All kinds are documented at gen.Kind, and the
// format at gen.ParseOverrides.
//
// If a method has no gate but looks as if a capability should gate it, acpgen prints a question and continues. An
// override answers it.
//
// All files of all packages are generated before the first is written. Only files that begin like acpgen's are replaced
// or removed.
//
// With -check, nothing is written: acpgen prints the names of the files that it would change, and its exit status is 1
// if there are any. For wrong usage and invalid schemas, the exit status is 2, and nothing is written.
package main

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acpgo/sdk/gen"
	"github.com/acpgo/sdk/internal/gen/api"
	"github.com/acpgo/sdk/internal/gen/schema"
	"github.com/acpgo/sdk/internal/gen/text"
)

// source is this file, whose package comment -help prints.
//
//go:embed main.go
var source []byte

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
	schema, stable, pkg, out, root, module, protocol, versions, overrides string

	experimental, hooks string // see gen.Config

	facade, tests, check, api, json bool

	stderr io.Writer

	decisions []gen.Override // of the file of overrides, with their lines
	lines     []int
}

func run(args []string, stdout, stderr io.Writer) int {
	o := options{stderr: stderr}
	flags := flag.NewFlagSet("acpgen", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.schema, "schema", "", "schema `file`")
	flags.StringVar(&o.stable, "stable", "",
		"schema `file` without experimental features; everything that only -schema has is marked as experimental and off "+
			"until enabled")
	flags.StringVar(&o.pkg, "package", "", "`name` of the generated package")
	flags.StringVar(&o.out, "out", ".", "`folder` of the generated package")
	flags.StringVar(&o.root, "root", "", "root `folder` of this repository")
	flags.StringVar(&o.module, "runtime", module, "import `path` of the module that contains codec and acp/rpc")
	flags.StringVar(&o.protocol, "protocol", "",
		"`protocol` whose overrides in this project apply: v1, v1.unstable, v2 or v2.unstable")
	flags.StringVar(&o.versions, "versions", "", "`file` like schema/VERSIONS, which must list the schema")
	flags.StringVar(&o.overrides, "overrides", "", "`file` of overrides for the schema, in addition to those of -protocol")
	flags.BoolVar(&o.facade, "facade", false, "also generate handlers, connections and sessions")
	flags.BoolVar(&o.tests, "tests", false, "also generate the tables that tests of the package need")
	flags.BoolVar(&o.check, "check", false, "write nothing; exit with status 1 if a file would change")
	flags.BoolVar(&o.api, "api", false,
		"write nothing; compare two schemas, and exit with status 1 if the step breaks programs")
	flags.BoolVar(&o.json, "json", false, "print the report of -api as JSON")
	flags.Usage = func() {
		usage(stderr)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return ok
		}
		return failed
	}
	status, err := o.run(flags.Args(), stdout)
	if err != nil {
		printProblems(stderr, gen.Problems(err))
		return failed
	}
	return status
}

// maxReported is the maximum number of problems that are printed.
const maxReported = 1000

// printProblems prints each problem once, and then the overrides that would resolve them, as lines of a file of
// overrides.
func printProblems(w io.Writer, problems []error) {
	said := map[string]bool{}
	var wanted []string
	for i, problem := range problems {
		if len(said) == maxReported {
			fmt.Fprintf(w, "acpgen: %d more problems\n", len(problems)-i)
			break
		}
		line := text.Brief(problem.Error())
		if said[line] {
			continue
		}
		fmt.Fprintf(w, "acpgen: %s\n", line)
		said[line] = true
		if want, ok := errors.AsType[*gen.Wanted](problem); ok {
			if line := want.Override.String(); text.Brief(line) == line && !slices.Contains(wanted, line) {
				wanted = append(wanted, line)
			}
		}
	}
	if len(wanted) > 0 {
		fmt.Fprintf(w, "acpgen: these overrides would resolve this; you may choose other names:\n%s\n",
			strings.Join(wanted, "\n"))
	}
}

// usage prints the package comment.
func usage(w io.Writer) {
	file, err := parser.ParseFile(token.NewFileSet(), "main.go", source, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		panic(err) // cannot happen: the file was compiled
	}
	fmt.Fprintf(w, "%s\nFlags:\n\n", file.Doc.Text())
}

// run runs acpgen as the options specify and returns the exit status.
func (o *options) run(args []string, stdout io.Writer) (status int, err error) {
	switch {
	case o.api:
		return o.compare(args, stdout)
	case o.json:
		return 0, errors.New("-json needs -api; see -help")
	}
	changed, err := o.generate(len(args))
	if err != nil || !o.check || len(changed) == 0 {
		return ok, err
	}
	for _, c := range changed {
		fmt.Fprintln(stdout, text.Line(c.String()))
	}
	return differs, nil
}

// compare prints the differences between the packages of two schemas. For two folders like this repository's root, it
// compares all packages of gen.Targets whose schemas both folders have.
func (o *options) compare(args []string, stdout io.Writer) (status int, err error) {
	if len(args) != 2 || o.schema != "" || o.root != "" || o.check {
		return 0, errors.New("-api takes two schema files, and cannot be used with -schema, -root or -check; see -help")
	}
	imports, err := api.Importer(".", o.module+"/acp/rpc")
	if err != nil {
		return 0, err
	}
	before, after := *o, *o
	before.schema, after.schema = args[0], args[1]
	pairs := [][2]options{{before, after}}
	if isFolder(args[0]) && isFolder(args[1]) {
		pairs = o.targets(args[0], args[1])
	}
	var reports []*api.Report
	var markdown []string
	for _, p := range pairs {
		report, err := report(p, imports)
		if err != nil {
			return 0, err
		}
		if report.Breaks() {
			status = differs
		}
		reports, markdown = append(reports, report), append(markdown, report.Markdown())
	}
	if !o.json {
		_, err = io.WriteString(stdout, strings.Join(markdown, "\n"))
		return status, err
	}
	enc := json.NewEncoder(stdout)
	enc.SetIndent("", "  ")
	return status, enc.Encode(reports)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// targets returns the options for the schemas, first without experimental features, that both folders have.
func (o *options) targets(old, new string) (out [][2]options) {
	for _, t := range gen.Targets {
		whole := [2]options{o.target(old, t), o.target(new, t)}
		stable := whole
		for i := range whole {
			stable[i].schema, stable[i].stable = whole[i].stable, ""
			stable[i].protocol = strings.TrimSuffix(t.Protocol, ".unstable")
			whole[i].stable = ifThere(whole[i].stable)
		}
		stable[0].experimental = ifThere(whole[0].schema)
		for _, p := range [][2]options{stable, whole} {
			if ifThere(p[0].schema) != "" {
				out = append(out, p)
			}
		}
	}
	return out
}

// ifThere returns the name of a file, or "" if there is no such file.
func ifThere(file string) string {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return file
}

// report compares the packages of two schemas.
func report(p [2]options, imports types.Importer) (*api.Report, error) {
	var configs [2]gen.Config
	for i, o := range p {
		o.pkg = cmp.Or(o.pkg, "generated")
		c, err := o.config()
		if err != nil {
			return nil, err
		}
		c.Source, c.Hooks = release(o.schema, c.Schema), ""
		configs[i] = c
	}
	return gen.Compare(configs[0], configs[1], imports)
}

// release returns the release of a schema, if a list of schemas next to it names it, or else its file name.
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

// generate returns the changes that it made or, with -check, would have made. Everything is generated before anything
// is written.
func (o *options) generate(extra int) ([]change, error) {
	var folders []folder
	var err error
	switch {
	case extra > 0:
		return nil, errors.New("unexpected arguments; see -help")
	case o.schema == "" && o.pkg == "":
		folders, err = o.repository()
	case o.schema == "" || o.pkg == "" || o.root != "":
		return nil, errors.New("-schema and -package must be used together, and without -root; see -help")
	default:
		folders, err = o.single()
	}
	if err != nil {
		return nil, err
	}
	changed, err := changes(folders)
	if err != nil || o.check {
		return changed, err
	}
	return changed, apply(changed)
}

// single generates one package.
func (o *options) single() ([]folder, error) {
	c, err := o.config()
	if err != nil {
		return nil, err
	}
	c.Source, c.Tests = filepath.Base(o.schema), o.tests
	if o.versions != "" {
		versions, err := readVersions(o.versions)
		if err != nil {
			return nil, err
		}
		if c.Source, err = gen.Source(versions, c.Schema); err != nil {
			return nil, fmt.Errorf("%s: %w", o.schema, err)
		}
	}
	documented, err := hasDoc(o.out)
	if err != nil {
		return nil, err
	}
	if !documented {
		c.Doc = fmt.Sprintf("Package %s holds the types and methods that %s describes, generated by acpgen.", o.pkg,
			filepath.Base(o.schema))
	}
	result, err := gen.Run(c)
	if err != nil {
		return nil, o.locate(err)
	}
	for _, q := range result.Questions {
		fmt.Fprintf(o.stderr, "acpgen: %s: question: %s\n", text.Brief(o.schema), text.Brief(q.String()))
	}
	folders := []folder{{o.out, result.Files}}
	if result.Hooks != nil {
		folders = append(folders, folder{filepath.Join(o.out, "proxy"), map[string][]byte{"hooks_gen.go": result.Hooks}})
	}
	return folders, nil
}

// config returns the generator's configuration. It also reads the file of overrides.
func (o *options) config() (c gen.Config, err error) {
	c = gen.Config{Package: o.pkg, Module: o.module, Facade: o.facade, Hooks: o.hooks}
	data := []*[]byte{&c.Schema, &c.Stable, &c.Experimental}
	for i, file := range []string{o.schema, o.stable, o.experimental} {
		if file == "" {
			continue
		}
		if *data[i], err = readFile(file); err != nil {
			return c, err
		}
	}
	if o.protocol != "" {
		overrides, known := gen.Overrides[o.protocol]
		if !known {
			return c, fmt.Errorf("unknown protocol %q", o.protocol)
		}
		c.Overrides, c.Unstable = overrides, gen.Overrides[o.protocol+".unstable"]
	}
	if o.overrides != "" {
		table, err := readFile(o.overrides)
		if err != nil {
			return c, err
		}
		if o.decisions, o.lines, err = gen.ParseOverrides(string(table)); err != nil {
			return c, gen.In(o.overrides, err)
		}
		c.Overrides = slices.Concat(c.Overrides, o.decisions)
	}
	return c, nil
}

// locate adds to each problem its location: the file of overrides if it is a stale override, or else the schema.
func (o *options) locate(err error) error {
	var out []error
	for _, problem := range gen.Problems(err) {
		where := o.schema
		if stale, ok := errors.AsType[*gen.Stale](problem); ok {
			if i := slices.Index(o.decisions, stale.Override); i >= 0 {
				where, problem = fmt.Sprintf("%s: line %d", o.overrides, o.lines[i]), stale
			}
		}
		out = append(out, gen.In(where, problem))
	}
	return errors.Join(out...)
}

// target returns the options for a package below a folder like the root of this repository.
func (o *options) target(root string, t gen.Target) options {
	in := func(path string) string { return filepath.Join(root, filepath.FromSlash(path)) }
	out := options{schema: in(t.Schema), stable: in(t.Stable), versions: in("schema/VERSIONS"), pkg: t.Package,
		out: in(t.Dir), protocol: t.Protocol, module: o.module, facade: true, tests: true, stderr: o.stderr}
	if t.Hooks {
		out.hooks = module + "/" + t.Dir
	}
	return out
}

// repository generates the packages of this repository.
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
		data, err := readFile(filepath.Join(root, filepath.FromSlash(v.Path)))
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
	var problems []error
	for _, t := range gen.Targets {
		target := o.target(root, t)
		target.module = module
		more, err := target.single()
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if err := share(root, t, more[0].files); err != nil {
			return nil, err
		}
		folders = append(folders, more...)
	}
	return folders, errors.Join(problems...)
}

// share adds the copies of the hand-written files that the package shares with others. Functions that the package
// itself declares keep their body under another name; see [gen.Copy].
func share(root string, t gen.Target, files map[string][]byte) error {
	paths, err := written(filepath.Join(root, filepath.FromSlash(t.Dir)))
	if err != nil {
		return err
	}
	own := gen.Declared{}
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := own.Add(path, source); err != nil {
			return err
		}
	}
	for _, shared := range t.Shares {
		for _, name := range shared.Files {
			source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(shared.Dir), name+".go"))
			if errors.Is(err, fs.ErrNotExist) && len(paths) == 0 {
				break // a folder with only schemas; missing files are found when it is compiled
			}
			if err != nil {
				return err
			}
			copied, err := gen.Copy(source, shared.Dir+"/"+name+".go", t.Package, own)
			if err != nil {
				return err
			}
			files[filepath.Base(shared.Dir)+"_"+name+"_gen.go"] = copied
		}
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

// written returns the hand-written Go files of a folder, except tests.
func written(dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	return slices.DeleteFunc(paths, func(path string) bool {
		return strings.HasSuffix(path, "_gen.go") || strings.HasSuffix(path, "_test.go")
	}), err
}

// findRoot returns the nearest parent of the working directory that has a list of schemas.
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
			return "", errors.New("no parent folder has a schema/VERSIONS; use -root, or -schema and -package")
		}
		dir = parent
	}
}

func readVersions(file string) ([]gen.Version, error) {
	text, err := readFile(file)
	if err != nil {
		return nil, err
	}
	versions, err := gen.ParseVersions(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return versions, nil
}

// readFile reads a file. It returns an error if the file is larger than a schema may be.
func readFile(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, schema.MaxSize+1))
	if err == nil && len(data) > schema.MaxSize {
		err = fmt.Errorf("%s: not read: %w", file, schema.ErrSize)
	}
	return data, err
}
