// Which requirements bind a program, and what shows that they were exercised.

package probe

import (
	_ "embed" // rows.txt
	"encoding/json"
	"strings"

	"github.com/acpgo/sdk/conformance/internal/player"
)

// Capabilities of agents and of clients.
const (
	loadSession = "loadSession"
	canResume   = "sessionCapabilities.resume"
	canClose    = "sessionCapabilities.close"
	canList     = "sessionCapabilities.list"
	canDelete   = "sessionCapabilities.delete"
	canRoots    = "sessionCapabilities.additionalDirectories"
	canLogout   = "auth.logout"
	canHTTP     = "mcpCapabilities.http"

	canRead  = "fs.readTextFile"
	canWrite = "fs.writeTextFile"
	canRun   = "terminal"
	canForm  = "elicitation.form"
	canOpen  = "elicitation.url"

	booleanOptions = "session.configOptions.boolean"
)

// evidence is what a scenario has shown of the program.
type evidence struct {
	Ran      map[string]bool  // the requirements that the scenario itself has exercised
	Traits   map[string]bool  // the events, for the table of requirements
	Granted  map[string]bool  // the sets of capabilities that were advertised when they happened
	Findings []player.Finding `json:",omitempty"`
	Itself   json.RawMessage  `json:",omitempty"` // the program's part of initialize, from the last launch that had it
}

func newEvidence() evidence {
	return evidence{Ran: map[string]bool{}, Traits: map[string]bool{}, Granted: map[string]bool{}}
}

// exercise says when a requirement counts as exercised, beside the scenarios that say so themselves.
type exercise struct {
	// need is a capability that the agent must advertise for the requirement to apply, or "modes" or "options", which
	// it must have.
	need string
	// on has the traits that exercise the requirement; any one of them is enough.
	on []string
	// reach says how to exercise the requirement. If it is empty, every agent must exercise it, so a MUST that never
	// ran is a failure.
	reach string
	// trait must show too if the program has the capability.
	trait, capability string
}

//go:embed rows.txt
var textOfRows string

// rowsOf returns the exercises of a table of rows.txt by requirement.
func rowsOf(table string) map[string]exercise {
	words, rows, now := map[string]string{}, map[string]exercise{}, ""
	for line := range strings.Lines(textOfRows) {
		line = strings.TrimSpace(line)
		word, text, isWord := strings.Cut(line, " = ")
		switch name, begins := strings.CutPrefix(line, "== "); {
		case begins:
			now = name
		case now == "" && isWord:
			words[word] = text
		case now == table && line != "":
			columns := append(strings.Split(line, "|"), "", "", "", "")
			for i := range columns {
				columns[i] = strings.TrimSpace(columns[i])
			}
			x := exercise{need: columns[2], reach: columns[3]}
			if columns[1] != "" {
				x.on = strings.Split(columns[1], ", ")
			}
			if text, ok := words[x.reach]; ok {
				x.reach = text
			}
			x.trait, x.capability, _ = strings.Cut(columns[4], " if ")
			for id := range strings.FieldsSeq(columns[0]) {
				rows[id] = x
			}
		}
	}
	return rows
}
