package recording

import "sort"

// Lines knows the line of each message of one connection, from the message's number: where the difference of the two
// changes. It is bounded: of very many changes it forgets the older half. The zero value knows nothing.
type Lines struct {
	steps []step
	count int
}

// step says that from the message on, the line is so much more than the message's number.
type step struct{ number, more int }

// maxSteps bounds what is remembered.
const maxSteps = 1 << 15

// Add adds the next message, which stands on the line. The first message has the number 1.
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

// Count is the number of messages, which is the number of the last one.
func (l *Lines) Count() int { return l.count }

// Of returns the line of a message, or 0 if that is not known.
func (l *Lines) Of(number int) int {
	i := sort.Search(len(l.steps), func(i int) bool { return l.steps[i].number > number })
	if i == 0 || number > l.count {
		return 0
	}
	return number + l.steps[i-1].more
}
