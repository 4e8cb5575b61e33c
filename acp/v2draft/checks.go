// This file owns what version 2 asks of messages beyond schema and capabilities.

package v2draft

import (
	"errors"
	"fmt"
)

// checkParams refuses paths that are not absolute.
func checkParams(params any) error {
	switch p := params.(type) {
	case *NewSessionRequest:
		return checkSetup(p.Cwd, p.AdditionalDirectories, p.MCPServers)
	case *ResumeSessionRequest:
		return checkSetup(p.Cwd, p.AdditionalDirectories, p.MCPServers)
	case *ListSessionsRequest:
		return checkOptPath("/cwd", p.Cwd)
	default:
		return nil
	}
}

func (c *ClientConn) checkNewSession(req *NewSessionRequest) error {
	return checkCall(MethodNewSession, req)
}

func (c *ClientConn) checkResumeSession(req *ResumeSessionRequest) error {
	return checkCall(MethodResumeSession, req)
}

// checkCall is checkParams for what is about to be sent.
func checkCall(method string, params any) error {
	if err := checkParams(params); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// checkLogin refuses methods that were not offered, and those that are not for auth/login.
func (a *agentSide) checkLogin(params any) error {
	req, ok := params.(*LoginAuthRequest)
	if !ok {
		return nil
	}
	if loginMethod(a.handshake.Load().AuthMethods, req.MethodID) != nil {
		return invalid("/methodId", "not the id of an authentication method for auth/login")
	}
	return nil
}

var errTerminalAuth = errors.New("terminal methods are run, not passed to auth/login")

// loginMethod says what is wrong with the id of a method for auth/login. Methods of types that are not
// known may be for it.
func loginMethod(methods []AuthMethod, id AuthMethodID) error {
	for _, m := range methods {
		switch m := m.Variant.(type) {
		case *AuthMethodTerminal:
			if m.MethodID == id {
				return errTerminalAuth
			}
		case *AuthMethodAgent:
			if m.MethodID == id {
				return nil
			}
		case *AuthMethodUnknown:
			return nil
		}
	}
	return fmt.Errorf("%w: the agent does not offer the method %q", ErrUnsupported, id)
}

// checkLoginAuth refuses the ids of terminal methods, which are not for auth/login, and ids that the agent
// did not offer.
func (c *ClientConn) checkLoginAuth(req *LoginAuthRequest) error {
	handshake := c.handshake.Load()
	if handshake == nil {
		return nil
	}
	if err := loginMethod(handshake.AuthMethods, req.MethodID); err != nil {
		return fmt.Errorf("%s: %w", MethodLoginAuth, err)
	}
	return nil
}

// checkLogoutAuth refuses to log out of an agent that has no ways to log in.
func (c *ClientConn) checkLogoutAuth(*LogoutAuthRequest) error {
	if handshake := c.handshake.Load(); handshake != nil && len(handshake.AuthMethods) == 0 {
		return unsupported(MethodLogoutAuth, "authMethods")
	}
	return nil
}
