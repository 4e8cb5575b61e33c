package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/internal/plain"
)

// The groups of commands, in the order in which the help lists them.
const (
	groupTalk         = "talk"
	groupRecordings   = "recordings"
	groupPrograms     = "programs"
	groupRequirements = "requirements"
	groupOther        = "other"
)

// run runs the program with the arguments and returns its exit status.
func run(p *program, args []string) int {
	root := newRoot(p)
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	if err == nil {
		return statusOK
	}
	e, ok := errors.AsType[*exit](err)
	if why := p.interrupted.Load(); why != nil {
		e, ok = &exit{why.status, why}, true // errors caused by the signal are not worth reporting
	}
	if !ok {
		e = &exit{statusUsage, err} // cobra's own errors are all usage errors
	}
	if e.err != nil {
		text := strings.TrimPrefix(strings.TrimSpace(e.err.Error()), "acp: ") // errors of the library have this prefix
		text = strings.ReplaceAll(text, "acp: connecting: acp: ", "connecting: ")
		if errors.Is(e.err, remote.ErrInsecure) {
			text += "; --allow-insecure allows that, and allow-insecure in the table of an agent"
		}
		// Text of an agent in an error must not begin a line.
		fmt.Fprintf(p.stderr, "acp: %s\n", strings.ReplaceAll(plain.Text(text), "\n", "\n  "))
		if e.status == statusUsage {
			fmt.Fprintf(p.stderr, "Run %q.\n", cmd.CommandPath()+" --help")
		}
	}
	return e.status
}

func newRoot(p *program) *cobra.Command {
	root := &cobra.Command{
		Use:   "acp",
		Short: "Talk to agents of the Agent Client Protocol; judge, record, probe and serve them",
		Long: `Acp is a client of the Agent Client Protocol for people and for scripts. It also judges, records and replays
connections, tests agents and clients against the protocol, and serves agents over the network. The programs may be
written in any language: to judge them, acp needs only the messages between an editor and an agent.

` + statusHelp,
		Example: `  acp run claude                        talk to an agent from the registry
  acp exec "What is this?" -- my-agent  one prompt, in a script
  acp record -o run.jsonl -- my-agent   in place of "my-agent" in the editor's configuration
  acp check run.jsonl                   what in it breaks the protocol
  acp show run.jsonl                    what was said
  acp inspect run.jsonl                 all of it in a browser
  acp probe -- my-agent                 what the agent does in a hundred scenarios
  acp serve -- my-agent                 the agent at a URL
  acp explain PRM-9                     one requirement, with a right and a wrong example`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 { // cobra lets an empty word pass
				return usagef("unknown command %q", args[0])
			}
			return cmd.Help()
		},
	}
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.AddGroup(
		&cobra.Group{ID: groupTalk, Title: "Agents:"},
		&cobra.Group{ID: groupRecordings, Title: "Recordings:"},
		&cobra.Group{ID: groupPrograms, Title: "Programs:"},
		&cobra.Group{ID: groupRequirements, Title: "Requirements:"},
		&cobra.Group{ID: groupOther, Title: "Other:"},
	)
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			prepare(c)
			root.AddCommand(c)
		}
	}
	add(groupTalk, newExecCommand(p), newRunCommand(p), newAgentsCommand(p), newConfigCommand(p))
	add(groupRecordings, newCheckCommand(p), newInspectCommand(p), newRecordCommand(p), newReplayCommand(p),
		newShowCommand(p))
	add(groupPrograms, newNewCommand(p), newServeCommand(p), newConnectCommand(p), newConductCommand(p),
		newTranslateCommand(p), newProbeCommand(p), newProbeClientCommand(p), newFakeAgentCommand(p))
	add(groupRequirements, newRulesCommand(p), newExplainCommand(p))
	add(groupOther, newVersionCommand(p), newManCommand(p), newMCPCommand(p))
	root.SetHelpCommandGroupID(groupOther)
	root.SetCompletionCommandGroupID(groupOther)
	root.SetVersionTemplate("{{.Version}}")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usagef("%w", err) })
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), "Flags.FlagUsages", "Flags.FlagUsagesWrapped 100"))
	return root
}

// prepare sets what all commands have in common, for a command and its subcommands.
func prepare(c *cobra.Command) {
	c.Flags().SortFlags = false
	c.DisableFlagsInUseLine = true
	for _, run := range []*func(*cobra.Command, []string) error{&c.RunE, &c.PersistentPreRunE} {
		if inner := *run; inner != nil {
			*run = func(cmd *cobra.Command, args []string) error { return failed(inner(cmd, args)) }
		}
	}
	for _, sub := range c.Commands() {
		prepare(sub)
	}
}
