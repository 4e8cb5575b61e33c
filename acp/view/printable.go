package view

import (
	"io"

	"github.com/acpgo/sdk/internal/plain"
)

// Printable returns text of an agent in a form that is safe to write to a terminal. Characters that are not printable,
// such as those of escape sequences and those that change the direction of text, are written as in a Go string: \x1b,
// \u202e. Newlines and tabs stay, "\r\n" becomes "\n", and every kind of space becomes a plain one. Bytes that are not
// valid UTF-8 become U+FFFD. The beginning of a workflow command of a CI server, "::" at the start of a line or "##[",
// is escaped too.
//
// Text that arrives in pieces can be converted piece by piece, except that a workflow command split between two pieces
// is not recognized. Printable does not know the width of the terminal: a long line continues at the left edge of the
// next row.
func Printable(text string) string { return plain.Text(text) }

// PrintableLine is like [Printable], but the result is one line: newlines and tabs are written as \n and \t. It keeps
// the first 1000 characters, and adds how many bytes follow. Use it for titles, names and errors, so that they cannot
// contain a line that looks like one of the program's own.
func PrintableLine(text string) string { return plain.Line(text) }

// A PrintableWriter writes complete lines, converted by [Printable], to another writer. It is meant for the standard
// error of an agent's process. Lines of more than 8 KiB are split. It is safe for concurrent use.
type PrintableWriter struct{ lines *plain.Writer }

// NewPrintableWriter returns a writer that writes to w and starts each line with prefix, so that the user sees where
// the line comes from.
func NewPrintableWriter(w io.Writer, prefix string) *PrintableWriter {
	return &PrintableWriter{plain.NewWriter(w, prefix)}
}

// Write writes the lines that p completes, and keeps the rest for the next call. If writing a line fails, Write returns
// 0 and the error.
func (w *PrintableWriter) Write(p []byte) (int, error) { return w.lines.Write(p) }

// Flush writes the last line if it has no newline.
func (w *PrintableWriter) Flush() error { return w.lines.Flush() }
