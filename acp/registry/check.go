package registry

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/internal/plain"
)

// CheckOptions configures a check. A nil *CheckOptions, and the zero value of each field, mean the defaults.
type CheckOptions struct {
	// Offline skips the parts that need the network: whether addresses and packages exist, and the launches.
	Offline bool
	// Time bounds each launch, including the time to fetch it. The default is 120 s, as in the registry.
	Time time.Duration
	// EndTime is how long an agent may take to end after its input has been closed, and again after it has been asked
	// to end. The default is 2 s.
	EndTime time.Duration
	// NPM and PyPI are the addresses of the package registries. The defaults are the public ones.
	NPM, PyPI string
	// Platform is the system whose binary is started. The default is the function Platform.
	Platform string
	// HTTP is used for fetching.
	HTTP *http.Client
	// Limits bounds what is fetched and unpacked. InstallTime is not used.
	Limits Limits
	// Progress, if set, is called before each step of the check, with the step's name.
	Progress func(step string)
}

// Report is the result of a check.
type Report struct {
	// Dir is the directory of the entry, or "".
	Dir string
	// Requirements are all requirements of the registry, REG-2 to REG-11, with their findings.
	Requirements []Requirement
	// Steps are the steps of the check.
	Steps []Step
	// Took is the duration of the check.
	Took time.Duration
}

// Requirement is a requirement of the registry for an entry.
type Requirement struct {
	// ID is the name of the requirement in this package, such as "REG-5"; Text describes it.
	ID, Text string
	// Steps are the steps that checked it. If there are none, it was not checked, and Reason says why.
	Steps  []string
	Reason string
	// Findings are the ways in which the entry violates it.
	Findings []Finding
}

// Failed reports whether a finding is more than a warning.
func (r *Requirement) Failed() bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return !f.Warning })
}

// Finding is one way in which an entry violates a requirement.
type Finding struct {
	// Step is the step that found it.
	Step string
	// Warning means that the registry still accepts the entry, but that its users will miss something.
	Warning bool
	// Pointer is the place in agent.json, as a JSON pointer; "" if it is elsewhere.
	Pointer string
	// Text says what is wrong.
	Text string
}

// Step is a part of a check.
type Step struct {
	// Name is "entry", "icon", "addresses", or "launch-" with a kind; Text describes what the step shows.
	Name, Text string
	// Skipped is the reason why the step was not done or not completed.
	Skipped string
	// Took is the duration of a launch.
	Took time.Duration
	// Stderr is the end of an agent's standard error, if the agent did not start.
	Stderr string
}

// OK reports whether the registry accepts the entry, as far as the checks could run.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Requirements, func(q Requirement) bool { return q.Failed() })
}

// String returns the requirements as lines for a terminal, without control characters.
func (r *Report) String() string {
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, plain.Line(fmt.Sprintf(format, args...))) }
	for i := range r.Requirements {
		q := &r.Requirements[i]
		switch {
		case q.Failed():
			say("%-6s  failed", q.ID)
		case len(q.Steps) == 0:
			say("%-6s  not checked: %s", q.ID, q.Reason)
		default:
			say("%-6s  ok", q.ID)
		}
		for _, f := range q.Findings {
			kind := "error"
			if f.Warning {
				kind = "warning"
			}
			say("  %s: %s", kind, strings.TrimPrefix(f.Pointer+": "+f.Text, ": "))
		}
	}
	return strings.Join(lines, "\n")
}

// requirements are the registry's requirements.
var requirements = []Requirement{
	{ID: "REG-2", Text: "agent.json has id, name, version, description, license_url and distribution, and what else it " +
		"has is of the right type; a preview has version and distribution."},
	{ID: "REG-3", Text: "The id is of small letters, digits and -, is the name of the folder, and is not in use by " +
		"another entry; the version begins with three numbers."},
	{ID: "REG-4", Text: "distribution has one or more of binary, npx and uvx, and nothing else."},
	{ID: "REG-5", Text: "binary has systems (darwin, linux, windows) with processors (aarch64, x86_64), each with " +
		"archive and cmd."},
	{ID: "REG-6", Text: "Archives are .zip, .tar.gz, .tgz, .tar.bz2, .tbz2 or the program itself, no installers; they " +
		"stay in their folder, and have the program."},
	{ID: "REG-7", Text: "npx and uvx have a package, and may have cmd, args and env."},
	{ID: "REG-8", Text: "Versions are exact, and those of the distribution are the entry's; addresses and " +
		"packages exist."},
	{ID: "REG-9", Text: "The icon is a square SVG of 16×16 with no colors but currentColor, none and inherit, and " +
		"without comments."},
	{ID: "REG-10", Text: "In a clean environment the agent starts, and the first line of its output is JSON; it answers " +
		"initialize within the time."},
	{ID: "REG-11", Text: "It offers a way to authenticate of the type agent or terminal, even if it needs none."},
}

// The steps of a check.
const (
	stepEntry     = "entry"
	stepIcon      = "icon"
	stepAddresses = "addresses"
	stepLaunch    = "launch-" // followed by the kind of distribution
)

const needsNetwork = "it needs the network"

// checker is a check in progress.
type checker struct {
	CheckOptions
	ctx      context.Context
	dir      string
	base     string // of the pointers of findings
	report   *Report
	rows     map[string]*Requirement
	step     *Step
	launched bool
}

// Check checks the directory of an entry, with agent.json and icon.svg, as the registry does before it accepts it. It
// fetches and starts each distribution that this machine can start, in a clean environment: run it on entries that you
// trust. The error is about the check itself, for example a missing directory; if ctx ends, it is returned with the
// findings so far.
func Check(ctx context.Context, dir string, options *CheckOptions) (*Report, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder", dir)
	}
	text, err := readFile(filepath.Join(dir, "agent.json"), maxFile)
	return newChecker(ctx, dir, options).run(text, err)
}

// CheckEntry checks an entry alone, the text of agent.json, as Check does, without its directory and its icon.
func CheckEntry(ctx context.Context, entry []byte, options *CheckOptions) (*Report, error) {
	return newChecker(ctx, "", options).run(entry, nil)
}

func newChecker(ctx context.Context, dir string, options *CheckOptions) *checker {
	c := &checker{ctx: ctx, dir: dir, report: &Report{Dir: dir, Requirements: slices.Clone(requirements)},
		rows: map[string]*Requirement{}}
	if options != nil {
		c.CheckOptions = *options
	}
	c.Time, c.EndTime = cmp.Or(max(c.Time, 0), 120*time.Second), cmp.Or(max(c.EndTime, 0), 2*time.Second)
	c.NPM, c.PyPI = cmp.Or(c.NPM, "https://registry.npmjs.org"), cmp.Or(c.PyPI, "https://pypi.org")
	c.Platform = cmp.Or(c.Platform, Platform())
	c.Limits = c.Limits.orDefaults()
	for i := range c.report.Requirements {
		c.rows[c.report.Requirements[i].ID] = &c.report.Requirements[i]
	}
	return c
}

// run checks the text of agent.json, or that it could not be read.
func (c *checker) run(text []byte, failed error) (*Report, error) {
	began := time.Now()
	c.check(text, failed)
	c.report.Took = time.Since(began)
	for id := range c.rows {
		c.why(id, "agent.json has nothing of it that can be read")
	}
	return c.report, c.ctx.Err()
}

// begin begins a step.
func (c *checker) begin(name, text string) {
	if c.Progress != nil {
		c.Progress(name)
	}
	c.report.Steps = append(c.report.Steps, Step{Name: name, Text: text})
	c.step = &c.report.Steps[len(c.report.Steps)-1]
}

// ran records that requirements were checked in this step.
func (c *checker) ran(ids ...string) {
	for _, id := range ids {
		row := c.rows[id]
		row.Reason = ""
		if !slices.Contains(row.Steps, c.step.Name) {
			row.Steps = append(row.Steps, c.step.Name)
		}
	}
}

// why records why a requirement was not checked.
func (c *checker) why(id, reason string) {
	if row := c.rows[id]; len(row.Steps) == 0 && row.Reason == "" {
		row.Reason = reason
	}
}

// fail records a failure of a requirement. pointer is the place in agent.json, or "".
func (c *checker) fail(id, pointer, format string, args ...any) {
	c.addFinding(id, Finding{Pointer: pointer, Text: fmt.Sprintf(format, args...)})
}

// warn records something that the registry accepts, but that users of the entry will miss.
func (c *checker) warn(id, pointer, format string, args ...any) {
	c.addFinding(id, Finding{Warning: true, Pointer: pointer, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) addFinding(id string, f Finding) {
	c.ran(id)
	f.Step, f.Pointer = c.step.Name, c.base+f.Pointer
	c.rows[id].Findings = append(c.rows[id].Findings, f)
}

// maxFile bounds agent.json and the icon, in bytes.
const maxFile = 8 << 20

// addresses checks whether the addresses and packages of the entry exist.
func (c *checker) addresses(e *Entry) {
	if p := e.Previewed(); p != nil {
		c.base = "/preview"
		c.addresses(p)
		c.base = ""
	}
	for _, platform := range sorted(e.Distribution.Binary) {
		if a := e.Distribution.Binary[platform]; isAddress(a.Archive) {
			c.ran("REG-8")
			if err := c.exists(a.Archive); err != nil {
				c.fail("REG-8", "/distribution/binary/"+platform+"/archive", "%v", err)
			}
		}
	}
	if p := e.Distribution.NPX; p != nil {
		name, version := splitPackage(NPX, p.Package)
		c.published(NPX, p, strings.TrimSuffix(c.NPM, "/")+"/"+strings.ReplaceAll(name, "/", "%2f")+"/"+
			url.PathEscape(version), version)
	}
	if p := e.Distribution.UVX; p != nil {
		name, version := splitPackage(UVX, p.Package)
		c.published(UVX, p, strings.TrimSuffix(c.PyPI, "/")+"/pypi/"+url.PathEscape(name)+"/"+url.PathEscape(version)+"/json",
			version)
	}
}

func (c *checker) published(kind Kind, p *Package, address, version string) {
	if version == "" {
		return // this is reported elsewhere
	}
	c.ran("REG-8")
	if err := c.exists(address); err != nil {
		c.fail("REG-8", "/distribution/"+string(kind)+"/package", "%s: %v", p.Package, err)
	}
}

// exists checks whether an address can be read: by HEAD, and by GET if HEAD is not supported.
func (c *checker) exists(address string) (err error) {
	ctx, cancel := context.WithTimeout(c.ctx, 30*time.Second)
	defer cancel()
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		var response *http.Response
		if response, err = ask(ctx, c.HTTP, method, address, true, nil); err != nil {
			continue
		}
		if err = response.Body.Close(); err != nil {
			continue
		}
		if response.StatusCode == http.StatusOK {
			return nil
		}
		err = &StatusError{address, response.Status}
	}
	return err
}
