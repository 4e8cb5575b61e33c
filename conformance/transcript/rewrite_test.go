package transcript

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// keep replaces no string.
func keep(_, value string) (string, bool) { return value, false }

// Only the replaced strings change, and the line remains a message.
func FuzzRewrite(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0", "id":"sessionId","params":{"sessionId":"a\u00e9","list":["b",{"x":"c"}],"n":1e2}}`))
	f.Add([]byte(`{"id":{"id":"x"},"result":{"id":"\ud83d\ude00"}}`))
	f.Add([]byte(`[{"a":"b"}]`))
	f.Fuzz(func(t *testing.T, line []byte) {
		same := rewrite(line, nil, func(_, value string) (string, bool) { return value, true })
		if !bytes.Equal(same, line) {
			t.Fatalf("%q became %q", line, same)
		}
		const mark = "<\"new\">"
		changed := rewrite(line, nil, func(_, value string) (string, bool) { return mark, true })
		withID := rewrite(line, []byte(`17`), keep)
		var before, after map[string]any
		if json.Unmarshal(line, &before) != nil {
			return
		}
		for _, out := range [][]byte{changed, withID} {
			if err := json.Unmarshal(out, &after); err != nil {
				t.Fatalf("%q became %q: %v", line, out, err)
			}
		}
	})
}

func TestRewrite(t *testing.T) {
	line := `{ "id" : "keep", "method":"keep","params":{"sessionId": "old" ,"text":"a old one","list":["old"],"n":1.0}}`
	got := rewrite([]byte(line), nil, func(member, value string) (string, bool) {
		return "<" + member + ">", value == "old"
	})
	want := strings.NewReplacer(`"sessionId": "old"`, `"sessionId": "<sessionId>"`, `["old"]`, `["<list>"]`).Replace(line)
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := string(rewrite([]byte(line), []byte("7"), keep)), strings.Replace(line, `"keep"`, "7", 1); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := rewrite([]byte(`{"a":1}`), []byte("7"), keep); string(got) != `{"a":1}` {
		t.Errorf("got %s", got)
	}
}
