package gen

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/acpgo/sdk/internal/gen/schema"
	"github.com/acpgo/sdk/internal/gen/text"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

func TestParseOverrides(t *testing.T) {
	const table = `
# what is decided
Name         Command = SlashCommand   # Command is what starts an agent
Member	A/a_b	= AUnderB	# aB has the name
Needs        session/prompt prompt.image = caps.image# not a reason # marked

Derived      initialize # the handshake # follows
Value        "A/x = y # z" = XY # it has an equals sign
CallNote     m = "It has a # and \"quotes\"." # beyond
Variant      A/a=b = AB # marks stand between spaces
Name         Long = \
    Longer # continued \
    twice
`
	want := []Override{
		{Name, "Command", "SlashCommand", "Command is what starts an agent"},
		{Member, "A/a_b", "AUnderB", "aB has the name"},
		{Needs, "session/prompt prompt.image", "caps.image# not a reason", "marked"},
		{Derived, "initialize", "", "the handshake # follows"},
		{Value, "A/x = y # z", "XY", "it has an equals sign"},
		{CallNote, "m", `It has a # and "quotes".`, "beyond"},
		{Variant, "A/a=b", "AB", "marks stand between spaces"},
		{Name, "Long", "Longer", "continued twice"},
	}
	got, lines, err := ParseOverrides(table)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]int{3, 4, 5, 7, 8, 9, 10, 13}, lines); diff != "" {
		t.Errorf("lines, -want +got:\n%s", diff)
	}

	// Every wrong line is reported, and no correct line is lost.
	const wrong = "Nmae A = B # typo\n" +
		"Name\n" +
		"Name A # no value\n" +
		"Name A = # no value\n" +
		"Name A = B\n" +
		"Name A = B #\n" +
		"Derived m = x # a value\n" +
		"Name \"A = B # no end\n" +
		"Name A = B # first\n" +
		"Name A = C # second\n" +
		"Name A\x1b[31m = B # control\n" +
		"Name \"A\" B = C # garbage\n" +
		"Always\n" +
		"Always \\"
	_, _, err = ParseOverrides(wrong)
	if err == nil {
		t.Fatal("the file was accepted")
	}
	wantLines := []string{
		`line 1: unknown kind "Nmae": expected one of Name, Member,`,
		`line 2: Name has no subject`,
		`line 3: {Name, "A"} decides nothing: expected = and a value after the subject`,
		`line 4: {Name, "A"} decides nothing`,
		`line 5: {Name, "A"} has no reason: expected # and one at the end`,
		`line 6: {Name, "A"} has no reason`,
		`line 7: {Derived, "m"} has no value: expected nothing but a reason after the subject`,
		`line 8: a string does not end`,
		`line 10: {Name, "A"} is decided in line 9`,
		`line 11: "A\x1b[31m" has characters that do not show: write it as a string of Go`,
		`line 12: {Name, "A"} decides nothing`,
		`line 13: Always has no subject`,
		`the last line ends with a backslash`,
	}
	problems := Problems(err)
	if len(problems) != len(wantLines) {
		t.Errorf("got %d problems, want %d:\n%v", len(problems), len(wantLines), err)
	}
	for i, problem := range problems[:min(len(problems), len(wantLines))] {
		if s := problem.Error(); !strings.HasPrefix(s, wantLines[i]) || text.Line(s) != s {
			t.Errorf("got %s, want %s", s, wantLines[i])
		}
	}
}

// The table of this project can be written as a file, and so can overrides with any text from a schema.
func TestOverridesAsText(t *testing.T) {
	var all []Override
	for _, list := range Overrides {
		all = append(all, list...)
	}
	for _, s := range append(slices.Clone(hostileTexts), `"`, "=", "#", "a =", "# b", " a ", "a\tb") {
		all = append(all, Override{Member, s, s, "hostile"}, Override{Ungated, s, "", "hostile"})
	}
	for _, o := range all {
		got, _, err := ParseOverrides(o.String())
		if err != nil || len(got) != 1 || got[0] != o {
			t.Errorf("%s: got %q, %v, want %q", o, got, err, o)
		}
	}
}

// Every error that overrides resolve can be resolved with those that it suggests, as lines of a file, and with their
// pointers in place of their subjects. What archives named suggest show needs only one round.
func TestSuggestionsResolve(t *testing.T) {
	check := newChecker(t)
	resolve := func(path string, archive *txtar.Archive, rounds int) {
		for _, byPointer := range []bool{false, true} {
			config := configIn(t, archive, "schema.json")
			config.Facade = config.Stable != nil
			files, err := Generate(config)
			for round := 0; err != nil && round < rounds; round++ {
				for _, problem := range Problems(err) {
					want, ok := errors.AsType[*Wanted](problem)
					if !ok {
						t.Fatalf("%s: %v", path, problem)
					}
					suggested, _, err := ParseOverrides(want.Override.String())
					if err != nil || len(suggested) != 1 || suggested[0] != want.Override {
						t.Fatalf("%s: %s: got %v, %v", path, want.Override, suggested, err)
					}
					o := suggested[0]
					if byPointer && o.Kind != Ignored {
						o.Subject, _, _ = strings.Cut(problem.Error(), ": ")
						o.Value = fmt.Sprintf("Resolved%d", len(config.Overrides))
					}
					if !slices.ContainsFunc(config.Overrides, o.same) {
						config.Overrides = append(config.Overrides, o)
					}
				}
				files, err = Generate(config)
			}
			if err != nil {
				t.Errorf("%s: with %v: %v", path, config.Overrides, err)
			} else if _, err := check.check(files); err != nil && !config.Facade { // which hand-written files complete
				t.Errorf("%s: with %v it does not compile: %v", path, config.Overrides, err)
			}
		}
	}
	for path, archive := range archives(t, "testdata/errors/suggest_*.txtar") {
		resolve(path, archive, 1)
	}
	for path, archive := range archives(t, "testdata/errors/name_*.txtar") {
		resolve(path, archive, 5)
	}
}

// The subject of an Ignored override is treated as if the schema did not have it. The members that ignored patterns allow
// are kept, even if all others are forbidden. Errors about unknown keywords suggest such an override.
func TestIgnored(t *testing.T) {
	const patterns = `"patternProperties":{"^[0-9]+$":{"type":"string"}}`
	const with = `{"$defs":{
		"T":{"if":{"required":["a"]},"type":"object","required":["x/y","a","z"],"properties":{"a":{"type":"string","if":true},"x/y":{"$dynamicRef":"#m"},"z":{"type":"boolean"}}},
		"M":{"type":"object","required":["x"],"properties":{"x":{"$anchor":"x"}}},
		"P":{"type":"string","contains":{}},
		"Closed":{"type":"object",` + patterns + `,"additionalProperties":false},
		"Rest":{"type":"object","properties":{"a":{"type":"string"}},` + patterns + `,"additionalProperties":{"type":"integer"}}}}`
	const without = `{"$defs":{
		"T":{"type":"object","required":["a","z"],"properties":{"a":{"type":"string"},"z":{"type":"boolean"}}},
		"M":{"type":"object","properties":{}},
		"P":{"type":"string"},
		"Closed":{"type":"object","additionalProperties":true},
		"Rest":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":true}}}`
	ignored := func(subjects ...string) (out []Override) {
		for _, subject := range subjects {
			out = append(out, Override{Kind: Ignored, Subject: subject, Why: "for the test"})
		}
		return out
	}
	want := must.Get(bodies(without))(t)
	for _, overrides := range [][]Override{
		ignored("/$defs/T/if", "/$defs/T/properties/a/if", "/$defs/T/properties/x~1y", "/$defs/M/properties/x", "/$defs/P/contains",
			"/$defs/Closed/patternProperties", "/$defs/Rest/patternProperties"),
		ignored("if", "/$defs/T/properties/x~1y", "/$defs/M/properties/x", "contains", "patternProperties"),
	} {
		if got, err := bodies(with, overrides...); err != nil || !maps.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%v: got %s, %v", overrides, got, err)
		}
	}
	_, err := bodies(with, ignored("/$defs/P/contains", "patternProperties")...)
	var suggested []string
	for _, problem := range Problems(err) {
		want, ok := errors.AsType[*Wanted](problem)
		if !ok || want.Kind != Ignored || !errors.Is(problem, schema.ErrKeyword) {
			t.Fatalf("got %v", problem)
		}
		suggested = append(suggested, want.Subject)
	}
	if want := []string{"/$defs/T/if", "/$defs/T/properties/a/if", "/$defs/T/properties/x~1y/$dynamicRef", "/$defs/M/properties/x/$anchor"}; !slices.Equal(suggested, want) {
		t.Errorf("got %q, want %q", suggested, want)
	}
	if _, err := bodies(with, ignored(append(suggested, "/$defs/P/contains", "patternProperties")...)...); err != nil {
		t.Error(err)
	}
	_, err = bodies(without, ignored("/$defs/T/if", "a")...)
	if err == nil || err.Error() != `/: the override {Ignored, "/$defs/T/if", ""} is not used: the schema has no such thing`+"\n"+
		`/: the override {Ignored, "a", ""} is not used: the schema has no such thing` {
		t.Errorf("got %v", err)
	}
}

// An override can add only names to Go code.
func TestHostileOverrides(t *testing.T) {
	tier.Need(t, tier.Normal)
	config := configIn(t, must.Get(txtar.ParseFile("testdata/api/methods.txtar"))(t), "new.json")
	config.Facade, config.keepStale = true, true
	overrides := slices.Clip(config.Overrides)
	for _, s := range hostileTexts {
		config.Overrides = append(overrides,
			Override{CallNote, "list", s, ""}, Override{HandlerNote, "list", s, ""}, Override{CallNote, "question", s, ""}, Override{HandlerNote, "ask", s, ""})
		out := must.Get(generate(config))(t)
		for name, source := range out.Files {
			requireShown(t, name, source)
		}
		for _, o := range []Override{
			{Name, "Caps", s, ""}, {Member, "Caps/list", s, ""}, {Handler, "ListRequest", s, ""},
		} {
			config.Overrides = append(overrides, o)
			if _, err := generate(config); err == nil {
				t.Errorf("%v was accepted", o)
			} else {
				requireLines(t, err)
			}
		}
	}
}
