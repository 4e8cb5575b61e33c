package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/acpgo/sdk/acp/rpc"

	"github.com/acpgo/sdk/conformance/internal/finding"
)

// TB has the methods of *testing.T, *testing.B and *testing.F that a Tap uses. It exists so that programs that are not
// tests need not link package testing.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
	Cleanup(func())
}

// TapOptions configures a Tap. Its functions have the same restrictions as those of MonitorOptions.
type TapOptions struct {
	// Schema is the schema to validate against. Nil means stable version 1.
	Schema *Schema
	// Level is the mildest level whose findings fail the test. Milder findings are logged. Zero means MustNot.
	Level Level
	// Expect lists findings that the test causes on purpose. A finding whose String contains one of these texts does
	// not fail the test. If no finding contained a text, the test fails when it ends.
	Expect []string
	// Accept maps the ids of rules that the test, or its peer, breaks on purpose to the reasons. Findings of these
	// rules are logged with the reason and do not fail the test. Unlike those in Expect, they need not occur.
	Accept map[string]string
	// Ignore reports whether another finding does not fail the test, such as one about a peer that the test does not
	// check.
	Ignore func(Finding) bool
	// OnMessage is called for every message; Recording.Add records it.
	OnMessage func(Message)
}

// Tap returns a transport that judges every message of a test's connection in both directions, and fails the test if a
// message breaks a MUST or MUST NOT of the protocol; see TapOptions.Level. The side is the one that uses the transport.
// Close the connection before the test ends, because later messages are not checked. Options may be nil.
func Tap(tb TB, side Side, transport rpc.Transport, options *TapOptions) rpc.Transport {
	tb.Helper()
	t := &tap{tb: tb}
	if options != nil {
		t.options = *options
		t.options.Expect = slices.Clone(options.Expect)
	}
	t.options.Schema = cmp.Or(t.options.Schema, V1())
	t.options.Level = cmp.Or(t.options.Level, MustNot)
	t.met = make([]bool, len(t.options.Expect))
	monitor := NewMonitor(t.options.Schema,
		&MonitorOptions{OnMessage: t.message, OnEnd: t.connectionEnded, Ignore: t.options.Ignore})
	tb.Cleanup(func() { t.end(monitor.Stats()) })
	return monitor.wrap(side, transport)
}

type tap struct {
	tb      TB
	options TapOptions

	mu    sync.Mutex
	met   []bool // which of options.Expect were
	ended bool
}

func (t *tap) message(m Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	t.report(m.Findings, m.Line)
	if t.options.OnMessage != nil {
		t.options.OnMessage(m)
	}
}

func (t *tap) connectionEnded(findings []Finding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.report(findings, nil)
	}
}

// report fails the test for findings about a line or about the end of the connection.
func (t *tap) report(findings []Finding, line []byte) {
	for _, f := range findings {
		if t.expected(f) {
			continue
		}
		var text strings.Builder
		fmt.Fprintf(&text, "%s: %s", f.Direction, f)
		if line != nil {
			text.WriteString("\n\t" + finding.Clip(string(line)))
		}
		for _, e := range f.Evidence {
			fmt.Fprintf(&text, "\n\t%s: message %d: %s", e.Why, e.Number, e.Excerpt)
		}
		reason, accepted := t.options.Accept[f.Rule]
		switch {
		case accepted:
			t.tb.Logf("accepted (%s): %s", reason, text.String())
		case f.Level <= t.options.Level:
			t.tb.Errorf("%s", text.String())
		default:
			t.tb.Logf("%s", text.String())
		}
	}
}

func (t *tap) expected(f Finding) bool {
	text, expected := f.String(), false
	for i, want := range t.options.Expect {
		if strings.Contains(text, want) {
			t.met[i], expected = true, true
		}
	}
	return expected
}

func (t *tap) end(stats Stats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	for i, met := range t.met {
		if !met {
			t.tb.Errorf("conformance: no finding contained %q", t.options.Expect[i])
		}
	}
	t.tb.Logf("conformance: %s", stats)
}
