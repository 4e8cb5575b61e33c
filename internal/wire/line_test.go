package wire

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestLineReader(t *testing.T) {
	long := strings.Repeat("z", 300_000)
	for _, test := range []struct {
		in   string
		want []string // "!" is a line that was too long
	}{
		{"", nil},
		{"\n \n\r\n\t\n", nil},
		{"a\nb\n", []string{"a", "b"}},
		{"a\nb", []string{"a", "b"}},
		{"a\r\nb\r\n", []string{"a\r", "b\r"}},
		{long[:200_000] + "\nb\n", []string{long[:200_000], "b"}},
		{long[:200_001] + "\nb\n", []string{"!", "b"}},
		{long + "\n" + long + "\nb\n" + long + "\n", []string{"!", "!", "b", "!"}},
		{"a\n" + long, []string{"a", "!"}},
		{"\ufeffa\n\ufeffb\n", []string{"a", "\ufeffb"}},
		{"\ufeff\n\ufeffa\n", []string{"\ufeffa"}},
		{"\ufeff" + long[:200_000], []string{long[:200_000]}},
		{"\ufeff", nil},
		{"\xef\xbba", []string{"\xef\xbba"}},
		{"\xef", []string{"\xef"}},
	} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"whole":           func(r io.Reader) io.Reader { return r },
			"byte":            iotest.OneByteReader,
			"half":            iotest.HalfReader,
			"data with error": iotest.DataErrReader,
		} {
			r := NewLineReader(wrap(strings.NewReader(test.in)), 200_000)
			var got []string
			var err error
			for {
				var line []byte
				if line, err = r.Next(nil); err == nil {
					got = append(got, string(line))
				} else if tooLong, ok := errors.AsType[*LongLine](err); ok {
					if len(tooLong.Head) > keepEnds || len(tooLong.Tail) > keepEnds {
						t.Errorf("kept %d bytes", len(tooLong.Head))
					}
					got = append(got, "!")
				} else {
					break
				}
			}
			if err != io.EOF || fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("%.20q (%s): %d lines, %v", test.in, name, len(got), err)
			}
		}
	}
}

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
