package recording

import (
	"errors"
	"fmt"
)

// The problems that a file, or a line of it, can have; see Error.
var (
	// ErrEmpty means that the file has no lines.
	ErrEmpty = errors.New("the file is empty")
	// ErrUnknown means that the file contains no messages.
	ErrUnknown = errors.New("not a recording: no line contains an ACP message")
	// ErrBinary means that the file, or a line, is not text.
	ErrBinary = errors.New("not text")
	// ErrNotJSON means that a line is not JSON.
	ErrNotJSON = errors.New("not JSON")
	// ErrTruncated means that the last line of a recording is incomplete.
	ErrTruncated = errors.New("truncated")
	// ErrNoEnd means that the end of the connection is not recorded: the recording is truncated or still in progress.
	ErrNoEnd = errors.New("the end is not recorded: the recording is truncated or still in progress")
	// ErrTooLong means that a line is longer than the reader accepts.
	ErrTooLong = errors.New("line too long")
	// ErrLine means that a line is JSON but does not belong to a recording.
	ErrLine = errors.New("not a line of a recording")
	// ErrDirection means that the sender of a message cannot be determined.
	ErrDirection = errors.New("unknown sender")
	// ErrClock means that a line is older than the one before it. The entry can be used.
	ErrClock = errors.New("time goes backwards: lines are out of order, or the clock was set")
	// ErrConcatenated means that another recording begins in the same file. The entry can be used.
	ErrConcatenated = errors.New("another recording begins in the same file")
	// ErrLost means that there is a gap because the recorder could not keep up.
	ErrLost = errors.New("not recorded because the recorder could not keep up")
	// ErrNewer means that the recording is in a later version of the format. The entry can be used.
	ErrNewer = errors.New("a later version of the format")
)

// Error is a problem with a line of a file. It matches the Err… variables by errors.Is.
type Error struct {
	// Number is the line, from 1.
	Number int
	// Problem is one of the Err… variables, or an error from the reader of the file.
	Problem error
	// Detail has more information. It may be empty.
	Detail string
}

// Error returns the problem with its line: "line 3: not JSON: …".
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Number, e.Text()) }

// Text returns the problem without its line: "not JSON: …".
func (e *Error) Text() string {
	if e.Detail == "" {
		return e.Problem.Error()
	}
	return e.Problem.Error() + ": " + e.Detail
}

// Unwrap returns the problem.
func (e *Error) Unwrap() error { return e.Problem }
