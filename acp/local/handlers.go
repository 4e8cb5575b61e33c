package local

import (
	"context"
	"math"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// Register sets the handlers ReadTextFile and, unless the files are read-only, WriteTextFile, so that the client
// advertises fs.readTextFile and fs.writeTextFile.
func (f *Files) Register(h *acp.ClientHandlers) {
	h.ReadTextFile = handler(f.ReadTextFile)
	if f.approval != nil {
		h.WriteTextFile = handler(f.WriteTextFile)
	}
}

// ReadTextFile returns the lines of a text file that the request asks for, or the whole file if it names no lines
// (fs/read_text_file). Lines end after "\n"; lines after the end of the file are an empty text. The amount read is
// bounded; see [FilesOptions]. A missing file is rpc.ErrResourceNotFound with the file's URI as data and "No such file
// or directory" in its message; other refusals are rpc.ErrInvalidParams.
func (f *Files) ReadTextFile(ctx context.Context, session Session,
	req *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
	lines := window{first: req.Line.Or(1), count: -1}
	if count, ok := req.Limit.Get(); ok {
		lines.count = int64(count)
	}
	text, err := f.read(ctx, keyOf(session), req.Path, lines)
	if err != nil {
		return nil, forPeer(err)
	}
	return &acp.ReadTextFileResponse{Content: text}, nil
}

// WriteTextFile replaces the content of a file (fs/write_text_file). A missing file is created, and so are missing
// directories, with permissions according to the umask. An existing file keeps everything except its text: owner,
// permissions, access control list, extended attributes. Only the setuid and setgid permissions are removed.
//
// On Linux an existing file is replaced atomically if nothing is lost that way: readers, and the disk after a crash,
// have either the old text or the new one, and other hard links keep the old text. The file is overwritten in place,
// for all its hard links, if a new file would lack something that the old one has, such as its access control list or
// its owner, if it is reached by a symbolic link, which stays a link, if no new files can be created in its directory,
// or if it is a mount point; on other systems it is always overwritten in place. Readers may then see a mixture of both
// texts, and a crash may leave one. A full disk leaves the old text, unless the file system also needs space to
// overwrite.
//
// The [Approval] is asked once the path is known to be inside the session's directories. If a request is cancelled,
// either the file is unchanged or the change is complete. Refusals are rpc.ErrInvalidParams, or rpc.ErrMethodNotFound
// if the files are read-only.
func (f *Files) WriteTextFile(ctx context.Context, session Session,
	req *acp.WriteTextFileRequest) (*acp.WriteTextFileResponse, error) {
	if err := f.write(ctx, session, req.Path, req.Content); err != nil {
		return nil, forPeer(err)
	}
	return &acp.WriteTextFileResponse{}, nil
}

// Register sets the five terminal handlers, so that the client advertises terminal, unless there is no [Approval].
func (t *Terminals) Register(h *acp.ClientHandlers) {
	if t.approval == nil {
		return
	}
	h.CreateTerminal = handler(t.CreateTerminal)
	h.TerminalOutput = handler(t.TerminalOutput)
	h.WaitForTerminalExit = handler(t.WaitForTerminalExit)
	h.KillTerminal = handler(t.KillTerminal)
	h.ReleaseTerminal = handler(t.ReleaseTerminal)
}

// CreateTerminal starts a command, once the [Approval] permits it, and returns at once (terminal/create). The command
// does not end with ctx. Its id cannot be guessed, and is known only to the session that created it. If the command or
// the working directory does not exist, the error is rpc.ErrInvalidParams.
func (t *Terminals) CreateTerminal(ctx context.Context, session Session,
	req *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
	limit := -1
	if bytes, ok := req.OutputByteLimit.Get(); ok {
		limit = int(min(bytes, math.MaxInt))
	}
	c := command{req.Command, req.Args, req.Env, req.Cwd}
	if err := t.approve(ctx, session, c); err != nil {
		return nil, forPeer(err)
	}
	id, err := t.create(session, c, limit)
	if err != nil {
		return nil, forPeer(err)
	}
	return &acp.CreateTerminalResponse{TerminalID: id}, nil
}

// TerminalOutput returns the end of a command's output, valid UTF-8 of at most the requested number of bytes, and its
// exit status once it has ended (terminal/output). If the session does not have the terminal, the error is
// rpc.ErrResourceNotFound.
func (t *Terminals) TerminalOutput(ctx context.Context, session Session,
	req *acp.TerminalOutputRequest) (*acp.TerminalOutputResponse, error) {
	limit, err := t.outputLimit(keyOf(session), req.TerminalID)
	if err != nil {
		return nil, forPeer(err)
	}
	// First the greatest possible size, and then the actual one.
	if err := rpc.Reserve(ctx, limit); err != nil {
		return nil, err
	}
	text, truncated, exit, err := t.tail(keyOf(session), req.TerminalID)
	if err != nil {
		return nil, forPeer(err)
	}
	if err := rpc.Reserve(ctx, len(text)); err != nil {
		return nil, err
	}
	res := &acp.TerminalOutputResponse{Output: text, Truncated: truncated}
	if exit != nil {
		code, signal := exit.members()
		res.ExitStatus = acp.Some(acp.TerminalExitStatus{ExitCode: code, Signal: signal})
	}
	return res, nil
}

// WaitForTerminalExit waits until a command or ctx has ended, and returns the command's exit status
// (terminal/wait_for_exit). If the session does not have the terminal, the error is rpc.ErrResourceNotFound.
func (t *Terminals) WaitForTerminalExit(ctx context.Context, session Session,
	req *acp.WaitForTerminalExitRequest) (*acp.WaitForTerminalExitResponse, error) {
	exit, err := t.wait(ctx, keyOf(session), req.TerminalID)
	if err != nil {
		return nil, forPeer(err)
	}
	code, signal := exit.members()
	return &acp.WaitForTerminalExitResponse{ExitCode: code, Signal: signal}, nil
}

// KillTerminal ends a command and the processes that it started, within the limits that [Terminals] describes, and
// returns when the command has ended (terminal/kill). The command gets SIGTERM first and SIGKILL after
// [TerminalsOptions.KillGrace], or when ctx ends. The terminal stays until it is released. It is not an error if the
// command has already ended. If the session does not have the terminal, the error is rpc.ErrResourceNotFound.
func (t *Terminals) KillTerminal(ctx context.Context, session Session,
	req *acp.KillTerminalRequest) (*acp.KillTerminalResponse, error) {
	if err := t.kill(ctx, keyOf(session), req.TerminalID); err != nil {
		return nil, forPeer(err)
	}
	return &acp.KillTerminalResponse{}, nil
}

// ReleaseTerminal ends a command as KillTerminal does, frees its terminal and returns when this is done
// (terminal/release). The id becomes unknown as soon as ReleaseTerminal is called. If the session does not have the
// terminal, the error is rpc.ErrResourceNotFound.
func (t *Terminals) ReleaseTerminal(ctx context.Context, session Session,
	req *acp.ReleaseTerminalRequest) (*acp.ReleaseTerminalResponse, error) {
	if err := t.release(ctx, keyOf(session), req.TerminalID); err != nil {
		return nil, forPeer(err)
	}
	return &acp.ReleaseTerminalResponse{}, nil
}

// members returns the status for the protocol: absent parts are null.
func (s *exitStatus) members() (code acp.Opt[uint32], signal acp.Opt[string]) {
	code, signal = acp.Null[uint32](), acp.Null[string]()
	if s.code >= 0 {
		code = acp.Some(uint32(s.code))
	}
	if s.signal != "" {
		signal = acp.Some(s.signal)
	}
	return code, signal
}
