package main

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/cmd/acp/internal/config"
	"github.com/acpgo/sdk/cmd/acp/internal/gateway"
	"github.com/acpgo/sdk/internal/plain"
)

// newTranslateCommand returns the command acp translate.
func newTranslateCommand(p *program) *cobra.Command {
	var to int
	var files, terminals bool
	var cfg *config.Config
	c := &cobra.Command{
		Use:   "translate [FLAGS] -- AGENT [ARG...]",
		Short: "Translate between versions 1 and 2 of the protocol",
		Long: `Run an agent for clients of either version of the protocol. An editor starts this in place of the agent.

The agent is asked for the version that the client asks for. If it speaks that one, messages pass unchanged; otherwise
they are translated. --to asks for one version only, for example to try an agent in version 2 with a client that has
only version 1. The messages of clients that have both versions always pass.

docs/translate.md says what becomes of each message, and what has no equivalent. A client of version 2 offers no files
and terminals, so an agent of version 1 has to do with its own, unless --files and --terminals offer it those of this
machine: the files in the directories of its sessions, and commands that start there. The client asks its user before
each write and each command, and shows the commands as terminals. Where nothing is translated, the two change nothing.

The exit status is 0 when the client ends its input, and 3 if the agent does not start or ends first.`,
		Example: `  acp translate -- my-agent --acp
  acp translate --files --terminals -- my-agent --acp
  acp translate --to 2 -- npx my-agent`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(_ *cobra.Command, args []string) (err error) {
			if len(args) == 0 {
				return usagef("expected the agent's command")
			}
			if to < 0 || to > 2 {
				return usagef("--to: expected 1 or 2, not %s", strconv.Itoa(to))
			}
			agent, err := p.resolver(cfg).Command(args)
			if err != nil {
				return usage(err)
			}
			ctx, _, stop := untilSignals()
			defer stop()
			said := plain.NewWriter(p.stderr, "")
			defer func() { err = errors.Join(err, said.Flush()) }()
			cmd := agent.Command.Cmd()
			cmd.Stderr = said
			transport := translate.Transport(rpc.Command(cmd), translate.ClientSide, 0, &translate.Options{
				Only: to, Host: hostOf(files, terminals)})
			return gateway.Connect(ctx, transport, rpc.Stdio())
		},
	}
	cfg = config.Bind(c)
	c.Flags().IntVar(&to, "to", 0,
		"the only `VERSION` to ask the agent for: 1 or 2; default: the client's, and then the other one")
	c.Flags().BoolVar(&files, "files", false,
		"for a client of version 2: let the agent read files of this machine, and ask before each write")
	c.Flags().BoolVar(&terminals, "terminals", false,
		"for a client of version 2: let the agent run commands on this machine, and ask before each")
	return c
}
