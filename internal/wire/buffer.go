package wire

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// bigBuffer is the greatest size of a buffer that is kept as long as the connection.
	bigBuffer = 4 << 20
	// shelfTime is how long a larger one is kept.
	shelfTime = time.Second
	// hugeBuffer is the greatest size of a buffer kept for that time.
	hugeBuffer = 32 << 20
)

// shelf keeps buffers larger than bigBuffer for the next long message, but only for some time, so that an idle
// connection does not hold them. Without it, each message of 4 MB would grow its buffers anew, which took half of its
// time.
type shelf struct {
	mu    sync.Mutex
	bufs  [][]byte
	timer *time.Timer // ends the time since the last long message
	open  bool        // that time has not ended

	stocked atomic.Bool // there are buffers; saves senders the lock
}

// put takes a buffer that is currently not needed and held the given number of bytes. It returns false if the buffer is
// short enough for the connection to keep.
func (s *shelf) put(buf []byte, held int) bool {
	if cap(buf) <= bigBuffer {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if held > bigBuffer/2 {
		s.open = true
		if s.timer == nil {
			s.timer = time.AfterFunc(shelfTime, s.clear)
		} else {
			s.timer.Reset(shelfTime)
		}
	}
	if s.open && cap(buf) <= hugeBuffer && len(s.bufs) < 2 { // one is written while the other is filled
		s.bufs = append(s.bufs, buf)
		s.stocked.Store(true)
	}
	return true
}

// take returns a buffer of at least size bytes, if there is one.
func (s *shelf) take(size int) (buf []byte, ok bool) {
	if !s.stocked.Load() {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, buf := range s.bufs {
		if cap(buf) >= size {
			s.bufs = slices.Delete(s.bufs, i, i+1)
			s.stocked.Store(len(s.bufs) > 0)
			return buf[:cap(buf)], true
		}
	}
	return nil, false
}

func (s *shelf) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bufs, s.open = nil, false
	s.stocked.Store(false)
}
