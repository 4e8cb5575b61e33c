package policy_test

import (
	"fmt"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
)

// Rules are read from a file, and explain what they would do.
func Example() {
	rules, err := policy.Parse([]byte(`{"rules": [
		{"effect": "allow", "kind": ["read", "search"], "path": ["/home/me/project/**"]},
		{"effect": "allow", "readOnly": true},
		{"effect": "reject", "path": ["**/.env"], "reason": "secrets stay here"}
	]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := policy.New(rules, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, call := range []acp.ToolCall{
		{Kind: acp.ToolKindRead, Locations: []acp.ToolCallLocation{{Path: "/home/me/project/main.go"}}},
		{Kind: acp.ToolKindExecute, RawInput: acp.Raw(map[string]string{"command": "git log -3; rm -rf /"})},
		{Kind: acp.ToolKindRead, Locations: []acp.ToolCallLocation{{Path: "/home/me/project/.env"}}},
	} {
		d, err := p.Explain(policy.Request{ToolCall: call})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Effect)
	}
	// Output:
	// allow
	// ask
	// reject
}
