// Rules of the page slash-commands.

package rules

import (
	"strings"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

var slashCommandRules = []judge.Rule{
	{ID: "CMD-2", On: offersCommands, Check: func(e *judge.Event) {
		where, list := commandsOf(e)
		for i, command := range list.Items() {
			if name := command.Text("name"); strings.HasPrefix(name, "/") {
				e.Broken(schema.Element(where, i)+"/name", "%q begins with a slash", finding.Clip(name))
			}
		}
	}},
}
