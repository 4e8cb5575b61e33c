// This file owns authentication: there is no account, but all the ways to log in and out are.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

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

// authorize fails when nobody is logged in. a.mu is held.
func (a *agent) authorize() error {
	if a.requireAuth && !a.authenticated && !a.store.loggedIn() {
		return acp.ErrAuthRequired
	}
	return nil
}

func (a *agent) authenticate(_ context.Context, _ *acp.AgentConn, req *acp.AuthenticateRequest) (*acp.AuthenticateResponse, error) {
	if req.MethodID != authAgent {
		return nil, acp.InvalidParamsf("%q is no method for authenticate", req.MethodID)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.authenticated = true
	return &acp.AuthenticateResponse{}, nil
}

// logout ends the turns in progress, if they are only for who is logged in, before it answers. They fail with the error
// that says so.
func (a *agent) logout(ctx context.Context, _ *acp.AgentConn, _ *acp.LogoutRequest) (*acp.LogoutResponse, error) {
	turns, err := a.forgetLogin()
	if err != nil {
		return nil, err
	}
	for _, t := range turns {
		t.end(acp.ErrAuthRequired)
	}
	for _, t := range turns {
		select {
		case <-t.over:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return &acp.LogoutResponse{}, nil
}

// forgetLogin returns the turns that must not go on. None begins between the two.
func (a *agent) forgetLogin() (turns []*turn, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.store.logOut(); err != nil {
		return nil, err
	}
	a.authenticated = false
	for _, s := range a.active {
		if t := s.playing(); t != nil && a.requireAuth {
			turns = append(turns, t)
		}
	}
	return turns, nil
}

// logIn is the login in a terminal (AUT-7): the exit status says whether it succeeded.
func logIn(state string, in io.Reader, out io.Writer) (err error) {
	store, err := openStore(state)
	if err != nil {
		return fmt.Errorf("opening the state: %w", err)
	}
	defer func() { err = errors.Join(err, store.close()) }()
	fmt.Fprint(out, "Your name: ")
	if line := bufio.NewScanner(in); !line.Scan() || line.Text() == "" {
		return fmt.Errorf("nobody logged in")
	}
	if err := store.logIn(); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "Logged in.")
	return err
}
