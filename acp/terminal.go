package acp

import (
	"context"
	"fmt"
	"time"

	"github.com/acpgo/sdk/internal/engine"
)

// CreateTerminal starts a command in a terminal of the client (terminal/create). The caller must Close it. If ctx ends
// before the client has answered, CreateTerminal returns the cause of ctx at once. The connection keeps waiting for the
// answer, for at most ten seconds, and releases the terminal.
func (s *AgentSession) CreateTerminal(ctx context.Context, req *CreateTerminalRequest) (*TerminalHandle, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r := *orEmpty(req)
	r.SessionID = s.id
	type answer struct {
		terminal *TerminalHandle
		err      error
	}
	answered := make(chan answer)
	conn := (*engine.Conn)(s.conn.rpc)
	started := conn.Go(func() {
		outlasting, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		defer cancel(nil)
		defer context.AfterFunc(ctx, func() {
			timer := time.AfterFunc(releaseTime, func() { cancel(context.Cause(ctx)) })
			context.AfterFunc(outlasting, func() { timer.Stop() })
		})()
		terminal, err := s.createTerminal(outlasting, &r)
		select {
		case answered <- answer{terminal, err}:
			return
		case <-ctx.Done():
		}
		if err == nil {
			err = terminal.Close(ctx)
		}
		if err != nil {
			conn.ReportFailure(ctx, "a terminal was perhaps not released", MethodCreateTerminal, err)
		}
	})
	if !started {
		return nil, fmt.Errorf("%s: %w", MethodCreateTerminal, ErrClosed)
	}
	select {
	case a := <-answered:
		return a.terminal, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *AgentSession) createTerminal(ctx context.Context, req *CreateTerminalRequest) (*TerminalHandle, error) {
	res, err := s.conn.CreateTerminal(ctx, req)
	if err != nil {
		return nil, err
	}
	if res.TerminalID == "" {
		return nil, fmt.Errorf("%s: the client returned an empty terminal id", MethodCreateTerminal)
	}
	return &TerminalHandle{session: s, id: res.TerminalID}, nil
}

// Err returns an error if the command has failed: if its exit code is not 0, or a signal has ended it. The text, such
// as "exit status 2", reaches the peer.
func (x TerminalExitStatus) Err() error {
	switch code, signal := x.ExitCode.Value(), x.Signal.Value(); {
	case signal != "":
		return Public(fmt.Errorf("signal: %s", signal))
	case code != 0:
		return Public(fmt.Errorf("exit status %d", code))
	}
	return nil
}

// TerminalHandle is a command that runs in a terminal of the client. Its methods are safe for
// concurrent use.
type TerminalHandle struct {
	session *AgentSession
	id      TerminalID
}

// ID returns the terminal's id, which ToolTerminal shows in a tool call. Show it before Close.
func (t *TerminalHandle) ID() TerminalID { return t.id }

// Output returns the output that the command has written so far, and how the command ended if it has (terminal/output).
func (t *TerminalHandle) Output(ctx context.Context) (*TerminalOutputResponse, error) {
	return t.session.conn.TerminalOutput(ctx, &TerminalOutputRequest{SessionID: t.session.id, TerminalID: t.id})
}

// Wait waits until the command has ended (terminal/wait_for_exit).
func (t *TerminalHandle) Wait(ctx context.Context) (*WaitForTerminalExitResponse, error) {
	return t.session.conn.WaitForTerminalExit(ctx, &WaitForTerminalExitRequest{SessionID: t.session.id, TerminalID: t.id})
}

// Kill ends the command (terminal/kill). Output and Wait still work afterwards, and Close is still required.
func (t *TerminalHandle) Kill(ctx context.Context) error {
	_, err := t.session.conn.KillTerminal(ctx, &KillTerminalRequest{SessionID: t.session.id, TerminalID: t.id})
	return err
}

// Close ends the command if it is still running and releases the terminal (terminal/release), which invalidates the id.
// It works with a context that has ended, such as that of a cancelled turn.
func (t *TerminalHandle) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	_, err := t.session.conn.ReleaseTerminal(ctx, &ReleaseTerminalRequest{SessionID: t.session.id, TerminalID: t.id})
	return err
}
