package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/cmd/acp/internal/config"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/cmd/acp/internal/subject"
	"github.com/acpgo/sdk/conformance/probe"
)

// probeClientFlags are the flags of acp probe-client.
type probeClientFlags struct {
	probeFlags

	types       []string
	noInterrupt bool
	outcomes    string
}

// actionTexts describe what the user of a client does for each action.
var actionTexts = map[probe.Action]string{
	probe.ActPrompt: "send a prompt, in a new session if there is none; any text will do",
	probe.ActCancel: "cancel the running turn; by default with an interrupt",
	probe.ActNew:    "create another session",
	probe.ActList:   "list the sessions",
	probe.ActLoad:   "load the session again, with its history",
	probe.ActResume: "resume the session, without its history",
	probe.ActClose:  "close the session",
	probe.ActDelete: "delete the session",
	probe.ActMode:   "switch the session to another of its modes: ask and code",
	probe.ActOption: "change one of the session's options, such as model to large",
	probe.ActToggle: "switch the session's option brief on or off",
	probe.ActLogout: "log out",
	probe.ActAllow:  "grant a permission request, accept a form or a link",
	probe.ActReject: "reject a permission request, dismiss a form or a link",
	probe.ActQuit:   "end the client; by default by closing its standard input",
}

// listActions returns the list of actions with their descriptions.
func listActions() string {
	var b strings.Builder
	for _, a := range probe.Actions {
		fmt.Fprintf(&b, "  %-7s %s\n", a, actionTexts[a])
	}
	return b.String()
}

// newProbeClientCommand returns the command acp probe-client.
func newProbeClientCommand(p *program) *cobra.Command {
	f := &probeClientFlags{}
	c := &cobra.Command{
		Use:   "probe-client [FLAGS] [-- CLIENT [ARG...]]",
		Short: "Test a client against the protocol",
		Long: `Test a client against the protocol: play many agents to it, and report for each requirement what the client does.

A client that is a command is started for each scenario, with the probe as its agent. In its arguments {agent}
stands for the words of the agent's command, {agent-line} for the command as one word, and {dir} (also in variables)
for the scenario's directory, in which the client starts. Without {agent} or {agent-line}, the agent's command is
appended.

--type ACTION=TEXT is a line to type when the client's user should do something, such as "prompt=hello". {session} in
the text stands for the id of the session that the client opened last. Actions without a --type are not exercised,
except cancel and quit, and except prompt if the client has its prompts in its arguments. The actions are

` + listActions() + `
An interrupt (Ctrl-C) cancels a turn, unless --no-interrupt is given.

Without a client it prints how to make well-known editors start "acp fake-agent", which plays one scenario per
prompt and says in the conversation what to do; it writes what it sees to a file. With --report FILE it then
reports what the client did.

The exit status is 0 if no MUST and nothing that the client states fails, and 1 if something does.`,
		Example: `  acp probe-client                                       how to make editors start the fake agent
  acp probe-client --report seen.jsonl                   what they did
  acp probe-client --type prompt=hello --type allow=1 -- my-client
  acp probe-client -- my-client --agent {agent-line} --prompt hello`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case f.list:
				return listScenarios(p, probe.ClientScenarios(), "Actions of the client's user:\n"+listActions())
			case f.outcomes != "" && len(args) > 0:
				return usagef("--report takes no client: it reads a file that acp fake-agent wrote")
			case f.outcomes != "":
				return reportOutcomes(p, f)
			case len(args) == 0:
				return printConfigurations(p)
			}
			return runProbeClient(p, f, args)
		},
	}
	flags := c.Flags()
	flags.SetInterspersed(false) // the client's flags are its own
	f.reportFlags.add(c)
	flags.StringVar(&f.outcomes, "report", "", "report on the `FILE` that acp fake-agent wrote")
	flags.StringArrayVar(&f.types, "type", nil, "what to type for an action, as `ACTION=TEXT`")
	flags.BoolVar(&f.noInterrupt, "no-interrupt", false, "do not interrupt the client to cancel a turn")
	flags.StringArrayVar(&f.env, "env", nil, "a variable for the client, as `NAME=VALUE`")
	flags.StringVar(&f.dir, "cwd", "", "the `DIR` in which the client starts; default: one for each scenario")
	f.addCommon(c, "client")
	flags.BoolVar(&f.list, "list", false, "list the scenarios and the actions")
	return c
}

// relayFlag is the flag of acp fake-agent that makes it pass everything on to a probe.
const relayFlag = "--connect"

func runProbeClient(p *program, f *probeClientFlags, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	client := &subject.Client{
		Command: subject.Command{Args: args, Env: f.env, Dir: f.dir, Rung: f.rung},
		Agent:   []string{self, "fake-agent", relayFlag}, Quote: shellLine, Type: map[probe.Action]string{},
		NoInterrupt: f.noInterrupt,
	}
	if err := client.Resolve(); err != nil {
		return err
	}
	for _, typed := range f.types {
		action, text, ok := strings.Cut(typed, "=")
		if !ok || !slices.Contains(probe.Actions, probe.Action(action)) {
			return usagef("--type %q: expected ACTION=TEXT, and %s as the action", typed, config.OrList(actionNames()))
		}
		if text == "" && action == string(probe.ActQuit) {
			return usagef("--type quit=: expected the text that ends the client; to close its standard input, leave out " +
				"--type quit")
		}
		client.Type[probe.Action(action)] = text
	}
	o, err := f.options(args)
	if err != nil {
		return err
	}
	return f.run(p, o, func(ctx context.Context) (*probe.Report, error) { return probe.Client(ctx, client.Launch, o) })
}

func actionNames() (names []string) {
	for _, a := range probe.Actions {
		names = append(names, string(a))
	}
	return names
}

// reportOutcomes reports on a file that acp fake-agent wrote.
func reportOutcomes(p *program, f *probeClientFlags) error {
	o, err := f.options(nil)
	if err != nil {
		return err
	}
	file, err := input.Open(f.outcomes)
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", f.outcomes, err), os.RemoveAll(o.Scratch))
	}
	defer file.Close()
	outcomes, err := probe.ReadOutcomes(file)
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", f.outcomes, err), os.RemoveAll(o.Scratch))
	}
	return f.run(p, o, func(context.Context) (*probe.Report, error) { return probe.ClientReport(outcomes, o) })
}

// configurations shows how to make well-known clients start an agent. COMMAND and REPORT are JSON texts, LINE is for a
// shell.
const configurations = `Make your client start this command as its agent:

  {line}

Each prompt is then the next scenario; the agent says what to do. Afterwards:

  acp probe-client --report {shell-report}

Zed, settings.json:
  {"agent_servers": {"acp probe": {"type": "custom", "command": {command}, "args": ["fake-agent", "--report", {report}], "env": {}}}}

acpx:
  acpx --approve-all --agent {quoted-line} exec hello

codecompanion.nvim, in setup():
  adapters = { acp = { acp_probe = function()
    return require("codecompanion.adapters").extend("opencode", {
      name = "acp_probe", formatted_name = "acp probe", commands = { default = { {command}, "fake-agent", "--report", {report} } } })
  end } }

avante.nvim, in setup():
  provider = "acp-probe",
  acp_providers = { ["acp-probe"] = { command = {command}, args = { "fake-agent", "--report", {report} } } }

agent-shell (Emacs):
  (agent-shell-start :config (agent-shell-make-agent-config
    :identifier 'acp-probe :mode-line-name "probe" :buffer-name "probe" :shell-prompt "> " :shell-prompt-regexp "> "
    :client-maker (lambda (buffer) (acp-make-client :command {command}
      :command-params '("fake-agent" "--report" {report}) :context-buffer buffer))))
`

// printConfigurations prints how to make clients start the fake agent.
func printConfigurations(p *program) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	file, err := filepath.Abs("acp-probe-client.jsonl")
	if err != nil {
		return err
	}
	line := shellLine([]string{self, "fake-agent", "--report", file})
	_, err = strings.NewReplacer(
		"{line}", line, "{quoted-line}", shellLine([]string{line}), "{command}", strconv.Quote(self), "{report}",
		strconv.Quote(file), "{shell-report}", shellLine([]string{file}),
	).WriteString(p.stdout, configurations)
	return err
}

// loginSucceeds is the value of --login for a terminal login that succeeds, in the methods that the probe offers.
const loginSucceeds = "succeeds"

// newFakeAgentCommand returns the command acp fake-agent.
func newFakeAgentCommand(p *program) *cobra.Command {
	var file, address, login string
	var only []string
	var patience time.Duration
	c := &cobra.Command{
		Use:   "fake-agent --report FILE",
		Short: "Play the agent for a client under test",
		Long: `Play the agent for a client under test, on standard input and output. Each prompt is the next scenario; the agent
says in the conversation what to do. What it sees is appended to the file; scenarios that the file already has are
not played again. acp probe-client --report FILE says what it means.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			switch {
			case address != "" && login != "":
				if err := subject.Login(address); err != nil || login == loginSucceeds {
					return err
				}
				return errors.New("this login fails on purpose")
			case address != "":
				return subject.Relay(address, p.stdin, p.stdout, p.stderr)
			case file == "":
				return usagef("expected --report FILE")
			}
			return fakeAgent(p, file, only, patience)
		},
	}
	flags := c.Flags()
	flags.StringVar(&file, "report", "", "the `FILE` to append to")
	flags.StringSliceVar(&only, "only", nil,
		"only these: a `SCENARIO`, a requirement such as PRM-9, or a page such as PRM")
	flags.DurationVar(&patience, "timeout", 5*time.Minute, "the `TIME` that a person has to do something")
	flags.StringVar(&address, strings.TrimPrefix(relayFlag, "--"), "",
		"the `ADDRESS` of the probe that started the client")
	flags.StringVar(&login, "login", "", "play a login in a terminal, which `succeeds` or fails")
	for _, hidden := range []string{strings.TrimPrefix(relayFlag, "--"), "login"} {
		if err := flags.MarkHidden(hidden); err != nil {
			panic(err) // there is no such flag
		}
	}
	return c
}

// fakeAgent plays the scenarios that the file does not have yet.
func fakeAgent(p *program, name string, only []string, patience time.Duration) (err error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	outcomes, err := probe.ReadOutcomes(file)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	done := map[string]bool{}
	for _, out := range outcomes {
		done[out.Name] = out.Skipped == ""
	}
	scratch, err := os.MkdirTemp("", "acp-fake-agent-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	ctx := context.Background()
	stream, err := rpc.IO(closer(p.stdin), writeCloser(p.stdout), 0).Connect(ctx)
	if err != nil {
		return err
	}
	target := &probe.Target{Stream: stream, Log: func(text []byte) error { _, err := p.stderr.Write(text); return err }}
	if fast, ok := stream.(rpc.FastStream); ok {
		target.Raw = fast.WriteLines
	}
	o := &probe.Options{
		Version: moduleVersion(), Scratch: scratch, Only: only, Answer: patience, Quiet: 3 * time.Second,
		Rung:         2 * time.Second,
		ScenarioTime: 24 * time.Hour,
	}
	return probe.Serve(ctx, target, o, done, func(out *probe.Outcome) error { return probe.WriteOutcome(file, out) })
}
