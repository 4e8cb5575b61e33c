package main

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/internal/plain"
)

//go:embed templates
var templates embed.FS

// written lists the files of a new module and their templates; KIND is replaced by agent or client.
var written = []struct{ name, template string }{
	{"go.mod", "go.mod"},
	{"main.go", "KIND/main.go"},
	{"main_test.go", "KIND/main_test.go"},
	{".github/workflows/test.yml", "workflow.yml"},
}

// oldestGo is the Go version in the go.mod of new modules.
const oldestGo = "1.26"

var (
	moduleName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]*(/[A-Za-z0-9._~-]+)*$`)
	major      = regexp.MustCompile(`/v([2-9]|[1-9]\d+)$`)
	release    = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
	pseudo     = regexp.MustCompile(`\d{14}-[0-9a-f]{12}$`)
)

// newNewCommand returns the command acp new.
func newNewCommand(p *program) *cobra.Command {
	var module, sdk string
	c := &cobra.Command{
		Use:   "new [FLAGS] agent|client DIR",
		Short: "Write a new agent or client in Go, with its test and its CI workflow",
		Long: `Write a new agent or client in Go: a module with a program, its test, in which the judge reports violations of the
protocol, and a workflow that runs the test. Existing files are not overwritten.`,
		Example: `  acp new agent --sdk ~/src/sdk my-agent
  acp new client --module example.com/my-client --sdk ~/src/sdk my-client`,
		Args:      cobra.ArbitraryArgs,
		ValidArgs: []string{"agent", "client"},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 || args[0] != "agent" && args[0] != "client" {
				return usagef("expected agent or client, and a directory")
			}
			return writeModule(p, args[0], args[1], module, sdk)
		},
	}
	c.Flags().StringVar(&module, "module", "", "the `PATH` of the module; default: the name of the directory")
	c.Flags().StringVar(&sdk, "sdk", "", "use the clone of the SDK in `DIR`; required unless acp is a release")
	return c
}

// writeModule writes the files of a new module to dir, all or none.
func writeModule(p *program, kind, dir, module, sdk string) error {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	module = cmp.Or(module, filepath.Base(whole))
	if !moduleName.MatchString(module) {
		return usagef("%q cannot be the path of a module; choose one with --module", module)
	}
	version, replace, checkout, replaceStep := moduleVersion(), "", "", ""
	if sdk != "" {
		if sdk, err = filepath.Abs(sdk); err != nil {
			return err
		}
		version, replace = "v0.0.0", fmt.Sprintf("\nreplace github.com/acpgo/sdk => %s\n", goModString(sdk))
		// A clone on this machine is not on the CI server.
		checkout = "      - uses: actions/checkout@v4 # until the SDK is published\n        with: {repository: acpgo/sdk, " +
			"path: .acp}\n"
		replaceStep = "      - run: go mod edit -replace=github.com/acpgo/sdk=./.acp\n"
	} else if !fetchable(version) {
		return usagef("this acp is version %s, which cannot be fetched; name a clone of the SDK with --sdk DIR", version)
	}
	fill := strings.NewReplacer("MODULE", module, "NAME", programName(module), "GOVERSION", oldestGo, "VERSION", version,
		"CHECKOUT", checkout, "REPLACE", replaceStep)
	var created []string
	for _, f := range written {
		name := filepath.Join(dir, filepath.FromSlash(f.name))
		text, err := templates.ReadFile("templates/" + strings.Replace(f.template, "KIND", kind, 1) + ".tmpl")
		if err == nil {
			whole := fill.Replace(string(text))
			if f.name == "go.mod" {
				whole += replace
			}
			err = create(name, whole, 0o755, 0o644)
		}
		if err != nil {
			for _, name := range created {
				err = errors.Join(err, os.Remove(name))
			}
			return err
		}
		created = append(created, name)
	}
	fmt.Fprint(p.stdout, plain.Sprintf("Wrote the %s %s. Next:\n  cd %s\n  go mod tidy\n  go test ./...\n", kind, module,
		dir))
	return nil
}

// errExists says that a file exists, unlike fs.ErrExist, which can be about its directory.
var errExists = errors.New("already exists")

// create writes a file that must not exist yet, and creates its directory.
func create(name, text string, dirMode, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), dirMode); err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s %w", name, errExists)
	} else if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Close()); err != nil {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// fetchable reports whether a version of acp is that of a release. A pseudo-version is not, because its number depends
// on the tags of acp's own module.
func fetchable(version string) bool {
	return release.MatchString(version) && !pseudo.MatchString(version)
}

// programName returns the last element of a module's path that is not its major version, as the go command does.
func programName(module string) string { return path.Base(major.ReplaceAllString(module, "")) }

// goModString returns a path as go.mod quotes it.
func goModString(path string) string {
	if strings.ContainsAny(path, " \"'`(),[]{}\\") || strings.Contains(path, "//") {
		return fmt.Sprintf("%q", path)
	}
	return path
}
