package report

// This file owns judging a recording while it is read.

import (
	"errors"
	"fmt"
	"io"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
)

// CheckOptions configure Source.Check.
type CheckOptions struct {
	// Schema is the version of the protocol. Nil means what each connection negotiates; see conformance.NewJudge.
	Schema *conformance.Schema
	Reader *recording.ReaderOptions
	// OnFinding is called for each finding that counts, as it comes. If it fails, Check ends with the error.
	OnFinding func(*Entry) error
}

// ErrStopped is the error of a reader whose user wants no more of it. Check then ends as if more could follow.
var ErrStopped = errors.New("stopped")

// Check judges a recording of any form that package recording reads, as it comes, and adds what it finds to the source.
// What could not be read is a Problem of the source, and no error. Each recording in it is a connection of its own.
// Reading and judging are two goroutines; Check waits for both.
func (s *Source) Check(in io.Reader, options *CheckOptions) error {
	c := check{source: s}
	if options != nil {
		c.options = *options
	}
	q := newQueue()
	reader := recording.NewReader(in, c.options.Reader)
	go q.fill(reader)
	err := c.judge(q)
	q.stop()
	<-q.ended
	if err == nil {
		for _, skipped := range reader.Skipped() {
			s.Notes = append(s.Notes, Problem{0, skipped.String()})
		}
	}
	return err
}

// check is one run of Check.
type check struct {
	source     *Source
	options    CheckOptions
	judging    *conformance.Judge
	connection int // of the recording that is judged
	number     int // of its messages
	lines      lines
	cut        bool // the recording of the connection has no end
}

func (c *check) judge(q *queue) error {
	for b := (*batch)(nil); ; {
		var err error
		if b, err = q.take(b); err != nil {
			if errors.Is(err, ErrStopped) {
				return nil
			}
			if err != io.EOF {
				c.problem(err)
				c.cut = true
			}
			return c.finish()
		}
		for i := range b.entries {
			if err := c.take(&b.entries[i]); err != nil {
				return err
			}
		}
	}
}

// take judges one entry.
func (c *check) take(e *recording.Entry) error {
	if e.Err != nil {
		c.unreadable(e)
	}
	if e.Kind == recording.KindNone {
		return nil
	}
	if e.Connection != c.connection {
		if err := c.finish(); err != nil {
			return err
		}
		c.connection = e.Connection
	}
	if e.Kind == recording.KindEnd && c.judging != nil && e.End != nil && e.End.Closed != 0 {
		c.judging.Closed(e.End.Closed)
	}
	if e.Kind != recording.KindMessage {
		return nil
	}
	if c.judging == nil {
		c.judging = conformance.NewJudge(c.options.Schema, &conformance.JudgeOptions{
			Rules: func(r *conformance.Rule) bool { return c.source.report.judged(r.ID) },
		})
		c.source.Connections++
	}
	c.source.Messages++
	c.number++
	c.lines.add(c.number, e.Number)
	for _, f := range c.judging.Message(e.Message()) {
		if err := c.add(f, e.Line); err != nil {
			return err
		}
	}
	return nil
}

// unreadable notes the error of an entry.
func (c *check) unreadable(e *recording.Entry) {
	switch {
	case errors.Is(e.Err, recording.ErrConcatenated):
		// All of it is judged, each recording for itself.
		c.source.Notes = append(c.source.Notes, problemOf(e.Err))
	case errors.Is(e.Err, recording.ErrNoEnd), errors.Is(e.Err, recording.ErrTruncated):
		c.cut = true
		fallthrough
	default:
		c.problem(e.Err)
	}
}

func (c *check) problem(err error) {
	p := problemOf(err)
	c.source.Problem(p.Line, p.Text)
}

// problemOf takes the line out of an error of package recording.
func problemOf(err error) Problem {
	e, ok := errors.AsType[*recording.Error](err)
	if !ok {
		return Problem{0, err.Error()}
	}
	text := e.Problem.Error()
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return Problem{e.Number, text}
}

// add adds a finding; line is the message that was judged, nil at the end.
func (c *check) add(f conformance.Finding, line []byte) error {
	e := &Entry{Finding: f, Line: c.lines.of(f.Number)}
	if f.Number == c.number && line != nil {
		e.Excerpt = excerpt(line)
	}
	for _, evidence := range f.Evidence {
		e.Lines = append(e.Lines, c.lines.of(evidence.Number))
	}
	if c.source.Add(e) && c.options.OnFinding != nil {
		return c.options.OnFinding(e)
	}
	return nil
}

// finish ends the connection that was judged. What is cut off shows nothing by its end.
func (c *check) finish() error {
	judging := c.judging
	if judging == nil {
		return nil
	}
	if version := judging.Version(); version > 0 {
		c.source.Version(version)
	}
	if !c.cut {
		for _, f := range judging.End() {
			if err := c.add(f, nil); err != nil {
				return err
			}
		}
	}
	c.judging, c.number, c.lines, c.cut = nil, 0, lines{}, false
	return nil
}

// maxExcerpt bounds an excerpt, in bytes.
const maxExcerpt = 240

func excerpt(line []byte) string {
	if len(line) > maxExcerpt {
		return fmt.Sprintf("%s… (%d bytes)", line[:maxExcerpt], len(line))
	}
	return string(line)
}

// lines knows the line of each message of a connection: where the difference of the two changes.
type lines struct {
	steps []step
}

// step says that from the message on, the line is so much more than the message's number.
type step struct{ number, more int }

// maxSteps bounds what is remembered; the oldest half is forgotten.
const maxSteps = 1 << 15

func (l *lines) add(number, line int) {
	more := line - number
	if n := len(l.steps); n > 0 && l.steps[n-1].more == more {
		return
	}
	if len(l.steps) == maxSteps {
		l.steps = append(l.steps[:0], l.steps[maxSteps/2:]...)
	}
	l.steps = append(l.steps, step{number, more})
}

// of returns the line of a message, or 0 if that is not known.
func (l *lines) of(number int) int {
	low, high := 0, len(l.steps)
	for low < high {
		if middle := (low + high) / 2; l.steps[middle].number <= number {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == 0 || number == 0 {
		return 0
	}
	return number + l.steps[low-1].more
}
