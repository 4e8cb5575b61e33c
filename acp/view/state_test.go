package view_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// random makes updates out of few ids and words, so that they meet.
type random struct{ *rand.Rand }

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 17))} }

func (r random) of(words ...string) string { return words[r.IntN(len(words))] }

// maybe sets a member, to null at times, or does not.
func (r random) maybe(o object, key string, null bool, value any) {
	switch n := r.IntN(4); {
	case n == 0:
	case n == 1 && null:
		o[key] = nil
	default:
		o[key] = value
	}
}

func (r random) block() any {
	switch r.IntN(8) {
	case 0:
		return object{"type": "image", "data": r.of("", "AAAA"), "mimeType": "image/png"}
	case 1:
		return object{"type": "text", "text": r.of("a", "b"), "annotations": object{"priority": 1.0}}
	case 2:
		return object{"type": "hologram", "data": r.of("x", "y")}
	}
	return object{"type": "text", "text": r.of("", "a", "b", "ab", "é\n")}
}

func (r random) blocks() []any {
	blocks := []any{}
	for range r.IntN(3) {
		blocks = append(blocks, r.block())
	}
	return blocks
}

// read returns an update as package acp reads it.
func (r random) read(t *testing.T) (update acp.SessionUpdate) {
	t.Helper()
	must.Do(t, json.Unmarshal([]byte(text(r.update())), &update))
	return update
}

func (r random) update() object {
	u := object{"sessionUpdate": r.of(
		"user_message_chunk", "user_message_chunk", "agent_message_chunk", "agent_message_chunk", "agent_thought_chunk",
		"tool_call", "tool_call_update", "tool_call_update", "plan", "plan_update", "plan_removed", "available_commands_update",
		"current_mode_update", "config_option_update", "session_info_update", "usage_update", "notice", "compaction_update",
		"compaction_summary_chunk", "subagent_update", "session_message", "session_message_chunk", "of_tomorrow")}
	r.maybe(u, "_meta", false, object{"n": float64(r.IntN(3))})
	switch u["sessionUpdate"] {
	case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk":
		u["content"] = r.block()
		r.maybe(u, "messageId", true, r.of("m1", "m2", "m3"))
	case "tool_call", "tool_call_update":
		u["toolCallId"] = r.of("t1", "t2", "t3")
		null := u["sessionUpdate"] == "tool_call_update"
		if r.maybe(u, "title", null, r.of("T", "U")); !null {
			u["title"] = r.of("T", "U")
		}
		r.maybe(u, "kind", null, r.of("read", "edit"))
		r.maybe(u, "status", null, r.of("pending", "in_progress", "completed", "failed"))
		r.maybe(u, "name", false, r.of("n", "o"))
		r.maybe(u, "rawInput", null, object{"a": float64(r.IntN(3))})
		r.maybe(u, "rawOutput", null, r.of("x", "y"))
		r.maybe(u, "locations", null, []any{object{"path": r.of("/a", "/b")}})
		r.maybe(u, "content", null, []any{object{"type": "content", "content": object{"type": "text", "text": r.of("c", "d")}}})
	case "plan":
		u["entries"] = []any{object{"content": r.of("p", "q"), "priority": "low", "status": "pending"}}
	case "plan_update":
		u["plan"] = object{"type": "markdown", "planId": r.of("p1", "p2"), "content": r.of("c", "d")}
		delete(u, "_meta")
	case "plan_removed":
		u["planId"] = r.of("p1", "p2")
	case "available_commands_update":
		u["availableCommands"] = []any{object{"name": r.of("c", "d"), "description": ""}}
	case "current_mode_update":
		u["currentModeId"] = r.of("ask", "code")
	case "config_option_update":
		u["configOptions"] = []any{object{"id": "o", "name": "O", "type": "boolean", "currentValue": r.IntN(2) == 0}}
	case "session_info_update":
		r.maybe(u, "title", true, r.of("t", "u"))
		r.maybe(u, "updatedAt", true, r.of("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"))
	case "usage_update":
		u["used"], u["size"] = float64(r.IntN(9)), 10.0
		r.maybe(u, "cost", true, object{"amount": float64(r.IntN(9)), "currency": "EUR"})
	case "notice":
		u["severity"], u["title"] = "info", r.of("n", "o")
	case "compaction_update":
		u["compactionId"], u["status"] = r.of("c1", "c2"), r.of("in_progress", "completed", "failed")
		r.maybe(u, "summary", true, r.blocks())
		r.maybe(u, "error", true, r.of("e", "f"))
	case "compaction_summary_chunk":
		u["compactionId"], u["content"] = r.of("c1", "c2"), r.block()
		delete(u, "_meta")
	case "subagent_update":
		u["sessionId"] = r.of("s1", "s2")
		r.maybe(u, "title", true, r.of("t", "u"))
		r.maybe(u, "description", true, r.of("d", "e"))
		r.maybe(u, "capabilities", true, object{"cancel": object{}})
		r.maybe(u, "state", true, object{"state": r.of("running", "requires_action", "unknown")})
		r.maybe(u, "cwd", true, r.of("/a", "/b"))
		r.maybe(u, "additionalDirectories", true, []any{r.of("/c", "/d")})
	case "session_message":
		u["messageId"] = r.of("m1", "m2")
		r.maybe(u, "senderSessionId", true, r.of("s1", "s2"))
		r.maybe(u, "recipientSessionId", true, r.of("s1", "s2"))
		r.maybe(u, "senderMessageId", true, r.of("m1", "m2"))
		r.maybe(u, "recipientMessageId", true, r.of("m1", "m2"))
		r.maybe(u, "content", true, r.blocks())
	case "session_message_chunk":
		u["messageId"], u["content"] = r.of("m1", "m2"), r.block()
	}
	return u
}

// Snapshots stay what they were, and what changed between two of them is all that is different.
func TestRandomUpdates(t *testing.T) {
	for seed := range tier.Pick[uint64](1, 4, 6, 200) {
		r, state := newRandom(seed), view.New(nil)
		var old *view.Snapshot
		kept := map[*view.Snapshot]string{}
		for i := range 120 {
			switch {
			case i%30 == 29:
				state.Reset()
			case i%10 == 0:
				defer state.Prompt(acp.TextBlock("go")).End(nil, nil)
			default:
				state.Update(r.read(t))
			}
			s := state.Snapshot()
			kept[s] = describe(s)
			checkChanged(t, old, s)
			old = s
		}
		for s, was := range kept {
			if is := describe(s); is != was {
				t.Fatalf("seed %d: a snapshot has changed:\n%s", seed, cmp.Diff(was, is))
			}
		}
	}
}

// checkChanged checks that a snapshot is an older one with the items that are said to have changed.
func checkChanged(t *testing.T, old, s *view.Snapshot) {
	t.Helper()
	known := map[int]*view.Item{}
	if s.SameHistory(old) {
		for item := range old.Items() {
			known[item.Index] = item
		}
	}
	for item := range s.Changed(old) {
		if known[item.Index] == item {
			t.Errorf("item %d has not changed", item.Index)
		}
		known[item.Index] = item
	}
	for item := range s.Items() {
		if known[item.Index] != item {
			t.Errorf("item %d has changed, which is not said", item.Index)
		}
		if s.Item(item.Index) != item {
			t.Errorf("item %d is another one by its index", item.Index)
		}
	}
}
