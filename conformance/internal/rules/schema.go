// The requirements that the schema and the JSON-RPC envelope judge. A finding has the id of the requirement that it
// breaks, or INI-6 if it breaks none of the others.

package rules

import "github.com/acpgo/sdk/conformance/internal/judge"

// schemaRules has the requirements that the validator reports, so that they need no check of their own.
var schemaRules = []judge.Rule{
	{ID: "OVW-3"}, {ID: "TRN-3"}, {ID: "TRN-4"}, {ID: "TRN-5"}, {ID: "TRN-6"}, {ID: "INI-6"}, {ID: "EXT-2"}, {ID: "EXT-3"},
	{ID: "SCH-2"}, {ID: "SCH-3"}, {ID: "SCH-4"},
	{ID: "TRN-1", Wrong: "<- {\"jsonrpc\":\"2.0\",\"method\":\"_note\",\"params\":{\"text\":\"\xe9\"}}"}, // not text
}
