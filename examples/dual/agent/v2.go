// This file owns the agent in version 2 of the protocol.

package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/acpgo/sdk/acp/v2draft"
)

// agentV2 serves a client of version 2.
type agentV2 struct {
	mu       sync.Mutex
	sessions map[v2draft.SessionID]*sessionV2
}

// sessionV2 is a session, which can be resumed as long as the agent lives.
type sessionV2 struct {
	id  v2draft.SessionID
	cwd v2draft.AbsolutePath

	mu      sync.Mutex
	history []v2draft.SessionUpdate
	bytes   int // of it, as JSON
}

func (a *agentV2) serve(ctx context.Context, transport v2draft.Transport) error {
	return v2draft.ServeAgent(ctx, transport, v2draft.AgentHandlers{
		NewSession:    a.newSession,
		ListSessions:  a.listSessions,
		ResumeSession: a.resumeSession,
		CloseSession:  a.closeSession,
		Prompt:        a.prompt,
	}, &v2draft.AgentOptions{Info: v2draft.Implementation{Name: "acp-dual-agent", Version: "1.0.0"}})
}

func (a *agentV2) newSession(_ context.Context, _ *v2draft.AgentConn, req *v2draft.NewSessionRequest) (*v2draft.NewSessionResponse, error) {
	s := &sessionV2{id: v2draft.SessionID(newID("sess")), cwd: req.Cwd}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.sessions) == maxSessions {
		return nil, v2draft.ErrInvalidRequest.WithMessagef("there are %d sessions, which is the most", maxSessions)
	}
	if a.sessions == nil {
		a.sessions = map[v2draft.SessionID]*sessionV2{}
	}
	a.sessions[s.id] = s
	return &v2draft.NewSessionResponse{SessionID: s.id}, nil
}

func (a *agentV2) session(id v2draft.SessionID) (*sessionV2, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[id]; s != nil {
		return s, nil
	}
	return nil, v2draft.SessionNotFound(id)
}

func (a *agentV2) listSessions(_ context.Context, _ *v2draft.AgentConn, req *v2draft.ListSessionsRequest) (*v2draft.ListSessionsResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	res := &v2draft.ListSessionsResponse{}
	for _, s := range a.sessions {
		if cwd, ok := req.Cwd.Get(); !ok || cwd == s.cwd {
			res.Sessions = append(res.Sessions, v2draft.SessionInfo{SessionID: s.id, Cwd: s.cwd})
		}
	}
	return res, nil
}

// resumeSession replays the history if the client wants that. The runtime adds the session's state.
func (a *agentV2) resumeSession(ctx context.Context, session *v2draft.AgentSession, req *v2draft.ResumeSessionRequest) (*v2draft.ResumeSessionResponse, error) {
	s, err := a.session(req.SessionID)
	if err != nil {
		return nil, err
	}
	if _, ok := req.ReplayFrom.Value().Variant.(*v2draft.ReplayFromStart); ok {
		s.mu.Lock()
		history := slices.Clone(s.history)
		s.mu.Unlock()
		for _, update := range history {
			if err := session.Update(ctx, update); err != nil {
				return nil, err
			}
		}
	}
	return &v2draft.ResumeSessionResponse{}, nil
}

// closeSession has nothing to free: the runtime has ended the session's work, and the history stays.
func (a *agentV2) closeSession(_ context.Context, _ *v2draft.AgentSession, req *v2draft.CloseSessionRequest) (*v2draft.CloseSessionResponse, error) {
	_, err := a.session(req.SessionID)
	return &v2draft.CloseSessionResponse{}, err
}

func (a *agentV2) prompt(ctx context.Context, peer *v2draft.AgentSession, req *v2draft.PromptRequest) (*v2draft.PromptResponse, error) {
	s, err := a.session(req.SessionID)
	if err != nil {
		return nil, err
	}
	if s.full() {
		return nil, v2draft.ErrInvalidRequest.WithMessagef("the session is full: open a new one")
	}
	message := v2draft.UserMessage{MessageID: v2draft.MessageID(newID("msg")), Content: v2draft.Some(req.Prompt)}
	var text strings.Builder
	for _, block := range req.Prompt {
		part, _ := block.Text()
		text.WriteString(part)
	}
	return peer.StartTurnWith(ctx, message, func(ctx context.Context) (v2draft.IdleStateUpdate, error) {
		if err := s.remember(v2draft.NewSessionUpdateUserMessage(message)); err != nil {
			return v2draft.IdleStateUpdate{}, err
		}
		screen := &screenV2{session: s, peer: peer, planID: v2draft.PlanID(newID("plan")), begun: map[string]bool{}}
		return v2draft.EndTurn(), play(ctx, screen, string(s.cwd), text.String())
	})
}

func (s *sessionV2) remember(u v2draft.SessionUpdate) error {
	text, err := json.Marshal(u)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history, s.bytes = append(s.history, u), s.bytes+len(text)
	return nil
}

func (s *sessionV2) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes > maxHistory
}

// screenV2 is the screen of a client of version 2.
type screenV2 struct {
	session *sessionV2
	peer    *v2draft.AgentSession
	planID  v2draft.PlanID
	begun   map[string]bool // the messages that were
}

// update sends an update and keeps it for those who resume the session later.
func (s *screenV2) update(ctx context.Context, u v2draft.SessionUpdate) error {
	if err := s.session.remember(u); err != nil {
		return err
	}
	return s.peer.Update(ctx, u)
}

// say keeps an update that empties the message in front of its chunks: who resumes the session may have the message
// already, and would have it twice.
func (s *screenV2) say(ctx context.Context, message, text string) error {
	if !s.begun[message] {
		s.begun[message] = true
		err := s.session.remember(v2draft.NewSessionUpdateAgentMessage(v2draft.AgentMessage{
			MessageID: v2draft.MessageID(message), Content: v2draft.Some([]v2draft.ContentBlock{}),
		}))
		if err != nil {
			return err
		}
	}
	return s.update(ctx, v2draft.AgentMessageText(v2draft.MessageID(message), text))
}

func (s *screenV2) plan(ctx context.Context, steps []step) error {
	var entries []v2draft.PlanEntry
	for _, step := range steps {
		entries = append(entries, v2draft.PlanEntry{
			Content: step.text, Priority: v2draft.PlanEntryPriorityMedium, Status: v2draft.PlanEntryStatus(step.status),
		})
	}
	return s.update(ctx, v2draft.WholePlan(s.planID, entries...))
}

func (s *screenV2) propose(ctx context.Context, c *command) (bool, error) {
	id := v2draft.ToolCallID(c.id)
	if err := s.update(ctx, v2draft.StartToolCall(id, c.line, v2draft.WithKind(v2draft.ToolKindExecute))); err != nil {
		return false, err
	}
	chosen, err := s.peer.RequestPermission(ctx, &v2draft.RequestPermissionRequest{
		Title:   "Run " + c.line + "?",
		Subject: v2draft.Some(v2draft.PermissionForToolCall(v2draft.AboutToolCall(id, v2draft.WithTitle(c.line)))),
		Options: []v2draft.PermissionOption{v2draft.AllowOnce("allow", "Allow"), v2draft.RejectOnce("reject", "Reject")},
	})
	if err != nil {
		return false, err
	}
	option, _ := chosen.Selected()
	if option != "allow" {
		return false, nil
	}
	return true, s.open(ctx, c)
}

// open shows the command's terminal, which is the agent's own and only shown, in its tool call. That it has no output
// yet is said for those who resume the session and have it already.
func (s *screenV2) open(ctx context.Context, c *command) error {
	terminal := v2draft.TerminalID(c.id)
	err := s.update(ctx, v2draft.NewSessionUpdateTerminalUpdate(v2draft.TerminalUpdate{
		TerminalID: terminal, Command: v2draft.Some(c.line), Cwd: v2draft.Some(v2draft.AbsolutePath(c.cwd)),
		Output: v2draft.Some(v2draft.TerminalOutput{}),
	}))
	if err != nil {
		return err
	}
	return s.update(ctx, v2draft.UpdateToolCall(v2draft.ToolCallID(c.id),
		v2draft.WithStatus(v2draft.ToolCallStatusInProgress), v2draft.WithContent(v2draft.ToolTerminal(terminal))))
}

func (s *screenV2) output(ctx context.Context, c *command, text string) error {
	return s.update(ctx, v2draft.NewSessionUpdateTerminalOutputChunk(v2draft.TerminalOutputChunk{
		TerminalID: v2draft.TerminalID(c.id), Data: base64.StdEncoding.EncodeToString([]byte(text)),
	}))
}

func (s *screenV2) end(ctx context.Context, c *command, how outcome) error {
	status, exit := v2draft.ToolCallStatusCompleted, int64(0)
	if how != succeeded {
		status, exit = v2draft.ToolCallStatusFailed, 1
	}
	if how != refused {
		err := s.update(ctx, v2draft.NewSessionUpdateTerminalUpdate(v2draft.TerminalUpdate{
			TerminalID: v2draft.TerminalID(c.id),
			ExitStatus: v2draft.Some(v2draft.TerminalExitStatus{ExitCode: v2draft.Some(exit)}),
		}))
		if err != nil {
			return err
		}
	}
	return s.update(ctx, v2draft.UpdateToolCall(v2draft.ToolCallID(c.id), v2draft.WithStatus(status)))
}
