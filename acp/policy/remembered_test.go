package policy_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/internal/test/must"
)

type session struct {
	id   acp.SessionID
	cwd  string
	mode acp.SessionModeID
}

func (s session) ID() acp.SessionID       { return s.id }
func (s session) Cwd() string             { return s.cwd }
func (s session) Mode() acp.SessionModeID { return s.mode }

// A decision holds for the same agent and working directory, and for the same call.
func TestRemembered(t *testing.T) {
	p := must.Get(policy.New(nil, nil))(t)
	file := filepath.Join(t.TempDir(), "rules.json")
	list := acp.ToolCall{Kind: acp.ToolKindExecute, RawInput: acp.Raw(map[string]string{"command": "ls"})}
	remove := acp.ToolCall{Kind: acp.ToolKindExecute, RawInput: acp.Raw(map[string]string{"command": "rm x"})}
	here, elsewhere := session{"1", "/here", ""}, session{"2", "/elsewhere", ""}
	r := &policy.Remembered{Memory: policy.NewFile(file), Agent: "me"}
	must.Do(t, r.Remember(here, list, acp.PermissionOptionKindAllowAlways))
	must.Do(t, r.Remember(here, remove, acp.PermissionOptionKindRejectAlways))
	if err := r.Remember(here, acp.ToolCall{Title: "?"}, acp.PermissionOptionKindAllowAlways); err == nil {
		t.Error("a call that no rule describes is remembered")
	}
	r.Memory = policy.NewFile(file) // as in another process
	other := &policy.Remembered{Policy: p, Memory: r.Memory, Agent: "other"}
	for _, test := range []struct {
		by   *policy.Remembered
		s    session
		call acp.ToolCall
		want acp.PermissionOptionKind
	}{
		{r, here, list, acp.PermissionOptionKindAllowOnce}, {r, here, remove, acp.PermissionOptionKindRejectOnce},
		{r, elsewhere, list, ""}, {other, here, list, ""},
	} {
		if kind, why, err := test.by.Decide(test.s, test.call); kind != test.want || err != nil {
			t.Errorf("%s in %s, %s: %q, %s, %v; want %q", test.by.Agent, test.s.cwd, test.call.RawInput, kind, why, err, test.want)
		}
	}
	must.Do(t, os.WriteFile(file, []byte("not a rule\n"), 0o600))
	if kind, _, err := r.Decide(here, list); err == nil || kind != "" {
		t.Errorf("a file that cannot be read: %q, %v", kind, err)
	}
}

// A tool of an MCP server is allowed for the server as it is declared, and rejected under its name.
func TestRememberedServer(t *testing.T) {
	s := session{"1", "/here", ""}
	tool := func(server any) acp.ToolCall {
		call := acp.ToolCall{Kind: acp.ToolKindOther, Name: acp.Some("files__put"), RawInput: []byte(`{"n": 1}`)}
		must.Do(t, call.Meta.Set("github.com/acpgo/sdk/mcpServer", server))
		return call
	}
	unmarked := acp.ToolCall{Kind: acp.ToolKindOther, Name: acp.Some("files__put")}
	r := policy.Remembered{Agent: "me"}
	for _, step := range []struct {
		remember acp.PermissionOptionKind
		call     acp.ToolCall
		want     []acp.PermissionOptionKind // for the server a, the server b, one that is not valid, and none
	}{
		{acp.PermissionOptionKindAllowAlways, tool("a"), []acp.PermissionOptionKind{acp.PermissionOptionKindAllowOnce, "", "", ""}},
		{acp.PermissionOptionKindRejectAlways, tool("b"), slices.Repeat([]acp.PermissionOptionKind{acp.PermissionOptionKindRejectOnce}, 4)},
	} {
		must.Do(t, r.Remember(s, step.call, step.remember))
		for i, call := range []acp.ToolCall{tool("a"), tool("b"), tool(1), unmarked} {
			if kind, why, err := r.Decide(s, call); kind != step.want[i] || err != nil {
				t.Errorf("after %s, call %d: %q because %s, %v", step.remember, i, kind, why, err)
			}
		}
	}
	old := &policy.SessionMemory{} // with a rule as it was before it named the server
	must.Do(t, old.Add(s.ID(), policy.Rule{Effect: policy.Allow, Kinds: []acp.ToolKind{acp.ToolKindOther}, Tools: []string{"files__put"}}))
	r.Memory = old
	for call, want := range map[*acp.ToolCall]acp.PermissionOptionKind{new(tool("a")): "", &unmarked: acp.PermissionOptionKindAllowOnce} {
		if kind, why, err := r.Decide(s, *call); kind != want || err != nil {
			t.Errorf("by a rule without the server: %q because %s, %v", kind, why, err)
		}
	}
	if err := r.Remember(s, tool("a*"), acp.PermissionOptionKindAllowAlways); err == nil {
		t.Error("a wildcard in the server was remembered")
	}
}
