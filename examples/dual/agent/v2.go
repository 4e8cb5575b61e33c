package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/acpv2/agentkit"
	"github.com/acpgo/sdk/acp/sessionstore"
)

// sessionV2 is a session. Only its conversation is stored.
type sessionV2 = agentkit.Session[struct{}]

// agentV2 serves a client of version 2. Its sessions are stored in dir; "" means a temporary directory that is removed
// at the end.
type agentV2 struct{ dir string }

func (a *agentV2) serve(ctx context.Context, transport acpv2.Transport) error {
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
	err = acpv2.ServeAgent(ctx, transport, sessions.Handlers(), &acpv2.AgentOptions{
		Info: acpv2.Implementation{Name: "acp-dual-agent", Version: "1.0.0"},
	})
	sessions.Close()
	return errors.Join(err, store.Close())
}

func prompt(ctx context.Context, s *sessionV2, req *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
	screen := &screenV2{session: s, planID: acpv2.PlanID(newID("plan"))}
	return acpv2.EndTurn(), play(ctx, screen, string(s.Cwd()), agentkit.PromptText(req))
}

// screenV2 is the screen of a client of version 2. Updates sent through the session are stored for clients that resume
// it, and everything that the turn leaves open is closed at its end.
type screenV2 struct {
	session  *sessionV2
	planID   acpv2.PlanID
	call     *agentkit.ToolCall // the tool call of the running command
	terminal *agentkit.Terminal // which belongs to the agent; the client only shows it
}

func (s *screenV2) say(ctx context.Context, message, text string) error {
	return s.session.Update(ctx, acpv2.AgentMessageText(acpv2.MessageID(message), text))
}

func (s *screenV2) plan(ctx context.Context, steps []step) error {
	var entries []acpv2.PlanEntry
	for _, step := range steps {
		entries = append(entries, acpv2.PlanEntry{
			Content: step.text, Priority: acpv2.PlanEntryPriorityMedium, Status: acpv2.PlanEntryStatus(step.status),
		})
	}
	return s.session.Update(ctx, acpv2.WholePlan(s.planID, entries...))
}

func (s *screenV2) propose(ctx context.Context, c *command) (allowed bool, err error) {
	if s.call, err = s.session.StartToolCall(ctx, c.line, acpv2.WithKind(acpv2.ToolKindExecute)); err != nil {
		return false, err
	}
	if _, err := s.call.Ask(ctx); errors.Is(err, agentkit.ErrRejected) || errors.Is(err, agentkit.ErrDismissed) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	if s.terminal, err = s.session.StartTerminal(ctx, c.line, acpv2.AbsolutePath(c.cwd)); err != nil {
		return false, err
	}
	return true, s.call.Terminal(s.terminal)
}

func (s *screenV2) output(_ context.Context, _ *command, text string) error {
	_, err := io.WriteString(s.terminal, text)
	return err
}

func (s *screenV2) end(_ context.Context, _ *command, how outcome) error {
	switch how {
	case refused:
		return s.call.Fail(agentkit.ErrRejected)
	case failed:
		return errors.Join(s.terminal.Exited(1), s.call.Fail(nil))
	default:
		return errors.Join(s.terminal.Exited(0), s.call.Done())
	}
}
