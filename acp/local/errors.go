package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// A Refusal is a reason for refusing a request. Errors of the handlers match one with errors.Is, and also match an
// *rpc.Error, which is sent to the agent.
type Refusal string

// Error returns the reason.
func (r Refusal) Error() string { return string(r) }

// The reasons for refusing requests.
const (
	// ErrOutside reports that a path is not inside the session's directories, or that a symbolic link leads out of
	// them.
	ErrOutside Refusal = "outside the directories of the session"
	// ErrNotRegular reports that a path is a directory, a device, a pipe or a socket.
	ErrNotRegular Refusal = "not a regular file"
	// ErrTooLarge reports that a text is longer than [FilesOptions.MaxSize].
	ErrTooLarge Refusal = "too large"
	// ErrTooFar reports that the requested lines begin after [FilesOptions.MaxScan].
	ErrTooFar Refusal = "too far into the file"
	// ErrNotText reports that the text to read is not UTF-8.
	ErrNotText Refusal = "not UTF-8 text"
	// ErrReadOnly reports that no [Approval] permits writing.
	ErrReadOnly Refusal = "files are read-only"
	// ErrRejected reports that an [Approval] did not permit a write or a command.
	ErrRejected Refusal = "not permitted by the client or its user"
	// ErrTooMany reports that [TerminalsOptions.MaxTerminals] terminals already exist.
	ErrTooMany Refusal = "too many terminals"
	// ErrClosed reports that [Terminals.Close], [Terminals.CloseSession] or [Roots.Close] was called, or that the
	// connection is over.
	ErrClosed Refusal = "files and terminals are closed"
)

var (
	errPath      = errors.New("not an absolute path")
	errLong      = fmt.Errorf("longer than %d bytes", maxPath)
	errLine      = errors.New("lines count from 1")
	errDirectory = errors.New("not a directory")
	errNUL       = errors.New("contains a NUL byte")
	errName      = errors.New("not a name for an environment variable")
	errMoved     = errors.New("another directory now has its name")
	errStuck     = errors.New("the command was killed but does not end")
)

// maxPath is the greatest length of a path, in bytes; it is that of Linux. os.Root resolves names one by one and has no
// limit, so without one a request could create millions of directories.
const maxPath = 4 << 10

// maxEcho is how much of an agent's text an error repeats, in bytes.
const maxEcho = 512

// quote prepares an agent's text for errors, which are answered, logged and shown: it is quoted, with unprintable
// characters escaped, and truncated.
func quote(s string) string {
	if len(s) <= maxEcho {
		return strconv.Quote(s)
	}
	end := maxEcho
	for end > maxEcho-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%q... (%d bytes)", s[:end], len(s))
}

// An unknownError reports that the session has nothing with this id.
type unknownError struct {
	what, member, id string
}

func (e *unknownError) Error() string { return "unknown " + e.what + " " + quote(e.id) }

func unknownSession(id acp.SessionID) error {
	return &unknownError{"session", "sessionId", string(id)}
}

func unknownTerminal(id acp.TerminalID) error {
	return &unknownError{"terminal", "terminalId", string(id)}
}

// A paramError reports which parameter of a request is wrong, by its name on the wire.
type paramError struct {
	name string
	err  error
}

func (e *paramError) Error() string { return e.name + ": " + e.err.Error() }
func (e *paramError) Unwrap() error { return e.err }

// A placeError reports an operation that failed for a path, which is written as the agent wrote it and not as os.Root
// sees it.
type placeError struct {
	op, path string
	err      error
}

func (e *placeError) Error() string { return e.op + " " + quote(e.path) + ": " + e.err.Error() }
func (e *placeError) Unwrap() error { return e.err }

// A peerError is an error together with the one that the agent gets.
type peerError struct {
	seen  *rpc.Error
	cause error
}

func (e *peerError) Error() string   { return e.cause.Error() }
func (e *peerError) Unwrap() []error { return []error{e.seen, e.cause} }

// forPeer gives an error its code and data. The paths and commands that the texts quote come from the agent, so it
// learns nothing new from them. The error of the request's context is left unchanged, because the runtime answers that.
func forPeer(err error) error {
	if _, ok := errors.AsType[*rpc.Error](err); ok || err == nil ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	seen, text := rpc.ErrorOf(rpc.ErrInternal), err.Error()
	path, isPath := errors.AsType[*placeError](err)
	unknown, isUnknown := errors.AsType[*unknownError](err)
	param, isParam := errors.AsType[*paramError](err)
	switch {
	case isUnknown:
		seen = rpc.ErrorOf(rpc.ErrResourceNotFound)
		if len(unknown.id) <= maxEcho {
			seen = rpc.ErrResourceNotFound.WithData(map[string]string{unknown.member: unknown.id})
		}
	case isParam:
		seen = invalid(param.name, err)
	case isPath && (errors.Is(err, fs.ErrNotExist) || path.op == opRead && errors.Is(err, syscall.ENOTDIR)):
		seen = rpc.ErrResourceNotFound.WithData(map[string]string{"uri": fileURI(path.path)})
		text = seen.Message + ": " + text
	case isPath && isRefusal(err):
		seen = invalid("path", err)
	case errors.Is(err, ErrReadOnly):
		seen = rpc.ErrorOf(rpc.ErrMethodNotFound)
	}
	return &peerError{seen.WithMessagef("%s", text), err}
}

// invalid returns an error for a wrong parameter, in the form that package rpc uses for its own.
func invalid(name string, err error) *rpc.Error {
	return rpc.ErrInvalidParams.WithData(map[string]string{"pointer": "/" + name, "reason": err.Error()})
}

// isRefusal reports whether a path was refused, as opposed to an operation that failed.
func isRefusal(err error) bool {
	for _, reason := range []error{
		errPath, errLong, ErrOutside, ErrNotRegular, ErrTooLarge, ErrTooFar, ErrNotText,
		syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.ELOOP, fs.ErrExist,
	} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// pathError returns the error for a failed operation on a place.
func pathError(op string, at place, err error) error {
	if err = reason(err); err == at.root.escape {
		err = ErrOutside
	}
	return &placeError{op, at.path, err}
}

// reason removes the text that package os adds to the reason of a failure.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	} else if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &missingError{err}
	}
	return err
}

// A missingError is a reason that matches fs.ErrNotExist, in the words of the C library. Some agents treat a file as
// missing, and then create it, only if an error contains exactly "No such file" or "Resource not found", whatever its
// code.
type missingError struct{ err error }

func (e *missingError) Error() string { return "No such file or directory" }
func (e *missingError) Unwrap() error { return e.err }

// commandError converts an error of exec.LookPath to one about the command parameter.
func commandError(err error) error {
	if e, ok := errors.AsType[*exec.Error](err); ok {
		err = fmt.Errorf("%s: %w", quote(e.Name), reason(e.Err))
	}
	return &paramError{"command", err}
}

// startError converts an error of starting a command to one about the command parameter, if that is the cause.
func startError(name string, err error) error {
	err = fmt.Errorf("start %s: %w", quote(name), reason(err))
	for _, fault := range []error{fs.ErrNotExist, fs.ErrPermission, syscall.ENOEXEC, syscall.E2BIG} {
		if errors.Is(err, fault) {
			return &paramError{"command", err}
		}
	}
	return err
}

// fileURI returns the file URI of an absolute path.
func fileURI(path string) string {
	path = filepath.ToSlash(path)
	u := url.URL{Scheme: "file", Path: path}
	if host, share, ok := strings.Cut(strings.TrimPrefix(path, "//"), "/"); ok && strings.HasPrefix(path, "//") {
		u.Host, u.Path = host, "/"+share
	} else if !strings.HasPrefix(path, "/") {
		u.Path = "/" + path
	}
	return u.String()
}
