// The tap of a test: it fails the test for each finding.

package conformance

import (
	"slices"
	"strings"
	"sync"

	"github.com/acpgo/sdk/acp/rpc"
)

// TB has the methods of *testing.T, *testing.B and *testing.F that a Tap uses. Because of it, programs that are not
// tests need not link package testing.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
	Cleanup(func())
}

// TapOptions configure a Tap. For the functions, the same holds as for those of MonitorOptions.
type TapOptions struct {
	// Schema is the one to validate against; nil means the stable version 1.
	Schema *Schema
	// Expect lists findings that the test causes on purpose. A finding whose String contains one of the
	// texts does not fail the test. If no finding contained a text, the test fails when it ends.
	Expect []string
	// Ignore says which other findings do not fail the test, such as those about a peer that the test
	// does not check.
	Ignore func(Finding) bool
	// OnMessage is called for every message; Recording.Add records it.
	OnMessage func(Message)
}

// Tap returns a transport that validates every message of a test's connection, in both directions, and
// fails the test for each finding, warnings included. The side is the one that uses the transport. Close
// the connection before the test ends: later messages are not checked. Options may be nil.
func Tap(tb TB, side Side, transport rpc.Transport, options *TapOptions) rpc.Transport {
	tb.Helper()
	t := &tap{tb: tb}
	if options != nil {
		t.options = *options
		t.options.Expect = slices.Clone(options.Expect)
	}
	if t.options.Schema == nil {
		t.options.Schema = V1()
	}
	t.met = make([]bool, len(t.options.Expect))
	monitor := NewMonitor(t.options.Schema, &MonitorOptions{OnMessage: t.message, Ignore: t.options.Ignore})
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
	for _, f := range m.Findings {
		if !t.expected(f) {
			t.tb.Errorf("%s: %s\n\t%s", f.Direction, f, clip(string(m.Line)))
		}
	}
	if t.options.OnMessage != nil {
		t.options.OnMessage(m)
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
