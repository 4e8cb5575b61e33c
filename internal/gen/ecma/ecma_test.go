package ecma

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/tier"
)

func TestRegexp(t *testing.T) {
	tests := []struct{ pattern, want string }{
		{``, ``},
		{`^[a-z]+(-\d{1,3})?$`, `^[a-z]+(-\d{1,3})?$`},
		{`a*?b+?c??d{2,3}?`, `a*b+c?d{2,3}`},
		{`^.$`, `^[^\n\r\x{2028}\x{2029}]$`},
		{`[\s]`, `[` + sets['s'] + `]`},
		{`(?<year>\d+)`, `([\d]+)`},
		{`\/\-`, `\/\-`},
		{`[[:alpha:]]`, `[\[\:alph\:a]\]`},
		{`[]|[^]`, `[^\x{0}-\x{10FFFF}]|[\x{0}-\x{10FFFF}]`},
		{`[]a]`, `[^\x{0}-\x{10FFFF}]a\]`},
		{`[\w-.]`, `[\w-.]`},
		{`\u0041\u{1F600}\uD83D\uDE00\x42\cJ\0`, `A\x{1F600}\x{1F600}B\x{A}\x{0}`},
		{`x{,2}`, `x\{,2\}`},
		{`\p{Letter}\P{Script=Greek}\p{ASCII}`, `[\p{L}][\P{Greek}][\x{0}-\x{7F}]`},
		{`\p{L}`, `\p{L}`},
	}
	for _, test := range tests {
		got, err := Regexp(test.pattern)
		if err != nil {
			t.Errorf("%s: %v", test.pattern, err)
			continue
		}
		if !same(got, test.want) {
			t.Errorf("%s: got %s, want %s", test.pattern, got, test.want)
		}
	}
}

func TestRefused(t *testing.T) {
	for pattern, want := range map[string]string{
		`(?=x)`:                  "lookaround",
		`(?<!x)`:                 "lookaround",
		`(x)\1`:                  "backreferences",
		`(?<n>x)\k<n>`:           "backreferences",
		`(?i)x`:                  "flags",
		`(?P<n>x)`:               "flags",
		`(?<n>x)(?<n>y)`:         "the name of a group",
		`\A`:                     "no certain meaning",
		`\Qx`:                    "no certain meaning",
		`\01`:                    "no certain meaning",
		`\u12`:                   "four hexadecimal digits",
		`\uD800`:                 "other half",
		`\u{110000}`:             "no character",
		`x**`:                    "nothing to repeat",
		`^*`:                     "nothing to repeat",
		`{2}`:                    "nothing to repeat",
		`x{3,2}`:                 "out of order",
		`x{1001}`:                "at most 1000",
		`(x{1000}){1000}`:        "too much for Go",
		`[b-a]`:                  "out of order",
		`[a`:                     "does not end",
		`(a`:                     "does not end",
		`a)`:                     "did not begin",
		`a\`:                     "ends after a backslash",
		`\p{Emoji}`:              "not supported",
		`\pL`:                    "no certain meaning",
		`\p{L}}`:                 "needs the flag u",
		"\xff":                   "not UTF-8",
		`\u{1F600}[\w-.]`:        "needs the flag u",
		strings.Repeat("(", 999): "nested too deeply",

		strings.Repeat("a", maxLength+1): "more than 65536",
	} {
		if got, err := Regexp(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50s: got %s, %v, want %s", pattern, got, err, want)
		}
	}
}

// A translated pattern matches the same strings as the original in Node.js, with the flag u or, if Node.js refuses
// that, without it. Patterns that Node.js refuses are refused.
func TestLikeNode(t *testing.T) {
	tier.Need(t, tier.Full)
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("CI must have Node.js: %v", err)
		}
		t.Skipf("SKIPPED: it needs Node.js: %v", err)
	}
	parts := strings.Fields(`a b é 😀 . \d \D \w \W \s \S [a-c] [^a-c] [\w-.] [\s\S] [] [^] [[:alpha:]] (a|b) (?:ab)? (?<n>x) \b \B ^ $ \/ \-
		\. \t \n \v \cJ \x41 \u0041 \u{1F600} \uD83D\uDE00 \0 } ] { {,2} a{2} a{1,2} a{2,}? a*? \p{L} \P{Lu} \p{Script=Greek} [\p{Nd}_] [\b] [--/]
		[a\-z] \\ \" | () (?=a) \1 \a \z \A \Qx\E (?i)a x** [b-a] [z ( ) - _ \_ \c1 \u12 \x4 \01 [\d-z] [^\W\d] a+ b? + ? * (?:)`)
	parts = append(parts, " ", "\n", `[^\S ]`)
	texts := []string{"", "a", "b", "ab", "aa", "é", "\n", "\r", " ", "\u00a0", "\u2028", "\v", "\ufeff", "1", "A", "x", "_", "-", ".", "/",
		"]", "}", "{", "{,2}", "a]", ":]", "[]", `\`, `"`, "α", "\b", "\x00", "abc", "a\n", "\na", "١", "z", "aab", "b a", "\u180e", "\u200b", "\u0085"}
	command := exec.Command(node, "-e", `
		require("readline").createInterface({input: process.stdin}).on("line", line => {
			const {pattern, texts} = JSON.parse(line)
			let out = null
			for (const flags of ["u", ""]) {
				try { const r = new RegExp(pattern, flags); out = texts.map(text => r.test(text)); break } catch {}
			}
			console.log(JSON.stringify(out))
		})`)
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(out)
	random := rand.New(rand.NewPCG(1, 2))
	translated := 0
	for range 3000 {
		var b strings.Builder
		for range 1 + random.IntN(5) {
			b.WriteString(parts[random.IntN(len(parts))])
		}
		pattern := b.String()
		line, err := json.Marshal(map[string]any{"pattern": pattern, "texts": texts})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(in, "%s\n", line); err != nil {
			t.Fatal(err)
		}
		var want []bool
		if !answers.Scan() {
			t.Fatalf("Node.js says nothing of %q: %v", pattern, answers.Err())
		}
		if err := json.Unmarshal(answers.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		expr, err := Regexp(pattern)
		if err != nil {
			continue
		}
		translated++
		if want == nil {
			t.Errorf("%q is none of ECMA-262, and became %q", pattern, expr)
			continue
		}
		compiled := regexp.MustCompile(expr)
		for i, text := range texts {
			if got := compiled.MatchString(text); got != want[i] {
				t.Errorf("%q became %q: it matches %q is %v, want %v", pattern, expr, text, got, want[i])
			}
		}
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Error(err)
	}
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
	if translated < 1000 {
		t.Errorf("only %d patterns were translated", translated)
	}
}
