package agentkit

import (
	"context"

	"github.com/acpgo/sdk/acp"
)

// Login requires clients to log in before they create, open, fork, list or delete sessions: until then, requests that
// do so are answered with acp.ErrAuthRequired. A login is valid for one connection. Prompts of open sessions continue
// after a logout.
type Login struct {
	// Methods are the authentication methods that clients are offered.
	Methods []acp.AuthMethod

	// Run logs a client in with one of the Methods, other than those that run in a terminal; an error refuses it. Run
	// is required if there is such a method.
	Run func(ctx context.Context, conn *acp.AgentConn, method acp.AuthMethodID) error

	// Valid, if set, reports whether stored credentials exist, such as those of a login in a terminal, so that the
	// client need not log in. It is called for each request of a client that has not logged in.
	Valid func(ctx context.Context, conn *acp.AgentConn) (bool, error)

	// Logout, if set, is called when a client logs out. It removes credentials that Valid would find.
	Logout func(ctx context.Context, conn *acp.AgentConn) error
}

// authenticate serves authenticate.
func (ss *sessions) authenticate(
	ctx context.Context, conn *acp.AgentConn, req *acp.AuthenticateRequest,
) (*acp.AuthenticateResponse, error) {
	if err := ss.config.login.Run(ctx, conn, req.MethodID); err != nil {
		return nil, err
	}
	ss.loginMu.Lock()
	defer ss.loginMu.Unlock()
	for conn := range ss.loggedIn {
		select {
		case <-conn.Done():
			delete(ss.loggedIn, conn)
		default:
		}
	}
	ss.loggedIn[conn] = true
	return &acp.AuthenticateResponse{}, nil
}

// logout serves logout.
func (ss *sessions) logout(ctx context.Context, conn *acp.AgentConn, _ *acp.LogoutRequest) (*acp.LogoutResponse,
	error) {
	if logout := ss.config.login.Logout; logout != nil {
		if err := logout(ctx, conn); err != nil {
			return nil, err
		}
	}
	ss.loginMu.Lock()
	defer ss.loginMu.Unlock()
	delete(ss.loggedIn, conn)
	return &acp.LogoutResponse{}, nil
}

// authorize refuses a client that has to log in.
func (ss *sessions) authorize(ctx context.Context, conn *acp.AgentConn) error {
	login := ss.config.login
	if login == nil {
		return nil
	}
	ss.loginMu.Lock()
	ok := ss.loggedIn[conn]
	ss.loginMu.Unlock()
	var err error
	if !ok && login.Valid != nil {
		ok, err = login.Valid(ctx, conn)
	}
	if err == nil && !ok {
		err = acp.ErrAuthRequired
	}
	return err
}
