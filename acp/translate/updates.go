package translate

import (
	"bytes"
	"cmp"
	"hash/fnv"
	"strconv"
)

// update1 is session/update of an agent of version 1.
func (s *State) update1(m *message) *fault {
	id, update := m.str("sessionId"), m.params.sub("update")
	if id == "" || update == nil {
		return errParams("an update without session or content")
	}
	sess := s.session(id)
	kind := update.str("sessionUpdate")
	if sess.closed {
		return nil
	}
	swallow := sess.replay.on && sess.replay.swallow // what is only replayed; it is counted for the ids of messages
	switch kind {
	case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk":
		if kind == "user_message_chunk" && !sess.replay.on && s.echoed(sess, &update) {
			return nil
		}
		s.progress(sess, "")
		if s.chunkTo2(sess, kind, &update); swallow {
			return nil
		}
	case "tool_call", "tool_call_update":
		s.progress(sess, update.str("toolCallId"))
		if !s.terminalsTo2(sess, &update) && kind == "tool_call_update" {
			return nil
		}
		if s.callTo2(sess, kind == "tool_call", &update); swallow {
			return nil
		}
	case "plan":
		s.progress(sess, "")
		plan := obj("type", "items", "planId", "plan", "entries", array(update.list("entries")...))
		update.drop("entries")
		update.set("sessionUpdate", quote("plan_update"))
		update.set("plan", plan.text())
	case "current_mode_update":
		if mode := update.str("currentModeId"); len(mode) <= maxID {
			sess.mode = mode
		}
		update.drop("currentModeId")
		update.set("sessionUpdate", quote("config_option_update"))
		update.set("configOptions", sess.allOptions())
		if sess.option == "" {
			return nil // there are no modes
		}
	case "config_option_update":
		update.set("configOptions", s.optionsTo2(sess, update.list("configOptions")))
	case "available_commands_update":
		update.set("availableCommands", commandsTo2(update.list("availableCommands")))
	case "session_info_update", "usage_update", "notice":
	case "state_update", "user_message", "agent_message", "agent_thought", "tool_call_content_chunk", "terminal_update",
		"terminal_output_chunk", "replay_complete":
		return nil // version 2, in which they mean something
	default:
		s.progress(sess, "")
	}
	params := append(object{}, m.params...)
	params.set("update", update.text())
	return s.send(m, m.method, params, nil)
}

// progress is called for an update that shows work, perhaps on a tool call.
func (s *State) progress(sess *session, call string) {
	if sess.replay.on {
		return
	}
	s.accept(sess, "")
	if sess.needs && (call == "" || !sess.asked(call)) {
		sess.needs = false
		s.state(sess, "running")
	}
}

// echoed reports whether a chunk of the user's only repeats a prompt, as some agents do. The client has that message
// from its acceptance.
func (s *State) echoed(sess *session, update *object) bool {
	turn := sess.turn
	if turn == nil {
		return false
	}
	if rest, ok := repeats(turn.echo, update); ok {
		turn.echo = rest
		s.accept(sess, update.str("messageId"))
		return true
	}
	turn.echo = nil
	if len(sess.queue) == 0 || sess.queue[0].own == nil {
		return false
	}
	p := sess.queue[0] // with which the turn is being steered
	rest, ok := repeats(p.content, update)
	if ok {
		s.unqueue(sess, 0)
		s.insert(sess, p, update.str("messageId"))
		turn.echo = rest
	}
	return ok
}

// repeats reports whether a chunk is the beginning of some blocks, and returns the rest of these.
func repeats(blocks []raw, update *object) ([]raw, bool) {
	if len(blocks) == 0 {
		return nil, false
	}
	chunk := update.sub("content")
	if compact(update.get("content")) == compact(blocks[0]) {
		return blocks[1:], true
	}
	block, _ := parse(blocks[0])
	all, part := block.str("text"), chunk.str("text")
	if chunk.str("type") != "text" || part == "" || len(part) >= len(all) || all[:len(part)] != part {
		return nil, false
	}
	block.set("text", quote(all[len(part):]))
	return append([]raw{block.text()}, blocks[1:]...), true
}

// chunkTo2 gives a chunk an id. In a replay, each message begins with a whole-message update without content.
func (s *State) chunkTo2(sess *session, kind string, update *object) {
	id := update.str("messageId")
	if id == "" {
		if sess.kind != kind {
			sess.begin(kind)
		}
		id = sess.current
		update.set("messageId", quote(id))
	} else {
		sess.endMessage()
		if kind == "user_message_chunk" && sess.replay.on && len(id) <= maxMessageID {
			if id != sess.agentID {
				sess.agentID, sess.current = id, sess.addUser(id)
			}
			id = sess.current
			update.set("messageId", quote(id))
		}
	}
	if sess.replay.on && !sess.replay.swallow && sess.replay.first(short(id)+kind) {
		s.update(sess.id, obj("sessionUpdate", kind[:len(kind)-len("_chunk")], "messageId", id, "content", emptyList))
	}
}

// update2 is session/update of an agent of version 2.
func (s *State) update2(m *message) *fault {
	id, update := m.str("sessionId"), m.params.sub("update")
	if id == "" || update == nil {
		return errParams("an update without session or content")
	}
	sess := s.session(id)
	kind := update.str("sessionUpdate")
	if s.shared {
		s.saw(sess, kind, update.str("messageId"))
	}
	var all []object
	switch kind {
	case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk":
		all = sess.chunkTo1(kind, update)
	case "user_message", "agent_message", "agent_thought":
		all = sess.wholeTo1(kind, update)
	case "state_update":
		if !sess.replay.on {
			s.state2(sess, update)
		} else {
			sess.setState(update)
			if sess.replay.idle = nil; sess.state == "idle" {
				sess.replay.idle = brief(update)
			}
		}
	case "replay_complete":
		sess.replay.whole = true
	case "tool_call", "plan", "current_mode_update": // version 1
	case "tool_call_update":
		all = s.callTo1(sess, update)
	case "tool_call_content_chunk":
		all = s.callChunkTo1(sess, update)
	case "terminal_update", "terminal_output_chunk":
		all = s.terminalTo1(sess, update)
	case "plan_update", "plan_removed":
		all = s.planTo1(sess, update)
	case "available_commands_update":
		update.set("availableCommands", commandsTo1(update.list("availableCommands")))
		all = append(all, update)
	case "config_option_update":
		before := sess.mode
		update.set("configOptions", s.optionsTo1(sess, update.list("configOptions")))
		all = append(all, update)
		defer s.modeChanged(sess, before)
	case "notice":
		if s.client.notices {
			all = append(all, update)
		}
	case "compaction_update", "compaction_summary_chunk":
		if s.client.compaction {
			blocksTo1(&update, "summary")
			blocksTo1(&update, "content")
			all = append(all, update)
		}
	case "subagent_update", "session_message", "session_message_chunk":
		if s.client.subagents {
			blocksTo1(&update, "content")
			if state := update.sub("state"); state.has("background") {
				state.drop("background")
				update.set("state", state.text())
			}
			all = append(all, update)
		}
	default:
		all = append(all, update)
	}
	for _, update := range all {
		params := append(object{}, m.params...)
		params.set("update", update.text())
		if err := s.send(m, m.method, params, nil); err != nil {
			return err
		}
	}
	return nil
}

// chunkTo1 passes a chunk, and remembers what the client has.
func (sess *session) chunkTo1(kind string, update object) []object {
	id, content := update.str("messageId"), update.get("content")
	if kind == "user_message_chunk" && sess.userMessage(id, []raw{content}) {
		return nil
	}
	have := sess.text(kind, id)
	have.add(content)
	return []object{chunk(kind, id, have.revision, content, update.get("_meta"))}
}

func (sess *session) text(kind, id string) *text {
	key := short(id) + kind[:4] + kind[6:8]
	have := sess.texts.get(key)
	if have == nil {
		have = &text{hash: fnv.New64a().Sum64()}
		sess.texts.put(key, have)
	}
	return have
}

// chunk makes a chunk of version 1.
func chunk(kind, id string, revision int, content, meta raw) object {
	if id != "" && revision > 0 {
		id += "#" + strconv.Itoa(revision)
	}
	update := obj("sessionUpdate", kind)
	if id != "" {
		update.set("messageId", quote(id))
	}
	for _, block := range blockTo1(content) {
		update.set("content", block)
	}
	update.set("_meta", meta)
	return update
}

// add remembers that the client has got a content block.
func (t *text) add(block raw) {
	part := flat(block)
	t.size, t.hash = t.size+len(part), sum(t.hash, part)
}

// flat returns a content block as bytes: the texts of a message in several blocks are the text in one.
func flat(block raw) string {
	if o, ok := parse(orNull(block)); ok && o.str("type") == "text" && o.get("annotations") == nil {
		return o.str("text")
	}
	return "\x00" + compact(orNull(block)) + "\x00"
}

func sum(hash uint64, part string) uint64 {
	for i := range len(part) {
		hash = (hash ^ uint64(part[i])) * 1099511628211 // FNV-1a
	}
	return hash
}

// wholeTo1 sends what a client of version 1 does not have of a message: the end of it, if it has the beginning, or
// otherwise the whole as another message. It is never sent twice. What was cleared stays on the client's screen.
func (sess *session) wholeTo1(kind string, update object) (all []object) {
	id := update.str("messageId")
	i := update.index("content")
	if i < 0 {
		return nil // only _meta, which version 1 has only with text
	}
	blocks := list(update[i].value)
	if kind == "user_message" && sess.userMessage(id, blocks) {
		return nil
	}
	kind += "_chunk"
	have := sess.text(kind, id)
	rest, ok := have.after(blocks)
	if !ok {
		rest = blocks
		*have = text{revision: have.revision + 1, hash: fnv.New64a().Sum64()}
	}
	for _, block := range rest {
		have.add(block)
		all = append(all, chunk(kind, id, have.revision, block, update.get("_meta")))
	}
	return all
}

// after returns the content after the part that the client has, and whether the content begins with that.
func (t *text) after(blocks []raw) ([]raw, bool) {
	size, hash := 0, fnv.New64a().Sum64()
	for i, block := range blocks {
		if size == t.size {
			return blocks[i:], hash == t.hash
		}
		part := flat(block)
		if cut := t.size - size; cut < len(part) {
			o, _ := parse(block)
			if part[0] == 0 || sum(hash, part[:cut]) != t.hash {
				return nil, false
			}
			o.set("text", quote(part[cut:]))
			return append([]raw{o.text()}, blocks[i+1:]...), true
		}
		size, hash = size+len(part), sum(hash, part)
	}
	return nil, size == t.size && hash == t.hash
}

// planTo1 translates a plan. A client of version 1 usually has one, which therefore has the entries of all.
func (s *State) planTo1(sess *session, update object) []object {
	plan := update.sub("plan")
	if s.client.plan {
		switch kind := plan.str("type"); {
		case kind == "items":
			plan.set("entries", entriesTo1(plan.list("entries")))
			update.set("plan", plan.text())
		case plan != nil && kind != "file" && kind != "markdown":
			return nil
		}
		return []object{update}
	}
	if update.str("sessionUpdate") == "plan_removed" {
		sess.plans.remove(short(update.str("planId")))
		s.measure(sess)
	} else {
		entries := entriesTo1(plan.list("entries"))
		if kind := plan.str("type"); kind != "items" {
			content := cmp.Or(plan.str("content"), plan.str("uri"), kind)
			entries = array(obj("content", content, "priority", "medium", "status", "in_progress").text())
		}
		if len(entries) <= maxOptions {
			sess.plans.put(short(plan.str("planId")), bytes.Clone(entries))
			s.measure(sess)
		} else {
			return []object{obj("sessionUpdate", "plan", "entries", entries, "_meta", update.get("_meta"))}
		}
	}
	var entries []raw
	for _, id := range sess.plans.order {
		entries = append(entries, list(sess.plans.get(id))...)
	}
	return []object{obj("sessionUpdate", "plan", "entries", array(entries...), "_meta", update.get("_meta"))}
}
