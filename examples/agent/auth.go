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

// The ids of the ways to authenticate.
const (
	authAgent    acp.AuthMethodID = "example-login"    // by the method authenticate
	authTerminal acp.AuthMethodID = "example-terminal" // by running this program with -login
)

// authMethods are what initialize offers; the runtime keeps the terminal's from clients without one.
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

// authorized serves a method to nobody who is not logged in (AUT-9, AUT-10).
func authorized[C, P, R any](a *agent, serve func(context.Context, C, *P) (*R, error)) func(context.Context, C, *P) (*R, error) {
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

// prompt is a prompt that is being answered.
type prompt struct {
	end  context.CancelCauseFunc // ends it early
	over chan struct{}           // closed when it has ended
}

// whileAuthorized serves prompts to nobody who is not logged in, and ends them with the login.
func whileAuthorized[C, P, R any](a *agent, serve func(context.Context, C, *P) (*R, error)) func(context.Context, C, *P) (*R, error) {
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

// authorize fails when nobody is logged in. a.mu is held.
func (a *agent) authorize() error {
	if a.requireAuth && !a.authenticated && !loggedIn(a.dir) {
		return acp.ErrAuthRequired
	}
	return nil
}

func (a *agent) authenticate(_ context.Context, _ *acp.AgentConn, req *acp.AuthenticateRequest) (*acp.AuthenticateResponse, error) {
	if req.MethodID != authAgent {
		return nil, acp.InvalidParamsf("%q is not a method for authenticate", req.MethodID)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.authenticated = true
	return &acp.AuthenticateResponse{}, nil
}

// logout ends the turns in progress, if they are only for who is logged in, before it answers. They fail with the error
// that says so.
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

// forgetLogin returns the prompts that must not go on. None begins between the two.
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

// loginFile is there when somebody is logged in.
const loginFile = "login"

// openState opens the directory of the state. Others could log in, or plant sessions, in one that everybody may write in.
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
		err = fmt.Errorf("everybody may write in %s", path)
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// loggedIn reports whether somebody is; only a regular file says so.
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
