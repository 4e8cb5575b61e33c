package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/plain"
)

// The formats of acp exec.
const (
	formatText  = "text"
	formatJSON  = "json"
	formatQuiet = "quiet"
)

// maxHeld is the maximum number of bytes of an agent's output that are held until they can be printed.
const maxHeld = 16 << 20

// output is what is known of the agent's output.
type output struct {
	mu       sync.Mutex
	state    *view.State
	session  acp.SessionID
	opened   bool
	resumed  bool          // the session is one of an earlier run
	replays  bool          // updates belong to the history of the session
	held     [][]byte      // lines of JSON before the session is opened
	size     int           // of held
	dropped  int           // bytes that did not fit
	midLine  bool          // the last printed character was not a newline
	spoken   bool          // something was printed since the last tool call
	last     []byte        // the last message, for formatQuiet
	unseen   bool          // a message has begun that replaces it once there is something to see
	stream   plain.Stream  // of what is printed or in last
	message  acp.MessageID // of the last chunk, or ""
	apart    bool          // a thought or the like arrived since the last chunk
	told     map[acp.ToolCallID]acp.ToolCallStatus
	said     bool            // the agent's message has something other than white space
	updated  chan struct{}   // has an element after an update
	answered bool            // the turn has ended
	late     bool            // there were updates about the turn since then
	stderr   string          // the last line of the agent's standard error
	unasked  int             // permission requests that were rejected because no user could be asked
	asked    json.RawMessage // the id of the request session/prompt
	response json.RawMessage // its response as the agent wrote it
}

// say prints a line on standard error.
func (x *execution) say(format string, args ...any) {
	if x.format == formatQuiet {
		return
	}
	x.warn(format, args...)
}

// warn is like say, but prints in every format.
func (x *execution) warn(format string, args ...any) {
	x.endLine()
	x.out.write(true, []byte(plain.Sprintf(format, args...)+"\n"))
}

// endLine ends the line on standard output if the following text on standard error would appear in it.
func (x *execution) endLine() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.midLine && x.together {
		x.put([]byte("\n"))
	}
}

// put prints text on standard output; mu must be held.
func (x *execution) put(text []byte) {
	if len(text) == 0 {
		return
	}
	if x.midLine = text[len(text)-1] != '\n'; !x.midLine {
		x.stream = plain.Stream{}
	}
	x.out.write(false, text)
}

// hold stores output for later; mu must be held.
func (x *execution) hold(text []byte) {
	if x.size+len(text) > maxHeld {
		x.dropped += len(text)
		return
	}
	x.held = append(x.held, bytes.Clone(text))
	x.size += len(text)
}

// printHeld prints the held output; mu must be held.
func (x *execution) printHeld() {
	for _, text := range x.held {
		x.out.write(false, text)
	}
	x.held, x.size = nil, 0
	if x.dropped > 0 {
		x.out.write(true, fmt.Appendf(nil, "acp: %d bytes of %s did not fit in memory and were dropped\n", x.dropped,
			plain.Line(x.agent.Name)))
		x.dropped = 0
	}
}

// open prints the session before the prompt is sent.
func (x *execution) open(session *talk.Session, resumed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.session, x.state, x.opened, x.replays, x.resumed = session.ID(), session.State(), true, false, resumed
	if x.format != formatJSON {
		return
	}
	x.printJSON("session", struct {
		Agent     string        `json:"agent"`
		SessionID acp.SessionID `json:"sessionId"`
		Cwd       string        `json:"cwd"`
		Resumed   bool          `json:"resumed"`
	}{x.agent.Name, session.ID(), session.Cwd(), resumed})
	x.printHeld()
}

// replay says that updates until the session is opened are its history.
func (x *execution) replay() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.replays = true
}

// How long updates that the agent sends after its answer are awaited: each of them, the first if the turn had no
// message before, and all of them.
const (
	lateUpdate  = 100 * time.Millisecond
	lateMessage = time.Second
	lateAll     = 3 * time.Second
)

// awaitLate waits for updates that the agent sends after the response to its prompt, as several do, and says so. If the
// turn had no message at all, it says that too.
func (x *execution) awaitLate(ctx context.Context) {
	x.mu.Lock()
	x.answered = true
	wait := lateUpdate
	if !x.said {
		wait = lateMessage
	}
	x.mu.Unlock()
	all := time.After(lateAll)
	for more := true; more; {
		select {
		case <-x.updated:
			wait = lateUpdate
		case <-time.After(wait):
			more = false
		case <-all:
			more = false
		case <-ctx.Done():
			return
		}
	}
	x.mu.Lock()
	said, late, stderr := x.said, x.late, x.stderr
	x.mu.Unlock()
	if late {
		x.say("warning: the agent sent updates after the end of the turn")
	}
	if !said {
		if stderr != "" {
			stderr = "; the last line of its standard error: " + stderr
		}
		x.warn("warning: the agent ended the turn without a message%s", stderr)
	}
}

// counts keeps track of what awaitLate needs; mu must be held.
func (x *execution) counts(update acp.SessionUpdate) {
	switch v := update.Variant.(type) {
	case *acp.SessionUpdateAgentMessageChunk:
		x.said = x.said || seen(blockText(v.Content))
		x.late = x.late || x.answered
	case *acp.SessionUpdateAgentThoughtChunk, *acp.SessionUpdateToolCall, *acp.SessionUpdateToolCallUpdate,
		*acp.SessionUpdatePlan:
		x.late = x.late || x.answered
	default: // such as a title, which may follow a turn
	}
	select {
	case x.updated <- struct{}{}:
	default: // there is one already
	}
}

// update prints an update for people.
func (x *execution) update(id acp.SessionID, update acp.SessionUpdate) {
	x.mu.Lock()
	if !x.opened || id != x.session {
		x.mu.Unlock()
		return
	}
	x.counts(update)
	if x.format == formatJSON {
		x.mu.Unlock()
		return
	}
	state := x.state
	switch v := update.Variant.(type) {
	case *acp.SessionUpdateAgentMessageChunk:
		x.piece((*acp.ContentChunk)(v))
	case *acp.SessionUpdateAgentThoughtChunk, *acp.SessionUpdateUserMessageChunk:
		x.apart = true
	case *acp.SessionUpdateToolCall:
		x.endMessage()
		if done, ok := state.ToolCall(v.ToolCallID); ok && x.ended(&done) { // it arrived completed
			x.mu.Unlock()
			x.sayEnd(&done)
			return
		}
	case *acp.SessionUpdateToolCallUpdate:
		if done, ok := state.ToolCall(v.ToolCallID); ok && x.ended(&done) {
			if x.format == formatText { // the end of a call does not end a message in progress
				x.endMessage()
			}
			x.mu.Unlock()
			x.sayEnd(&done)
			return
		}
	case *acp.SessionUpdateNotice:
		x.mu.Unlock()
		x.say("%s", &view.Item{Variant: (*view.Notice)(v)})
		return
	default: // is not a part of the output
	}
	x.mu.Unlock()
}

// maxReason is the maximum number of characters that are printed of the reason why a tool call failed.
const maxReason = 300

// sayEnd prints how a tool call ended: if it failed, with its last text, which usually is the reason.
func (x *execution) sayEnd(call *acp.ToolCall) {
	reason := ""
	for _, c := range call.Content {
		if text := c.Text(); text != "" && call.Status == acp.ToolCallStatusFailed {
			reason = ": " + strings.TrimSpace(text)
		}
	}
	if r := []rune(reason); len(r) > maxReason {
		reason = string(r[:maxReason]) + "…"
	}
	title := cmp.Or(strings.TrimSpace(call.Title), "tool call "+string(call.ToolCallID))
	if call.Kind != "" {
		title += " (" + string(call.Kind) + ")"
	}
	x.say("%s: %s%s", title, call.Status, reason)
}

// ended reports whether a tool call has just ended; mu must be held.
func (x *execution) ended(call *acp.ToolCall) bool {
	if call.Status != acp.ToolCallStatusCompleted && call.Status != acp.ToolCallStatusFailed ||
		x.told[call.ToolCallID] == call.Status {
		return false
	}
	if x.told == nil {
		x.told = map[acp.ToolCallID]acp.ToolCallStatus{}
	}
	x.told[call.ToolCallID] = call.Status
	return true
}

// endMessage ends a message, so that the next chunk begins another one; mu must be held.
func (x *execution) endMessage() {
	if x.spoken && x.midLine && x.format == formatText {
		x.put([]byte("\n"))
	}
	x.spoken = false
}

// piece prints a chunk of the agent's message; mu must be held. Package view determines which chunks belong together.
func (x *execution) piece(c *acp.ContentChunk) {
	id, named := c.MessageID.Get()
	goesOn := named && id == x.message
	if !goesOn && (named || x.apart) {
		x.endMessage()
	}
	x.message, x.apart = id, false
	text := withoutControls(blockText(c.Content))
	if x.format == formatQuiet && (!goesOn && !x.spoken || goesOn && x.unseen) {
		if x.unseen = !seen(text) && len(x.last) > 0; x.unseen { // this replaces no answer
			return
		}
		x.last, x.stream = nil, plain.Stream{}
	}
	x.stream.Data = !x.terminal
	text = x.stream.Text(text)
	if x.format == formatText {
		x.put([]byte(text))
		x.spoken = x.spoken || text != ""
		return
	}
	x.spoken = true
	if len(x.last)+len(text) > maxHeld {
		x.dropped += len(text)
		return
	}
	x.last = append(x.last, text...)
}

// seen reports whether a text has something that can be seen.
func seen(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return plain.Visible(r) && !unicode.IsSpace(r) })
}

// blockText returns a chunk of a message as text; other content is described.
func blockText(block acp.ContentBlock) string {
	switch v := block.Variant.(type) {
	case *acp.ContentBlockText:
		return v.Text
	case *acp.ContentBlockImage:
		return "[image]"
	case *acp.ContentBlockAudio:
		return "[audio]"
	case *acp.ContentBlockResourceLink:
		return v.URI
	case *acp.ContentBlockResource:
		switch r := v.Resource.Variant.(type) {
		case *acp.TextResourceContents:
			return r.Text
		case *acp.BlobResourceContents:
			return r.URI
		default: // described below
		}
	default: // described below
	}
	return "[content of an unknown kind]"
}

// withoutControls removes control characters except newlines and tabs, and characters that change the order of others.
func withoutControls(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, text)
}

// line handles a line that passes, for formatJSON.
func (x *execution) line(from conformance.Side, line []byte) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(line, &m) != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case from == conformance.Client && m.Method == acp.MethodPrompt:
		x.asked = bytes.Clone(m.ID)
	case from == conformance.Agent && m.Method == "" && m.Result != nil && x.asked != nil && bytes.Equal(m.ID, x.asked):
		x.response = bytes.Clone(m.Result)
	case from == conformance.Agent && m.Method == acp.MethodSessionUpdate && !x.replays:
		var text bytes.Buffer
		if json.Compact(&text, m.Params) != nil || text.Len() < 2 || text.Bytes()[0] != '{' {
			return
		}
		line := x.asLine(text.Bytes())
		if x.opened {
			x.out.write(false, line)
		} else {
			x.hold(line)
		}
	}
}

// inJSON matches the beginning of a workflow command, which only a string can contain.
var inJSON = regexp.MustCompile(`##(\pL*\[)`)

// asLine returns an object as a line.
func (x *execution) asLine(object []byte) []byte {
	line := bytes.ToValidUTF8(object, []byte("\uFFFD"))
	line = inJSON.ReplaceAll(line, []byte(`\u0023#$1`))
	if x.terminal {
		line = visible(line)
	}
	return append(line, '\n')
}

// visible escapes invisible characters in JSON, for a terminal.
func visible(text []byte) (b []byte) {
	for _, r := range string(text) {
		if plain.Visible(r) {
			b = utf8.AppendRune(b, r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}
	return b
}

// printJSON prints an object with one member; mu must be held.
func (x *execution) printJSON(member string, value any) {
	var object bytes.Buffer
	enc := json.NewEncoder(&object)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]any{member: value}); err != nil {
		return // all printed values can be encoded
	}
	x.out.write(false, x.asLine(bytes.TrimSpace(object.Bytes())))
}

// permission counts the requests for which no user could be asked, and prints each for formatJSON.
func (x *execution) permission(d *talk.Decision, nobody bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if nobody {
		x.unasked++
	}
	if x.format != formatJSON {
		return
	}
	event := struct {
		SessionID acp.SessionID         `json:"sessionId"`
		ToolCall  acp.ToolCallUpdate    `json:"toolCall"`
		Chosen    *acp.PermissionOption `json:"chosen"` // null if none was chosen
		Effect    policy.Effect         `json:"rules"`
		Why       string                `json:"why"`
		Nobody    bool                  `json:"nobodyToAsk"`
	}{d.Request.SessionID, d.Request.ToolCall, d.Option, d.By.Effect, d.By.Why, nobody}
	x.printJSON("permission", event)
}

// unaskedCount returns how many permission requests were rejected because no user could be asked.
func (x *execution) unaskedCount() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.unasked
}

// close prints the end of the output.
func (x *execution) close(o *outcome) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch x.format {
	case formatText:
		if x.midLine {
			x.put([]byte("\n"))
		}
	case formatQuiet:
		if n := len(x.last); n > 0 && x.last[n-1] != '\n' {
			x.last = append(x.last, '\n')
		}
		x.put(x.last)
	case formatJSON:
		result := struct {
			Status     int             `json:"status"`
			StopReason acp.StopReason  `json:"stopReason,omitempty"`
			Error      string          `json:"error,omitempty"`
			Seconds    float64         `json:"seconds"`
			Response   json.RawMessage `json:"response,omitempty"`
		}{o.status, o.stop, "", o.seconds, x.response}
		if o.err != nil {
			result.Error = strings.ToValidUTF8(o.err.Error(), "\uFFFD")
		}
		x.printJSON("result", result)
	}
}
