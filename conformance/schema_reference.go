// Rules of the page schema.

package conformance

import (
	"slices"
	"strings"
)

var schemaReferenceRules = []rule{
	{
		ID:       "SCH-11",
		Versions: both,
		Breaks: "A tag, or another name from a list that may grow, that the protocol does not have and that does not begin with an underscore: " +
			"such names are kept for later versions of the protocol.",
		Right: withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"_example.com/voice","message":"Which?"}}`,
		Wrong: withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"voice","message":"Which?"}}`,
		on:    on(requests(), results(), updates()),
		check: func(e *event) {
			names := e.openNames()
			if !names.reserved(e.content) || !e.sound("") {
				return
			}
			names.walk(e.content, "", func(where, name, definition string) {
				if definition != "ElicitationPropertySchema" && definition != "SessionConfigOptionCategory" { // SCH-15, CFG-7
					e.broken(where, "%q is not listed by %s", clip(name), definition)
				}
			})
		},
	},
	{
		ID:     "SCH-12",
		Breaks: "A notice for a client that does not state session.notices. (In version 2 every client gets them.)",
		Right: connected(`{"session":{"notices":{}}}`) + `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"notice","severity":"info","title":"Indexing"}}}`,
		Wrong: `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"notice","severity":"info","title":"Indexing"}}}`,
		on:    updates("notice"),
		check: func(e *event) { e.needs(&e.client, "session.notices") },
	},
	{
		ID:     "SCH-13",
		Breaks: "A compaction_update or compaction_summary_chunk for a client that does not state session.compaction. (In version 2 every client gets them.)",
		Right: connected(`{"session":{"compaction":{}}}`) + `
			<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"compaction_update","compactionId":"c","status":"in_progress"}}}`,
		Wrong: `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"compaction_update","compactionId":"c","status":"in_progress"}}}`,
		on:    updates("compaction_update", "compaction_summary_chunk"),
		check: func(e *event) { e.needs(&e.client, "session.compaction") },
	},
	{
		ID:       "SCH-15",
		Versions: both,
		Breaks:   "A property of a form whose type is neither string, number, integer, boolean nor array, and does not begin with an underscore.",
		Right:    withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{"size":{"type":"string","enum":["s","l"]}}}}}`,
		Wrong:    withElicitation + `<- {"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s","mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{"size":{"type":"object"}}}}}`,
		on:       requests(methodElicit),
		check: func(e *event) {
			for name, property := range membersOf(e.content, "requestedSchema", "properties") {
				if kind := member(property, "type"); isText(kind) && !slices.Contains(formTypes, text(kind)) && !strings.HasPrefix(text(kind), "_") {
					e.broken(pointer("/requestedSchema/properties", name)+"/type", "%q is no type of a form's field", clip(text(kind)))
				}
			}
		},
	},
}

// formTypes are the types of the properties of a form.
var formTypes = []string{"string", "number", "integer", "boolean", "array"}
