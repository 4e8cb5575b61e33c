package policy_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/must"
)

// What real agents ask for is decided as its user would expect; Gemini CLI says which command it wants to run in a
// title.
func TestRecordings(t *testing.T) {
	shared := os.Getenv("ACP_SHARED")
	if shared == "" {
		t.Skip("ACP_SHARED does not say where recordings are")
	}
	rules := mustParse(t, `{"effect":"allow","kind":["edit"],"path":["/home/user/project/**"]}
		{"effect":"allow","kind":["execute"],"command":["echo *","tee cmd-out.txt"]}`)
	p := must.Get(policy.New(rules, &policy.Options{POSIXShell: true}))(t)
	titled := must.Get(policy.New(rules, &policy.Options{
		POSIXShell: true, Line: func(agent string, call acp.ToolCall) (string, bool) { return call.Title, agent == "gemini" },
	}))(t)
	for agent, want := range map[string]string{
		"claude": "edit allow, execute allow, ", "opencode": "edit allow, execute allow, ", "gemini": "edit allow, execute ask, ",
		"zed-claude-old": "edit allow, execute allow, ",
	} {
		file := must.Get(os.Open(filepath.Join(shared, "traces", agent, "turn.jsonl")))(t)
		defer file.Close()
		state, got := view.New(nil), ""
		lines := bufio.NewScanner(file)
		for lines.Buffer(nil, 64<<20); lines.Scan(); {
			var line struct{ Raw json.RawMessage }
			var raw string
			var m struct {
				Method string
				Params json.RawMessage
			}
			if json.Unmarshal(lines.Bytes(), &line) != nil || json.Unmarshal(line.Raw, &raw) != nil || json.Unmarshal([]byte(raw), &m) != nil {
				continue // the recordings have lines that are not messages
			}
			switch m.Method {
			case acp.MethodSessionUpdate:
				var n acp.SessionNotification
				must.Do(t, json.Unmarshal(m.Params, &n))
				state.Update(n.Update)
			case acp.MethodRequestPermission:
				var req acp.RequestPermissionRequest
				must.Do(t, json.Unmarshal(m.Params, &req))
				state.BeginPermission(&req)
				call, _ := state.ToolCall(req.ToolCall.ToolCallID)
				d := must.Get(p.Explain(policy.Request{ToolCall: call, Cwd: "/home/user/project"}))(t)
				got += fmt.Sprintf("%s %s, ", call.Kind, d.Effect)
				t.Logf("%s: %s", agent, d)
				if d, err := titled.Explain(policy.Request{ToolCall: call, Agent: agent}); err != nil || d.Effect != policy.Allow {
					t.Errorf("%s, with the title: %s, %v", agent, d, err)
				}
			}
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", agent, got, want)
		}
	}
}
