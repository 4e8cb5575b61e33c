// Command kit-client talks to an agent in the terminal: acp/view prints updates, asks the user and reads prompts,
// acp/policy decides by the rules in the file RULES, acp/reconnect restarts an agent that died, acp/local serves files
// and terminals, contrib/mcpacp gives the agent a tool of this program. A line of input is a prompt, an answer,
// :sessions, :load SESSION, :mode MODE or :set OPTION VALUE. Ctrl-C or :cancel cancels the turn.
//
//	kit-client RULES AGENT [arguments]
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/reconnect"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/contrib/mcpacp"
)

// client is a conversation in a terminal.
type client struct {
	*view.Console
	dir     string
	agent   *reconnect.Client
	session *reconnect.Session
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "\nkit-client:", view.PrintableLine(err.Error()))
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) < 2 {
		return errors.New("usage: kit-client RULES AGENT [arguments]")
	}
	rules, err := policy.Load(args[0], &policy.Options{Resolve: policy.ResolveLinks})
	if err != nil {
		return err
	}
	c := &client{Console: view.NewConsole(os.Stdin, os.Stdout)}
	if c.dir, err = os.Getwd(); err != nil {
		return err
	}
	handlers := acp.ClientHandlers{SessionUpdate: c.SessionUpdate, CreateElicitation: c.CreateElicitation}
	decide := policy.Handler(rules, c.RequestPermission, &policy.HandlerOptions{
		Memory: policy.NewFile(args[0] + ".always"),
		Failed: func(_ *acp.ClientSession, err error) { c.Printf("%v", err) },
	})
	handlers.RequestPermission = view.TrackPermissions(c.Sessions, decide)
	files, err := local.Serve(&handlers, local.Trusted(), c.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	c.ShowTerminals(&handlers)
	opts := &acp.ClientOptions{BooleanConfig: true, Forms: true, TerminalAuth: true}
	opts.Info = acp.Implementation{Name: "kit-client", Version: "1"}
	var provider mcpacp.Provider
	provider.Enable(&handlers, opts)
	tools := mcp.NewServer(&mcp.Implementation{Name: "kit-client", Version: "1"}, nil)
	mcp.AddTool(tools, &mcp.Tool{Name: "notify", Description: "Shows the user a note at once."}, c.notify)
	command, stderr := launch.New(args[1], args[2:]...), view.NewPrintableWriter(os.Stderr, "agent: ")
	c.agent, err = reconnect.Connect(ctx, func(context.Context) (acp.Transport, error) {
		agent := acp.Command(command.Cmd())
		agent.Cmd.Stderr = stderr
		return translate.Client(agent), nil // agents of both versions
	}, handlers, opts, &reconnect.Options{
		Servers: provider.For("kit-client", tools), Login: launch.Login(command, c.Choose), Notify: c.event,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.agent.Close()) }()
	if c.session, err = c.agent.NewSession(ctx, &acp.NewSessionRequest{Cwd: c.dir}); err != nil {
		return err
	}
	return errors.Join(c.chosen(ctx), c.Run(ctx, c.do), c.session.Close(ctx))
}

// event shows what became of the connection.
func (c *client) event(_ context.Context, e reconnect.Event) {
	if e.Kind == reconnect.Replaying {
		c.Sessions.Of(e.Session).Reset()
	}
	c.Printf("[%s %s %v]", e.Kind, e.Session, e.Err)
}

// notify is a tool for the agent.
func (c *client) notify(_ context.Context, _ *mcp.CallToolRequest, note struct{ Text string }) (
	*mcp.CallToolResult, any, error,
) {
	c.Printf("note: %s", note.Text)
	return nil, nil, nil
}

// do handles a line of input.
func (c *client) do(ctx context.Context, text string) (err error) {
	word, rest, _ := strings.Cut(text, " ")
	option, value, _ := strings.Cut(rest, " ")
	switch word {
	case ":sessions":
		conn, err := c.agent.Conn(ctx)
		if err != nil {
			return err
		}
		for info, err := range conn.Sessions(ctx, c.dir) {
			c.Printf("%s: %s %v", info.SessionID, info.Title.Value(), err)
		}
		return nil
	case ":load":
		c.Sessions.Of(acp.SessionID(rest)).Reset()
		loaded, err := c.agent.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: acp.SessionID(rest), Cwd: c.dir})
		if err != nil {
			return err
		}
		c.session = loaded
	case ":mode":
		err = c.session.SetMode(ctx, acp.SessionModeID(rest))
	case ":set":
		err = c.session.SetConfigOption(ctx, acp.SessionConfigID(option), acp.SessionConfigValueID(value))
	default:
		res, err := view.Prompt(ctx, c.Sessions.Of(c.session.ID()), c.session, acp.TextBlock(text))
		if err == nil {
			c.Printf("(%s)", res.StopReason)
		}
		return err
	}
	return errors.Join(err, c.chosen(ctx))
}

// chosen shows the modes and the options.
func (c *client) chosen(ctx context.Context) error {
	session, err := c.session.Live(ctx)
	if err == nil {
		c.Sessions.Of(session.ID()).SetSession(session)
		c.Show(session.ID())
	}
	return err
}
