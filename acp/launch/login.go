package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/acpgo/sdk/acp"
)

// TerminalLogins returns the ways of logging in to an agent that run in a terminal, with Command.Login. advertised
// reports whether this client has advertised that it can run them (acp.ClientOptions.TerminalAuth): a client that has
// not must not use them, and gets none. Their ids must not be passed to authenticate.
func TerminalLogins(agent *acp.InitializeResponse, advertised bool) []*acp.AuthMethodTerminal {
	if agent == nil || !advertised {
		return nil
	}
	var methods []*acp.AuthMethodTerminal
	for _, m := range agent.AuthMethods {
		if terminal, ok := m.Variant.(*acp.AuthMethodTerminal); ok {
			methods = append(methods, terminal)
		}
	}
	return methods
}

// Terminal is where a login talks to the user. It should be the terminal itself: files that refer to one (os.Stdin,
// os.Stdout, os.Stderr, or those of a pseudo-terminal). A Stdin that is not an *os.File is read ahead: input that was
// read but not consumed when the login ends is lost. If it has no SetReadDeadline method such as that of net.Conn, its
// last Read, and a goroutine with it, continues until it returns.
type Terminal struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// loginWait bounds how long the outputs of a login may stay open after its process has ended.
const loginWait = time.Second

// LoginError reports that a login in a terminal failed. It wraps the error of the process, such as an *exec.ExitError.
type LoginError struct {
	// Name is the name of the login method.
	Name string
	// Err is the reason.
	Err error
}

// Error implements the error interface.
func (e *LoginError) Error() string { return fmt.Sprintf("login %q: %v", e.Name, e.Err) }

// Unwrap returns Err.
func (e *LoginError) Unwrap() error { return e.Err }

// LoginCommand returns the command that logs in: the agent's own, with the method's arguments appended to its own, and
// the method's variables set, replacing those of the same name.
func (c *Command) LoginCommand(method *acp.AuthMethodTerminal) *Command {
	return c.extend(method.Args, method.Env)
}

// Login runs a login in a terminal, and waits for it to end. Only exit status 0 means success; restart the agent after
// it. Otherwise the error is a *LoginError. If ctx ends, the process is killed. The method is never passed to
// authenticate.
func (c *Command) Login(ctx context.Context, method *acp.AuthMethodTerminal, terminal Terminal) error {
	if method == nil {
		return &LoginError{Err: errors.New("no login method is given")}
	}
	made := c.LoginCommand(method).Cmd()
	if made.Err != nil {
		return &LoginError{method.Name, made.Err}
	}
	cmd := exec.CommandContext(ctx, made.Path)
	cmd.Args, cmd.Env, cmd.Dir = made.Args, made.Env, made.Dir
	cmd.Stdout, cmd.Stderr = terminal.Stdout, terminal.Stderr
	cmd.WaitDelay = loginWait
	stop, err := feed(cmd, terminal.Stdin)
	if err == nil {
		err = cmd.Run()
	}
	stop()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it succeeded; a process that it left running, such as a browser, holds an output open
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if err != nil {
		return &LoginError{method.Name, err}
	}
	return nil
}

// feed connects a command's standard input to a reader. stop must be called when the command has ended; it returns even
// if the reader is still blocked.
func feed(cmd *exec.Cmd, from io.Reader) (stop func(), err error) {
	if _, ok := from.(*os.File); ok || from == nil {
		cmd.Stdin = from
		return func() {}, nil
	}
	// If cmd.Stdin were the reader, Wait would wait for it.
	to, err := cmd.StdinPipe()
	if err != nil {
		return func() {}, err
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(to, from) // the command reports problems with its input
		_ = to.Close()
	}()
	return func() {
		_ = to.Close() // the command may not have been started
		if timed, ok := from.(interface{ SetReadDeadline(time.Time) error }); ok &&
			timed.SetReadDeadline(time.Unix(1, 0)) == nil {
			<-read
			_ = timed.SetReadDeadline(time.Time{}) // it could be set before, so it can be set now
		}
	}, nil
}

// Login returns a function that logs in to the agent of a connection, for Options.Login of package reconnect: choose
// asks the user for one of the agent's methods, as view.Console.Choose does, and returns its index. The agent then runs
// it (authenticate) or, for a method in a terminal, command runs it in the terminal of this program. After the latter
// the connection is closed, because the agent has to be started again.
//
// The options of choose are the methods' names and descriptions, which are text from the agent. Methods in a terminal
// are only used if command is not nil; agents offer them to clients that set acp.ClientOptions.TerminalAuth. The error
// matches acp.ErrUnsupported if the agent has no method that can be used, and is a *LoginError if a login in the
// terminal failed.
func Login(
	command *Command, choose func(ctx context.Context, question string, options ...string) (int, error),
) func(context.Context, *acp.ClientConn) error {
	return func(ctx context.Context, conn *acp.ClientConn) error {
		var methods []acp.AuthMethodVariant
		var options []string
		for _, m := range conn.Initialized().AuthMethods {
			var name, description string
			switch v := m.Variant.(type) {
			case *acp.AuthMethodAgent:
				name, description = v.Name, v.Description.Value()
			case *acp.AuthMethodTerminal:
				if command == nil {
					continue
				}
				name, description = v.Name, v.Description.Value()
			default: // a kind of login that this package does not know
				continue
			}
			if description != "" {
				name += ": " + description
			}
			methods, options = append(methods, m.Variant), append(options, name)
		}
		if len(methods) == 0 {
			return fmt.Errorf("launch: %w: the agent requires a login, and offers none that this client can run",
				acp.ErrUnsupported)
		}
		i, err := choose(ctx, "How do you want to log in?", options...)
		if err != nil {
			return err
		}
		if agent, ok := methods[i].(*acp.AuthMethodAgent); ok {
			_, err := conn.Authenticate(ctx, &acp.AuthenticateRequest{MethodID: agent.ID})
			return err
		}
		terminal := Terminal{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
		if err := command.Login(ctx, methods[i].(*acp.AuthMethodTerminal), terminal); err != nil {
			return err
		}
		return conn.Close()
	}
}
