// This file owns session/fork, which version 1 has only in its unstable form: it is served beside the methods of package
// acp, and advertised in an answer to initialize whose type does not know it.

package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/sessionstore"
)

const methodFork = "session/fork"

// serveFork adds session/fork to the handlers, as a method that they do not know. Its parameters are those of
// session/resume, but for a system prompt, which is ignored as by every agent that does not advertise it; its result is
// that of session/new.
func (ss *Sessions[S]) serveFork(h *acp.AgentHandlers) {
	h.Extensions = &acp.Extensions[acp.AgentConn]{
		Fallback: func(ctx context.Context, conn *acp.AgentConn, method string, params json.RawMessage) (any, error) {
			if method != methodFork {
				return nil, acp.ErrMethodNotFound.WithMessagef("Method not found: %.64q", method)
			}
			var req acp.ResumeSessionRequest
			if err := codec.Unmarshal(params, &req); err != nil {
				return nil, errors.Join(acp.InvalidParamsf("not those of %s", methodFork), err)
			}
			for _, dir := range append([]string{req.Cwd}, req.AdditionalDirectories...) {
				if !filepath.IsAbs(dir) {
					return nil, acp.InvalidParamsf("a directory is not an absolute path")
				}
			}
			if i := slices.IndexFunc(req.MCPServers, func(s acp.MCPServer) bool { return !advertised(ctx, s) }); i >= 0 {
				return nil, acp.InvalidParamsf("/mcpServers/%d/type: a type of MCP servers that was not advertised", i)
			}
			return ss.Fork(ctx, conn, req.SessionID, &acp.NewSessionRequest{
				Cwd: req.Cwd, AdditionalDirectories: req.AdditionalDirectories, MCPServers: req.MCPServers, Meta: req.Meta,
			})
		},
	}
}

// mcpKey is the context key under which the handler of session/fork finds what the agent has advertised.
type mcpKey struct{}

// advertised reports whether the agent has advertised that it takes such a server.
func advertised(ctx context.Context, server acp.MCPServer) bool {
	mcp, _ := ctx.Value(mcpKey{}).(acp.MCPCapabilities)
	switch server.Variant.(type) {
	case *acp.MCPServerStdio:
		return true
	case *acp.MCPServerHTTP:
		return mcp.HTTP
	case *acp.MCPServerSSE:
		return mcp.SSE
	}
	return false
}

// advertiseFork is a hook around one that may be nil.
func advertiseFork(serve rpc.Middleware, mcp acp.MCPCapabilities) rpc.Middleware {
	return func(ctx context.Context, call *acp.CallInfo, next func(context.Context) error) error {
		if call.Method == methodFork {
			ctx = context.WithValue(ctx, mcpKey{}, mcp)
		}
		var err error
		if serve == nil {
			err = next(ctx)
		} else {
			err = serve(ctx, call, next)
		}
		if err != nil || call.Method != acp.MethodInitialize {
			return err
		}
		call.Result, err = withFork(call.Result)
		return err
	}
}

// withFork is the answer to initialize with agentCapabilities.sessionCapabilities.fork.
func withFork(answer any) (json.RawMessage, error) {
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("the answer: %w", err)
	}
	return withMember(text, json.RawMessage(`{}`), "agentCapabilities", "sessionCapabilities", "fork")
}

// withMember sets a member of an object, at a path of objects, which are made where there are none.
func withMember(object, value json.RawMessage, path ...string) (json.RawMessage, error) {
	if len(path) == 0 {
		return value, nil
	}
	members := map[string]json.RawMessage{}
	if object != nil {
		if err := json.Unmarshal(object, &members); err != nil {
			return nil, err
		}
	}
	member, err := withMember(members[path[0]], value, path[1:]...)
	if err != nil {
		return nil, err
	}
	members[path[0]] = member
	return json.Marshal(members)
}

// Fork makes and opens a session that begins with the history and the state of another one that is stored, which it may
// name although it is open. It needs a store. With Config.Fork it is what session/fork does. Otherwise it is for agents
// that offer it in a way of their own: the client then knows the new session's id from what the agent answers, or from
// session/list.
func (ss *Sessions[S]) Fork(
	ctx context.Context, conn *acp.AgentConn, from acp.SessionID, req *acp.NewSessionRequest,
) (*acp.NewSessionResponse, error) {
	store := ss.config.Store
	if store == nil {
		return nil, fmt.Errorf("agentkit: Fork: %w", errors.ErrUnsupported)
	}
	if s, err := ss.Lookup(conn.Session(from)); err == nil {
		if err := s.flush(); err != nil {
			return nil, err
		}
	}
	info, err := store.Get(ctx, from)
	if err != nil {
		return nil, ss.answer(from, err)
	}
	id, now := newID(), time.Now()
	err = sessionstore.Fork(ctx, store, from, sessionstore.Info{
		ID: id, Cwd: req.Cwd, AdditionalDirectories: req.AdditionalDirectories, Title: info.Title, Created: now, Updated: now,
	})
	if err != nil {
		return nil, ss.answer(from, err)
	}
	o := &Opening{
		Reason: Forked, Cwd: req.Cwd, AdditionalDirectories: req.AdditionalDirectories, MCPServers: req.MCPServers, Meta: req.Meta,
	}
	s, err := ss.opening(ctx, conn.Session(id), o)
	if err != nil {
		return nil, errors.Join(err, store.Delete(context.WithoutCancel(ctx), id))
	}
	return &acp.NewSessionResponse{SessionID: s.ID(), Modes: s.modeState(), ConfigOptions: s.optionState()}, nil
}
