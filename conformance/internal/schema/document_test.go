package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/acpgo/sdk/internal/test/tier"
)

// decode reads a valid text.
func decode(tb testing.TB, text []byte) *Value {
	tb.Helper()
	var d document
	if err := d.read(text); err != nil {
		tb.Fatal(err)
	}
	return d.root()
}

// texts are valid and invalid JSON texts.
var texts = []string{
	``, ` `, `null`, `true`, `false`, `nul`, `nulll`, `tru`, `True`, `0`, `-0`, `00`, `01`, `-`, `-1`, `+1`, `1.`, `1.5`, `.5`, `1e`, `1e5`, `1E+5`, `1e-`, `1e-05`, `-1.5e3`,
	`0e`, `0x1`, `1 2`, `1,`, `NaN`, `1e99999999999999999999`, `123456789012345678901234567890.5`, `-12345678901234567890`,
	`""`, `"`, `"a`, `"a"b`, `"\"`, `"\\"`, `"\x"`, `"\u"`, `"\u12"`, `"\u00e9"`, `"\uD83D\uDE00"`, `"\ud800"`, `"\uDE00\uD83D"`, `"\u000g"`, "\"\n\"", "\"\x00\"", "\"\x1f\"", "\"\x7f\"",
	`"é"`, `"漢字 😀"`, `"1234567\"9"`, `"12345678\n"`, `"123456\t78"`, "\"1234567\x01\"", "\"12345678\x01\"", `"\/\b\f\n\r\t\"\\"`, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa`,
	`[]`, `[`, `]`, `[,]`, `[1,]`, `[,1]`, `[1 2]`, `[1,2]`, ` [ 1 , 2 ] `, `[[],[[]]]`, `[1}`, `[1,,2]`, `["a","b"]`, "[\t1\r,\n2 ]", `[1]]`,
	`{}`, `{`, `}`, `{,}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1}`, `{a:1}`, `{"a":1 "b":2}`, `{"a":1,"b":{"c":[{"d":null}]}}`, ` { "a" : 1 , "b" : 2 } `, `{"a":1]`, `{"a" 1}`, `{1:1}`, `{"a"::1}`,
	`{"":1}`, `{"\u0061":1}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"\u0061":1,"a":2,"a":3}`, `{"a":{"b":1,"b":2},"a":{"c":1}}`, `[{"a":1,"a":1}]`,
	`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"a":10,"\u0062":11}`, `{"a/b":{"~":1,"~":2}}`,
	"\ufeff{}", "{}\x00", "\x00", "{}\x0b", "\u00a0{}",
}

// TestDocument compares the reading of texts with encoding/json, for each text and its variants with one byte removed
// or changed.
func TestDocument(t *testing.T) {
	tier.Need(t, tier.Normal)
	for _, text := range texts {
		compareDocuments(t, []byte(text))
		for i := range len(text) {
			compareDocuments(t, slices.Concat([]byte(text[:i]), []byte(text[i+1:])))
			for _, c := range []byte("\"\\{}[]:,0-.eEtu \x01") {
				changed := []byte(text)
				changed[i] = c
				compareDocuments(t, changed)
			}
		}
	}
}

// FuzzDocument is TestDocument for any text.
func FuzzDocument(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(compareDocuments)
}

func compareDocuments(t *testing.T, text []byte) {
	if !utf8.Valid(text) {
		return
	}
	t.Helper()
	var d document
	err := d.read(text)
	if (err == nil) != json.Valid(text) {
		t.Fatalf("%q: got %v, json.Valid is %v", text, err, json.Valid(text))
	}
	if err != nil {
		if !strings.HasPrefix(err.Error(), "not JSON: ") {
			t.Errorf("%q: %v", text, err)
		}
		return
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var twice []string
	want := reference(t, dec, &twice)
	if got := d.root().tree(); !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: got %#v, want %#v", text, got, want)
	}
	if got := d.twice(); len(twice) != d.again || !slices.Equal(got, twice[:min(len(twice), MaxFindings)]) {
		t.Fatalf("%q: %d members occur twice: %q, want %q", text, d.again, got, twice)
	}
	// A copy of each value is the same value.
	for i := range d.nodes {
		n := &d.nodes[i]
		if c := n.Copy(); c.raw() != n.raw() || !reflect.DeepEqual(c.tree(), n.tree()) || c.document == n.document {
			t.Fatalf("%q: the copy of %s is %s", text, n.raw(), c.raw())
		}
	}
}

// reference reads a value with encoding/json, and the pointers to members whose name occurred before.
func reference(t *testing.T, dec *json.Decoder, twice *[]string, path ...string) any {
	t.Helper()
	token, err := dec.Token()
	if err != nil {
		t.Fatal(err)
	}
	switch token {
	case json.Delim('['):
		items := []any{}
		for dec.More() {
			items = append(items, reference(t, dec, twice, append(path, fmt.Sprint(len(items)))...))
		}
		dec.Token()
		return items
	case json.Delim('{'):
		members := map[string]any{}
		for dec.More() {
			token, err := dec.Token()
			if err != nil {
				t.Fatal(err)
			}
			name := token.(string)
			below := append(path, name)
			if _, again := members[name]; again {
				*twice = append(*twice, Pointer("", below...))
			}
			members[name] = reference(t, dec, twice, below...)
		}
		dec.Token()
		return members
	}
	if n, ok := token.(json.Number); ok {
		return exact(n)
	}
	return token
}

// TestDocumentLimits shows that the deepest and largest documents are read, and that deeper and larger ones are
// refused.
func TestDocumentLimits(t *testing.T) {
	tier.Need(t, tier.Normal)
	var d document
	for name, test := range map[string]struct {
		text string
		want error
	}{
		"deep arrays":  {strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth), nil},
		"deep objects": {strings.Repeat(`{"a":`, maxDepth-1) + "{}" + strings.Repeat("}", maxDepth-1), nil},
		"many values":  {"[" + strings.Repeat("1,", maxValues-2) + "1]", nil},
		"too many":     {"[" + strings.Repeat("1,", maxValues-1) + "1]", errTooManyValues},
	} {
		if err := d.read([]byte(test.text)); err != test.want {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
		if d.release(); cap(d.nodes) > keptNodes || d.text != "" {
			t.Errorf("%s: %d nodes and %d bytes are kept", name, cap(d.nodes), len(d.text))
		}
	}
	compareDocuments(t, []byte(strings.Repeat("[", maxDepth+1)+strings.Repeat("]", maxDepth+1)))
	compareDocuments(t, []byte(strings.Repeat(`{"a":`, maxDepth)+"{}"+strings.Repeat("}", maxDepth)))
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
		list = append(list, fmt.Sprint(i, item.raw()))
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
	if got := strings.Join(list, " "); got != `01 1 2"z" a a2` {
		t.Errorf("items and members: %q", got)
	}
	kept := v.Member("a").Copy()
	clear(v.document.nodes)
	if names := slices.Sorted(maps.Keys(kept.tree().(map[string]any))); !slices.Equal(names, []string{"b", "c", "d", "e", "f", "n", "o"}) || kept.Text("e") != "" || kept.Text("c") != "y" {
		t.Errorf("kept: %v", names)
	}
}
