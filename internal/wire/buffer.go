package wire

import "sync"

const (
	// bigBuffer is the greatest size of a buffer that is kept as long as the connection.
	bigBuffer = 4 << 20
	// hugeBuffer is the greatest size of a buffer that is kept for the next long message.
	hugeBuffer = 32 << 20
)

// longBuffers has buffers larger than bigBuffer, of all connections, until the garbage collector takes them. Without
// it, each message of 4 MB would grow its buffers anew, which took half of its time.
var longBuffers sync.Pool

// letGo reports whether a buffer is too large for the connection to keep, which must not use it any more then.
func letGo(buf []byte) bool {
	if cap(buf) > bigBuffer && cap(buf) <= hugeBuffer {
		long := buf // only this one is allocated
		longBuffers.Put(&long)
	}
	return cap(buf) > bigBuffer
}

// longBuffer returns a buffer of at least size bytes that was let go, or nil.
func longBuffer(size int) []byte {
	if buf, ok := longBuffers.Get().(*[]byte); ok && cap(*buf) >= size {
		return (*buf)[:cap(*buf)]
	}
	return nil
}

// newBuffer returns a buffer of at least size bytes.
func newBuffer(size int) []byte {
	if size > bigBuffer/2 {
		if buf := longBuffer(size); buf != nil {
			return buf
		}
	}
	return make([]byte, size)
}
