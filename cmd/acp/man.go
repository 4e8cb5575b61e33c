package main

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newManCommand returns the command acp man.
func newManCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "man",
		Short: "Print the manual page",
		Long: `Print the manual page, which describes all commands, in the format of man(1). It is installed in a directory of
manual pages when acp is packaged, and can also be read directly.`,
		Example: `  acp man | man -l -
  acp man > ~/.local/share/man/man1/acp.1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.writeMan(cmd.Root()) },
	}
}

// writeMan writes the pages of a command and its subcommands, one after the other.
func (p *program) writeMan(c *cobra.Command) error {
	c.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Source: "acp", Manual: "Agent Client Protocol"}
	err := doc.GenMan(c, header, p.stdout)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			err = errors.Join(err, p.writeMan(sub))
		}
	}
	return err
}
