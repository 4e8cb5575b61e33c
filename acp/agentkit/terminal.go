package agentkit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/internal/turns"
	"github.com/acpgo/sdk/internal/plain"
)

// Terminal is an io.Writer whose output a tool call shows as that of a command, which the agent itself runs:
//
//	terminal, err := call.StartTerminal("go test ./...", t.Cwd())
//	cmd.Stdout, cmd.Stderr = terminal, terminal
//	err = cmd.Run()
//	err = terminal.Exited(cmd.ProcessState.ExitCode())
//
// A client of version 2, and one of version 1 that shows terminals of agents (_meta.terminal_output), gets the output
// as it arrives. For others it is text of the call, the last 64 KiB: each time at first, and of more than 4 KiB when an
// eighth is new. Bytes that are not UTF-8 are replaced.
//
// A terminal ends with Exit, Exited or Close, or with its call; after that, Write returns an error that matches
// ErrEnded. A Session stores the last 64 KiB of the output as text. The methods are safe for concurrent use.
type Terminal struct {
	call *ToolCall
	id   acp.TerminalID
	own  bool // the client shows it as a terminal

	// Guarded by call.sending.
	output []byte // the last bytes, at most maxProgress
	lost   bool   // there were more
	fresh  int    // how many of them the client does not have yet
	ended  bool   // no more output follows
	end    string // how the command has ended, or "" if there is nothing to say of that
	work   work
}

var errTerminalEnded = fmt.Errorf("terminal: %w", ErrEnded)

// maxChunk is how many bytes of output one update has.
const maxChunk = 32 << 10

// StartTerminal shows that a command runs in a directory, an absolute path; both are only shown. A pending call becomes
// in progress.
func (c *ToolCall) StartTerminal(command, cwd string) (*Terminal, error) {
	t := &Terminal{call: c, id: acp.TerminalID("term_" + rand.Text()), own: c.clientHas(plain.TerminalKey)}
	if err := c.lock(c.ctx); err != nil {
		return nil, err
	}
	defer c.unlock()
	if t.own {
		if err := t.send(c.ctx, plain.TerminalInfoKey, map[string]any{"command": command, "cwd": cwd}); err != nil {
			return nil, err
		}
	} else {
		t.output = append(t.output, "$ "+command+"\n"...)
	}
	err := c.update(c.ctx, acp.ToolCallUpdate{}, func(u *acp.ToolCallUpdate, show []shown) []shown {
		c.begin(u)
		return append(slices.Clone(show), t.shown())
	})
	if err != nil && !errors.Is(err, ErrNotStored) {
		return nil, err
	}
	c.commands = append(c.commands, t)
	return t, err
}

// clientHas reports whether the client has advertised an extension.
func (c *ToolCall) clientHas(extension string) bool {
	s, ok := c.session.(interface{ Conn() *acp.AgentConn })
	return ok && advertises(s.Conn().Initialized(), extension)
}

// advertises reports whether a client advertises an extension: with true, and nothing else.
func advertises(client *acp.InitializeRequest, extension string) bool {
	return string(client.ClientCapabilities.Meta[extension]) == "true"
}

// ID returns the id of the terminal in the session.
func (t *Terminal) ID() acp.TerminalID { return t.id }

// Write shows p as output of the command. An error that matches ErrNotStored means that p was sent but not stored.
func (t *Terminal) Write(p []byte) (n int, err error) {
	if err := t.call.lock(t.call.ctx); err != nil {
		return 0, err
	}
	defer t.call.unlock()
	if t.ended {
		return 0, errTerminalEnded
	}
	var unstored error
	for n < len(p) && (err == nil || errors.Is(err, ErrNotStored)) {
		part := p[n:min(n+maxChunk, len(p))]
		n += len(part)
		t.output, t.fresh = append(t.output, part...), t.fresh+len(part)
		if err = t.show(t.call.ctx); errors.Is(err, ErrNotStored) {
			unstored = err
		}
		if more := len(t.output) - maxProgress; more > 0 {
			t.output, t.lost = slices.Delete(t.output, 0, more), true
		}
	}
	if err == nil {
		err = unstored
	}
	return n, err
}

// Exit reports how the command has ended. It works for ten seconds after the context of the call has ended.
func (t *Terminal) Exit(status acp.TerminalExitStatus) error {
	ctx, release := turns.Outlive(t.call.ctx, func() {})
	defer release()
	if err := t.call.lock(ctx); err != nil {
		return err
	}
	defer t.call.unlock()
	if t.ended {
		return errTerminalEnded
	}
	return t.exit(ctx, status)
}

// Exited is Exit with the exit code of a process; a negative code, such as that of a killed process, means unknown.
func (t *Terminal) Exited(code int) error {
	var status acp.TerminalExitStatus
	if code >= 0 {
		status.ExitCode = acp.Some(uint32(code))
	}
	return t.Exit(status)
}

// Close reports that the command has ended, unless that has been reported.
func (t *Terminal) Close() error {
	if err := t.Exit(acp.TerminalExitStatus{}); !errors.Is(err, ErrEnded) {
		return err
	}
	return nil
}

// exit is Exit for callers that have locked the call.
func (t *Terminal) exit(ctx context.Context, status acp.TerminalExitStatus) error {
	c := t.call
	switch {
	case status.Signal.Present():
		t.end = "[ended by " + status.Signal.Value() + "]"
	case status.ExitCode.Value() != 0:
		t.end = fmt.Sprintf("[exit status %d]", status.ExitCode.Value())
	}
	t.ended = true
	err := t.show(ctx)
	if err != nil && !errors.Is(err, ErrNotStored) {
		t.ended, t.end = false, ""
		return err
	}
	if t.own {
		end := map[string]any{"exit_code": status.ExitCode, "signal": status.Signal}
		if err := t.send(ctx, plain.TerminalExitKey, end); err != nil {
			t.ended, t.end = false, ""
			return err
		}
		err = errors.Join(err, c.kept(ctx, t.id, t.text()))
	}
	t.work.end()
	c.commands = slices.DeleteFunc(c.commands, func(other *Terminal) bool { return other == t })
	return err
}

// show sends what the client does not have yet.
func (t *Terminal) show(ctx context.Context) error {
	if t.own {
		whole := len(t.output)
		if !t.ended {
			whole -= plain.Unfinished(t.output)
		}
		part := t.output[max(0, len(t.output)-t.fresh):whole]
		if len(part) == 0 {
			return nil
		}
		err := t.send(ctx, plain.TerminalKey, map[string]any{"data": strings.ToValidUTF8(string(part), "\uFFFD")})
		if err == nil {
			t.fresh = len(t.output) - whole
		}
		return err
	}
	if size := min(len(t.output), maxProgress); !t.ended && (t.fresh == 0 || size > 4<<10 && t.fresh < size/8) {
		return nil
	}
	err := t.call.update(ctx, acp.ToolCallUpdate{}, func(_ *acp.ToolCallUpdate, show []shown) []shown {
		now := t.shown()
		text := now.Text()
		at := slices.IndexFunc(show, func(s shown) bool { return s.terminal == t })
		if at < 0 { // Update has replaced it
			return append(slices.Clone(show), now)
		}
		if show[at].Text() == text {
			return nil
		}
		show = slices.Clone(show)
		show[at] = now
		return show
	})
	if err == nil || errors.Is(err, ErrNotStored) {
		t.fresh = 0
	}
	return err
}

// shown returns the terminal as content of its call.
func (t *Terminal) shown() shown {
	if t.own {
		return shown{ToolCallContent: acp.ToolTerminal(t.id), terminal: t}
	}
	return shown{ToolCallContent: acp.ToolText(CodeBlock(t.text())), terminal: t}
}

// text returns the output as text.
func (t *Terminal) text() string {
	output := t.output[max(0, len(t.output)-maxProgress):]
	if !t.ended {
		output = output[:len(output)-plain.Unfinished(output)]
	}
	text := strings.ToValidUTF8(string(output), "\uFFFD")
	if t.lost {
		text = leftOut + "\n" + text
	}
	if t.end != "" && text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + t.end
}

// send sends a member of _meta about the terminal, which is not stored.
func (t *Terminal) send(ctx context.Context, key string, about map[string]any) error {
	about["terminal_id"] = t.id
	return t.call.tell(ctx, key, about)
}

// tell sends a member of _meta, which is not stored.
func (c *ToolCall) tell(ctx context.Context, key string, about map[string]any) error {
	u := acp.ToolCallUpdate{ToolCallID: c.id}
	if err := u.Meta.Set(key, about); err != nil {
		return err
	}
	c.open.Flush()
	update := acp.NewSessionUpdateToolCallUpdate(u)
	if s, stored := c.home(); stored {
		return s.sendOnly(ctx, update)
	}
	return c.session.Update(ctx, update)
}
