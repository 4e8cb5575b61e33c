package wire

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/acpgo/sdk/internal/test/tier"
)

// gate is a stream that writes nothing until it is opened.
type gate struct {
	slow
	open chan struct{}
}

func (g *gate) WriteLines([]byte) error {
	<-g.open
	return nil
}

// Whoever waits for room gets it when there is some for what it is about to append, and not all at once.
func TestClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{open: make(chan struct{})}
		w := newWriter(g, func(error) {}, func() error { return nil })
		var claimed atomic.Int32
		appended := make(chan struct{})
		var senders sync.WaitGroup
		const size = 1 << 20
		n := tier.Pick(5, 10, 100, 100)
		for range n {
			senders.Go(func() {
				if err := w.claim(t.Context(), highWater, size); err != nil {
					t.Error(err)
					return
				}
				defer w.unclaim(size)
				claimed.Add(1)
				<-appended
				if err := w.append(unlimited, func(dst []byte) ([]byte, error) { return append(dst, make([]byte, size)...), nil }); err != nil {
					t.Error(err)
				}
			})
		}
		for i := range int32(3) { // the third waits for the second to be taken, which the gate does not let happen
			synctest.Wait()
			if got, want := claimed.Load(), min(i+1, 2); got != want {
				t.Errorf("%d have room, want %d", got, want)
			}
			if i < 2 {
				appended <- struct{}{}
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.claim(ctx, highWater, 1); err != context.Canceled {
			t.Errorf("got %v", err)
		}
		close(appended)
		close(g.open)
		senders.Wait()
		if err := w.flush(t.Context()); err != nil || w.claims.Load() != 0 || w.waiting.Load() != 0 {
			t.Errorf("%v, %d bytes are claimed, %d wait", err, w.claims.Load(), w.waiting.Load())
		}
		w.close()
		<-w.done
	})
}
