// Acpgen turns schemas of the Agent Client Protocol into Go packages.
//
// Usage:
//
//	acpgen [-check] [-root DIR]
//	acpgen [-check] -schema FILE -package NAME [-out DIR] [-runtime PATH] [-protocol NAME] [-facade] [-tests] [-versions FILE]
//
// The first form generates what this repository holds: the package that embeds the schemas which
// schema/VERSIONS lists, and the packages of gen.Targets. Its root is -root, or else the nearest parent
// folder with a schema/VERSIONS.
//
// The second form generates one package from any schema. It can be told which protocol the schema is
// of, to apply what this project has decided about that, and to add handlers, peers and sessions, which
// need hand-written files beside them.
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
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/acpgo/sdk/gen"
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
	facade, tests, check                               bool
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
	flags.StringVar(&o.protocol, "protocol", "", "`protocol` of the schema, for what is decided about it by hand: v1")
	flags.StringVar(&o.versions, "versions", "", "`file` like schema/VERSIONS, which must list the schema")
	flags.BoolVar(&o.facade, "facade", false, "also generate handlers, peers and sessions")
	flags.BoolVar(&o.tests, "tests", false, "also generate the tables that tests of the package need")
	flags.BoolVar(&o.check, "check", false, "write nothing; exit with 1 if something would change")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return ok
		}
		return failed
	}
	changed, err := o.run(flags.NArg())
	if err != nil {
		fmt.Fprintf(stderr, "acpgen: %v\n", err)
		return failed
	}
	if !o.check || len(changed) == 0 {
		return ok
	}
	for _, line := range changed {
		fmt.Fprintln(stdout, line)
	}
	return differs
}

// A folder is what is generated into one.
type folder struct {
	dir   string
	files map[string][]byte
}

// run generates, and returns what it changed or would have changed. Everything is generated before
// anything is written.
func (o *options) run(extra int) (changed []string, err error) {
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
		lines, err := f.bring(o.check)
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
	c := gen.Config{Schema: data, Source: filepath.Base(o.schema), Package: o.pkg, Module: o.module, Facade: o.facade, Tests: o.tests}
	if o.versions != "" {
		versions, err := readVersions(o.versions)
		if err != nil {
			return nil, err
		}
		if c.Source, err = gen.Source(versions, data); err != nil {
			return nil, fmt.Errorf("%s: %w", o.schema, err)
		}
	}
	if o.protocol != "" {
		overrides, known := gen.Overrides[o.protocol]
		if !known {
			return nil, fmt.Errorf("unknown protocol %q", o.protocol)
		}
		c.Overrides = overrides
	}
	files, err := gen.Generate(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.schema, err)
	}
	return []folder{{o.out, files}}, nil
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
		more, err := target.single()
		if err != nil {
			return nil, err
		}
		folders = append(folders, more...)
	}
	return folders, nil
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

// bring makes the folder be as generated, or with check only says how it differs.
func (f folder) bring(check bool) (changed []string, err error) {
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
