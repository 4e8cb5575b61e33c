package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/acp/conduct"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/cmd/acp/internal/agents"
	"github.com/acpgo/sdk/cmd/acp/internal/config"
	"github.com/acpgo/sdk/cmd/acp/internal/gateway"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/internal/plain"
)

// conductFlags are the flags of acp conduct.
type conductFlags struct {
	cfg   *config.Config
	agent string
	trace string
	time  time.Duration
}

// newConductCommand is acp conduct.
func newConductCommand(p *program) *cobra.Command {
	f := &conductFlags{}
	c := &cobra.Command{
		Use:   "conduct [FLAGS] [PROXY...] [-- AGENT [ARG...]]",
		Short: "Be an agent with proxies in front of it, on standard input and output",
		Long: `Be an agent with proxies in front of it, on standard input and output: for editors that start agents as commands.

Each PROXY is a command line in one argument, split into words as a shell does: a program that speaks
proxy/initialize and proxy/successor, which are a draft of the protocol. The client talks to the first proxy, and the
last one talks to the agent. The agent is a command behind --, or a name of the configuration or of the registry or a
URL (--agent). Without an agent the chain is itself a proxy, and can be one in another chain.

Clients trust the agents that they start as commands. So the requests of an agent at a URL for the client's files and
terminals are refused, unless --remote-files and --remote-terminals let them pass; then the client decides.

The programs start when the client sends initialize. Standard error has what they write there, with their place in
front: "proxy:0: ", "proxy:1: ", "agent: ". When one of them ends, all do: the client's requests fail with an error that
names it and says how it ended. No program is left running. If acp itself is killed, its programs lose their input,
and on Linux they are killed too.

--trace writes each message as a line of JSON. "type" is request, response or notification, "ts" the seconds since the
start, "protocol" acp or mcp, "from" and "to" the ends of the hop: client, proxy:0, agent, or successor. What acp itself
refuses or drops is "to" conductor. Lines that are not messages, and answers to nothing, are not in it. Requests have
"id", "method", "session" if there is one, and "params"; responses have "id", "is_error" and "payload". Nothing is
masked. A file that exists is replaced; %n, %t and %p in its name are those of acp record.

Exit status:
    0  the client has ended its input
    2  wrong usage
    3  a program of the chain could not be started, or has ended, or the trace could not be opened
  130  interrupted; 143 by the signal SIGTERM`,
		Example: `  acp conduct "context-proxy --file NOTES.md" -- my-agent --acp
  acp conduct --trace /tmp/chain.jsonl "policy-proxy" "tools-proxy -v" --agent claude
  acp conduct "acp conduct one-proxy other-proxy" -- my-agent        a chain in a chain`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
	}
	f.cfg = config.Bind(c)
	flags := c.Flags()
	flags.StringVar(&f.agent, "agent", "", "the agent, as a `NAME` of the configuration or of the registry, or a URL")
	flags.StringVar(&f.trace, "trace", "", "write each message into a `FILE`, with all secrets in it")
	flags.DurationVar(&f.time, "init-timeout", 2*time.Minute,
		"the `TIME` in which a program must have answered initialize")
	agentFlag(c, f.cfg)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		args, command, err := splitArgs(cmd, args)
		switch {
		case err != nil:
			return err
		case f.agent != "" && command != nil:
			return usagef("expected either --agent or a command after --")
		case f.agent == "" && command == nil && len(args) == 0:
			return usagef("expected proxies, an agent, or both")
		case f.time <= 0:
			return usagef("--init-timeout: expected a time above 0")
		}
		return conductChain(p, f, args, command)
	}
	return c
}

// conductChain runs the chain.
func conductChain(p *program, f *conductFlags, lines, command []string) (err error) {
	ctx, stop := p.untilInterrupted()
	defer stop()
	ch := &chainPrograms{stderr: &lockedWriter{w: p.stderr}, resolver: p.resolver(f.cfg)}
	defer func() { err = errors.Join(err, ch.flush()) }()
	ch.resolver.Logger = (&serveFlags{}).logger(ch.stderr)
	var proxies []conduct.Component
	for i, line := range lines {
		words, err := input.Words(line)
		if err != nil {
			return usagef("%q: %w", line, err)
		}
		proxy, err := ch.resolver.Command(words)
		if err != nil {
			return usagef("proxy %d: expected a command", i)
		}
		component, err := ch.component(ctx, fmt.Sprintf("proxy:%d", i), proxy)
		if err != nil {
			return err
		}
		proxies = append(proxies, component)
	}
	var last *conduct.Component
	if f.agent != "" || command != nil {
		found, err := oneAgent(ctx, ch.resolver, f.agent, command)
		if err != nil {
			return err
		}
		agent, err := ch.component(ctx, "agent", found)
		if err != nil {
			return err
		}
		last = &agent
	}
	o := &conduct.Options{Logger: ch.resolver.Logger, InitTime: f.time}
	if f.trace != "" {
		numbered := strings.Contains(strings.ReplaceAll(f.trace, "%%", ""), "%n")
		file, _, openErr := createRecording(f.trace, !numbered)
		if openErr != nil {
			return openErr
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		o.Trace = file
	}
	client := rpc.Transport(rpc.Stdio())
	if version := f.cfg.Settings.Version(); version != 1 { // the chain itself speaks version 1
		client = translate.Agent(client)
		if last != nil {
			last.Transport = translate.Transport(last.Transport, translate.ClientSide, 1, &translate.Options{Only: version})
		}
	}
	return conduct.Run(ctx, client, proxies, last, o)
}

// What a program of the chain is given to end, after its input has. It adds up to less than clients wait for an agent.
const (
	stopTime = time.Second            // before it is asked to end
	killTime = 500 * time.Millisecond // before it is killed
)

// chainPrograms makes the components of a chain.
type chainPrograms struct {
	resolver *agents.Resolver
	stderr   io.Writer
	said     []*plain.Writer // by the components on standard error
	starter  starter
}

// component is a program of the chain, or an agent at a URL.
func (ch *chainPrograms) component(ctx context.Context, place string, a *agents.Agent) (conduct.Component, error) {
	if a.Command == nil {
		transport, err := a.Connect(ctx)
		if err != nil {
			return conduct.Component{}, err
		}
		guard := &gateway.Guard{Files: a.Settings.RemoteFiles, Terminals: a.Settings.RemoteTerminals,
			Logger: ch.resolver.Logger}
		return conduct.Component{Name: a.Name, Transport: guard.Transport(transport)}, nil
	}
	said := plain.NewWriter(ch.stderr, place+": ")
	ch.said = append(ch.said, said)
	cmd := a.Command.Cmd()
	cmd.Stderr = said
	transport := rpc.Command(cmd)
	transport.StopTime, transport.KillTime = stopTime, killTime
	return conduct.Component{Name: filepath.Base(a.Name), Transport: ch.starter.transport(transport)}, nil
}

// flush prints what the components have said without a newline.
func (ch *chainPrograms) flush() (err error) {
	for _, said := range ch.said {
		err = errors.Join(err, said.Flush())
	}
	return err
}

// lockedWriter is a writer for several goroutines.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
