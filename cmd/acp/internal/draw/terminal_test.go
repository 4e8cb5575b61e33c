package draw

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestTerminal(t *testing.T) {
	for name, test := range map[string]struct{ output, want string }{
		"text":          {"one\ntwo\n", "one|two"},
		"colour":        {"\x1b[31mred\x1b[0m x", "\x1b[0;31mred\x1b[0m x"},
		"colour stays":  {"\x1b[1;38;5;200ma\nb", "\x1b[0;1;38;5;200ma\x1b[0m|\x1b[0;1;38;5;200mb\x1b[0m"},
		"any colour":    {"\x1b[38;2;1;2;3ma\x1b[48:2::4:5:6mb", "\x1b[0;38;2;1;2;3ma\x1b[0;38;2;1;2;3;48;2;4;5;6mb\x1b[0m"},
		"no blinking":   {"\x1b[5;8mhidden", "hidden"},
		"progress":      {"10%\r50%\r100%\ndone", "100%|done"},
		"shorter":       {"working\rok", "okrking"},
		"erased":        {"working\r\x1b[Kok", "ok"},
		"backspace":     {"ab\b\bcd", "cd"},
		"crlf":          {"a\r\nb\r\n", "a|b"},
		"up":            {"a: 1\nb: 1\n\x1b[2Aa: 2\n\x1b[Kb: 2\n", "a: 2|b: 2"},
		"column":        {"abc\x1b[1GX\x1b[5GY", "Xbc Y"},
		"forward":       {"a\x1b[3Cb", "a   b"},
		"clear":         {"old\nold\n\x1b[2J\x1b[Hnew", "new"},
		"insert mode":   {"\x1b[4habc", "abc"},
		"screen":        {"\x1b[?1049hx\x1b[?1049l", "x"},
		"title":         {"\x1b]0;title\x07x\x1b]2;t\x1b\\y", "xy"},
		"clipboard":     {"\x1b]52;c;AAAA\x07x", "x"},
		"link":          {"\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"},
		"device":        {"\x1bP+q544e\x1b\\x\x1b_G\x1b\\y\x1b^p\x1b\\z\x1bXs\x1b\\", "xyz"},
		"reports":       {"\x1b[6n\x1b[c\x1b[>c\x05x", "x"},
		"c1":            {"\u009b31mx\u009d0;t\u009cy", "31mx0;ty"},
		"bell":          {"a\a\x00\x0e\x0fb\x7f", "ab"},
		"bidi":          {"\u202egnp", `\u202egnp`},
		"wide":          {"世界\rX", "X 界"},
		"combining":     {"e\u0301x", "e\u0301x"},
		"tab":           {"a\tb", "a       b"},
		"cut sequence":  {"x\x1b[3", "x"},
		"huge movement": {"x\x1b[999999999C\x1b[999999999Ay\x1b[99999999999999999999B", "x" + strings.Repeat(" ", maxColumns-1) + ""},
	} {
		lines := outputLines(Dark(), Output{Text: test.output}, 1<<20)
		if got := strings.TrimRight(strings.Join(lines, "|"), " "); got != strings.TrimRight(test.want, " ") {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// The command of an agent's own terminal cannot imitate its output.
func TestTerminalCommand(t *testing.T) {
	lines := outputLines(Plain(), Output{Command: "go test\n\x1b[31mok", Text: "FAIL"}, 100)
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "$ go test ") || strings.Contains(lines[0], "\x1b[31m") || lines[1] != "FAIL" {
		t.Errorf("%q", lines)
	}
}

// The end of an endless output is kept, in bounded time.
func TestTerminalBounded(t *testing.T) {
	var b strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&b, "\x1b[3%dmline %d\x1b[0m\n", i%8, i)
	}
	for name, output := range map[string]string{
		"lines": b.String(), "one line": strings.Repeat("x", 10<<20), "down": strings.Repeat("\x1b[100B\n", 1<<18), "columns": strings.Repeat("\x1b[4000Gx\n", 1<<16),
	} {
		began := time.Now()
		lines := outputLines(Plain(), Output{Text: output}, 100)
		if len(lines) > 50*maxOutputLines || name == "lines" && (lines[len(lines)-1] != "line 999999" || !strings.Contains(lines[0], "omitted")) {
			t.Errorf("%s: %d lines, the last is %q", name, len(lines), lines[len(lines)-1])
		}
		t.Logf("%s: %d lines in %v", name, len(lines), time.Since(began))
	}
}

func outputLines(theme *Theme, o Output, width int) []string {
	p := newPainter(theme)
	return p.strings(p.output(o, width), width)
}
