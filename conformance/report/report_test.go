package report

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newReport is New for valid options.
func newReport(t testing.TB, options Options) *Report {
	t.Helper()
	return must.Get(New(options))(t)
}

// accept reads the text of a file of accepted findings.
func accept(t *testing.T, text string) *Accepted {
	t.Helper()
	return must.Get(ReadAccepted("accepted", strings.NewReader(text)))(t)
}

func finding(rule, method, pointer string) *Entry {
	return &Entry{Line: 1, Finding: conformance.Finding{Rule: rule, Level: conformance.Must, Method: method, Pointer: pointer, Message: "wrong"}}
}

// All findings are counted, but only a few are kept. Those that count take precedence over accepted ones.
func TestBounded(t *testing.T) {
	r := newReport(t, Options{Keep: 10, Accepted: accept(t, "INI-6 session/update # known\n")})
	s := r.Source("a")
	for range 1000 {
		s.Add(finding("INI-6", "session/update", ""))
	}
	for range 5 {
		s.Add(finding("INI-6", "session/new", ""))
	}
	if r.Findings() != 5 || r.Accepted() != 1000 {
		t.Errorf("%d findings, %d accepted", r.Findings(), r.Accepted())
	}
	g := r.groups["INI-6"]
	if len(g.kept) != 10 || len(g.entries()) != 5 {
		t.Errorf("%d kept, %d of them count", len(g.kept), len(g.entries()))
	}
	for i := range 100 {
		s.Problem(i, "unreadable")
	}
	if len(s.Problems) != maxProblems || s.MoreProblems != 100-maxProblems {
		t.Errorf("%d problems and %d more", len(s.Problems), s.MoreProblems)
	}
}

// The options determine which findings count.
func TestOptions(t *testing.T) {
	advice := finding("INI-6", "", "")
	advice.Level = conformance.Advice
	for name, test := range map[string]struct {
		options Options
		entry   *Entry
		counts  bool
	}{
		"default":         {Options{}, finding("INI-6", "", ""), true},
		"advice":          {Options{}, advice, false},
		"advice, wanted":  {Options{Level: conformance.Advice}, advice, true},
		"only":            {Options{Only: []string{"INI-6"}}, finding("INI-6", "", ""), true},
		"only another":    {Options{Only: []string{"INI-1"}}, finding("INI-6", "", ""), false},
		"only the page":   {Options{Only: []string{"ini"}}, finding("INI-6", "", ""), true},
		"ignored":         {Options{Ignore: []string{"INI-6"}}, finding("INI-6", "", ""), false},
		"ignored page":    {Options{Only: []string{"INI"}, Ignore: []string{"INI"}}, finding("INI-6", "", ""), false},
		"the judge's own": {Options{Level: conformance.Advice}, finding("", "", ""), false},
	} {
		r := newReport(t, test.options)
		if got := r.Source("a").Add(test.entry); got != test.counts || (r.Findings() == 1) != test.counts {
			t.Errorf("%s: %v, %d findings", name, got, r.Findings())
		}
	}
	if _, err := New(Options{Ignore: []string{"XYZ-1"}}); err == nil {
		t.Error("an unknown requirement is accepted")
	}
}

// No format shows a finding below a level that is not its own.
func TestLevels(t *testing.T) {
	add := func(r *Report, level conformance.Level, message string) {
		e := finding("PRM-13", "session/update", "")
		e.Level, e.Message = level, message
		r.Source("a").Add(e)
	}
	mild := newReport(t, Options{Level: conformance.Advice})
	add(mild, conformance.Advice, "mild")
	both := newReport(t, Options{Level: conformance.Advice, Keep: 12})
	for i := range 20 {
		add(both, conformance.Advice, fmt.Sprint("mild ", strings.Repeat("x", i)))
	}
	add(both, conformance.Must, "severe")
	write := func(r *Report, format Format) string {
		var b strings.Builder
		must.Do(t, r.Write(&b, format))
		return b.String()
	}
	for _, test := range []struct {
		r        *Report
		format   Format
		has, not []string
	}{
		{mild, Text, []string{"advice  PRM-13", "1 advice"}, []string{"MUST"}},
		{mild, Markdown, []string{"### advice PRM-13"}, []string{"MUST"}},
		{mild, JSON, []string{`"level": "advice"`}, []string{"MUST"}},
		{mild, JUnit, []string{`type="advice"`}, []string{`type="MUST"`}},
		{mild, SARIF, []string{`"level": "note"`}, []string{`"ruleIndex": 0`}},
		{both, Text, []string{"MUST  PRM-13", "a:1: session/update: severe", "a:1: advice: session/update: mild", "1 MUST, 20 advice"}, []string{"advice: session/update: severe"}},
		{both, Markdown, []string{"### MUST PRM-13", "severe", "advice: `session/update: mild"}, nil},
		{both, JUnit, []string{`type="MUST"`, "advice: session/update: mild"}, nil},
	} {
		got := write(test.r, test.format)
		for _, want := range test.has {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %q:\n%.2000s", test.format, want, got)
			}
		}
		for _, not := range test.not {
			if strings.Contains(got, not) {
				t.Errorf("%s has %q:\n%.2000s", test.format, not, got)
			}
		}
	}
	var b strings.Builder
	live := mild.Live(&b, nil)
	if err := errors.Join(live.Write(mild.groups["PRM-13"].kept[0]), live.End()); err != nil || strings.Contains(b.String(), "MUST") {
		t.Errorf("%v:\n%s", err, b.String())
	}
}

func TestAccepted(t *testing.T) {
	a := accept(t, strings.Join([]string{
		"# a comment", "",
		"INI-6 session/update /update/* # one",
		"INI-6 session/* # two",
		"TRN-5 * # three",
		"INI-6 * /a # stale",
	}, "\n"))
	for _, test := range []struct{ rule, method, pointer, want string }{
		{"INI-6", "session/update", "/update/extra", "one"},
		{"INI-6", "session/update", "/update/extra/0", "two"}, // * is not /
		{"INI-6", "session/new", "", "two"},
		{"INI-6", "initialize", "/b", ""},
		{"INI-6", "", "", ""},
		{"INI-1", "session/new", "", ""},
		{"TRN-5", "", "", "three"},
	} {
		if got := a.reason(finding(test.rule, test.method, test.pointer).Finding); got != test.want {
			t.Errorf("%v: %q", test, got)
		}
	}
	if stale := a.Stale(); len(stale) != 1 || stale[0].Line != 6 || stale[0].String() != "INI-6 * /a" {
		t.Errorf("stale: %v", stale)
	}
}

// banner is a line of a recording that breaks a requirement.
const banner = `{"from":"agent","raw":"Loading"}` + "\n"

// A callback for findings can stop the reading, even of a pipe that does not end.
func TestStop(t *testing.T) {
	in, out := io.Pipe()
	wrote := make(chan error)
	go func() {
		var err error
		for err == nil {
			_, err = io.WriteString(out, banner)
		}
		wrote <- err
	}()
	full := errors.New("the disk is full")
	err := newReport(t, Options{}).Source("a").Check(in, &CheckOptions{OnFinding: func(*Entry) error { return full }})
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	in.Close()
	if err := <-wrote; !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// Messages before a read error are judged.
func TestReadError(t *testing.T) {
	broken := io.MultiReader(strings.NewReader(strings.Repeat(banner, 3)), failing{})
	r := newReport(t, Options{})
	s := r.Source("a")
	must.Do(t, s.Check(broken, nil))
	if s.Messages != 3 || r.Findings() != 3 || r.Readable() || !strings.Contains(fmt.Sprint(s.Problems), "no more") {
		t.Errorf("%d messages, %d findings, %v", s.Messages, r.Findings(), s.Problems)
	}
	// A stopped read is not a problem.
	r = newReport(t, Options{})
	if err := r.Source("a").Check(io.MultiReader(strings.NewReader(banner), stopping{}), nil); err != nil || r.Findings() != 1 || !r.Readable() {
		t.Errorf("%v, %d findings", err, r.Findings())
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("no more") }

type stopping struct{}

func (stopping) Read([]byte) (int, error) { return 0, ErrStopped }

// A report of a recording, for people.
func ExampleReport() {
	r, err := New(Options{Only: []string{"TRN-5"}})
	if err != nil {
		panic(err)
	}
	if err := r.Source("run.jsonl").Check(strings.NewReader(banner), nil); err != nil {
		panic(err)
	}
	if err := r.Write(os.Stdout, Text); err != nil {
		panic(err)
	}
	// Output:
	// MUST NOT  TRN-5  agent, transports
	//   The agent writes nothing but ACP messages to its standard output.
	//   run.jsonl:1: message: not JSON: invalid character 'L' looking for beginning of value (byte 1) (JSON-RPC)
	//       Loading
	//
	// run.jsonl: 1 finding (1 message)
	// 1 MUST NOT
}

// Every requirement of docs/reference/requirements.md is explained, with the level and the page that the table has.
func TestExplain(t *testing.T) {
	table := must.Get(os.ReadFile("../../docs/reference/requirements.md"))(t)
	rows := regexp.MustCompile(`(?m)^(?:## .*\((http[^)]*)\)|\| ([A-Z0-9]+-\d+) \| ([A-Za-z ]+?)(?: \([^|]*\))? \| (\w+) \| ([^|]+) \|.*)$`).FindAllStringSubmatch(string(table), -1)
	all := conformance.Requirements()
	page, explained := "", 0
	for _, row := range rows {
		if row[1] != "" {
			page = row[1]
			continue
		}
		i := slices.IndexFunc(all, func(r conformance.Requirement) bool { return r.ID == row[2] })
		if i < 0 {
			t.Errorf("%s is not known", row[2])
			continue
		}
		var b strings.Builder
		must.Do(t, Explain(&b, all[i], nil))
		got := b.String()
		if want := fmt.Sprintf("%s  %s  %s\n%s\n", row[2], row[3], row[4], page); !strings.HasPrefix(got, want) {
			t.Errorf("got %.100q, want %q", got, want)
		}
		for judged, how := range map[string]string{"people": "Only people", "probe": "Watching a connection is not enough", "check": "acp check", "as": "acp check, by "} {
			if strings.HasPrefix(row[5], judged) && !strings.Contains(got, how) || !strings.Contains(got, "How the probe tries it") {
				t.Errorf("%s is judged by %s: %s", row[2], row[5], got)
			}
		}
		explained++
	}
	if explained != len(all) || explained == 0 {
		t.Errorf("%d of %d requirements are explained", explained, len(all))
	}
}
