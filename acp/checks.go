// This file owns what can be said of a message before any handler sees it: whether its method was
// advertised, and what the protocol asks of its values beyond the schema.

package acp

import (
	"strconv"
	"strings"

	"github.com/acpgo/sdk/acp/rpc"
)

// agentServes reports whether an agent that advertised caps serves a method.
func agentServes(caps *AgentCapabilities, method string) bool {
	s := &caps.SessionCapabilities
	switch method {
	case MethodLoadSession:
		return caps.LoadSession
	case MethodListSessions:
		return s.List.Present()
	case MethodDeleteSession:
		return s.Delete.Present()
	case MethodResumeSession:
		return s.Resume.Present()
	case MethodCloseSession:
		return s.Close.Present()
	case MethodLogout:
		return caps.Auth.Logout.Present()
	default:
		return true
	}
}

// clientServes reports whether a client that advertised caps serves a method.
func clientServes(caps *ClientCapabilities, method string) bool {
	switch method {
	case MethodReadTextFile:
		return caps.FS.ReadTextFile
	case MethodWriteTextFile:
		return caps.FS.WriteTextFile
	case MethodCreateTerminal, MethodTerminalOutput, MethodReleaseTerminal, MethodWaitForTerminalExit, MethodKillTerminal:
		return caps.Terminal
	default:
		return true
	}
}

// checkParams refuses paths that are not absolute, and lines that do not count from 1.
func checkParams(params any) *Error {
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

func checkSetup(cwd string, roots []string, servers []MCPServer) *Error {
	if err := checkPath("/cwd", cwd); err != nil {
		return err
	}
	for i, root := range roots {
		if err := checkPath("/additionalDirectories/"+strconv.Itoa(i), root); err != nil {
			return err
		}
	}
	for i, server := range servers {
		if stdio, ok := server.Variant.(*MCPServerStdio); ok {
			if err := checkPath("/mcpServers/"+strconv.Itoa(i)+"/command", stdio.Command); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkOptPath(pointer string, path Opt[string]) *Error {
	if path, ok := path.Get(); ok {
		return checkPath(pointer, path)
	}
	return nil
}

// checkPath accepts absolute paths of any system: the peer may run on another one.
func checkPath(pointer, path string) *Error {
	drive := len(path) > 2 && path[1] == ':' && (path[2] == '\\' || path[2] == '/')
	if strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\\`) || drive {
		return nil
	}
	return invalid(pointer, "not an absolute path")
}

// checkElicitation refuses modes that the client did not advertise (ELI-23).
func checkElicitation(caps *ClientCapabilities, params any) *Error {
	offered := caps.Elicitation.Value()
	req, ok := params.(*CreateElicitationRequest)
	if !ok {
		return nil
	}
	switch req.Variant.(type) {
	case *CreateElicitationRequestForm:
		ok = offered.Form.Present()
	case *CreateElicitationRequestURL:
		ok = offered.URL.Present()
	default:
		ok = false
	}
	if !ok {
		return invalid("/mode", "an elicitation mode that was not advertised")
	}
	return nil
}

// checkOutcome refuses a choice that was not offered (TOL-5).
func checkOutcome(req *RequestPermissionRequest, res *RequestPermissionResponse) error {
	chosen, ok := res.Outcome.Selected()
	if !ok {
		return nil
	}
	for _, option := range req.Options {
		if option.OptionID == chosen {
			return nil
		}
	}
	return rpc.Errorf(rpc.CodeInternalError, "the client chose an option that was not offered")
}

func invalid(pointer, reason string) *Error {
	return ErrInvalidParams.WithMessage("Invalid params: %s: %s", pointer, reason).
		WithData(map[string]string{"pointer": pointer, "reason": reason})
}
