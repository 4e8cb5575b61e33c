package recording

import (
	"errors"
	"fmt"
)

// What can be wrong with a line of a file, or with the file; see Error.
var (
	// ErrEmpty is a file without any line.
	ErrEmpty = errors.New("the file is empty")
	// ErrUnknown is a file in which nothing is a message.
	ErrUnknown = errors.New("no recording: no line of it holds a message of ACP")
	// ErrBinary is a file, or a line, that is not text.
	ErrBinary = errors.New("not text")
	// ErrNotJSON is a line that should be JSON.
	ErrNotJSON = errors.New("not JSON")
	// ErrTruncated is a last line that is cut off.
	ErrTruncated = errors.New("cut off")
	// ErrNoEnd is a recording without the record of its end: it was cut off, or is not finished.
	ErrNoEnd = errors.New("no record of the end: the recording was cut off, or is not finished")
	// ErrTooLong is a line that is longer than the reader accepts.
	ErrTooLong = errors.New("line too long")
	// ErrLine is JSON that is no line of a recording.
	ErrLine = errors.New("no line of a recording")
	// ErrDirection is a message of which nothing tells who has sent it.
	ErrDirection = errors.New("unknown sender")
	// ErrClock is a line that is older than the one before it. The entry can be used.
	ErrClock = errors.New("the clock goes back: lines are out of order, or the clock was set")
	// ErrConcatenated is the beginning of a further recording in the same file. The entry can be used.
	ErrConcatenated = errors.New("another recording begins in the same file")
	// ErrProtocol is a recording of another protocol. Lines of it that follow are skipped.
	ErrProtocol = errors.New("a recording of another protocol")
	// ErrLost is a gap: the recorder could not keep up.
	ErrLost = errors.New("not recorded, since the recorder could not keep up")
	// ErrNewer is a recording of a later version of the form. The entry can be used.
	ErrNewer = errors.New("a later version of the form")
)

// Error is a problem with a line of a file. It matches the Err… variables by errors.Is.
type Error struct {
	// Number is the line, from 1.
	Number int
	// Problem is one of the Err… variables, or an error of reading.
	Problem error
	// Detail says more, or is empty.
	Detail string
}

// Error is of the form "line 3: not JSON: …".
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Number, e.Text()) }

// Text is the error without the line: "not JSON: …".
func (e *Error) Text() string {
	if e.Detail == "" {
		return e.Problem.Error()
	}
	return e.Problem.Error() + ": " + e.Detail
}

// Unwrap returns the problem.
func (e *Error) Unwrap() error { return e.Problem }
