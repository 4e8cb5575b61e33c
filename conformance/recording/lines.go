package recording

import "sort"

// Lines maps the numbers of one connection's messages to their lines. It stores only where the difference between the
// two changes, and forgets the older half if there are too many changes. The zero value is empty.
type Lines struct {
	steps []step
	count int
}

// step is the difference between line and message number, from a message on.
type step struct{ number, more int }

// maxSteps bounds the number of steps.
const maxSteps = 1 << 15

// Add adds the next message, which is on the given line. The first message has number 1.
func (l *Lines) Add(line int) {
	l.count++
	more := line - l.count
	if n := len(l.steps); n > 0 && l.steps[n-1].more == more {
		return
	}
	if len(l.steps) == maxSteps {
		l.steps = append(l.steps[:0], l.steps[maxSteps/2:]...)
	}
	l.steps = append(l.steps, step{l.count, more})
}

// Count returns the number of messages, which is also the number of the last one.
func (l *Lines) Count() int { return l.count }

// Of returns the line of a message, or 0 if unknown.
func (l *Lines) Of(number int) int {
	i := sort.Search(len(l.steps), func(i int) bool { return l.steps[i].number > number })
	if i == 0 || number > l.count {
		return 0
	}
	return number + l.steps[i-1].more
}
