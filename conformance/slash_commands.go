// Rules of the page slash-commands.

package conformance

import "strings"

var slashCommandRules = []rule{
	{
		ID:       "CMD-2",
		Versions: both,
		Breaks:   "A command whose name begins with a slash: the client writes the slash. (The members of a command are in the schema.)",
		Right:    `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"web","description":"Search the web","input":{"hint":"query"}}]}}}`,
		Wrong:    `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"/web","description":"Search the web"}]}}}`,
		on:       updates("available_commands_update"),
		check: func(e *event) {
			for i, command := range items(e.content, "update", "availableCommands") {
				if name := text(command, "name"); strings.HasPrefix(name, "/") {
					e.broken(element("/update/availableCommands", i)+"/name", "%q begins with a slash", clip(name))
				}
			}
		},
	},
}
