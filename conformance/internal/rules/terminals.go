// Rules of the page terminals. The terminals of version 2 are the agent's: nothing of this page is about them.

package rules

import (
	"strings"
	"unicode/utf8"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
)

var terminalRules = []judge.Rule{
	{ID: "TRM-2", On: requests(judge.MethodTerminalCreate, judge.MethodTerminalOutput, judge.MethodTerminalWait,
		judge.MethodTerminalKill, judge.MethodTerminalRelease),
		Check: func(e *judge.Event) { e.Needs(&e.Client, "terminal") }},
	{ID: "TRM-4", On: results(judge.MethodTerminalOutput), Check: func(e *judge.Event) {
		t, output := terminalOf(e, e.Request), e.Text("output")
		if t != nil && t.Limit >= 0 && int64(len(output)) > t.Limit {
			e.Broken("/output", "the output has %d bytes, more than the limit of %d", len(output), t.Limit).
				Because(t.At, "the terminal")
		}
	}},
	{ID: "TRM-5", On: results(judge.MethodTerminalOutput), Check: func(e *judge.Event) {
		if e.Content.True("truncated") && strings.HasPrefix(e.Text("output"), string(utf8.RuneError)) {
			e.Broken("/output", "the output begins in the middle of a character").Because(e.Request.At, "the request").
				Mildly(finding.Should)
		}
	}},
	{ID: "TRM-7", End: func(e *judge.Event) {
		for _, t := range e.Terminals.All {
			if level := leakLevel(e, t); t.Killed == nil && level != 0 {
				e.BrokenAt(t.At, "the terminal %q was never released", finding.Clip(t.ID)).
					Because(t.Exited, "the end of its command").Mildly(level)
			}
		}
	}},
	{ID: "TRM-8", End: func(e *judge.Event) {
		for _, t := range e.Terminals.All {
			if level := leakLevel(e, t); t.Killed != nil && level != 0 {
				e.BrokenAt(t.At, "the terminal %q was killed and never released", finding.Clip(t.ID)).
					Because(t.Killed, "killed here").Mildly(level)
			}
		}
	}},
	{ID: "TRM-9", On: results(judge.MethodTerminalOutput), Check: func(e *judge.Event) {
		t := terminalOf(e, e.Request)
		if t != nil && t.Exited != nil && t.Exited.Number < e.Request.At.Number && !e.Given("exitStatus") {
			e.Broken("/exitStatus", "exitStatus is missing although the command has ended").
				Because(t.Exited, "the end of the command")
		}
	}},
	{ID: "TRM-10", On: failures(judge.MethodTerminalOutput, judge.MethodTerminalWait), Check: func(e *judge.Event) {
		t := terminalOf(e, e.Request)
		code, _ := e.Content.Integer("code")
		if t != nil && t.Killed != nil && t.Released == nil && t.Killed.Number < e.Request.At.Number &&
			code != codeCancelled {
			e.Broken("", "a killed terminal still answers until it is released").Because(t.Killed, "killed here").
				Because(e.Request.At, "the request")
		}
	}},
	{ID: "TRM-11", On: results(judge.MethodTerminalOutput, judge.MethodTerminalWait, judge.MethodTerminalKill),
		Check: func(e *judge.Event) {
			t := terminalOf(e, e.Request)
			if t != nil && t.Freed != nil && t.Freed.Number < e.Request.At.Number {
				e.Broken("", "the client answered for a terminal that has been released").Because(t.Freed, "its release").
					Because(e.Request.At, "the request")
			}
		}},
	{ID: "TRM-12", On: results(judge.MethodTerminalOutput, judge.MethodTerminalWait), Check: func(e *judge.Event) {
		status, where := e.Content, ""
		if e.Method == judge.MethodTerminalOutput {
			status, where = e.Content.Member("exitStatus"), "/exitStatus"
		}
		if status.IsObject() && e.Sound(where) && !status.Given("exitCode") && !status.Given("signal") {
			e.Broken(where, "the exit status has neither an exit code nor a signal").Because(e.Request.At, "the request")
		}
	}},
}

// terminalOf returns the terminal that a request names.
func terminalOf(e *judge.Event, r *judge.Request) *judge.Terminal {
	return e.Terminal(r.Params.Text("terminalId"))
}

// leakLevel returns the level of a finding about a terminal that still exists at the end of the connection, or 0 if
// there is nothing to report.
func leakLevel(e *judge.Event, t *judge.Terminal) finding.Level {
	s := t.Session
	switch {
	case t.Released != nil:
	case e.ClosedBy == finding.Agent, s != nil && (s.Closed != nil || s.Deleted != nil):
		return e.Rule.Level
	case (t.Exited != nil || t.Killed != nil) && s != nil && len(s.Turns) == 0 && !s.Lost:
		return finding.Should
	}
	return 0
}
