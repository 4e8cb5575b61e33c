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

// shapes are schemas that consist of n definitions, each of which refers to the next one in ways in which the work could
// double with each, or be done for each pair.
var shapes = map[string]string{
	"structs within structs":   `{"type":"object","properties":{"a":NEXT,"b":NEXT},"required":["a","b"]}`,
	"optional members":         `{"type":"object","properties":{"a":NEXT,"b":NEXT}}`,
	"defaults":                 `{"type":"object","properties":{"a":{"allOf":[NEXT],"default":{}},"b":{"allOf":[NEXT],"default":{}}}}`,
	"bases of bases":           `{"type":"object","allOf":[NEXT],"properties":{"m<i>":{"type":"string"}}}`,
	"bases, twice":             `{"type":"object","properties":{"p<i>":{"type":"string"}},"allOf":[NEXT,NEXT]}`,
	"diamonds of bases":        `{"allOf":[NEXT,NEXT,{"$ref":"#/$defs/A<n>"}]}`,
	"diamonds of members":      `{"allOf":[NEXT,{"properties":{"z":{"minLength":1}}}]}`,
	"references of references": `NEXT`,
	"unions of unions":         `{"anyOf":[NEXT,{"type":"object","properties":{"k<i>":{}},"required":["k<i>"]}]}`,
	"unions in diamonds":       `{"anyOf":[NEXT,NEXT]}`,
	"branches of two kinds":    `{"anyOf":[NEXT,{"type":"string"},NEXT]}`,
	"nullable unions":          `{"anyOf":[NEXT,{"type":"null"}]}`,
	"merged unions of unions": `{"type":"object","properties":{"m<i>":{}},"oneOf":[{"properties":{"t<i>":{"const":"a"}},"required":["t<i>"],"allOf":[NEXT]},` +
		`{"properties":{"t<i>":{"const":"b"}},"required":["t<i>"]}]}`,
	"merged choices": `{"oneOf":[{"type":"object","properties":{"k<i>":{"const":"a"}},"required":["k<i>"],"allOf":[NEXT]},` +
		`{"type":"object","properties":{"k<i>":{"const":"b"}},"required":["k<i>"],"allOf":[NEXT]}]}`,
	"unions that are bases of branches": `{"anyOf":[{"allOf":[NEXT,{"type":"object","properties":{"p<i>":{}},"required":["p<i>"]}]},` +
		`{"allOf":[NEXT,{"type":"object","properties":{"q<i>":{}},"required":["q<i>"]}]}]}`,
	"unions of arrays": `{"anyOf":[{"type":"array","items":NEXT},{"type":"string"}]}`,
	"lists": `{"anyOf":[{"title":"a","type":"array","items":NEXT},` +
		`{"title":"b","type":"object","properties":{"x":NEXT,"y":NEXT},"required":["x"]}]}`,
	"maps":           `{"type":"object","properties":{"a":NEXT},"additionalProperties":NEXT}`,
	"one value each": `{"const":"v<i>"}`,
}

// wide are schemas with n parts in one place. The part follows a bar.
var wide = map[string]string{
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

// repeat returns the parts for the numbers from 0 to n.
func repeat(n int, part string) string {
	var parts []string
	for i := range n {
		parts = append(parts, strings.NewReplacer("<i>", fmt.Sprint(i), "<i+1>", fmt.Sprint(i+1)).Replace(part))
	}
	return strings.Join(parts, ",")
}

// chain returns a schema of a shape, whose last definition is the given one.
func chain(n int, shape, last string) []byte {
	definitions := repeat(n, `"A<i>":`+strings.ReplaceAll(shape, "NEXT", `{"$ref":"#/$defs/A<i+1>"}`)) + `,"A<n>":` + last
	return []byte(`{"$defs":{` + strings.ReplaceAll(definitions, "<n>", fmt.Sprint(n)) + `}}`)
}

const leaf = `{"type":"object","properties":{"z":{"type":"string"}},"required":["z"]}`

// No schema takes forever: work that doubled with each part would not end before the test's deadline. The chains have an
// end, or form a circle.
func TestTimeIsLimited(t *testing.T) {
	tier.Need(t, tier.Normal)
	tests := map[string][]byte{
		"a choice that is a base of its branch, and a branch of its branch": []byte(`{"$defs":{
			"T":{"anyOf":[
				{"allOf":[{"$ref":"#/$defs/T"}],"properties":{"k":{"const":"alpha"}},"required":["k"],"type":"object"},
				{"properties":{"k":{"const":"beta"}},"required":["k"],"type":"object"},
				{"type":"null"},
				{"anyOf":[{"$ref":"#/$defs/U"},{"$ref":"#/$defs/T"}]}]},
			"U":{"type":"string"}}}`),
		"a choice that is a base of its branch, and with null a branch": []byte(`{"$defs":{
			"T":{"anyOf":[
				{"type":"object","properties":{"k":{"const":"alpha"}},"required":["k"]},
				{"type":"object","properties":{"k":{"const":"beta"}},"required":["k"],"allOf":[{"$ref":"#/$defs/T"}]},
				{"anyOf":[{"$ref":"#/$defs/T"},{"type":"null"}]}]}}}`),
		// The more others there are, the more may be merged.
		"a not beside a choice that has itself as a branch": []byte(`{"$defs":{
			"T":{"not":{"type":"string"},"oneOf":[
				{"type":"object","properties":{"k":{"const":"alpha"}},"required":["k"]},
				{"type":"object","properties":{"k":{"const":"beta"}},"required":["k"]},
				{"$ref":"#/$defs/U"}]},
			"U":{"$ref":"#/$defs/T"},` + repeat(1000, `"D<i>":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`) + `}}`),
	}
	for name, shape := range shapes {
		tests[name] = chain(26, shape, leaf)
		tests[name+", in a circle"] = chain(26, shape, `{"$ref":"#/$defs/A0"}`)
	}
	size := tier.Pick(0, 300, 1000, 10_000)
	for _, name := range []string{"optional members", "bases of bases", "references of references", "unions in diamonds"} {
		tests["many "+name] = chain(size, shapes[name], `{"$ref":"#/$defs/A0"}`)
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, func(t *testing.T) {
			_, err := generateOnce(tests[name])
			if problem := misplaced(tests[name], err); err != nil && problem != nil {
				t.Errorf("refused without its place: %v", problem)
			}
		})
	}
}

// The work does not grow faster than the schema. Tier Full tries one of each list.
func TestTimeIsLinear(t *testing.T) {
	tier.Need(t, tier.Full)
	sample := func(shapes map[string]string) []string {
		return spread(slices.Sorted(maps.Keys(shapes)), tier.Pick(0, 0, 1, len(shapes)))
	}
	for _, name := range sample(shapes) {
		requireLinear(t, name, 250, func(n int) []byte { return chain(n, shapes[name], leaf) })
	}
	for _, name := range sample(wide) {
		document, item, _ := strings.Cut(wide[name], "|")
		few := map[string]int{"branches with a number": 1000, "constants": 10_000}[name]
		requireLinear(t, name, max(few, 250), func(n int) []byte {
			return []byte(strings.ReplaceAll(document, "<list>", repeat(n, item)))
		})
	}
}

// requireLinear requires that generating takes about four times as much processor time for four times as much input and
// output; quadratic work takes sixteen times as much. The output may grow faster than the input, because each variant that
// a member distinguishes lists those members of the others. Tests that run at the same time also count, so the minimum of
// several tries is compared, and the test is not parallel.
func requireLinear(t *testing.T, name string, small int, schema func(n int) []byte) {
	t.Helper()
	generate := func(n int) (took time.Duration, size int) {
		config := Config{Schema: schema(n), Source: "schema.json", Package: "golden", Module: module}
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
