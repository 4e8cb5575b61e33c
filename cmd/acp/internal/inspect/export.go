package inspect

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"io"
	"strconv"
	"strings"

	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/conformance/report"
)

// export is a file that a page can download.
type export struct {
	file, contentType string
	write             func(in *Inspection, s *source, n int, w io.Writer) error
}

var exports = map[string]export{
	"recording": {"recording.jsonl", "application/jsonl", func(_ *Inspection, s *source, _ int, w io.Writer) error {
		_, err := io.Copy(w, s.recording())
		return err
	}},
	"junit":    {"acp.xml", "application/xml", reportAs(report.JUnit)},
	"markdown": {"acp.md", "text/markdown; charset=utf-8", reportAs(report.Markdown)},
	"gotest":   {"acp_finding_test.go", "text/plain; charset=utf-8", writeGoTest},
	"script":   {"acp-finding.sh", "text/x-shellscript; charset=utf-8", writeScript},
	"html": {"acp-report.html", "text/html; charset=utf-8", func(in *Inspection, s *source, _ int, w io.Writer) error {
		return in.writeReport(w, s)
	}},
}

// reportAs returns a function that writes the findings.
func reportAs(format report.Format) func(*Inspection, *source, int, io.Writer) error {
	return func(in *Inspection, s *source, _ int, w io.Writer) error {
		r, err := report.New(report.Options{Version: in.options.Version, Level: conformance.Advice})
		if err != nil {
			return err
		}
		if err := r.Source(s.name).Check(s.recording(), nil); err != nil {
			return err
		}
		return r.Write(w, format)
	}
}

// proven is what an exported test is about.
type proven struct {
	rule    string
	level   conformance.Level
	message string
	command []string
	text    []byte // the recording
}

// maxTest bounds the recording in a test.
const maxTest = 4 << 20

// prove finds the finding of a row that a test shall be about: the most severe one of the agent. n is 0 for any row.
func (s *source) prove(n int) (*proven, error) {
	text, err := io.ReadAll(s.recording())
	if err != nil {
		return nil, err
	}
	if len(text) > maxTest {
		return nil, fmt.Errorf("the recording is too long for a test: %d bytes, at most %d", len(text), maxTest)
	}
	p := &proven{text: text}
	var best *conformance.Finding
	judge := conformance.NewJudge(nil, nil)
	var lines recording.Lines
	take := func(found []conformance.Finding) {
		for _, f := range found {
			if (n == 0 || lines.Of(f.Number) == n) && f.Side == conformance.Agent && f.Rule != "" &&
				(best == nil || f.Level < best.Level) {
				best = &f
			}
		}
	}
	var rows []int // by the lines of the recording, without its header
	s.mu.Lock()
	for i, at := range s.offsets {
		if at >= 0 {
			rows = append(rows, i+1)
		}
	}
	s.mu.Unlock()
	r := recording.NewReader(bytes.NewReader(text), nil)
	cut := false
	for {
		e, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		cut = cut || errors.Is(e.Err, recording.ErrTruncated) || errors.Is(e.Err, recording.ErrNoEnd)
		switch e.Kind {
		case recording.KindHeader:
			p.command = e.Header.Command
		case recording.KindMessage:
			lines.Add(rows[e.Number-2])
			take(judge.Message(e.Message()))
		case recording.KindEnd:
			if e.End != nil && e.End.Closed != 0 {
				judge.Closed(e.End.Closed)
			}
		}
	}
	if !cut {
		take(judge.End())
	}
	if best == nil {
		return nil, errors.New("the agent has broken no requirement here, so there is nothing to test")
	}
	if s.kind == "file" {
		p.command = nil // a file of others must not choose what is run
	}
	p.rule, p.level, p.message = best.Rule, best.Level, best.String()
	return p, nil
}

// comment returns a text on one line that cannot end a comment.
func comment(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, text)), " ")
}

// writeGoTest writes a Go test that fails while the agent breaks the requirement.
func writeGoTest(_ *Inspection, s *source, n int, w io.Writer) error {
	p, err := s.prove(n)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `package acp_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/conformance/transcript"
)

// TestFinding plays the client of a recorded connection, and fails while the agent breaks %[1]s:
//
//	%[2]s
//
// The agent is the command in $ACP_AGENT, whose words are separated by spaces, or else the one that was recorded.
func TestFinding(t *testing.T) {
	command := %#[3]v
	if words := strings.Fields(os.Getenv("ACP_AGENT")); len(words) > 0 {
		command = words
	}
	if len(command) == 0 {
		t.Fatal("expected the agent's command in $ACP_AGENT")
	}
	recorded, err := transcript.ReadRecorded("recording", recording.NewReader(strings.NewReader(recordedLines), nil), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	agent := exec.Command(command[0], command[1:]...)
	tapped := conformance.Tap(t, conformance.Client, rpc.Command(agent), &conformance.TapOptions{
		Schema: conformance.%[4]s,
		Level:  conformance.%[5]s,
		Ignore: func(f conformance.Finding) bool { return f.Rule != %[1]q },
	})
	result, err := recorded.Replay(t.Context(), conformance.Client, tapped, &transcript.ReplayOptions{Silence: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if result.Met == 0 {
		t.Error("the agent sent nothing that was recorded")
	}
}

// recordedLines is the recording.
const recordedLines = ""`, p.rule, comment(p.message), append([]string{}, p.command...), "Negotiated(conformance.V1Unstable(), conformance.V2Unstable())", levelNames[p.level])
	for line := range bytes.Lines(p.text) {
		fmt.Fprintf(&b, " +\n\t%s", strconv.Quote(string(line)))
	}
	b.WriteByte('\n')
	text, err := format.Source(b.Bytes())
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// levelNames are the names of the levels in package conformance.
var levelNames = map[conformance.Level]string{
	conformance.Must: "Must", conformance.MustNot: "MustNot", conformance.Should: "Should",
	conformance.ShouldNot: "ShouldNot", conformance.Advice: "Advice",
}

// checkLevels are the levels of acp check.
var checkLevels = map[conformance.Level]string{
	conformance.Must: "must", conformance.MustNot: "must", conformance.Should: "should", conformance.ShouldNot: "should",
	conformance.Advice: "advice",
}

// writeScript writes a shell script that fails while the agent breaks the requirement. No line of a recording is the
// end of the document: each is an object.
func writeScript(_ *Inspection, s *source, n int, w io.Writer) error {
	p, err := s.prove(n)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, `#!/bin/sh
# Plays the client of a recorded connection to an agent, and fails while the agent breaks %s:
#
#   %s
#
# Usage: sh acp-finding.sh [AGENT [ARG...]]
# It needs the program acp in the PATH, or in $ACP.
`, p.rule, comment(p.message))
	if len(p.command) > 0 {
		fmt.Fprintf(out, "[ $# -gt 0 ] || set -- %s\n", launch.New(p.command[0], p.command[1:]...).String())
	}
	fmt.Fprintf(out, `[ $# -gt 0 ] || { echo "expected the agent's command" >&2; exit 2; }
acp=${ACP:-acp}
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
cat >"$dir/recorded.jsonl" <<'END OF THE RECORDING'
%sEND OF THE RECORDING
# What else differs from the recording does not matter.
"$acp" replay --as client "$dir/recorded.jsonl" -- "$acp" record -o "$dir/now.jsonl" -- "$@"
[ -s "$dir/now.jsonl" ] || exit 2
"$acp" check --only %s --side agent --level %s "$dir/now.jsonl"
`, p.text, p.rule, checkLevels[p.level])
	return out.Flush()
}

// maxFound bounds the rows that a search returns.
const maxFound = 1000

// search finds the rows whose line contains a text, without regard to case.
func (in *Inspection) search(ctx context.Context, text string) (*found, error) {
	result := &found{Rows: []foundRow{}}
	if text == "" {
		return result, nil
	}
	wanted := bytes.ToLower([]byte(text))
	for _, s := range in.all() {
		s.mu.Lock()
		offsets := s.offsets[:len(s.offsets):len(s.offsets)]
		s.mu.Unlock()
		lines := bufio.NewReaderSize(s.recording(), 1<<20)
		at := int64(0)
		n := 0
		for ctx.Err() == nil {
			line, err := lines.ReadBytes('\n')
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, err
			}
			for n < len(offsets) && offsets[n] < at {
				n++
			}
			if n < len(offsets) && offsets[n] == at {
				if raw, err := spooled(line); err == nil && bytes.Contains(bytes.ToLower(raw), wanted) {
					if len(result.Rows) == maxFound {
						result.More = true
						return result, nil
					}
					result.Rows = append(result.Rows, foundRow{s.id, n + 1})
				}
			}
			at += int64(len(line))
		}
	}
	return result, ctx.Err()
}

// asCommand returns a command of acp that sends or shows the message of a row.
func (in *Inspection) asCommand(s *source, n int) (string, error) {
	line, err := s.line(n)
	if err != nil {
		return "", err
	}
	var m struct {
		Method string
		Params struct {
			Prompt []struct{ Type, Text string }
		}
	}
	method := ""
	if json.Unmarshal(line, &m) == nil {
		method = m.Method
	}
	var agent []string
	if a := in.options.Agent; a != nil {
		agent = a.Words
	}
	if method == "session/prompt" && len(agent) > 0 {
		var texts []string
		for _, block := range m.Params.Prompt {
			texts = append(texts, cmp.Or(block.Text, "["+block.Type+"]"))
		}
		return launch.New("acp", append([]string{"exec", strings.Join(texts, "\n"), "--"}, agent...)...).String(), nil
	}
	file := "recording.jsonl"
	if s.kind == "file" {
		file = s.name
	}
	words := []string{"show", "--full"}
	if method != "" {
		words = append(words, "--method", method)
	}
	return launch.New("acp", append(words, file)...).String(), nil
}
