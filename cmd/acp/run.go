package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/cmd/acp/internal/agents"
	"github.com/acpgo/sdk/cmd/acp/internal/config"
	"github.com/acpgo/sdk/cmd/acp/internal/history"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/cmd/acp/internal/tui"
	"github.com/acpgo/sdk/conformance"
)

// runFlags are the flags of acp run that are not settings.
type runFlags struct {
	cfg      *config.Config
	start    tui.Start
	load     string
	cwd      string
	remember string
	plain    bool
	noMouse  bool
	watch    bool
	model    modelFlags
	trafficFlags
}

// longTime is the shortest duration of a tool call or a turn that acp run shows; "" means the default. Tests set it at
// link time, because durations on a busy machine would change their screens.
var longTime string

// newRunCommand returns the command acp run.
func newRunCommand(p *program) *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use:   "run [FLAGS] [AGENT | -- COMMAND [ARG...]]",
		Short: "Talk to an agent in the terminal",
		Long: `Talk to an agent in the terminal. The agent is a name from the configuration or the registry, a URL, or a command
after --; without any of them, it is the first agent of the configuration.

Press ? for the keys, and Ctrl-P for all actions. Ctrl-C cancels the turn; pressed twice, it quits.

The rules of --policy decide on permission requests; you are asked about those that they leave open. Your "always"
answers hold for the session, or with --remember for all sessions.

The plain mode writes line by line, without the alternate screen and without moving the cursor. It is also used if
$NO_COLOR or $ACCESSIBLE is set, or if $TERM is dumb. ":help" lists its commands.

Exit status:
    0  you quit
    1  --check has findings
    2  wrong usage, or no terminal (use acp exec in scripts)
    3  failed
    6  the agent exited while starting
  129  and the like: ended by a signal, 128 plus its number`,
		Example: `  acp run claude
  acp run --continue claude
  acp run --mode plan --policy rules.json -- my-agent --acp
  acp run --record run.jsonl --check gemini
  acp run --watch --check -- go run .
  acp run --model-stub -- coder         a fake model in place of a real one`,
		Args: cobra.ArbitraryArgs,
	}
	f.cfg = config.Bind(c)
	c.ValidArgsFunction = completeAgent(f.cfg)
	agentFlag(c, f.cfg)
	flags := c.Flags()
	flags.BoolVarP(&f.start.Continue, "continue", "c", false, "continue the last session of this directory")
	flags.StringVar(&f.load, "load", "", "open the stored session with this `ID`")
	flags.BoolVar(&f.start.NoHistory, "no-history", false, "with --load: do not show the earlier conversation")
	flags.BoolVar(&f.start.Pick, "pick", false, "first choose from the stored sessions")
	flags.StringVarP(&f.cwd, "cwd", "C", ".", "the `DIR` in which the agent works")
	flags.StringVar(&f.remember, "remember", "", "save your \"always\" decisions for all sessions in a `FILE` of rules")
	f.trafficFlags.add(c, "show violations of the protocol")
	flags.BoolVar(&f.plain, "plain", false, "write line by line")
	flags.BoolVar(&f.watch, "watch", false,
		"restart the agent's command when files in the current directory change, and reopen its sessions")
	flags.BoolVar(&f.noMouse, "no-mouse", false, "leave the mouse to the terminal")
	f.model.add(flags)
	complete(c, "model-stub", presetNames()...)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return talkTo(p, f, args, cmd.ArgsLenAtDash())
	}
	return c
}

// talkTo runs the conversation.
func talkTo(p *program, f *runFlags, args []string, dash int) (err error) {
	in, _ := p.stdin.(*os.File)
	out, _ := p.stdout.(*os.File)
	if !isTerminal(p.stdin) || !isTerminal(p.stdout) {
		return usagef("standard input or output is not a terminal; in scripts, use acp exec")
	}
	var findings atomic.Int64
	o := &tui.Options{In: in, Out: out, Start: f.start, NoMouse: f.noMouse, Notify: tui.Notify(f.cfg.Notify)}
	if longTime != "" {
		if o.Long, err = time.ParseDuration(longTime); err != nil {
			return err
		}
	}
	o.Start.Session = acp.SessionID(f.load)
	if err := f.settings(o); err != nil {
		return err
	}
	agent, err := runAgent(p, f.cfg, args, dash)
	if err != nil {
		return err
	}
	if f.model.preset != "" {
		if agent.Command == nil {
			return usagef("--model-stub needs an agent that is a command")
		}
		model, failed := f.model.serve(o.Talk.Cwd)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, model.close()) }()
		model.lead(agent.Command)
	}
	o.Talk = *withAgent(&o.Talk, f.cfg, agent)
	if f.watch {
		if agent.Command == nil {
			return usagef("--watch needs an agent that is a command")
		}
		o.Watch = "."
	}
	o.Resume = func(id acp.SessionID) string {
		words := []string{"run", "--load", string(id)}
		if f.cwd != "." {
			words = append(words, "--cwd", f.cwd)
		}
		words = append(words, f.model.words()...)
		switch {
		case dash == 0:
			words = append(append(words, "--"), args...)
		default:
			words = append(words, cmp.Or(agent.URL, agent.Name))
		}
		return launch.New("acp", words...).String()
	}
	o.Setup = func(ctx context.Context, s *talk.Session) error { return choose(ctx, s, &agent.Settings) }
	if f.check {
		o.Talk.Findings = func(conformance.Finding) { findings.Add(1) }
		o.Level = f.level.level
	}
	if f.record != "" {
		file, err := input.Create(recordFile(f.record, agent.Name, time.Now()))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		o.Talk.Record = file
	}
	run := tui.Run
	if f.plain || !p.colors || os.Getenv("ACCESSIBLE") != "" {
		run = tui.RunPlain
	}
	err = run(context.Background(), o)
	if ended, ok := errors.AsType[*tui.SignalError](err); ok {
		status := statusFailed
		if number, ok := ended.Signal.(syscall.Signal); ok {
			status = 128 + int(number)
		}
		return &exit{status, err}
	}
	if errors.Is(err, acp.ErrClosed) {
		return &exit{statusDied, err}
	}
	if err == nil && findings.Load() > 0 {
		return &exit{statusFindings, nil}
	}
	return err
}

// settings applies the flags and settings that concern sessions.
func (f *runFlags) settings(o *tui.Options) error {
	switch {
	case f.start.NoHistory && f.load == "":
		return usagef("--no-history needs --load")
	case f.model.check() != nil:
		return f.model.check()
	case f.start.Continue && (f.load != "" || f.start.Pick) || f.load != "" && f.start.Pick:
		return usagef("expected one of --continue, --load and --pick")
	}
	if err := f.trafficFlags.valid(); err != nil {
		return err
	}
	options, err := talkOptions(f.cfg, f.cwd)
	if err != nil {
		return err
	}
	o.Talk = *options
	if !f.cfg.ForgetPrompts {
		if prompts, err := history.For(options.Cwd); err == nil { // on error there is no place to store prompts
			o.Prompts = prompts
		}
	}
	o.Talk.NoMask = f.noMask
	o.Talk.MemoryFile = f.remember
	return nil
}

// runAgent returns the agent that the arguments name.
func runAgent(p *program, cfg *config.Config, args []string, dash int) (*agents.Agent, error) {
	switch {
	case dash == 0:
		agent, err := p.resolver(cfg).Command(args)
		if err != nil {
			return nil, &exit{statusUsage, err}
		}
		return agent, nil
	case dash > 0 || len(args) > 1:
		return nil, usagef("expected one AGENT, or -- and its command")
	case len(args) == 1:
		return p.resolver(cfg).Resolve(context.Background(), args[0])
	case cfg.Agent != "":
		return p.resolver(cfg).Resolve(context.Background(), cfg.Agent)
	}
	r := p.resolver(cfg)
	names := r.Names()
	if len(names) == 0 {
		return nil, usagef("expected an AGENT, or -- and its command; acp agents search finds agents to install")
	}
	ctx, stop := p.untilInterrupted()
	defer stop()
	name, err := p.askName(ctx, names, "Which agent? ")
	if err != nil {
		return nil, err
	}
	return r.Resolve(ctx, name)
}
