package gen

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/cputime"
	"github.com/acpgo/sdk/internal/test/tier"
)

// The schemas have a thousand parts, combined in ways in which the work could double with each part, or be done for
// each pair. Each takes about a second; if the work doubled, the test would never end. Tier Full tries one of each list.
func TestTimeIsLinear(t *testing.T) {
	tier.Need(t, tier.Full)
	repeat := func(n int, format string) string {
		var parts []string
		for i := range n {
			parts = append(parts, strings.NewReplacer("<i>", fmt.Sprint(i), "<i+1>", fmt.Sprint(i+1)).Replace(format))
		}
		return strings.Join(parts, ",")
	}
	const last = `,"A<n>":{"type":"object","properties":{"z":{"type":"string"}},"required":["z"]}`
	shapes := map[string]string{
		"structs within structs":   `"A<i>":{"type":"object","properties":{"a":{"$ref":"#/$defs/A<i+1>"},"b":{"$ref":"#/$defs/A<i+1>"}},"required":["a","b"]}`,
		"bases of bases":           `"A<i>":{"type":"object","allOf":[{"$ref":"#/$defs/A<i+1>"}],"properties":{"m<i>":{"type":"string"}}}`,
		"diamonds of bases":        `"A<i>":{"allOf":[{"$ref":"#/$defs/A<i+1>"},{"$ref":"#/$defs/A<i+1>"},{"$ref":"#/$defs/A<n>"}]}`,
		"diamonds of members":      `"A<i>":{"allOf":[{"$ref":"#/$defs/A<i+1>"},{"properties":{"z":{"minLength":1}}}]}`,
		"references of references": `"A<i>":{"$ref":"#/$defs/A<i+1>"}`,
		"unions of unions":         `"A<i>":{"anyOf":[{"$ref":"#/$defs/A<i+1>"},{"type":"object","properties":{"k<i>":{}},"required":["k<i>"]}]}`,
		"unions in diamonds":       `"A<i>":{"anyOf":[{"$ref":"#/$defs/A<i+1>"},{"$ref":"#/$defs/A<i+1>"}]}`,
		"nullable unions":          `"A<i>":{"anyOf":[{"$ref":"#/$defs/A<i+1>"},{"type":"null"}]}`,
		"merged unions of unions": `"A<i>":{"type":"object","properties":{"m<i>":{}},"oneOf":[{"properties":{"t<i>":{"const":"a"}},"required":["t<i>"],"allOf":[{"$ref":"#/$defs/A<i+1>"}]},` +
			`{"properties":{"t<i>":{"const":"b"}},"required":["t<i>"]}]}`,
		"unions that are bases of branches": `"A<i>":{"anyOf":[{"allOf":[{"$ref":"#/$defs/A<i+1>"},{"type":"object","properties":{"p<i>":{}},"required":["p<i>"]}]},` +
			`{"allOf":[{"$ref":"#/$defs/A<i+1>"},{"type":"object","properties":{"q<i>":{}},"required":["q<i>"]}]}]}`,
		"unions of arrays": `"A<i>":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/A<i+1>"}},{"type":"string"}]}`,
		"one value each":   `"A<i>":{"const":"v<i>"}`,
	}
	sample := func(shapes map[string]string) []string {
		return spread(slices.Sorted(maps.Keys(shapes)), tier.Pick(0, 0, 1, len(shapes)))
	}
	for _, name := range sample(shapes) {
		requireLinear(t, name, 250, func(n int) string {
			return strings.ReplaceAll(`{"$defs":{`+repeat(n, shapes[name])+last+`}}`, "<n>", fmt.Sprint(n))
		})
	}
	wide := map[string]string{
		"branches with a tag":     `{"$defs":{"T":{"oneOf":[<list>]}}}|{"type":"object","properties":{"t":{"const":"v<i>"},"m":{"type":"string"}},"required":["t"]}`,
		"branches with keys":      `{"$defs":{"T":{"oneOf":[<list>]}}}|{"type":"object","properties":{"k<i>":{},"m":{"type":"string"}},"required":["k<i>"]}`,
		"branches of one kind":    `{"$defs":{"T":{"oneOf":[<list>]}}}|{"title":"V<i>","type":"object","properties":{"m":{"type":"string"}},"required":["m"]}`,
		"branches beside members": `{"$defs":{"T":{"type":"object","properties":{"m":{"type":"string"}},"oneOf":[<list>]}}}|{"properties":{"k<i>":{},"m":{"minLength":1}},"required":["k<i>"]}`,
		"branches with a number":  `{"$defs":{"T":{"oneOf":[<list>]}}}|{"title":"V<i>","type":"object","properties":{"n":{"const":<i>}},"required":["n"]}`,
		"constants":               `{"$defs":{"T":{"anyOf":[<list>]}}}|{"const":<i>}`,
		"values":                  `{"$defs":{"T":{"type":"string","allOf":[{"enum":[<list>]},{"enum":[<list>]}]}}}|"v<i>"`,
		"values that not excludes": `{"$defs":{"T":{"anyOf":[{"type":"object","properties":{"t":{"const":"a"}},"required":["t"]},{"type":"object","properties":{"t":{"type":"string"}},"required":["t"],` +
			`"not":{"anyOf":[<list>]}}]}}}|{"type":"object","properties":{"t":{"const":"v<i>"}},"required":["t"]}`,
		"members":      `{"$defs":{"T":{"type":"object","properties":{<list>}}}}|"m<i>":{"type":"string"}`,
		"parts":        `{"$defs":{"T":{"allOf":[<list>]}}}|{"type":"object","properties":{"m<i>":{"type":"string"}}}`,
		"parts of one": `{"$defs":{"T":{"allOf":[<list>]}}}|{"type":"object","properties":{"m":{"not":{"const":"v<i>"}}}}`,
		"required":     `{"$defs":{"T":{"type":"object","properties":{"a":{}},"required":[<list>]}}}|"m<i>"`,
	}
	for _, name := range sample(wide) {
		document, item, _ := strings.Cut(wide[name], "|")
		few := map[string]int{"branches with a number": 1000, "constants": 10_000}[name]
		requireLinear(t, name, max(few, 250), func(n int) string { return strings.ReplaceAll(document, "<list>", repeat(n, item)) })
	}
}

// requireLinear requires that generating takes about four times as much processor time for four times as much input and
// output; quadratic work takes sixteen times as much. The output may grow faster than the input, because each variant that
// a member distinguishes lists those members of the others. Tests that run at the same time also count, so the minimum of
// several tries is compared, and the test is not parallel.
func requireLinear(t *testing.T, name string, small int, schema func(n int) string) {
	t.Helper()
	generate := func(n int) (took time.Duration, size int) {
		config := Config{Schema: []byte(schema(n)), Source: "schema.json", Package: "golden", Module: module}
		start := cputime.Used()
		files, err := Generate(config)
		took = cputime.Used() - start
		if err != nil {
			requireErrors(t, err)
		}
		for _, text := range files {
			size += len(text)
		}
		return took, size
	}
	few, many := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	growth := 4
	for range 5 {
		took, size := generate(small)
		few = min(few, took)
		took, grown := generate(4 * small)
		many = min(many, took)
		if size > 0 {
			growth = max(growth, grown/size)
		}
		if many < 2*time.Duration(growth)*few+time.Second {
			return
		}
	}
	t.Errorf("%s: %d take %v, %d take %v; the output grows %d times", name, small, few, 4*small, many, growth)
}
