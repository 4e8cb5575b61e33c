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
	{
		ID:       "SCH-11",
		Versions: both,
		Breaks: "A tag, or another name from an open list, that the protocol does not define and that does not " +
			"begin with an " +
			"underscore: such names are reserved for later versions of the protocol.",
		On: anyOf(requests(), results(), updates()),
		Check: func(e *judge.Event) {
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
		},
	},
	{
		ID:     "SCH-12",
		Breaks: "A notice for a client that does not advertise session.notices. (In version 2, every client receives them.)",
		On:     updates("notice"),
		Check:  func(e *judge.Event) { e.Needs(&e.Client, "session.notices") },
	},
	{
		ID: "SCH-13",
		Breaks: "A compaction_update or compaction_summary_chunk for a client that does not advertise " +
			"session.compaction. (In " +
			"version 2, every client receives them.)",
		On:    updates("compaction_update", "compaction_summary_chunk"),
		Check: func(e *judge.Event) { e.Needs(&e.Client, "session.compaction") },
	},
	{
		ID:       "SCH-15",
		Versions: both,
		Breaks: "A property of a form whose type is not string, number, integer, boolean or array, and does not " +
			"begin with an " +
			"underscore.",
		On: requests(judge.MethodElicit),
		Check: func(e *judge.Event) {
			for name, property := range e.Content.Members("requestedSchema", "properties") {
				if kind := property.Member("type"); kind.IsText() && !slices.Contains(formTypes, kind.Text()) &&
					!strings.HasPrefix(kind.Text(), "_") {
					e.Broken(schema.Pointer("/requestedSchema/properties", name)+"/type", "%q is not a type of form field",
						finding.Clip(kind.Text()))
				}
			}
		},
	},
}

// formTypes has the types that the properties of a form may have.
var formTypes = []string{"string", "number", "integer", "boolean", "array"}
