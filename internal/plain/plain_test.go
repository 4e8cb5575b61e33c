package plain

import (
	"errors"
	"strings"
	"testing"
	"unicode"
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
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
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
			if _, err := w.Write(chunk); err != nil {
				t.Fatal(err)
			}
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
