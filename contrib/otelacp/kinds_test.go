package otelacp

import (
	"encoding/json"
	"slices"
	"testing"

	sdk "github.com/acpgo/sdk"
	"github.com/acpgo/sdk/internal/test/must"
)

// What is not known would be counted as _OTHER.
func TestKnownValues(t *testing.T) {
	var known []string
	for _, kind := range updateKinds[1:] {
		known = append(known, kind.name)
	}
	var all []string
	for _, schema := range []string{sdk.SchemaV1(), sdk.SchemaV1Unstable()} {
		var doc struct {
			Defs map[string]struct {
				OneOf []struct {
					Const      string
					Properties struct {
						SessionUpdate struct{ Const string }
						Outcome       struct{ Const string }
					}
				}
			} `json:"$defs"`
		}
		must.Do(t, json.Unmarshal([]byte(schema), &doc))
		for _, variant := range doc.Defs["SessionUpdate"].OneOf {
			kind := variant.Properties.SessionUpdate.Const
			if all = append(all, kind); !slices.Contains(known, kind) {
				t.Errorf("the kind %q is not known", kind)
			}
		}
		for _, reason := range doc.Defs["StopReason"].OneOf {
			if !slices.Contains(stopReasons, reason.Const) {
				t.Errorf("the stop reason %q is not known", reason.Const)
			}
		}
		for _, outcome := range doc.Defs["RequestPermissionOutcome"].OneOf {
			if !slices.Contains(outcomes, outcome.Properties.Outcome.Const) {
				t.Errorf("the outcome %q is not known", outcome.Properties.Outcome.Const)
			}
		}
	}
	for _, kind := range known {
		if !slices.Contains(all, kind) {
			t.Errorf("no schema has the kind %q", kind)
		}
	}
}
