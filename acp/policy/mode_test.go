package policy_test

import (
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
)

func TestModes(t *testing.T) {
	edit := acp.ToolCall{Kind: acp.ToolKindEdit, Content: []acp.ToolCallContent{acp.ToolText("Look:"), acp.ToolEdit("/a", "1", "2")}}
	unseen := acp.ToolCall{Kind: acp.ToolKindEdit, Content: []acp.ToolCallContent{acp.ToolText("It edits something.")}}
	run := acp.ToolCall{Kind: acp.ToolKindExecute, Content: edit.Content}
	const allow, reject = acp.PermissionOptionKindAllowOnce, acp.PermissionOptionKindRejectOnce
	want := map[acp.SessionModeID][3]acp.PermissionOptionKind{ // edit, unseen, run
		policy.ModeAsk: {}, policy.ModeEdits: {allow}, policy.ModeReadOnly: {reject, reject, reject}, policy.ModeAll: {allow, allow, allow},
	}
	var r policy.Remembered
	modes := r.Modes()
	if len(modes) != len(want) || modes[0].ID != policy.ModeAsk {
		t.Errorf("the modes are %+v", modes)
	}
	modes = append(modes, acp.SessionMode{ID: "other"}, acp.SessionMode{})
	for _, mode := range modes {
		for i, call := range []acp.ToolCall{edit, unseen, run} {
			kind, why, err := r.Decide(session{"s", "", mode.ID}, call)
			if kind != want[mode.ID][i] || why == "" || err != nil {
				t.Errorf("%q, call %d: %q because %q, want %q, %v", mode.ID, i, kind, why, want[mode.ID][i], err)
			}
		}
	}
}
