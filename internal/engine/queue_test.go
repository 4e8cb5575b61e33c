package engine

import (
	"context"
	"testing"
)

// notifications are n items of 10 bytes.
func notifications(n int) (items []item, size int) {
	for range n {
		items = append(items, item{handling: &notificationContext{}, size: 10})
	}
	return items, 10 * n
}

func TestQueue(t *testing.T) {
	l := &load{limits: queueLimits{bytes: 30, most: 50, sessions: 10}, room: newBell()}
	q := &queue{load: l}
	push := func(n int, want pushed) {
		t.Helper()
		items, size := notifications(n)
		l.bytes.Add(int64(size))
		got := q.push(items, size)
		if got != want {
			t.Errorf("push(%d) = %d, want %d", n, got, want)
		}
		if got != pushQueued && got != pushStarts {
			l.bytes.Add(int64(-size))
		}
	}
	var it item
	take := func(want bool) {
		t.Helper()
		if got := q.take(&it); got != want {
			t.Errorf("take = %t, want %t", got, want)
		}
		it.handling.queue = q
	}

	push(2, pushStarts)
	push(1, pushQueued)
	push(1, pushFull)
	third := q.reached(3, false)
	take(true)
	take(true)
	select {
	case <-l.room:
	default:
		t.Error("the first notification was handled, and the reader not woken")
	}
	push(1, pushQueued)

	// The handler of the second one waits for a call: the queue grows, up to its limit.
	fourth := q.reached(4, true)
	it.handling.Context = context.Background()
	it.handling.beginWait()
	if !isClosed(fourth) || isClosed(third) {
		t.Error("a call must release those that may skip, and no others")
	}
	push(2, pushQueued)
	push(1, pushOverflow)
	it.handling.endWait()
	push(1, pushFull)

	take(true)
	if isClosed(third) {
		t.Error("the third notification is not handled yet")
	}
	take(true)
	if !isClosed(third) {
		t.Error("the third notification was handled")
	}
	if q.retire() {
		t.Error("a queue with a worker was retired")
	}
	take(true)
	take(true)
	take(false)
	if held, workers := l.bytes.Load(), l.workers.Load(); held != 0 || workers != 0 {
		t.Errorf("%d bytes and %d workers are left", held, workers)
	}
	if !q.retire() {
		t.Error("an empty queue was not retired")
	}
	push(1, pushGone)
}
