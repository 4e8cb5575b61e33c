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
	"github.com/acpgo/sdk/cmd/acp/internal/agents"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/filelock"
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

// section is the output of one agent.
type section struct {
	x      *execution
	agent  *agents.Agent
	key    string         // the agent in the names of sessions
	lock   *filelock.Lock // of the session's name, or nil
	record string         // the file of the recording, or ""

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
	prompt   json.RawMessage // the id of the request session/prompt
	response json.RawMessage // its response as the agent wrote it
}

// say prints a line on standard error.
func (s *section) say(format string, args ...any) {
	if s.x.format == formatQuiet {
		return
	}
	s.warn(format, args...)
}

// warn is like say, but prints in every format.
func (s *section) warn(format string, args ...any) {
	s.endLine()
	s.x.out.write(true, []byte(plain.Sprintf(format, args...)+"\n"))
}

// endLine ends the line on standard output if the following text on standard error would appear in it.
func (s *section) endLine() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.midLine && s.x.together {
		s.put([]byte("\n"))
	}
}

// put prints text on standard output; mu must be held.
func (s *section) put(text []byte) {
	if len(text) == 0 {
		return
	}
	if s.midLine = text[len(text)-1] != '\n'; !s.midLine {
		s.stream = plain.Stream{}
	}
	s.x.out.write(false, text)
}

// hold stores output for later; mu must be held.
func (s *section) hold(text []byte) {
	if s.size+len(text) > maxHeld {
		s.dropped += len(text)
		return
	}
	s.held = append(s.held, bytes.Clone(text))
	s.size += len(text)
}

// flush prints the held output; mu must be held.
func (s *section) flush() {
	for _, text := range s.held {
		s.x.out.write(false, text)
	}
	s.held, s.size = nil, 0
	if s.dropped > 0 {
		s.x.out.write(true, fmt.Appendf(nil, "acp: %d bytes of %s did not fit in memory and were dropped\n", s.dropped,
			plain.Line(s.agent.Name)))
		s.dropped = 0
	}
}

// open prints the session before the prompt is sent.
func (s *section) open(session *talk.Session, resumed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session, s.state, s.opened, s.replays, s.resumed = session.ID(), session.State(), true, false, resumed
	if s.x.format != formatJSON {
		return
	}
	s.printJSON("session", struct {
		Agent     string        `json:"agent"`
		SessionID acp.SessionID `json:"sessionId"`
		Cwd       string        `json:"cwd"`
		Resumed   bool          `json:"resumed"`
	}{s.agent.Name, session.ID(), session.Cwd(), resumed})
	s.flush()
}

// replay says that updates until the session is opened are its history.
func (s *section) replay() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replays = true
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
func (s *section) awaitLate(ctx context.Context) {
	s.mu.Lock()
	s.answered = true
	wait := lateUpdate
	if !s.said {
		wait = lateMessage
	}
	s.mu.Unlock()
	all := time.After(lateAll)
	for more := true; more; {
		select {
		case <-s.updated:
			wait = lateUpdate
		case <-time.After(wait):
			more = false
		case <-all:
			more = false
		case <-ctx.Done():
			return
		}
	}
	s.mu.Lock()
	said, late, stderr := s.said, s.late, s.stderr
	s.mu.Unlock()
	if late {
		s.say("warning: the agent sent updates after the end of the turn")
	}
	if !said {
		if stderr != "" {
			stderr = "; the last line of its standard error: " + stderr
		}
		s.warn("warning: the agent ended the turn without a message%s", stderr)
	}
}

// counts keeps track of what awaitLate needs; mu must be held.
func (s *section) counts(update acp.SessionUpdate) {
	switch v := update.Variant.(type) {
	case *acp.SessionUpdateAgentMessageChunk:
		s.said = s.said || seen(blockText(v.Content))
		s.late = s.late || s.answered
	case *acp.SessionUpdateAgentThoughtChunk, *acp.SessionUpdateToolCall, *acp.SessionUpdateToolCallUpdate,
		*acp.SessionUpdatePlan:
		s.late = s.late || s.answered
	default: // such as a title, which may follow a turn
	}
	select {
	case s.updated <- struct{}{}:
	default: // there is one already
	}
}

// update prints an update for people.
func (s *section) update(id acp.SessionID, update acp.SessionUpdate) {
	s.mu.Lock()
	if !s.opened || id != s.session {
		s.mu.Unlock()
		return
	}
	s.counts(update)
	if s.x.format == formatJSON {
		s.mu.Unlock()
		return
	}
	state := s.state
	switch v := update.Variant.(type) {
	case *acp.SessionUpdateAgentMessageChunk:
		s.piece((*acp.ContentChunk)(v))
	case *acp.SessionUpdateAgentThoughtChunk, *acp.SessionUpdateUserMessageChunk:
		s.apart = true
	case *acp.SessionUpdateToolCall:
		s.endMessage()
		if done, ok := state.ToolCall(v.ToolCallID); ok && s.ended(&done) { // it arrived completed
			s.mu.Unlock()
			s.sayEnd(&done)
			return
		}
	case *acp.SessionUpdateToolCallUpdate:
		if done, ok := state.ToolCall(v.ToolCallID); ok && s.ended(&done) {
			if s.x.format == formatText { // the end of a call does not end a message in progress
				s.endMessage()
			}
			s.mu.Unlock()
			s.sayEnd(&done)
			return
		}
	case *acp.SessionUpdateNotice:
		s.mu.Unlock()
		s.say("%s", &view.Item{Variant: (*view.Notice)(v)})
		return
	default: // is not a part of the output
	}
	s.mu.Unlock()
}

// maxReason is the maximum number of characters that are printed of the reason why a tool call failed.
const maxReason = 300

// sayEnd prints how a tool call ended: if it failed, with its last text, which usually is the reason.
func (s *section) sayEnd(call *acp.ToolCall) {
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
	s.say("%s: %s%s", title, call.Status, reason)
}

// ended reports whether a tool call has just ended; mu must be held.
func (s *section) ended(call *acp.ToolCall) bool {
	if call.Status != acp.ToolCallStatusCompleted && call.Status != acp.ToolCallStatusFailed ||
		s.told[call.ToolCallID] == call.Status {
		return false
	}
	if s.told == nil {
		s.told = map[acp.ToolCallID]acp.ToolCallStatus{}
	}
	s.told[call.ToolCallID] = call.Status
	return true
}

// endMessage ends a message, so that the next chunk begins another one; mu must be held.
func (s *section) endMessage() {
	if s.spoken && s.midLine && s.x.format == formatText {
		s.put([]byte("\n"))
	}
	s.spoken = false
}

// piece prints a chunk of the agent's message; mu must be held. Package view determines which chunks belong together.
func (s *section) piece(c *acp.ContentChunk) {
	id, named := c.MessageID.Get()
	goesOn := named && id == s.message
	if !goesOn && (named || s.apart) {
		s.endMessage()
	}
	s.message, s.apart = id, false
	text := withoutControls(blockText(c.Content))
	if s.x.format == formatQuiet && (!goesOn && !s.spoken || goesOn && s.unseen) {
		if s.unseen = !seen(text) && len(s.last) > 0; s.unseen { // this replaces no answer
			return
		}
		s.last, s.stream = nil, plain.Stream{}
	}
	s.stream.Data = !s.x.terminal
	text = s.stream.Text(text)
	if s.x.format == formatText {
		s.put([]byte(text))
		s.spoken = s.spoken || text != ""
		return
	}
	s.spoken = true
	if len(s.last)+len(text) > maxHeld {
		s.dropped += len(text)
		return
	}
	s.last = append(s.last, text...)
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
func (s *section) line(from conformance.Side, line []byte) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
	}
	if json.Unmarshal(line, &m) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case from == conformance.Client && m.Method == acp.MethodPrompt:
		s.prompt = bytes.Clone(m.ID)
	case from == conformance.Agent && m.Method == "" && m.Result != nil && s.prompt != nil && bytes.Equal(m.ID, s.prompt):
		s.response = bytes.Clone(m.Result)
	case from == conformance.Agent && m.Method == acp.MethodSessionUpdate && !s.replays:
		var text bytes.Buffer
		if json.Compact(&text, m.Params) != nil || text.Len() < 2 || text.Bytes()[0] != '{' {
			return
		}
		line := s.asLine(text.Bytes())
		if s.opened {
			s.x.out.write(false, line)
		} else {
			s.hold(line)
		}
	}
}

// inJSON matches the beginning of a workflow command, which only a string can contain.
var inJSON = regexp.MustCompile(`##(\pL*\[)`)

// asLine returns an object as a line.
func (s *section) asLine(object []byte) []byte {
	line := bytes.ToValidUTF8(object, []byte("\uFFFD"))
	line = inJSON.ReplaceAll(line, []byte(`\u0023#$1`))
	if s.x.terminal {
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
func (s *section) printJSON(member string, value any) {
	var object bytes.Buffer
	enc := json.NewEncoder(&object)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]any{member: value}); err != nil {
		return // all printed values can be encoded
	}
	s.x.out.write(false, s.asLine(bytes.TrimSpace(object.Bytes())))
}

// permission counts the requests for which no user could be asked, and prints each for formatJSON.
func (s *section) permission(d *talk.Decision, nobody bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if nobody {
		s.unasked++
	}
	if s.x.format != formatJSON {
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
	s.printJSON("permission", event)
}

// unaskedCount returns how many permission requests were rejected because no user could be asked.
func (s *section) unaskedCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unasked
}

// close prints the end of the output.
func (s *section) close(o *outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.x.format {
	case formatText:
		if s.midLine {
			s.put([]byte("\n"))
		}
	case formatQuiet:
		if n := len(s.last); n > 0 && s.last[n-1] != '\n' {
			s.last = append(s.last, '\n')
		}
		s.put(s.last)
	case formatJSON:
		result := struct {
			Status     int             `json:"status"`
			StopReason acp.StopReason  `json:"stopReason,omitempty"`
			Error      string          `json:"error,omitempty"`
			Seconds    float64         `json:"seconds"`
			Response   json.RawMessage `json:"response,omitempty"`
		}{o.status, o.stop, "", o.seconds, s.response}
		if o.err != nil {
			result.Error = strings.ToValidUTF8(o.err.Error(), "\uFFFD")
		}
		s.printJSON("result", result)
	}
}
