// Package entry presents the check of an ACP registry entry as the report of a probe.
package entry

import (
	"context"
	"fmt"

	"github.com/acpgo/sdk/acp/registry"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/probe"
)

// Check checks an entry and returns a report that names the version of the tool. The error is about the check itself,
// such as a missing directory.
func Check(ctx context.Context, dir, version string, options *registry.CheckOptions) (*probe.Report, error) {
	found, err := registry.Check(ctx, dir, options)
	if found == nil {
		return nil, err
	}
	return convert(found, version), err
}

// convert converts a report of the registry to one of a probe.
func convert(found *registry.Report, version string) *probe.Report {
	r := &probe.Report{Tool: "acp", Version: version, Target: found.Dir, Conforms: found.OK(),
		Seconds: found.Took.Seconds()}
	steps := map[string]*probe.Outcome{}
	for _, s := range found.Steps {
		out := &probe.Outcome{Name: s.Name, Text: s.Text, Run: 1, Seconds: s.Took.Seconds(), Skipped: s.Skipped,
			Stderr: s.Stderr}
		steps[s.Name] = out
		r.Scenarios = append(r.Scenarios, out)
	}
	r.Summary.Verdicts = map[probe.Verdict]int{}
	for i := range found.Requirements {
		q := &found.Requirements[i]
		row := probe.Row{
			ID: q.ID, Page: "registry", Class: probe.Mandatory, Level: conformance.Must.String(), Text: q.Text,
			Verdict: probe.Pass, Reason: q.Reason, Exercised: q.Steps,
		}
		switch {
		case q.Failed():
			row.Verdict = probe.Fail
			r.Summary.Must = append(r.Summary.Must, q.ID)
		case len(q.Findings) > 0:
			row.Verdict = probe.Warn
			r.Summary.Should = append(r.Summary.Should, q.ID)
		case len(q.Steps) == 0:
			row.Verdict = probe.NotExercised
		}
		for _, f := range q.Findings {
			level := conformance.Must
			if f.Warning {
				level = conformance.Should
			}
			row.Failures = append(row.Failures,
				probe.Failure{Scenario: f.Step, Level: level.String(), Pointer: f.Pointer, Message: f.Text})
			if failed := &steps[f.Step].Failed; len(*failed) == 0 || (*failed)[len(*failed)-1] != q.ID {
				*failed = append(*failed, q.ID)
			}
		}
		r.Summary.Verdicts[row.Verdict]++
		r.Rows = append(r.Rows, row)
	}
	v := r.Summary.Verdicts
	r.Badge = fmt.Sprintf("ACP registry: %d of %d requirements", v[probe.Pass]+v[probe.Warn],
		v[probe.Pass]+v[probe.Warn]+v[probe.Fail])
	if n := v[probe.NotExercised]; n > 0 {
		r.Badge += fmt.Sprintf(", %d not exercised", n)
	}
	return r
}
