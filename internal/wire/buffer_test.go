package wire

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestShelf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s shelf
		short, long := make([]byte, bigBuffer), make([]byte, bigBuffer+1)
		taken := func(size int) bool {
			buf, ok := s.take(size)
			if ok && len(buf) < size {
				t.Errorf("took %d bytes, want %d", len(buf), size)
			}
			return ok
		}
		if s.put(short, len(short)) {
			t.Error("it takes a short buffer")
		}
		if !s.put(long, bigBuffer/2) || taken(0) {
			t.Error("it keeps a long buffer, although no long message has come")
		}
		s.put(long, len(long))
		if taken(len(long)+1) || !taken(len(long)) || taken(0) {
			t.Error("it does not give what it has")
		}
		s.put(long, len(long))
		time.Sleep(shelfTime / 2)
		if !taken(0) || !s.put(long, 100) || !taken(0) {
			t.Error("it does not keep the buffer from one long message to the next")
		}
		s.put(long, len(long)) // which begins the time anew
		time.Sleep(shelfTime * 3 / 4)
		synctest.Wait()
		if !taken(0) {
			t.Error("it does not keep the buffer for its time after the last long message")
		}
		s.put(long, 100)
		time.Sleep(shelfTime/4 + 1)
		synctest.Wait()
		if taken(0) || !s.put(long, 100) || taken(0) {
			t.Error("it keeps the buffer, although the last long message was long ago")
		}
		s.put(make([]byte, hugeBuffer+1), hugeBuffer+1)
		if taken(0) || !s.put(make([]byte, hugeBuffer), hugeBuffer) || !taken(0) {
			t.Error("it keeps a buffer that is too long, or not the longest one")
		}
	})
}
