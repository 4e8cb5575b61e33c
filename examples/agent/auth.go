// This file owns authentication: there is no account, but all the ways to log in and out are.

package main

import (
	"bufio"
	"context"
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

// authorized refuses to open a session when nobody is logged in (AUT-9, AUT-10).
func (a *agent) authorized() error {
	a.mu.Lock()
	defer a.mu.Unlock()
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

func (a *agent) logout(context.Context, *acp.AgentConn, *acp.LogoutRequest) (*acp.LogoutResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.authenticated = false
	return &acp.LogoutResponse{}, a.store.logOut()
}

// logIn is the login in a terminal (AUT-7): the exit status says whether it succeeded.
func logIn(state string, in io.Reader, out io.Writer) error {
	store, err := openStore(state)
	if err != nil {
		return err
	}
	fmt.Fprint(out, "Your name: ")
	if line := bufio.NewScanner(in); !line.Scan() || line.Text() == "" {
		return fmt.Errorf("nobody logged in")
	}
	if err := store.logIn(); err != nil {
		return err
	}
	fmt.Fprintln(out, "Logged in.")
	return store.close()
}
