package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// decode reads a valid text.
func decode(tb testing.TB, text []byte) *Value {
	tb.Helper()
	v, _, err := read(text)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// TestDocument compares what is read with encoding/json, and which members are said to occur twice.
func TestDocument(t *testing.T) {
	for text, again := range map[string]string{
		`null`: "", `true`: "", ` [ 1 , -0.5, [[], {}], "\ud800\u00e9\n" ] `: "",
		`{"":1,"b":{"c":[{"d":null}]}}`:                          "",
		`{"\u0061":1,"b":0,"a":2,"a":3}`:                         "/a /a",
		`{"a":{"b":1,"b":2},"a":{"c":1}}`:                        "/a/b /a",
		`[0,{"a/b":{"~":1,"~":2}}]`:                              "/1/a~1b/~0",
		`{` + strings.Repeat(`"a":1,`, MaxFindings+5) + `"a":2}`: strings.TrimSpace(strings.Repeat("/a ", MaxFindings)),
	} {
		v, twice, err := read([]byte(text))
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		var want any
		must.Do(t, dec.Decode(&want))
		if got := v.tree(); err != nil || !reflect.DeepEqual(got, want) || strings.Join(twice, " ") != again {
			t.Errorf("%s: got %#v, %q, %v", text, got, twice, err)
		}
	}
	for _, text := range []string{``, `nul`, `01`, `{"a":1,}`, `[1}`, `1 2`, "\ufeff{}"} {
		if _, _, err := read([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), "not JSON: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestDocumentLimits shows that the deepest and largest documents are read, and that deeper and larger ones are
// refused.
func TestDocumentLimits(t *testing.T) {
	tier.Need(t, tier.Normal)
	const maxDepth = 10000 // of encoding/json
	for name, test := range map[string]struct {
		text string
		want string
	}{
		"deep arrays":  {strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth), ""},
		"deep objects": {strings.Repeat(`{"a":`, maxDepth-1) + "{}" + strings.Repeat("}", maxDepth-1), ""},
		"too deep":     {strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1), "not JSON: "},
		"many values":  {"[" + strings.Repeat("1,", maxValues-2) + "1]", ""},
		"too many":     {"[" + strings.Repeat("1,", maxValues-1) + "1]", errTooManyValues.Error()},
	} {
		_, _, err := read([]byte(test.text))
		if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
	}
}

// TestAccess reads values with the methods that rules use.
func TestAccess(t *testing.T) {
	var none *Value
	v := decode(t, []byte(`{"a":{"b":"x","\u0063":"\u0079","d":null,"e":[1,null,"z"],"f":true,"n":1e2,"o":1.5},"a2":1,"a2":"last"}`))
	if got := v.Text("a", "b") + v.Text("a", "c") + v.Text("a2") + v.Text("a", "n") + v.Text("none", "b"); got != "xylast" {
		t.Errorf("text: %q", got)
	}
	if !v.Present("a", "d") || v.Given("a", "d") || v.Member("a", "d") != nil || v.Present("a", "x") || none.Given() || !v.Given("a", "f") {
		t.Error("present or given")
	}
	if !v.True("a", "f") || v.True("a", "b") || v.True("a", "d") || !v.Member("a").IsObject() || !v.Member("a", "e").IsArray() || !v.Member("a", "b").IsText() || none.IsText() {
		t.Error("truth or types")
	}
	n, ok := v.Integer("a", "n")
	if _, no := v.Integer("a", "o"); n != 100 || !ok || no {
		t.Errorf("integer: %d, %t", n, ok)
	}
	if v.Len("a", "e") != 3 || v.Len() != 2 || v.Len("a", "b") != 0 {
		t.Error("length")
	}
	var list []string
	for i, item := range v.Items("a", "e") {
		list = append(list, fmt.Sprint(i, item.Text(), item.number()))
	}
	for name := range v.Members() {
		list = append(list, name)
	}
	for range v.Items("a") {
		list = append(list, "no array")
	}
	for range v.Members("a", "e") {
		list = append(list, "no object")
	}
	if got := strings.Join(list, " "); got != `01 1 2z a a2` {
		t.Errorf("items and members: %q", got)
	}
}
