package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/await"
	"github.com/acpgo/sdk/internal/engine"
)

// Session is the part of a session that a Workspace uses. *agentkit.Session implements it.
type Session interface {
	ID() acp.SessionID
	RPC() *rpc.Conn
	Conn() *acp.AgentConn
	Cwd() string
	AdditionalDirectories() []string
	AtClose(func())
	Record(context.Context, acp.SessionUpdate) error
	ReadTextFile(context.Context, *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error)
	WriteTextFile(context.Context, *acp.WriteTextFileRequest) (*acp.WriteTextFileResponse, error)
}

// Options configures [Open]. A nil *Options, and the zero value of each field, mean the defaults.
type Options struct {
	// Unset are names of environment variables that commands on this machine do not get, beside the keys of models' APIs:
	// see agentkit.Environ.
	Unset []string
	// Hidden are directories of the agent's own, such as the one with its key and its rules, that files are not read from,
	// listed, searched or written in, also if the session's directories contain them; "" is ignored. Commands reach them.
	Hidden []string
}

// Workspace has the files and commands of one session. Its methods are safe for concurrent use. Paths are absolute or
// relative to the session's working directory.
type Workspace struct {
	session   Session
	roots     *local.Roots
	files     *local.Files
	terminals *local.Terminals
}

// Open opens the directories of a session. The workspace is closed, and its commands are killed, at the end of the
// session; see AtClose of agentkit.Session.
func Open(session Session, opts *Options) (*Workspace, error) {
	opts = cmp.Or(opts, &Options{})
	roots, err := local.OpenRoots(append([]string{session.Cwd()}, session.AdditionalDirectories()...)...)
	if err != nil {
		return nil, acp.Public(err)
	}
	roots.Hide(opts.Hidden...)
	w := &Workspace{
		session, roots, local.NewFiles(roots, local.Trusted(), nil),
		local.NewTerminals(roots, local.Trusted(), &local.TerminalsOptions{Env: agentkit.Environ(opts.Unset...)}),
	}
	session.AtClose(func() {
		if err := errors.Join(w.terminals.Close(), w.roots.Close()); err != nil {
			(*engine.Conn)(session.RPC()).Logger().Error("the workspace was not closed", "session", session.ID(), "error", err)
		}
	})
	return w, nil
}

// Path returns the absolute form of a path. It does not check that the path is in a directory of the session.
func (w *Workspace) Path(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.session.Cwd(), path)
	}
	return filepath.Clean(path)
}

// Read returns the text of a file, or at most limit lines of it, from line on; 0 means no limit, and the first line. If
// there is no such file, the error matches fs.ErrNotExist. A file of this machine that is too large or is not text is
// refused; of a large file, some lines can be read.
func (w *Workspace) Read(ctx context.Context, path string, line, limit uint32) (string, error) {
	req := &acp.ReadTextFileRequest{SessionID: w.session.ID(), Path: w.Path(path)}
	if line > 0 {
		req.Line = acp.Some(line)
	}
	if limit > 0 {
		req.Limit = acp.Some(limit)
	}
	return await.Do(ctx, patience, func() (string, error) {
		files, name, err := w.find(path)
		if err != nil {
			return "", err
		}
		read := w.session.ReadTextFile
		if !w.session.Conn().Capabilities().FS.ReadTextFile {
			read = w.readHere
		}
		res, err := read(ctx, req)
		if err != nil {
			_, failed := errors.AsType[*acp.CallError](err)
			_, missing := fs.Stat(files, name) // clients have many errors for a missing file
			if errors.Is(err, acp.ErrResourceNotFound) || failed && errors.Is(missing, fs.ErrNotExist) {
				err = &fs.PathError{Op: "read", Path: req.Path, Err: fs.ErrNotExist}
			}
			return "", err
		}
		return res.Content, nil
	})
}

// find finds a path in the directories of the session, unless it leads to one that is hidden.
func (w *Workspace) find(path string) (files fs.FS, name string, err error) {
	return w.roots.Find(w.session, w.Path(path))
}

func (w *Workspace) readHere(ctx context.Context, req *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
	ctx, cancel := apart(ctx)
	defer cancel()
	res, err := w.files.ReadTextFile(ctx, w.session, req)
	if err == nil && strings.ContainsRune(res.Content, 0) {
		err = &fs.PathError{Op: "read", Path: req.Path, Err: local.ErrNotText}
	}
	return res, err
}

// Write replaces the text of a file. A missing file is created, with its directories.
func (w *Workspace) Write(ctx context.Context, path, text string) error {
	req := &acp.WriteTextFileRequest{SessionID: w.session.ID(), Path: w.Path(path), Content: text}
	_, err := await.Do(ctx, patience, func() (*acp.WriteTextFileResponse, error) {
		if _, _, err := w.find(path); err != nil {
			return nil, err
		}
		if w.session.Conn().Capabilities().FS.WriteTextFile {
			return w.session.WriteTextFile(ctx, req)
		}
		ctx, cancel := apart(ctx)
		defer cancel()
		return w.files.WriteTextFile(ctx, w.session, req)
	})
	return err
}

// errChanged reports that a file is not what the user was asked about.
var errChanged = acp.Public(errors.New("the file has changed in the meantime: read it again"))

// Edit replaces a text in a file as a part of a tool call: it shows the difference, asks the user with the call's Ask,
// and writes the file unless it has changed in the meantime. The text must be in the file exactly once, or all is set.
func (w *Workspace) Edit(ctx context.Context, call *agentkit.ToolCall, path, old, replacement string, all bool) error {
	before, err := w.Read(ctx, path, 0, 0)
	if err != nil {
		return err
	}
	switch n := strings.Count(before, old); {
	case old == "" || n == 0:
		return acp.Public(errors.New("the text to replace is not in the file"))
	case n > 1 && !all:
		return acp.Public(fmt.Errorf("the text to replace is in the file %d times: add the lines around it", n))
	}
	return w.change(ctx, call, path, before, strings.ReplaceAll(before, old, replacement))
}

// Replace replaces the whole text of a file, which may be missing, as a part of a tool call. It asks like Edit.
func (w *Workspace) Replace(ctx context.Context, call *agentkit.ToolCall, path, text string) error {
	before, err := w.Read(ctx, path, 0, 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return w.change(ctx, call, path, before, text)
}

func (w *Workspace) change(ctx context.Context, call *agentkit.ToolCall, path, before, after string) error {
	if err := call.Diff(w.Path(path), before, after); err != nil {
		return err
	}
	if _, err := call.Ask(ctx); err != nil {
		return err
	}
	switch now, err := w.Read(ctx, path, 0, 0); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case now != before:
		return errChanged
	}
	return w.Write(ctx, path, after)
}

// Run runs a command as a part of a tool call, which shows its output: in a terminal of the client, as
// agentkit.ToolCall.Run does, or otherwise as a process of this machine. It starts in the session's working directory
// unless req says otherwise. The result holds the last 64 KiB of its output, unless req says otherwise, and how it
// ended; a command that fails is not an error. If ctx ends first, the command is killed with all processes that it has
// started, the error is the cause of ctx, and there may still be a result.
//
// No shell interprets the command; see Shell.
func (w *Workspace) Run(
	ctx context.Context, call *agentkit.ToolCall, req *acp.CreateTerminalRequest,
) (*acp.TerminalOutputResponse, error) {
	own := *req
	own.SessionID, own.Cwd = w.session.ID(), acp.Some(own.Cwd.Or(w.session.Cwd()))
	own.OutputByteLimit = acp.Some(own.OutputByteLimit.Or(maxOutput))
	if w.session.Conn().Capabilities().Terminal {
		return call.Run(ctx, &own)
	}
	return w.runHere(ctx, call, &own)
}

// Shell asks the user with the call's Ask, and then runs a command line as Run does, with the shell of this machine and
// for at most as long as limit. It returns the output, and as an error that the command has failed.
func (w *Workspace) Shell(ctx context.Context, call *agentkit.ToolCall, line string, limit time.Duration) (string,
	error) {
	if _, err := call.Ask(ctx); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, acp.Public(fmt.Errorf("stopped after %v", limit)))
	defer cancel()
	shell := local.DefaultShell()
	res, err := w.Run(ctx, call, &acp.CreateTerminalRequest{Command: shell[0], Args: append(shell[1:], line)})
	if res == nil {
		return "", err
	}
	return res.Output, errors.Join(err, res.ExitStatus.Value().Err())
}

const maxOutput = 64 << 10 // bytes, of commands and searches

func (w *Workspace) runHere(
	ctx context.Context, call *agentkit.ToolCall, req *acp.CreateTerminalRequest,
) (*acp.TerminalOutputResponse, error) {
	ctx, cancel := apart(ctx)
	defer cancel()
	if err := call.Begin(); err != nil {
		return nil, err
	}
	created, err := w.terminals.CreateTerminal(ctx, w.session, req)
	if err != nil {
		return nil, err
	}
	id, free := created.TerminalID, context.Background() // what follows has bounds of its own
	_, err = w.terminals.WaitForTerminalExit(ctx, w.session, &acp.WaitForTerminalExitRequest{TerminalID: id})
	if err != nil {
		_, killed := w.terminals.KillTerminal(free, w.session, &acp.KillTerminalRequest{TerminalID: id})
		err = errors.Join(err, killed)
	}
	res, unread := w.terminals.TerminalOutput(free, w.session, &acp.TerminalOutputRequest{TerminalID: id})
	_, unreleased := w.terminals.ReleaseTerminal(free, w.session, &acp.ReleaseTerminalRequest{TerminalID: id})
	if unread == nil && res.Output != "" {
		err = errors.Join(err, call.Progress(agentkit.CodeBlock(res.Output)))
	}
	return res, errors.Join(err, unread, unreleased)
}

// apart returns a context that ends when ctx does, and belongs to no request: package local would reserve memory for
// what it returns as the answer to that request.
func apart(ctx context.Context) (context.Context, context.CancelFunc) {
	own, cancel := context.WithCancelCause(context.Background())
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return own, func() {
		stop()
		cancel(nil)
	}
}

// patience is how long a call of the system may take after its context has ended.
const patience = time.Second
