// Package show reads a recording for people: the messages, their order, and how long responses took. Of past messages
// it keeps only what joins responses to their requests.
package show

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/conformance/report"
)

// Message is one message of a recording.
type Message struct {
	Line       int // in the file
	Connection int
	Number     int // on its connection
	Direction  conformance.Direction
	// Since is the time since the first message of the recording, and Timed says whether it is known.
	Since time.Duration
	Timed bool
	Kind  conformance.Kind // empty if the line is not a message
	// Method is the method of the request or notification; for a response, that of its request.
	Method string
	ID     string // JSON text
	// Session is the session that the message names, or else the request of a response, or else the session that the
	// response created.
	Session string
	Update  string // the kind of a session/update
	Item    string // the id of the message or tool call that a session/update is about
	// Re is the Number of the request that this response answers, or 0 if that is not known.
	Re int
	// Delay is the time from the request to this response, and Delayed says whether it is known.
	Delay   time.Duration
	Delayed bool
	// Option is the option that a response to session/request_permission has chosen from those of the request; nil if
	// that is not known.
	Option  *Option
	Text    []byte          // the line, valid until the next Message
	Content json.RawMessage // the params, result or error; a part of Text
	// Findings are the judge's findings about the message.
	Findings []conformance.Finding

	decoded content
}

// Option is an option of a permission request.
type Option struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// Options configure Read.
type Options struct {
	// Judge says whether to judge the messages.
	Judge  bool
	Reader *recording.ReaderOptions
	// OnMessage is called for each message. OnFinding is called for findings that appear only at the end of a
	// connection, with the line of the message concerned, 0 if that is not known. OnProblem is called for each line
	// that could not be read.
	OnMessage func(*Message) error
	OnFinding func(line int, f conformance.Finding) error
	OnProblem func(line int, text string, usable bool) error
}

// Read reads a recording to its end.
func Read(in io.Reader, options *Options) error {
	r := recording.NewReader(in, options.Reader)
	s := state{options: options}
	for {
		e, err := r.Read()
		if err == io.EOF {
			return s.finish()
		}
		if errors.Is(err, report.ErrStopped) {
			return nil
		}
		if err != nil {
			s.cut = true
			return s.problem(err, false)
		}
		if e.Err != nil {
			if errors.Is(e.Err, recording.ErrNoEnd) || errors.Is(e.Err, recording.ErrTruncated) {
				s.cut = true
			}
			if err := s.problem(e.Err, e.Kind != recording.KindNone); err != nil {
				return err
			}
		}
		if e.Kind == recording.KindEnd && s.judge != nil && e.End != nil && e.End.Closed != 0 {
			s.judge.Closed(e.End.Closed)
		}
		if e.Kind == recording.KindMessage {
			if err := s.message(e); err != nil {
				return err
			}
		}
	}
}

// state is what is remembered about the recording.
type state struct {
	options    *Options
	connection int
	first      time.Time
	joiner     *Joiner
	judge      *conformance.Judge
	lines      recording.Lines
	cut        bool
	reused     Message
}

// Joiner joins the responses of one connection with their requests.
type Joiner struct{ open map[key]request }

// NewJoiner returns a Joiner for a new connection.
func NewJoiner() *Joiner { return &Joiner{map[key]request{}} }

// key identifies an unanswered request: its sender and id.
type key struct {
	asked conformance.Direction
	id    string
}

// request is what is needed for its response.
type request struct {
	number          int
	method, session string
	at              time.Time
	options         []Option
}

// maxOpen is the maximum number of requests that are remembered, and maxOptions that of the options of one. Later
// requests are not joined with their responses.
const (
	maxOpen    = 1 << 16
	maxOptions = 20
)

func (s *state) problem(err error, usable bool) error {
	line, text := 0, err.Error()
	if e, ok := errors.AsType[*recording.Error](err); ok {
		line, text = e.Number, e.Text()
	}
	return s.options.OnProblem(line, text, usable)
}

// begin begins a connection.
func (s *state) begin(e *recording.Entry) error {
	if err := s.finish(); err != nil {
		return err
	}
	*s = state{options: s.options, connection: e.Connection, first: e.Time, joiner: NewJoiner()}
	if s.options.Judge {
		s.judge = conformance.NewJudge(nil, nil)
	}
	return nil
}

// finish ends a connection. The end of a recording that was cut off shows nothing.
func (s *state) finish() error {
	if s.judge == nil || s.cut {
		return nil
	}
	for _, f := range s.judge.End() {
		if err := s.options.OnFinding(s.lines.Of(f.Number), f); err != nil {
			return err
		}
	}
	return nil
}

// envelope has the members of JSON-RPC.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// content has the members of params and results that are shown separately or counted.
type content struct {
	SessionID string `json:"sessionId"`
	Update    *struct {
		Kind string   `json:"sessionUpdate"`
		ID   string   `json:"messageId"`
		Call string   `json:"toolCallId"`
		Used *float64 `json:"used"`
		Size *float64 `json:"size"`
		Cost *struct {
			Amount   float64 `json:"amount"`
			Currency string  `json:"currency"`
		} `json:"cost"`
	} `json:"update"`
	Usage   map[string]json.RawMessage `json:"usage"`
	Options []Option                   `json:"options"`
	Outcome struct {
		OptionID string `json:"optionId"`
	} `json:"outcome"`
}

func (s *state) message(e *recording.Entry) error {
	if e.Connection != s.connection {
		if err := s.begin(e); err != nil {
			return err
		}
	}
	s.lines.Add(e.Number)
	m := &s.reused
	*m = Message{Line: e.Number, Connection: e.Connection, Number: s.lines.Count(), Direction: e.Direction, Text: e.Line}
	if m.Timed = !e.Time.IsZero() && !s.first.IsZero(); m.Timed {
		m.Since = e.Time.Sub(s.first)
	}
	s.joiner.Join(m, e.Time)
	if s.judge != nil {
		m.Findings = s.judge.Message(e.Message())
	}
	return s.options.OnMessage(m)
}

// Join determines from the Text, Number and Direction of a message what the message is, and sets Kind, Content and the
// fields from Method to Option. The time is when it passed; zero if unknown.
func (j *Joiner) Join(m *Message, at time.Time) {
	var env envelope
	if json.Unmarshal(m.Text, &env) != nil || !bytes.HasPrefix(bytes.TrimSpace(m.Text), []byte("{")) {
		return
	}
	m.ID = string(env.ID)
	switch {
	case env.Method != nil:
		m.Kind, m.Method, m.Content = conformance.Notification, *env.Method, env.Params
		if env.ID != nil {
			m.Kind = conformance.Request
		}
	case env.Error != nil:
		m.Kind, m.Content = conformance.ErrorReply, env.Error
	case env.Result != nil:
		m.Kind, m.Content = conformance.Response, env.Result
	default:
		return
	}
	if bytes.HasPrefix(m.Content, []byte("{")) {
		// Members of other types stay empty; reporting them is not the business of this package.
		json.Unmarshal(m.Content, &m.decoded)
		m.Session = m.decoded.SessionID
		if m.Method == "session/update" && m.decoded.Update != nil {
			m.Update, m.Item = m.decoded.Update.Kind, cmp.Or(m.decoded.Update.Call, m.decoded.Update.ID)
		}
	}
	switch m.Kind {
	case conformance.Request:
		if len(j.open) < maxOpen {
			r := request{number: m.Number, method: strings.Clone(m.Method), session: strings.Clone(m.Session), at: at}
			if m.Method == "session/request_permission" && len(m.decoded.Options) <= maxOptions {
				r.options = m.decoded.Options
			}
			j.open[key{m.Direction, m.ID}] = r
		}
	case conformance.Response, conformance.ErrorReply:
		asked := key{conformance.ToAgent + conformance.ToClient - m.Direction, m.ID}
		if r, ok := j.open[asked]; ok {
			delete(j.open, asked)
			m.Method, m.Re, m.Session = r.method, r.number, cmp.Or(r.session, m.Session)
			if i := slices.IndexFunc(r.options, func(o Option) bool { return o.ID == m.decoded.Outcome.OptionID }); i >= 0 {
				m.Option = &r.options[i]
			}
			if m.Delayed = !at.IsZero() && !r.at.IsZero(); m.Delayed {
				m.Delay = max(0, at.Sub(r.at))
			}
		}
	}
}

// Filter chooses messages. Empty fields choose all.
type Filter struct {
	Session string // the beginning of the session's id
	Method  string // * matches any text without a slash
	Sender  conformance.Side
	// Findings chooses messages with findings of a requirement, or of "any".
	Findings string
}

// Match reports whether the filter chooses a message.
func (f *Filter) Match(m *Message) bool {
	if f.Session != "" && !strings.HasPrefix(m.Session, f.Session) || f.Sender != 0 && m.Direction.Sender() != f.Sender {
		return false
	}
	if f.Method != "" {
		if ok, err := path.Match(f.Method, m.Method); err != nil || !ok {
			return false
		}
	}
	return f.Findings == "" || len(f.Of(m.Findings)) > 0
}

// Of returns the findings that the filter chooses.
func (f *Filter) Of(findings []conformance.Finding) []conformance.Finding {
	if f.Findings == "" || f.Findings == "any" {
		return findings
	}
	var chosen []conformance.Finding
	for _, finding := range findings {
		if strings.EqualFold(finding.Rule, f.Findings) {
			chosen = append(chosen, finding)
		}
	}
	return chosen
}
