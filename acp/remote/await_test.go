package remote

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestREM50_GaveUp: who waits for a stream hears why it is given up, although its life ends with that.
func TestREM50_GaveUp(t *testing.T) {
	why := errors.New("why")
	st := &eventStream{s: &httpStream{d: &dialer{}}, opened: make(chan struct{}), err: why}
	st.s.d.opts.StreamTimeout = time.Minute
	st.life, st.cancel = context.WithCancelCause(t.Context())
	close(st.opened)
	st.cancel(nil)
	for range 100 { // which of the two is seen is random
		if err := st.await(); err != why {
			t.Fatalf("got %v", err)
		}
	}
}
