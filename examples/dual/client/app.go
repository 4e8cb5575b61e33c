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
	allow  bool // grants the agent's permission requests
	cancel bool // cancels the turn as soon as the agent sends text
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

// choose selects the option for the play; before the first play, p is nil. It returns "" if there is none.
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

// printer prints what the agent does, one line for each event. Pieces of one message, and of one terminal's output, are
// joined. It may be used concurrently: the handlers of a connection run at the same time.
type printer struct {
	mu   sync.Mutex
	w    io.Writer
	open string // id that the unfinished line belongs to
}

// line prints a line; its arguments may come from the agent.
func (p *printer) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish()
	fmt.Fprintln(p.w, view.PrintableLine(fmt.Sprintf(format, args...)))
}

// piece prints a piece of the item with an id, with a title where the item begins.
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

// outputs records how much of the output of each tool call was printed. It may be used concurrently. For each output it
// keeps only the length and a hash.
type outputs struct {
	mu    sync.Mutex
	known map[uint64]printed // by the hashes of the calls' ids
}

type printed struct {
	length int
	sum    uint64
}

// maxOutputs is how many calls are remembered; when there are more, all are forgotten, and their output is printed
// again.
const maxOutputs = 1024

// seed makes hashes that an agent cannot predict.
var seed = maphash.MakeSeed()

// added returns the part of a call's output that is new: all of it if it begins differently.
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

// plan prints the progress of a plan.
func (p *printer) plan(statuses []string) {
	done := 0
	for _, status := range statuses {
		if status == "completed" {
			done++
		}
	}
	p.line("plan: %d of %d done", done, len(statuses))
}

// permission prints the request and the answer.
func (p *printer) permission(title, chosen string) {
	if chosen == "" {
		chosen = "no answer"
	}
	p.line("permission: %s: %s", title, chosen)
}

// findings prints the findings about a message, or about the end of the connection.
func (p *printer) findings(findings []conformance.Finding) {
	for _, f := range findings {
		p.line("%s: %s", f.Direction, f)
	}
}
