package agentkit

import (
	"context"
	"errors"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/plain"
)

// Cancellable returns a context for the work of the call, and lets the client cancel the call alone, which clients of
// version 2 can do. The context ends with the call and with the call's own context, and with the cause ErrCallCancelled
// when the client cancels the call. A call that then fails is shown as cancelled, and the turn continues. Call it only
// for tools that end soon after the context. The client cannot cancel calls outside of a Session, nor those of
// subagents.
func (c *ToolCall) Cancellable() (context.Context, error) {
	if err := c.lock(c.ctx); err != nil {
		return nil, err
	}
	defer c.unlock()
	return c.work.start(c, c.ctx, c.id, func() error {
		return c.tell(c.ctx, plain.CancelKey, map[string]any{"supported": true})
	})
}

// Cancellable is ToolCall.Cancellable for the command of the terminal alone: if the client cancels the command, the
// call continues. If the client may cancel the call, too, call that method first: the context of the command then ends
// with that of the call. Call it only for commands that end soon after the context, and report the end with Exit or
// Exited.
func (t *Terminal) Cancellable() (context.Context, error) {
	c := t.call
	if err := c.lock(c.ctx); err != nil {
		return nil, err
	}
	defer c.unlock()
	if t.ended {
		return nil, errTerminalEnded
	}
	parent := c.ctx
	if c.work.ctx != nil {
		parent = c.work.ctx
	}
	return t.work.start(c, parent, t.id, func() error {
		if !t.own {
			return nil
		}
		return t.send(c.ctx, plain.TerminalInfoKey, map[string]any{"cancel": true})
	})
}

// work is what the client can cancel of a tool call: all of it, or a terminal. The call's lock guards it.
type work struct {
	ctx  context.Context // nil if it cannot be cancelled
	stop func()
}

// start makes the context, unless there is one. If the client can cancel work, offer tells it that it may.
func (w *work) start(c *ToolCall, parent context.Context, id any, offer func() error) (context.Context, error) {
	if w.ctx != nil {
		return w.ctx, nil
	}
	ctx, cancel := context.WithCancelCause(parent)
	stop := func() { cancel(ErrEnded) }
	if s, stored := c.home(); stored && c.clientHas(plain.CancelKey) {
		s.cancellable(id, cancel) // first, as the client may be quick
		stop = func() {
			s.cancellable(id, nil)
			cancel(ErrEnded)
		}
		if err := offer(); err != nil {
			stop()
			return nil, err
		}
	}
	w.ctx, w.stop = ctx, stop
	return ctx, nil
}

// end ends the context, after which the client can no longer cancel the work.
func (w *work) end() {
	if w.ctx != nil {
		w.stop()
	}
}

// cancelled reports whether the client has cancelled the work.
func (w *work) cancelled() bool {
	return w.ctx != nil && errors.Is(context.Cause(w.ctx), ErrCallCancelled)
}

// cancellable sets the function that cancels a tool call or terminal; nil removes it.
func (s *session) cancellable(id any, cancel context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel == nil {
		delete(s.cancels, id)
		return
	}
	if s.cancels == nil {
		s.cancels = map[any]context.CancelCauseFunc{}
	}
	s.cancels[id] = cancel
}

type cancelCallRequest struct {
	SessionID  acp.SessionID  `json:"sessionId"`
	ToolCallID acp.ToolCallID `json:"toolCallId"`
}

type cancelCommandRequest struct {
	SessionID  acp.SessionID  `json:"sessionId"`
	TerminalID acp.TerminalID `json:"terminalId"`
}

// handleCancel adds the methods of the extension.
func (ss *sessions) handleCancel(x *acp.Extensions[acp.AgentConn]) {
	type none = struct{}
	rpc.Handle(x, plain.CancelCallMethod, func(_ context.Context, c *acp.AgentConn, r *cancelCallRequest) (*none, error) {
		return &none{}, ss.cancel(c, r.SessionID, r.ToolCallID)
	})
	rpc.Handle(x, plain.CancelTermMethod, func(_ context.Context, c *acp.AgentConn, r *cancelCommandRequest) (*none,
		error) {
		return &none{}, ss.cancel(c, r.SessionID, r.TerminalID)
	})
}

// cancel ends the context of a tool call or terminal.
func (ss *sessions) cancel(conn *acp.AgentConn, session acp.SessionID, id any) error {
	s, release, err := ss.open.Use(conn, session)
	if err != nil {
		return err
	}
	defer release()
	s.mu.Lock()
	cancel := s.cancels[id]
	s.mu.Unlock()
	if cancel == nil {
		return acp.InvalidParamsf("there is nothing with the id %.64q that can be cancelled", id)
	}
	cancel(ErrCallCancelled)
	return nil
}
