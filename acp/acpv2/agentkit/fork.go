package agentkit

import (
	"context"
	"errors"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/sessionstore"
)

func (ss *Sessions[S]) forkSession(
	ctx context.Context, session *acpv2.AgentSession, req *acpv2.ForkSessionRequest,
) (*acpv2.ForkSessionResponse, error) {
	res, err := ss.Fork(ctx, session.Conn(), session.ID(), &acpv2.NewSessionRequest{
		Cwd: req.Cwd, AdditionalDirectories: req.AdditionalDirectories, MCPServers: req.MCPServers,
		SystemPrompt: req.SystemPrompt, Meta: req.Meta,
	})
	if err != nil {
		return nil, err
	}
	return &acpv2.ForkSessionResponse{
		SessionID: res.SessionID, ConfigOptions: res.ConfigOptions, AvailableCommands: res.AvailableCommands,
	}, nil
}

// Fork creates and opens a session that begins with the history and the state of another stored session, which may be
// open. With Config.Fork, session/fork calls it. Otherwise it is for agents that offer forking in their own way: the
// client then learns the new session's id from the agent's answer, or from session/list.
func (ss *Sessions[S]) Fork(
	ctx context.Context, conn *acpv2.AgentConn, from acpv2.SessionID, req *acpv2.NewSessionRequest,
) (*acpv2.NewSessionResponse, error) {
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
		Forked: true, Cwd: req.Cwd, AdditionalDirectories: req.AdditionalDirectories, MCPServers: req.MCPServers,
		SystemPrompt: req.SystemPrompt, Meta: req.Meta,
	}
	id, now := acpv2.SessionID(newID("sess_")), time.Now()
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
	return &acpv2.NewSessionResponse{SessionID: id, ConfigOptions: o.ConfigOptions, AvailableCommands: o.Commands}, nil
}
