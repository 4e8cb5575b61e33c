package hostile

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// A clock runs slower while others want the processors, and never faster than an ordinary clock.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 1
		c := NewClock()
		c.running = func() int { return n }
		for _, phase := range []struct {
			running int
			want    time.Duration // after ten seconds more
		}{{1, 10 * time.Second}, {0, 20 * time.Second}, {10 * runtime.NumCPU(), 21 * time.Second}, {runtime.NumCPU(), 31 * time.Second}} {
			n = phase.running
			for range 40 {
				time.Sleep(250 * time.Millisecond)
				c.Passed()
			}
			if got := c.Passed().Round(time.Millisecond); got != phase.want {
				t.Errorf("with %d running: %v, want %v", n, got, phase.want)
			}
		}
	})
	if n := running(); runtime.GOOS == "linux" && n < 1 {
		t.Errorf("%d threads run, although this one does", n)
	}
}

// The wait for an answer that does not arrive is abandoned, but not for one that arrives late on a busy machine.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for busy, want := range map[int]time.Duration{1: time.Minute, 6: 6 * time.Minute} {
			c := NewClock()
			c.running = func() int { return busy * runtime.NumCPU() }
			began := time.Now()
			_, err := c.await(make(chan *Message), time.Minute)
			if took := time.Since(began); err == nil || took < want || took > want+time.Second {
				t.Errorf("%d times as busy: %v after %v, want %v", busy, err, took, want)
			}
		}
	})
	over := make(chan *Message)
	close(over)
	if _, err := Await(over, time.Minute); err != ErrOver {
		t.Errorf("got %v", err)
	}
}
