package inspect

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/show"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
)

// source is one connection that is inspected. Whatever it is, live or recorded, it is a sequence of the entries of a
// recording, which the source writes into a recording of its own; everything else that it keeps is bounded, except for
// an offset in that file for each row.
type source struct {
	id    string
	kind  string // agent, tap or file
	name  string
	lanes [2]string // the names of the client and the agent
	log   *eventLog

	mu            sync.Mutex
	path          string   // of its recording
	spool         *os.File // the recording, while it is written
	size          int64    // of the recording
	writer        *recording.Writer
	masker        *recording.Masker // nil if the lines are masked already, or shall not be
	masked        bool
	date, began   time.Time
	last          time.Time // of an entry
	offsets       []int64   // of the rows in the recording, by n-1; -1 for those that are not in it
	lines         recording.Lines
	judge         *conformance.Judge
	joiner        *show.Joiner
	message       show.Message
	stats         *show.Stats
	capabilities  capabilities
	conversations conversations
	translated    *translated // of version 2
	findings      findingCount
	unanswered    map[int]bool      // n of requests
	questions     map[int]*question // by n, of an agent that is talked to
	open, cut     bool
	err           error           // of writing the recording
	answering     func() *answers // of an agent that is talked to
	over          map[string]int  // by session: n of the message that ended its last turn
	allOver       int             // the same for those that over has no room for

	// respond answers an agent that is talked to.
	respond func(id json.RawMessage, result any, failed error, auto bool) error
}

// sourceOptions describe a source.
type sourceOptions struct {
	kind, name string
	lanes      [2]string // client and agent if empty
	header     recording.Header
	masker     *recording.Masker // nil does not mask
}

// newSource begins a source, with its recording in a file.
func newSource(id string, file *os.File, log *eventLog, o sourceOptions) (*source, error) {
	s := &source{
		id: id, kind: o.kind, name: o.name, lanes: o.lanes, log: log, path: file.Name(), spool: file, masker: o.masker,
		masked: o.masker != nil || o.header.Masked,
		date:   o.header.Date, judge: conformance.NewJudge(nil, nil), joiner: show.NewJoiner(), stats: show.NewStats(),
		unanswered: map[int]bool{}, questions: map[int]*question{}, over: map[string]int{}, open: true,
	}
	if s.lanes[0] == "" {
		s.lanes = [2]string{conformance.Client.String(), conformance.Agent.String()}
	}
	header := o.header
	header.Masked = s.masked
	if s.masker != nil {
		header.Command = s.masker.Args(header.Command)
	}
	if header.Date.IsZero() {
		header.Date = time.Unix(0, 0).UTC() // as the reader has it
	}
	s.began, s.last = header.Date, header.Date
	var err error
	if s.writer, err = recording.NewWriter(spoolWriter{s}, header, nil); err != nil {
		return nil, err
	}
	date := ""
	if !s.date.IsZero() {
		date = s.date.UTC().Format(time.RFC3339Nano)
	}
	log.add(&sourceEvent{Is: "source", Source: id, Kind: o.kind, Name: o.name, Lanes: s.lanes[:], Date: date,
		Masked: s.masked})
	return s, nil
}

// spoolWriter counts what is written to the recording.
type spoolWriter struct{ s *source }

func (w spoolWriter) Write(b []byte) (int, error) {
	n, err := w.s.spool.Write(b)
	w.s.size += int64(n)
	return n, err
}

// happens adds what happens now, so that the times of a source's entries are in order whichever goroutines add them.
func (s *source) happens(e recording.Entry, auto bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Time = time.Now()
	return s.put(&e, auto)
}

// add adds an entry of a recording.
func (s *source) add(e *recording.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(e, false)
}

// put adds an entry. auto says that the inspector itself has written the message. The caller holds mu.
func (s *source) put(e *recording.Entry, auto bool) (n int) {
	if e.Kind == recording.KindHeader {
		return 0
	}
	row := &rowEvent{Is: "row", Source: s.id, N: len(s.offsets) + 1, T: -1, Auto: auto}
	if !e.Time.IsZero() {
		s.last = e.Time
		row.T = float64(e.Time.Sub(s.began).Microseconds()) / 1000
	}
	if e.Err != nil {
		s.problem(row, e)
		if e.Kind == recording.KindNone {
			return 0
		}
		row.N = len(s.offsets) + 1
	}
	line := e.Line
	if s.masker != nil && (e.Kind == recording.KindMessage || e.Kind == recording.KindStderr) {
		line = s.masker.Mask(line)
	}
	at := s.size
	masked := *e
	masked.Line = line
	if err := s.writer.Write(&masked); err != nil && s.err == nil {
		s.err = err
		s.log.add(&rowEvent{Is: "row", Source: s.id, N: row.N, T: -1, Kind: "gap",
			Text: "the recording could not be written: " + err.Error()})
		s.offsets = append(s.offsets, -1)
		row.N++
	}
	if s.err != nil {
		at = -1
	}
	s.offsets = append(s.offsets, at)
	switch e.Kind {
	case recording.KindMessage:
		s.addMessage(row, e, line)
	case recording.KindStderr:
		row.Kind, row.From = "stderr", s.lane(conformance.Agent)
		setText(row, line, rowRaw)
		s.log.add(row)
	case recording.KindEnd:
		row.Kind, row.Text = "end", endText(e.End)
		s.log.add(row)
		if e.End != nil && e.End.Closed != 0 {
			s.judge.Closed(e.End.Closed)
		}
		s.finish()
	}
	return row.N
}

// masks reports whether the page does not see the whole of a line.
func (s *source) masks(line []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.masker != nil && !bytes.Equal(s.masker.Mask(line), line)
}

// problem adds a row for what could not be read.
func (s *source) problem(row *rowEvent, e *recording.Entry) {
	if errors.Is(e.Err, recording.ErrNoEnd) || errors.Is(e.Err, recording.ErrTruncated) {
		s.cut = true
	}
	text := e.Err.Error()
	gap := *row
	gap.Kind, gap.Text = "gap", text
	s.log.add(&gap)
	at := int64(-1)
	if lost, ok := errors.AsType[*recording.Error](e.Err); ok && errors.Is(lost, recording.ErrLost) && s.err == nil {
		var size int64
		var from string
		if _, err := fmt.Sscanf(lost.Detail, "%d bytes from the %s", &size, &from); err == nil {
			d := conformance.ToClient
			if from == conformance.Client.String() {
				d = conformance.ToAgent
			}
			at = s.size
			s.err = s.writer.Lost(s.last, d, size) // the reader has no time for it
		}
	}
	s.offsets = append(s.offsets, at)
}

// lane returns the name of a side.
func (s *source) lane(side conformance.Side) string { return s.lanes[side-conformance.Client] }

// note adds a remark about what happens now.
func (s *source) note(err error) { s.happens(recording.Entry{Err: err}, false) }

func (s *source) addMessage(row *rowEvent, e *recording.Entry, line []byte) {
	s.lines.Add(row.N)
	row.From, row.To = s.lane(e.Direction.Sender()), s.lane(e.Direction.Sender().Peer())
	setText(row, line, rowRaw)
	m := &s.message
	*m = show.Message{Number: s.lines.Count(), Direction: e.Direction, Text: line}
	if m.Timed = row.T >= 0; m.Timed {
		m.Since = e.Time.Sub(s.began)
	}
	s.joiner.Join(m, e.Time)
	s.stats.Add(m)
	row.Kind, row.Method, row.ID, row.Session, row.Update, row.Message = string(m.Kind), clip(m.Method, maxName),
		clip(m.ID, maxName), clip(m.Session, maxName), clip(m.Update, maxName), clip(m.Item, maxName)
	if m.Kind == "" {
		row.Kind = "invalid"
	}
	if m.Re > 0 {
		row.Re = s.lines.Of(m.Re)
		delete(s.unanswered, row.Re)
		delete(s.questions, row.Re)
	}
	if m.Delayed {
		delay := float64(m.Delay.Microseconds()) / 1000
		row.Delay = &delay
	}
	if m.Kind == conformance.Request && len(s.unanswered) < maxUnanswered {
		s.unanswered[row.N] = true
	}
	for _, f := range s.judge.Message(conformance.Message{Direction: e.Direction, Line: line, Time: e.Time}) {
		row.Findings = append(row.Findings, s.finding(&f))
	}
	s.capabilities.add(e.Direction.Sender(), m.Kind, m.Method, m.Content)
	if version := s.judge.Version(); version != 0 {
		s.capabilities.version = version
	}
	switch {
	case s.capabilities.version != 2:
		s.conversations.add(m)
	case s.translated == nil: // the answer that chooses version 2
		s.translated = newTranslated()
	default:
		s.translated.add(e.Direction, line, e.Time, &s.conversations)
	}
	switch {
	case s.kind != "agent":
	case m.Method == acp.MethodRequestPermission && m.Kind == conformance.Request && e.Direction == conformance.ToClient:
		row.Asks = s.ask(row.N, m, e.Line)
	case m.Method == acp.MethodCancelRequest && e.Direction == conformance.ToClient:
		s.cancelRequest(m.Content)
	case m.Method == acp.MethodSessionUpdate:
		s.update(m.Session)
	}
	if s.kind == "agent" && s.endsTurn(m) {
		s.withdraw(m.Session, row.N)
	}
	s.log.add(row)
}

// maxUnanswered bounds the requests that are known to be unanswered.
const maxUnanswered = 1000

// maxName bounds the names in a row, which an agent chooses.
const maxName = 300

// rowRaw is the number of bytes of a line that a page gets without asking.
const rowRaw = 4 << 10

// setText sets the text of a row, of which it has at most limit bytes.
func setText(row *rowEvent, line []byte, limit int) {
	row.Size = len(line)
	row.Bytes = !utf8.Valid(line)
	if row.Cut = len(line) > limit; row.Cut {
		if line = line[:limit]; !row.Bytes {
			line = bytes.ToValidUTF8(line, nil) // not in the middle of a character
		}
	}
	row.Raw = string(line)
}

// contentOf has the member to which the pointers of findings are relative.
var contentOf = map[conformance.Kind]string{
	conformance.Request: "/params", conformance.Notification: "/params", conformance.Response: "/result",
	conformance.ErrorReply: "/error",
}

// finding converts a finding, and counts it.
func (s *source) finding(f *conformance.Finding) findingInfo {
	switch f.Level {
	case conformance.Must, conformance.MustNot:
		s.findings.Must++
	case conformance.Should, conformance.ShouldNot:
		s.findings.Should++
	default:
		s.findings.Advice++
	}
	pointer := f.Pointer
	if pointer != "" && f.Definition != conformance.Envelope {
		pointer = contentOf[f.Kind] + pointer
	}
	info := findingInfo{
		Rule: f.Rule, Level: f.Level.String(), Side: f.Side.String(), Message: f.Message, Pointer: pointer,
		Definition: f.Definition,
		Evidence:   []evidenceInfo{},
	}
	for _, e := range f.Evidence {
		info.Evidence = append(info.Evidence, evidenceInfo{N: s.lines.Of(e.Number), Why: e.Why, Excerpt: e.Excerpt})
	}
	return info
}

// finish ends the connection. The end of a recording that was cut off proves nothing.
func (s *source) finish() {
	if !s.open {
		return
	}
	s.open = false
	clear(s.questions)
	if !s.cut {
		for _, f := range s.judge.End() {
			s.log.add(&lateEvent{Is: "late", Source: s.id, N: s.lines.Of(f.Number), Finding: s.finding(&f)})
		}
	}
	// A recording that is read may have more connections than the system allows open files. To an agent that is talked to,
	// something may still be sent.
	if s.kind != "agent" {
		if err := s.spool.Close(); err != nil && s.err == nil {
			s.err = err
		}
	}
	s.log.touch()
}

// end ends a source whose recording has no end.
func (s *source) end(cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = s.cut || cut
	s.finish()
}

// flush adds what has changed in the conversations to the log.
func (s *source) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conversations.changes(s.id, func(e *itemEvent) { s.log.add(e) })
}

// state returns the state as JSON.
func (s *source) state() (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := sourceState{
		Source: s.id, Open: s.open, Rows: len(s.offsets), Messages: s.lines.Count(), Findings: s.findings,
		Unanswered: slices.Sorted(maps.Keys(s.unanswered)),
		Version:    s.judge.Version(), Sides: s.capabilities.state(), Stats: s.stats.Document(),
	}
	state.Questions = s.questionInfos()
	if s.answering != nil {
		state.Answers = s.answering()
	}
	return json.Marshal(state)
}

var errNoRow = errors.New("there is no such row")

// line returns the exact line of a row.
func (s *source) line(n int) ([]byte, error) {
	s.mu.Lock()
	if n < 1 || n > len(s.offsets) || s.offsets[n-1] < 0 {
		s.mu.Unlock()
		return nil, errNoRow
	}
	from, to := s.offsets[n-1], s.size
	for _, next := range s.offsets[n:] {
		if next >= 0 {
			to = next
			break
		}
	}
	s.mu.Unlock()
	text := make([]byte, to-from)
	if err := s.reading(func(all *io.SectionReader) error {
		_, err := all.ReadAt(text, from)
		return err
	}); err != nil {
		return nil, err
	}
	return spooled(text)
}

// spooled returns what a line of the recording has recorded.
func spooled(text []byte) ([]byte, error) {
	var entry struct {
		Raw, Bytes          *string
		Stderr, StderrBytes *string
	}
	if err := json.Unmarshal(text, &entry); err != nil {
		return nil, err
	}
	for _, plain := range []*string{entry.Raw, entry.Stderr} {
		if plain != nil {
			return []byte(*plain), nil
		}
	}
	for _, encoded := range []*string{entry.Bytes, entry.StderrBytes} {
		if encoded != nil {
			return base64.StdEncoding.DecodeString(*encoded)
		}
	}
	return nil, errNoRow
}

// reading reads the recording as far as it has been written.
func (s *source) reading(read func(*io.SectionReader) error) error {
	s.mu.Lock()
	size := s.size
	s.mu.Unlock()
	file, err := os.Open(s.path)
	if err != nil {
		return err
	}
	return errors.Join(read(io.NewSectionReader(file, 0, size)), file.Close())
}

// endText describes the end of a connection.
func endText(end *recording.End) string {
	text := "the connection has ended"
	if end == nil {
		return text
	}
	if end.Closed != 0 {
		text = "the " + end.Closed.String() + " has ended the connection"
	}
	switch {
	case end.Signal != "":
		text += "; the agent was ended by " + end.Signal
	case end.Code != nil:
		text += fmt.Sprintf("; the agent's exit status is %d", *end.Code)
	}
	return text
}
