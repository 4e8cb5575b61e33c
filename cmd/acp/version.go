package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk"
)

// newVersionCommand is acp version.
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

// version is what acp version and acp --version print.
func version() string {
	return fmt.Sprintf("acp %s (%s, %s/%s)\nschemas of %s %s, %s\n", moduleVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		sdk.SchemaPackage, sdk.SchemaVersion, sdk.SchemaDate)
}

// moduleVersion is the version of this module, or "(devel)" when it was built from a clone.
func moduleVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
