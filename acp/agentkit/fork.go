package agentkit

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/sessionstore"
)

func (ss *sessions) forkSession(
	ctx context.Context, session *acp.AgentSession, req *acp.ForkSessionRequest,
) (*acp.ForkSessionResponse, error) {
	if err := ss.authorize(ctx, session.Conn()); err != nil {
		return nil, err
	}
	res, err := ss.Fork(ctx, session.Conn(), session.ID(), &acp.NewSessionRequest{
		Cwd: req.Cwd, AdditionalDirectories: req.AdditionalDirectories, MCPServers: req.MCPServers,
		SystemPrompt: req.SystemPrompt, Meta: req.Meta,
	})
	if err != nil {
		return nil, err
	}
	return &acp.ForkSessionResponse{SessionID: res.SessionID, Modes: res.Modes, ConfigOptions: res.ConfigOptions}, nil
}

// Fork creates and opens a session that begins with the history and the state of another stored session, which may be
// open. It requires a store. With Config.Fork, session/fork calls it. Otherwise it is for agents that offer forking in
// their own way: the client then learns the new session's id from the agent's answer, or from session/list.
func (ss *sessions) Fork(
	ctx context.Context, conn *acp.AgentConn, from acp.SessionID, req *acp.NewSessionRequest,
) (*acp.NewSessionResponse, error) {
	store := ss.config.store
	if store == nil {
		return nil, fmt.Errorf("agentkit: Fork: %w", errors.ErrUnsupported)
	}
	if s, err := ss.lookup(conn.Session(from)); err == nil {
		if err := s.flush(); err != nil {
			return nil, err
		}
	}
	info, err := store.Get(ctx, from)
	if err != nil {
		return nil, ss.answer(from, err)
	}
	id, now, cwd := newID(), time.Now(), filepath.Clean(req.Cwd)
	err = sessionstore.Fork(ctx, store, from, sessionstore.Info{
		ID: id, Cwd: cwd, AdditionalDirectories: req.AdditionalDirectories, Title: info.Title, Created: now, Updated: now,
	})
	if err != nil {
		return nil, ss.answer(from, err)
	}
	o := &Opening{
		Reason: Forked, Cwd: cwd, AdditionalDirectories: req.AdditionalDirectories, MCPServers: req.MCPServers,
		SystemPrompt: req.SystemPrompt, Meta: req.Meta,
	}
	s, err := ss.opening(ctx, conn.Session(id), o)
	if err != nil {
		return nil, errors.Join(err, store.Delete(context.WithoutCancel(ctx), id))
	}
	return &acp.NewSessionResponse{SessionID: s.ID(), Modes: s.modeState(), ConfigOptions: s.optionState()}, nil
}
