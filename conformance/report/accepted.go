package report

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/acpgo/sdk/conformance"
)

// Accepted is a list of findings that a project accepts, each with a reason. Its file has one entry per line; empty
// lines and lines that begin with # are comments:
//
//	# requirement, method, pointer, # reason
//	INI-5   initialize                      # agentInfo comes with our next release
//	INI-6   session/update  /update/_old/*  # our old clients read it
//	TRN-5   *                               # the launcher prints a banner
//
// An entry accepts the findings of its requirement in messages with the method, at the pointer. The method of an answer
// is that of its request. In both patterns, * matches any text without a slash; a single * matches everything, even
// messages without a method and findings without a pointer. An entry without a pointer accepts findings at any place.
type Accepted struct {
	entries []*AcceptedEntry
}

// AcceptedEntry is one entry of the file.
type AcceptedEntry struct {
	File                          string
	Line                          int
	Rule, Method, Pointer, Reason string

	used int
}

// ReadAccepted reads a file of accepted findings. The name is for errors; the returned error joins one for each invalid
// line.
func ReadAccepted(name string, from io.Reader) (*Accepted, error) {
	a := &Accepted{}
	var errs []error
	lines := bufio.NewScanner(from)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		e := &AcceptedEntry{File: name, Line: number}
		if err := e.parse(line); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.place(), err))
		}
		a.entries = append(a.entries, e)
	}
	if err := lines.Err(); err != nil {
		errs = append(errs, fmt.Errorf("%s: %w", name, err))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return a, nil
}

func (e *AcceptedEntry) parse(line string) error {
	what, reason, found := strings.Cut(line, " #")
	if e.Reason = strings.TrimSpace(reason); !found || e.Reason == "" {
		return errors.New("missing reason: write one after #")
	}
	fields := strings.Fields(what)
	if len(fields) < 2 || len(fields) > 3 {
		return errors.New("expected a requirement, a method and optionally a pointer")
	}
	e.Rule, e.Method, e.Pointer = fields[0], fields[1], "*"
	if len(fields) == 3 {
		e.Pointer = fields[2]
	}
	for _, pattern := range []string{e.Method, e.Pointer} {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("%s: %w", pattern, err)
		}
	}
	return nil
}

func (e *AcceptedEntry) place() string { return fmt.Sprintf("%s:%d", e.File, e.Line) }

// String returns the entry as in the file, without the reason.
func (e *AcceptedEntry) String() string {
	text := e.Rule + " " + e.Method
	if e.Pointer != "*" {
		text += " " + e.Pointer
	}
	return text
}

// reason returns the reason of the entry that accepts a finding, or "".
func (a *Accepted) reason(f conformance.Finding) string {
	for _, e := range a.entries {
		if e.Rule == f.Rule && matchPattern(e.Method, f.Method) && matchPattern(e.Pointer, f.Pointer) {
			e.used++
			return e.Reason
		}
	}
	return ""
}

func matchPattern(pattern, text string) bool {
	if pattern == "*" {
		return true
	}
	ok, err := path.Match(pattern, text)
	return ok && err == nil // the pattern was checked by parse
}

// Stale returns the entries that matched no finding.
func (a *Accepted) Stale() []*AcceptedEntry {
	if a == nil {
		return nil
	}
	var stale []*AcceptedEntry
	for _, e := range a.entries {
		if e.used == 0 {
			stale = append(stale, e)
		}
	}
	return stale
}
