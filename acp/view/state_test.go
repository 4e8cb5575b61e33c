package view_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/tier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recordings are those of real agents, and our own.
func recordings(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("../../cmd/acp/testdata/docs/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	shared := os.Getenv("ACP_SHARED")
	if shared == "" {
		t.Log("without ACP_SHARED, only our own recordings")
		return paths
	}
	others, err := filepath.Glob(filepath.Join(shared, "traces", "*", "*.jsonl"))
	if err != nil || len(others) == 0 {
		t.Fatalf("no recordings of others: %v", err)
	}
	return append(paths, others...)
}

// both is a State and the reference of one session.
type both struct {
	state *view.State
	ref   *reference
}

// The conversation that a recording is folded into is what the reference says, after every message.
func TestRecordings(t *testing.T) {
	updates, loads := 0, 0
	for _, path := range recordings(t) {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			file, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			sessions := map[string]*both{}
			of := func(params object) *both {
				id, _ := params["sessionId"].(string)
				if sessions[id] == nil {
					sessions[id] = &both{view.New(nil), newReference()}
				}
				return sessions[id]
			}
			answers := map[string]func(result object){} // by who asked, and the id
			lines := bufio.NewScanner(file)
			for lines.Buffer(nil, 64<<20); lines.Scan(); {
				var line struct{ From, Dir, Raw string }
				if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
					t.Fatal(err)
				}
				var m struct {
					ID                    json.RawMessage
					Method                string
					Params, Result, Error json.RawMessage
				}
				if json.Unmarshal([]byte(line.Raw), &m) != nil {
					continue // the recordings have lines that are no JSON
				}
				var params object
				if m.Params != nil {
					if err := json.Unmarshal(m.Params, &params); err != nil {
						continue
					}
				}
				if m.Method == "" {
					asker := map[string]string{"client": "agent", "agent": "client"}[line.From]
					if answered := answers[asker+string(m.ID)]; answered != nil {
						delete(answers, asker+string(m.ID))
						var result object
						if m.Result != nil {
							if err := json.Unmarshal(m.Result, &result); err != nil {
								t.Fatal(err)
							}
						}
						answered(result)
					}
					continue
				}
				b := of(params)
				switch m.Method {
				case "session/load":
					loads++
					b.state.Reset()
					b.ref.reset()
				case "session/cancel":
					for _, turn := range b.ref.running {
						b.ref.cancel(turn)
					}
				case "session/prompt":
					var req acp.PromptRequest
					if err := json.Unmarshal(m.Params, &req); err != nil {
						t.Fatal(err)
					}
					turn := b.state.Prompt(req.Prompt...)
					number := b.ref.prompt(params["prompt"].([]any))
					answers["client"+string(m.ID)] = func(result object) {
						stop, _ := result["stopReason"].(string)
						if b.ref.turns[number-1]["cancelled"] == true {
							turn.Cancel()
						}
						turn.End(&acp.PromptResponse{StopReason: acp.StopReason(stop)}, nil)
						b.ref.end(number, stop)
					}
				case "session/request_permission":
					var req acp.RequestPermissionRequest
					if err := json.Unmarshal(m.Params, &req); err != nil {
						t.Fatal(err)
					}
					answered := b.state.BeginPermission(&req)
					item := b.ref.asked(plainJSON(req).(object))
					answers["agent"+string(m.ID)] = func(result object) {
						var res acp.RequestPermissionResponse
						if err := json.Unmarshal([]byte(text(result)), &res); err != nil {
							t.Fatal(err)
						}
						answered(&res)
						item["outcome"] = result["outcome"]
					}
				case "session/update":
					updates++
					update, u := decoded(t, []byte(text(params["update"])))
					b.ref.update(u)
					b.state.Update(update)
				}
			}
			if err := lines.Err(); err != nil {
				t.Fatal(err)
			}
			for id, b := range sessions {
				if diff := cmp.Diff(b.ref.normal(), describe(b.state.Snapshot())); diff != "" {
					t.Errorf("session %s (-reference +state):\n%s", id, diff)
				}
			}
		})
	}
	t.Logf("%d updates, %d loads", updates, loads)
	if updates == 0 {
		t.Error("no updates")
	}
}

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

// Whatever comes, the State is what the reference says, snapshots stay what they were, and what changed between two of
// them is all that is different.
func TestRandomUpdates(t *testing.T) {
	for seed := range tier.Pick[uint64](1, 4, 6, 200) {
		r := newRandom(seed)
		state, ref := view.New(nil), newReference()
		turns := map[int]*view.Turn{}
		var old *view.Snapshot
		kept := map[*view.Snapshot]string{}
		log := []string{}
		for range 120 {
			switch n := r.IntN(40); {
			case n == 0 && len(ref.running) < 3:
				blocks := r.blocks()
				log = append(log, "prompt "+text(blocks))
				var prompt []acp.ContentBlock
				if err := json.Unmarshal([]byte(text(blocks)), &prompt); err != nil {
					t.Fatal(err)
				}
				turn := state.Prompt(prompt...)
				turns[ref.prompt(plainJSON(prompt).([]any))] = turn
			case n == 1 && len(ref.running) > 0:
				number := ref.running[r.IntN(len(ref.running))]
				log = append(log, fmt.Sprint("end ", number))
				turns[number].End(&acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil)
				ref.end(number, "end_turn")
			case n == 2 && len(ref.running) > 0:
				number := ref.running[r.IntN(len(ref.running))]
				log = append(log, fmt.Sprint("cancel ", number))
				turns[number].Cancel()
				ref.cancel(number)
			case n == 3:
				req := object{
					"sessionId": "s", "options": []any{object{"optionId": "o", "name": "O", "kind": "allow_once"}},
					"toolCall": without(r.update(), "sessionUpdate"),
				}
				if _, ok := req["toolCall"].(object)["toolCallId"]; !ok {
					req["toolCall"] = object{"toolCallId": "t4"}
				}
				log = append(log, "ask "+text(req))
				var typed acp.RequestPermissionRequest
				if err := json.Unmarshal([]byte(text(req)), &typed); err != nil {
					t.Fatal(err)
				}
				answered := state.BeginPermission(&typed)
				item := ref.asked(plainJSON(typed).(object))
				switch r.IntN(3) {
				case 0:
					answered(nil)
					item["outcome"] = nil
				case 1:
					answered(&acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("o")})
					item["outcome"] = object{"outcome": "selected", "optionId": "o"}
				}
			case n == 4 && r.IntN(4) == 0:
				log = append(log, "reset")
				state.Reset()
				ref.reset()
				clear(turns)
			default:
				raw := text(r.update())
				log = append(log, raw)
				update, u := decoded(t, []byte(raw))
				ref.update(u)
				state.Update(update)
			}
			if r.IntN(3) == 0 {
				continue
			}
			s := state.Snapshot()
			got := describe(s)
			if want := ref.normal(); got != want {
				t.Fatalf("seed %d, after\n%s\n(-reference +state):\n%s", seed, strings.Join(log, "\n"), cmp.Diff(want, got))
			}
			kept[s] = got
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
