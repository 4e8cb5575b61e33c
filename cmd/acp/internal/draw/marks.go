package draw

import (
	"strings"

	"github.com/acpgo/sdk/acp/view"
)

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

// Find marks the next item that contains a text, beginning at the marked item, or at the end if none is marked, and
// makes the text visible. It ignores case, and continues at the other end. It reports whether there is one.
func (t *Transcript) Find(text string, backwards bool) bool {
	found := strings.ToLower(clean(text))
	if found == "" {
		return false
	}
	first, count := t.snapshot.First(), t.snapshot.End()-t.snapshot.First()
	step, from := 1, t.marked
	if backwards {
		step = -1
	}
	if from < 0 {
		from = t.snapshot.End() - 1
		if backwards {
			from++
		}
	}
	for i := 1; i <= count; i++ {
		index := first + ((from-first+i*step)%count+count)%count
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
