// Rules of the page extensibility.

package rules

import (
	"regexp"
	"strings"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
)

var extensibilityRules = []judge.Rule{
	{ID: "EXT-1", On: anyOf(requests(), notifications(), results()), Check: func(e *judge.Event) {
		meta := e.Content.Member("_meta")
		if meta == nil {
			return
		}
		for _, key := range traceKeys {
			if v := meta.Member(key.name); meta.Present(key.name) &&
				!(v.IsText() && len(v.Text()) <= 1<<13 && key.form.MatchString(v.Text())) {
				e.Broken("/_meta/"+key.name, "the value does not have the form that the W3C defines")
			}
		}
	}},
	{ID: "EXT-4", End: func(e *judge.Event) {
		if e.ClosedBy == 0 {
			return
		}
		for _, r := range e.Unanswered(e.ClosedBy) {
			if isCustom(r.Method) && r.Cancelled == nil && e.HasRead(r) {
				e.BrokenAt(r.At, "the request was never answered")
			}
		}
	}},
	{ID: "EXT-5", On: failures(), Check: func(e *judge.Event) {
		if code, ok := e.Content.Integer("code"); ok && isCustom(e.Method) && code != codeMethod &&
			noSuchMethod.MatchString(e.Text("message")) {
			e.Broken("/code", "got code %d, want %d for an unknown method", code, codeMethod).
				Because(e.Request.At, "the request")
		}
	}},
	{ID: "EXT-6", On: results(), Check: func(e *judge.Event) {
		side := &e.Agent
		if e.Sender() == finding.Client {
			side = &e.Client
		}
		if isCustom(e.Method) && !side.Extends(extensionOf(e.Method)) && e.Once(e.Method) {
			e.Broken("", "the %s serves this method but does not advertise the extension", e.Sender()).
				Because(side.At, "its capabilities").Because(e.Request.At, "the request")
		}
	}},
}

// extensionOf returns a function that reports whether a name in a _meta announces a custom method: it is the method's
// name, or what the name begins with up to a "/", such as zed.dev for _zed.dev/workspace/buffers.
func extensionOf(method string) func(name string) bool {
	separators := "/"
	if !strings.Contains(method, "/") {
		separators = ".:"
	}
	return func(name string) bool {
		name = strings.TrimPrefix(name, "_")
		rest, ok := strings.CutPrefix(method[1:], name)
		return ok && name != "" && (rest == "" || strings.Contains(separators, rest[:1]))
	}
}

// traceKeys has the reserved keys of _meta and the form that the W3C's recommendations give them.
var traceKeys = []struct {
	name string
	form *regexp.Regexp
}{
	{"traceparent", regexp.MustCompile(`^([0-9a-e][0-9a-f]|f[0-9a-e])-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$`)},
	{"tracestate", regexp.MustCompile(`^([ \t]*([a-z0-9][a-z0-9_\-*/@]*=[ -+\--<>-~]*)?[ \t]*(,|$))*$`)},
	{"baggage", regexp.MustCompile(`^([ \t]*[!#$%&'*+\-.^_` + "`" + `|~0-9A-Za-z]+[ \t]*=[^,]*(,|$))*$`)},
}
