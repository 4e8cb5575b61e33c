// This file owns the agent in version 2 of the protocol.

package main

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"strings"

	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/acp/v2draft"
	"github.com/acpgo/sdk/acp/v2draft/agentkit"
)

// sessionV2 is a session. Nothing of it is kept but what was said.
type sessionV2 = agentkit.Session[struct{}]

// agentV2 serves a client of version 2. Its sessions are kept in dir; "" is a folder that is removed at the end.
type agentV2 struct{ dir string }

func (a *agentV2) serve(ctx context.Context, transport v2draft.Transport) error {
	dir := a.dir
	if dir == "" {
		temp, err := os.MkdirTemp("", "acp-dual-agent-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temp)
		dir = temp
	}
	store, err := agentkit.OpenStore(dir, &sessionstore.Options{MaxSession: maxHistory})
	if err != nil {
		return err
	}
	sessions := agentkit.NewSessions(agentkit.Config[struct{}]{Store: store, Prompt: prompt, MaxSessions: maxSessions})
	err = v2draft.ServeAgent(ctx, transport, sessions.Handlers(), &v2draft.AgentOptions{
		Info: v2draft.Implementation{Name: "acp-dual-agent", Version: "1.0.0"},
	})
	sessions.Close()
	return errors.Join(err, store.Close())
}

func prompt(ctx context.Context, s *sessionV2, req *v2draft.PromptRequest) (v2draft.IdleStateUpdate, error) {
	var text strings.Builder
	for _, block := range req.Prompt {
		part, _ := block.Text()
		text.WriteString(part)
	}
	screen := &screenV2{peer: s, planID: v2draft.PlanID(newID("plan"))}
	return v2draft.EndTurn(), play(ctx, screen, string(s.Cwd()), text.String())
}

// screenV2 is the screen of a client of version 2. What is sent through the session is kept for those who resume it.
type screenV2 struct {
	peer   *sessionV2
	planID v2draft.PlanID
}

func (s *screenV2) say(ctx context.Context, message, text string) error {
	return s.peer.Update(ctx, v2draft.AgentMessageText(v2draft.MessageID(message), text))
}

func (s *screenV2) plan(ctx context.Context, steps []step) error {
	var entries []v2draft.PlanEntry
	for _, step := range steps {
		entries = append(entries, v2draft.PlanEntry{
			Content: step.text, Priority: v2draft.PlanEntryPriorityMedium, Status: v2draft.PlanEntryStatus(step.status),
		})
	}
	return s.peer.Update(ctx, v2draft.WholePlan(s.planID, entries...))
}

func (s *screenV2) propose(ctx context.Context, c *command) (bool, error) {
	id := v2draft.ToolCallID(c.id)
	if err := s.peer.Update(ctx, v2draft.StartToolCall(id, c.line, v2draft.WithKind(v2draft.ToolKindExecute))); err != nil {
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

// open shows the command's terminal, which is the agent's own and only shown, in its tool call.
func (s *screenV2) open(ctx context.Context, c *command) error {
	terminal := v2draft.TerminalID(c.id)
	err := s.peer.Update(ctx, v2draft.NewSessionUpdateTerminalUpdate(v2draft.TerminalUpdate{
		TerminalID: terminal, Command: v2draft.Some(c.line), Cwd: v2draft.Some(v2draft.AbsolutePath(c.cwd)),
	}))
	if err != nil {
		return err
	}
	return s.peer.Update(ctx, v2draft.UpdateToolCall(v2draft.ToolCallID(c.id),
		v2draft.WithStatus(v2draft.ToolCallStatusInProgress), v2draft.WithContent(v2draft.ToolTerminal(terminal))))
}

func (s *screenV2) output(ctx context.Context, c *command, text string) error {
	return s.peer.Update(ctx, v2draft.NewSessionUpdateTerminalOutputChunk(v2draft.TerminalOutputChunk{
		TerminalID: v2draft.TerminalID(c.id), Data: base64.StdEncoding.EncodeToString([]byte(text)),
	}))
}

func (s *screenV2) end(ctx context.Context, c *command, how outcome) error {
	status, exit := v2draft.ToolCallStatusCompleted, int64(0)
	if how != succeeded {
		status, exit = v2draft.ToolCallStatusFailed, 1
	}
	if how != refused {
		err := s.peer.Update(ctx, v2draft.NewSessionUpdateTerminalUpdate(v2draft.TerminalUpdate{
			TerminalID: v2draft.TerminalID(c.id),
			ExitStatus: v2draft.Some(v2draft.TerminalExitStatus{ExitCode: v2draft.Some(exit)}),
		}))
		if err != nil {
			return err
		}
	}
	return s.peer.Update(ctx, v2draft.UpdateToolCall(v2draft.ToolCallID(c.id), v2draft.WithStatus(status)))
}
