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
		Breaks: "A message with an id but no method, result or error; a message with both a result and an error; a " +
			"result or an " +
			"error together with a method.",
	},
	{
		ID:       "TRN-1",
		Versions: both,
		Breaks:   "A line that is not valid UTF-8.",
		Wrong:    "<- {\"jsonrpc\":\"2.0\",\"method\":\"_note\",\"params\":{\"text\":\"\xe9\"}}", // not text
	},
	{
		ID:       "TRN-3",
		Versions: both,
		Breaks: "A line that holds a JSON array, which is a batch of messages. (An empty array is not a message: " +
			"TRN-5, TRN-6.)",
	},
	{
		ID:       "TRN-4",
		Versions: both,
		Breaks: "A newline inside a message, on a transport that delimits messages by other means. On stdio, the two " +
			"halves are " +
			"lines that are not JSON (TRN-5, TRN-6).",
	},
	{
		ID:       "TRN-5",
		Versions: both,
		Breaks:   "A line of the agent that is not JSON, or is not a JSON-RPC message.",
	},
	{
		ID:       "TRN-6",
		Versions: both,
		Breaks:   "A line of the client that is not JSON, or is not a JSON-RPC message.",
	},
	{
		ID:       "INI-6",
		Versions: both,
		Breaks: "A message that the schema of the agreed version does not allow: a missing or wrong member, a method in " +
			"the wrong " +
			"direction.",
	},
	{
		ID:       "EXT-2",
		Versions: both,
		Breaks: "A member that the schema does not have, in an object whose members it lists. Custom data belongs " +
			"in _meta.",
	},
	{
		ID:       "EXT-3",
		Versions: both,
		Breaks:   "A method that the schema does not have and that does not begin with an underscore.",
	},
	{
		ID:       "SCH-2",
		Versions: both,
		Breaks: "An answer whose id is missing or matches no open request; an id of another type; a request with the " +
			"id of one " +
			"that is still open.",
	},
	{
		ID:       "SCH-3",
		Versions: []int{1},
		Breaks:   "A request whose id is null. (Version 2 does not allow it: SCH-2.)",
	},
	{
		ID:       "SCH-4",
		Versions: both,
		Breaks:   `A message whose jsonrpc is not "2.0", or missing.`,
	},
}
