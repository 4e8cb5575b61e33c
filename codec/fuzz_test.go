package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/acpgo/sdk/codec"
)

func addSeeds(f *testing.F) {
	for _, c := range suite(f, "") {
		f.Add([]byte(c.text))
	}
	for _, n := range workloads() {
		if data, err := codec.Append(nil, n); err == nil && len(data) < 4096 {
			f.Add(data)
		}
	}
	f.Add([]byte(`{"a":[{"b~/\ud83d\ude39":1.0}],"a":[9223372036854775807,-9223372036854775808,18446744073709551615,1e2,10E-1]}`))
}

// jsontext refuses surrogates that are escaped alone, which this package replaces. This finds them
// in another way than the decoder does.
var escapedUnit = regexp.MustCompile(`\\(?:u[0-9a-fA-F]{4}|.)`)

func replaceLoneSurrogates(text []byte) []byte {
	units := escapedUnit.FindAllIndex(text, -1)
	out := bytes.Clone(text)
	code := func(i int) rune {
		u := text[units[i][0]:units[i][1]]
		if len(u) != 6 {
			return 0
		}
		v, _ := strconv.ParseUint(string(u[2:]), 16, 16)
		return rune(v)
	}
	for i := 0; i < len(units); i++ {
		r := code(i)
		if !utf16.IsSurrogate(r) {
			continue
		}
		if i+1 < len(units) && units[i][1] == units[i+1][0] && utf16.DecodeRune(r, code(i+1)) != utf8.RuneError {
			i++
			continue
		}
		copy(out[units[i][0]:], `\ufffd`)
	}
	return out
}

// oracleTokens is tokens by jsontext, with this package's options.
func oracleTokens(text []byte) ([]string, error) {
	options := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(false)}
	d := jsontext.NewDecoder(bytes.NewReader(replaceLoneSurrogates(text)), options...)
	var out []string
	for len(out) == 0 || d.StackDepth() > 0 {
		token, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		if s := token.String(); token.Kind() == '"' {
			out = append(out, `"`+s)
		} else {
			out = append(out, s)
		}
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, errors.New("more than one value")
	}
	return out, nil
}

func depthOf(tokens []string) (deepest int) {
	depth := 0
	for _, t := range tokens {
		switch t {
		case "{", "[":
			depth++
			deepest = max(deepest, depth)
		case "}", "]":
			depth--
		}
	}
	return deepest
}

// FuzzDecode compares what is accepted, and what is read, with jsontext.
func FuzzDecode(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		want, wantErr := oracleTokens(text)
		if wantErr == nil && depthOf(want) > codec.MaxDepth {
			wantErr = codec.ErrDepth
		}

		input := bytes.Clone(text)
		d := codec.NewDecoder(input)
		got := tokens(d)
		err := d.End()
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("read %q: got %v, jsontext %v", text, err, wantErr)
		}
		checkError(t, err)
		if err == nil && !slices.Equal(got, want) {
			t.Fatalf("read %q:\n got %q\nwant %q", text, got, want)
		}
		if !bytes.Equal(input, text) {
			t.Fatalf("input changed from %q to %q", text, input)
		}
		for _, r := range d.Repairs() {
			checkPointer(t, r.Pointer)
		}

		d.Reset(input)
		d.Skip()
		if skipErr := d.End(); !sameError(skipErr, err) {
			t.Fatalf("skip %q: got %v, but read %v", text, skipErr, err)
		}

		d.Reset(input)
		raw := d.Raw()
		if d.End() == nil && !bytes.Equal(raw, bytes.Trim(text, " \t\r\n")) {
			t.Fatalf("raw %q: got %q", text, raw)
		}
	})
}

// FuzzNumber compares numbers with math/big and strconv.
func FuzzNumber(f *testing.F) {
	for _, c := range suite(f, "y_number") {
		f.Add(strings.Trim(c.text, "[] "))
	}
	for _, s := range []string{
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
		"18446744073709551616", "1.8446744073709551615e19", "184467440737095516150e-1", "0e99999999999999999999", "1e-99999999999999999999",
		"255", "256", "-0.0", "100e-2", "0.00001e5", "1.5", "00", "1e", "-",
		"-0", "1.0", "1e2", "1.50e1", "0.000e-5", "9.223372036854775807e18", "92233720368547758070e-1", "12345678901234567890",
		"1" + strings.Repeat("0", 500) + "e-500", "0." + strings.Repeat("0", 500) + "1e501",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) || strings.Trim(text, "-+.eE0123456789") != "" || len(text) > 1000 {
			t.Skip()
		}
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			d := codec.NewDecoder([]byte(text))
			if got := d.Float(); d.End() != nil || got != f {
				t.Fatalf("%s: got float %v, %v, want %v", text, got, d.Err(), f)
			}
		} else if d := codec.NewDecoder([]byte(text)); d.Float() != 0 || d.End() == nil {
			t.Fatalf("%s: got a float, want an error", text)
		}

		value := exactInteger(text)
		for _, bits := range []int{8, 16, 32, 64} {
			d := codec.NewDecoder([]byte(text))
			got := d.Int(bits)
			low := new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), uint(bits-1)))
			high := new(big.Int).Sub(new(big.Int).Neg(low), big.NewInt(1))
			checkInteger(t, text, bits, d.End(), big.NewInt(got), value, low, high)

			d = codec.NewDecoder([]byte(text))
			unsigned := d.Uint(bits)
			high = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(bits)), big.NewInt(1))
			checkInteger(t, text, bits, d.End(), new(big.Int).SetUint64(unsigned), value, new(big.Int), high)
		}

		d := codec.NewDecoder([]byte(text))
		_, err := strconv.ParseInt(text, 10, 64)
		if got := d.Integral(); got != (err == nil) {
			t.Fatalf("%s: integral %v, want %v", text, got, err == nil)
		}
	})
}

// exactInteger returns the value of a JSON number of at most 1000 digits, or nil if that is not an integer
// or far out of range.
func exactInteger(text string) *big.Int {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	if exponent == "" {
		exponent = "0"
	}
	if strings.Trim(mantissa, "-0.") == "" {
		return new(big.Int)
	}
	if e, err := strconv.Atoi(exponent); err != nil || e > 1000 || e < -1000 {
		return nil
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok || !r.IsInt() {
		return nil
	}
	return r.Num()
}

func checkInteger(t *testing.T, text string, bits int, err error, got, want, low, high *big.Int) {
	t.Helper()
	fits := want != nil && want.Cmp(low) >= 0 && want.Cmp(high) <= 0
	if fits != (err == nil) || fits && got.Cmp(want) != 0 {
		t.Fatalf("%s in %d bits: got %v, %v, want %v", text, bits, got, err, want)
	}
	if err != nil && errors.Is(err, codec.ErrSyntax) {
		t.Fatalf("%s: %v matches ErrSyntax", text, err)
	}
}

// FuzzStr writes any string, and reads it with this package, encoding/json and jsontext.
func FuzzStr(f *testing.F) {
	for _, s := range []string{"", "a", "\x00\x1f\"\\/\b\f\n\r\t", "é\u2028\u2029𝄞", "\xff", "a\xc0\xafb", "\xed\xa0\x80", "12345678\n12345678\xe5", "<>&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := string([]rune(s)) // each bad byte replaced
		got, err := codec.Append([]byte("kept"), strValue(s))
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		text, ok := bytes.CutPrefix(got, []byte("kept"))
		if !ok {
			t.Fatalf("%q: prefix lost: %q", s, got)
		}
		if bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
			t.Fatalf("%q: control character in %q", s, text)
		}
		d := codec.NewDecoder(text)
		if back := d.Str(); d.End() != nil || back != want {
			t.Fatalf("%q: read back %q, %v", s, back, d.Err())
		}
		var back string
		if err := json.Unmarshal(text, &back); err != nil || back != want {
			t.Fatalf("%q: encoding/json read back %q, %v", s, back, err)
		}
		if back, err := jsontext.AppendUnquote(nil, text); err != nil || string(back) != want {
			t.Fatalf("%q: jsontext read back %q, %v", s, back, err)
		}
	})
}

type strValue string

func (x strValue) EncodeJSON(e *codec.Encoder) { e.Str(string(x)) }

// FuzzRaw writes any text as a raw value, and as the members of an object.
func FuzzRaw(f *testing.F) {
	addSeeds(f)
	f.Add([]byte("{ \"a\" : [ 1 , \"x \\\" \\\\\" ] ,\n\t\"b\\n\":{ } }"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d := codec.NewDecoder(text)
		object := d.Kind() == '{'
		d.Skip()
		valid := d.End() == nil

		got, err := codec.Append(nil, rawValue(text))
		if (err == nil) != valid {
			t.Fatalf("%q: got %v, want valid: %v", text, err, valid)
		}
		checkError(t, err)
		if valid {
			var want bytes.Buffer
			if err := json.Compact(&want, text); err != nil || !bytes.Equal(got, want.Bytes()) {
				t.Fatalf("%q:\n got %s\nwant %s, %v", text, got, want.Bytes(), err)
			}
		}

		spliced, err := codec.Append(nil, splice(text))
		if (err == nil) != (valid && object) {
			t.Fatalf("%q: spliced: got %v, want valid: %v", text, err, valid && object)
		}
		if err == nil {
			if _, err := oracleTokens(spliced); err != nil {
				t.Fatalf("%q: spliced: %s: %v", text, spliced, err)
			}
		}
	})
}

// splice writes an object's members between two others.
type splice []byte

func (x splice) EncodeJSON(e *codec.Encoder) {
	e.BeginObject()
	e.Name("first")
	e.Null()
	e.Members(json.RawMessage(x), "first", "last")
	e.Name("last")
	e.Null()
	e.EndObject()
}

// FuzzGenerated reads arbitrary bytes into generated types: what is accepted must survive a round
// trip, and what is refused must say where.
func FuzzGenerated(f *testing.F) {
	addSeeds(f)
	for _, c := range refusals {
		f.Add([]byte(c.text))
	}
	for _, c := range repaired {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		checkRoundTrip(t, text, new(notification), new(notification))
		checkRoundTrip(t, text, new(choice), new(choice))
		checkRoundTrip(t, text, new(tool), new(tool))
	})
}

func checkRoundTrip(t *testing.T, text []byte, v, again any) {
	t.Helper()
	d := codec.NewDecoder(bytes.Clone(text))
	codec.Decode(d, v)
	err := d.End()
	checkError(t, err)
	for _, r := range d.Repairs() {
		checkPointer(t, r.Pointer)
	}
	if err != nil {
		return
	}
	written, err := codec.Append(nil, v)
	if err != nil {
		checkError(t, err)
		t.Fatalf("%q: read as %+v, but not written: %v", text, v, err)
	}
	if err := codec.Unmarshal(written, again); err != nil {
		t.Fatalf("%q: written as %q, but not read: %v", text, written, err)
	}
	twice, err := codec.Append(nil, again)
	if err != nil || !bytes.Equal(written, twice) {
		t.Fatalf("%q: written as %q, then as %q, %v", text, written, twice, err)
	}
}

func checkError(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	e, ok := errors.AsType[*codec.Error](err)
	if !ok || e.Msg == "" || e.Offset < 0 {
		t.Fatalf("got %#v, want a complete *codec.Error", err)
	}
	checkPointer(t, e.Pointer)
}

var validPointer = regexp.MustCompile(`^(?s:/([^~/]|~[01])*)*$`)

func checkPointer(t *testing.T, pointer string) {
	t.Helper()
	if !validPointer.MatchString(pointer) {
		t.Fatalf("%q is not a JSON pointer", pointer)
	}
}

func sameError(a, b error) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return reflect.DeepEqual(a.Error(), b.Error())
}
