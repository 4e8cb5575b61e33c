package inspect

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/acpgo/sdk/cmd/acp/internal/inspect/page"
)

// WriteReport writes all sources as one page that needs no server.
func (in *Inspection) WriteReport(w io.Writer) error { return in.writeReport(w, in.all()...) }

// reportRaw is the number of bytes of a line in a report, which has no server to ask for the rest of a line.
const reportRaw = 1 << 20

func (in *Inspection) writeReport(w io.Writer, sources ...*source) error {
	html, err := page.Files.ReadFile("dist/index.html")
	if err != nil {
		return err
	}
	style, err := page.Files.ReadFile("dist/app.css")
	if err != nil {
		return err
	}
	script, err := page.Files.ReadFile("dist/app.js")
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(html, []byte(styleElement))
	between, after, ok2 := bytes.Cut(rest, []byte(scriptElement))
	if !ok || !ok2 || bytes.Contains(bytes.ToLower(script), []byte("</script")) ||
		bytes.Contains(bytes.ToLower(script), []byte("<!--")) || bytes.Contains(bytes.ToLower(style), []byte("</style")) {
		return errors.New("the page cannot be made a report")
	}
	hash := func(text []byte) string {
		sum := sha256.Sum256(text)
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	out := bufio.NewWriterSize(w, 1<<20)
	out.Write(before)
	fmt.Fprintf(out, `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src %s; style-src %s; img-src data: blob:; base-uri 'none'; form-action 'none'">`+"\n",
		hash(script), hash(style))
	fmt.Fprintf(out, "<style>%s</style>", style)
	out.Write(between)
	out.WriteString(`<script type="application/json" id="report">`)
	if err := in.writeReportData(out, sources); err != nil {
		return err
	}
	fmt.Fprintf(out, "</script>\n<script>%s</script>", script)
	out.Write(after)
	return out.Flush() // the first error of all writes
}

// The elements of the page that a report replaces.
const (
	styleElement  = `<link rel="stylesheet" href="/app.css">`
	scriptElement = `<script src="/app.js"></script>`
)

// writeReportData writes the JSON of a report: hello, the schemas in use, the events and the state. It contains no "<",
// which encoding/json escapes.
func (in *Inspection) writeReportData(out *bufio.Writer, sources []*source) error {
	wanted := map[string]bool{}
	used := map[string]json.RawMessage{}
	var states []json.RawMessage
	for _, s := range sources {
		s.flush()
		wanted[s.id] = true
		state, err := s.state()
		if err != nil {
			return err
		}
		states = append(states, state)
		s.mu.Lock()
		version := max(s.judge.Version(), 1)
		s.mu.Unlock()
		if schema, ok := schemaFor(version); ok {
			used[fmt.Sprint(version)] = json.RawMessage(schema)
		}
	}
	hello := in.hello()
	hello.Limits.Raw = reportRaw
	hello.Live, hello.Agent, hello.Folder = false, []string{}, ""
	part := func(before string, value any) error {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		out.WriteString(before)
		_, err = out.Write(text)
		return err
	}
	if err := errors.Join(part(`{"hello":`, hello), part(`,"schemas":`, used), part(`,"state":`, struct {
		Is      string            `json:"is"`
		Sources []json.RawMessage `json:"sources"`
	}{"state", states})); err != nil {
		return err
	}
	out.WriteString(`,"events":[`)
	separator := ""
	for at, end := int64(0), false; !end; {
		var events []json.RawMessage
		var err error
		if events, at, end, err = in.log.read(at, batchSize); err != nil {
			return err
		}
		for _, event := range events {
			var of struct {
				Source string `json:"source"`
				Cut    bool   `json:"cut"`
			}
			if err := json.Unmarshal(event, &of); err != nil {
				return err
			}
			if !wanted[of.Source] {
				continue
			}
			if of.Cut {
				if event, err = in.find(of.Source).longer(event); err != nil {
					return err
				}
			}
			if err := part(separator, event); err != nil {
				return err
			}
			separator = ","
		}
	}
	_, err := out.WriteString("]}")
	return err
}

// longer returns a row with more of its line.
func (s *source) longer(event json.RawMessage) (json.RawMessage, error) {
	row := &rowEvent{}
	if err := json.Unmarshal(event, row); err != nil {
		return nil, err
	}
	line, err := s.line(row.N)
	if err != nil {
		return nil, err
	}
	setText(row, line, reportRaw)
	return json.Marshal(row)
}
