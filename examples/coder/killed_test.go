package main

import (
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/modelstub"
)

// An agent that was killed in a call leaves a conversation that continues in another process.
func TestKilled(t *testing.T) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			h := start(t, setup{api: api, killed: true, script: func(modelstub.Request) *modelstub.Answer {
				return use("run", `{"command": "sleep 1"}`)
			}})
			s := h.session(t)
			turn := s.Stream(t.Context(), acp.TextBlock("Go on"))
			for u := range turn.Updates() {
				call, ok := u.Variant.(*acp.SessionUpdateToolCallUpdate)
				if ok && call.Status.Value() == acp.ToolCallStatusInProgress {
					if err := h.cmd.Process.Kill(); err != nil {
						t.Error(err)
					}
				}
			}
			if _, err := turn.Result(); err == nil {
				t.Error("the turn of an agent that was killed has ended")
			}
			h = start(t, setup{api: api, state: h.state, dir: h.dir, script: func(r modelstub.Request) *modelstub.Answer {
				return say(r.Prompt)
			}})
			s, err := h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: h.dir})
			if err != nil {
				t.Fatal(err)
			}
			same(t, "afterwards", h.prompt(t, s, "Hello"), "agent: Hello")
		})
	}
}
