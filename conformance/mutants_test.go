package conformance_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/cleantest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestCleanRecordings requires that there are no findings in the clean recordings, with the schema of their version and
// with all published schemas.
func TestCleanRecordings(t *testing.T) {
	eachClean(t, clean)
}

// TestMutants requires that each mutant is found by its own rule and the other rules that it names, and by no others,
// and that each rule has a mutant in each of its versions.
func TestMutants(t *testing.T) {
	byRule := map[string][]mutant{}
	for _, m := range readMutants(t, "[A-Z]*.txt") {
		byRule[m.what] = append(byRule[m.what], m)
	}
	for _, r := range conformance.Rules() {
		for _, version := range r.Versions {
			of := func(m mutant) bool { return m.clean[1] == '0'+byte(version) }
			if !slices.ContainsFunc(byRule[r.ID], of) {
				t.Errorf("rule %s has no mutant of version %d", r.ID, version)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(byRule)) {
		t.Run(id, func(t *testing.T) {
			for _, m := range byRule[id] {
				findings := cleantest.Judge(cleanSchema(m.clean), m.lines, m.closedBy)
				got, want := map[string]bool{}, map[string]bool{id: true}
				for _, f := range findings {
					got[f.Rule] = true
					provable(t, m.lines, f)
				}
				for _, other := range m.also {
					want[other] = true
				}
				if !maps.Equal(got, want) {
					wrong := slices.DeleteFunc(findings, func(f conformance.Finding) bool { return want[f.Rule] })
					t.Errorf("%s: got %v, want %v%s", m.clean, got, want, show(m.lines, wrong[:min(len(wrong), 2)]))
				}
			}
		})
	}
}

// TestHarmlessMutants covers conversations that the recordings lack because they are rare, although they are valid.
func TestHarmlessMutants(t *testing.T) {
	for _, m := range readMutants(t, "harmless.txt") {
		t.Run(m.what, func(t *testing.T) { clean(t, m.clean, m.lines) })
	}
}

// provable requires that a finding and its evidence refer to messages of the conversation, and show them.
func provable(t *testing.T, lines []conformance.Message, f conformance.Finding) {
	t.Helper()
	if f.Number < 1 || f.Number > len(lines) || lines[f.Number-1].Direction != f.Direction || f.Message == "" {
		t.Errorf("%s is about message %d", f, f.Number)
	}
	for _, e := range f.Evidence {
		if e.Number < 1 || e.Number > len(lines) || lines[e.Number-1].Direction != e.Direction || e.Why == "" ||
			!strings.HasPrefix(string(lines[e.Number-1].Line), strings.TrimSuffix(e.Excerpt, "…")) {
			t.Errorf("%s: the evidence is message %d: %s: %s", f, e.Number, e.Why, e.Excerpt)
		}
	}
}

// TestWildMutants changes the clean recordings at random, several times each. Whatever the result is, the judge reports
// only what it can prove, and continues.
func TestWildMutants(t *testing.T) {
	tier.Need(t, tier.Normal)
	values := []string{`null`, `0`, `-1`, `1e400`, `""`, `"sess_1"`, `"../x"`, `[]`, `[[]]`, `{}`, `true`, `"\u0000"`, `9007199254740993`, `{"_meta":null}`}
	rounds := 0
	for _, name := range cleanNames(t) {
		recorded := readClean(t, name)
		for seed := range tier.Pick[uint64](0, 3, 60, 300) {
			rng := rand.New(rand.NewPCG(seed, 4))
			lines := slices.Clone(recorded)
			for range 1 + rng.IntN(6) {
				i, j := rng.IntN(len(lines)), rng.IntN(len(lines))
				switch rng.IntN(7) {
				case 0:
					lines = slices.Delete(lines, i, i+1)
				case 1:
					lines = slices.Insert(lines, j, lines[i])
				case 2:
					lines[i], lines[j] = lines[j], lines[i]
				case 3:
					lines[i].Direction = conformance.ToAgent + conformance.ToClient - lines[i].Direction
				case 4: // a piece of it
					lines[i].Line = lines[i].Line[:rng.IntN(len(lines[i].Line)+1)]
				default: // another value somewhere
					if m := decode(lines[i].Line); m != nil {
						wild(rng, m, parseJSON(values[rng.IntN(len(values))]))
						lines[i].Line = encode(m)
					}
				}
			}
			for _, schema := range []*conformance.Schema{cleanSchema(name), nil} {
				for _, f := range cleantest.Judge(schema, lines, conformance.Side(rng.IntN(3))) {
					provable(t, lines, f)
				}
				rounds++
			}
		}
	}
	t.Logf("%d conversations", rounds)
}

// wild puts a value at a place of an object that is chosen at random.
func wild(rng *rand.Rand, v, value any) {
	switch v := v.(type) {
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		if len(names) == 0 {
			return
		}
		name := names[rng.IntN(len(names))]
		switch rng.IntN(4) {
		case 0:
			delete(v, name)
		case 1:
			v[name] = value
		default:
			wild(rng, v[name], value)
		}
	case []any:
		if len(v) == 0 {
			return
		}
		if i := rng.IntN(len(v)); rng.IntN(3) == 0 {
			v[i] = value
		} else {
			wild(rng, v[i], value)
		}
	}
}
