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

// written are the files of a new module, with their templates; KIND is what is made.
var written = []struct{ name, template string }{
	{"go.mod", "go.mod"},
	{"main.go", "KIND/main.go"},
	{"main_test.go", "KIND/main_test.go"},
	{".github/workflows/test.yml", "workflow.yml"},
}

// oldestGo is the Go version that new modules say.
const oldestGo = "1.26"

var (
	moduleName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]*(/[A-Za-z0-9._~-]+)*$`)
	release    = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)
)

// newNewCommand is acp new.
func newNewCommand(p *program) *cobra.Command {
	var module, sdk string
	c := &cobra.Command{
		Use:   "new [FLAGS] agent|client DIR",
		Short: "Write a new agent or client in Go, with its test and its CI workflow",
		Long: `Write a new agent or client in Go: a module with a program, its test, in which the judge fails what breaks the
protocol, and a workflow that runs the test. Files that are there are not overwritten.`,
		Example: `  acp new agent my-agent
  acp new client --module example.com/my-client --sdk ~/src/sdk my-client`,
		Args:      cobra.ArbitraryArgs,
		ValidArgs: []string{"agent", "client"},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 || args[0] != "agent" && args[0] != "client" {
				return usagef("want agent or client, and a folder")
			}
			return writeModule(p, args[0], args[1], module, sdk)
		},
	}
	c.Flags().StringVar(&module, "module", "", "the `PATH` of the module; default: the name of the folder")
	c.Flags().StringVar(&sdk, "sdk", "", "use the clone of the SDK in `DIR`, which is needed until the SDK is published")
	return c
}

// writeModule writes the files of a new module into a folder, all or none.
func writeModule(p *program, kind, dir, module, sdk string) error {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	module = cmp.Or(module, filepath.Base(whole))
	if !moduleName.MatchString(module) {
		return usagef("%q cannot be the path of a module; choose one with --module", module)
	}
	version := moduleVersion()
	if !release.MatchString(version) {
		version = "v0.0.0"
	}
	texts := map[string]string{}
	for _, f := range written {
		text, err := templates.ReadFile("templates/" + strings.Replace(f.template, "KIND", kind, 1) + ".tmpl")
		if err != nil {
			return err
		}
		name := filepath.Join(dir, filepath.FromSlash(f.name))
		texts[name] = strings.NewReplacer("MODULE", module, "NAME", path.Base(module), "GOVERSION", oldestGo, "VERSION", version).Replace(string(text))
		if _, err := os.Lstat(name); err == nil {
			return fmt.Errorf("%s is there already", name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if sdk != "" {
		if sdk, err = filepath.Abs(sdk); err != nil {
			return err
		}
		texts[filepath.Join(dir, "go.mod")] += fmt.Sprintf("\nreplace github.com/acpgo/sdk => %s\n", goModString(sdk))
	}
	for name, text := range texts {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	fmt.Fprint(p.stdout, plain.Sprintf("Wrote the %s %s. Next:\n  cd %s\n  go mod tidy\n  go test ./...\n", kind, module, dir))
	return nil
}

// goModString writes a path as go.mod has it.
func goModString(path string) string {
	if strings.ContainsAny(path, " \"'`(),[]{}\\") || strings.Contains(path, "//") {
		return fmt.Sprintf("%q", path)
	}
	return path
}
