package draw

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// Options configure a [Transcript].
type Options struct {
	// Theme is the theme; nil means [Dark].
	Theme *Theme
	// Width is the number of columns; [Transcript.Resize] changes it.
	Width int
	// Terminal returns the output of a terminal of a tool call. The client calls [Transcript.TerminalChanged] when
	// there is more.
	Terminal func(acp.TerminalID) (Output, bool)
	// Unfolded says that thoughts and tool calls are initially unfolded.
	Unfolded bool
	// Elapsed returns how long a tool call takes or took, and Took how long a turn took, by its number: 0 if that is
	// unknown or too short to be shown. The client calls [Transcript.Tick] when times of calls in progress have
	// changed.
	Elapsed func(acp.ToolCallID) time.Duration
	Took    func(turn int) time.Duration
}

// Transcript is the conversation of a session on the screen. It draws only what is visible and caches it, and draws a
// finished piece of a message only once, while the rest arrives.
type Transcript struct {
	opts     Options
	p        *painter
	snapshot *view.Snapshot
	width    int
	height   int
	follow   bool    // the end is visible and stays visible
	top      anchor  // the first visible line otherwise
	within   float64 // its relative position in its part when it was placed there, from 0 to 1
	marked   int     // the index of the marked item, or -1
	folds    map[int]bool
	items    map[int]*itemParts
	last     map[int]int // the last item of each turn
	clock    uint64

	drawn int // the number of drawn parts, for tests
}

// anchor is a line of a part of an item.
type anchor struct {
	item, part, line int
}

// NewTranscript returns an empty transcript.
func NewTranscript(opts *Options) *Transcript {
	opts = cmp.Or(opts, &Options{})
	t := &Transcript{opts: *opts, width: max(opts.Width, 1), follow: true, marked: -1}
	t.snapshot = view.New(nil).Snapshot()
	t.forget()
	t.SetTheme(opts.Theme)
	return t
}

// forget forgets everything about the items.
func (t *Transcript) forget() {
	t.folds, t.items, t.last = map[int]bool{}, map[int]*itemParts{}, map[int]int{}
	t.follow, t.marked = true, -1
}

// SetTheme changes the theme.
func (t *Transcript) SetTheme(theme *Theme) {
	t.p = newPainter(theme)
	t.p.terminal, t.p.elapsed, t.p.took = t.opts.Terminal, t.opts.Elapsed, t.opts.Took
	t.undraw()
}

// undraw discards what is drawn, and keeps the position.
func (t *Transcript) undraw() {
	for _, ip := range t.items {
		for i := range ip.parts {
			ip.parts[i].lines = nil
		}
	}
	if !t.follow {
		n := len(t.lines(t.top.item, t.top.part))
		t.top.line = min(int(t.within*float64(n)), max(n-1, 0))
	}
}

// Resize changes the width. The top line of the screen stays at the top.
func (t *Transcript) Resize(width int) {
	if width = max(width, 1); width != t.width {
		t.width = width
		t.undraw()
	}
}

// Update shows a newer snapshot of the session's state; an older one is ignored. The visible lines stay in place,
// unless the end is visible.
func (t *Transcript) Update(s *view.Snapshot) {
	if s == t.snapshot {
		return
	}
	old := t.snapshot
	switch same := s.SameHistory(old); {
	case same && old != nil && s.Version < old.Version:
		return
	case !same:
		t.forget()
		old = nil
	}
	for item := range s.Changed(old) {
		if item.Index >= t.last[item.Turn] {
			t.last[item.Turn] = item.Index
		}
	}
	t.snapshot = s
	if first := s.First(); old != nil && first > old.First() {
		for i := old.First(); i < first; i++ {
			delete(t.items, i)
			delete(t.folds, i)
		}
		for turn, last := range t.last {
			if last < first {
				delete(t.last, turn)
			}
		}
		if t.top.item < first {
			t.top = anchor{item: first}
		}
		if t.marked >= 0 && t.marked < first {
			t.marked = first
		}
	}
}

// TerminalChanged redraws the tool calls of a terminal that has new output.
func (t *Transcript) TerminalChanged(id acp.TerminalID) {
	for index, ip := range t.items {
		item := t.snapshot.Item(index)
		if item == nil {
			continue
		}
		c, ok := item.Variant.(*view.ToolCall)
		if !ok {
			continue
		}
		for _, content := range c.Call.Content {
			if v, ok := content.Variant.(*acp.ToolCallContentTerminal); ok && v.TerminalID == id {
				for i := range ip.parts {
					ip.parts[i].lines = nil
				}
			}
		}
	}
}

// Tick redraws changing times after time has passed or a turn has ended.
func (t *Transcript) Tick() {
	for index, ip := range t.items {
		for i := range ip.parts[len(ip.parts)-ip.footer:] {
			ip.parts[len(ip.parts)-1-i].lines = nil
		}
		if item := t.snapshot.Item(index); item != nil && len(ip.parts) > 0 {
			if c, ok := item.Variant.(*view.ToolCall); ok && !Ended(c) {
				ip.parts[0].lines = nil
			}
		}
	}
}

// unfolded reports whether an item is unfolded.
func (t *Transcript) unfolded(index int) bool {
	if open, ok := t.folds[index]; ok {
		return open
	}
	return t.opts.Unfolded
}

// partsOf returns the parts of an item, which need not be drawn.
func (t *Transcript) partsOf(index int) []part {
	item := t.snapshot.Item(index)
	if item == nil {
		return nil
	}
	ip := t.items[index]
	if ip == nil {
		ip = &itemParts{}
		t.items[index] = ip
	}
	var turn *view.TurnState
	if last, ok := t.last[item.Turn]; ok && last == index {
		turn = t.snapshot.Turn(item.Turn)
	}
	ip.build(item, t.unfolded(index) && Foldable(item), turn)
	return ip.parts
}

// gutter returns the number of columns before each line.
func (t *Transcript) gutter() int {
	if t.width < 20 {
		return 0
	}
	return 2
}

// lines returns the lines of a part.
func (t *Transcript) lines(index, number int) []line {
	parts := t.partsOf(index)
	if number >= len(parts) {
		return nil
	}
	p := &parts[number]
	p.used = t.clock
	if p.lines == nil {
		t.drawn++
		p.lines = []line{}
		if t.needsGap(index, number, p) {
			p.lines = append(p.lines, nil)
		}
		gap := len(p.lines)
		width := t.width - t.gutter()
		for _, l := range p.draw(t.p, width) {
			p.lines = append(p.lines, l.wrap(width, nil)...)
		}
		if len(p.lines) == gap {
			p.lines = p.lines[:0] // an empty part needs no separation
		}
	}
	return p.lines
}

// needsGap reports whether an empty line precedes a part.
func (t *Transcript) needsGap(index, number int, p *part) bool {
	if number > 0 {
		return !p.joined
	}
	before := t.snapshot.Item(index - 1)
	if before == nil {
		return false
	}
	return !t.compact(before) || !t.compact(t.snapshot.Item(index))
}

// compact reports whether an item is of a kind whose items follow each other without an empty line.
func (t *Transcript) compact(item *view.Item) bool {
	switch v := item.Variant.(type) {
	case *view.ToolCall, *view.Unknown, *view.Compaction:
		return true
	case *view.Message:
		return v.Role == view.Thought
	}
	return false
}

// sweep discards what is far from the visible part: what was not drawn or passed for the last frame.
func (t *Transcript) sweep() {
	for index, ip := range t.items {
		seen := false
		for i := range ip.parts {
			if ip.parts[i].used == t.clock {
				seen = true
			} else {
				ip.parts[i].lines = nil
			}
		}
		if !seen {
			delete(t.items, index)
		}
	}
}

// previous returns the part before another; false if there is none.
func (t *Transcript) previous(a anchor) (anchor, bool) {
	if a.part > 0 {
		return anchor{item: a.item, part: a.part - 1}, true
	}
	for a.item--; a.item >= t.snapshot.First(); a.item-- {
		if n := len(t.partsOf(a.item)); n > 0 {
			return anchor{item: a.item, part: n - 1}, true
		}
	}
	return anchor{}, false
}

// next returns the part after another; false if there is none.
func (t *Transcript) next(a anchor) (anchor, bool) {
	if a.part+1 < len(t.partsOf(a.item)) {
		return anchor{item: a.item, part: a.part + 1}, true
	}
	for a.item++; a.item < t.snapshot.End(); a.item++ {
		if len(t.partsOf(a.item)) > 0 {
			return anchor{item: a.item}, true
		}
	}
	return anchor{}, false
}

// move moves an anchor by n lines, up if n is less than 0, and returns how many lines were missing.
func (t *Transcript) move(a anchor, n int) (anchor, int) {
	for n < 0 {
		if a.line+n >= 0 {
			a.line += n
			return a, 0
		}
		n += a.line
		a.line = 0
		prev, ok := t.previous(a)
		if !ok {
			return a, -n
		}
		prev.line = len(t.lines(prev.item, prev.part))
		a = prev
	}
	for n > 0 {
		have := len(t.lines(a.item, a.part))
		if a.line+n < have {
			a.line += n
			return a, 0
		}
		following, ok := t.next(a)
		if !ok {
			missing := a.line + n - have
			a.line = have
			return a, missing
		}
		n -= have - a.line
		a = following
		a.line = 0
	}
	return a, 0
}

// end returns the position after the last line.
func (t *Transcript) end() anchor {
	for i := t.snapshot.End() - 1; i >= t.snapshot.First(); i-- {
		if n := len(t.partsOf(i)); n > 0 {
			return anchor{i, n - 1, len(t.lines(i, n-1))}
		}
	}
	return anchor{item: t.snapshot.First()}
}

// start returns the first visible line, and whether the end is visible from there.
func (t *Transcript) start(height int) (anchor, bool) {
	if !t.follow {
		at := t.top
		if parts := t.partsOf(at.item); at.part >= len(parts) {
			at = anchor{item: at.item, part: max(len(parts)-1, 0)}
		}
		at.line = min(at.line, max(len(t.lines(at.item, at.part))-1, 0))
		if _, missing := t.move(at, height+1); missing == 0 {
			return at, false
		}
	}
	at, _ := t.move(t.end(), -height)
	return at, true
}

// View returns the visible part of the conversation: exactly height lines, with newlines between them.
func (t *Transcript) View(height int) string {
	return strings.Join(t.Lines(height), "\n")
}

// Lines returns the lines of [Transcript.View].
func (t *Transcript) Lines(height int) []string {
	height = max(height, 0)
	t.height = height
	t.clock++
	at, atEnd := t.start(height)
	if !t.follow {
		t.top = at
	}
	if atEnd && !t.follow {
		t.follow = true
	}
	out := make([]string, 0, height)
	for ok := true; ok && len(out) < height; at, ok = t.next(at) {
		lines := t.lines(at.item, at.part)
		for _, l := range lines[min(at.line, len(lines)):] {
			if len(out) == height {
				break
			}
			out = append(out, t.finish(l, at.item))
		}
	}
	for len(out) < height {
		out = append(out, "")
	}
	t.sweep()
	return out
}

// finish returns a line as it is sent to the terminal.
func (t *Transcript) finish(l line, index int) string {
	if g := t.gutter(); g > 0 {
		mark := span{strings.Repeat(" ", g), style{}}
		if index == t.marked {
			mark = span{t.p.marks.marked + strings.Repeat(" ", g-1), t.p.accent}
		} else if len(l) == 0 {
			return ""
		}
		l = append(line{mark}, l...)
	}
	out := t.p.strings([]line{l}, t.width)
	return out[0]
}

// Scroll moves the visible part down by n lines, or up if n is less than 0.
func (t *Transcript) Scroll(n int) {
	at, _ := t.start(t.height)
	at, _ = t.move(at, n)
	t.place(at)
}

// place makes a line the first visible one, or shows the end if too little follows.
func (t *Transcript) place(at anchor) {
	t.top, t.follow = at, false
	t.within = float64(at.line) / float64(max(len(t.lines(at.item, at.part)), 1))
	_, t.follow = t.start(t.height)
}

// Bottom shows the end, and keeps it visible.
func (t *Transcript) Bottom() { t.follow = true }

// Marked returns the marked item, or nil.
func (t *Transcript) Marked() *view.Item {
	if t.marked < 0 {
		return nil
	}
	return t.snapshot.Item(t.marked)
}

// Mark marks an item and makes its first line visible; an index less than 0 removes the mark.
func (t *Transcript) Mark(index int) {
	t.marked = -1
	if index >= 0 && t.snapshot.Item(index) != nil {
		t.marked = index
		t.show(anchor{item: index})
	}
}

// Next marks the next item, or the first visible one if none is marked. It reports whether there is one.
func (t *Transcript) Next() bool { return t.step(1) }

// Prev marks the previous item, or the last visible one if none is marked. It reports whether there is one.
func (t *Transcript) Prev() bool { return t.step(-1) }

func (t *Transcript) step(by int) bool {
	index := t.marked + by
	if t.marked < 0 {
		at, _ := t.start(t.height)
		if by < 0 {
			at, _ = t.move(at, t.height-1)
		}
		index = min(at.item, t.snapshot.End()-1)
	}
	if t.snapshot.Item(index) == nil {
		return false
	}
	t.Mark(index)
	return true
}

// show scrolls as little as possible to make a line visible.
func (t *Transcript) show(at anchor) {
	top, _ := t.start(t.height)
	for i, seen := 0, top; i < t.height; i++ {
		if seen.item == at.item && (at.part < seen.part || at.part == seen.part && at.line <= seen.line) {
			if i > 0 || seen.part == at.part && seen.line <= at.line {
				return
			}
			break
		}
		if seen.item == at.item && seen.part == at.part && at.line < seen.line {
			break
		}
		var missing int
		if seen, missing = t.move(seen, 1); missing > 0 {
			break
		}
	}
	if at.item > top.item || at.item == top.item && (at.part > top.part || at.part == top.part && at.line > top.line) {
		at, _ = t.move(at, -(t.height - 1)) // from below: it becomes the last visible line, or more of it if there is room
		if n := t.rows(t.marked); n > 1 {
			at, _ = t.move(at, min(n-1, t.height-1))
		}
	}
	t.place(at)
}

// rows returns how many lines the beginning of an item has, at most the height of the screen.
func (t *Transcript) rows(index int) int {
	n := 0
	for i := range t.partsOf(index) {
		if n += len(t.lines(index, i)); n >= t.height {
			return t.height
		}
	}
	return n
}

// Foldable reports whether an item can be folded.
func Foldable(item *view.Item) bool {
	switch v := item.Variant.(type) {
	case *view.ToolCall, *view.Unknown, *view.Subagent:
		return true
	case *view.Compaction:
		return v.Summary.Text() != ""
	case *view.Message:
		return v.Role == view.Thought
	}
	return false
}

// Toggle folds or unfolds the marked item, and reports whether it can be folded.
func (t *Transcript) Toggle() bool {
	item := t.Marked()
	if item == nil || !Foldable(item) {
		return false
	}
	t.fold(item.Index, !t.unfolded(item.Index))
	return true
}

// fold folds or unfolds an item. The visible lines above it stay in place.
func (t *Transcript) fold(index int, unfolded bool) {
	at, _ := t.start(t.height)
	t.folds[index] = unfolded
	if at.item == index {
		at = anchor{item: index}
	}
	t.place(at)
}

// ToggleAll unfolds everything that can be folded, or folds it if the last call unfolded it.
func (t *Transcript) ToggleAll() {
	at, _ := t.start(t.height)
	t.opts.Unfolded = !t.opts.Unfolded
	clear(t.folds)
	if item := t.snapshot.Item(at.item); item != nil && Foldable(item) {
		at.part, at.line = 0, 0
	}
	follow := t.follow
	t.place(at)
	t.follow = t.follow || follow
}

// Find marks the previous item that contains a text, beginning at the marked item, or at the end if none is marked, and
// makes the text visible. It ignores case, and continues at the other end. It reports whether there is one.
func (t *Transcript) Find(text string) bool {
	found := strings.ToLower(clean(text))
	if found == "" {
		return false
	}
	first, end := t.snapshot.First(), t.snapshot.End()
	index := t.marked
	if index < 0 {
		index = end
	}
	for range end - first {
		if index--; index < first {
			index = end - 1
		}
		item := t.snapshot.Item(index)
		if item == nil || !strings.Contains(strings.ToLower(searched(item)), found) {
			continue
		}
		t.marked = index
		at, visible := t.placeOf(index, found)
		if !visible && Foldable(item) && !t.unfolded(index) {
			t.folds[index] = true
			at, _ = t.placeOf(index, found)
		}
		t.show(at)
		return true
	}
	return false
}

// searched returns the text of an item that Find searches.
func searched(item *view.Item) string {
	if m, ok := item.Variant.(*view.Message); ok {
		return m.Text()
	}
	return item.String()
}

// placeOf returns the first line of an item that contains a text; its first line and false if none does.
func (t *Transcript) placeOf(index int, found string) (anchor, bool) {
	for part := range t.partsOf(index) {
		for i, l := range t.lines(index, part) {
			if strings.Contains(strings.ToLower(l.text()), found) {
				return anchor{index, part, i}, true
			}
		}
	}
	return anchor{item: index}, false
}

// ExportOptions configure [Export].
type ExportOptions struct {
	// Title is the first line; by default the session's title.
	Title string
	// Facts are lines below it, such as the agent's name and the directory.
	Facts []string
	// Terminal returns the output of a terminal.
	Terminal func(acp.TerminalID) (Output, bool)
}

// exportWidth is the width of an exported conversation.
const exportWidth = 100

// Export writes a whole conversation as a text, as it is drawn in the theme [Plain] with everything unfolded.
func Export(w io.Writer, s *view.Snapshot, o *ExportOptions) error {
	t := NewTranscript(&Options{Theme: Plain(), Width: exportWidth, Unfolded: true, Terminal: o.Terminal})
	t.Update(s)
	b := bufio.NewWriter(w) // keeps the first error until Flush
	write := func(lines ...string) {
		for _, l := range lines {
			b.WriteString(l + "\n")
		}
	}
	for _, head := range append([]string{cmp.Or(o.Title, s.Title.Value(), "Session")}, o.Facts...) {
		write(t.p.strings(line{{label(head), style{}}}.wrap(exportWidth, nil), exportWidth)...)
	}
	write("")
	if n := s.First(); n > 0 {
		write(fmt.Sprintf("(%d older items are not stored)", n), "")
	}
	for item := range s.Items() {
		for part := range t.partsOf(item.Index) {
			for _, l := range t.lines(item.Index, part) {
				write(t.finish(l, item.Index))
			}
		}
		delete(t.items, item.Index)
	}
	if plan := Plan(t.p.Theme, s, exportWidth, 1<<30); len(plan) > 0 {
		write("")
		write(plan...)
	}
	if u, ok := s.Usage.Get(); ok {
		write("", Line(t.p.Theme, Usage(t.p.Theme, u), exportWidth))
	}
	return b.Flush()
}
