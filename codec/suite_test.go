package codec_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/must"
)

type suiteCase struct{ name, text string }

// suite returns the texts of JSONTestSuite whose names begin with a prefix.
func suite(t testing.TB, prefix string) (cases []suiteCase) {
	t.Helper()
	data := must.Get(os.ReadFile("testdata/suite.txt"))(t)
	for line := range strings.Lines(string(data)) {
		name, quoted, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok || !strings.HasPrefix(name, prefix) {
			continue
		}
		text, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		cases = append(cases, suiteCase{name, text})
	}
	if len(cases) == 0 {
		t.Fatalf("no texts %s", prefix)
	}
	return cases
}

func TestSuite(t *testing.T) {
	for name, read := range map[string]func(text string) error{"skip": skipAll, "read": readAll, "write raw": writeRaw} {
		for _, c := range suite(t, "y_") {
			if err := read(c.text); err != nil {
				t.Errorf("%s: %s: %v", c.name, name, err)
			}
		}
		for _, c := range suite(t, "n_") {
			if err := read(c.text); !errors.Is(err, codec.ErrSyntax) {
				t.Errorf("%s: %s: got %v, want ErrSyntax", c.name, name, err)
			}
		}
	}
}

// What JSONTestSuite leaves open.
func TestSuiteDecided(t *testing.T) {
	for _, c := range suite(t, "i_") {
		d := codec.NewDecoder([]byte(c.text))
		if d.Kind() == '{' {
			codec.DecodeRawMap(d)
		} else {
			tokens(d)
		}
		err := d.End()
		switch {
		case strings.HasPrefix(c.name, "i_number_"):
			// A number of any size is JSON, and kept as it is in raw values.
			if err := skipAll(c.text); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		case strings.Contains(c.text, `\u`):
			// Peers cut strings between surrogates: accepted, replaced, reported.
			if err != nil || len(d.Repairs()) == 0 {
				t.Errorf("%s: got %v and repairs %v, want accepted with a repair", c.name, err, d.Repairs())
			}
		default:
			// RFC 8259 section 8.1: UTF-8, and no byte order mark.
			if !errors.Is(err, codec.ErrSyntax) {
				t.Errorf("%s: got %v, want ErrSyntax", c.name, err)
			}
		}
	}
}

// As a float64, a number that is too small is zero, one that is too large an error, but not of syntax.
func TestSuiteFloats(t *testing.T) {
	refused := map[string]bool{
		"i_number_huge_exp": true, "i_number_neg_int_huge_exp": true, "i_number_pos_double_huge_exp": true,
		"i_number_real_neg_overflow": true, "i_number_real_pos_overflow": true,
	}
	for _, c := range suite(t, "i_") {
		if !strings.HasPrefix(c.name, "i_number_") {
			continue
		}
		d := codec.NewDecoder([]byte(c.text))
		for a := d.Array(); a.Next(); {
			d.Float()
		}
		if err := d.End(); (err != nil) != refused[c.name] || errors.Is(err, codec.ErrSyntax) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestSuiteDeep(t *testing.T) {
	for _, c := range []suiteCase{
		{"i_structure_500_nested_arrays", strings.Repeat("[", 500) + strings.Repeat("]", 500)},
		{"n_structure_100000_opening_arrays", strings.Repeat("[", 100000)},
		{"n_structure_open_array_object", strings.Repeat(`[{"":`, 50000)},
	} {
		if err := skipAll(c.text); !errors.Is(err, codec.ErrDepth) {
			t.Errorf("%s: got %v, want ErrDepth", c.name, err)
		}
	}
}

func skipAll(text string) error {
	d := codec.NewDecoder([]byte(text))
	d.Skip()
	return d.End()
}

func readAll(text string) error {
	d := codec.NewDecoder([]byte(text))
	tokens(d)
	return d.End()
}

func writeRaw(text string) error {
	_, err := codec.Append(nil, rawValue(text))
	return err
}

type rawValue string

func (x rawValue) EncodeJSON(e *codec.Encoder) { e.Raw([]byte(x)) }

// tokens reads any value with the methods for each kind, and returns what it is made of: strings and
// names unescaped after a quote, numbers as they are written, and punctuation.
func tokens(d *codec.Decoder) (out []string) {
	switch d.Kind() {
	case '{':
		out = append(out, "{")
		for o := d.Object(); o.Next(); {
			out = append(out, `"`+string(o.Name()))
			out = append(out, tokens(d)...)
		}
		return append(out, "}")
	case '[':
		out = append(out, "[")
		for a := d.Array(); a.Next(); {
			out = append(out, tokens(d)...)
		}
		return append(out, "]")
	case '"':
		return []string{`"` + d.Str()}
	case '0':
		return []string{string(d.Raw())}
	case 't', 'f':
		if d.Bool() {
			return []string{"true"}
		}
		return []string{"false"}
	case 'n':
		d.Null()
		return []string{"null"}
	}
	d.Skip() // fails
	return nil
}
