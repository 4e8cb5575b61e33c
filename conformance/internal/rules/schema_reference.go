// Rules of the page schema.

package rules

import (
	"slices"
	"strings"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

var schemaReferenceRules = []judge.Rule{
	{ID: "SCH-11", On: anyOf(requests(), results(), updates()), Check: func(e *judge.Event) {
		if !e.Sound("") {
			return
		}
		e.OpenNames().Walk(e.Content, "", func(where, name, definition string) {
			switch {
			case definition == "ElicitationPropertySchema", definition == "SessionConfigOptionCategory": // SCH-15, CFG-7
			case e.Version == 2 && definition == "SessionUpdate" &&
				name == "replay_complete": // in the Preview, not yet in the schema
			default:
				e.Broken(where, "%q is not defined by %s and does not begin with an underscore", finding.Clip(name), definition)
			}
		})
	}},
	{ID: "SCH-12", On: updates("notice"), Check: func(e *judge.Event) { e.Needs(&e.Client, "session.notices") }},
	{ID: "SCH-13", On: updates("compaction_update", "compaction_summary_chunk"),
		Check: func(e *judge.Event) { e.Needs(&e.Client, "session.compaction") }},
	{ID: "SCH-15", On: requests(judge.MethodElicit), Check: func(e *judge.Event) {
		for name, property := range e.Content.Members("requestedSchema", "properties") {
			if kind := property.Member("type"); kind.IsText() && !slices.Contains(formTypes, kind.Text()) &&
				!strings.HasPrefix(kind.Text(), "_") {
				e.Broken(schema.Pointer("/requestedSchema/properties", name)+"/type", "%q is not a type of form field",
					finding.Clip(kind.Text()))
			}
		}
	}},
}

// formTypes has the types that the properties of a form may have.
var formTypes = []string{"string", "number", "integer", "boolean", "array"}
