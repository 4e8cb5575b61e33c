package actor

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/view"
)

// Client is the scripted client, in one session at a time. Its user is the console.
type Client struct {
	*view.Console

	Dir         string // of the session: its files can be read and written, its commands run there
	Directories []string
	Servers     []acp.MCPServer
	MaxBytes    int  // what the connection holds at most; 0 means the default
	Bare        bool // the client has neither files nor terminals, and no notices

	conn     *acp.ClientConn
	session  *acp.ClientSession // nil after it was closed or deleted
	attached []acp.ContentBlock // for the next prompt
}

// NewClient returns a client that reads lines.
func NewClient(dir string, in io.Reader, out io.Writer) *Client {
	return &Client{Console: view.NewConsole(in, out), Dir: dir}
}

// loginNeeded reports a login that must happen in a terminal, after which the agent is started again.
type loginNeeded struct{ method *acp.AuthMethodTerminal }

func (e *loginNeeded) Error() string {
	return fmt.Sprintf("log in with %q, and start again", e.method.Args)
}

// Run connects to an agent, opens a session, and handles the lines of the input.
func (c *Client) Run(ctx context.Context, transport acp.Transport) (err error) {
	handlers := acp.ClientHandlers{
		SessionUpdate: c.SessionUpdate, CreateElicitation: c.elicit,
		RequestPermission: view.TrackPermissions(c.Sessions, c.RequestPermission),
	}
	notices := acp.Some(acp.NoticeCapabilities{})
	if c.Bare {
		notices = acp.Opt[acp.NoticeCapabilities]{}
	} else {
		machine, err := local.Serve(&handlers, local.Trusted(), append([]string{c.Dir}, c.Directories...)...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, machine.Close()) }()
		c.ShowTerminals(&handlers)
	}
	c.conn, err = acp.Connect(ctx, transport, handlers, &acp.ClientOptions{
		Info: acp.Implementation{Name: "acp-actor", Version: "1.0.0"}, BooleanConfig: true, TerminalAuth: true, Forms: true,
		Elicitation: acp.ElicitationCapabilities{URL: acp.Some(acp.ElicitationURLCapabilities{})},
		Session:     acp.ClientSessionCapabilities{Notices: notices},
		Conn:        acp.ConnOptions{CancelGrace: time.Second, MaxBytes: c.MaxBytes}, // the user may have left
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.conn.Close()) }()
	c.session = nil
	if err := c.do(ctx, ":new"); err != nil {
		return err
	}
	if err := c.Console.Run(ctx, c.do); err != nil {
		return err
	}
	return c.leave(ctx, c.session)
}

// authenticated calls f and, if that requires a login, logs in and calls it once more.
func (c *Client) authenticated(ctx context.Context, f func() error) error {
	err := f()
	if !errors.Is(err, acp.ErrAuthRequired) {
		return err
	}
	for _, method := range c.conn.Initialized().AuthMethods {
		switch m := method.Variant.(type) {
		case *acp.AuthMethodAgent:
			if _, err := c.conn.Authenticate(ctx, &acp.AuthenticateRequest{MethodID: m.ID}); err != nil {
				return err
			}
			return f()
		case *acp.AuthMethodTerminal:
			err = &loginNeeded{m}
		default: // this program cannot log in so
		}
	}
	return err
}

// Commands are the commands that a line may be, with their arguments.
var Commands = map[string]func(ctx context.Context, c *Client, args []string) error{
	":new": func(ctx context.Context, c *Client, _ []string) error {
		return c.enter(ctx)(c.conn.NewSession(ctx, &acp.NewSessionRequest{
			Cwd: c.Dir, MCPServers: c.Servers, AdditionalDirectories: c.directories(),
		}))
	},
	":load": func(ctx context.Context, c *Client, args []string) error {
		c.Sessions.Of(c.id(args)).Reset()
		return c.enter(ctx)(c.conn.LoadSession(ctx, &acp.LoadSessionRequest{
			SessionID: c.id(args), Cwd: c.Dir, MCPServers: c.Servers, AdditionalDirectories: c.directories(),
		}))
	},
	":resume": func(ctx context.Context, c *Client, args []string) error {
		return c.enter(ctx)(c.conn.ResumeSession(ctx, &acp.ResumeSessionRequest{
			SessionID: c.id(args), Cwd: c.Dir, MCPServers: c.Servers, AdditionalDirectories: c.directories(),
		}))
	},
	":close": func(ctx context.Context, c *Client, _ []string) error {
		session := c.session
		c.session = nil
		return c.leave(ctx, session)
	},
	":delete": func(ctx context.Context, c *Client, args []string) error {
		id := c.id(args)
		if c.session != nil && c.session.ID() == id {
			c.session = nil
		}
		_, err := c.conn.DeleteSession(ctx, &acp.DeleteSessionRequest{SessionID: id})
		return err
	},
	":sessions": func(ctx context.Context, c *Client, _ []string) error {
		for s, err := range c.conn.Sessions(ctx, c.Dir) {
			if err != nil {
				return err
			}
			c.Printf("session %s: %s", s.SessionID, s.Title.Value())
		}
		return nil
	},
	":mode": func(ctx context.Context, c *Client, args []string) error {
		known := func(m acp.SessionMode) bool { return string(m.ID) == strings.Join(args, " ") }
		if c.session == nil || !slices.ContainsFunc(c.session.Modes().Value().AvailableModes, known) {
			return errors.New("there is no such mode")
		}
		return c.session.SetMode(ctx, acp.SessionModeID(args[0]))
	},
	":option": func(ctx context.Context, c *Client, args []string) error {
		if c.session == nil || len(args) != 2 {
			return errors.New("no option to set")
		}
		if args[1] == "true" || args[1] == "false" {
			return c.session.SetBooleanConfigOption(ctx, acp.SessionConfigID(args[0]), args[1] == "true")
		}
		return c.session.SetConfigOption(ctx, acp.SessionConfigID(args[0]), acp.SessionConfigValueID(args[1]))
	},
	":attach": func(_ context.Context, c *Client, args []string) error {
		path := filepath.Join(append([]string{c.Dir}, args...)...)
		link := url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(filepath.ToSlash(path), "/")}
		c.attached = append(c.attached, acp.ResourceLinkBlock(filepath.Base(path), link.String()))
		return nil
	},
	":logout": func(ctx context.Context, c *Client, _ []string) error {
		_, err := c.conn.Logout(ctx, &acp.LogoutRequest{})
		return err
	},
}

// do handles a line: a command, or a prompt.
func (c *Client) do(ctx context.Context, line string) error {
	words := strings.Fields(line)
	if run := Commands[words[0]]; run != nil {
		return c.authenticated(ctx, func() error { return run(ctx, c, words[1:]) })
	}
	if c.session == nil {
		return errors.New("there is no session")
	}
	prompt := append([]acp.ContentBlock{acp.TextBlock(line)}, c.attached...)
	c.attached = nil
	return c.authenticated(ctx, func() error {
		res, err := view.Prompt(ctx, c.Sessions.Of(c.session.ID()), c.session, prompt...)
		if err == nil {
			c.Printf("(%s)", res.StopReason)
		}
		return err
	})
}

// id is the session that a line names, or the open one.
func (c *Client) id(args []string) acp.SessionID {
	if len(args) == 0 && c.session != nil {
		return c.session.ID()
	}
	return acp.SessionID(strings.Join(args, " "))
}

// directories are the additional directories, if the agent supports them. They are sent each time, because those that
// are left out when a session is opened again are removed from it.
func (c *Client) directories() []string {
	if !c.conn.Capabilities().SessionCapabilities.AdditionalDirectories.Present() {
		return nil
	}
	return c.Directories
}

// enter returns a function that continues in a session that was opened, and closes the last one.
func (c *Client) enter(ctx context.Context) func(*acp.ClientSession, error) error {
	return func(session *acp.ClientSession, err error) error {
		if err != nil {
			return err
		}
		last := c.session
		c.session = session
		c.Sessions.Of(session.ID()).SetSession(session)
		c.Show(session.ID())
		if last == nil || last.ID() == session.ID() {
			return nil
		}
		return c.leave(ctx, last)
	}
}

// leave closes a session, if there is one and the agent supports that.
func (c *Client) leave(ctx context.Context, session *acp.ClientSession) error {
	if session == nil {
		return nil
	}
	err := session.Close(ctx)
	if errors.Is(err, acp.ErrUnsupported) || errors.Is(err, acp.ErrResourceNotFound) {
		return nil
	}
	return err
}

// elicit shows a form with values that fit, or a page, which the user accepts or declines.
func (c *Client) elicit(
	ctx context.Context, _ *acp.ClientConn, req *acp.CreateElicitationRequest,
) (*acp.CreateElicitationResponse, error) {
	answer := acp.NewCreateElicitationResponseDecline()
	var accept acp.ElicitationAcceptAction
	if form, ok := req.Variant.(*acp.CreateElicitationRequestForm); ok {
		content, ok := fill(&form.RequestedSchema)
		if !ok {
			return &answer, nil
		}
		accept.Content = acp.Some(content)
	}
	switch i, err := c.Choose(ctx, req.Message, "accept", "decline"); {
	case errors.Is(err, io.EOF):
		answer = acp.NewCreateElicitationResponseCancel()
	case err != nil:
		return nil, err
	case i == 0:
		answer = acp.NewCreateElicitationResponseAccept(accept)
	}
	return &answer, nil
}

// fill fills in a form with the first values that fit. ok is false if none fit a required field.
func fill(schema *acp.ElicitationSchema) (content map[string]acp.ElicitationContentValue, ok bool) {
	content = map[string]acp.ElicitationContentValue{}
	for _, f := range view.FormFields(schema) {
		tries := [][]string{f.Default}
		for _, choice := range f.Choices {
			tries = append(tries, []string{choice.Const})
		}
		for _, text := range []string{"1", "true", "Ann", "ann@example.com", "https://example.com/", "2026-01-01"} {
			tries = append(tries, []string{text})
		}
		i := slices.IndexFunc(tries, func(answers []string) bool {
			value, err := f.Value(answers...)
			if fits := err == nil && len(answers) > 0; fits {
				content[f.Name] = value
				return true
			}
			return false
		})
		if i < 0 && f.Required {
			return nil, false
		}
	}
	return content, true
}

// ClientMain is the client as a program, with the arguments [-add DIR] [-mcp NAME=COMMAND] -- AGENT [ARG…].
func ClientMain(ctx context.Context, args []string) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	c := NewClient(dir, os.Stdin, os.Stdout)
	flags := flag.NewFlagSet("client", flag.ExitOnError)
	flags.IntVar(&c.MaxBytes, "max-bytes", 0, "what the connection holds at most")
	flags.Func("add", "a further `directory` of the sessions", func(dir string) error {
		c.Directories = append(c.Directories, dir)
		return nil
	})
	flags.Func("mcp", "an MCP `server` of the sessions, NAME=COMMAND", func(text string) error {
		name, command, _ := strings.Cut(text, "=")
		program, err := launch.New(command).Find()
		c.Servers = append(c.Servers, acp.NewMCPServerStdio(acp.MCPServerStdio{Name: name, Command: program}))
		return err
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("usage: actor client [flags] -- AGENT [ARG…]")
	}
	agent := launch.New(flags.Arg(0), flags.Args()[1:]...)
	err = c.Run(ctx, acp.Command(agent.Cmd()))
	if login, ok := errors.AsType[*loginNeeded](err); ok {
		err = agent.Login(ctx, login.method, launch.Terminal{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
		if err == nil {
			err = c.Run(ctx, acp.Command(agent.Cmd()))
		}
	}
	return err
}

// Login is the agent's login in a terminal. The exit status says whether it succeeded.
func Login(state string, in io.Reader, out io.Writer) error {
	fmt.Fprint(out, "Your name: ")
	if line := bufio.NewScanner(in); !line.Scan() || line.Text() == "" {
		return errors.New("nobody logged in")
	}
	return os.WriteFile(loginFile(state), nil, 0o600)
}
