package wire

import (
	"strings"
	"testing"

	"github.com/acpgo/sdk/codec"
)

// Parse says where the id is, and what is wrong with what can only be a response.
func TestParse(t *testing.T) {
	for line, want := range map[string]struct{ id, broken string }{
		`{"jsonrpc":"2.0","id":7,"method":"m"}`:                   {id: `7`},
		`{ "method":"m", "id" : "\u0061" ,"jsonrpc":"2.0"}`:       {id: `"\u0061"`},
		`{"jsonrpc":"2.0","id":1.50,"result":null}`:               {id: `1.50`},
		`{"jsonrpc":"2.0","id":null,"error":{}}`:                  {id: `null`},
		`{"jsonrpc":"2.0","method":"m","params":{"id":1}}`:        {},
		`{"jsonrpc":"2.0","id":1,"result":1,"error":{}}`:          {id: `1`, broken: "result and error in one response"},
		`{"jsonrpc":"2.0","id":1}`:                                {broken: "neither result nor error"},
		`{"jsonrpc":"1.0","result":1,"id":1}`:                     {id: `1`, broken: `jsonrpc is not "2.0"`},
		`{"jsonrpc":"2.0","id":{},"method":"not an id"}`:          {},
		`{"jsonrpc":"2.0","id":1,"method":"m","result":"a call"}`: {},
	} {
		m := Parse(codec.NewDecoder(nil), []byte(line))
		broken := ""
		if m.Broken != nil {
			broken = m.Broken.Error()
		}
		if got := strings.TrimSpace(line[m.IDAt:m.IDEnd]); got != want.id || broken != want.broken {
			t.Errorf("%s: %q, %q", line, got, broken)
		}
	}
}
