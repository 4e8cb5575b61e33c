package probe

import (
	"testing"

	"github.com/acpgo/sdk/conformance/internal/player"
)

// Forms are filled in with what their fields take.
func TestAccept(t *testing.T) {
	for field, want := range map[string]string{
		`{"type":"array","minItems":2,"items":{"type":"string","enum":["a","b","c"]}}`: `["a","b"]`,
		`{"type":"array","items":{"anyOf":[{"const":"a","title":"A"}]}}`:               `["a"]`,
		`{"type":"integer","minimum":-9,"maximum":-3}`:                                 `-9`,
		`{"type":"number","minimum":0.25,"maximum":0.5}`:                               `0.25`,
		`{"type":"string","minLength":30}`:                                             `"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"`,
		`{"type":"string","pattern":"^[0-9]+$"}`:                                       `"1"`,
		`{"type":"string","format":"email"}`:                                           `"probe@example.com"`,
		`{"type":"string","default":"d"}`:                                              `"d"`,
		`{"type":"string","pattern":"^[A-Z]{3}-[0-9]+$"}`:                              "", // left out
	} {
		m := &player.Message{}
		m.Params = []byte(`{"mode":"form","requestedSchema":{"type":"object","properties":{"f":` + field + `}}}`)
		content := "{}"
		if want != "" {
			content = `{"f":` + want + `}`
		}
		if got := accept(m); got != `{"action":"accept","content":`+content+`}` {
			t.Errorf("%s: %s", field, got)
		}
	}
}
