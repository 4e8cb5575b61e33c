package gen

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/gen/model"
	"github.com/acpgo/sdk/internal/test/tier"
)

// holes holds schemas of all kinds, each with a hole, and the place of the hole.
var holes = map[string]struct{ schema, at string }{
	"any":             {`{"$defs":{"T":{"type":"object","properties":{"p":{%s}}}}}`, "/properties/p"},
	"definition":      {`{"$defs":{"T":{%s}}}`, ""},
	"string":          {`{"$defs":{"T":{"type":"object","properties":{"p":{"type":"string"%s}}}}}`, "/properties/p"},
	"nullable string": {`{"$defs":{"T":{"type":"object","properties":{"p":{"type":["string","null"]%s}}}}}`, "/properties/p"},
	"boolean":         {`{"$defs":{"T":{"type":"object","properties":{"p":{"type":"boolean"%s}}}}}`, "/properties/p"},
	"integer":         {`{"$defs":{"T":{"type":"object","properties":{"p":{"type":"integer"%s}}}}}`, "/properties/p"},
	"number":          {`{"$defs":{"T":{"type":"object","properties":{"p":{"type":"number"%s}}}}}`, "/properties/p"},
	"null":            {`{"$defs":{"T":{"type":"object","properties":{"p":{"type":"null"%s}}}}}`, "/properties/p"},
	"several types":   {`{"$defs":{"T":{"type":"object","properties":{"p":{"type":["string","integer"]%s}}}}}`, "/properties/p"},
	"array":           {`{"$defs":{"T":{"type":"object","properties":{"p":{"type":"array"%s}}}}}`, "/properties/p"},
	"item":            {`{"$defs":{"T":{"type":"array","items":{"type":"string"%s}}}}`, "/items"},
	"map":             {`{"$defs":{"T":{"type":"object","properties":{"p":{"type":"object"%s}}}}}`, "/properties/p"},
	"value of a map":  {`{"$defs":{"T":{"type":"object","additionalProperties":{"type":"string"%s}}}}`, "/additionalProperties"},
	"struct":          {`{"$defs":{"T":{"type":"object","properties":{"q":{"type":"string"}}%s}}}`, ""},
	"extra member":    {`{"$defs":{"T":{"type":"object","properties":{"q":{}},"additionalProperties":{"type":"string"%s}}}}`, "/additionalProperties"},
	"reference":       {`{"$defs":{"S":{"type":"string"},"T":{"type":"object","properties":{"p":{"$ref":"#/$defs/S"%s}}}}}`, "/properties/p"},
	"reference to object": {`{"$defs":{"S":{"type":"object","properties":{"q":{"type":"string"}}},"T":{"type":"object","properties":{"p":{"$ref":"#/$defs/S"%s}}}}}`,
		"/properties/p"},
	"reference to itself": {`{"$defs":{"T":{"type":"object","properties":{"p":{"$ref":"#/$defs/T"%s}}}}}`, "/properties/p"},
	"list":                {`{"$defs":{"T":{"type":"object","properties":{"p":{"type":"string","enum":["u","v"]%s}}}}}`, "/properties/p"},
	"constant":            {`{"$defs":{"T":{"type":"object","properties":{"p":{"const":"u"%s}},"required":["p"]}}}`, "/properties/p"},
	"choice of constants": {`{"$defs":{"T":{"oneOf":[{"const":"u"},{"type":"string","const":"v"}]%s}}}`, ""},
	"one of constants":    {`{"$defs":{"T":{"oneOf":[{"const":"u"},{"type":"string","const":"v"%s}]}}}`, ""},
	"nullable reference":  {`{"$defs":{"S":{"type":"string"},"T":{"type":"object","properties":{"p":{"anyOf":[{"$ref":"#/$defs/S"},{"type":"null"}]%s}}}}}`, "/properties/p"},
	"part of allOf":       {`{"$defs":{"T":{"type":"object","allOf":[{"type":"object","properties":{"q":{"type":"string"}}%s}]}}}`, ""},
	"base":                {`{"$defs":{"T":{"allOf":[{"$ref":"#/$defs/S"}],"properties":{"r":{"type":"string"}}},"S":{"type":"object","properties":{"q":{"type":"string"}}%s}}}`, ""},
	"union of kinds":      {`{"$defs":{"T":{"anyOf":[{"title":"S","type":"string"},{"title":"B","type":"boolean"}]%s}}}`, ""},
	"branch of a kind":    {`{"$defs":{"T":{"anyOf":[{"title":"S","type":"string"%s},{"title":"B","type":"boolean"}]}}}`, ""},
	"tagged union": {`{"$defs":{"T":{"oneOf":[{"type":"object","properties":{"t":{"const":"a"}},"required":["t"]},` +
		`{"type":"object","properties":{"t":{"const":"b"}},"required":["t"]}]%s}}}`, ""},
	"merged union": {`{"$defs":{"T":{"type":"object","properties":{"q":{"type":"string"}},"oneOf":[{"properties":{"t":{"const":"a"}},"required":["t"]},` +
		`{"properties":{"t":{"const":"b"}},"required":["t"]}]%s}}}`, ""},
	"branch of a tag": {`{"$defs":{"T":{"oneOf":[{"type":"object","properties":{"t":{"const":"a"}},"required":["t"]%s},` +
		`{"type":"object","properties":{"t":{"const":"b"}},"required":["t"]}]}}}`, ""},
	"branch with a payload": {`{"$defs":{"P":{"type":"object","properties":{"q":{"type":"string"}}},"T":{"oneOf":[` +
		`{"type":"object","properties":{"t":{"const":"a"}},"required":["t"],"allOf":[{"$ref":"#/$defs/P"}]%s}]}}}`, ""},
	"payload": {`{"$defs":{"P":{"type":"object","properties":{"q":{"type":"string"}}%s},"T":{"oneOf":[` +
		`{"type":"object","properties":{"t":{"const":"a"}},"required":["t"],"allOf":[{"$ref":"#/$defs/P"}]}]}}}`, ""},
	"tag":                 {`{"$defs":{"T":{"oneOf":[{"type":"object","properties":{"t":{"const":"a"%s}},"required":["t"]}]}}}`, ""},
	"branch without keys": {`{"$defs":{"T":{"anyOf":[{"type":"object","properties":{"a":{}},"required":["a"]%s},{"type":"object","properties":{"b":{}},"required":["b"]}]}}}`, ""},
}

// restrictions holds, for each keyword, values that restrict the schema with the keyword, or a schema without other
// keywords.
var restrictions = map[string][]string{
	"$ref":                  {`"#/$defs/Other"`},
	"type":                  {`"boolean"`, `"object"`, `["array","null"]`},
	"const":                 {`"x"`, `1`, `true`, `null`, `{}`},
	"enum":                  {`["x","y"]`, `[1,2]`, `[null,"x"]`, `[]`},
	"properties":            {`{"x":{"type":"integer"}}`, `{"q":{"minLength":3}}`},
	"required":              {`["x"]`, `["q"]`},
	"additionalProperties":  {`true`, `{"type":"integer"}`},
	"unevaluatedProperties": {`true`, `{"type":"integer"}`},
	"items":                 {`{"type":"integer"}`, `false`},
	"prefixItems":           {`[{"type":"integer"}]`},
	"oneOf":                 {`[{"type":"integer"}]`, `[{"type":"string","const":"x"},{"type":"null"}]`},
	"anyOf":                 {`[{"type":"integer"}]`, `[{"required":["x"]},{"required":["q"]}]`},
	"allOf":                 {`[{"$ref":"#/$defs/Other"}]`, `[{"type":"integer","minimum":3}]`},
	"not":                   {`{"type":"string"}`, `{"const":"u"}`, `{"required":["q"]}`, `{"required":["x"]}`},
	"minLength":             {`3`}, "maxLength": {`3`},
	"minimum": {`3`}, "maximum": {`3`}, "exclusiveMinimum": {`3`}, "exclusiveMaximum": {`3`},
	"minItems": {`3`}, "maxItems": {`3`},
	"minProperties": {`3`}, "maxProperties": {`3`},
}

// A keyword that restricts values is never ignored, unless acpgen leaves it to others, wherever it occurs: it changes the generated code, or is refused
// with its place. Below tier Full, a sample of the combinations is tried.
func TestKeywordsAreAccountedFor(t *testing.T) {
	tier.Need(t, tier.Normal)
	for _, k := range model.BoundKeywords {
		if restrictions[k.Keyword] == nil && k.Limit != model.Unchecked {
			t.Errorf("the test has no %s", k.Keyword)
		}
	}
	const other = `"Other":{"type":"object","properties":{"o":{"type":"integer"}},"required":["o"]},`
	generated := func(document string) (map[string][]byte, error) {
		return bodies(strings.Replace(document, `{"$defs":{`, `{"$defs":{`+other, 1))
	}
	check := newChecker(t)
	combination, refused, changed, every := 0, 0, 0, tier.Pick(0, 8, 2, 1)
	for _, kind := range slices.Sorted(maps.Keys(holes)) {
		place := holes[kind]
		plainSchema := strings.Replace(place.schema, "%s", "", 1)
		plain, err := generated(plainSchema)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		for _, keyword := range slices.Sorted(maps.Keys(restrictions)) {
			for _, value := range restrictions[keyword] {
				if combination++; combination%every != 0 {
					continue
				}
				before, _, _ := strings.Cut(place.schema, "%s")
				node := before[strings.LastIndexAny(before, "{}]")+1:]
				if strings.Contains(before[len(before)-len(node):], `"`+keyword+`"`) {
					continue
				}
				comma := ","
				if strings.HasSuffix(before, "{") {
					comma = ""
				}
				document := fmt.Sprintf(place.schema, comma+`"`+keyword+`":`+value)
				files, err := generated(document)
				if err == nil {
					if _, err := check.check(files); err != nil {
						t.Errorf("%s with %s %s: it does not compile: %v", kind, keyword, value, err)
					}
				}
				if joined := new(Error); err != nil {
					refused++
					if !errors.As(err, &joined) || !strings.HasPrefix(joined.Pointer, "/$defs/") {
						t.Errorf("%s with %s %s: the error has no place: %v", kind, keyword, value, err)
					}
					continue
				}
				changed++
				if maps.EqualFunc(files, plain, bytes.Equal) && !allowed(kind, keyword, value) {
					t.Errorf("%s with %s %s: it changes nothing: %s", kind, keyword, value, document)
				}
			}
		}
	}
	t.Logf("%d combinations are refused, %d change the generated code", refused, changed)
}

// allowed reports whether a combination adds no restriction.
func allowed(kind, keyword, value string) bool {
	switch keyword {
	case "type":
		return strings.HasSuffix(kind, "union") && value == `"object"`
	case "const", "enum", "oneOf":
		return kind == "null" && strings.Contains(value, "null")
	case "additionalProperties", "unevaluatedProperties":
		return kind == "map" && value == "true"
	case "required":
		return strings.Contains(holes[kind].schema, `"required":`+value)
	case "not":
		return value == `{"const":"u"}` && !strings.Contains(kind, "string") // no such value is "u"
	}
	return false
}
