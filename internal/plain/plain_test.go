package plain

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/acpgo/sdk/internal/test/must"
)

// hostile is what a terminal would obey, and what would change how the text around it looks.
const hostile = "a\x1b[2J\x1b]52;c;cm0=\x07b\u009bc\u202egnp\u2066\u200fd\u2028e\U000e0041\rf\bg\xffh"

// visible is how it is shown.
const visible = `a\x1b[2J\x1b]52;c;cm0=\ab\u009bc\u202egnp\u2066\u200fd\u2028e\U000e0041\rf\bg` + "\ufffdh"

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"one\n\ttwo\n":          "one\n\ttwo\n",
		"dos\r\nlines\r\n":      "dos\nlines\n",
		"wide\u00a0\u3000space": "wide  space",
		"grüße 世界 👩\u200d🚀":     "grüße 世界 👩\u200d🚀",
		hostile:                 visible,
	} {
		if got := Text(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if got := Screen(text); got != want {
			t.Errorf("Screen(%q): got %q, want %q", text, got, want)
		}
	}
	const commands = "::add-mask::x\n##[error]y"
	if got := Screen(commands); got != commands {
		t.Errorf("Screen: got %q", got)
	}
}

func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"one\ntwo\tthree\r\n":                 `one\ntwo\tthree\r\n`,
		hostile:                               visible,
		strings.Repeat("ä", maxLine) + "more": strings.Repeat("ä", maxLine) + "… (4 bytes more)",
	} {
		if got := Line(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// Whatever Unicode allows programs to ignore, and what is blank, is shown as an escape, unless it shapes the character
// before it.
func TestInvisible(t *testing.T) {
	for r := range unicode.MaxRune {
		if !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Cf) && r != '\u2800' {
			continue
		}
		for _, before := range []string{"", "a", "1", "\u3164", "ä", "\u200d", "\ufe0f"} {
			if before == "\ufe0f" && (r == '\u200d' || r == '\u200c') {
				continue
			}
			for _, got := range []string{Text(before + string(r)), Screen(before + string(r)), Line(before + string(r)), Exact("世" + string(r))} {
				if strings.ContainsRune(got, r) {
					t.Fatalf("%U after %q is shown as it is", r, before)
				}
			}
		}
	}
	for _, text := range []string{"❤\ufe0f\u200d🔥 ⚠\ufe0f ↔\ufe0f ‼\ufe0f", "می\u200cخواهم", "क्\u200dष", "👩🏽\u200d🚀"} {
		if got := Text(text); got != text {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
}

func TestExact(t *testing.T) {
	for text, want := range map[string]string{
		"a  b\tc d\n\te \n f": "a  b\\tc d\n\\te\\x20\n f", "  a ": `\x20\x20a\x20`, "   ": `\x20\x20\x20`, "a\u00a0b\u3000c": `a\u00a0b\u3000c`,
		"👩\u200d🚀❤\ufe0f": `👩\u200d🚀❤\ufe0f`, "\r\n": "\\r\n", "": "", hostile: visible,
	} {
		if got := Exact(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// A text in pieces is converted like the whole, except that a command that is split is escaped where the second piece begins.
func TestStream(t *testing.T) {
	for _, text := range []string{"::add-mask::x\n \t::error::y\na::b\n::", "##[error]x ###vso[y] #[z] ## Title [x]\n#\n#[", hostile, "❤\ufe0f\u200d🔥"} {
		for size := 1; size <= len(text); size++ {
			var s Stream
			var got strings.Builder
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				for n < len(rest) && !utf8.RuneStart(rest[n]) {
					n++
				}
				got.WriteString(s.Text(rest[:n]))
				rest = rest[n:]
			}
			if size == len(text) && got.String() != Text(text) {
				t.Errorf("the whole: %q, want %q", got.String(), Text(text))
			}
			start := true
			for i := range got.String() {
				if command(got.String()[i:], start) > 0 {
					t.Errorf("pieces of %d: %q has a command at %d", size, got.String(), i)
				}
				start = got.String()[i] == '\n' || start && unicode.IsSpace(rune(got.String()[i]))
			}
			if plain, err := strconv.Unquote(`"` + strings.ReplaceAll(got.String(), "\n", `\n`) + `"`); text != hostile && (err != nil || plain != text) {
				t.Errorf("pieces of %d: %q is not the text", size, got.String())
			}
		}
	}
}

func TestSprintf(t *testing.T) {
	type kind string
	got := Sprintf("%d of %v: %s (%s): %v", 3, true, "a\nb", kind("\x1b"), errors.New("no\n"))
	if want := `3 of true: a\nb (\x1b): no\n`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWriter(t *testing.T) {
	var b strings.Builder
	w := NewWriter(&b, "agent: ")
	for _, part := range []string{"one\ntw", "o \xe4", "\xb8\x96\r\n", "? Delete\n\x1b[A", "1. Allow"} {
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("got %d, %v", n, err)
		}
	}
	for range 2 {
		must.Do(t, w.Flush())
	}
	want := "agent: one\nagent: two 世\nagent: ? Delete\nagent: \\x1b[A1. Allow\n"
	if got := b.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A line without an end is not kept.
func TestWriterIsBounded(t *testing.T) {
	for text, shown := range map[string]string{"x": "x", "世": "世", "\x80": "\ufffd"} {
		var b strings.Builder
		w := NewWriter(&b, "")
		chunk := []byte(strings.Repeat(text, 1000))
		for range 100 {
			must.Get(w.Write(chunk))(t)
			if cap(w.part) > 4*maxPart {
				t.Fatalf("keeps %d bytes", cap(w.part))
			}
		}
		if err := w.Flush(); err != nil || strings.ReplaceAll(b.String(), "\n", "") != strings.Repeat(shown, 100*1000) {
			t.Errorf("%q: %v, and %d bytes came through", text, err, b.Len())
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add(hostile)
	f.Fuzz(func(t *testing.T, text string) {
		for _, r := range Text(text) {
			if r != '\n' && r != '\t' && r != '\u200c' && r != '\u200d' && !unicode.IsPrint(r) {
				t.Errorf("%q lets %U through", text, r)
			}
		}
		if strings.ContainsAny(Line(text), "\n\t") {
			t.Errorf("%q is not one line", text)
		}
	})
}

// What a CI server would take for a command in the output of a workflow's step is none.
func TestWorkflowCommands(t *testing.T) {
	for text, want := range map[string]string{
		"::add-mask::x":                `\x3a:add-mask::x`,
		" \t::error file=a::x":         "␣\t" + `\x3a:error file=a::x`,
		"std::vector, a::b":            "std::vector, a::b",
		"##[error]x":                   `\x23#[error]x`,
		"a ##vso[task.setvariable]x":   `a \x23#vso[task.setvariable]x`,
		"###[x":                        `#\x23#[x`,
		"## Heading, #[derive], ##x [": "## Heading, #[derive], ##x [",
	} {
		want = strings.ReplaceAll(want, "␣", " ")
		if got := Text(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if got := Line(text); got != strings.ReplaceAll(want, "\t", `\t`) {
			t.Errorf("%q: got the line %q, want %q", text, got, want)
		}
	}
	if got, want := Text("a\n::debug::x"), "a\n\\x3a:debug::x"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// JSON changes no value, and escapes only what cannot be seen.
func TestJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"go test \u0026\u0026 go vet \u003cx\u003e"}`:    `{"a":"go test && go vet <x>"}`,
		`"gr\u00fc\u00DFe \ud83d\ude00"`:                       `"grüße 😀"`,
		`"\\u0026 \\\u0026"`:                                   `"\\u0026 \\&"`,
		`"\u0022 \u005c \n \u0007 \u202e \ud800 \ud800\u0041"`: `"\u0022 \u005c \n \u0007 \u202e \ud800 \ud800A"`,
		`[1.0e5,null,"\/"]`:                                    `[1.0e5,null,"\/"]`,
		`"\u00`:                                                `"\u00`,
		`\`:                                                    `\`,
	} {
		got := string(JSON([]byte(in)))
		if got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		var before, after any
		if json.Unmarshal([]byte(in), &before) == nil && (json.Unmarshal([]byte(got), &after) != nil || !reflect.DeepEqual(before, after)) {
			t.Errorf("%s: another value: %s", in, got)
		}
	}
}
