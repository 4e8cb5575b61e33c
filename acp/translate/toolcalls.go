package translate

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/acpgo/sdk/internal/plain"
)

// maxShown is how many terminals a tool call shows, and how many tool calls an output is sent to.
const maxShown = 8

// maxTitle is how much of a title is remembered, in bytes.
const maxTitle = 1 << 10

// call returns what is remembered of a tool call, and whether it is new.
func (s *State) call(sess *session, id string) (c *call, fresh bool) {
	if c = sess.calls.get(short(id)); c != nil {
		return c, false
	}
	if c = (&call{}); len(id) <= maxID {
		c.id = id
	}
	if old := sess.calls.put(short(id), c); old != nil {
		s.accounts.release(&old.content)
	}
	return c, true
}

// note remembers the members of an update that later messages need.
func (c *call) note(update object) {
	if title := update.str("title"); title != "" {
		c.title = strings.Clone(strings.ToValidUTF8(title[:min(len(title), maxTitle)], ""))
	}
	if status := update.str("status"); status != "" && len(status) < maxTitle {
		c.status = status
	}
}

// asked reports whether a tool call waits for an answer of the user.
func (sess *session) asked(id string) bool {
	c := sess.calls.get(short(id))
	return c != nil && c.questions > 0
}

// callTo2 translates a tool call, or an update of one. What is null in an update has not changed, and would be cleared
// by version 2; what a tool_call leaves out is cleared, if it begins again.
func (s *State) callTo2(sess *session, whole bool, update *object) {
	id := update.str("toolCallId")
	c, fresh := s.call(sess, id)
	if !c.shown || sess.replay.on && sess.replay.first("call "+short(id)) {
		sess.endMessage() // text after it is another message
	}
	s.toolCallTo2(update)
	if whole {
		update.set("sessionUpdate", quote("tool_call_update"))
		if !fresh {
			for _, name := range []string{"name", "kind", "status", "content", "locations", "rawInput", "rawOutput", "_meta"} {
				if !update.has(name) {
					update.set(name, null)
				}
			}
			if s.agent.cancels && !update.has("capabilities") {
				update.set("capabilities", null)
			}
			*c = call{id: c.id, questions: c.questions}
		}
	}
	c.shown = true
	c.note(*update)
}

// terminalsTo2 sends what the _meta of a tool call says about the agent's own terminals, by the convention of agents of
// version 1 for clients that advertise _meta.terminal_output. It reports whether the update has anything else.
func (s *State) terminalsTo2(sess *session, update *object) (more bool) {
	meta := update.sub("_meta")
	before := len(meta)
	for _, key := range []string{plain.TerminalInfoKey, plain.TerminalKey, plain.TerminalExitKey} {
		about := meta.sub(key)
		id := about.str("terminal_id")
		if id == "" {
			continue
		}
		meta.drop(key)
		to := obj("sessionUpdate", "terminal_update", "terminalId", id)
		switch key {
		case plain.TerminalInfoKey:
			to = append(to, obj("command", ofText(about.get("command")), "cwd", ofText(about.get("cwd")))...)
		case plain.TerminalKey:
			data := base64.StdEncoding.EncodeToString([]byte(about.str("data")))
			to = obj("sessionUpdate", "terminal_output_chunk", "terminalId", id, "data", data)
		case plain.TerminalExitKey:
			exit := obj("signal", ofText(about.get("signal")))
			if code, err := strconv.ParseInt(string(about.get("exit_code")), 10, 64); err == nil {
				exit.set("exitCode", number(int(code)))
			}
			to.set("exitStatus", exit.text())
		}
		if s.agent.cancels && (key == plain.TerminalExitKey || key == plain.TerminalInfoKey && about.has("cancel")) {
			to.set("capabilities", cancellable(about.get("cancel"), to.has("exitStatus")))
		}
		if !sess.replay.on || !sess.replay.swallow {
			s.update(sess.id, to)
		}
	}
	if len(meta) == before {
		return true
	}
	update.setMeta(meta)
	return len(*update) > 2
}

// cancelWork1 is tool_call/cancel and terminal/cancel, for agents that have them as extensions.
func (s *State) cancelWork1(m *message) *fault {
	if !s.agent.cancels {
		return errParams("this cannot be cancelled")
	}
	return s.send(m, "_"+m.method, m.params, nil)
}

// cancellable returns the capabilities of a tool call or a terminal: the client can cancel it if flag is true and it
// has not ended.
func cancellable(flag raw, ended bool) raw {
	if isTrue(flag) && !ended {
		return obj("cancel", emptyObj).text()
	}
	return null
}

// ofText returns a JSON string, and nil for another value.
func ofText(value raw) raw {
	if len(value) > 0 && value[0] == '"' {
		return value
	}
	return nil
}

// toolCallTo2 translates the members of a tool call.
func (s *State) toolCallTo2(o *object) {
	*o = slices.DeleteFunc(append(object{}, *o...), func(m member) bool { return isNull(m.value) })
	ended := o.str("status") == "completed" || o.str("status") == "failed"
	meta := o.sub("_meta")
	about := meta.sub(plain.CancelKey)
	if s.agent.cancels && (about.has("supported") || ended) {
		o.set("capabilities", cancellable(about.get("supported"), ended))
	}
	if s.agent.cancels && about != nil {
		if isTrue(about.get("cancelled")) && o.str("status") == "failed" {
			o.set("status", quote("cancelled"))
		}
		meta.drop(plain.CancelKey)
		o.setMeta(meta)
	}
	if locations := o.get("locations"); locations != nil {
		o.set("locations", editObjects(list(locations), func(place *object) bool {
			if string(place.get("line")) == "0" {
				place.drop("line") // version 2 counts from 1
			}
			return true
		}))
	}
	if content := o.get("content"); content != nil {
		o.set("content", editObjects(list(content), func(item *object) bool {
			if item.str("type") == "diff" {
				diffTo2(item)
			}
			return true
		}))
	}
}

// callTo1 translates an update of a tool call. The first one makes it.
func (s *State) callTo1(sess *session, update object) []object {
	id := update.str("toolCallId")
	c, fresh := s.call(sess, id)
	c.note(update)
	if update.has("content") {
		s.accounts.replace(&c.content, update.list("content"))
		c.terminals = nil
		for _, item := range c.content.pieces {
			c.refer(item)
		}
		if s.credit < 0 {
			update.drop("content")
			s.later(sess, c)
		} else {
			_, c.sent = s.shown(sess, c)
		}
	}
	s.toolCallTo1(sess, c, &update, fresh)
	if fresh {
		update.set("sessionUpdate", quote("tool_call"))
		if update.str("title") == "" {
			update.set("title", quote("Tool call"))
		}
	}
	return []object{update}
}

// refer remembers the terminal that a content item shows.
func (c *call) refer(item raw) {
	if o, ok := parse(item); ok && o.str("type") == "terminal" && len(c.terminals) < maxShown {
		c.terminals = append(c.terminals, short(o.str("terminalId")))
	}
}

// shown returns the size of what a tool call shows, and how much was ever added to it.
func (s *State) shown(sess *session, c *call) (size, added int) {
	size, added = c.content.size, c.content.added
	for _, id := range c.terminals {
		if t := sess.terms.get(id); t != nil {
			size, added = size+t.output.size, added+t.output.added
		}
	}
	return size, added
}

// grown returns an update for a tool call whose content has changed. Version 1 replaces content. Most of it is
// therefore sent again only when an eighth is new, or before the next message that is not output.
func (s *State) grown(sess *session, id string, c *call, now bool) []object {
	size, added := s.shown(sess, c)
	few := !now && size > 4<<10 && added-c.sent < size/8 && len(s.stale) < maxStale
	if few || s.credit < 0 {
		s.later(sess, c)
		return nil
	}
	c.sent = added
	return []object{obj("sessionUpdate", "tool_call_update", "toolCallId", id, "content",
		s.contentTo1(sess, &c.content, c.content.pieces))}
}

// later remembers that the client does not have all content of a tool call.
func (s *State) later(sess *session, c *call) {
	if one := (stale{sess, short(c.id)}); c.id != "" && len(s.stale) < maxStale && !slices.Contains(s.stale, one) {
		s.stale = append(s.stale, one)
	}
}

// isOutput reports whether a message only adds content.
func (m *message) isOutput() bool {
	kind := m.params.sub("update").str("sessionUpdate")
	return m.method == "session/update" && (kind == "tool_call_content_chunk" || kind == "terminal_output_chunk")
}

// flush sends the content that clients of version 1 do not have yet.
func (s *State) flush() {
	all := s.stale
	s.stale = nil
	for _, one := range all {
		if c := one.sess.calls.get(one.id); c != nil {
			for _, update := range s.grown(one.sess, c.id, c, true) {
				s.update(one.sess.id, update)
			}
		}
	}
}

// toolCallTo1 translates the members of a tool call. What version 2 clears becomes empty where version 1 has something
// empty, and otherwise stays.
func (s *State) toolCallTo1(sess *session, c *call, o *object, fresh bool) {
	*o = append(object{}, *o...)
	o.drop("capabilities")
	for _, m := range append(object{}, *o...) {
		if !isNull(m.value) {
			continue
		}
		switch m.name {
		case "content", "locations":
			o.set(m.name, emptyList)
		case "kind":
			o.set("kind", quote("other"))
		case "status":
			o.set("status", quote("pending"))
		case "name", "title", "rawInput", "rawOutput", "_meta":
			o.drop(m.name)
		}
	}
	if fresh && len(o.list("content")) == 0 && c.content.size == 0 {
		o.drop("content")
	}
	if o.has("kind") {
		o.set("kind", kind1(o.str("kind")))
	}
	if o.has("status") {
		o.set("status", value1(status1, o.str("status")))
	}
	if o.has("content") {
		o.set("content", s.contentTo1(sess, &c.content, o.list("content")))
	}
}

// callChunkTo1 appends to a tool call's content. Version 1 replaces it.
func (s *State) callChunkTo1(sess *session, update object) []object {
	id, item := update.str("toolCallId"), update.get("content")
	c, fresh := s.call(sess, id)
	if item != nil {
		s.accounts.add(&c.content, item)
		c.refer(item)
	}
	all := s.grown(sess, id, c, fresh || c.id == "")
	if fresh && len(all) == 0 {
		all = []object{obj("toolCallId", id)}
	}
	if fresh {
		all[0].set("sessionUpdate", quote("tool_call"))
		all[0].set("title", quote("Tool call"))
	}
	return all
}

// contentTo1 translates the content of a tool call.
func (s *State) contentTo1(sess *session, k *kept, items []raw) raw {
	terminals := 0
	all := edit(items, func(item raw) []raw {
		o, ok := parse(item)
		if !ok {
			return nil
		}
		switch o.str("type") {
		case "content":
			if content := o.get("content"); content != nil {
				o.set("content", blockTo1(content)[0])
			}
		case "diff":
			return diffTo1(o)
		case "terminal":
			if terminals++; terminals > maxShown {
				return []raw{toolText("[a terminal is left out]")}
			}
			return []raw{toolText(sess.terms.get(short(o.str("terminalId"))).show())}
		default:
			return []raw{toolText(compact(item))}
		}
		return []raw{o.text()}
	})
	if k.lost {
		all = array(append([]raw{toolText("[earlier content is left out]")}, list(all)...)...)
	}
	s.credit -= len(all)
	return all
}

// toolText makes an item of a tool call's content.
func toolText(text string) raw {
	return obj("type", "content", "content", obj("type", "text", "text", text)).text()
}

// terminalTo1 follows a terminal. Version 1 shows it as text of the tool calls whose content it is.
func (s *State) terminalTo1(sess *session, update object) (all []object) {
	id := short(update.str("terminalId"))
	t := sess.terms.get(id)
	if t == nil {
		t = &terminal{}
		if old := sess.terms.put(id, t); old != nil {
			s.accounts.release(&old.output)
		}
	}
	if update.has("command") {
		command := update.str("command")
		t.command = strings.Clone(strings.ToValidUTF8(command[:min(len(command), maxID)], ""))
	}
	if update.has("output") {
		s.accounts.replace(&t.output, nil)
		s.addOutput(t, update.sub("output").str("data"))
	}
	if update.str("sessionUpdate") == "terminal_output_chunk" {
		s.addOutput(t, update.str("data"))
	}
	if update.has("exitStatus") {
		t.exit = ""
		if status := update.sub("exitStatus"); status != nil {
			t.exit = "[exited]"
			if code := string(status.get("exitCode")); code != "" && len(code) < maxTitle {
				t.exit = "[exit status " + code + "]"
			}
			if signal := status.str("signal"); signal != "" && len(signal) < maxTitle {
				t.exit = "[ended by " + signal + "]"
			}
		}
	}
	for i := len(sess.calls.order) - 1; i >= 0 && len(all) < maxShown; i-- {
		c := sess.calls.get(sess.calls.order[i])
		if c.id != "" && slices.Contains(c.terminals, id) {
			all = append(all, s.grown(sess, c.id, c, update.str("sessionUpdate") == "terminal_update")...)
		}
	}
	return all
}

func (s *State) addOutput(t *terminal, data string) {
	output, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		output = []byte("[output that is not base64]")
	}
	if most := maxEach - perPiece; len(output) > most {
		output = output[len(output)-most:]
		t.output.lost = true
	}
	s.accounts.extend(&t.output, output)
}

// show returns what a terminal shows. A character whose end is still missing is left out.
func (t *terminal) show() string {
	if t == nil {
		return ""
	}
	var b strings.Builder
	if t.command != "" {
		b.WriteString("$ " + t.command + "\n")
	}
	if t.output.lost {
		b.WriteString("[earlier output is left out]\n")
	}
	output := slices.Concat(toBytes(t.output.pieces)...)
	if t.exit == "" {
		output = output[:len(output)-plain.Unfinished(output)]
	}
	b.WriteString(strings.ToValidUTF8(string(output), "\uFFFD"))
	if t.exit != "" {
		if len(output) > 0 && !bytes.HasSuffix(output, []byte("\n")) {
			b.WriteByte('\n')
		}
		b.WriteString(t.exit)
	}
	return b.String()
}

// diffTo2 translates a diff. Its patch shows the whole text, so that nothing is lost.
func diffTo2(item *object) {
	path, old, fresh := item.str("path"), item.str("oldText"), item.get("oldText") == nil
	operation := "modify"
	if fresh {
		operation = "add"
	}
	change := obj("operation", operation, "path", path, "fileType", "text")
	patch := obj("format", "git_patch", "text", patch(path, old, item.str("newText"), fresh), "_meta", obj("whole", yes))
	item.drop("path", "oldText", "newText")
	item.set("changes", array(change.text()))
	item.set("patch", patch.text())
}

// patch returns a patch of one hunk with the whole text. It costs no more than the text: what is common at the
// beginning and at the end is context, and the rest is replaced.
func patch(path, from, to string, fresh bool) string {
	old, new := slices.Collect(strings.Lines(from)), slices.Collect(strings.Lines(to))
	head, tail := 0, 0
	for head < min(len(old), len(new)) && old[head] == new[head] {
		head++
	}
	for tail < min(len(old), len(new))-head && old[len(old)-1-tail] == new[len(new)-1-tail] {
		tail++
	}
	name, end := gitName(path), "\n"
	if name == path && strings.Contains(path, " ") {
		end = "\t\n" // as git does it
	}
	var b strings.Builder
	b.WriteString("diff --git " + name + " " + name + "\n")
	if fresh {
		b.WriteString("new file mode 100644\n")
	}
	if len(old)+len(new) == 0 {
		return b.String()
	}
	if fresh {
		b.WriteString("--- /dev/null\n+++ " + name + end)
	} else {
		b.WriteString("--- " + name + end + "+++ " + name + end)
	}
	b.WriteString("@@ -" + span(len(old)) + " +" + span(len(new)) + " @@\n")
	write := func(mark byte, lines []string) {
		for _, line := range lines {
			b.WriteByte(mark)
			b.WriteString(line)
			if !strings.HasSuffix(line, "\n") {
				b.WriteString("\n" + noNewline + "\n")
			}
		}
	}
	write(' ', old[:head])
	write('-', old[head:len(old)-tail])
	write('+', new[head:len(new)-tail])
	write(' ', old[len(old)-tail:])
	return b.String()
}

const noNewline = `\ No newline at end of file`

func span(n int) string {
	if n == 0 {
		return "0,0"
	}
	return "1," + strconv.Itoa(n)
}

// gitName returns a name as git writes it: in quotes, with escapes of C, if it has special characters.
func gitName(path string) string {
	var b strings.Builder
	for _, c := range []byte(path) {
		switch {
		case c == '"' || c == '\\':
			b.Write([]byte{'\\', c})
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	if b.Len() == len(path) {
		return path
	}
	return `"` + b.String() + `"`
}

// maxHunks is how many parts of a patch a client of version 1 gets.
const maxHunks = 100

// diffTo1 translates a diff. Each hunk of its patch becomes a diff, which is marked as a fragment unless it has the
// whole text of a file; a change that has no text becomes a sentence.
func diffTo1(item object) (all []raw) {
	shown := map[string]bool{}
	if p := item.sub("patch"); p.str("format") == "git_patch" {
		parts := hunks(p.str("text"))
		whole := len(parts) == 1 && isTrue(p.sub("_meta").get("whole"))
		for _, h := range parts {
			shown[h.path] = true
			one := append(obj("type", "diff", "path", h.path), obj("oldText", string(h.old), "newText", string(h.new))...)
			if h.added {
				one.drop("oldText")
			}
			meta := item.sub("_meta")
			if !h.added && !whole {
				meta.set("fragment", obj("oldLine", raw(h.oldLine), "newLine", raw(h.newLine)).text())
			}
			if meta != nil {
				one.set("_meta", meta.text())
			}
			all = append(all, one.text())
			if len(all) == maxHunks {
				all = append(all, toolText("[more changes are left out]"))
				break
			}
		}
	} else if p.str("text") != "" {
		all = append(all, toolText(p.str("text")))
	}
	for _, change := range item.list("changes") {
		o, _ := parse(change)
		path, operation := o.str("path"), o.str("operation")
		switch {
		case operation == "modify" && shown[path], operation == "add" && shown[path]:
		case operation == "move":
			all = append(all, toolText("Moved "+o.str("oldPath")+" to "+path))
		case operation == "copy":
			all = append(all, toolText("Copied "+o.str("oldPath")+" to "+path))
		default:
			verb := cmp.Or(map[string]string{"add": "Added", "delete": "Deleted", "modify": "Changed"}[operation], operation)
			all = append(all, toolText(verb+" "+path))
		}
		if len(all) > 2*maxHunks {
			return append(all, toolText("[more changes are left out]"))
		}
	}
	return all
}

// hunk is a part of a patch.
type hunk struct {
	path             string
	old, new         []byte
	oldLine, newLine string
	added            bool
}

// hunks takes a git patch apart.
func hunks(text string) (all []*hunk) {
	var from, to string
	var h *hunk
	var last byte // the mark of the line before
	oldLeft, newLeft := 0, 0
	for line := range strings.Lines(text) {
		bare := strings.TrimSuffix(line, "\n")
		switch {
		case h != nil && strings.HasPrefix(line, `\`):
			if last != '+' {
				h.old = bytes.TrimSuffix(h.old, []byte("\n"))
			}
			if last != '-' {
				h.new = bytes.TrimSuffix(h.new, []byte("\n"))
			}
		case oldLeft > 0 || newLeft > 0:
			last = line[0]
			switch last {
			case '-':
				h.old, oldLeft = append(h.old, line[1:]...), oldLeft-1
			case '+':
				h.new, newLeft = append(h.new, line[1:]...), newLeft-1
			default: // a line of context; an empty one may lack its space
				line = strings.TrimPrefix(line, " ")
				h.old, h.new, oldLeft, newLeft = append(h.old, line...), append(h.new, line...), oldLeft-1, newLeft-1
			}
		case strings.HasPrefix(line, "diff --git "):
			from, to, h = "", "", nil
		case strings.HasPrefix(line, "--- "):
			from = fileName(bare[4:])
		case strings.HasPrefix(line, "+++ "):
			to = fileName(bare[4:])
		case strings.HasPrefix(line, "@@ "):
			fields := strings.Fields(bare)
			if len(fields) < 3 || len(all) > maxHunks {
				return all
			}
			h = &hunk{path: to}
			if to == "/dev/null" {
				h.path = from
			}
			h.added = from == "/dev/null"
			h.oldLine, oldLeft = position(fields[1])
			h.newLine, newLeft = position(fields[2])
			all = append(all, h)
		}
	}
	return all
}

// position reads "-12,3" of a hunk's head.
func position(field string) (line string, count int) {
	line, length, ok := strings.Cut(strings.TrimLeft(field, "-+"), ",")
	n, err := strconv.Atoi(line)
	if err != nil || n < 0 {
		line = "0"
	} else {
		line = strconv.Itoa(n)
	}
	if count = 1; ok {
		count, _ = strconv.Atoi(length)
	}
	return line, count
}

// fileName returns the file that a line of a patch names.
func fileName(name string) string {
	name, _, _ = strings.Cut(name, "\t")
	if unquoted, err := strconv.Unquote(name); err == nil && strings.HasPrefix(name, `"`) {
		name = unquoted
	}
	if (strings.HasPrefix(name, "a/") || strings.HasPrefix(name, "b/")) && len(name) > 2 {
		return name[1:] // git's prefixes, for an absolute path
	}
	return name
}
