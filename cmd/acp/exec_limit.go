package main

import (
	"sync"
	"time"
)

// limit is the time of --timeout, which stands still while a person is asked. Its methods are safe for concurrent use.
type limit struct {
	mu     sync.Mutex
	timer  *time.Timer // nil if there is no limit
	left   time.Duration
	began  time.Time // when the timer last started
	people int       // questions that a person is being asked
}

// start starts the limit, unless it is zero, and returns the channel that gets a value at its end.
func (l *limit) start(limit time.Duration) <-chan time.Time {
	if limit <= 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left, l.began, l.timer = limit, time.Now(), time.NewTimer(limit)
	return l.timer.C
}

// asking stops the time until the returned function is called.
func (l *limit) asking() (answered func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.people++; l.people == 1 && l.timer != nil && l.timer.Stop() {
		l.left -= time.Since(l.began)
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.people--; l.people == 0 && l.timer != nil {
			l.began = time.Now()
			l.timer.Reset(l.left)
		}
	}
}
