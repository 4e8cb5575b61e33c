package view_test

// The reference: what updates do to a conversation, written as simply as possible, on plain JSON. It searches
// everything from the beginning, and joins text by copying it.

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

type object = map[string]any

type reference struct {
	items   []object
	turns   []object
	running []int
	session object
	open    object // the message that chunks without an id continue
	echoes  []object
}

func newReference() *reference { return &reference{session: object{}} }

func (r *reference) reset() {
	for _, key := range []string{"plan", "plans", "usage"} {
		delete(r.session, key)
	}
	*r = reference{session: r.session}
}

func (r *reference) turn() int {
	if len(r.running) > 0 {
		return r.running[0]
	}
	return len(r.turns)
}

func (r *reference) add(turn int, item object) object {
	item["index"], item["turn"] = len(r.items), turn
	r.items = append(r.items, item)
	return item
}

// last is the last item of a kind for which all members are as given, or nil.
func (r *reference) last(kind string, members object) object {
	for i := len(r.items) - 1; i >= 0; i-- {
		same := r.items[i]["is"] == kind
		for key, value := range members {
			same = same && r.items[i][key] == value
		}
		if same {
			return r.items[i]
		}
	}
	return nil
}

func (r *reference) beginTurn(replayed bool) int {
	r.turns = append(r.turns, object{"first": len(r.items), "ended": false, "cancelled": false, "replayed": replayed, "stop": ""})
	return len(r.turns)
}

func (r *reference) endReplay() {
	if n := len(r.turns); n > 0 && r.turns[n-1]["replayed"] == true && r.turns[n-1]["ended"] == false {
		r.turns[n-1]["ended"] = true
		r.mark(n, "unfinished")
	}
}

// mark marks the open calls of a turn.
func (r *reference) mark(turn int, how string) {
	for _, item := range r.items {
		if item["is"] == "tool" && item["turn"] == turn && item["unfinished"] == false && !finished(item) && r.last("tool", object{"id": item["id"]})["index"] == item["index"] {
			item[how] = true
		}
	}
}

func finished(item object) bool {
	status := item["call"].(object)["status"]
	return status == "completed" || status == "failed"
}

func (r *reference) prompt(blocks []any) int {
	if len(r.running) == 0 {
		r.open = nil
		r.endReplay()
	}
	turn := r.beginTurn(false)
	r.running = append(r.running, turn)
	m := r.add(turn, object{"is": "message", "role": "user", "id": "", "content": joined(nil, blocks...), "sent": true})
	if len(blocks) > 0 {
		r.echoes = append(r.echoes, object{"turn": turn, "message": m, "rest": slices.Clone(blocks), "taken": []object{}})
	}
	return turn
}

func (r *reference) cancel(turn int) {
	if r.turns[turn-1]["ended"] == false {
		r.turns[turn-1]["cancelled"] = true
		r.mark(turn, "cancelled")
	}
}

func (r *reference) end(turn int, stop string) {
	i := slices.Index(r.running, turn)
	if i < 0 {
		return
	}
	r.mark(turn, "unfinished")
	if i == 0 {
		r.open = nil
	}
	r.running = slices.Delete(r.running, i, i+1)
	r.echoes = slices.DeleteFunc(r.echoes, func(e object) bool { return e["turn"] == turn })
	r.turns[turn-1]["ended"], r.turns[turn-1]["stop"] = true, stop
}

// joined appends blocks to content; plain text that follows plain text is one text.
func joined(content []any, blocks ...any) []any {
	content = slices.Clone(content)
	for _, block := range blocks {
		if n := len(content); n > 0 && plain(content[n-1]) && plain(block) {
			content[n-1] = object{"type": "text", "text": content[n-1].(object)["text"].(string) + block.(object)["text"].(string)}
		} else if plain(block) {
			content = append(content, object{"type": "text", "text": block.(object)["text"]})
		} else {
			content = append(content, block)
		}
	}
	return content
}

func plain(block any) bool {
	b := block.(object)
	_, meta := b["_meta"]
	return b["type"] == "text" && b["annotations"] == nil && !meta
}

var roles = map[string]string{"user_message_chunk": "user", "agent_message_chunk": "agent", "agent_thought_chunk": "thought"}

func (r *reference) update(u object) {
	kind := u["sessionUpdate"].(string)
	if !slices.Contains([]string{
		"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call_update", "available_commands_update",
		"current_mode_update", "config_option_update", "session_info_update", "usage_update", "notice", "compaction_update",
		"compaction_summary_chunk", "subagent_update", "session_message", "session_message_chunk", "tool_call",
	}, kind) && strings.HasPrefix(kind, "plan") {
		r.open = nil
	}
	switch kind {
	case "user_message_chunk":
		if !r.echo(u) {
			r.chunk(u)
		}
	case "agent_message_chunk", "agent_thought_chunk":
		r.chunk(u)
	case "tool_call":
		item := r.last("tool", object{"id": u["toolCallId"]})
		if item != nil && (item["turn"] == r.turn() || !finished(item) && item["unfinished"] == false) {
			item["announced"] = true
			r.patchCall(item, u)
			return
		}
		r.open = nil
		item = r.add(r.turn(), object{"is": "tool", "id": u["toolCallId"], "announced": true, "cancelled": false, "unfinished": false})
		item["call"] = object{"toolCallId": u["toolCallId"]}
		r.patchCall(item, u)
	case "tool_call_update":
		r.toolCallUpdate(u, false)
	case "plan":
		r.session["plan"] = without(u, "sessionUpdate")
	case "plan_update":
		plans, _ := r.session["plans"].([]any)
		id := u["plan"].(object)["planId"]
		i := slices.IndexFunc(plans, func(p any) bool { return p.(object)["planId"] == id })
		if plans = slices.Clone(plans); i >= 0 {
			plans[i] = u["plan"]
		} else {
			plans = append(plans, u["plan"])
		}
		r.session["plans"] = plans
	case "plan_removed":
		plans, _ := r.session["plans"].([]any)
		plans = slices.DeleteFunc(slices.Clone(plans), func(p any) bool { return p.(object)["planId"] == u["planId"] })
		r.session["plans"] = plans
		if len(plans) == 0 {
			delete(r.session, "plans")
		}
	case "available_commands_update":
		r.session["commands"] = u["availableCommands"]
	case "config_option_update":
		r.session["options"] = u["configOptions"]
	case "current_mode_update":
		modes, _ := r.session["modes"].(object)
		r.session["modes"] = with(modes, "currentModeId", u["currentModeId"])
		if modes["availableModes"] == nil {
			r.session["modes"] = with(r.session["modes"].(object), "availableModes", []any{})
		}
	case "session_info_update":
		for _, key := range []string{"title", "updatedAt", "_meta"} {
			if value, ok := u[key]; ok {
				r.session[key] = value
			}
		}
	case "usage_update":
		usage := without(u, "sessionUpdate")
		old, _ := r.session["usage"].(object)
		if _, ok := usage["cost"]; !ok {
			if cost, ok := old["cost"]; ok {
				usage["cost"] = cost
			}
		}
		r.session["usage"] = usage
	case "compaction_update":
		item := r.entity("compaction", "compactionId", u)
		item["status"] = u["status"]
		if summary, ok := u["summary"]; ok {
			item["summary"], _ = summary.([]any)
		}
		patchMembers(item, u, "error", "_meta")
	case "compaction_summary_chunk":
		item := r.entity("compaction", "compactionId", u)
		if item["status"] == nil {
			item["status"] = "in_progress"
		}
		appendTo(item, "summary", u["content"])
	case "subagent_update":
		patchMembers(r.entity("subagent", "sessionId", u), u,
			"title", "description", "capabilities", "state", "cwd", "additionalDirectories", "_meta")
	case "session_message":
		item := r.entity("session_message", "messageId", u)
		if content, ok := u["content"]; ok {
			item["content"], _ = content.([]any)
		}
		patchMembers(item, u, "senderSessionId", "recipientSessionId", "senderMessageId", "recipientMessageId", "_meta")
	case "session_message_chunk":
		item := r.entity("session_message", "messageId", u)
		appendTo(item, "content", u["content"])
		patchMembers(item, u, "_meta")
	case "notice":
		r.add(r.turn(), object{"is": "notice", "notice": without(u, "sessionUpdate")})
	default:
		r.add(r.turn(), object{"is": "unknown", "raw": u})
	}
}

// appendTo appends a block; text is only joined with text that came as chunks, which is all that is compared.
func appendTo(item object, key string, block any) {
	content, _ := item[key].([]any)
	item[key] = joined(content, block)
}

func patchMembers(item, u object, keys ...string) {
	for _, key := range keys {
		if value, ok := u[key]; ok {
			item[key] = value
		}
	}
}

func (r *reference) entity(kind, key string, u object) object {
	if item := r.last(kind, object{"id": u[key]}); item != nil {
		return item
	}
	r.open = nil
	return r.add(r.turn(), object{"is": kind, "id": u[key]})
}

func with(o object, key string, value any) object {
	c := without(o, key)
	c[key] = value
	return c
}

func without(o object, key string) object {
	c := object{}
	for k, v := range o {
		if k != key {
			c[k] = v
		}
	}
	return c
}

func (r *reference) chunk(u object) {
	role := roles[u["sessionUpdate"].(string)]
	id, named := u["messageId"].(string)
	var m object
	if named {
		m = r.last("message", object{"role": role, "id": id})
	} else if r.open != nil && r.open["role"] == role {
		m = r.open
	}
	if m == nil {
		if role == "user" && len(r.running) == 0 {
			r.endReplay()
			r.beginTurn(true)
		}
		m = r.add(r.turn(), object{"is": "message", "role": role, "id": id, "content": []any{}, "sent": false})
	}
	r.open = m
	m["content"] = joined(m["content"].([]any), u["content"])
	patchMembers(m, u, "_meta")
}

// echo takes a chunk that repeats a prompt.
func (r *reference) echo(u object) bool {
	for i, e := range r.echoes {
		rest, taken := e["rest"].([]any), e["taken"].([]object)
		m := e["message"].(object)
		matches := len(taken) == 0 || taken[0]["messageId"] == u["messageId"]
		next, got := rest[0].(object), u["content"].(object)
		if matches && plain(next) && plain(got) {
			left, ok := strings.CutPrefix(next["text"].(string), got["text"].(string))
			if matches = ok; ok && left != "" {
				rest = append([]any{object{"type": "text", "text": left}}, rest[1:]...)
			} else if ok {
				rest = rest[1:]
			}
			if ok && (left == "" || got["text"] != "") {
				taken = append(taken, u)
			}
		} else if matches = matches && text(next) == text(got); matches {
			rest, taken = rest[1:], append(taken, u)
		}
		if matches {
			if id, ok := u["messageId"].(string); ok && r.last("message", object{"role": "user", "id": id}) == nil {
				m["id"] = id
			}
			e["rest"], e["taken"] = rest, taken
			if len(rest) == 0 {
				r.echoes = slices.Delete(r.echoes, i, i+1)
			}
			return true
		}
		if len(taken) > 0 {
			r.echoes = slices.Delete(r.echoes, i, i+1)
			m["id"] = ""
			for _, c := range taken {
				r.chunk(c)
			}
			return false
		}
	}
	return false
}

// patchCall applies what is neither absent nor null.
func (r *reference) patchCall(item, u object) {
	call := item["call"].(object)
	for key, value := range u {
		if key != "sessionUpdate" && value != nil {
			call[key] = value
		}
	}
	if finished(item) {
		item["cancelled"], item["unfinished"] = false, false
	} else if turn := item["turn"].(int); turn == 0 || r.turns[turn-1]["ended"] == false {
		item["unfinished"] = false
	}
}

func (r *reference) toolCallUpdate(u object, asks bool) object {
	item := r.last("tool", object{"id": u["toolCallId"]})
	if item == nil || asks && finished(item) && item["turn"] != r.turn() {
		r.open = nil
		item = r.add(r.turn(), object{"is": "tool", "id": u["toolCallId"], "announced": false, "cancelled": false, "unfinished": false})
		item["call"] = object{"toolCallId": u["toolCallId"]}
	}
	r.patchCall(item, u)
	return item
}

func (r *reference) asked(req object) object {
	item := r.toolCallUpdate(req["toolCall"].(object), true)
	item["options"] = req["options"]
	delete(item, "outcome")
	return item
}

// text is a value as JSON.
func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// plainJSON is a value as maps and slices.
func plainJSON(v any) (plain any) {
	if err := json.Unmarshal([]byte(text(v)), &plain); err != nil {
		panic(err)
	}
	return plain
}

// String is everything that is known.
func (r *reference) String() string {
	return indented(object{"items": r.items, "turns": r.turns, "session": r.session})
}

func indented(v any) string {
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// describe is a snapshot in the form of the reference.
func describe(s *view.Snapshot) string {
	items, turns, session := []object{}, []object{}, object{}
	for item := range s.Items() {
		items = append(items, describeItem(item))
	}
	for turn := range s.Turns() {
		turns = append(turns, object{
			"first": turn.First, "ended": turn.Ended, "cancelled": turn.Cancelled, "replayed": turn.Replayed, "stop": turn.StopReason,
		})
	}
	put(session, "plan", s.Plan)
	if len(s.Plans) > 0 {
		var plans []any
		for _, plan := range s.Plans {
			plans = append(plans, plan.Content)
		}
		session["plans"] = plans
	}
	put(session, "modes", s.Modes)
	put(session, "options", s.ConfigOptions)
	put(session, "usage", s.Usage)
	put(session, "title", s.Title)
	put(session, "updatedAt", s.UpdatedAt)
	if s.Commands != nil {
		session["commands"] = s.Commands
	}
	if s.Meta != nil {
		session["_meta"] = s.Meta
	}
	if len(items) == 0 {
		items = nil
	}
	if len(turns) == 0 {
		turns = nil
	}
	return indented(plainJSON(object{"items": items, "turns": turns, "session": session}))
}

func put[T any](o object, key string, value acp.Opt[T]) {
	switch v, ok := value.Get(); {
	case ok:
		o[key] = v
	case value.IsNull():
		o[key] = nil
	}
}

func putMeta(o object, meta acp.Meta) object {
	if meta != nil {
		o["_meta"] = meta
	}
	return o
}

func blocks(c view.Content) []any {
	content := []any{}
	for block := range c.Blocks() {
		content = append(content, plainJSON(block))
	}
	return joined(nil, content...)
}

func describeItem(item *view.Item) object {
	var o object
	switch v := item.Variant.(type) {
	case *view.Message:
		o = putMeta(object{"is": "message", "role": v.Role.String(), "id": v.ID, "content": blocks(v.Content), "sent": v.Sent}, v.Meta)
	case *view.ToolCall:
		call := plainJSON(v.Call).(object)
		if call["title"] == "" {
			delete(call, "title")
		}
		o = object{"is": "tool", "id": v.Call.ToolCallID, "announced": v.Announced, "cancelled": v.Cancelled, "unfinished": v.Unfinished, "call": call}
		if v.Permission != nil {
			o["options"] = v.Permission.Options
			put(o, "outcome", v.Permission.Outcome)
		}
	case *view.Compaction:
		o = putMeta(object{"is": "compaction", "id": v.ID, "status": v.Status}, v.Meta)
		if summary := blocks(v.Summary); len(summary) > 0 {
			o["summary"] = summary
		}
		put(o, "error", v.Error)
	case *view.Subagent:
		o = plainJSON((*acp.SubagentUpdate)(v)).(object)
		delete(o, "sessionId")
		o["is"], o["id"] = "subagent", v.SessionID
	case *view.SessionMessage:
		o = putMeta(object{"is": "session_message", "id": v.ID}, v.Meta)
		if content := blocks(v.Content); len(content) > 0 {
			o["content"] = content
		}
		put(o, "senderSessionId", v.Sender)
		put(o, "recipientSessionId", v.Recipient)
		put(o, "senderMessageId", v.SenderMessage)
		put(o, "recipientMessageId", v.RecipientMessage)
	case *view.Notice:
		o = object{"is": "notice", "notice": (*acp.Notice)(v)}
	case *view.Unknown:
		o = object{"is": "unknown", "raw": json.RawMessage(v.Raw)}
	}
	o["index"], o["turn"] = item.Index, item.Turn
	return o
}

// normal is the reference in the form of describe: without empty content, and with texts joined that came apart.
func (r *reference) normal() string {
	items := []any{}
	for _, item := range r.items {
		item = plainJSON(item).(object)
		if item["is"] == "compaction" || item["is"] == "session_message" {
			for _, key := range []string{"summary", "content"} {
				content, _ := item[key].([]any)
				if content = joined(nil, content...); len(content) > 0 {
					item[key] = content
				} else {
					delete(item, key)
				}
			}
		}
		items = append(items, item)
	}
	o := object{"items": items, "turns": r.turns, "session": r.session}
	if len(items) == 0 {
		o["items"] = nil
	}
	if len(r.turns) == 0 {
		o["turns"] = nil
	}
	return indented(plainJSON(o))
}

// decoded is an update as package acp reads it, and as maps after what the codec repairs.
func decoded(t *testing.T, raw []byte) (update acp.SessionUpdate, u object) {
	t.Helper()
	if err := json.Unmarshal(raw, &update); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return update, plainJSON(update).(object)
}
