// Command kit-client talks to an agent in the terminal, built from the packages for clients: acp/view folds and prints
// updates and asks the user, acp/policy decides about permissions, acp/reconnect restarts an agent that died and
// restores the session, acp/local serves files and terminals. Each line of standard input is a prompt, the answer to a
// question, or one of :sessions, :load SESSION, :mode MODE and :set OPTION VALUE. Ctrl-C cancels the turn, or quits.
//
//	kit-client RULES AGENT [arguments]
//
// RULES is a file of rules in the format of acp/policy, $KIT_CLIENT_LOGIN is the authentication method to log in with.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/reconnect"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/acp/view"
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
	handlers.RequestPermission = view.Asking(&c.Sessions, policy.Handler(rules, c.RequestPermission, &policy.HandlerOptions{
		Cwd:    func(*acp.ClientSession) string { return c.dir },
		Memory: policy.NewFile(args[0] + ".always"),
		Failed: func(_ *acp.ClientSession, err error) { c.Printf("%v", err) },
	}))
	files, err := local.Serve(&handlers, local.Trusted(), c.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	opts := &acp.ClientOptions{Info: acp.Implementation{Name: "kit-client", Version: "1"}, BooleanConfig: true}
	opts.Elicitation.Form = acp.Some(acp.ElicitationFormCapabilities{})
	c.agent, err = reconnect.Connect(ctx, func(context.Context) (acp.Transport, error) {
		return translate.Client(acp.Exec(args[1], args[2:]...)), nil // agents of both versions
	}, handlers, opts, &reconnect.Options{Connected: login, Notify: func(_ context.Context, e reconnect.Event) {
		if e.Kind == reconnect.Replaying {
			c.Sessions.Of(e.Session).Reset()
		}
		c.Printf("[%s %s %v]", e.Kind, e.Session, e.Err)
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.agent.Close()) }()
	if c.session, err = c.agent.NewSession(ctx, &acp.NewSessionRequest{Cwd: c.dir}); err != nil {
		return err
	}
	if err := c.chosen(ctx); err != nil {
		return err
	}
	for {
		text, err := c.Line(ctx)
		if errors.Is(err, io.EOF) {
			return c.session.Close(ctx)
		}
		turn, stop := signal.NotifyContext(ctx, os.Interrupt)
		err = c.do(turn, text)
		if stop(); err != nil { // the agent may have died: the next turn uses another one
			c.Printf("error: %v", err)
		}
	}
}

// login logs in on a new connection.
func login(ctx context.Context, conn *acp.ClientConn) (err error) {
	if method := os.Getenv("KIT_CLIENT_LOGIN"); method != "" {
		_, err = conn.Authenticate(ctx, &acp.AuthenticateRequest{MethodID: acp.AuthMethodID(method)})
	}
	return err
}

// do handles a line of input.
func (c *client) do(ctx context.Context, text string) error {
	session, err := c.session.Live(ctx)
	if err != nil {
		return err
	}
	word, rest, _ := strings.Cut(text, " ")
	option, value, _ := strings.Cut(rest, " ")
	switch word {
	case ":sessions":
		for info, err := range session.Conn().Sessions(ctx, c.dir) {
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
		err = session.SetMode(ctx, acp.SessionModeID(rest))
	case ":set":
		err = session.SetConfigOption(ctx, acp.SessionConfigID(option), acp.SessionConfigValueID(value))
	default:
		res, err := view.Prompt(ctx, c.Sessions.Of(session.ID()), c.session, acp.TextBlock(text))
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
		c.Sessions.Of(session.ID()).Opened(session)
		c.Show(session.ID())
	}
	return err
}
