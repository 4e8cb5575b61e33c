package hostile

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"time"
)

// A Clock measures time as it would be if the machine had nothing else to do: while n threads want one of m processors
// and n is more, it goes m times for n. What waits in vain waits as long on an idle machine; what is only slow because
// others run gets more time. Where the system does not say how many there are, it is an ordinary clock.
type Clock struct {
	running func() int // how many threads want a processor
	last    time.Time
	passed  time.Duration
}

// NewClock starts a clock.
func NewClock() *Clock { return &Clock{running: running, last: time.Now()} }

// tick is how often a clock that is waited for must be read: how busy the machine is, is known for a moment only.
const tick = 100 * time.Millisecond

// Passed returns how much time has passed. It must be called again and again.
func (c *Clock) Passed() time.Duration {
	now := time.Now()
	if d := now.Sub(c.last); d >= tick {
		share := min(1, float64(runtime.NumCPU())/float64(max(1, c.running())))
		c.passed += time.Duration(float64(d) * share)
		c.last = now
	}
	return c.passed
}

// running reads how many threads run or could.
func running() int {
	text, err := os.ReadFile("/proc/loadavg") // "0.10 0.20 0.30 2/345 6789"
	if err != nil {
		return 1
	}
	fields := bytes.Fields(text)
	if len(fields) < 4 {
		return 1
	}
	count, _, _ := bytes.Cut(fields[3], []byte("/"))
	n, err := strconv.Atoi(string(count))
	if err != nil {
		return 1
	}
	return n
}
