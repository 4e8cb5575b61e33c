package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/acp/v2draft"
	"github.com/acpgo/sdk/internal/forks"
)

// serveFork adds session/fork to the handlers, as a method that they do not know. Its parameters are those of
// session/resume, but for a system prompt, which is ignored as by every agent that does not advertise it; its result is
// that of session/new.
func (ss *Sessions[S]) serveFork(h *v2draft.AgentHandlers) {
	h.Extensions = &rpc.Extensions[v2draft.AgentConn]{
		Fallback: func(ctx context.Context, conn *v2draft.AgentConn, method string, params json.RawMessage) (any, error) {
			if method != forks.Method {
				return nil, v2draft.ErrMethodNotFound.WithMessagef("Method not found: %.64q", method)
			}
			var req v2draft.ResumeSessionRequest
			if err := codec.Unmarshal(params, &req); err != nil {
				return nil, errors.Join(v2draft.InvalidParamsf("not those of %s", forks.Method), err)
			}
			for _, dir := range append([]v2draft.AbsolutePath{req.Cwd}, req.AdditionalDirectories...) {
				if !filepath.IsAbs(string(dir)) {
					return nil, v2draft.InvalidParamsf("a directory is not an absolute path")
				}
			}
			if i := slices.IndexFunc(req.MCPServers, func(s v2draft.MCPServer) bool { return !advertised(ctx, s) }); i >= 0 {
				return nil, v2draft.InvalidParamsf("/mcpServers/%d/type: a type of MCP servers that was not advertised", i)
			}
			return ss.Fork(ctx, conn, req.SessionID, &v2draft.NewSessionRequest{
				Cwd: req.Cwd, AdditionalDirectories: req.AdditionalDirectories, MCPServers: req.MCPServers, Meta: req.Meta,
			})
		},
	}
}

// advertised reports whether the agent has advertised that it takes such a server.
func advertised(ctx context.Context, server v2draft.MCPServer) bool {
	mcp := forks.MCP[v2draft.MCPCapabilities](ctx)
	switch server.Variant.(type) {
	case *v2draft.MCPServerStdio:
		return mcp.Stdio.Present()
	case *v2draft.MCPServerHTTP:
		return mcp.HTTP.Present()
	}
	return false
}

// Fork makes and opens a session that begins with the history and the state of another one that is stored, which it may
// name although it is open. With Config.Fork it is what session/fork does. Otherwise it is for agents that offer it in a way
// of their own: the client then knows the new session's id from what the agent answers, or from session/list.
func (ss *Sessions[S]) Fork(
	ctx context.Context, conn *v2draft.AgentConn, from v2draft.SessionID, req *v2draft.NewSessionRequest,
) (*v2draft.NewSessionResponse, error) {
	store := ss.config.Store
	if s, release, err := ss.open.Use(conn, from); err == nil {
		err := s.flush()
		release()
		if err != nil {
			return nil, answer(from, err)
		}
	}
	info, err := store.Get(ctx, acp.SessionID(from))
	if err != nil {
		return nil, answer(from, err)
	}
	o := &Opening{
		Forked: true, Cwd: req.Cwd, AdditionalDirectories: req.AdditionalDirectories, MCPServers: req.MCPServers, Meta: req.Meta,
	}
	id, now := v2draft.SessionID(newID("sess_")), time.Now()
	err = sessionstore.Fork(ctx, store, acp.SessionID(from), sessionstore.Info{
		ID: acp.SessionID(id), Cwd: string(req.Cwd), AdditionalDirectories: plain(req.AdditionalDirectories),
		Title: info.Title, Created: now, Updated: now,
	})
	if err != nil {
		return nil, answer(from, err)
	}
	if err := ss.opening(ctx, conn.Session(id), o, false); err != nil {
		return nil, errors.Join(err, store.Delete(context.WithoutCancel(ctx), acp.SessionID(id)))
	}
	return &v2draft.NewSessionResponse{SessionID: id, ConfigOptions: o.ConfigOptions, AvailableCommands: o.Commands}, nil
}
