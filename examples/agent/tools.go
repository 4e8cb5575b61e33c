package main

import (
	"context"
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
	"github.com/acpgo/sdk/acp/agentkit"
)

// use announces a tool call (TOL-1), runs it, and ensures that it ends (TOL-9). A tool that fails does not end the
// turn; if the turn ends, by an error or a cancellation, use returns the error.
func (t *turn) use(
	ctx context.Context, kind acp.ToolKind, title string, about []acp.ToolCallOption, run func(*agentkit.ToolCall) error,
) error {
	call, err := agentkit.StartToolCall(ctx, t, title, append(about, acp.WithKind(kind))...)
	if err != nil {
		return err
	}
	if err = run(call); err != nil {
		t.log.Debug("tool call failed", "title", title, "error", err)
	}
	return call.End(acp.Public(err)) // the user may read the reason
}

// The options from which the user can choose.
var permissionOptions = []acp.PermissionOption{
	acp.AllowOnce("allow", "Allow"),
	acp.AllowAlways("always", "Always allow"),
	acp.RejectOnce("reject", "Reject"),
}

// permit asks the user, unless the mode makes that unnecessary, or the user has always allowed it.
func (t *turn) permit(ctx context.Context, c *agentkit.ToolCall) error {
	if t.Mode() == modeAuto || t.State.allows(c.State().Kind) {
		return c.Begin()
	}
	return t.ask(ctx, c)
}

// ask asks the user.
func (t *turn) ask(ctx context.Context, c *agentkit.ToolCall) error {
	chosen, err := c.Ask(ctx, permissionOptions...)
	if chosen.Kind == acp.PermissionOptionKindAllowAlways {
		t.State.allow(c.State().Kind)
	}
	return err
}

// askPermission only asks for permission.
func askPermission(ctx context.Context, t *turn) error {
	return t.use(ctx, acp.ToolKindDelete, "Delete everything (not really)", nil, func(c *agentkit.ToolCall) error {
		if err := t.ask(ctx, c); err != nil {
			return err
		}
		return c.Progress("Nothing was deleted.")
	})
}

func failTool(ctx context.Context, t *turn) error {
	return t.use(ctx, acp.ToolKindOther, "Try the impossible", nil, func(c *agentkit.ToolCall) error {
		return errors.Join(c.Begin(), errors.New("it is impossible"))
	})
}

// readFile reads the file that the prompt names.
func readFile(ctx context.Context, t *turn) error {
	path := t.pathAfter("read", "notes.txt")
	about := []acp.ToolCallOption{acp.WithLocation(path, 1)}
	return t.use(ctx, acp.ToolKindRead, "Read "+filepath.Base(path), about, func(c *agentkit.ToolCall) error {
		if err := c.Begin(); err != nil {
			return err
		}
		text, err := t.readText(ctx, path)
		if err != nil {
			return err
		}
		return c.Progress(shorten(text))
	})
}

const (
	maxShown = 32 << 10 // bytes of a file or an output that are shown
	maxFile  = 10 << 20 // greatest size of a file that is read
)

// shorten returns the part of a text that is shown.
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
	return t.use(ctx, acp.ToolKindEdit, "Edit "+filepath.Base(path), about, func(c *agentkit.ToolCall) error {
		old, err := t.readText(ctx, path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, acp.ErrResourceNotFound) {
			return err
		}
		text := old + "The agent was here.\n"
		if err := c.Diff(path, old, text); err != nil {
			return err
		}
		if err := t.permit(ctx, c); err != nil {
			return err
		}
		return t.writeText(ctx, path, text)
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
			return t.absolute(token)
		}
	}
	return t.absolute(def)
}

// readText reads a file of the session: through the client, which knows the unsaved changes of its editor, or otherwise
// from the disk (FS-1).
func (t *turn) readText(ctx context.Context, path string) (string, error) {
	root, rel, ok := t.locate(path)
	if !ok {
		return "", fmt.Errorf("%s is outside the directories of the session", path)
	}
	res, err := t.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: path})
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
	if !info.Mode().IsRegular() { // reading a pipe could block
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

// writeText writes a file of the session, in the same way as readText.
func (t *turn) writeText(ctx context.Context, path, text string) error {
	root, rel, ok := t.locate(path)
	if !ok {
		return fmt.Errorf("%s is outside the directories of the session", path)
	}
	_, err := t.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: path, Content: text})
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

// runCommand runs the command that the prompt names in a terminal of the client.
func runCommand(ctx context.Context, t *turn) error {
	if !t.Conn().Initialized().ClientCapabilities.Terminal {
		return t.say(ctx, "I would run a command, but your client has no terminals.\n\n")
	}
	argv := t.command()
	title := "Run `" + strings.Join(argv, " ") + "`"
	about := []acp.ToolCallOption{acp.WithInput(map[string]any{"command": argv[0], "args": argv[1:]})}
	return t.use(ctx, acp.ToolKindExecute, title, about, func(c *agentkit.ToolCall) error {
		if err := t.permit(ctx, c); err != nil {
			return err
		}
		running, cancel := context.WithTimeout(ctx, t.commandTime)
		defer cancel()
		res, err := c.Run(running, &acp.CreateTerminalRequest{
			Command: argv[0], Args: argv[1:], Cwd: acp.Some(t.Cwd()), OutputByteLimit: acp.Some[uint64](maxShown),
		})
		if res == nil {
			return err
		}
		exit := res.ExitStatus.Value()
		if code, ok := exit.ExitCode.Get(); ok && code != 0 {
			return fmt.Errorf("the command exited with status %d", code)
		} else if !ok {
			return fmt.Errorf("the command was ended by %s", exit.Signal.Value())
		}
		return c.Progress("The command exited with status 0.")
	})
}

// command returns the command in backquotes in the prompt.
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
