package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/cmd/acp/internal/subject"
	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/conformance/report"
	"github.com/acpgo/sdk/internal/plain"
)

// probeFlags are the flags of acp probe.
type probeFlags struct {
	of *cobra.Command
	reportFlags
	prompts              []string
	env                  []string
	dir, home, auth      string
	only, skip           []string
	baseline             string
	jobs, runs, max      int
	timeout, quiet, rung time.Duration
	scenarioTime, time   time.Duration
	list, noProgress     bool
	protocol             int
	model                modelFlags
}

// newProbeCommand returns the command acp probe.
func newProbeCommand(p *program) *cobra.Command {
	f := &probeFlags{}
	c := &cobra.Command{
		Use:   "probe [FLAGS] -- AGENT [ARG...]",
		Short: "Test an agent against the protocol",
		Long: `Test an agent against the protocol: play many clients to it, each in a scenario that starts the agent anew, and
report for each requirement what the agent does. The probe needs no knowledge of the agent.

The prompts ask in plain words for files to be read and edited and for a command to be run, in a directory created
for each scenario. Whatever the agent then does not do is "not exercised", never passed. --prompt KIND=TEXT
sets a prompt that makes this agent do it, and an agent made for tests may offer the slash command probe-KIND.
In the agent's arguments and variables, {dir} stands for the scenario's directory.

The exit status is 0 if no MUST and nothing that the agent advertises fails, 1 if something does, and 3 if the agent
could not be started at all. A baseline file has one known failure per line, with its reason:

  PRM-10   # our model's library cannot be stopped
  SES-24`,
		Example: `  acp probe -- my-agent --acp
  acp probe --jobs 4 --output junit=acp.xml -- my-agent     for a CI server, and for people
  acp probe --only cancel-in-the-stream -- my-agent         one scenario
  acp probe --prompt 'permission=rm old.txt' -- my-agent    a prompt of your own
  acp probe --model-stub=claude -- claude-agent-acp         a fake model in place of the real one
  acp probe --model-stub --model-env 'API={url}/v1' -- my-agent`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case f.protocol != 1 && f.protocol != 2:
				return usagef("--protocol must be 1 or 2")
			case f.list && f.protocol == 2:
				return listScenarios(p, probe.DraftScenarios(), listPrompts())
			case f.list:
				return listScenarios(p, probe.AgentScenarios(), listPrompts())
			case len(args) == 0:
				return usagef("expected the agent's command")
			}
			return runProbe(p, f, args)
		},
	}
	flags := c.Flags()
	flags.SetInterspersed(false) // the agent's flags are its own
	f.reportFlags.add(c)
	flags.StringArrayVar(&f.prompts, "prompt", nil, "the prompt for a kind, as `KIND=TEXT`; --list shows the kinds")
	flags.StringArrayVar(&f.env, "env", nil, "a variable for the agent, as `NAME=VALUE`")
	flags.StringVar(&f.dir, "cwd", "", "the `DIR` in which the agent starts; default: the current one")
	flags.StringVar(&f.home, "home", "",
		"the agent's home in all scenarios, a `DIR` such as the one where it is logged in; default: an empty one for each")
	flags.IntVar(&f.protocol, "protocol", 1,
		"the `VERSION` of the protocol to probe: 1, or 2, which is in Preview and has fewer scenarios")
	flags.StringVar(&f.auth, "auth", "", "the `METHOD` of authentication, if the agent asks for one")
	f.addCommon(c, "agent")
	flags.BoolVar(&f.list, "list", false, "list the scenarios and the kinds of prompts")
	f.model.add(flags)
	complete(c, "model-stub", presetNames()...)
	return c
}

// addCommon adds the flags that all probes share.
func (f *probeFlags) addCommon(c *cobra.Command, what string) {
	f.of = c
	flags := c.Flags()
	flags.StringSliceVar(&f.only, "only", nil,
		"only these: a `SCENARIO`, a requirement such as SES-7, or a page such as SES")
	flags.StringSliceVar(&f.skip, "skip", nil, "not these: a `SCENARIO`, a requirement or a page")
	flags.StringVar(&f.baseline, "baseline", "", "a `FILE` of known failures")
	flags.IntVar(&f.jobs, "jobs", 1, "play `N` scenarios at a time")
	flags.IntVar(&f.runs, "runs", 1, "play everything `N` times, and report what differs")
	flags.DurationVar(&f.timeout, "timeout", 30*time.Second, "the `TIME` limit for the start and for each response")
	flags.DurationVar(&f.quiet, "quiet", 0,
		"the `TIME` of silence after which nothing more is expected; default: a tenth of --timeout")
	flags.DurationVar(&f.rung, "end-timeout", 2*time.Second, "the `TIME` for each step of ending the "+what+
		": closed input, TERM, KILL")
	flags.DurationVar(&f.scenarioTime, "scenario-timeout", 0,
		"the `TIME` limit for a scenario; default: four times --timeout")
	flags.DurationVar(&f.time, "total-timeout", 0, "the `TIME` limit for everything; default: none")
	flags.IntVar(&f.max, "max", 0, "show at most `N` failures of each requirement; -1 shows all (default 10)")
	flags.BoolVar(&f.noProgress, "no-progress", false, "do not show progress on a terminal")
}

// listScenarios lists scenarios, and then what their players do.
func listScenarios(p *program, scenarios []probe.Scenario, more string) error {
	w := bufio.NewWriter(p.stdout)
	fmt.Fprintln(w, "Scenarios:")
	for _, s := range scenarios {
		fmt.Fprintf(w, "  %s\n    %s\n", s.Name, s.Text)
		if len(s.Needs) > 0 {
			fmt.Fprintf(w, "    needs: %s\n", strings.Join(s.Needs, ", "))
		}
		if len(s.Prompts) > 0 {
			fmt.Fprintf(w, "    prompts: %s\n", strings.Join(s.Prompts, ", "))
		}
	}
	fmt.Fprint(w, "\n", more)
	return w.Flush()
}

// listPrompts returns the list of the kinds of prompts.
func listPrompts() string {
	var text strings.Builder
	text.WriteString("Kinds of prompts and their texts:\n")
	for _, kind := range probe.PromptKinds() {
		fmt.Fprintf(&text, "  %-10s  %s\n", kind, probe.DefaultPrompts[kind])
	}
	return text.String()
}

// options returns the options of the probe according to the flags. The caller removes the scratch directory.
func (f *probeFlags) options(command []string) (*probe.Options, error) {
	o := &probe.Options{
		Target: strings.Join(command, " "), Version: moduleVersion(), Auth: f.auth, Only: f.only, Skip: f.skip,
		Prompts: map[string]string{}, Jobs: f.jobs, Runs: f.runs, Answer: f.timeout, Quiet: f.quiet, Rung: f.rung,
		ScenarioTime: f.scenarioTime, Time: f.time,
	}
	if command != nil {
		o.Repeat = func(scenario string) string { return f.repeat(scenario, command) }
	}
	for _, prompt := range f.prompts {
		kind, text, ok := strings.Cut(prompt, "=")
		if _, known := probe.DefaultPrompts[kind]; !ok || !known {
			return nil, usagef("--prompt %q: expected KIND=TEXT, with one of %s", prompt,
				strings.Join(probe.PromptKinds(), ", "))
		}
		o.Prompts[kind] = text
	}
	for _, variable := range f.env {
		if name, _, ok := strings.Cut(variable, "="); !ok || name == "" {
			return nil, usagef("--env %q: expected NAME=VALUE", variable)
		}
	}
	if f.jobs < 1 || f.runs < 1 {
		return nil, usagef("--jobs and --runs must be 1 or more")
	}
	if f.timeout <= 0 || f.quiet < 0 || f.rung <= 0 || f.scenarioTime < 0 || f.time < 0 {
		return nil, usagef("times must be greater than 0")
	}
	var err error
	if f.baseline != "" {
		if o.Baseline, err = readBaseline(f.baseline); err != nil {
			return nil, err
		}
	}
	if program, err := os.Executable(); err == nil {
		o.MCP = func(file string) (string, []string) { return program, []string{mcpCommand, file} }
	}
	if o.Scratch, err = os.MkdirTemp("", "acp-probe-"); err != nil {
		return nil, err
	}
	return o, nil
}

// readBaseline reads the known failures: one requirement per line, and the reason after #.
func readBaseline(name string) (map[string]string, error) {
	text, err := input.ReadFile(name, maxAccepted)
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		id, reason, _ := strings.Cut(lines.Text(), "#")
		if id = strings.TrimSpace(id); id == "" {
			continue
		}
		if strings.ContainsAny(id, " \t") {
			return nil, usagef("%s:%d: expected a requirement and, after #, the reason", name, number)
		}
		known[id] = strings.TrimSpace(reason)
	}
	return known, lines.Err()
}

// repeated are the flags that decide what a scenario does.
var repeated = []string{"prompt", "type", "env", "cwd", "home", "auth", "protocol", "no-interrupt", "model-stub",
	"model-env"}

// repeat returns the command that plays one scenario alone.
func (f *probeFlags) repeat(scenario string, command []string) string {
	words := []string{"acp", f.of.Name(), "--only", scenario}
	f.of.Flags().Visit(func(flag *pflag.Flag) {
		list, isList := flag.Value.(pflag.SliceValue)
		switch {
		case !slices.Contains(repeated, flag.Name):
		case isList:
			for _, value := range list.GetSlice() {
				words = append(words, "--"+flag.Name, value)
			}
		default:
			words = append(words, "--"+flag.Name+"="+flag.Value.String())
		}
	})
	return shellLine(append(append(words, "--"), command...))
}

// shellLine returns a command as a line for a shell.
func shellLine(words []string) string { return launch.New(words[0], words[1:]...).String() }

func runProbe(p *program, f *probeFlags, args []string) (err error) {
	if err := f.model.check(); err != nil {
		return err
	}
	command := &subject.Command{Args: args, Env: f.env, Dir: f.dir, Home: f.home, Rung: f.rung}
	if err := command.Resolve(); err != nil {
		return err
	}
	o, err := f.options(args)
	if err != nil {
		return err
	}
	o.Protocol = f.protocol
	if f.model.preset != "" {
		root, failed := filepath.EvalSymlinks(o.Scratch)
		var model *fakeModel
		if failed == nil {
			model, failed = f.model.serve(filepath.Join(root, probe.Work))
		}
		if failed != nil {
			return errors.Join(failed, os.RemoveAll(o.Scratch))
		}
		defer func() {
			if model.model.Served() == 0 {
				fmt.Fprintln(p.stderr, "acp probe: the agent sent the fake model no request; --model-env can tell the agent "+
					"where the model is")
			}
			err = errors.Join(err, model.close())
		}()
		command.Env, command.Template = append(model.env, command.Env...), model.home
	}
	return f.run(p, o, func(ctx context.Context) (*probe.Report, error) { return probe.Agent(ctx, command.Launch, o) })
}

// run runs a probe, at most until an interrupt, and reports the results. It removes the scratch directory.
func (f *probeFlags) run(p *program, o *probe.Options, run func(context.Context) (*probe.Report, error)) (err error) {
	defer func() { err = errors.Join(err, os.RemoveAll(o.Scratch)) }()
	writeFiles, err := f.files()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	progress := newProgress(p.stderr, f.noProgress)
	o.Progress = progress.show
	r, interrupted := run(ctx)
	progress.end()
	if r == nil {
		return usagef("%w", interrupted)
	}
	if err := report.WriteProbe(p.stdout, r, report.Format(f.format.value),
		&report.TextOptions{Colors: p.colors, Max: f.max}); err != nil {
		return err
	}
	if err := writeFiles(func(w io.Writer, format report.Format) error {
		return report.WriteProbe(w, r, format, nil)
	}); err != nil {
		return err
	}
	switch {
	case interrupted != nil:
		return fmt.Errorf("not fully played: %w", interrupted)
	case !r.Conforms:
		return &exit{statusFindings, nil}
	case len(r.Summary.DidNotRun) > 0:
		return errors.New("not everything was played: --timeout gives the agent more time to respond")
	}
	return nil
}

// progress is a line on a terminal that shows the progress of a probe.
type progress struct {
	w     io.Writer // nil shows nothing
	width int
}

func newProgress(w io.Writer, no bool) *progress {
	file, ok := w.(*os.File)
	if no || !ok || !term.IsTerminal(int(file.Fd())) {
		return &progress{}
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width < 20 {
		width = 80
	}
	return &progress{w, width}
}

func (p *progress) show(done, all int, out *probe.Outcome) {
	if p.w == nil {
		return
	}
	how := "ok"
	switch {
	case len(out.Failed) > 0:
		how = strings.Join(out.Failed, " ")
	case out.Skipped != "":
		how = "not played"
	}
	p.line(fmt.Sprintf("%d/%d %s: %s", done, all, out.Name, how))
}

// line shows a text in place of the previous one.
func (p *progress) line(text string) {
	if p.w == nil {
		return
	}
	line := []rune(plain.Line(text))
	fmt.Fprintf(p.w, "\r\x1b[K%s", string(line[:min(len(line), p.width-1)]))
}

func (p *progress) end() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// mcpCommand is the command that agents under test start as an MCP server.
const mcpCommand = "mcp-server"

// newMCPCommand returns the hidden command of the fake MCP server.
func newMCPCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:    mcpCommand + " FILE",
		Short:  "Serve MCP to an agent under test",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) (err error) {
			log, err := os.Create(filepath.Clean(args[0]))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, log.Close()) }()
			return probe.ServeMCP(p.stdin, p.stdout, log)
		},
	}
}
