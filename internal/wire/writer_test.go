package wire

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// gate is a stream that takes only so many bytes without waiting, and waits until it is told to continue.
type gate struct {
	slow
	room  int
	tried []string
	sent  int // of what is written next
	open  chan struct{}

	mu      sync.Mutex
	written string
}

func (g *gate) TryWriteLines(lines []byte) bool {
	g.tried = append(g.tried, string(lines))
	g.sent = min(g.room, len(lines))
	g.mu.Lock()
	defer g.mu.Unlock()
	g.written += string(lines[:g.sent])
	if g.sent < len(lines) {
		return false
	}
	g.sent = 0
	return true
}

func (g *gate) WriteLines(lines []byte) error {
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	g.written += string(lines[g.sent:])
	g.sent = 0
	return nil
}

// What is alone is written at once, as far as it goes, and what comes then comes behind it.
func TestAloneIsWrittenAtOnce(t *testing.T) {
	for _, room := range []int{0, 3, 4, 100} {
		synctest.Test(t, func(t *testing.T) {
			g := &gate{room: room, open: make(chan struct{})}
			w := newWriter(g, func(error) {}, func() error { return nil })
			add := func(alone bool, text string) {
				must.Do(t, w.append(unlimited, &alone, func(dst []byte) ([]byte, error) { return append(dst, text...), nil }))
			}
			add(true, "one")
			at := len("one\n")
			g.mu.Lock()
			if want := "one\n"[:min(room, at)]; g.written != want {
				t.Errorf("room %d: %q was written at once, want %q", room, g.written, want)
			}
			g.mu.Unlock()
			add(false, "two")
			add(true, "three") // behind two
			close(g.open)
			must.Do(t, w.flush(context.Background()))
			g.mu.Lock()
			if want := "one\ntwo\nthree\n"; g.written != want || len(g.tried) > 2 {
				t.Errorf("room %d: %q was written in the end, want %q; tried: %q", room, g.written, want, g.tried)
			}
			g.mu.Unlock()
			w.close()
			<-w.done
		})
	}
}

// What is sent after some time of quiet is written at once, even if more is in flight.
func TestQuietIsWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{room: 100, open: make(chan struct{})}
		close(g.open)
		w := newWriter(g, func(error) {}, func() error { return nil })
		for _, pause := range []time.Duration{0, quietTime, quietTime + 1} {
			time.Sleep(pause)
			before := len(g.tried)
			must.Do(t, w.append(unlimited, new(false), func(dst []byte) ([]byte, error) { return append(dst, "one"...), nil }))
			// At first, nothing has been written.
			if atOnce, want := len(g.tried) > before, pause != quietTime; atOnce != want {
				t.Errorf("%v after the last write: written at once %t, want %t", pause, atOnce, want)
			}
			synctest.Wait()
		}
		w.close()
		<-w.done
	})
}

// What comes while a message is tried stays behind it.
func TestWrittenBehindATry(t *testing.T) {
	for _, room := range []int{0, 3, 100} {
		g := &during{gate: gate{room: room, open: make(chan struct{})}}
		close(g.open)
		w := newWriter(g, func(error) {}, func() error { return nil })
		add := func(alone bool, text string) {
			if err := w.append(unlimited, &alone, func(dst []byte) ([]byte, error) { return append(dst, text...), nil }); err != nil {
				t.Error(err)
			}
		}
		g.do = func() { add(true, "two") }
		add(true, "one")
		must.Do(t, w.flush(context.Background()))
		g.mu.Lock()
		if want := "one\ntwo\n"; g.written != want {
			t.Errorf("room %d: %q was written, want %q", room, g.written, want)
		}
		g.mu.Unlock()
		w.close()
		<-w.done
	}
}

// during is a gate that does something while it is tried.
type during struct {
	gate
	do func()
}

func (g *during) TryWriteLines(lines []byte) bool {
	if do := g.do; do != nil {
		g.do = nil
		do()
	}
	return g.gate.TryWriteLines(lines)
}

// A long buffer that a small message was written from at once, or that nothing came into, is not kept.
func TestLongBufferIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{room: 100, open: make(chan struct{})}
		close(g.open)
		w := newWriter(g, func(error) {}, func() error { return nil })
		add := func(n int, err error) {
			got := w.append(unlimited, new(true), func(dst []byte) ([]byte, error) { return append(dst, make([]byte, n)...), err })
			if got != err {
				t.Fatal(got)
			}
		}
		failure := errors.New("it cannot be encoded")
		for range 2 {
			add(2*bigBuffer, nil)
			must.Do(t, w.flush(context.Background()))
			add(10, nil)
			add(10, failure)
			time.Sleep(shelfTime + 1)
			synctest.Wait()
			w.mu.Lock()
			if n := cap(w.pending) + cap(w.spare) + len(w.shelf.bufs); n > bigBuffer {
				t.Errorf("%d bytes are kept", n)
			}
			w.mu.Unlock()
		}
		w.close()
		<-w.done
	})
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
				if err := w.append(unlimited, nil, func(dst []byte) ([]byte, error) { return append(dst, make([]byte, size)...), nil }); err != nil {
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
