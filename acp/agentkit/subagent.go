package agentkit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/internal/turns"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/engine"
)

// Subagent is a separate session for a part of a turn's work. It is a Sender and an Asker: messages, thoughts and tool
// calls that are started with it, and its questions, belong to that session. Config.Decide and Config.ToolError apply
// with the session of the turn. See Turn.Subagent.
//
// Experimental: any minor release may change or remove it. It needs [acp.FeatureSubagents].
type Subagent[S any] struct{ subagent }

type subagent struct {
	below
	asker

	parent *session
}

// below has the methods of the session one level deeper than those of asker.
type below struct{ *acp.AgentSession }

// Update is acp.AgentSession.Update, after the texts of the subagent. The update is not stored.
func (a *subagent) Update(ctx context.Context, update acp.SessionUpdate) error {
	turns.Of(ctx).Flush()
	return a.AgentSession.Update(ctx, update)
}

func (a *subagent) home() (*session, bool) { return a.parent, false }

func (a *subagent) logger() *slog.Logger { return a.parent.logger().With("subagent", a.ID()) }

// ErrSubagentCancelled is the error of Turn.Subagent if the client has cancelled the subagent but not the turn.
//
// Experimental: any minor release may change or remove it. It needs [acp.FeatureSubagents].
var ErrSubagentCancelled = errors.New("agentkit: the client has cancelled the subagent")

// Subagent does a part of the turn's work in a separate session. It announces the subagent with its title and
// description, either of which may be empty, calls do, and reports how it ended. ctx is the turn's context or derived
// from it. The context of do ends with ctx, or when the client cancels the subagent alone; its cause is then
// acp.ErrTurnCancelled. Texts and tool calls of the subagent are closed when do returns, before its end is reported.
// Several subagents may work at once.
//
// Subagent returns the error of do, which does not have to end the turn, or ErrSubagentCancelled if the client has
// cancelled the subagent alone. It fails with acp.ErrUnsupported, before it calls do, if the client does not show
// subagents. Config.Subagents must be set. The store records the subagent, but none of its updates.
//
// Experimental: any minor release may change or remove it. It needs [acp.FeatureSubagents].
func (t *Turn[S]) Subagent(
	ctx context.Context, title, description string, do func(ctx context.Context, a *Subagent[S]) error,
) error {
	return t.subagent(ctx, title, description,
		func(ctx context.Context, a *subagent) error { return do(ctx, &Subagent[S]{*a}) })
}

func (t *turn) subagent(
	ctx context.Context, title, description string, do func(ctx context.Context, a *subagent) error,
) (err error) {
	if !t.Conn().Capabilities().Subagents.Present() {
		return fmt.Errorf("agentkit: Subagent: %w", acp.ErrUnsupported)
	}
	of := t.Conn().Session(newID())
	a := &subagent{below: below{of}, asker: asker{of}, parent: t.session}
	report := func(ctx context.Context, u acp.SubagentUpdate) error {
		u.SessionID = a.ID()
		return t.Update(ctx, acp.NewSessionUpdateSubagentUpdate(u))
	}
	if err := report(ctx, acp.SubagentUpdate{Title: given(title), Description: given(description)}); err != nil {
		return err
	}
	work, free, end, err := (*engine.Conn)(t.Conn().RPC()).OpenTurn(ctx, string(a.ID()))
	if err != nil {
		return err
	}
	defer end()
	work, opened := turns.With(work)
	idle := failedIdle(errTurnLost) // if do panics
	defer func() {
		free()
		lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		reportEnd := func(idle acp.IdleStateUpdate) error {
			return report(lasting, acp.SubagentUpdate{
				State: acp.Some(acp.NewStateUpdateIdle(idle)), Capabilities: acp.Null[acp.SubagentSessionCapabilities](),
			})
		}
		sent := reportEnd(idle)
		if turns.Mistaken(sent) { // only the data of do's error can be the cause
			a.logger().Warn("the error of a subagent cannot be sent as it is", "error", sent)
			e := rpc.ErrorOf(err)
			sent = reportEnd(failedIdle(&acp.Error{Code: e.Code, Message: e.Message}))
		}
		err = errors.Join(err, sent)
	}()
	defer func() { err = errors.Join(err, opened.End(work)) }()
	err = report(ctx, acp.SubagentUpdate{
		State:        acp.Some(acp.NewStateUpdateRunning(acp.RunningStateUpdate{})),
		Capabilities: acp.Some(acp.SubagentSessionCapabilities{Cancel: acp.Some(acp.SessionCancelCapabilities{})}),
	})
	if err == nil {
		err = do(work, a)
	}
	switch {
	case work.Err() != nil && ctx.Err() == nil: // do often returns acp.ErrTurnCancelled, but the turn is not cancelled
		err, idle = ErrSubagentCancelled, acp.NewIdleStateUpdateCancelled()
	case work.Err() != nil:
		err, idle = errors.Join(context.Cause(work), err), acp.NewIdleStateUpdateCancelled()
	case err != nil:
		idle = failedIdle(err)
	default:
		idle = acp.NewIdleStateUpdateEndTurn()
	}
	return err
}

// failedIdle returns the state of a failed subagent, with the part of the error that the client may see.
func failedIdle(err error) acp.IdleStateUpdate {
	return acp.NewIdleStateUpdateError(acp.ErrorStopReason{Error: acp.Some(*rpc.ErrorOf(err))})
}

// given returns text as an optional value; it is absent if text is empty.
func given(text string) (o acp.Opt[string]) {
	if text != "" {
		o = acp.Some(text)
	}
	return o
}
