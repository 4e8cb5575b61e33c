// This file owns what version 1 asks of messages beyond schema and capabilities.

package acp

import (
	"errors"
	"fmt"
	"strconv"
)

// checkParams refuses paths that are not absolute, and lines that do not count from 1.
func checkParams(params any) error {
	switch p := params.(type) {
	case *NewSessionRequest:
		return checkSetup(p.Cwd, p.AdditionalDirectories, p.MCPServers)
	case *LoadSessionRequest:
		return checkSetup(p.Cwd, p.AdditionalDirectories, p.MCPServers)
	case *ResumeSessionRequest:
		return checkSetup(p.Cwd, p.AdditionalDirectories, p.MCPServers)
	case *ListSessionsRequest:
		return checkOptPath("/cwd", p.Cwd)
	case *ReadTextFileRequest:
		if line, ok := p.Line.Get(); ok && line == 0 {
			return invalid("/line", "lines count from 1")
		}
		return checkPath("/path", p.Path)
	case *WriteTextFileRequest:
		return checkPath("/path", p.Path)
	case *CreateTerminalRequest:
		return checkOptPath("/cwd", p.Cwd)
	default:
		return nil
	}
}

// checkSetup is checkParams for what sets a session up, and refuses MCP servers that the agent did not
// advertise.
func (a *agentSide) checkSetup(params any) error {
	if err := checkParams(params); err != nil {
		return err
	}
	servers := serversOf(params)
	for i := range servers {
		_, unknown := servers[i].Variant.(*MCPServerUnknown)
		one := &NewSessionRequest{MCPServers: servers[i : i+1]}
		if unknown || a.handshake.Load().capabilities().lacksForNewSession(one) != "" {
			return invalid("/mcpServers/"+strconv.Itoa(i)+"/type", "a type of MCP servers that was not advertised")
		}
	}
	return nil
}

// serversOf are the MCP servers of a request.
func serversOf(params any) []MCPServer {
	switch p := params.(type) {
	case *NewSessionRequest:
		return p.MCPServers
	case *LoadSessionRequest:
		return p.MCPServers
	case *ResumeSessionRequest:
		return p.MCPServers
	default:
		return nil
	}
}

func (c *ClientConn) checkNewSession(req *NewSessionRequest) error {
	return checkCall(MethodNewSession, req)
}

func (c *ClientConn) checkLoadSession(req *LoadSessionRequest) error {
	return checkCall(MethodLoadSession, req)
}

func (c *ClientConn) checkResumeSession(req *ResumeSessionRequest) error {
	return checkCall(MethodResumeSession, req)
}

func (c *ClientConn) checkListSessions(req *ListSessionsRequest) error {
	if req == nil {
		return nil // no parameters
	}
	return checkCall(MethodListSessions, req)
}

// checkCall is checkParams for what is about to be sent.
func checkCall(method string, params any) error {
	if err := checkParams(params); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// checkAuthenticate refuses methods that were not offered, and those that are not for authenticate.
func (a *agentSide) checkAuthenticate(params any) error {
	req, ok := params.(*AuthenticateRequest)
	if !ok {
		return nil
	}
	for _, m := range a.handshake.Load().AuthMethods {
		if m, ok := m.Variant.(*AuthMethodAgent); ok && m.ID == req.MethodID {
			return nil
		}
	}
	return invalid("/methodId", "not the id of an authentication method for authenticate")
}

var errTerminalAuth = errors.New("terminal methods are run, not passed to authenticate")

// checkAuthenticate refuses the ids of terminal methods, which are not for authenticate, and ids that
// the agent did not offer.
func (c *ClientConn) checkAuthenticate(req *AuthenticateRequest) error {
	handshake := c.handshake.Load()
	if handshake == nil {
		return nil
	}
	for _, m := range handshake.AuthMethods {
		switch m := m.Variant.(type) {
		case *AuthMethodTerminal:
			if m.ID == req.MethodID {
				return fmt.Errorf("%s: %w", MethodAuthenticate, errTerminalAuth)
			}
		case *AuthMethodAgent:
			if m.ID == req.MethodID {
				return nil
			}
		}
	}
	return fmt.Errorf("%s: %w: the agent does not offer the method %q", MethodAuthenticate, ErrUnsupported, req.MethodID)
}
