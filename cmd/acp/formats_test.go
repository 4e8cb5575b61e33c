package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// hostile is a recording with hostile content: escape sequences, characters that reverse the text, XML, Markdown,
// characters that XML cannot hold, and a line that is not UTF-8.
const hostile = header + request +
	`{"t":1,"from":"agent","raw":"a\u001b[2J\u202e\u0000\u009b\ufffe]]></failure><script>![x](http://h/) <img src=x> ` + "`" + `"}` + "\n" +
	`{"t":2,"from":"agent","raw":"{\"jsonrpc\":\"2.0\",\"method\":\"\u001b]0;x\u0007|</testcase>\\n@everyone\"}"}` + "\n" +
	`{"t":3,"from":"agent","bytes":"//4AAQ=="}` + "\n" +
	`{"t":4,"from":"\u001b[2J","raw":""}` + "\n" +
	"\x1b[2Jcut"

// checked writes a hostile recording and a clean one, and returns the output of acp check in a format. The file's name
// is hostile too.
func checked(t *testing.T, format string) []byte {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a |`<\x1b.jsonl": hostile,
		"ok.jsonl":        header + request + end,
		"accepted":        "TRN-1 * # a reason ]]> `code` \x1b[2J\nINI-3 session/* # stale\n",
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	cmd := exec.CommandContext(t.Context(), "acp", "check", "--format", format, "--accepted", "accepted", "--level", "advice", "a |`<\x1b.jsonl", "ok.jsonl", "nosuch.jsonl")
	cmd.Dir = dir
	out, err := cmd.Output()
	expectExit(t, err, statusFailed)
	return out
}

// In every format, only visible text reaches the terminal.
func TestFormatsAreSafe(t *testing.T) {
	tier.Need(t, tier.Normal)
	for _, format := range formatNames() {
		text := checked(t, format)
		for _, r := range string(text) {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%s lets %U through", format, r)
			}
		}
		if !bytes.Contains(text, []byte("TRN-5")) {
			t.Errorf("%s: the hostile line is no finding:\n%s", format, text)
		}
	}
}

// Foreign text in Markdown is code: no link, no image, no HTML, no mention.
func TestMarkdownIsSafe(t *testing.T) {
	var page bytes.Buffer
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
	must.Do(t, markdown.Convert(checked(t, "markdown"), &page))
	code := regexp.MustCompile("(?s)<code>.*?</code>")
	for _, bad := range []string{"x](http:", "img", "script", "/failure", "@everyone"} {
		if text := page.String(); !strings.Contains(text, bad) || strings.Contains(code.ReplaceAllString(text, ""), bad) {
			t.Errorf("%s is missing or no code in %s", bad, text)
		}
	}
}

// TestSARIF reads the document with an independent library, which validates it against the published schema.
func TestSARIF(t *testing.T) {
	run := expectSARIF(t, checked(t, "sarif")).Runs[0]
	if got, want := len(run.Tool.Driver.Rules), len(conformance.Rules()); got != want {
		t.Errorf("%d rules, want %d", got, want)
	}
	suppressed := 0
	for _, result := range run.Results {
		if result.RuleIndex < 0 || *run.Tool.Driver.Rules[result.RuleIndex].ID != *result.RuleID {
			t.Errorf("%s has the index %d", *result.RuleID, result.RuleIndex)
		}
		place := result.Locations[0].PhysicalLocation
		if *place.ArtifactLocation.URI != "a%20%7C%60%3C%1B.jsonl" || *place.Region.StartLine < 2 {
			t.Errorf("%s is at %s", *result.RuleID, *place.ArtifactLocation.URI)
		}
		suppressed += len(result.Suppressions)
	}
	if len(run.Results) < 3 || suppressed != 1 {
		t.Errorf("%d results, %d suppressed", len(run.Results), suppressed)
	}
	if n := len(run.Invocations[0].ToolExecutionNotifications); *run.Invocations[0].ExecutionSuccessful || n < 3 {
		t.Errorf("successful, or only %d notifications", n)
	}
}

// expectSARIF validates a document against the published schema.
func expectSARIF(t *testing.T, text []byte) *sarif.Report {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	must.Do(t, decoder.Decode(&sarif.Report{}))
	report := must.Get(sarif.FromBytes(text))(t)
	run := report.Runs[0] // the library writes these members even if they are empty, which is not valid
	run.Language, run.Tool.Driver.Language, run.NewlineSequences = "en", "en", []string{"\n"}
	must.Do(t, report.Validate())
	return report
}

// junitForm is what the schema of Jenkins allows in JUnit's elements: their attributes, of which required ones are
// marked, and their children.
var junitForm = map[string]struct{ attributes, children []string }{
	"testsuites": {[]string{"name", "time", "tests", "failures", "disabled", "errors"}, []string{"testsuite"}},
	"testsuite": {
		[]string{"name!", "tests!", "failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname", "id", "package"},
		[]string{"properties", "testcase", "system-out", "system-err"},
	},
	"testcase": {[]string{"name!", "assertions", "time", "classname", "status"}, []string{"skipped", "error", "failure", "system-out", "system-err"}},
	"skipped":  {[]string{"message"}, nil},
	"error":    {[]string{"type", "message"}, nil},
	"failure":  {[]string{"type", "message"}, nil},
}

// TestJUnit checks the document against the format that CI servers read, and its counts against its elements.
func TestJUnit(t *testing.T) {
	counts := expectJUnit(t, checked(t, "junit"))
	for _, element := range []string{"testcase", "failure", "error", "skipped"} {
		if counts[element] == 0 {
			t.Errorf("no <%s>", element)
		}
	}
	if counts["testcase"] < len(conformance.Rules())+3 {
		t.Errorf("%d tests", counts["testcase"])
	}
}

// expectJUnit checks a document against the format, and returns the counts of its elements.
func expectJUnit(t *testing.T, text []byte) map[string]int {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(text))
	var open []string
	counts, claimed := map[string]int{}, map[string]int{}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		must.Do(t, err)
		switch e := token.(type) {
		case xml.StartElement:
			name := e.Name.Local
			form, ok := junitForm[name]
			if !ok || len(open) == 0 && name != "testsuites" || len(open) > 0 && !slices.Contains(junitForm[open[len(open)-1]].children, name) {
				t.Fatalf("<%s> in %q", name, open)
			}
			var has []string
			for _, a := range e.Attr {
				has = append(has, a.Name.Local)
				if !slices.Contains(form.attributes, a.Name.Local) && !slices.Contains(form.attributes, a.Name.Local+"!") {
					t.Errorf("<%s %s>", name, a.Name.Local)
				}
				if n, err := strconv.Atoi(a.Value); err == nil && name == "testsuite" {
					claimed[a.Name.Local] += n
				}
			}
			for _, a := range form.attributes {
				if required, is := strings.CutSuffix(a, "!"); is && !slices.Contains(has, required) {
					t.Errorf("<%s> without %s", name, required)
				}
			}
			counts[name]++
			open = append(open, name)
		case xml.EndElement:
			open = open[:len(open)-1]
		}
	}
	for attribute, element := range map[string]string{"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"} {
		if claimed[attribute] != counts[element] {
			t.Errorf("%s: %d, and %d <%s>", attribute, claimed[attribute], counts[element], element)
		}
	}
	return counts
}
