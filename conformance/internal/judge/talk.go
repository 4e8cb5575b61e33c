package judge

import "github.com/acpgo/sdk/conformance/internal/schema"

// maxTalk is the maximum number of parts that a talk keeps. Further ones are not compared.
const maxTalk = 1 << 8

// talk is what the user and the agent said, as parts: texts of one speaker without anything of the other between them.
type talk []part

// part is a text of one speaker. Texts are compared by a hash of their bytes other than white space, so that it makes no
// difference how they are cut into chunks.
type part struct {
	user bool
	call bool   // it is a tool call
	hash uint64 // FNV-1a
	size int
}

// add adds the text of a content block, or of a list of them.
func (t *talk) add(user bool, content *schema.Value) {
	if content.IsArray() {
		for _, block := range content.Items() {
			t.add(user, block)
		}
		return
	}
	if n := len(*t); n == 0 || (*t)[n-1].user != user {
		if n >= maxTalk {
			return
		}
		*t = append(*t, part{user: user, hash: 14695981039346656037})
	}
	(*t)[len(*t)-1].write(content.Text("text"))
}

// addCall adds a tool call.
func (t *talk) addCall(id string) {
	if id != "" && len(*t) < maxTalk {
		p := part{call: true, hash: 14695981039346656037}
		p.write(id)
		*t = append(*t, p)
	}
}

// write adds a text to the part.
func (p *part) write(text string) {
	for _, c := range []byte(text) {
		if c > ' ' {
			p.hash = (p.hash ^ uint64(c)) * 1099511628211
			p.size++
		}
	}
}

// unique returns the places of the parts whose text occurs only once.
func (t talk) unique() map[part]int {
	at := map[part]int{}
	for i, p := range t {
		if _, again := at[p]; again || p.size == 0 {
			i = -1
		}
		at[p] = i
	}
	return at
}

// reorders reports whether a replay has two parts of the talk in the other order. Tool calls may be in any order, but
// not among the texts.
func (t talk) reorders(replay talk) bool {
	here, there := t.unique(), replay.unique()
	lastText, lastCall := -1, -1
	for i, p := range replay {
		at, ok := here[p]
		if !ok || at < 0 || there[p] != i {
			continue
		}
		switch {
		case at < lastText, !p.call && at < lastCall:
			return true
		case p.call:
			lastCall = max(lastCall, at)
		default:
			lastText = at
		}
	}
	return false
}
