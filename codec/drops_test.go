package codec_test

import (
	"fmt"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/codec"
)

// TestDrops: what a variant has no place for is reported if another variant has it, and nothing else is.
func TestDrops(t *testing.T) {
	for text, want := range map[string]string{
		`{"uri":"u","text":"x"}`:                       "[]",
		`{"uri":"u","blob":"eA==","other":1}`:          "[]",
		`{"uri":"u","text":"x","blob":null}`:           "[]",
		`{"text":"x","uri":"u","blob":"eA=="}`:         "[/blob: a member of another variant is dropped]",
		`{"blob":{"a":[1]},"uri":"u","text":"x"}`:      "[/blob: a member of another variant is dropped]",
		`{ "uri": "u" , "\u0062lob": 1, "text": "x" }`: "[/blob: a member of another variant is dropped]",
	} {
		d := codec.NewDecoder([]byte(text))
		var r acp.EmbeddedResourceResource
		r.DecodeJSON(d)
		var got []string
		for _, repair := range d.Repairs() {
			got = append(got, repair.Pointer+": "+repair.Msg)
		}
		if err := d.End(); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
}
