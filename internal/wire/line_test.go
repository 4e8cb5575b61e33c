package wire

import (
	"strings"
	"testing"
)

func TestLineReaderLetsGoOfBigBuffers(t *testing.T) {
	in := strings.Repeat("x", 6<<20) + "\n" + strings.Repeat("y\n", 100_000)
	r := NewLineReader(strings.NewReader(in), 64<<20)
	for {
		if _, err := r.Next(nil); err != nil {
			break
		}
	}
	if len(r.buf) > readChunk {
		t.Errorf("still holds %d bytes", len(r.buf))
	}
}

func TestRecoverID(t *testing.T) {
	for _, test := range []struct {
		head, tail string
		id         string
		response   bool
		ok         bool
	}{
		{`{"jsonrpc":"2.0","id":5,"method":"m","params":{"a":"xxx`, ``, "5", false, true},
		{`{"jsonrpc":"2.0","method":"m","id":"a","params":{"a":"xxx`, ``, `"a"`, false, true},
		{`{"jsonrpc":"2.0","method":"m","params":{"a":"xxx`, `xxx"}}`, "null", false, false},
		{`{"jsonrpc":"2.0","method":"m","params":{"a":"xxx`, `xxx"},"id":7}`, "7", false, true},
		{`{"jsonrpc":"2.0","method":"m","params":{"a":"xxx`, `xxx","id":7}}`, "null", false, false},
		{`{"id":7,"result":{"a":"xxx`, ``, "7", true, true},
		{`{"result":{"a":"xxx`, `"x"`, "null", true, false},
		{`{"result":{"a":"xxx`, `"x"}, "id" : "q" } `, `"q"`, true, true},
		{`{"result":{"a":"xxx`, `"x"},"id":7.0}`, "7.0", true, true},
		{`{"result":{"a":"xxx`, `"x"}, "id" : 7 , "jsonrpc" : "2.0" }`, "7", true, true},
		{`{"result":{"a":"xxx`, `"x","id":7,"jsonrpc":"2.0"}}`, "null", true, false},
		{`{"result":{"a":"xxx`, `"x"},"id":7.-}`, "null", true, false},
		{`{"result":{"a":"xxx`, `"x"},"id":"id"}`, `"id"`, true, true},
		{`{"result":{"a":"xxx`, `"x"},"id":"\"","jsonrpc":"1.0"}`, "null", true, false},
		{`{"result":{"a":"xxx`, `"x"},"id":null}`, "null", true, false},
		{`{"result":{"a":"xxx`, `"id","x"},"ids":7}`, "null", true, false},
		{`garbage`, `garbage`, "null", false, false},
	} {
		id, response, ok := RecoverID([]byte(test.head), []byte(test.tail))
		if id.String() != test.id || response != test.response || ok != test.ok {
			t.Errorf("%s … %s: %v %v %v", test.head, test.tail, id, response, ok)
		}
	}
}
