package conformance

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/acpgo/sdk"
	"github.com/acpgo/sdk/gen/sample"
)

// tally counts the values of a test.
type tally struct{ right, sure, wrong int }

// promise requires that a plan admits only what the library has nothing to say about.
func (c *tally) promise(t *testing.T, s *Schema, name string, v *node) bool {
	t.Helper()
	sure, flaws := s.surely(name, v), s.flaws(name, v.tree())
	switch {
	case sure && len(flaws) > 0:
		t.Errorf("%s: %s: the plan admits what has findings: %v", name, v.raw(), flaws)
		return false
	case len(flaws) > 0:
		c.wrong++
	case sure:
		c.sure++
		c.right++
	default:
		c.right++
	}
	return true
}

// TestPlansPublished makes values of every definition of the module's schemas, right and spoilt ones, and
// requires that plans promise nothing wrong, and that they know nearly all that is right.
func TestPlansPublished(t *testing.T) {
	for name, text := range map[string]string{
		"v1": sdk.SchemaV1(), "v1 unstable": sdk.SchemaV1Unstable(), "v2": sdk.SchemaV2(), "v2 unstable": sdk.SchemaV2Unstable(),
	} {
		t.Run(name, func(t *testing.T) {
			s, err := NewSchema([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			judge, err := sample.NewJudge([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			drawer := sample.NewDrawer(judge, 1)
			var all tally
			for _, name := range slices.Sorted(maps.Keys(s.definitions)) {
				var own tally
				for range 60 {
					v, _ := drawer.Valid(name)
					for range 4 {
						text, err := json.Marshal(v)
						if err != nil {
							t.Fatal(err)
						}
						own.promise(t, s, name, decode(t, text))
						v = drawer.Spoilt(v)
					}
				}
				if own.sure*2 < own.right {
					t.Logf("%s: plans know %d of %d right values", name, own.sure, own.right)
				}
				all.right, all.sure, all.wrong = all.right+own.right, all.sure+own.sure, all.wrong+own.wrong
			}
			t.Logf("plans know %d of %d right values; %d were wrong; %d plans", all.sure, all.right, all.wrong, len(s.planner.plans))
		})
	}
}
