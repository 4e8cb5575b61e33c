// This file owns the two session types: a peer scoped to one session.

package acp

import (
	"context"
	"errors"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
)

// SessionClient is the client as its agent sees it, scoped to one session. Its methods fill in the
// session's id, and are safe for concurrent use.
type SessionClient struct {
	peer *ClientPeer
	id   SessionID
}

// ID is the session's id.
func (s *SessionClient) ID() SessionID { return s.id }

// Client is the client, of all sessions.
func (s *SessionClient) Client() *ClientPeer { return s.peer }

// Update sends an update (session/update). Updates arrive in the order in which they were sent, and
// before the answer to the prompt if they are sent before its handler returns. With the context of a
// turn that was cancelled it still sends, and waits ten seconds at most while too much is unsent.
func (s *SessionClient) Update(ctx context.Context, update SessionUpdate) error {
	if errors.Is(context.Cause(ctx), ErrTurnCancelled) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
	}
	return s.peer.SessionUpdate(ctx, &SessionNotification{SessionID: s.id, Update: update})
}

// RequestPermission asks the user whether a tool call may go on (session/request_permission). When the
// turn is cancelled it returns an error, which the prompt's handler may return as it is. An outcome of
// a kind that is not known must be taken for a refusal.
func (s *SessionClient) RequestPermission(
	ctx context.Context, call ToolCallUpdate, options ...PermissionOption,
) (RequestPermissionOutcome, error) {
	req := &RequestPermissionRequest{SessionID: s.id, ToolCall: call, Options: options}
	res, err := s.peer.RequestPermission(ctx, req)
	if err != nil {
		return RequestPermissionOutcome{}, err
	}
	return res.Outcome, nil
}

// CreateTerminal starts a command in a terminal of the client's (terminal/create). The caller must
// Close it. When ctx ends meanwhile, the client's answer is waited for all the same, for ten seconds at
// most, so that the terminal can be released, and the cause is returned.
func (s *SessionClient) CreateTerminal(ctx context.Context, req *CreateTerminalRequest) (*TerminalHandle, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r := *req
	r.SessionID = s.id
	detached, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(releaseTime, func() { cancel(context.Cause(ctx)) })
		context.AfterFunc(detached, func() { timer.Stop() })
	})()
	res, err := s.peer.CreateTerminal(detached, &r)
	if err != nil {
		return nil, err
	}
	t := &TerminalHandle{session: s, id: res.TerminalID}
	if ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), t.Close(ctx))
	}
	return t, nil
}

// ElicitForm asks the user to fill in a form (elicitation/create, mode form).
func (s *SessionClient) ElicitForm(
	ctx context.Context, message string, schema ElicitationSchema,
) (*CreateElicitationResponse, error) {
	scope := ElicitationSessionScope{SessionID: s.id}
	req := NewCreateElicitationRequestForm(message, NewElicitationFormModeSession(schema, scope))
	return s.peer.CreateElicitation(ctx, &req)
}

// ElicitURL asks the user to open a URL (elicitation/create, mode url). id must be unique among the
// connection's elicitations that are under way; when what happens there is done, tell the client by
// ClientPeer.CompleteElicitation.
func (s *SessionClient) ElicitURL(
	ctx context.Context, message string, id ElicitationID, url string,
) (*CreateElicitationResponse, error) {
	scope := ElicitationSessionScope{SessionID: s.id}
	req := NewCreateElicitationRequestURL(message, NewElicitationURLModeSession(id, url, scope))
	return s.peer.CreateElicitation(ctx, &req)
}

// TerminalHandle is a command that runs in a terminal of the client's. Its methods are safe for
// concurrent use.
type TerminalHandle struct {
	session *SessionClient
	id      TerminalID
}

// ID is the terminal's id, to be shown in a tool call with TerminalContent. It must be put there before
// Close.
func (t *TerminalHandle) ID() TerminalID { return t.id }

// Output returns what the command has written so far, and how it ended if it has (terminal/output).
func (t *TerminalHandle) Output(ctx context.Context) (*TerminalOutputResponse, error) {
	return t.session.peer.TerminalOutput(ctx, &TerminalOutputRequest{SessionID: t.session.id, TerminalID: t.id})
}

// Wait waits until the command has ended (terminal/wait_for_exit).
func (t *TerminalHandle) Wait(ctx context.Context) (*WaitForTerminalExitResponse, error) {
	return t.session.peer.WaitForTerminalExit(ctx, &WaitForTerminalExitRequest{SessionID: t.session.id, TerminalID: t.id})
}

// Kill ends the command (terminal/kill). Output and Wait still work afterwards, and Close is still
// needed.
func (t *TerminalHandle) Kill(ctx context.Context) error {
	_, err := t.session.peer.KillTerminal(ctx, &KillTerminalRequest{SessionID: t.session.id, TerminalID: t.id})
	return err
}

// releaseTime bounds what is still sent for a turn that was cancelled: its last updates, the release of
// its terminals.
const releaseTime = 10 * time.Second

// Close ends the command if it still runs and releases the terminal (terminal/release); the id is
// invalid then. It works with a context that has ended, such as a cancelled turn's.
func (t *TerminalHandle) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	_, err := t.session.peer.ReleaseTerminal(ctx, &ReleaseTerminalRequest{SessionID: t.session.id, TerminalID: t.id})
	return err
}

// SessionAgent is the agent as its client sees it, scoped to one session. Its methods fill in the
// session's id, and are safe for concurrent use.
type SessionAgent struct {
	peer          *AgentPeer
	id            SessionID
	modes         Opt[SessionModeState]
	configOptions Opt[[]SessionConfigOption]
}

// ID is the session's id.
func (s *SessionAgent) ID() SessionID { return s.id }

// Agent is the agent, of all sessions.
func (s *SessionAgent) Agent() *AgentPeer { return s.peer }

// Modes are the modes that the agent named when the session was created, loaded or resumed. Later
// changes come as updates.
func (s *SessionAgent) Modes() Opt[SessionModeState] { return s.modes }

// ConfigOptions are the config options that the agent named when the session was created, loaded or
// resumed. Later changes come as updates.
func (s *SessionAgent) ConfigOptions() Opt[[]SessionConfigOption] { return s.configOptions }

// Prompt runs a turn and waits for its end; updates go to the client's handler. See AgentPeer.Prompt
// for what happens when ctx ends.
func (s *SessionAgent) Prompt(ctx context.Context, prompt ...ContentBlock) (*PromptResponse, error) {
	return s.peer.Prompt(ctx, &PromptRequest{SessionID: s.id, Prompt: prompt})
}

// Turn is a prompt in progress: Updates yields its updates as they come, Result waits for its end, and
// Cancel cancels it.
type Turn = rpc.Turn[SessionUpdate, PromptResponse]

// Stream starts a turn whose updates are read as they come. They also go to the client's handler, if it
// has one; a loop over the updates inside that handler would wait for itself. The turn is over when
// Result returns.
func (s *SessionAgent) Stream(ctx context.Context, prompt ...ContentBlock) *Turn {
	req := &PromptRequest{SessionID: s.id, Prompt: prompt}
	if err := s.peer.checkPrompt(req); err != nil {
		return rpc.FailedTurn[SessionUpdate, PromptResponse](s.peer.conn, err)
	}
	return rpc.StartTurn(ctx, s.peer.conn, methodPrompt, req, turnSpec(s.id), func(params any) (SessionUpdate, bool) {
		n, ok := params.(*SessionNotification)
		if !ok {
			return SessionUpdate{}, false
		}
		return n.Update, true
	})
}

// Cancel cancels the session's turns (session/cancel) and does not wait for their end. Without a turn
// it is harmless.
func (s *SessionAgent) Cancel(ctx context.Context) error {
	return s.peer.Cancel(ctx, &CancelNotification{SessionID: s.id})
}

// SetMode chooses one of the session's modes (session/set_mode).
func (s *SessionAgent) SetMode(ctx context.Context, mode SessionModeID) error {
	_, err := s.peer.SetSessionMode(ctx, &SetSessionModeRequest{SessionID: s.id, ModeID: mode})
	return err
}

// Close ends the session at the agent (session/close). That the agent does not know it any more counts
// as success.
func (s *SessionAgent) Close(ctx context.Context) error {
	_, err := s.peer.CloseSession(ctx, &CloseSessionRequest{SessionID: s.id})
	return goneIsFine(err)
}

// Delete removes the session from the agent's list (session/delete). That it is not there counts as
// success.
func (s *SessionAgent) Delete(ctx context.Context) error {
	_, err := s.peer.DeleteSession(ctx, &DeleteSessionRequest{SessionID: s.id})
	return goneIsFine(err)
}

func goneIsFine(err error) error {
	if errors.Is(err, ErrResourceNotFound) {
		return nil
	}
	return err
}
