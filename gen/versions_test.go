package gen

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

func TestParseVersions(t *testing.T) {
	digest := strings.Repeat("ab", sha256.Size)
	tests := []struct{ name, text, want string }{
		{"empty", "# nothing\n\n", "no schema is listed"},
		{"short", "schema.json pkg 1.0\n", "line 1: expected path, package, version, date and sha256, got 3 fields"},
		{"digest", "schema.json pkg 1.0 2026-01-01 abc\n", `line 1: "abc" is not a SHA-256`},
		{"good", "# path\nschema.json pkg 1.0 2026-01-01 " + digest + "\n", ""},
	}
	for _, test := range tests {
		versions, err := ParseVersions(test.text)
		if got := fmt.Sprint(err); err != nil && got != test.want || err == nil && (test.want != "" || len(versions) != 1) {
			t.Errorf("%s: got %v, %v", test.name, versions, err)
		}
	}
}

// Text in a list of versions cannot become code either.
func TestHostileVersions(t *testing.T) {
	for _, s := range hostileTexts {
		v := Version{Path: "schema.json", Package: s, Version: s, Release: s, Date: s, SHA256: s}
		files, err := Root("sdk", []Version{v})
		if err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		source := strings.Replace(string(files["acp_gen.go"]), "//go:embed schema.json\n", "", 1)
		requireShown(t, "acp_gen.go", []byte(source))
		for _, path := range []string{s, "schema/" + s + ".json", "", "/schema.json", "schema/.json", "a b.json"} {
			v.Path = path
			if _, err := Root("sdk", []Version{v}); err == nil {
				t.Errorf("the path %q was accepted", path)
			}
		}
	}
}
