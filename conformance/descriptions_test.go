package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance/internal/requirement"
	"github.com/acpgo/sdk/internal/test/must"
)

// TestDemandsOfDescriptions compares testdata/demands.txt with the schemas: it has the sentences of descriptions that
// demand something or promise that something is unique. Below each are the ids of the requirements that judge it and the
// names of the functions that check it before it is sent, or, after a dash, the reason why there are none.
func TestDemandsOfDescriptions(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/demands.txt"))(t)
	decisions := map[string]string{}
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\n\t", "\t")) {
		sentence, decided, _ := strings.Cut(strings.TrimSpace(line), "\t")
		decisions[sentence] = decided
	}
	found := map[string]string{}
	for _, name := range []string{"schema.json", "schema/v1.unstable.json", "schema/v2.json", "schema/v2.unstable.json"} {
		text := must.Get(os.ReadFile(filepath.Join("..", name)))(t)
		var schema any
		must.Do(t, json.Unmarshal(text, &schema))
		describe(schema, func(description string) {
			for _, sentence := range sentences.Split(description, -1) {
				if sentence = strings.TrimSuffix(strings.Join(strings.Fields(sentence), " "), "."); demanding.MatchString(sentence) {
					found[sentence] = name
				}
			}
		})
	}
	for sentence, name := range found {
		if decisions[sentence] == "" {
			t.Errorf("%s: there is no decision on %q", name, sentence)
		}
	}
	sources := sourcesOf(t, "../acp", "../codec", "../acp/acpv2")
	for sentence, decided := range decisions {
		if found[sentence] == "" {
			t.Errorf("no schema contains %q any more", sentence)
		}
		if reason, ok := strings.CutPrefix(decided, "- "); ok && reason != "" {
			continue
		}
		for word := range strings.FieldsSeq(decided) {
			if requirement.Find(word) == nil && !regexp.MustCompile(`(?m)^func (\([^)]*\) )?`+word+`[\[(]`).MatchString(sources) {
				t.Errorf("%q: %s is neither a requirement nor a function", sentence, word)
			}
		}
	}
	t.Logf("%d sentences", len(found))
}

var (
	sentences = regexp.MustCompile(`(?:[.!?])\s+|\n\n`)
	demanding = regexp.MustCompile(`\bMUST\b|\b[Uu]nique\b|[Oo]nly (when|if)`)
)

// describe visits the descriptions within a schema.
func describe(schema any, visit func(description string)) {
	switch s := schema.(type) {
	case map[string]any:
		for name, below := range s {
			if text, ok := below.(string); ok && name == "description" {
				visit(text)
			}
			describe(below, visit)
		}
	case []any:
		for _, below := range s {
			describe(below, visit)
		}
	}
}

// sourcesOf returns the source text of the packages in folders, without their tests.
func sourcesOf(t *testing.T, folders ...string) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range folders {
		files := must.Get(filepath.Glob(filepath.Join(folder, "*.go")))(t)
		for _, file := range slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") }) {
			text := must.Get(os.ReadFile(file))(t)
			all.Write(text)
		}
	}
	return all.String()
}
