// Acp is a client of the Agent Client Protocol for the terminal and for scripts. It also judges, records and replays
// connections of programs in any language, tests agents and clients against the protocol, and serves agents over the
// network.
//
// Run "acp help" for its commands, and "acp help COMMAND" for one of them.
package main

import (
	"os"

	"golang.org/x/term"
)

func main() {
	os.Exit(run(&program{
		stdin:  os.Stdin,
		stdout: os.Stdout,
		stderr: os.Stderr,
		colors: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(os.Stdout.Fd())),
	}, os.Args[1:]))
}
