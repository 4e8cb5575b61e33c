package main

import (
	"context"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/cmd/acp/internal/agents"
	"github.com/acpgo/sdk/cmd/acp/internal/gateway"
)

// connectFlags are the flags of acp connect.
type connectFlags struct {
	send     agents.Credentials
	guard    gateway.Guard
	logDebug bool
	options  remote.DialOptions
}

// newConnectCommand returns the command acp connect.
func newConnectCommand(p *program) *cobra.Command {
	f := &connectFlags{}
	c := &cobra.Command{
		Use:   "connect [FLAGS] URL",
		Short: "Present an agent at a URL as a local command",
		Long: `Present an agent at a URL on standard input and output, for editors that start their agents as commands.
http and https mean HTTP with server-sent events, ws and wss WebSocket.

Tokens and headers come from the environment or from files, because other users can see a command line. Files are
read again for each request, so that a token may change. No token is sent over plain http or ws to another
machine unless --allow-insecure is given.

Editors trust the agents that they start as commands, but this one is elsewhere: its requests for the editor's files and
terminals are refused. --remote-files and --remote-terminals let them pass; then the editor decides, and many editors do
not ask.

If an HTTP stream is lost, it is opened again, and turns continue. If the server numbers its messages, as acp serve
and qwen do, the stream continues after the last one; otherwise messages may be missing, and standard error says so.

The exit status is 0 when the input ends, and 3 when the connection is lost or the agent closes it; standard error
says why. An editor then starts it again and loads the session, as it does for an agent that has died.`,
		Example: `  acp connect https://agent.example/acp                        with the token in $ACP_CONNECT_TOKEN
  acp connect --token-file ~/.config/agent-token wss://agent.example/acp
  acp connect --header-env X-Secret-Key=GOOSE_SECRET http://127.0.0.1:3284/acp`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("expected one URL")
			}
			return connect(p, f, args[0])
		},
	}
	flags, o := c.Flags(), &f.options
	addTokenFlags(flags, &f.send.TokenFile, &f.send.TokenEnv, "ACP_CONNECT_TOKEN")
	flags.StringVar(&f.send.HeaderFile, "header-file", "",
		"a `FILE` of headers for every request, one per line as \"NAME: VALUE\"")
	flags.StringArrayVar(&f.send.HeaderEnv, "header-env", nil,
		"a header whose value is in the environment, as `NAME=VARIABLE`")
	flags.BoolVar(&o.AllowInsecure, "allow-insecure", false, "send the token without TLS")
	flags.BoolVar(&f.guard.Files, "remote-files", false, "let the agent use the files that the editor offers")
	flags.BoolVar(&f.guard.Terminals, "remote-terminals", false, "let the agent run commands through the editor")
	flags.StringSliceVar(&o.Subprotocols, "subprotocol", nil, "a `NAME` to offer when a WebSocket is opened")
	flags.IntVar(&o.MaxMessage, "max-message", rpc.DefaultMaxMessage, "the maximum length of a message in `BYTES`")
	flags.DurationVar(&o.KeepAlive, "keep-alive", 15*time.Second,
		"keep a WebSocket alive that has been idle for this `TIME`")
	flags.DurationVar(&o.ReopenTime, "reopen-timeout", 6*time.Minute,
		"how much `TIME` opening a lost HTTP stream again may take")
	flags.BoolVar(&o.Resume, "resume", true,
		"when a stream is lost, ask a server that numbers its messages to continue after the last one")
	flags.BoolVar(&f.logDebug, "log-debug", false, "log more")
	return c
}

// connect passes messages between the two sides until the connection ends.
func connect(p *program, f *connectFlags, url string) error {
	if err := f.send.Check(); err != nil {
		return usagef("%w", err)
	}
	if _, err := f.send.Header(); err != nil {
		return err
	}
	o := f.options
	o.Header = func(context.Context) (http.Header, error) { return f.send.Header() }
	o.Logger = (&serveFlags{logDebug: f.logDebug}).logger(p.stderr)
	f.guard.Logger = o.Logger
	ctx, _, stop := untilSignals()
	defer stop()
	agent := translate.Transport(f.guard.Transport(remote.Dial(url, &o)), translate.ClientSide, 0, nil)
	return gateway.Connect(ctx, agent, &rpc.StdioTransport{MaxMessage: o.MaxMessage})
}
