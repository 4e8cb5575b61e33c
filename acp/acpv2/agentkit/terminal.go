// Terminals as values. In version 2 they belong to the agent: it runs the command, and the client shows the output.

package agentkit

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"sync"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/internal/turns"
)

// Terminal is an io.Writer whose output the client shows as that of a command, which the agent itself runs:
//
//	terminal, err := s.StartTerminal(ctx, "go test ./...", s.Cwd())
//	err = call.Terminal(terminal)
//	cmd.Stdout, cmd.Stderr = terminal, terminal
//	err = cmd.Run()
//	err = terminal.Exited(cmd.ProcessState.ExitCode())
//
// Output is sent as it arrives, even if it is not valid UTF-8. A terminal ends with Exit, Exited or Close; after that,
// Write returns an error that matches ErrEnded. A terminal that is open at the end of its turn is closed; to let a
// terminal outlive the turn, start it with the context of the session. The methods are safe for concurrent use.
type Terminal struct {
	session Sender
	ctx     context.Context
	turn    *turns.Turn // may be nil
	id      acpv2.TerminalID

	mu    sync.Mutex // held while a message is sent
	ended bool
}

// StartTerminal tells the client that a command runs in a directory. ctx is the turn's context, or another one that
// bounds the terminal.
func StartTerminal(ctx context.Context, session Sender, command string, cwd acpv2.AbsolutePath) (*Terminal, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	t := &Terminal{session: session, ctx: ctx, turn: turns.Of(ctx), id: acpv2.TerminalID("term_" + rand.Text())}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.turn.AddCall(t, func(error) error { return t.Close() }); err != nil {
		return nil, err
	}
	t.turn.Flush()
	err := session.Update(ctx, acpv2.NewSessionUpdateTerminalUpdate(acpv2.TerminalUpdate{
		TerminalID: t.id, Command: acpv2.Some(command), Cwd: acpv2.Some(cwd),
	}))
	if err != nil && !errors.Is(err, ErrNotStored) {
		t.ended = true
		t.turn.RemoveCall(t)
		return nil, err
	}
	return t, err
}

// ID returns the id of the terminal in the session.
func (t *Terminal) ID() acpv2.TerminalID { return t.id }

// maxOutput is the greatest number of bytes of output in one update.
const maxOutput = 32 << 10

// Write sends p as output of the command. An error that matches ErrNotStored means that p was sent but not stored.
func (t *Terminal) Write(p []byte) (n int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return 0, ErrEnded
	}
	t.turn.Flush()
	var kept error
	for n < len(p) {
		part := p[n:min(n+maxOutput, len(p))]
		err := t.session.Update(t.ctx, acpv2.NewSessionUpdateTerminalOutputChunk(acpv2.TerminalOutputChunk{
			TerminalID: t.id, Data: base64.StdEncoding.EncodeToString(part),
		}))
		if errors.Is(err, ErrNotStored) {
			kept = err
		} else if err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, kept
}

// Exit reports how the command has ended. It can still be sent for ten seconds after the context has ended.
func (t *Terminal) Exit(status acpv2.TerminalExitStatus) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return ErrEnded
	}
	ctx, release := turns.Outlive(t.ctx, func() {})
	defer release()
	t.turn.Flush()
	err := t.session.Update(ctx, acpv2.NewSessionUpdateTerminalUpdate(acpv2.TerminalUpdate{
		TerminalID: t.id, ExitStatus: acpv2.Some(status),
	}))
	if err == nil || errors.Is(err, ErrNotStored) {
		t.ended = true
		t.turn.RemoveCall(t)
	}
	return err
}

// Exited is Exit with the exit code of a process; a negative code, such as that of a killed process, means unknown.
func (t *Terminal) Exited(code int) error {
	var status acpv2.TerminalExitStatus
	if code >= 0 {
		status.ExitCode = acpv2.Some(int64(code))
	}
	return t.Exit(status)
}

// Close reports that the command has ended, unless that has been reported.
func (t *Terminal) Close() error {
	if err := t.Exit(acpv2.TerminalExitStatus{}); !errors.Is(err, ErrEnded) {
		return err
	}
	return nil
}
