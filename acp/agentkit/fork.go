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
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/internal/forks"
)

// serveFork adds session/fork to the handlers, as a method that they do not know. Its parameters are those of
// session/resume, but for a system prompt, which is ignored as by every agent that does not advertise it; its result is
// that of session/new.
func (ss *Sessions[S]) serveFork(h *acp.AgentHandlers) {
	h.Extensions = &acp.Extensions[acp.AgentConn]{
		Fallback: func(ctx context.Context, conn *acp.AgentConn, method string, params json.RawMessage) (any, error) {
			if method != forks.Method {
				return nil, acp.ErrMethodNotFound.WithMessagef("Method not found: %.64q", method)
			}
			var req acp.ResumeSessionRequest
			if err := codec.Unmarshal(params, &req); err != nil {
				return nil, errors.Join(acp.InvalidParamsf("not those of %s", forks.Method), err)
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

// advertised reports whether the agent has advertised that it takes such a server.
func advertised(ctx context.Context, server acp.MCPServer) bool {
	mcp := forks.MCP[acp.MCPCapabilities](ctx)
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

// Fork creates and opens a session that begins with the history and the state of another stored session, which may be
// open. It requires a store. With Config.Fork, session/fork calls it. Otherwise it is for agents that offer forking in
// their own way: the client then learns the new session's id from the agent's answer, or from session/list.
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
