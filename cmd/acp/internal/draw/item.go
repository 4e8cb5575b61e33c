package draw

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/yuin/goldmark/ast"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/view"
)

// part is a piece of an item. It is drawn as a whole when it becomes visible.
type part struct {
	draw func(p *painter, width int) []line
	// joined says that no empty line separates this part from the previous one.
	joined bool

	lines []line // nil: not drawn
	used  uint64 // when they were last used
}

// itemParts are the parts of an item at one time.
type itemParts struct {
	version  uint64
	unfolded bool
	turn     *view.TurnState // the turn that ends with the item
	parts    []part
	footer   int // the number of parts about the turn
	segments []segment
}

// segment is a block of a message's content, and its number of parts.
type segment struct {
	split *splitter // for text
	parts int
	// firm is how many of the parts are final.
	firm int
}

func staticPart(joined bool, draw func(p *painter, width int) []line) part {
	return part{joined: joined, draw: draw}
}

// build updates the parts to the item. It reuses what has not changed.
func (ip *itemParts) build(item *view.Item, unfolded bool, turn *view.TurnState) {
	if ip.parts != nil && ip.version == item.Version && ip.unfolded == unfolded && ip.turn == turn {
		return
	}
	firm := len(ip.parts) - ip.footer
	var footer []part
	m, isMessage := item.Variant.(*view.Message)
	if ip.turn == turn && (!isMessage || m.Dropped == 0) {
		footer = slices.Clone(ip.parts[firm:])
	}
	ip.parts = ip.parts[:firm]
	ip.footer = 0
	switch {
	case ip.parts != nil && ip.version == item.Version && ip.unfolded == unfolded:
	case isMessage && m.Role == view.Agent || isMessage && m.Role == view.Thought && unfolded:
		ip.message(m, ip.unfolded == unfolded)
	default:
		ip.parts, ip.segments = variantParts(item, unfolded), nil
	}
	ip.version, ip.unfolded, ip.turn = item.Version, unfolded, turn
	if footer == nil {
		footer = footerParts(item, turn)
	}
	ip.parts = append(ip.parts, footer...)
	ip.footer = len(footer)
}

// message updates the parts to a message, whose content only grows.
func (ip *itemParts) message(m *view.Message, same bool) {
	if !same || len(ip.segments) == 0 {
		ip.parts, ip.segments = nil, nil
		if m.Role == view.Thought {
			ip.parts = append(ip.parts, staticPart(false, func(p *painter, width int) []line {
				return thoughtLine(p, m.Text(), true, width)
			}))
		}
	}
	i := 0
	for b := range m.Blocks() {
		text := b.Text()
		_, isText := b.Variant.(*acp.ContentBlockText)
		switch {
		case i < len(ip.segments)-1, i == len(ip.segments)-1 && !isText:
		case i == len(ip.segments)-1:
			ip.grow(text, m.Role)
		default:
			seg := segment{}
			if isText {
				seg.split = &splitter{}
			}
			ip.segments = append(ip.segments, seg)
			if isText {
				ip.grow(text, m.Role)
			} else {
				ip.segments[i].parts, ip.segments[i].firm = 1, 1
				ip.parts = append(ip.parts, staticPart(false, func(p *painter, width int) []line { return p.content(b, width) }))
			}
		}
		i++
	}
}

// grow updates the parts of the last segment to its text.
func (ip *itemParts) grow(text string, role view.Role) {
	seg := &ip.segments[len(ip.segments)-1]
	known := len(seg.split.refs)
	seg.split.extend(text)
	base := len(ip.parts) - seg.parts
	ip.parts = ip.parts[:base+seg.firm]
	if len(seg.split.refs) > known { // they may be those of links that have been drawn
		for i := range seg.firm {
			ip.parts[base+i].lines = nil
		}
	}
	add := func(b block) {
		first := len(ip.segments) == 1 && b.start == 0
		ip.parts = append(ip.parts, staticPart(b.joined || first && role == view.Thought, func(p *painter, width int) []line {
			return p.block(text[b.start:b.end], b, seg.split, role, width)
		}))
	}
	for _, b := range seg.split.done[seg.firm:] {
		add(b)
	}
	seg.firm = len(seg.split.done)
	if open := seg.split.open; open.start < len(text) {
		open.end = len(text)
		add(open)
	}
	seg.parts = len(ip.parts) - base
}

// block draws a piece of Markdown. Fenced code blocks of its top level have a bar on their left.
func (p *painter) block(text string, b block, s *splitter, role view.Role, width int) []line {
	inner := width
	if role == view.Thought {
		inner = max(width-2, 1)
	}
	text = clean(b.fence + text)
	var out []line
	add := func(lines []line) {
		if len(out) > 0 && len(lines) > 0 {
			out = append(out, nil)
		}
		out = append(out, lines...)
	}
	from := 0
	for n := s.parse(text, s.context()).FirstChild(); n != nil; n = n.NextSibling() {
		code, ok := n.(*ast.FencedCodeBlock)
		if !ok {
			continue
		}
		if at := startOf(n, text); at > from {
			add(p.markdownLines(text[from:at], s, inner))
		}
		info := ""
		if code.Info != nil {
			info = string(code.Info.Segment.Value([]byte(text)))
		}
		add(p.codeBlock(string(code.Lines().Value([]byte(text))), info, inner))
		if from = len(text); n.NextSibling() != nil {
			from = startOf(n.NextSibling(), text)
		}
	}
	if from < len(text) {
		add(p.markdownLines(text[from:], s, inner))
	}
	if role == view.Thought {
		out = p.prefixLines(line{{p.marks.vertical + " ", p.dim}}, p.thought, out)
	}
	return out
}

// prefixLines puts a prefix before lines, which are drawn over a style.
func (p *painter) prefixLines(prefix line, under style, lines []line) []line {
	out := make([]line, len(lines))
	for i, l := range lines {
		out[i] = append(prefix[:len(prefix):len(prefix)], l.applyStyle(under)...)
	}
	return out
}

// variantParts returns the parts of an item that is not a message of the agent.
func variantParts(item *view.Item, unfolded bool) []part {
	one := func(draw func(p *painter, width int) []line) []part { return []part{{draw: draw}} }
	switch v := item.Variant.(type) {
	case *view.Message:
		if v.Role == view.Thought {
			return one(func(p *painter, width int) []line { return thoughtLine(p, v.Text(), false, width) })
		}
		return userParts(v)
	case *view.ToolCall:
		return toolParts(v, unfolded)
	case *view.Compaction:
		return one(func(p *painter, width int) []line { return p.compaction(v, unfolded, width) })
	case *view.Subagent:
		return one(func(p *painter, width int) []line { return p.subagent(v, unfolded, width) })
	case *view.SessionMessage:
		return one(func(p *painter, width int) []line { return p.sessionMessage(v, width) })
	case *view.Notice:
		return one(func(p *painter, width int) []line { return p.notice(v, width) })
	case *view.Unknown:
		return one(func(p *painter, width int) []line { return p.unknown("update", v.Tag, v.Raw, unfolded, width) })
	}
	return one(func(p *painter, width int) []line {
		return p.unknown("item", fmt.Sprintf("%T", item.Variant), nil, false, width)
	})
}

// maxUser is the maximum length in bytes of a text of the user in one part.
const maxUser = 8 << 10

// userParts returns the parts of a message of the user, whose text is not interpreted.
func userParts(m *view.Message) []part {
	var out []part
	for b := range m.Blocks() {
		text := b.Text()
		if _, ok := b.Variant.(*acp.ContentBlockText); !ok {
			out = append(out, staticPart(true, func(p *painter, width int) []line {
				return p.prefixLines(line{{p.marks.bar + " ", p.user}}, style{}, p.content(b, max(width-2, 1)))
			}))
			continue
		}
		for len(text) > 0 {
			piece := text
			if len(piece) > maxUser {
				end := strings.LastIndexByte(piece[:maxUser], '\n') + 1
				if end == 0 {
					for end = maxUser; end > 1 && text[end]&0xc0 == 0x80; end-- {
					}
				}
				piece = piece[:end]
			}
			text = text[len(piece):]
			out = append(out, staticPart(true, func(p *painter, width int) []line {
				var lines []line
				for _, l := range linesOf(clean(piece)) {
					lines = append(lines, line{{l, p.strong}}.wrap(max(width-2, 1), nil)...)
				}
				return p.prefixLines(line{{p.marks.bar + " ", p.user}}, style{}, lines)
			}))
		}
	}
	if len(out) == 0 {
		out = append(out, staticPart(false, func(p *painter, width int) []line { return []line{{{p.marks.bar, p.user}}} }))
	}
	return out
}

// thoughtLine returns a thought as one line.
func thoughtLine(p *painter, text string, unfolded bool, width int) []line {
	mark := p.marks.folded
	if unfolded {
		mark = p.marks.unfolded
	}
	l := line{{mark + " Thought", p.dim}}
	if !unfolded {
		first, _, _ := strings.Cut(strings.TrimLeft(text[:min(len(text), maxLabel)], "\n\r "), "\n")
		l.add("  "+label(first), p.thought)
	}
	return []line{l.clip(width, p.marks.ellipsis)}
}

// footerParts returns the parts that say what is missing from a message, and how the turn ended if the item is its last
// one.
func footerParts(item *view.Item, turn *view.TurnState) []part {
	parts := []part{}
	m, isMessage := item.Variant.(*view.Message)
	if isMessage && m.Dropped > 0 {
		parts = append(parts, staticPart(false, func(p *painter, width int) []line {
			return []line{{{fmt.Sprintf("(%s more not stored)", size(int64(m.Dropped))), p.warn}}}
		}))
	}
	if turn != nil {
		prompt := isMessage && m.Role == view.User // the agent has sent nothing
		parts = append(parts, staticPart(!prompt, func(p *painter, width int) []line { return p.turnEnd(turn) }))
	}
	return parts
}

// turnEnd returns how a turn ended.
func (p *painter) turnEnd(turn *view.TurnState) []line {
	var out []line
	say := func(text string, s style) { out = append(out, line{{text, s}}) }
	switch {
	case !turn.Ended:
	case turn.Err != nil:
		out = append(out, p.error(turn.Err)...)
	case turn.StopReason == acp.StopReasonEndTurn, turn.StopReason == "":
	case turn.StopReason == acp.StopReasonCancelled:
		say(p.marks.ended+" cancelled", p.warn)
	case turn.StopReason == acp.StopReasonRefusal:
		say(p.marks.failed+" the agent refused to continue", p.bad)
	case turn.StopReason == acp.StopReasonMaxTokens:
		say(p.marks.failed+" stopped: token limit reached", p.bad)
	case turn.StopReason == acp.StopReasonMaxTurnRequests:
		say(p.marks.failed+" stopped: limit of requests in one turn reached", p.bad)
	default:
		say(p.marks.failed+" stopped: "+label(string(turn.StopReason)), p.bad)
	}
	var facts []string
	if p.took != nil && turn.Ended {
		if d := p.took(turn.Number); d > 0 {
			facts = append(facts, "worked "+duration(d))
		}
	}
	if u, ok := turn.Usage.Get(); ok && turn.Ended {
		facts = append(facts, turnUsage(u))
	}
	if len(facts) > 0 {
		say(strings.Join(facts, ", "), p.dim)
	}
	return out
}

func turnUsage(u acp.Usage) string {
	var s strings.Builder
	s.WriteString(fmt.Sprintf("%s tokens: %s in, %s out", count(u.TotalTokens), count(u.InputTokens),
		count(u.OutputTokens)))
	for _, more := range []struct {
		name string
		n    acp.Opt[uint64]
	}{{"thought", u.ThoughtTokens}, {"cache read", u.CachedReadTokens}, {"cache write", u.CachedWriteTokens}} {
		if n, ok := more.n.Get(); ok {
			s.WriteString(fmt.Sprintf(", %s %s", count(n), more.name))
		}
	}
	return s.String()
}

// error draws an error, with the agent's additional data.
func (p *painter) error(err error) []line {
	out := []line{}
	for i, l := range linesOf(clean(err.Error())) {
		mark := "  "
		if i == 0 {
			mark = p.marks.failed + " "
		}
		out = append(out, line{{mark + l, p.bad}})
	}
	if e := (*rpc.Error)(nil); errors.As(err, &e) && !strings.Contains(err.Error(), string(e.Data)) {
		out = append(out, line{{"  " + label(string(e.Data)), p.dim}})
	}
	return out
}

func (p *painter) compaction(c *view.Compaction, unfolded bool, width int) []line {
	mark, s := p.marks.running, p.accent
	words := "The context is being compacted"
	switch c.Status {
	case acp.CompactionStatusInProgress:
	case acp.CompactionStatusCompleted:
		mark, s, words = p.marks.done, p.good, "The context was compacted"
	case acp.CompactionStatusFailed:
		mark, s, words = p.marks.failed, p.bad, "The context could not be compacted"
	default:
		words = "Compaction of the context: " + label(string(c.Status))
	}
	l := line{{mark + " ", s}, {words, p.text}}
	if e := c.Error.Value(); e != "" {
		l.add(": "+label(e), p.bad)
	}
	summary := c.Summary.Text()
	if summary != "" && !unfolded {
		l.add("  "+p.marks.folded+" summary", p.dim)
	}
	out := l.wrap(width, nil)
	if unfolded && summary != "" {
		out = append(out, p.prefixLines(line{{p.marks.vertical + " ", p.dim}}, style{},
			p.markdownText(summary, max(width-2, 1)))...)
	}
	return out
}

func (p *painter) subagent(s *view.Subagent, unfolded bool, width int) []line {
	l := line{{p.marks.arrow + " ", p.accent}, {"Subagent ", p.dim},
		{cmp.Or(label(s.Title.Value()), label(string(s.SessionID))), p.strong}}
	if state, ok := s.State.Get(); ok {
		l.add("  "+stateWords(&state), p.dim)
	}
	out := l.wrap(width, nil)
	if d := s.Description.Value(); d != "" {
		out = append(out, wrapAll(indent, paragraph(d, p.dim), width)...)
	}
	if unfolded {
		out = append(out, line{{"  session " + label(string(s.SessionID)), p.dim}}.wrap(width, nil)...)
		for _, dir := range append([]string{s.Cwd.Value()}, s.AdditionalDirectories.Value()...) {
			if dir != "" {
				out = append(out, line{{"  in " + label(dir), p.dim}}.wrap(width, nil)...)
			}
		}
	}
	return out
}

// stateWords describes the state of a session.
func stateWords(s *acp.StateUpdate) string {
	switch v := s.Variant.(type) {
	case *acp.StateUpdateRunning:
		return "working"
	case *acp.StateUpdateRequiresAction:
		return "waiting for an answer"
	case *acp.StateUpdateIdle:
		switch stop := v.Variant.(type) {
		case nil, *acp.IdleStateUpdateNone, *acp.IdleStateUpdateEndTurn:
			return "done"
		case *acp.IdleStateUpdateMaxTokens:
			return "stopped: no tokens left"
		case *acp.IdleStateUpdateMaxTurnRequests:
			return "stopped: too many requests"
		case *acp.IdleStateUpdateRefusal:
			return "refused"
		case *acp.IdleStateUpdateCancelled:
			return "cancelled"
		case *acp.IdleStateUpdateError:
			return "failed"
		case *acp.IdleStateUpdateUnknown:
			return "stopped: " + label(stop.Tag)
		default: // in words that this program does not have
		}
	case *acp.StateUpdateUnknown:
		return label(v.Tag)
	default: // likewise
	}
	return "in an unknown state"
}

func (p *painter) sessionMessage(m *view.SessionMessage, width int) []line {
	l := line{{p.marks.arrow + " ", p.accent}, {"Message", p.dim}}
	if from := m.Sender.Value(); from != "" {
		l.add(" from "+label(string(from)), p.dim)
	}
	if to := m.Recipient.Value(); to != "" {
		l.add(" to "+label(string(to)), p.dim)
	}
	out := l.wrap(width, nil)
	for b := range m.Blocks() {
		out = append(out, p.prefixLines(line{{p.marks.vertical + " ", p.dim}}, style{}, p.content(b, max(width-2, 1)))...)
	}
	return out
}

func (p *painter) notice(n *view.Notice, width int) []line {
	s := p.accent
	switch n.Severity {
	case acp.NoticeSeverityWarning:
		s = p.warn
	case acp.NoticeSeverityError:
		s = p.bad
	}
	l := line{{p.marks.notice + " ", s}, {label(cmp.Or(string(n.Severity), "notice")) + ": ", s},
		{label(n.Title), p.strong}}
	out := l.wrap(width, indent)
	if d := n.Description.Value(); d != "" {
		out = append(out, wrapAll(indent, paragraph(d, p.text), width)...)
	}
	return out
}

// unknown draws a value of an unknown kind.
func (p *painter) unknown(what, tag string, raw []byte, unfolded bool, width int) []line {
	l := line{{"? ", p.warn}, {"unknown " + what + " " + label(tag), p.dim}}
	if len(raw) > 0 && !unfolded {
		l.add("  "+label(string(raw[:min(len(raw), maxLabel)])), p.dim)
		return []line{l.clip(width, p.marks.ellipsis)}
	}
	out := l.wrap(width, nil)
	if unfolded {
		out = append(out, p.json("", raw, width)...)
	}
	return out
}

// unknownContent draws content of a kind that this program has no case for, though package acp may know it.
func (p *painter) unknownContent(content json.Marshaler, unfolded bool, width int) []line {
	raw, err := content.MarshalJSON()
	if err != nil {
		return []line{{{"? no content", p.warn}}}
	}
	return p.unknown("content", typeIn(raw), raw, unfolded, width)
}

// typeIn returns the member "type" of a JSON object.
func typeIn(raw []byte) string {
	var tagged struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(raw, &tagged) // what has none is shown without
	return tagged.Type
}

// Plan returns the agent's plans as at most height lines; none if there is no plan. If there is not enough room, it
// shows the current and the next entries, and the number of entries that are hidden.
func Plan(t *Theme, s *view.Snapshot, width, height int) []string {
	p := newPainter(t)
	var out []line
	if plan, ok := s.Plan.Get(); ok && len(plan.Entries) > 0 {
		out = append(out, p.plan("Plan", plan.Entries, width, height)...)
	}
	for _, plan := range s.Plans {
		room := height - len(out)
		switch c := plan.Content.Variant.(type) {
		case *acp.PlanUpdateContentItems:
			if len(c.Entries) > 0 {
				out = append(out, p.plan("Plan "+label(string(plan.ID)), c.Entries, width, room)...)
			}
		case *acp.PlanUpdateContentFile:
			out = append(out, line{{"Plan " + label(string(plan.ID)), p.title}, {" in " + label(c.URI), p.dim}}.clip(width,
				p.marks.ellipsis))
		case *acp.PlanUpdateContentMarkdown:
			out = append(out, line{{"Plan " + label(string(plan.ID)), p.title}}.clip(width, p.marks.ellipsis))
			out = append(out, p.markdownText(c.Content, width)...)
		default:
			out = append(out, line{{"Plan of an unknown kind", p.dim}}.clip(width, p.marks.ellipsis))
		}
	}
	lines := p.strings(out, width)
	if height = max(height, 0); len(lines) > height {
		lines = lines[:height]
		if height > 0 {
			more := line{{fmt.Sprintf("(%s more)", lineCount(len(out)-height+1)), p.dim}}
			lines[height-1] = more.clip(width, "").string(p.Theme)
		}
	}
	return lines
}

// PlanFinished reports whether all entries of the agent's plans are completed. A plan without entries never is.
func PlanFinished(s *view.Snapshot) bool {
	entries := s.Plan.Value().Entries
	for _, plan := range s.Plans {
		items, ok := plan.Content.Variant.(*acp.PlanUpdateContentItems)
		if !ok {
			return false
		}
		entries = append(slices.Clip(entries), items.Entries...)
	}
	return len(entries) > 0 && !slices.ContainsFunc(entries,
		func(e acp.PlanEntry) bool { return e.Status != acp.PlanEntryStatusCompleted })
}

// plan draws entries in at most height lines, one line each. If there is only one line, it shows the current entry.
func (p *painter) plan(name string, entries []acp.PlanEntry, width, height int) []line {
	done, current := 0, -1
	for i, e := range entries {
		if e.Status == acp.PlanEntryStatusCompleted {
			done++
		} else if current < 0 || e.Status == acp.PlanEntryStatusInProgress && entries[current].Status != e.Status {
			current = i
		}
	}
	head := line{{name, p.title}, {fmt.Sprintf(" %d/%d", done, len(entries)), p.dim}}
	if height < 2 {
		if current >= 0 {
			head.add("  "+label(entries[current].Content), p.text)
		}
		return []line{head.clip(width, p.marks.ellipsis)}
	}
	out := []line{head.clip(width, p.marks.ellipsis)}
	first, last := 0, len(entries)
	if room := height - 1; room < len(entries) {
		room = max(room, 1)
		first = min(max(current-(room-1)/3, 0), len(entries)-room)
		last = first + room
		hidden := ""
		if first > 0 {
			hidden += fmt.Sprintf("  %s%d", p.marks.up, first)
		}
		if n := len(entries) - last; n > 0 {
			hidden += fmt.Sprintf("  %s%d", p.marks.down, n)
		}
		out[0] = append(out[0], span{hidden, p.dim}).clip(width, p.marks.ellipsis)
	}
	for _, e := range entries[first:last] {
		mark, s, text := p.marks.todo, p.dim, p.text
		switch e.Status {
		case acp.PlanEntryStatusInProgress:
			mark, s, text = p.marks.doing, p.accent, p.strong
		case acp.PlanEntryStatusCompleted:
			mark, s, text = p.marks.did, p.good, p.dim
		case acp.PlanEntryStatusPending, "":
		default:
			mark = "? " + label(string(e.Status))
		}
		l := line{{mark + " ", s}}
		if e.Priority == acp.PlanEntryPriorityHigh {
			l.add("! ", p.warn)
		}
		l.add(label(e.Content), text)
		out = append(out, l.clip(width, p.marks.ellipsis))
	}
	return out
}

// Usage describes briefly how full the context is and what the session has cost, such as "45k/200k (22%) · 0.43 USD".
func Usage(t *Theme, u acp.UsageUpdate) string {
	text := count(u.Used)
	if u.Size > 0 {
		text += fmt.Sprintf("/%s (%d%%)", count(u.Size), percent(u.Used, u.Size))
	}
	if c, ok := u.Cost.Get(); ok {
		text += " " + newPainter(t).marks.dot + " " + cost(c)
	}
	return Line(t, text, 200)
}

func percent(used, size uint64) uint64 { return uint64(min(float64(used)/float64(size)*100, 999)) }

func cost(c acp.Cost) string {
	amount := strconv.FormatFloat(c.Amount, 'f', 2, 64)
	if size := math.Abs(c.Amount); size != 0 && size < 0.1 || size >= 1e9 {
		amount = strconv.FormatFloat(c.Amount, 'g', 2, 64)
	}
	return strings.TrimSpace(amount + " " + label(c.Currency))
}

// Line returns a text of an agent, such as a title or the name of a mode, as one line without style that is not wider
// than width.
func Line(t *Theme, text string, width int) string {
	p := newPainter(t)
	return line{{label(text), style{}}}.clip(width, p.marks.ellipsis).text()
}

// TurnEnd returns lines that say how a turn ended; none if it is not over, or if it ended normally without reporting
// tokens. took is the duration of the turn, or 0.
func TurnEnd(t *Theme, turn *view.TurnState, took time.Duration, width int) []string {
	p := newPainter(t)
	p.took = func(int) time.Duration { return took }
	return p.strings(p.turnEnd(turn), width)
}
