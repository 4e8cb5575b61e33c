package recording

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/conformance"
)

// Writer writes a recording. Its methods are safe for concurrent use, and each line of the file is written by a single
// call of Write. After an error, all methods return that error.
type Writer struct {
	masker *Masker

	mu    sync.Mutex
	w     io.Writer
	began time.Time
	buf   []byte
	err   error
}

// NewWriter writes the header and returns a Writer for the rest of the recording. If the header has no date, the
// current time is used. If masker is not nil, secrets are masked, including those in the header's command, and the
// header says so.
func NewWriter(w io.Writer, h Header, masker *Masker) (*Writer, error) {
	if h.Date.IsZero() {
		h.Date = time.Now()
	}
	// The times of the entries are relative to the date, so the date is rounded to its written precision to keep them
	// exact.
	began := h.Date
	date := began.Round(0).UTC()
	line := header{
		Recording: formVersion, Tool: h.Tool, Version: h.Version, Command: h.Command, Versions: h.Versions,
		Date: &date, Masked: h.Masked || masker != nil, Meta: h.Meta,
	}
	if masker != nil {
		line.Command = masker.Args(h.Command)
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(line); err != nil {
		return nil, fmt.Errorf("recording: header: %w", err)
	}
	writer := &Writer{masker: masker, w: w, began: began}
	writer.put(text.Bytes())
	return writer, writer.err
}

// Message writes a message. If the message has no time, the current time is used. A newline at the end of its line is
// ignored. To use Message as OnMessage of a conformance.Monitor or Tap, discard its error: the last call of the Writer
// returns it too.
func (w *Writer) Message(m conformance.Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.Time.IsZero() {
		m.Time = time.Now()
	}
	return w.write(&Entry{Kind: KindMessage, Time: m.Time, Direction: m.Direction, Line: m.Line})
}

// Write writes an entry: a message, a line of standard error, or the end. It ignores the entry's Number and Err. An
// entry without a time has none in the file. Nothing can be written after the end.
func (w *Writer) Write(e *Entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write(e)
}

func (w *Writer) write(e *Entry) error {
	if w.err != nil {
		return w.err
	}
	b := append(w.buf[:0], '{')
	if !e.Time.IsZero() {
		b = append(strconv.AppendFloat(append(b, `"t":`...), w.milliseconds(e.Time), 'f', 3, 64), ',')
	}
	switch e.Kind {
	case KindMessage:
		b = append(b, `"from":"`...)
		b = append(b, e.Direction.Sender().String()...)
		b = append(b, '"')
		b = w.line(b, "raw", "bytes", e.Line)
		if e.Partial {
			b = append(b, `,"partial":true`...)
		}
	case KindStderr:
		b = append(b, `"from":"agent"`...)
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
		b = append(b, `"exit":`...)
		b = append(b, text...)
		if e.End != nil && e.End.Closed != 0 {
			b = append(b, `,"closed":"`+e.End.Closed.String()+`"`...)
		}
	default:
		return fmt.Errorf("recording: entries of kind %d cannot be written", e.Kind)
	}
	w.put(append(b, "}\n"...))
	if err := w.err; e.Kind == KindEnd && err == nil {
		w.err = fmt.Errorf("recording: write after the end: %w", os.ErrClosed)
		return nil
	}
	return w.err
}

// milliseconds returns a time in the form of the file, in milliseconds since the header's date.
func (w *Writer) milliseconds(at time.Time) float64 {
	return float64(at.Sub(w.began).Microseconds()) / 1000
}

// Lost records that a number of bytes in a direction were not recorded.
func (w *Writer) Lost(at time.Time, d conformance.Direction, size int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.put(fmt.Appendf(w.buf[:0], `{"t":%.3f,"from":%q,"lost":%d}`+"\n", w.milliseconds(at), d.Sender(), size))
	}
	return w.err
}

// line appends a member with a line's text, or with its bytes.
func (w *Writer) line(b []byte, text, binary string, line []byte) []byte {
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
	b = append(b, `,"`+binary+`":"`...)
	return append(base64.StdEncoding.AppendEncode(b, line), '"')
}

// maxKept is the size of the largest buffer that is kept for the next line.
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

// WriteAll writes a recording in memory to w. If the header has no date, the time of the first message is used.
// Messages without a time have none in the file.
func WriteAll(w io.Writer, h Header, r *conformance.Recording, masker *Masker) error {
	messages := r.Messages()
	if h.Date.IsZero() && len(messages) > 0 {
		h.Date = messages[0].Time
	}
	writer, err := NewWriter(w, h, masker)
	for _, m := range messages {
		if err != nil {
			return err
		}
		err = writer.Write(&Entry{Kind: KindMessage, Time: m.Time, Direction: m.Direction, Line: m.Line})
	}
	if err == nil {
		err = writer.Write(&Entry{Kind: KindEnd})
	}
	return err
}
