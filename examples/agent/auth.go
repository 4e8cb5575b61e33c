package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"

	"github.com/acpgo/sdk/acp"
)

// The ids of the authentication methods.
const (
	authAgent    acp.AuthMethodID = "example-login"    // with the method authenticate
	authTerminal acp.AuthMethodID = "example-terminal" // by running this program with -login
)

// authMethods returns the methods that initialize offers; the runtime does not offer terminal methods to clients that
// cannot run them.
func authMethods() []acp.AuthMethod {
	return []acp.AuthMethod{
		acp.NewAuthMethodAgent(acp.AuthMethodAgent{
			ID:          authAgent,
			Name:        "Log in",
			Description: acp.Some("Succeeds at once, and lasts as long as the connection."),
		}),
		acp.NewAuthMethodTerminal(acp.AuthMethodTerminal{
			ID:          authTerminal,
			Name:        "Log in in a terminal",
			Description: acp.Some("Asks for a name, and lasts until logout."),
			Args:        []string{"-login"},
		}),
	}
}

// authorized wraps a handler so that it requires a login (AUT-9, AUT-10).
func authorized[C, P, R any](a *agent, serve func(context.Context, C, *P) (*R, error)) func(context.Context, C, *P) (*R,
	error) {
	return func(ctx context.Context, client C, req *P) (*R, error) {
		a.mu.Lock()
		err := a.authorize()
		a.mu.Unlock()
		if err != nil {
			return nil, err
		}
		return serve(ctx, client, req)
	}
}

// prompt is a prompt being answered.
type prompt struct {
	end  context.CancelCauseFunc // ends it early
	over chan struct{}           // closed when it has ended
}

// whileAuthorized wraps the handler of prompts so that they require a login, and end with it.
func whileAuthorized[C, P, R any](a *agent, serve func(context.Context, C, *P) (*R, error)) func(context.Context, C,
	*P) (*R, error) {
	return func(ctx context.Context, client C, req *P) (*R, error) {
		ctx, end := context.WithCancelCause(ctx)
		defer end(nil)
		p := &prompt{end, make(chan struct{})}
		a.mu.Lock()
		err := a.authorize()
		if err == nil {
			a.prompts[p] = true
		}
		a.mu.Unlock()
		if err != nil {
			return nil, err
		}
		defer func() {
			close(p.over)
			a.mu.Lock()
			defer a.mu.Unlock()
			delete(a.prompts, p)
		}()
		return serve(ctx, client, req)
	}
}

// authorize fails if no one is logged in. a.mu is held.
func (a *agent) authorize() error {
	if a.requireAuth && !a.authenticated && !loggedIn(a.dir) {
		return acp.ErrAuthRequired
	}
	return nil
}

func (a *agent) authenticate(_ context.Context, _ *acp.AgentConn,
	req *acp.AuthenticateRequest) (*acp.AuthenticateResponse, error) {
	if req.MethodID != authAgent {
		return nil, acp.InvalidParamsf("%q is not a method for authenticate", req.MethodID)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.authenticated = true
	return &acp.AuthenticateResponse{}, nil
}

// logout ends the turns in progress, if they require a login, before it answers. They fail with the error that reports
// this.
func (a *agent) logout(ctx context.Context, _ *acp.AgentConn, _ *acp.LogoutRequest) (*acp.LogoutResponse, error) {
	prompts, err := a.forgetLogin()
	if err != nil {
		return nil, err
	}
	for _, p := range prompts {
		p.end(acp.ErrAuthRequired)
	}
	for _, p := range prompts {
		select {
		case <-p.over:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return &acp.LogoutResponse{}, nil
}

// forgetLogin ends the login, and returns the prompts that must end. No prompt can begin in between.
func (a *agent) forgetLogin() ([]*prompt, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.dir.Remove(loginFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	a.authenticated = false
	if !a.requireAuth {
		return nil, nil
	}
	return slices.Collect(maps.Keys(a.prompts)), nil
}

// logIn is the login in a terminal (AUT-7): the exit status says whether it succeeded.
func logIn(state string, in io.Reader, out io.Writer) (err error) {
	dir, err := openState(state)
	if err != nil {
		return fmt.Errorf("opening the state: %w", err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	fmt.Fprint(out, "Your name: ")
	if line := bufio.NewScanner(in); !line.Scan() || line.Text() == "" {
		return fmt.Errorf("nobody logged in")
	}
	if err := keepLogin(dir); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "Logged in.")
	return err
}

// loginFile exists while a user is logged in.
const loginFile = "login"

// openState opens the state directory. If everyone could write to it, others could log in, or plant sessions.
func openState(path string) (*os.Root, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	info, err := dir.Stat(".")
	if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 {
		err = fmt.Errorf("everyone can write to %s", path)
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// loggedIn reports whether a user is logged in, which only a regular file shows.
func loggedIn(dir *os.Root) bool {
	info, err := dir.Lstat(loginFile)
	return err == nil && info.Mode().IsRegular()
}

func keepLogin(dir *os.Root) error {
	if loggedIn(dir) {
		return nil
	}
	file, err := dir.OpenFile(loginFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}
