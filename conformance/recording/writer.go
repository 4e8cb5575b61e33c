package recording

// This file owns writing.

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/conformance"
)

// Writer writes a recording. Its methods are safe for concurrent use: each line of the file is written by one call of
// Write. After an error, all methods return it.
type Writer struct {
	masker *Masker

	mu    sync.Mutex
	w     io.Writer
	began time.Time
	buf   []byte
	err   error
}

// NewWriter writes the header and returns a Writer for what follows. If the header has no date, it gets the
// present time, and if there is a masker, the header says so, and its command is masked. A nil masker keeps secrets.
func NewWriter(w io.Writer, h Header, masker *Masker) (*Writer, error) {
	if h.Date.IsZero() {
		h.Date = time.Now()
	}
	// The times of the entries are of the date's precision, so that they are what they were when they are read.
	began := h.Date
	date := began.Round(0).UTC()
	line := header{
		Recording: formVersion, Tool: h.Tool, Version: h.Version, Command: h.Command, Versions: h.Versions,
		Date: &date, Masked: h.Masked || masker != nil, Meta: h.Meta,
	}
	if masker != nil {
		line.Command = masker.Args(h.Command)
	}
	text, err := json.Marshal(line)
	if err != nil {
		return nil, fmt.Errorf("recording: header: %w", err)
	}
	writer := &Writer{masker: masker, w: w, began: began}
	writer.put(append(text, '\n'))
	return writer, writer.err
}

// Message writes a message that passes now. A newline at its end is not part of it. It may be used as OnMessage of a conformance.Monitor or
// Tap, which has no use for the error: the last call of the Writer returns it too.
func (w *Writer) Message(m conformance.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write(&Entry{Kind: KindMessage, Time: time.Now(), Direction: m.Direction, Line: m.Line})
}

// Write writes an entry: a message, a line of standard error, or the end. Of these it uses no number and no error. An
// entry without time has the one of the header.
func (w *Writer) Write(e *Entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write(e)
}

func (w *Writer) write(e *Entry) error {
	if w.err != nil {
		return w.err
	}
	b := append(w.buf[:0], `{"t":`...)
	var t time.Duration
	if !e.Time.IsZero() {
		t = e.Time.Sub(w.began)
	}
	b = strconv.AppendFloat(b, float64(t.Microseconds())/1000, 'f', 3, 64)
	switch e.Kind {
	case KindMessage:
		b = append(b, `,"from":"`...)
		b = append(b, e.Direction.Sender().String()...)
		b = append(b, '"')
		b = w.line(b, "raw", "bytes", e.Line)
		if e.Partial {
			b = append(b, `,"partial":true`...)
		}
	case KindStderr:
		b = append(b, `,"from":"agent"`...)
		b = w.line(b, "stderr", "stderrBytes", e.Line)
	case KindEnd:
		line := exit{}
		if e.End != nil {
			line.Code = e.End.Code
			if e.End.Signal != "" {
				line.Signal = &e.End.Signal
			}
		}
		text, err := json.Marshal(line)
		if err != nil {
			w.err = err
			return err
		}
		b = append(b, `,"exit":`...)
		b = append(b, text...)
	default:
		return fmt.Errorf("recording: entries of kind %d are not written", e.Kind)
	}
	w.put(append(b, "}\n"...))
	return w.err
}

// Lost writes that some bytes of a direction were not recorded.
func (w *Writer) Lost(at time.Time, d conformance.Direction, bytes int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.put(fmt.Appendf(w.buf[:0], `{"t":%.3f,"from":%q,"lost":%d}`+"\n", float64(at.Sub(w.began).Microseconds())/1000, d.Sender(), bytes))
	}
	return w.err
}

// line appends a member with a line's text, or with its bytes.
func (w *Writer) line(b []byte, text, bytes string, line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	if w.masker != nil {
		line = w.masker.Mask(line)
	}
	if utf8.Valid(line) {
		b = append(b, `,"`+text+`":`...)
		return codec.AppendString(b, string(line))
	}
	b = append(b, `,"`+bytes+`":"`...)
	return append(base64.StdEncoding.AppendEncode(b, line), '"')
}

// maxKept is the largest buffer that is kept for the next line.
const maxKept = 1 << 20

// put writes one line.
func (w *Writer) put(line []byte) {
	if w.buf = line[:0]; cap(line) > maxKept {
		w.buf = nil
	}
	if _, err := w.w.Write(line); err != nil {
		w.err = fmt.Errorf("recording: %w", err)
	}
}

// WriteAll writes a recording that is in memory. The time is the present one for all messages.
func WriteAll(w io.Writer, h Header, r *conformance.Recording, masker *Masker) error {
	writer, err := NewWriter(w, h, masker)
	for _, m := range r.Messages() {
		if err != nil {
			return err
		}
		err = writer.Message(m)
	}
	return err
}
