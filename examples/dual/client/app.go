package main

import (
	"fmt"
	"hash/maphash"
	"io"
	"strings"
	"sync"

	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/conformance"
)

// play is one prompt, and what to do while the agent answers it.
type play struct {
	text   string
	allow  bool // what it asks for
	cancel bool // as soon as it says something
}

func newPlay(text string) play {
	verb, rest, _ := strings.Cut(text, ":")
	switch rest = strings.TrimSpace(rest); verb {
	case "allow":
		return play{text: rest, allow: true}
	case "cancel":
		return play{text: rest, cancel: true}
	}
	return play{text: text}
}

// option is one answer to a request for permission.
type option struct{ id, kind string }

// choose picks the option that the play asks for; before the first play, p is nil. It returns "" if there is none.
func (p *play) choose(options []option) (id string) {
	want := "reject"
	if p != nil && p.allow {
		want = "allow"
	}
	for _, o := range options {
		if strings.HasPrefix(o.kind, want) {
			return o.id
		}
	}
	return ""
}

// printer prints what the agent does, a line each. Pieces of one message, and of one terminal's output,
// are put together. It may be used concurrently: the handlers of a connection run at the same time.
type printer struct {
	mu   sync.Mutex
	w    io.Writer
	open string // what the unfinished line is of
}

// line prints a line, of arguments that may be the agent's.
func (p *printer) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish()
	fmt.Fprintln(p.w, view.PrintableLine(fmt.Sprintf(format, args...)))
}

// piece prints a piece of what has that id, with a title where it begins.
func (p *printer) piece(id, title, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open != id {
		p.finish()
		fmt.Fprintf(p.w, "%s: ", title)
		p.open = id
	}
	fmt.Fprint(p.w, strings.ReplaceAll(view.Printable(text), "\n", " "))
}

func (p *printer) finish() {
	if p.open != "" {
		fmt.Fprintln(p.w)
		p.open = ""
	}
}

// outputs knows how much of the output of each tool call was printed. It may be used concurrently. Of an output it keeps
// the length and a sum, however long it is.
type outputs struct {
	mu    sync.Mutex
	known map[uint64]printed // by the sums of the calls' ids
}

type printed struct {
	length int
	sum    uint64
}

// maxOutputs is how many calls are known; then all are forgotten, and what they show is printed again.
const maxOutputs = 1024

// seed makes sums that no agent can foresee.
var seed = maphash.MakeSeed()

// added returns what a call's output has more than it had: all of it when it begins otherwise.
func (o *outputs) added(call, text string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	id, added := maphash.String(seed, call), text
	if was := o.known[id]; was.length <= len(text) && was.sum == maphash.String(seed, text[:was.length]) {
		added = text[was.length:]
	}
	if o.known == nil || len(o.known) == maxOutputs {
		o.known = map[uint64]printed{}
	}
	o.known[id] = printed{len(text), maphash.String(seed, text)}
	return added
}

// plan prints a plan as what is done of it.
func (p *printer) plan(statuses []string) {
	done := 0
	for _, status := range statuses {
		if status == "completed" {
			done++
		}
	}
	p.line("plan: %d of %d done", done, len(statuses))
}

// permission prints what was asked and answered.
func (p *printer) permission(title, chosen string) {
	if chosen == "" {
		chosen = "no answer"
	}
	p.line("permission: %s: %s", title, chosen)
}

// findings prints what the check found in a message, or at the end of the connection.
func (p *printer) findings(findings []conformance.Finding) {
	for _, f := range findings {
		p.line("%s: %s", f.Direction, f)
	}
}
