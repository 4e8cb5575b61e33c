package main

// This file owns acp run.

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/cmd/acp/internal/agents"
	"github.com/acpgo/sdk/cmd/acp/internal/config"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/cmd/acp/internal/tui"
)

// runFlags are the flags of acp run that are no settings.
type runFlags struct {
	start tui.Start
	id    string
	plain bool
}

// newRunCommand is acp run.
func newRunCommand(p *program) *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use:   "run [FLAGS] [AGENT | -- COMMAND [ARG...]]",
		Short: "Talk to an agent in the terminal",
		Long: `Talk to an agent in the terminal. AGENT is a name of the configuration or of the registry, or a URL; without it, it
is the agent of the configuration. A command behind "--" is the agent itself.

Press ? for the keys, and Ctrl-P for everything that can be done. Ctrl-C cancels the turn, twice leaves.`,
		Example: `  acp run claude                 an agent of the registry
  acp run --continue claude      go on with the last session of this directory
  acp run -- my-agent --acp      a command`,
		Args: cobra.ArbitraryArgs,
	}
	cfg := config.Bind(c)
	c.ValidArgsFunction = completeAgent(cfg)
	agentFlag(c, cfg)
	flags := c.Flags()
	flags.BoolVarP(&f.start.Continue, "continue", "c", false, "go on with the last session of this directory")
	flags.StringVar(&f.id, "load", "", "open the stored session with this `ID`")
	flags.BoolVar(&f.start.NoHistory, "no-history", false, "with --load: do not show what was said before")
	flags.BoolVar(&f.start.Pick, "pick", false, "choose from the stored sessions at first")
	flags.BoolVar(&f.plain, "plain", false, "write line by line, without the alternate screen; also if $NO_COLOR or $ACCESSIBLE is set, or $TERM is dumb")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return talkTo(cmd.Context(), p, f, cfg, cmd.ArgsLenAtDash(), args)
	}
	return c
}

// talkTo runs the conversation.
func talkTo(ctx context.Context, p *program, f *runFlags, cfg *config.Config, dash int, args []string) error {
	in, _ := p.stdin.(*os.File)
	out, _ := p.stdout.(*os.File)
	if !isTerminal(p.stdin) || !isTerminal(p.stdout) {
		return usagef("standard input and output are no terminal: for scripts there is acp exec")
	}
	agent, err := runAgent(ctx, p, cfg, dash, args)
	if err != nil {
		return err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	o := &tui.Options{
		Talk:  talk.Options{Agent: talk.Agent{Name: agent.Name, Connect: agent.Connect, Command: agent.Command}, Version: moduleVersion(), Cwd: cwd},
		Start: f.start, In: in, Out: out,
	}
	if f.plain || !p.colors || os.Getenv("ACCESSIBLE") != "" {
		return tui.RunPlain(ctx, o)
	}
	return tui.Run(ctx, o)
}

// runAgent is the agent that the arguments name.
func runAgent(ctx context.Context, p *program, cfg *config.Config, dash int, args []string) (*agents.Agent, error) {
	switch {
	case dash == 0:
		return agents.Command(args)
	case len(args) > 1 || dash > 0:
		return nil, usagef("want one AGENT, or -- and a command")
	case len(args) == 1:
		return p.resolver(cfg).Resolve(ctx, args[0])
	case len(cfg.Agents) > 0:
		return p.resolver(cfg).Resolve(ctx, cfg.Agents[0])
	}
	return nil, usagef("want an AGENT, or -- and a command")
}
