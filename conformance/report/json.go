package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/acpgo/sdk"
	"github.com/acpgo/sdk/conformance"
)

// The members of the document, in order.
type (
	jsonReport struct {
		Tool     string              `json:"tool"`
		Version  string              `json:"version,omitempty"`
		Schema   string              `json:"schema"` // the release of the schemas
		Conforms bool                `json:"conforms"`
		Readable bool                `json:"readable"`
		Level    string              `json:"level"`
		Sources  []jsonSource        `json:"sources"`
		Rules    []jsonGroup         `json:"rules"` // the broken ones, the most severe first
		Findings []jsonFinding       `json:"findings"`
		Milder   int                 `json:"milder"` // findings below the level
		Others   int                 `json:"others"` // findings about the side that is not judged
		Stale    []jsonAcceptedEntry `json:"stale"`
	}
	jsonSource struct {
		Name         string    `json:"name"`
		Connections  int       `json:"connections"`
		Messages     int       `json:"messages"`
		Versions     []int     `json:"versions"`
		Findings     int       `json:"findings"`
		Problems     []Problem `json:"problems"`
		MoreProblems int       `json:"moreProblems,omitempty"`
		Notes        []Problem `json:"notes,omitempty"`
	}
	jsonGroup struct {
		ID       string `json:"id"`
		Level    string `json:"level"` // the most severe of its findings
		Side     string `json:"side"`
		Page     string `json:"page"`
		Text     string `json:"text"`
		Count    int    `json:"count"`
		Accepted int    `json:"accepted"`
		Shown    int    `json:"shown"` // of both, in findings
	}
	jsonFinding struct {
		Rule       string         `json:"rule"`
		Level      string         `json:"level"`
		Source     string         `json:"source"`
		Line       int            `json:"line,omitempty"`
		Number     int            `json:"number,omitempty"`
		Side       string         `json:"side,omitempty"` // the side at fault
		From       string         `json:"from,omitempty"`
		Kind       string         `json:"kind,omitempty"`
		Method     string         `json:"method,omitempty"`
		ID         string         `json:"id,omitempty"`
		Pointer    string         `json:"pointer,omitempty"`
		Message    string         `json:"message"`
		Definition string         `json:"definition,omitempty"`
		Excerpt    string         `json:"excerpt,omitempty"`
		Evidence   []jsonEvidence `json:"evidence,omitempty"`
		Accepted   string         `json:"accepted,omitempty"`
	}
	jsonEvidence struct {
		Line    int    `json:"line,omitempty"`
		Number  int    `json:"number"`
		From    string `json:"from,omitempty"`
		Kind    string `json:"kind,omitempty"`
		Method  string `json:"method,omitempty"`
		ID      string `json:"id,omitempty"`
		Why     string `json:"why"`
		Excerpt string `json:"excerpt,omitempty"`
	}
	jsonAcceptedEntry struct {
		File   string `json:"file"`
		Line   int    `json:"line"`
		Entry  string `json:"entry"`
		Reason string `json:"reason"`
	}
)

func (r *Report) writeJSON(w io.Writer) error {
	doc := jsonReport{
		Tool: r.options.Tool, Version: r.options.Version, Schema: sdk.SchemaVersion,
		Conforms: r.Findings() == 0, Readable: r.Readable(), Level: r.options.Level.String(),
		Sources: []jsonSource{}, Rules: []jsonGroup{}, Findings: []jsonFinding{}, Milder: r.hidden, Others: r.others,
		Stale: []jsonAcceptedEntry{},
	}
	for _, s := range r.sources {
		doc.Sources = append(doc.Sources, jsonSource{s.Name, s.Connections, s.Messages, append([]int{}, s.Versions...),
			s.findings, append([]Problem{}, s.Problems...), s.MoreProblems, s.Notes})
	}
	for _, g := range r.sortedGroups() {
		doc.Rules = append(doc.Rules, jsonGroup{
			g.rule.ID, g.level().String(), SideName(g.rule.Side), g.rule.Page, g.rule.Text, g.count, g.accepted,
			len(g.kept),
		})
		for _, e := range g.kept {
			doc.Findings = append(doc.Findings, e.json())
		}
	}
	for _, e := range r.options.Accepted.Stale() {
		doc.Stale = append(doc.Stale, jsonAcceptedEntry{e.File, e.Line, e.String(), e.Reason})
	}
	return WriteJSON(w, doc)
}

func (e *Entry) json() jsonFinding {
	f := jsonFinding{
		Rule: e.Rule, Level: e.Level.String(), Source: e.Source.Name, Line: e.Line, Number: e.Number,
		Side: side(e.Side), From: senderName(e.Direction), Kind: string(e.Kind), Method: e.Method, ID: e.ID,
		Pointer: e.Pointer,
		Message: e.Message, Definition: e.Definition, Excerpt: e.Excerpt, Accepted: e.Accepted,
	}
	for i, evidence := range e.Evidence {
		line := 0
		if i < len(e.Lines) {
			line = e.Lines[i]
		}
		f.Evidence = append(f.Evidence, jsonEvidence{
			line, evidence.Number, senderName(evidence.Direction), string(evidence.Kind), evidence.Method, evidence.ID,
			evidence.Why, evidence.Excerpt,
		})
	}
	return f
}

// senderName returns the sender's name as in recordings.
func senderName(d conformance.Direction) string {
	if d == 0 {
		return ""
	}
	return d.Sender().String()
}

// side returns the name of a side, or "".
func side(s conformance.Side) string {
	if s == 0 {
		return ""
	}
	return s.String()
}

// SideName returns "client", "agent" or "both".
func SideName(s conformance.Side) string {
	if s == 0 {
		return "both"
	}
	return s.String()
}

// WriteJSON writes a value as an indented JSON document. It escapes all invisible characters, and one character of
// "##", with which commands to CI servers begin, so that the document can be shown in a terminal and in the log of a
// workflow.
func WriteJSON(w io.Writer, value any) error { return writeJSON(w, value, "  ") }

// WriteJSONLine is like WriteJSON, but writes the value on one line, without a newline at the end.
func WriteJSONLine(w io.Writer, value any) error { return writeJSON(w, value, "") }

func writeJSON(w io.Writer, value any, indent string) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	text := b.Bytes()
	if indent == "" {
		text = bytes.TrimSuffix(text, []byte("\n"))
	}
	_, err := w.Write(escape(text))
	return err
}

// escape escapes invisible characters and the beginnings of commands. In JSON, both occur only in strings.
func escape(text []byte) []byte {
	hidden := func(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) }
	if !bytes.ContainsFunc(text, hidden) && !bytes.Contains(text, []byte("##")) {
		return text
	}
	var b bytes.Buffer
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == '#' && bytes.HasPrefix(text, []byte("##")):
			b.WriteString(`\u0023`)
		case !hidden(r):
			b.Write(text[:size])
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[size:]
	}
	return b.Bytes()
}
