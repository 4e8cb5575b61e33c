// Package registry checks an entry of the ACP registry before it is handed in: the folder with agent.json and icon.svg, and
// that each distribution which this machine can run starts as the registry's own check starts it.
package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/probe"
)

// Options configure a check. The zero value of each field means its default.
type Options struct {
	// Dir is the folder of the entry.
	Dir string
	// Version is that of the tool, for the report.
	Version string
	// Offline leaves out what needs the network: whether addresses and packages are there, and the launches.
	Offline bool
	// Time bounds each launch, with what it has to fetch. Default 120 s.
	Time time.Duration
	// Rung is each step of ending an agent. Default 2 s.
	Rung time.Duration
	// NPM and PyPI are the addresses of the registries of packages.
	NPM, PyPI string
	// Platform is the key of this machine in a distribution. Default: what it is.
	Platform string
	// Progress is called before each part of the check.
	Progress func(part string)
}

// rows are the requirements, in the words of the report.
var rows = []struct {
	id   string
	text string
}{
	{"REG-2", "agent.json has id, name, version, description and distribution, and what else it has is of the right type."},
	{"REG-3", "The id is of small letters, digits and -, is the name of the folder, and is not in use by another entry; the version begins with three numbers."},
	{"REG-4", "distribution has one or more of binary, npx and uvx, and nothing else."},
	{"REG-5", "binary has systems (darwin, linux, windows) with processors (aarch64, x86_64), each with archive and cmd."},
	{"REG-6", "Archives are .zip, .tar.gz, .tgz, .tar.bz2, .tbz2 or the program itself, no installers; they stay in their folder, and have the program."},
	{"REG-7", "npx and uvx have a package, and may have cmd, args and env."},
	{"REG-8", "Versions are exact, and those of the distribution are the entry's; addresses and packages exist."},
	{"REG-9", "The icon is a square SVG of 16×16 with no colors but currentColor, none and inherit, and without comments."},
	{"REG-10", "In a clean environment the agent starts, and the first line of its output is JSON; it answers initialize within the time."},
	{"REG-11", "It offers a way to authenticate of the type agent or terminal, even if it needs none."},
}

// The parts of a check, as scenarios of the report.
const (
	partEntry     = "entry"
	partIcon      = "icon"
	partAddresses = "addresses"
	partLaunch    = "launch-" // and the kind of distribution
)

// checker is a check that runs.
type checker struct {
	*Options
	ctx      context.Context
	http     *http.Client
	report   *probe.Report
	rows     map[string]*probe.Row
	part     *probe.Outcome
	launched bool
}

// Check checks an entry. The error is about the check itself, such as a folder that is not there.
func Check(ctx context.Context, options *Options) (*probe.Report, error) {
	o := *options
	defaults(&o)
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	if o.Dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	if info, err := os.Stat(o.Dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is no folder", o.Dir)
	}
	c := &checker{
		Options: &o, ctx: ctx, http: &http.Client{},
		report: &probe.Report{Tool: "acp", Version: o.Version, Target: o.Dir, Scenarios: []*probe.Outcome{}},
		rows:   map[string]*probe.Row{},
	}
	c.report.Rows = make([]probe.Row, len(rows))
	for i, r := range rows {
		c.report.Rows[i] = probe.Row{ID: r.id, Page: "registry", Class: probe.Mandatory, Level: conformance.Must.String(), Text: r.text, Verdict: probe.NotExercised}
		c.rows[r.id] = &c.report.Rows[i]
	}
	began := time.Now()
	c.check()
	c.report.Seconds = time.Since(began).Seconds()
	c.summarize()
	return c.report, ctx.Err()
}

func defaults(o *Options) {
	if o.Time <= 0 {
		o.Time = 120 * time.Second
	}
	if o.Rung <= 0 {
		o.Rung = 2 * time.Second
	}
	if o.NPM == "" {
		o.NPM = "https://registry.npmjs.org"
	}
	if o.PyPI == "" {
		o.PyPI = "https://pypi.org"
	}
	if o.Platform == "" {
		processor := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
		o.Platform = runtime.GOOS + "-" + processor
	}
}

// begin begins a part of the check.
func (c *checker) begin(name, text string) {
	if c.Progress != nil {
		c.Progress(name)
	}
	c.part = &probe.Outcome{Name: name, Text: text, Run: 1}
	c.report.Scenarios = append(c.report.Scenarios, c.part)
}

// ran notes that a requirement was looked at, in this part.
func (c *checker) ran(ids ...string) {
	for _, id := range ids {
		row := c.rows[id]
		if row.Verdict == probe.NotExercised {
			row.Verdict, row.Reason = probe.Pass, ""
		}
		if !slices.Contains(row.Exercised, c.part.Name) {
			row.Exercised = append(row.Exercised, c.part.Name)
		}
	}
}

// why says why a requirement was not looked at, or not wholly.
func (c *checker) why(id, format string, args ...any) {
	if row := c.rows[id]; row.Verdict == probe.NotExercised && row.Reason == "" {
		row.Reason = fmt.Sprintf(format, args...)
	}
}

// fail is a failure of a requirement. The pointer says where in agent.json, "" for elsewhere.
func (c *checker) fail(id, pointer, format string, args ...any) {
	c.broken(id, conformance.Must, probe.Fail, pointer, fmt.Sprintf(format, args...))
}

// warn is what the registry takes, and what its users will miss.
func (c *checker) warn(id, pointer, format string, args ...any) {
	c.broken(id, conformance.Should, probe.Warn, pointer, fmt.Sprintf(format, args...))
}

func (c *checker) broken(id string, level conformance.Level, verdict probe.Verdict, pointer, text string) {
	c.ran(id)
	row := c.rows[id]
	if row.Verdict != probe.Fail {
		row.Verdict = verdict
	}
	row.Failures = append(row.Failures, probe.Failure{Scenario: c.part.Name, Level: level.String(), Pointer: pointer, Message: text})
	if !slices.Contains(c.part.Failed, id) {
		c.part.Failed = append(c.part.Failed, id)
	}
}

func (c *checker) summarize() {
	s := &c.report.Summary
	s.Verdicts = map[probe.Verdict]int{}
	passed := 0
	for i := range c.report.Rows {
		row := &c.report.Rows[i]
		s.Verdicts[row.Verdict]++
		c.why(row.ID, "agent.json has nothing of it that can be read")
		switch row.Verdict {
		case probe.Fail:
			s.Must = append(s.Must, row.ID)
		case probe.Warn:
			s.Should = append(s.Should, row.ID)
			passed++
		case probe.Pass:
			passed++
		}
	}
	c.report.Conforms = len(s.Must) == 0
	c.report.Badge = fmt.Sprintf("ACP registry: %d of %d requirements", passed, passed+len(s.Must))
	if n := s.Verdicts[probe.NotExercised]; n > 0 {
		c.report.Badge += fmt.Sprintf(", %d not exercised", n)
	}
}

// maxFile bounds agent.json, the icon and an answer of a registry, in bytes.
const maxFile = 8 << 20

func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	return text, err
}

// members are those of a JSON object; nil if it is none.
func members(text json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) || json.Unmarshal(text, &m) != nil {
		return nil
	}
	return m
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
