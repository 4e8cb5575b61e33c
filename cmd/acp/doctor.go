package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/cmd/acp/internal/agents"
	"github.com/acpgo/sdk/internal/plain"
)

func (a *agentsCommand) doctorCommand() *cobra.Command {
	o := &launch.DoctorOptions{}
	c := &cobra.Command{
		Use:   "doctor [FLAGS] AGENT | -- COMMAND [ARG...]",
		Short: "Find out why an agent does not start",
		Long: `Find out why an agent does not start: its program is missing or made for another system, Node.js is too old, it
prints something that is not a message, or the user has to log in. The agent is started as a client does it, and a
session is opened.

The exit status is 0 if the agent can be used, and 1 if it cannot.`,
		Example: `  acp agents doctor gemini
  acp agents doctor -- my-agent --acp
  acp agents doctor wss://agent.example/acp`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeAgents(true),
		RunE: a.p.until(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			agent, err := a.findAgent(ctx, cmd, args)
			if err != nil {
				return err
			}
			o.Client = acp.ClientOptions{Info: acp.Implementation{Name: "acp", Version: moduleVersion()}, TerminalAuth: true}
			return a.doctor(ctx, agent, o)
		}),
	}
	flags := c.Flags()
	a.jsonFlag(c)
	flags.BoolVar(&o.NoSession, "no-session", false, "do not open a session")
	flags.DurationVar(&o.Time, "timeout", 2*time.Minute, "the `TIME` limit for the whole examination")
	return c
}

// findAgent returns the agent that the arguments name: a name, a URL, or a command after --.
func (a *agentsCommand) findAgent(ctx context.Context, cmd *cobra.Command, args []string) (*agents.Agent, error) {
	switch dash := cmd.ArgsLenAtDash(); {
	case dash == 0 && len(args) > 0:
		return a.p.resolver(a.cfg).Command(args)
	case dash < 0 && len(args) == 1:
		return a.p.resolver(a.cfg).Resolve(ctx, args[0])
	}
	return nil, usagef("expected one agent, or -- and a command")
}

// masked returns a command without the values of its variables, which may be secret.
func masked(c *launch.Command) *launch.Command {
	shown := *c
	shown.Env = maps.Clone(c.Env)
	for name := range shown.Env {
		shown.Env[name] = "***"
	}
	return &shown
}

// diagnosis is the JSON output of acp agents doctor.
type diagnosis struct {
	Name     string    `json:"name"`
	Command  string    `json:"command,omitempty"`
	Program  string    `json:"program,omitempty"`
	URL      string    `json:"url,omitempty"`
	OK       bool      `json:"ok"`
	Agent    string    `json:"agent,omitempty"`
	Version  string    `json:"version,omitempty"`
	Protocol int       `json:"protocolVersion,omitempty"`
	Seconds  float64   `json:"seconds,omitempty"` // until the response to initialize
	Session  bool      `json:"session"`
	Problems []problem `json:"problems"`
	Stderr   string    `json:"stderr,omitempty"`
}

// problem is one problem that was found.
type problem struct {
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Advice string `json:"advice,omitempty"`
	Blocks bool   `json:"blocks"`
}

// doctor examines an agent and prints what it found.
func (a *agentsCommand) doctor(ctx context.Context, agent *agents.Agent, o *launch.DoctorOptions) error {
	if agent.Command == nil {
		return a.doctorURL(ctx, agent, o)
	}
	d := launch.Doctor(ctx, agent.Command, o)
	if agent.Installed == nil {
		d.Command = masked(d.Command) // what the registry contains is not secret
	}
	if !a.json {
		fmt.Fprintln(a.p.stdout, plain.Text(d.String()))
		return healthy(d.OK())
	}
	out := diagnosis{Name: agent.Name, Command: d.Command.String(), Program: d.Program, OK: d.OK(), Session: d.Session,
		Problems: []problem{}, Stderr: d.Output.Stderr}
	out.answered(d.Agent, d.Took)
	out.Protocol = d.Protocol
	for _, p := range d.Problems {
		out.Problems = append(out.Problems, problem{string(p.Kind), p.Text, p.Advice, p.Blocks})
	}
	if err := a.write(out); err != nil {
		return err
	}
	return healthy(d.OK())
}

// answered takes over the agent's response to initialize, if there is one.
func (d *diagnosis) answered(res *acp.InitializeResponse, took time.Duration) {
	if res != nil {
		info := res.AgentInfo.Value()
		d.Agent, d.Version, d.Seconds = info.Name, info.Version, took.Seconds()
	}
}

// healthy returns the result of an examination: nil, or the exit status for findings.
func healthy(ok bool) error {
	if ok {
		return nil
	}
	return &exit{statusFindings, nil}
}

// doctorURL connects to an agent at a URL. It opens no session, because the directories there are not known.
func (a *agentsCommand) doctorURL(ctx context.Context, agent *agents.Agent, o *launch.DoctorOptions) error {
	ctx, cancel := context.WithTimeout(ctx, o.Time)
	defer cancel()
	transport, err := agent.Connect(ctx)
	if err != nil {
		return err
	}
	options := o.Client
	options.TerminalAuth = false
	options.Conn.Logger = slog.New(slog.DiscardHandler)
	out := diagnosis{Name: agent.Name, URL: harmless(agent.URL), Problems: []problem{}}
	began := time.Now()
	transport = translate.Transport(transport, translate.ClientSide, 1,
		&translate.Options{Chosen: func(version int) { out.Protocol = version }})
	conn, err := acp.Connect(ctx, transport, acp.ClientHandlers{}, &options)
	if err != nil {
		out.Problems = append(out.Problems, problem{Kind: "not reached", Text: err.Error(), Blocks: true})
	} else {
		out.OK = true
		out.answered(conn.Initialized(), time.Since(began))
		_ = conn.Close() // how the connection ends does not matter here
	}
	if a.json {
		if err := a.write(out); err != nil {
			return err
		}
		return healthy(out.OK)
	}
	line := func(format string, args ...any) { fmt.Fprintln(a.p.stdout, plain.Sprintf(format, args...)) }
	line("url:     %s", out.URL)
	if out.OK {
		line("agent:   %s %s, protocol version %d, answered after %.3fs", out.Agent, out.Version, out.Protocol, out.Seconds)
		line("ok")
	}
	for _, p := range out.Problems {
		line("problem: %s: %s", p.Kind, p.Text)
	}
	return healthy(out.OK)
}
