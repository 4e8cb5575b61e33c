package tui

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
)

var update = flag.Bool("update", false, "write docs/reference/keys.md anew")

// TestDocs: the tables of keys in docs/reference/keys.md are up to date.
func TestDocs(t *testing.T) {
	const path = "../../../../docs/reference/keys.md"
	text, err := os.ReadFile(path)
	must.Do(t, err)
	var b strings.Builder
	for _, s := range allKeys() {
		fmt.Fprintf(&b, "\n### %s\n\n| key | name | what it does |\n|---|---|---|\n", s.screen)
		for _, k := range s.keys {
			keys, name := "", ""
			if len(k.keys) > 0 {
				keys = "`" + strings.ReplaceAll(keyNames(k.keys), ", ", "`, `") + "`"
			}
			if k.name != "" && s.screen == "Conversation" {
				name = "`" + k.name + "`"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", keys, name, k.about)
		}
	}
	const begin, end = "<!-- keys -->\n", "\n<!-- end of keys -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, strings.TrimPrefix(end, "\n"))
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the keys", path)
	}
	want := before + begin + b.String() + end + after
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("the keys in %s are not those of the program: run this test with -update", path)
	}
	must.Do(t, os.WriteFile(path, []byte(want), 0o644))
}
