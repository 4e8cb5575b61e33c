package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk"
)

// newVersionCommand returns the command acp version.
func newVersionCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of acp and of the protocol's schemas",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(p.stdout, version())
			return err
		},
	}
}

// version returns what acp version and acp --version print.
func version() string {
	return fmt.Sprintf("acp %s (%s, %s/%s)\nschemas of %s %s, %s\nrelease of the schema: %s\n",
		moduleVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		sdk.SchemaPackage, sdk.SchemaVersion, sdk.SchemaDate, cmp.Or(sdk.SchemaRelease, "not named by the package"))
}

// released is the version of a released binary. The release sets it with -ldflags=-X, because the go command does not
// stamp a tag on a module below the root of its repository.
var released string

// moduleVersion returns the version of this module, or "(devel)" if it was built from a clone.
func moduleVersion() string {
	if released != "" {
		return released
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
