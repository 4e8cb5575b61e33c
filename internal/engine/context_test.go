package engine

import (
	"context"
	"errors"
	"testing"
)

// What ends a context first is its cause, whenever its user looks.
func TestCauseOfLateContext(t *testing.T) {
	own, parents := errors.New("own"), errors.New("the parent's")
	for _, early := range []bool{true, false} {
		for _, first := range []error{own, parents} {
			parent, end := context.WithCancelCause(t.Context())
			l := &lateContext{parent: parent}
			if early {
				l.Done()
			}
			if first == own {
				l.cancel(own)
				end(parents)
			} else {
				end(parents)
				l.cancel(own)
			}
			if got := context.Cause(l); got != first {
				t.Errorf("made early: %v: the cause is %v, not %v", early, got, first)
			}
			<-l.Done()
			if l.Err() != context.Canceled {
				t.Error(l.Err())
			}
		}
	}
}
