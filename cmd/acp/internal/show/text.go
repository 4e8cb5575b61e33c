package show

import (
	"bufio"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/report"
	"github.com/acpgo/sdk/internal/plain"
)

// Printer prints what Read reads. Its methods are functions for Options.
type Printer interface {
	Message(m *Message, findings []conformance.Finding) error
	// Finding prints a finding about an earlier message that appears at the end of the connection.
	Finding(line int, f conformance.Finding) error
	End() error
}

// Text prints a line for each message.
type Text struct {
	w     *bufio.Writer
	paint func(color, text string) string
	full  bool
	last  time.Duration // of the last printed message
}

// The escape sequences for colours.
const (
	red   = "\x1b[31m"
	green = "\x1b[32m"
	blue  = "\x1b[34m"
	bold  = "\x1b[1m"
	dim   = "\x1b[2m"
	reset = "\x1b[0m"
)

// NewText returns a printer for people. If full is set, it prints payloads unchanged.
func NewText(w io.Writer, colors, full bool) *Text {
	t := &Text{w: bufio.NewWriter(w), full: full, paint: func(_, text string) string { return text }}
	if colors {
		t.paint = func(color, text string) string { return color + text + reset }
	}
	return t
}

// maxLine is how many characters of a payload are printed.
const maxLine = 160

// gap is the length of a pause between messages that is marked.
const gap = 2 * time.Second

// Message prints a message and, below it, its findings.
func (t *Text) Message(m *Message, findings []conformance.Finding) error {
	t.head(m, m.title())
	if payload := m.payload(t.full); payload != "" {
		fmt.Fprintf(t.w, "  %s", plain.Line(payload))
	}
	fmt.Fprintln(t.w)
	for _, f := range findings {
		t.finding(f)
	}
	return t.w.Flush()
}

// head prints the beginning of a line: the message's line, time and sender, its title, and how long it took. Before
// that, it marks a long pause.
func (t *Text) head(m *Message, title string) {
	since := "-"
	if m.Timed {
		since = seconds(m.Since)
		if pause := m.Since - t.last; pause >= gap {
			fmt.Fprintf(t.w, "%16s %s\n", "", t.paint(dim, "… "+delay(pause)+" later"))
		}
		t.last = m.Since
	}
	arrow, color := "->", blue
	if m.Direction == conformance.ToClient {
		arrow, color = "<-", green
	}
	fmt.Fprintf(t.w, "%5d %9s  %s %s", m.Line, since, t.paint(color, arrow), t.paint(bold, plain.Line(title)))
	if m.Delayed {
		fmt.Fprintf(t.w, " %s", t.paint(dim, "after "+delay(m.Delay)))
	}
}

// Finding prints a finding with the line of the message concerned.
func (t *Text) Finding(line int, f conformance.Finding) error {
	fmt.Fprintf(t.w, "%5d  at the end:\n", line)
	t.finding(f)
	return t.w.Flush()
}

func (t *Text) finding(f conformance.Finding) {
	fmt.Fprintf(t.w, "%17s %s\n", "", t.paint(red, plain.Line("! "+f.String())))
}

// End flushes the output.
func (t *Text) End() error { return t.w.Flush() }

// title returns the title of a message: its method, its id, what it responds to, and the session.
func (m *Message) title() string {
	var parts []string
	switch m.Kind {
	case conformance.Request:
		parts = append(parts, m.Method, "#"+clip(m.ID, maxString))
	case conformance.Notification:
		parts = append(parts, m.Method)
	case conformance.Response, conformance.ErrorReply:
		method := cmp.Or(m.Method, "(no matching request)")
		word := "result"
		if m.Kind == conformance.ErrorReply {
			word = "ERROR"
		}
		parts = append(parts, method, word, "#"+clip(m.ID, maxString))
	default:
		return "(no message)"
	}
	if m.Update != "" {
		parts = append(parts, clip(m.Update, maxString))
	}
	if m.Session != "" {
		parts = append(parts, "["+clip(m.Session, 12)+"]")
	}
	if m.Option != nil {
		parts = append(parts, m.Option.text())
	}
	return strings.Join(parts, " ")
}

// text describes the option: what it does, and its name.
func (o *Option) text() string {
	return clip(strings.ReplaceAll(o.Kind, "_", " "), maxString) + ": " + clip(o.Name, maxString)
}

// payload returns the content on one line.
func (m *Message) payload(full bool) string {
	switch {
	case m.Kind == "":
		return clip(string(m.Text[:min(len(m.Text), 4*maxLine)]), maxLine)
	case full:
		return string(m.Content)
	case m.Update != "":
		var params struct {
			Update json.RawMessage `json:"update"`
		}
		if json.Unmarshal(m.Content, &params) == nil {
			return m.cut(Fold(params.Update, "sessionUpdate"))
		}
	}
	return m.cut(Fold(m.Content, "sessionId"))
}

// cut shortens a payload.
func (m *Message) cut(text string) string {
	if short := clip(text, maxLine); short != text {
		return fmt.Sprintf("%s… (%d bytes)", short, len(m.Content))
	}
	return text
}

// seconds formats a time since the beginning, "12.345".
func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// delay formats a delay for people: "12ms", "1.25s".
func delay(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

// JSON prints an array with an element for each message.
type JSON struct {
	w     *bufio.Writer
	count int
}

// NewJSON returns a printer for programs.
func NewJSON(w io.Writer) *JSON { return &JSON{w: bufio.NewWriter(w)} }

// jsonMessage is an element of the array: a message, or a finding at the end.
type jsonMessage struct {
	Line       int             `json:"line"`
	Connection int             `json:"connection,omitempty"`
	Number     int             `json:"number,omitempty"`
	Ms         *float64        `json:"ms,omitempty"` // since the first message
	From       string          `json:"from,omitempty"`
	Kind       string          `json:"kind,omitempty"`
	Method     string          `json:"method,omitempty"`
	ID         json.RawMessage `json:"id,omitempty"`
	Session    string          `json:"session,omitempty"`
	Update     string          `json:"update,omitempty"`
	DelayMs    *float64        `json:"delayMs,omitempty"`
	Bytes      int             `json:"bytes,omitempty"`
	Message    json.RawMessage `json:"message,omitempty"`
	Raw        *string         `json:"raw,omitempty"`    // instead of message, for a line that is not JSON
	Base64     string          `json:"base64,omitempty"` // instead of raw, for a line that is not UTF-8
	Findings   []jsonFinding   `json:"findings,omitempty"`
}

type jsonFinding struct {
	Rule    string `json:"rule"`
	Level   string `json:"level"`
	Pointer string `json:"pointer,omitempty"`
	Message string `json:"message"`
}

// Message prints a message.
func (j *JSON) Message(m *Message, findings []conformance.Finding) error {
	out := jsonMessage{
		Line: m.Line, Connection: m.Connection, Number: m.Number, From: m.Direction.Sender().String(), Kind: string(m.Kind),
		Method: m.Method,
		ID:     json.RawMessage(m.ID), Session: m.Session, Update: m.Update, Bytes: len(m.Text),
		Findings: findingsJSON(findings),
	}
	if m.Timed {
		out.Ms = milliseconds(m.Since)
	}
	if m.Delayed {
		out.DelayMs = milliseconds(m.Delay)
	}
	switch {
	case json.Valid(m.Text):
		out.Message = m.Text
	case utf8.Valid(m.Text):
		text := string(m.Text)
		out.Raw = &text
	default:
		out.Base64 = base64.StdEncoding.EncodeToString(m.Text)
	}
	return j.write(out)
}

// Finding prints an element with a finding and the line of the message concerned.
func (j *JSON) Finding(line int, f conformance.Finding) error {
	return j.write(jsonMessage{Line: line, Findings: findingsJSON([]conformance.Finding{f})})
}

// End ends the array.
func (j *JSON) End() error {
	if j.count == 0 {
		fmt.Fprint(j.w, "[")
	}
	fmt.Fprintln(j.w, "\n]")
	return j.w.Flush()
}

func (j *JSON) write(m jsonMessage) error {
	separator := ",\n"
	if j.count == 0 {
		separator = "[\n"
	}
	j.count++
	fmt.Fprint(j.w, separator)
	return report.WriteJSONLine(j.w, m)
}

func findingsJSON(findings []conformance.Finding) []jsonFinding {
	var out []jsonFinding
	for _, f := range findings {
		out = append(out, jsonFinding{f.Rule, f.Level.String(), f.Pointer, f.Message})
	}
	return out
}

func milliseconds(d time.Duration) *float64 {
	ms := float64(d.Microseconds()) / 1000
	return &ms
}
