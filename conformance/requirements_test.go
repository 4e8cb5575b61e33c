package conformance

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/gentest"

	"github.com/acpgo/sdk/conformance/internal/requirement"
	"github.com/acpgo/sdk/internal/test/must"
)

// regraded are the requirements for which the list has a milder word: the schema has a MUST for INI-19, the official
// kit counts two as failures, and for two the page refers to JSON-RPC.
var regraded = map[string]string{
	"INI-19": "MUST", "AUT-9": "kit", "MOD-2": "kit", "OVW-4": "JSON-RPC", "ADD-11": "JSON-RPC",
}

// added are requirements that the list does not have: the schema's description of updatedAt, the meaning of a refusal,
// the page's statement that a released terminal is invalid, and the filter of session/list.
var added = []string{"ADD-13", "ADD-14", "ADD-15", "ADD-16", "ADD-17"}

// TestAllRequirements compares the table of requirements with the list on which it is based: none is missing, and each
// has the word and the side of the list.
func TestAllRequirements(t *testing.T) {
	text := must.Get(os.ReadFile(filepath.Join(gentest.Shared(t, "protocol"), "requirements.md")))(t)
	sides := map[string]Side{"client": Client, "agent": Agent, "both": 0}
	listed := map[string]bool{}
	row := regexp.MustCompile(`(?m)^\| ([A-Z]+-\d+) \| ([^|]+) \| (\w+) \|`)
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		id, word, side := m[1], strings.TrimSpace(m[2]), m[3]
		listed[id] = true
		switch r := requirement.Find(id); {
		case r == nil:
			t.Errorf("%s is missing", id)
		case regraded[id] == r.Word && word == "implied":
		case r.Word != word || r.Side != sides[side]:
			t.Errorf("%s: got %s of side %v, want %s of side %s", id, r.Word, r.Side, word, side)
		}
	}
	if len(listed) == 0 {
		t.Fatal("no requirement is listed")
	}
	for _, r := range requirement.All {
		if !listed[r.ID] && r.Page != "version-2" && !slices.Contains(added, r.ID) { // a Preview, which the list does not number
			t.Errorf("%s is not in the list", r.ID)
		}
	}
	t.Logf("%d requirements", len(listed))
}
