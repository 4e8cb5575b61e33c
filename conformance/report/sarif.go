package report

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/plain"
)

type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
		ColumnKind  string            `json:"columnKind"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID            string            `json:"id"`
		Short         sarifText         `json:"shortDescription"`
		Full          sarifText         `json:"fullDescription"`
		Help          *sarifText        `json:"help,omitempty"`
		Configuration sarifLevel        `json:"defaultConfiguration"`
		Properties    map[string]string `json:"properties"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifLevel struct {
		Level string `json:"level"`
	}
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    *int               `json:"ruleIndex,omitempty"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Related      []sarifLocation    `json:"relatedLocations,omitempty"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
		Message  *sarifText    `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine int        `json:"startLine"`
		Snippet   *sarifText `json:"snippet,omitempty"`
	}
)

func (r *Report) writeSARIF(w io.Writer) error {
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: r.options.Tool, Version: r.options.Version, Rules: []sarifRule{}}
	for i := range r.rules {
		rule := &r.rules[i]
		out := sarifRule{
			ID: rule.ID, Short: sarifText{rule.Text}, Full: sarifText{rule.Text},
			Configuration: sarifLevel{sarifLevelOf(rule.Level)},
			Properties:    map[string]string{"level": rule.Level.String(), "page": rule.Page, "side": SideName(rule.Side)},
		}
		if rule.Breaks != "" {
			out.Help = &sarifText{rule.Breaks}
		}
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, out)
	}
	invocation := sarifInvocation{Successful: r.Readable()}
	for _, s := range r.sources {
		for _, p := range s.Problems {
			invocation.Notifications = append(invocation.Notifications, sarifNotification{
				"error", sarifText{plain.Line(p.Text)}, []sarifLocation{s.location(p.Line, "")},
			})
		}
	}
	run.Invocations = []sarifInvocation{invocation}
	for _, g := range r.sortedGroups() {
		for _, e := range g.kept {
			run.Results = append(run.Results, e.sarif(g))
		}
	}
	return WriteJSON(w, sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

func (e *Entry) sarif(g *group) sarifResult {
	result := sarifResult{
		RuleID: e.Rule, Level: sarifLevelOf(e.Level),
		Message:      sarifText{plain.Line(e.describe())},
		Locations:    []sarifLocation{e.Source.location(e.Line, e.Excerpt)},
		Fingerprints: map[string]string{"acpFinding/v1": e.fingerprint()},
	}
	if g.order < len(e.Source.report.rules) {
		result.RuleIndex = &g.order
	}
	for i, evidence := range e.Evidence {
		if i < len(e.Lines) && e.Lines[i] > 0 {
			location := e.Source.location(e.Lines[i], evidence.Excerpt)
			location.Message = &sarifText{plain.Line(evidence.Why)}
			result.Related = append(result.Related, location)
		}
	}
	if e.Accepted != "" {
		result.Suppressions = []sarifSuppression{{"external", e.Accepted}}
	}
	return result
}

// fingerprint returns a hash that stays the same if the finding is on another line in another run.
func (e *Entry) fingerprint() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{e.Source.Name, e.Rule, e.Method, string(e.Kind), e.Pointer,
		e.Definition}, "\x00")))
	return hex.EncodeToString(sum[:16])
}

func (s *Source) location(line int, excerpt string) sarifLocation {
	// The name is relative to the directory in which the command ran, which is usually the root of the repository.
	name := filepath.ToSlash(s.Name)
	uri := url.URL{Path: name}
	if filepath.IsAbs(s.Name) {
		uri = url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(name, "/")}
	}
	location := sarifLocation{Physical: sarifPhysical{Artifact: sarifArtifact{uri.String()}}}
	if line > 0 {
		location.Physical.Region = &sarifRegion{StartLine: line}
		if excerpt != "" {
			location.Physical.Region.Snippet = &sarifText{plain.Line(excerpt)}
		}
	}
	return location
}

func sarifLevelOf(level conformance.Level) string {
	switch level {
	case conformance.Must, conformance.MustNot:
		return "error"
	case conformance.Should, conformance.ShouldNot:
		return "warning"
	}
	return "note"
}
