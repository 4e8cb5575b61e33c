package wire

import (
	"errors"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
)

// A long buffer is not kept by a connection, also if a small message was written from it, or nothing came into it.
func TestLongBuffersAreLetGo(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	w := newWriter(g, func(error) {}, func() error { return nil })
	add := func(n int, err error) {
		got := w.append(unlimited, func(dst []byte) ([]byte, error) { return append(dst, make([]byte, n)...), err })
		if got != err {
			t.Fatal(got)
		}
	}
	failure := errors.New("it cannot be encoded")
	for _, next := range []int{2 * bigBuffer, 10, 2 * bigBuffer, 10} {
		add(2*bigBuffer, failure)
		add(next, nil)
		must.Do(t, w.flush(t.Context()))
		w.mu.Lock()
		if n := cap(w.pending) + cap(w.spare); n > bigBuffer {
			t.Errorf("%d bytes are kept", n)
		}
		w.mu.Unlock()
	}
	w.close()
	<-w.done
}

// A buffer that was let go is used again, if it is large enough and not huge.
func TestLongBuffersAreUsedAgain(t *testing.T) {
	for range 100 { // the race detector makes the pool forget some, and other tests fill it
		for longBuffer(0) != nil {
			continue
		}
		letGo(make([]byte, bigBuffer+1))
		letGo(make([]byte, hugeBuffer+1))
		if got := len(longBuffer(bigBuffer + 1)); got == bigBuffer+1 {
			return
		} else if got > 0 {
			t.Fatalf("got %d bytes", got)
		}
	}
	t.Error("nothing is used again")
}

// Every read and every write asks whether its buffer is to be let go.
func TestShortBuffersCostNothing(t *testing.T) {
	buf := make([]byte, readChunk)
	if n := testing.AllocsPerRun(100, func() { letGo(buf) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
