// This file owns tool calls: what every call has in common, and the scenes that play one.

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
)

// How a tool call may end before it has begun.
var (
	errRejected  = errors.New("the user said no")
	errDismissed = errors.New("the question was dismissed") // which ends the turn
)

// call is a tool call in progress.
type call struct {
	turn  *turn
	id    acp.ToolCallID
	kind  acp.ToolKind
	title string
	ended bool // its final status was sent
}

// use announces a tool call (TOL-1), runs it and sees to it that it ends (TOL-9). A tool that fails does
// not end the turn; the end of the turn, by error or cancellation, is returned.
func (t *turn) use(
	ctx context.Context, kind acp.ToolKind, title string, about []acp.ToolCallOption, run func(ctx context.Context, c *call) error,
) error {
	c := &call{turn: t, id: acp.ToolCallID("call_" + rand.Text()), kind: kind, title: title}
	if err := t.send(ctx, acp.StartToolCall(c.id, title, append(about, acp.WithKind(kind))...)); err != nil {
		return err
	}
	err := run(ctx, c)
	if err != nil && !c.ended {
		var why []acp.ToolCallContent
		if ctx.Err() == nil {
			why = append(why, acp.ToolText(err.Error()))
		}
		err = errors.Join(err, c.end(ctx, acp.ToolCallStatusFailed, why...))
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errDismissed):
		return err
	case err != nil:
		t.session.log.Debug("tool call failed", "title", c.title, "error", err)
	}
	return nil
}

// begin reports that the tool runs now (PRM-6), and what there is to see of it.
func (c *call) begin(ctx context.Context, content ...acp.ToolCallContent) error {
	return c.report(ctx, acp.ToolCallStatusInProgress, content)
}

// end reports how the tool ended.
func (c *call) end(ctx context.Context, status acp.ToolCallStatus, content ...acp.ToolCallContent) error {
	c.ended = true
	return c.report(ctx, status, content)
}

// report sends a status, and what there is to see if that is new.
func (c *call) report(ctx context.Context, status acp.ToolCallStatus, content []acp.ToolCallContent) error {
	about := []acp.ToolCallOption{acp.WithStatus(status)}
	if len(content) > 0 {
		about = append(about, acp.WithContent(content...))
	}
	return c.turn.send(ctx, acp.UpdateToolCall(c.id, about...))
}

// The answers that the user may choose from.
var permissionOptions = []acp.PermissionOption{
	acp.AllowOnce("allow", "Allow"),
	acp.AllowAlways("always", "Always allow"),
	acp.RejectOnce("reject", "Reject"),
}

// permit asks the user, unless the mode says that there is no need, or the user once said so.
func (c *call) permit(ctx context.Context, show ...acp.ToolCallContent) error {
	s := c.turn.session
	s.mu.Lock()
	granted := s.record.Settings.Mode == modeAuto || s.allowed[c.kind]
	s.mu.Unlock()
	if granted {
		return nil
	}
	return c.ask(ctx, show...)
}

// ask asks the user.
func (c *call) ask(ctx context.Context, show ...acp.ToolCallContent) error {
	about := []acp.ToolCallOption{acp.WithTitle(c.title), acp.WithKind(c.kind)}
	if len(show) > 0 {
		about = append(about, acp.WithContent(show...))
	}
	outcome, err := c.turn.client.RequestPermission(ctx, acp.AboutToolCall(c.id, about...), permissionOptions...)
	if err != nil {
		return err
	}
	if _, dismissed := outcome.Variant.(*acp.RequestPermissionOutcomeCancelled); dismissed {
		return errDismissed
	}
	switch option, _ := outcome.Selected(); option {
	case "allow":
		return nil
	case "always":
		s := c.turn.session
		s.mu.Lock()
		defer s.mu.Unlock()
		s.allowed[c.kind] = true
		return nil
	default: // also what nobody offered, and answers of a kind that nobody knows
		return errRejected
	}
}

// askPermission only asks.
func askPermission(ctx context.Context, t *turn) error {
	return t.use(ctx, acp.ToolKindDelete, "Delete everything (not really)", nil, func(ctx context.Context, c *call) error {
		if err := c.ask(ctx); err != nil {
			return err
		}
		if err := c.begin(ctx); err != nil {
			return err
		}
		return c.end(ctx, acp.ToolCallStatusCompleted, acp.ToolText("Nothing was deleted."))
	})
}

func failTool(ctx context.Context, t *turn) error {
	return t.use(ctx, acp.ToolKindOther, "Try the impossible", nil, func(ctx context.Context, c *call) error {
		if err := c.begin(ctx); err != nil {
			return err
		}
		return errors.New("it is impossible")
	})
}

// readFile reads the file that the prompt names.
func readFile(ctx context.Context, t *turn) error {
	path := t.pathAfter("read", "notes.txt")
	about := []acp.ToolCallOption{acp.WithLocation(path, 1)}
	return t.use(ctx, acp.ToolKindRead, "Read "+filepath.Base(path), about, func(ctx context.Context, c *call) error {
		if err := c.begin(ctx); err != nil {
			return err
		}
		text, err := t.readText(ctx, path)
		if err != nil {
			return err
		}
		return c.end(ctx, acp.ToolCallStatusCompleted, acp.ToolText(shorten(text)))
	})
}

const (
	maxShown = 32 << 10 // bytes of a file or an output that are shown
	maxFile  = 10 << 20 // bytes of a file that is read
)

// shorten makes of a text what is shown of it.
func shorten(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}

// editFile adds a line to the file that the prompt names.
func editFile(ctx context.Context, t *turn) error {
	path := t.pathAfter("edit", "demo.txt")
	about := []acp.ToolCallOption{acp.WithLocation(path, 0)}
	return t.use(ctx, acp.ToolKindEdit, "Edit "+filepath.Base(path), about, func(ctx context.Context, c *call) error {
		old, err := t.readText(ctx, path)
		missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, acp.ErrResourceNotFound)
		if err != nil && !missing {
			return err
		}
		text := old + "The agent was here.\n"
		diff := acp.ToolEdit(path, old, text)
		if missing {
			diff = acp.ToolDiff(path, text)
		}
		if err := c.permit(ctx, diff); err != nil {
			return err
		}
		if err := c.begin(ctx, diff); err != nil {
			return err
		}
		if err := t.writeText(ctx, path, text); err != nil {
			return err
		}
		return c.end(ctx, acp.ToolCallStatusCompleted)
	})
}

// pathAfter returns the path that follows a word of the prompt, or def, as an absolute path.
func (t *turn) pathAfter(word, def string) string {
	found := false
	command := strings.HasPrefix(t.text, "/"+word)
	for token := range strings.FieldsSeq(t.text) {
		token = strings.TrimRight(strings.Trim(token, "\"'`("), "\"'`).,;:!?")
		switch {
		case strings.EqualFold(strings.TrimPrefix(token, "/"), word):
			found = true
		case found && (command || strings.ContainsAny(token, `./\`)):
			return t.session.absolute(token)
		}
	}
	return t.session.absolute(def)
}

// readText reads a file of the session: through the client, which knows what its editor has not saved
// yet, or else from the disk (FS-1).
func (t *turn) readText(ctx context.Context, path string) (string, error) {
	root, rel, ok := t.session.within(path)
	if !ok {
		return "", fmt.Errorf("%s is outside the directories of the session", path)
	}
	res, err := t.client.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: path})
	if errors.Is(err, acp.ErrUnsupported) {
		return readDisk(root, rel)
	}
	if err != nil {
		return "", err
	}
	if len(res.Content) > maxFile {
		return "", errTooLarge
	}
	return res.Content, nil
}

var errTooLarge = errors.New("the file is too large")

func readDisk(dir, rel string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	info, err := root.Stat(rel)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() { // a pipe, which would keep us waiting
		return "", fmt.Errorf("%s is not a regular file", rel)
	}
	file, err := root.Open(rel)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if len(text) > maxFile {
		return "", errTooLarge
	}
	return string(text), err
}

// writeText writes a file of the session as readText reads it.
func (t *turn) writeText(ctx context.Context, path, text string) error {
	root, rel, ok := t.session.within(path)
	if !ok {
		return fmt.Errorf("%s is outside the directories of the session", path)
	}
	_, err := t.client.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: path, Content: text})
	if errors.Is(err, acp.ErrUnsupported) {
		return writeDisk(root, rel, text)
	}
	return err
}

func writeDisk(dir, rel, text string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.WriteFile(rel, []byte(text), 0o666)
}

// defaultCommandTime is how long a command may run.
const defaultCommandTime = time.Minute

// runCommand runs the command that the prompt names in a terminal of the client's.
func runCommand(ctx context.Context, t *turn) error {
	if !t.client.Conn().Initialized().ClientCapabilities.Terminal {
		return t.say(ctx, "I would run a command, but your client has no terminals.\n\n")
	}
	argv := t.command()
	title := "Run `" + strings.Join(argv, " ") + "`"
	about := []acp.ToolCallOption{acp.WithInput(map[string]any{"command": argv[0], "args": argv[1:]})}
	return t.use(ctx, acp.ToolKindExecute, title, about, func(ctx context.Context, c *call) (err error) {
		if err := c.permit(ctx); err != nil {
			return err
		}
		terminal, err := t.client.CreateTerminal(ctx, &acp.CreateTerminalRequest{
			Command: argv[0], Args: argv[1:], Cwd: acp.Some(t.session.cwd()), OutputByteLimit: acp.Some[uint64](maxShown),
		})
		if err != nil {
			return err
		}
		// Also when the turn was cancelled (TRM-7).
		defer func() { err = errors.Join(err, terminal.Close(ctx)) }()
		if err := c.begin(ctx, acp.ToolTerminal(terminal.ID())); err != nil {
			return err
		}
		return c.watch(ctx, terminal)
	})
}

// watch waits for a command and reports how it ended, while the terminal is still there to be shown
// (SCH-14).
func (c *call) watch(ctx context.Context, terminal *acp.TerminalHandle) error {
	waiting, cancel := context.WithTimeout(ctx, c.turn.commandTime)
	defer cancel()
	_, err := terminal.Wait(waiting)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		err = terminal.Kill(ctx)
	}
	if err != nil {
		return err
	}
	output, err := terminal.Output(ctx)
	if err != nil {
		return err
	}
	c.turn.outputs[terminal.ID()] = "```\n" + output.Output + "\n```"
	status, how := acp.ToolCallStatusFailed, "did not end"
	exit := output.ExitStatus.Value()
	if code, ok := exit.ExitCode.Get(); ok {
		how = fmt.Sprintf("exited with status %d", code)
		if code == 0 {
			status = acp.ToolCallStatusCompleted
		}
	} else if signal, ok := exit.Signal.Get(); ok {
		how = "was ended by " + signal
	}
	return c.end(ctx, status, acp.ToolTerminal(terminal.ID()), acp.ToolText("The command "+how+"."))
}

// command is the command that the prompt names between backquotes.
func (t *turn) command() []string {
	if _, rest, ok := strings.Cut(t.text, "`"); ok {
		quoted, _, closed := strings.Cut(rest, "`")
		if argv := strings.Fields(quoted); closed && len(argv) > 0 {
			return argv
		}
	}
	if runtime.GOOS == "windows" {
		return []string{"cmd", "/c", "echo Hello from the terminal"}
	}
	return []string{"echo", "Hello from the terminal"}
}
