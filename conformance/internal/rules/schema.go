// The requirements that the schema and the JSON-RPC envelope judge. A finding has the id of the requirement that it
// breaks, or INI-6 if it breaks none of the others.

package rules

import (
	"github.com/acpgo/sdk/conformance/internal/judge"
)

// schemaRules has the requirements that the validator reports, so that they need no check of their own.
var schemaRules = []judge.Rule{
	{
		ID:       "OVW-3",
		Versions: both,
	},
	{
		ID:       "TRN-1",
		Versions: both,
		Wrong:    "<- {\"jsonrpc\":\"2.0\",\"method\":\"_note\",\"params\":{\"text\":\"\xe9\"}}", // not text
	},
	{
		ID:       "TRN-3",
		Versions: both,
	},
	{
		ID:       "TRN-4",
		Versions: both,
	},
	{
		ID:       "TRN-5",
		Versions: both,
	},
	{
		ID:       "TRN-6",
		Versions: both,
	},
	{
		ID:       "INI-6",
		Versions: both,
	},
	{
		ID:       "EXT-2",
		Versions: both,
	},
	{
		ID:       "EXT-3",
		Versions: both,
	},
	{
		ID:       "SCH-2",
		Versions: both,
	},
	{
		ID:       "SCH-3",
		Versions: []int{1},
	},
	{
		ID:       "SCH-4",
		Versions: both,
	},
}
