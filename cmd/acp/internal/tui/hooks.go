package tui

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/conformance"
)

// hooks pass the events of a client to the loop as messages.
type hooks struct{ send func(tea.Msg) }

// The messages of hooks.
type (
	askedMsg     struct{ question *question }
	withdrawnMsg struct{ question *question }
	eventMsg     talk.Event
	outputMsg    struct {
		session  acp.SessionID
		terminal acp.TerminalID
	}
	foundMsg  conformance.Finding
	stderrMsg []string
)

// options returns the options of a client that uses these hooks.
func (h hooks) options(opts *Options) *talk.Options {
	base := opts.Talk
	o := base
	o.Ask, o.Form, o.URL = h.permission, h.form, h.page
	o.Event = func(e talk.Event) { h.send(eventMsg(e)) }
	o.Output = func(s acp.SessionID, t acp.TerminalID) { h.send(outputMsg{s, t}) }
	if base.Findings != nil {
		o.Findings = func(f conformance.Finding) {
			if f.Level > opts.Level {
				return
			}
			base.Findings(f)
			h.send(foundMsg(f))
		}
	}
	o.TerminalLogin, o.Plans, o.Subagents = true, true, true
	// the user decides whether a program that has ended is started again
	o.NoReconnect = base.NoReconnect || base.Agent.Command != nil
	return &o
}

func (h hooks) permission(ctx context.Context, q *talk.Question) (acp.PermissionOptionID, error) {
	return ask(ctx, h, q.Session,
		func(answer func(acp.PermissionOptionID)) dialog { return newPermission(q, answer) })
}

func (h hooks) form(ctx context.Context, e *talk.Elicitation) (*acp.CreateElicitationResponse, error) {
	if err := tooLarge(e.Form); err != nil {
		h.send(eventMsg{Kind: talk.Warning, Session: e.Session, Err: fmt.Errorf("declined a form of the agent: %w", err)})
		return declined(), nil
	}
	return ask(ctx, h, e.Session,
		func(answer func(*acp.CreateElicitationResponse)) dialog { return newForm(e, answer) })
}

func (h hooks) page(ctx context.Context, e *talk.Elicitation) (*acp.CreateElicitationResponse, error) {
	return ask(ctx, h, e.Session,
		func(answer func(*acp.CreateElicitationResponse)) dialog { return &pageDialog{page: e, answer: answer} })
}

// ask asks a question and waits for its answer. When ctx ends, the question is withdrawn.
func ask[R any](ctx context.Context, h hooks, session acp.SessionID,
	build func(answer func(R)) dialog) (R, error) {
	answers := make(chan R, 1) // at most one answer is sent
	q := &question{session: session}
	q.dialog = build(func(r R) { answers <- r })
	h.send(askedMsg{q})
	select {
	case r := <-answers:
		return r, nil
	case <-ctx.Done():
		h.send(withdrawnMsg{q})
		var none R
		return none, context.Cause(ctx)
	}
}

// happened handles an event of the client.
func (m *Model) happened(e talk.Event) tea.Cmd {
	switch e.Kind {
	case talk.Decided:
		if d := e.Decision; d.By.Effect != policy.Ask {
			m.tell(e.Session, fmt.Sprintf("Decided by a rule: %s (%s)", d, d.By.Why))
		}
	case talk.Warning:
		m.tell(e.Session, fmt.Sprintf("Warning: %v", e.Err))
	case talk.URLCompleted:
		m.tellHere("The page reports that it is done.")
	case talk.Lost:
		if m.ends() {
			m.connection = dead
			return m.askRestart(e.Err)
		}
		m.connection = lost
		m.tell("", fmt.Sprintf("The connection was lost: %v", e.Err))
	case talk.Waiting:
		if e.Err != nil {
			m.tell("", fmt.Sprintf("Not connected; next attempt in %v: %v", e.Wait, e.Err))
		}
	case talk.Slow:
		m.tell("", fmt.Sprintf("Waiting for the agent to answer %s.", e.Text))
	case talk.SessionLost:
		m.tell(e.Session, fmt.Sprintf("The session could not be restored: %v", e.Err))
	case talk.Restored:
		for _, d := range e.Differences {
			what := "mode"
			if !d.Mode {
				what = "option " + string(d.Option)
			}
			m.tell(e.Session, fmt.Sprintf("The agent has lost the %s: it was %s and is now %s", what, d.Was, d.Is))
		}
		if e.Session == "" {
			return m.back()
		}
	case talk.GaveUp:
		if m.connection != dead && m.connection != connecting { // this was reported before, with a better reason
			m.connection = dead
			return m.askRestart(e.Err)
		}
	}
	return nil
}

// ends reports whether an agent whose connection is lost has ended. A program has, unless it is being restarted after a
// login.
func (m *Model) ends() bool {
	return !m.loggingIn && (m.opts.Talk.NoReconnect || m.opts.Talk.Agent.Command != nil)
}

// connection is the state of the connection to the agent.
type connection int

const (
	connecting connection = iota // the first connection
	connected
	lost // it is being restored
	dead // it is not restored unless the user asks for it
)
