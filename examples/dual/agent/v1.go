package main

import (
	"context"
	"strings"
	"sync"

	"github.com/acpgo/sdk/acp"
)

// agentV1 serves a client of version 1.
type agentV1 struct {
	mu       sync.Mutex
	sessions map[acp.SessionID]string // the directories of sessions
}

func (a *agentV1) serve(ctx context.Context, transport acp.Transport) error {
	return acp.ServeAgent(ctx, transport, acp.AgentHandlers{NewSession: a.newSession, Prompt: a.prompt},
		&acp.AgentOptions{Info: acp.Implementation{Name: "acp-dual-agent", Version: "1.0.0"}})
}

func (a *agentV1) newSession(_ context.Context, _ *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
	id := acp.SessionID(newID("sess"))
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.sessions) == maxSessions {
		return nil, acp.ErrInvalidRequest.WithMessagef("%d sessions are open, the maximum", maxSessions)
	}
	if a.sessions == nil {
		a.sessions = map[acp.SessionID]string{}
	}
	a.sessions[id] = req.Cwd
	return &acp.NewSessionResponse{SessionID: id}, nil
}

func (a *agentV1) prompt(ctx context.Context, client *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	a.mu.Lock()
	cwd, ok := a.sessions[req.SessionID]
	a.mu.Unlock()
	if !ok {
		return nil, acp.SessionNotFound(req.SessionID)
	}
	var text strings.Builder
	for _, block := range req.Prompt {
		part, _ := block.Text()
		text.WriteString(part)
	}
	s := &screenV1{session: client, shown: map[string]string{}}
	if err := play(ctx, s, cwd, text.String()); err != nil {
		return nil, err
	}
	return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}

// screenV1 is the screen of a client of version 1.
type screenV1 struct {
	session *acp.AgentSession
	shown   map[string]string // the output of each command
}

func (s *screenV1) say(ctx context.Context, message, text string) error {
	return s.session.Update(ctx, acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{
		MessageID: acp.Some(acp.MessageID(message)), Content: acp.TextBlock(text),
	}))
}

func (s *screenV1) plan(ctx context.Context, steps []step) error {
	var entries []acp.PlanEntry
	for _, step := range steps {
		entries = append(entries, acp.PlanEntry{
			Content: step.text, Priority: acp.PlanEntryPriorityMedium, Status: acp.PlanEntryStatus(step.status),
		})
	}
	return s.session.Update(ctx, acp.WholePlan(entries...))
}

func (s *screenV1) propose(ctx context.Context, c *command) (bool, error) {
	id := acp.ToolCallID(c.id)
	err := s.session.Update(ctx, acp.StartToolCall(id, c.line, acp.WithKind(acp.ToolKindExecute)))
	if err != nil {
		return false, err
	}
	chosen, err := s.session.RequestPermission(ctx, acp.AboutToolCall(id, acp.WithTitle(c.line)),
		acp.AllowOnce("allow", "Allow"), acp.RejectOnce("reject", "Reject"))
	if err != nil {
		return false, err
	}
	if option, _ := chosen.Selected(); option != "allow" {
		return false, nil
	}
	return true, s.session.Update(ctx, acp.UpdateToolCall(id, acp.WithStatus(acp.ToolCallStatusInProgress)))
}

// output shows all of the output again, because version 1 cannot append.
func (s *screenV1) output(ctx context.Context, c *command, text string) error {
	s.shown[c.id] += text
	return s.session.Update(ctx, acp.UpdateToolCall(acp.ToolCallID(c.id), acp.WithContent(acp.ToolText(s.shown[c.id]))))
}

func (s *screenV1) end(ctx context.Context, c *command, how outcome) error {
	status := acp.ToolCallStatusFailed
	if how == succeeded {
		status = acp.ToolCallStatusCompleted
	}
	return s.session.Update(ctx, acp.UpdateToolCall(acp.ToolCallID(c.id), acp.WithStatus(status)))
}
