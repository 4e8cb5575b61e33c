package main

import (
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
)

// --allow takes the only option that allows once. It never answers for always, nor where options differ in more than
// their kind, nor what a rule may reject.
func TestAllow(t *testing.T) {
	yes, no, always, never := acp.AllowOnce("y", "Yes"), acp.RejectOnce("n", "No"), acp.AllowAlways("aa", "Always"), acp.RejectAlways("nn", "Never")
	other := acp.PermissionOption{OptionID: "e", Kind: "allow_with_edits", Name: "Edit first"}
	var secrets policy.Decision
	secrets.Verdicts = []policy.Verdict{{Rule: policy.Rule{Effect: policy.Reject}, Matches: true}}
	for name, test := range map[string]struct {
		decision policy.Decision
		options  []acp.PermissionOption
		want     acp.PermissionOptionID
		person   bool // only a person can answer
	}{
		"once":                  {policy.Decision{}, []acp.PermissionOption{always, no, yes, never}, "y", false},
		"unknown kinds":         {policy.Decision{}, []acp.PermissionOption{other, yes, no}, "y", false},
		"only unknown kinds":    {policy.Decision{}, []acp.PermissionOption{other, no}, "n", true},
		"only always":           {policy.Decision{}, []acp.PermissionOption{always, never, no}, "n", true},
		"only always, no once":  {policy.Decision{}, []acp.PermissionOption{always, never}, "", true},
		"a choice":              {policy.Decision{}, []acp.PermissionOption{acp.AllowOnce("a", "A"), acp.AllowOnce("b", "B"), no}, "n", true},
		"the same ids":          {policy.Decision{}, []acp.PermissionOption{acp.AllowOnce("n", "N"), no}, "", true},
		"nothing":               {policy.Decision{}, nil, "", true},
		"a rule may reject":     {secrets, []acp.PermissionOption{yes, no}, "n", false},
		"a rule may, only once": {secrets, []acp.PermissionOption{yes, never}, "", false},
	} {
		if id, why := allow(&test.decision, test.options); id != test.want || (why != "") != test.person {
			t.Errorf("%s: got %q, %q", name, id, why)
		}
	}
}
