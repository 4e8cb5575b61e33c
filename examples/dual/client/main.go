// Command client starts an agent, talks to it in version 2 of the Agent Client Protocol, or in version 1
// if the agent does not speak that, and prints what it does.
//
//	client [-version N] [-check] PROMPT... -- AGENT [arguments]
//
// The agent's requests for permission are granted during a prompt that begins with "allow:", and refused otherwise. A
// prompt that begins with "cancel:" is cancelled as soon as the agent says something. With -version the client speaks
// only one version. With -check every message is validated against the schema of the version negotiated; the last line
// then has the form "123 messages, 0 findings", and with findings the exit status is 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"

	"github.com/acpgo/sdk/acp/negotiate"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/conformance"
)

// config is the parsed command line.
type config struct {
	version int // the only version to speak, or 0
	check   bool
	plays   []play
	command []string
}

func main() {
	c, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx, c, os.Stdout)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "client:", view.PrintableLine(err.Error()))
		os.Exit(1)
	}
}

// parse reads the command line.
func parse(args []string, usage io.Writer) (config, error) {
	var c config
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.IntVar(&c.version, "version", 0, "the only version to speak; 0 is both, 1 and 2")
	flags.BoolVar(&c.check, "check", false, "check every message")
	if err := flags.Parse(args); err != nil {
		return c, flag.ErrHelp
	}
	rest := flags.Args()
	end := slices.Index(rest, "--")
	if end < 0 || end == len(rest)-1 || c.version < 0 || c.version > 2 {
		return c, errors.New("usage: client [-version 1|2] [-check] PROMPT... -- AGENT [arguments]")
	}
	for _, text := range rest[:end] {
		c.plays = append(c.plays, newPlay(text))
	}
	c.command = rest[end+1:]
	return c, nil
}

var errFindings = errors.New("messages did not conform")

// run starts the agent and runs all plays.
func run(ctx context.Context, c config, out io.Writer) error {
	p := &printer{w: out}
	monitor := conformance.NewMonitor(conformance.Negotiated(conformance.V1(), conformance.V2()), &conformance.MonitorOptions{
		OnMessage: func(m conformance.Message) { p.findings(m.Findings) },
		OnEnd:     p.findings,
	})
	command := exec.Command(c.command[0], c.command[1:]...)
	stderr := view.NewPrintableWriter(os.Stderr, "agent: ")
	command.Stderr = stderr
	var transport rpc.Transport = rpc.Command(command)
	if c.check {
		transport = monitor.WrapClient(transport)
	}
	err := errors.Join(converse(ctx, c, transport, p), stderr.Flush())
	if c.check {
		p.line("%s", monitor.Stats())
		if monitor.Stats().Findings() > 0 {
			err = errors.Join(err, errFindings)
		}
	}
	return err
}

// peer is an agent, in one of the versions.
type peer interface {
	// open opens a session in a directory.
	open(ctx context.Context, cwd string) error
	// prompt runs a turn and returns the reason why it ended.
	prompt(ctx context.Context, p play) (stopReason string, err error)
	// close ends the session and the connection.
	close(ctx context.Context) error
}

// converse connects in the version that the agent speaks, and runs all plays in one session.
func converse(ctx context.Context, c config, transport rpc.Transport, p *printer) (err error) {
	v1, v2 := &peerV1{printer: p}, &peerV2{printer: p}
	client := negotiate.Client{V1: v1.connect, V2: v2.connect}
	switch c.version {
	case 1:
		client.V2 = nil
	case 2:
		client.V1 = nil
	}
	version, err := client.Connect(ctx, transport)
	if err != nil {
		return err
	}
	var agent peer = v1
	if version == 2 {
		agent = v2
	}
	p.line("version %d", version)
	defer func() { err = errors.Join(err, agent.close(ctx)) }()
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := agent.open(ctx, cwd); err != nil {
		return err
	}
	for _, play := range c.plays {
		p.line("> %s", play.text)
		reason, err := agent.prompt(ctx, play)
		if err != nil {
			return err
		}
		p.line("stopped: %s", reason)
	}
	return nil
}
