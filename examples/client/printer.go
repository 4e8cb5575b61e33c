// This file prints the output. All text from the agent goes through text or printf, which escape everything that a
// terminal would do more with than show it, and every line of it begins with a mark, so that it cannot be mistaken for
// the client's own words.

package main

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/plain"
)

// printer prints events. It may be used concurrently.
type printer struct {
	mu    sync.Mutex
	w     io.Writer
	flow  string  // what the last text belongs to; its continuation needs no new line
	mid   bool    // the last line is unfinished
	asked string  // the question that waits for an answer
	tools []*tool // most recent last
}

// maxTools is how many tool calls are remembered; the titles of older ones are forgotten. Whatever the agent sends, a
// tool call takes only as much memory as its title: ids and contents are kept as hashes.
const maxTools = 256

// tool holds what is known about a tool call so far.
type tool struct {
	id     uint64 // hash of the id
	title  string
	status acp.ToolCallStatus
	shown  uint64 // hash of the content that was last printed
}

// seed makes hashes that an agent cannot predict.
var seed = maphash.MakeSeed()

func sum(text string) uint64 { return maphash.String(seed, text) }

// line prints a line; its arguments may come from the agent.
func (p *printer) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printf(format, args...)
}

// ask prints a question, which is answered on the same line. It is repeated after anything else that is printed before
// the answer.
func (p *printer) ask(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text("ask", "", text)
	p.asked = text
}

// answered records that the question was answered, which ended the line, or that there will be no answer.
func (p *printer) answered(answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked, p.mid = "", false
	if !answered {
		fmt.Fprintln(p.w)
	}
}

// printf prints a single line, whatever the arguments contain.
func (p *printer) printf(format string, args ...any) {
	p.text("", "", plain.Sprintf(format, args...)+"\n")
}

// text prints text. It continues the last text if that belongs to the same flow. Each of its lines begins with prefix.
func (p *printer) text(flow, prefix, text string) {
	if p.mid && p.flow != flow {
		fmt.Fprintln(p.w)
		p.mid = false
	}
	defer p.askAgain()
	p.flow = flow
	for line := range strings.Lines(plain.Text(text)) {
		if !p.mid {
			io.WriteString(p.w, prefix)
		}
		io.WriteString(p.w, line)
		p.mid = !strings.HasSuffix(line, "\n")
	}
}

// askAgain repeats the open question after other output.
func (p *printer) askAgain() {
	if p.asked == "" {
		return
	}
	if p.mid {
		fmt.Fprintln(p.w)
	}
	fmt.Fprint(p.w, p.asked)
	p.flow, p.mid = "ask", true
}

// besides writes lines to another stream that the user may see in the same place. It ends the current line first;
// otherwise the agent's next text would begin a line without a mark.
type besides struct {
	p *printer
	w io.Writer
}

// Write implements io.Writer.
func (b besides) Write(lines []byte) (int, error) {
	p := b.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mid {
		fmt.Fprintln(p.w)
		p.mid = false
	}
	defer p.askAgain()
	return b.w.Write(lines)
}

// update prints an update.
func (p *printer) update(update acp.SessionUpdate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch u := update.Variant.(type) {
	case *acp.SessionUpdateUserMessageChunk:
		p.chunk("user", "> ", acp.ContentChunk(*u))
	case *acp.SessionUpdateAgentMessageChunk:
		p.chunk("agent", "< ", acp.ContentChunk(*u))
	case *acp.SessionUpdateAgentThoughtChunk:
		p.chunk("thought", "~ ", acp.ContentChunk(*u))
	case *acp.SessionUpdateToolCall:
		p.toolCall(acp.ToolCall(*u))
	case *acp.SessionUpdateToolCallUpdate:
		p.toolUpdate(acp.ToolCallUpdate(*u))
	case *acp.SessionUpdatePlan:
		p.plan(u.Entries)
	case *acp.SessionUpdateAvailableCommandsUpdate:
		names := make([]string, len(u.AvailableCommands))
		for i, c := range u.AvailableCommands {
			names[i] = "/" + c.Name
		}
		p.printf("commands: %s", strings.Join(names, " "))
	case *acp.SessionUpdateCurrentModeUpdate:
		p.printf("mode: %s", u.CurrentModeID)
	case *acp.SessionUpdateConfigOptionUpdate:
		p.options(u.ConfigOptions)
	case *acp.SessionUpdateSessionInfoUpdate:
		if title, ok := u.Title.Get(); ok {
			p.printf("title: %s", title)
		}
	case *acp.SessionUpdateUsageUpdate:
		p.printf("usage: %d of %d tokens", u.Used, u.Size)
	case *acp.SessionUpdateNotice:
		p.printf("%s: %s %s", u.Severity, u.Title, u.Description.Value())
	case *acp.SessionUpdateUnknown:
		p.printf("update of the unknown kind %s", u.Tag)
	default:
		p.printf("update of an unknown kind: %s", update)
	}
}

// chunk prints a piece of a message. A different message begins on a new line.
func (p *printer) chunk(who, prefix string, c acp.ContentChunk) {
	p.text(who+string(c.MessageID.Value()), prefix, blockText(c.Content))
}

func blockText(block acp.ContentBlock) string {
	switch b := block.Variant.(type) {
	case *acp.ContentBlockText:
		return b.Text
	case *acp.ContentBlockImage:
		return fmt.Sprintf("[image, %s]", b.MimeType)
	case *acp.ContentBlockAudio:
		return fmt.Sprintf("[audio, %s]", b.MimeType)
	case *acp.ContentBlockResourceLink:
		return fmt.Sprintf("[%s: %s]", b.Name, b.URI)
	case *acp.ContentBlockResource:
		switch r := b.Resource.Variant.(type) {
		case *acp.TextResourceContents:
			return fmt.Sprintf("[%s]\n%s", r.URI, r.Text)
		case *acp.BlobResourceContents:
			return fmt.Sprintf("[%s]", r.URI)
		default: // described below
		}
	default: // described below
	}
	return "[content of an unknown kind]"
}

// plan prints a plan, which replaces the previous one (PLN-4).
func (p *printer) plan(entries []acp.PlanEntry) {
	p.printf("plan:")
	marks := map[acp.PlanEntryStatus]string{acp.PlanEntryStatusCompleted: "x", acp.PlanEntryStatusInProgress: ">"}
	for _, e := range entries {
		p.printf("  [%s] %s", cmp.Or(marks[e.Status], " "), e.Content)
	}
}

// options prints config options, except those of unknown kinds (CFG-15).
func (p *printer) options(options []acp.SessionConfigOption) {
	for _, o := range options {
		switch v := o.Variant.(type) {
		case *acp.SessionConfigOptionSelect:
			p.printf("option %s: %s", o.Name, v.CurrentValue)
		case *acp.SessionConfigOptionBoolean:
			p.printf("option %s: %t", o.Name, v.CurrentValue)
		default: // options of other types are not shown (CFG-15)
		}
	}
}

func (p *printer) toolCall(c acp.ToolCall) {
	t := p.tool(c.ToolCallID)
	t.title, t.status = plain.Line(c.Title), cleanStatus(cmp.Or(c.Status, acp.ToolCallStatusPending))
	p.printf("* %s (%s): %s", t.title, cmp.Or(c.Kind, acp.ToolKindOther), t.status)
	for _, l := range c.Locations {
		if line, ok := l.Line.Get(); ok {
			p.printf("  at %s:%d", l.Path, line)
		} else {
			p.printf("  at %s", l.Path)
		}
	}
	p.content(t, c.Content)
}

// toolUpdate prints what has changed in a tool call; members that are absent or null have not changed (TOL-3).
func (p *printer) toolUpdate(u acp.ToolCallUpdate) {
	t := p.tool(u.ToolCallID)
	if title, ok := u.Title.Get(); ok {
		t.title = plain.Line(title)
	}
	if status, ok := u.Status.Get(); ok && cleanStatus(status) != t.status {
		t.status = cleanStatus(status)
		p.printf("* %s: %s", t.title, status)
	}
	p.content(t, u.Content.Value())
}

// tool finds a tool call, or adds it.
func (p *printer) tool(id acp.ToolCallID) *tool {
	key := sum(string(id))
	if i := slices.IndexFunc(p.tools, func(t *tool) bool { return t.id == key }); i >= 0 {
		return p.tools[i]
	}
	if len(p.tools) == maxTools {
		p.tools = slices.Delete(p.tools, 0, 1)
	}
	t := &tool{id: key, title: plain.Line(string(id))}
	p.tools = append(p.tools, t)
	return t
}

// cleanStatus returns a status in a form that may be kept, because agents may send any text.
func cleanStatus(status acp.ToolCallStatus) acp.ToolCallStatus {
	return acp.ToolCallStatus(plain.Line(string(status)))
}

// content prints the content of a tool call, unless it was the last content printed.
func (p *printer) content(t *tool, content []acp.ToolCallContent) {
	var b strings.Builder
	for _, item := range content {
		switch c := item.Variant.(type) {
		case *acp.ToolCallContentContent:
			text := strings.TrimSuffix(blockText(c.Content), "\n")
			b.Grow(len(text) + 1) // a question may have 60 MiB; avoid copying it
			b.WriteString(text)
			b.WriteByte('\n')
		case *acp.ToolCallContentDiff:
			b.WriteString(diff(c.OldText.Value(), c.NewText))
		default:
			fmt.Fprintf(&b, "[content of an unknown kind: %s]\n", item)
		}
		// A terminal is a command of this client, whose output is printed as it arrives.
	}
	if text := b.String(); text != "" && sum(text) != t.shown {
		t.shown = sum(text)
		p.text("", "    ", text)
	}
}

// diff returns the lines that differ, without equal lines before and after them.
func diff(before, after string) string {
	from, to := slices.Collect(strings.Lines(before)), slices.Collect(strings.Lines(after))
	for len(from) > 0 && len(to) > 0 && from[0] == to[0] {
		from, to = from[1:], to[1:]
	}
	for len(from) > 0 && len(to) > 0 && from[len(from)-1] == to[len(to)-1] {
		from, to = from[:len(from)-1], to[:len(to)-1]
	}
	var b strings.Builder
	for _, line := range from {
		b.WriteString("- " + strings.TrimSuffix(line, "\n") + "\n")
	}
	for _, line := range to {
		b.WriteString("+ " + strings.TrimSuffix(line, "\n") + "\n")
	}
	return b.String()
}

// cancelled records that the turn is being cancelled. Its tool calls count as cancelled at once (PRM-8); further
// updates about them are still printed.
func (p *printer) cancelled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printf("cancelling")
	for _, t := range p.tools {
		if t.status == acp.ToolCallStatusPending || t.status == acp.ToolCallStatusInProgress {
			p.printf("* %s: cancelled", t.title)
		}
	}
}

// permission prints the agent's request, and the answers that it offers.
func (p *printer) permission(req *acp.RequestPermissionRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tool(req.ToolCall.ToolCallID)
	if title, ok := req.ToolCall.Title.Get(); ok {
		t.title = plain.Line(title)
	}
	p.printf("? %s", t.title)
	t.shown = 0 // repeat content printed much earlier: the user must see it to decide
	p.content(t, req.ToolCall.Content.Value())
	for i, o := range req.Options {
		p.printf("  %d. (%s) %s", i+1, o.Kind, o.Name)
	}
}

// terminal prints what a command writes.
func (p *printer) terminal(_ local.Session, terminal acp.TerminalID, output []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text("terminal "+string(terminal), "  | ", string(output))
}

// findings prints the findings about a message, or about the end of the connection.
func (p *printer) findings(findings []conformance.Finding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range findings {
		p.printf("FINDING %s: %s", f.Direction, f)
	}
}
