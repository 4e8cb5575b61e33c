package judge

import (
	"slices"
	"strings"

	"github.com/acpgo/sdk/conformance/internal/schema"
)

// The bounds of what a session keeps of its conversation and of a replay. What is beyond them is not compared.
const (
	maxTalk   = 1 << 8
	maxReplay = 1 << 11
)

// said is a turn as the conversation has it.
type said struct {
	question, answer text
	plain            bool   // the prompt has only texts
	calls            []text // the ids of the tool calls
	// whole is set if the turn ended by itself, so that a replay must have it. mixed is set if other turns were in
	// flight when the agent spoke, so that it is not certain what belongs to this one.
	whole, mixed bool
}

// chunks returns the parts of the turn.
func (t *said) chunks() []chunk {
	all := []chunk{{byUser, t.question}, {byAgent, t.answer}}
	for _, id := range t.calls {
		all = append(all, chunk{aCall, id})
	}
	return all
}

// text is compared by a hash of its bytes other than white space, so that it makes no difference how it is cut into
// chunks.
type text struct {
	hash uint64
	size int
}

const base = 0x9E3779B97F4A7C15

// then returns the text followed by another one.
func (t text) then(next text) text {
	return text{t.hash*power(next.size) + next.hash, t.size + next.size}
}

// without returns the text without another one that it begins with.
func (t text) without(first text) text {
	size := t.size - first.size
	return text{t.hash - first.hash*power(size), size}
}

// power returns base to the power of n.
func power(n int) uint64 {
	p, b := uint64(1), uint64(base)
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			p *= b
		}
		b *= b
	}
	return p
}

func textOf(s string) text {
	var t text
	for _, c := range []byte(s) {
		if c > ' ' {
			t = text{t.hash*base + uint64(c) + 1, t.size + 1}
		}
	}
	return t
}

// callID returns the id of a tool call as a text of one character, so that two of them are not one longer text.
func callID(id string) text { return text{textOf(id).hash, 1} }

// chunk is one update of a replay.
type chunk struct {
	kind chunkKind
	text text // of a tool call, its id
}

type chunkKind byte

const (
	byUser chunkKind = iota
	byAgent
	aCall
)

// replay is what session/load has replayed.
type replay []chunk

func (r *replay) add(kind chunkKind, content *schema.Value) {
	t := textOf(content.Text("text"))
	if content.Text("type") != "text" || t.size > 0 {
		r.put(chunk{kind, t})
	}
}

func (r *replay) put(c chunk) {
	if len(*r) < maxReplay {
		*r = append(*r, c)
	}
}

// place is where a replay has a text: in the chunks from first to last.
type place struct{ first, last int }

// find returns the places of a text that consists of successive chunks of its kind, with tool calls among them or not.
func (r replay) find(c chunk) (found []place) {
	if c.text.size == 0 {
		return nil
	}
	var window text
	var at []int // its chunks
	for i, next := range r {
		switch {
		case next.kind != c.kind && next.kind == aCall, next.kind == c.kind && next.text.size == 0:
			continue
		case next.kind != c.kind:
			window, at = text{}, nil
			continue
		}
		for window, at = window.then(next.text), append(at, i); window.size > c.text.size; at = at[1:] {
			window = window.without(r[at[0]].text)
		}
		if window == c.text {
			found = append(found, place{at[0], i})
		}
	}
	return found
}

// prompt adds a prompt to the conversation, and returns nil if it is already too long.
func (s *Session) prompt(prompt *schema.Value) *said {
	if len(s.talk) >= maxTalk {
		return nil
	}
	t := &said{plain: true}
	for i, block := range prompt.Items() {
		t.question = t.question.then(textOf(block.Text("text")))
		t.plain = t.plain && block.Text("type") == "text"
		if i == 0 && strings.HasPrefix(block.Text("text"), "/") { // such as /clear
			s.commanded = true
		}
	}
	s.talk = append(s.talk, t)
	return t
}

// speak adds an update of the agent to the turn that it belongs to.
func (s *Session) speak(add func(*said)) {
	for _, t := range s.Turns {
		if t.said != nil {
			if t.said.mixed = t.said.mixed || len(s.Turns) > 1; !t.said.mixed {
				add(t.said)
			}
		}
	}
}

// endTalk records the end of a turn. Those that failed or were refused are not in the conversation.
func (s *Session) endTalk(t *said, e *Event) {
	switch reason := e.Text("stopReason"); {
	case t == nil:
	case reason == "" || reason == "refusal":
		s.talk = slices.DeleteFunc(s.talk, func(other *said) bool { return other == t })
	default:
		t.whole = reason != "cancelled" && !t.mixed
	}
	if s.commanded && len(s.Turns) == 1 { // the command may have changed what was before
		s.commanded = false
		for _, t := range s.talk {
			t.whole = false
		}
	}
}

// ReplayFault describes what is wrong with the replay of session/load, and returns "" if nothing is.
func (s *Session) ReplayFault() string {
	count := map[chunk]int{}
	for _, t := range s.talk {
		for _, c := range t.chunks() {
			count[c]++
		}
	}
	questions, answers := make([][]place, len(s.talk)), make([][]place, len(s.talk))
	// where a chunk belongs: 2n to the question of turn n, 2n+1 to what follows, 0 if unknown
	turns := make([]int, len(s.replay))
	begins := map[int]bool{} // the chunks that may begin a question
	for i, t := range s.talk {
		for _, c := range t.chunks() {
			places, turn := s.replay.find(c), 2*i+3
			switch c.kind {
			case byUser:
				questions[i], turn = places, 2*i+2
				for _, p := range places {
					begins[p.first] = true
				}
			case byAgent:
				answers[i] = places
			}
			if len(places) == 1 && count[c] == 1 {
				turns[places[0].first] = turn
			}
		}
	}
	latest := 0
	for _, turn := range turns {
		if turn > 0 && turn < latest {
			return "the agent replayed the conversation in another order"
		}
		latest = max(latest, turn)
	}
	if s.Lost || len(s.replay) == maxReplay {
		return ""
	}
	// What the agent said between two questions separates them in the replay too.
	chunks, parts, spoke := 0, 0, true
	for i, c := range s.replay {
		if c.kind == byUser {
			chunks++
			if i == 0 || s.replay[i-1].kind != byUser {
				parts++
			}
		}
	}
	for i, t := range s.talk {
		if !t.whole {
			continue
		}
		if chunks--; spoke {
			parts--
		}
		spoke = t.answer.size > 0
		if spoke && t.plain && t.question.size > 0 && len(questions[i])+len(answers[i]) == 0 {
			return "the agent replayed the conversation without one of its turns"
		}
		if spoke && len(questions[i]) == 1 && len(answers[i]) == 0 {
			answered := false
			for j := questions[i][0].last + 1; j < len(s.replay) && !begins[j] && !answered; j++ {
				answered = s.replay[j].kind == byAgent
			}
			if !answered {
				return "the agent replayed the conversation without one of its answers"
			}
		}
	}
	if chunks < 0 || parts < 0 {
		return "the agent replayed the conversation without one of its questions"
	}
	return ""
}
