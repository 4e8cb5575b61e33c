// Rules of the page session-modes.

package rules

import (
	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
)

var sessionModesRules = []judge.Rule{
	// The client knows the modes from an answer that it has read, which a judge has seen as well.
	{ID: "MOD-1", On: requests(judge.MethodSetMode), Check: func(e *judge.Event) {
		s, mode := e.Session, e.Text("modeId")
		switch {
		case s == nil || s.Usable == nil || s.Setup != nil || mode == "":
		case s.Modes == nil:
			e.Broken("/modeId", "the session has no modes").Because(s.Usable, "the answer that opened the session")
		case !s.Modes.Has(mode):
			e.Broken("/modeId", "the mode %q is not available", finding.Clip(mode)).
				Because(s.Modes.At, "the modes of the session")
		}
	}},
	{ID: "MOD-2", On: anyOf(results(setupMethods...), updates("current_mode_update")), Check: func(e *judge.Event) {
		if e.Kind == finding.Notification {
			mode := e.Text("update", "currentModeId")
			if s := e.Session; s != nil && s.Modes != nil && mode != "" && !s.Modes.Has(mode) {
				e.Broken("/update/currentModeId", "the mode %q is not available", finding.Clip(mode)).
					Because(s.Modes.At, "the modes of the session")
			}
			return
		}
		mode := e.Content.Member("modes", "currentModeId")
		if !mode.IsText() || !e.Content.Member("modes", "availableModes").IsArray() {
			return
		}
		for _, available := range e.Content.Items("modes", "availableModes") {
			if available.Text("id") == mode.Text() {
				return
			}
		}
		e.Broken("/modes/currentModeId", "the mode %q is not available", finding.Clip(mode.Text()))
	}},
}
