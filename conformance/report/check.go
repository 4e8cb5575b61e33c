package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
)

// CheckOptions configures Source.Check.
type CheckOptions struct {
	// Schema is the schema of a protocol version. Nil means the version that each connection negotiates; see
	// conformance.NewJudge.
	Schema *conformance.Schema
	Reader *recording.ReaderOptions
	// OnFinding is called for each finding that counts, as soon as it is found. If it returns an error, Check stops and
	// returns it.
	OnFinding func(*Entry) error
}

// ErrStopped is returned by a reader that was stopped by its user. Check then ends as if more messages could follow.
var ErrStopped = errors.New("stopped")

// Check judges a recording in any format that package recording reads, while reading it, and adds the findings to the
// source. It records unreadable parts as Problems of the source and does not return them as errors. Each recording in
// the input is a separate connection.
func (s *Source) Check(in io.Reader, options *CheckOptions) error {
	c := check{source: s, options: *cmp.Or(options, &CheckOptions{})}
	reader := recording.NewReader(in, c.options.Reader)
	err := c.readAll(reader)
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
	lines      recording.Lines
	cut        bool // the recording of the connection is truncated
}

func (c *check) readAll(reader *recording.Reader) error {
	for {
		e, err := reader.Read()
		if err != nil {
			if errors.Is(err, ErrStopped) {
				return nil
			}
			if err != io.EOF {
				c.problem(err)
				c.cut = true
			}
			return c.finish()
		}
		if err := c.take(e); err != nil {
			return err
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
			Rules: func(r *conformance.Rule) bool { return c.source.report.selects(r.ID) },
		})
		c.source.Connections++
	}
	c.source.Messages++
	c.lines.Add(e.Number)
	for _, f := range c.judging.Message(e.Message()) {
		if err := c.add(f, e.Line); err != nil {
			return err
		}
	}
	return nil
}

// unreadable records the error of an entry.
func (c *check) unreadable(e *recording.Entry) {
	switch {
	case errors.Is(e.Err, recording.ErrConcatenated):
		// All recordings are judged, each separately.
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

// problemOf converts an error of package recording to a Problem with its line.
func problemOf(err error) Problem {
	e, ok := errors.AsType[*recording.Error](err)
	if !ok {
		return Problem{0, err.Error()}
	}
	return Problem{e.Number, e.Text()}
}

// add adds a finding. The line is the judged message, or nil at the end of the connection.
func (c *check) add(f conformance.Finding, line []byte) error {
	e := &Entry{Finding: f, Line: c.lines.Of(f.Number)}
	if f.Number == c.lines.Count() && line != nil {
		e.Excerpt = excerpt(line)
	}
	for _, evidence := range f.Evidence {
		e.Lines = append(e.Lines, c.lines.Of(evidence.Number))
	}
	if c.source.Add(e) && c.options.OnFinding != nil {
		return c.options.OnFinding(e)
	}
	return nil
}

// finish ends the judged connection. The end of a truncated recording proves nothing.
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
	c.judging, c.lines, c.cut = nil, recording.Lines{}, false
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
