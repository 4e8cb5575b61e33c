package codec_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/acpgo/sdk/codec"
)

// A name is as long as the peer likes, and may be part of the pointers of hundreds of repairs.
func TestLongNamesInPointers(t *testing.T) {
	for name, want := range map[string]string{
		strings.Repeat("n", 256):            "/" + strings.Repeat("n", 256),
		strings.Repeat("n", 257):            "/" + strings.Repeat("n", 256) + "…",
		strings.Repeat("é", 200):            "/" + strings.Repeat("é", 128) + "…",
		"n" + strings.Repeat("é", 200):      "/n" + strings.Repeat("é", 127) + "…",
		strings.Repeat("~", 300):            "/" + strings.Repeat("~0", 256) + "…",
		strings.Repeat(`\n`, 200):           "/" + strings.Repeat("\n", 128) + "…",
		"nn" + strings.Repeat("é\\\"", 200): "/nn" + strings.Repeat("é\"", 63) + "é…",
	} {
		err := codec.Unmarshal([]byte(`{"`+name+`":1}`), new(stringMap))
		if failure, ok := errors.AsType[*codec.Error](err); !ok || failure.Pointer != want {
			t.Errorf("%.20s…: got %v, want %s", name, err, want)
		}
	}
}

// stringMap is an object of strings.
type stringMap map[string]string

func (m *stringMap) EncodeJSON(e *codec.Encoder) { codec.EncodeStringMap(e, *m) }
func (m *stringMap) DecodeJSON(d *codec.Decoder) { *m = codec.DecodeStringMap(d) }
