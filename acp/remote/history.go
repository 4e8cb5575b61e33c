package remote

import (
	"bytes"
	"crypto/rand"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// A History keeps the last messages of one stream of one connection, sent or not, so that a client that has lost the
// stream can continue after the last message that it received. A server calls its methods one at a time.
//
// A client that has lost its connection may send the cursor of a session's stream when it opens that stream on another
// connection, before it resumes the session there. A History that recognizes it returns what the new stream has, and
// sees to it that the messages that are missing come next.
type History interface {
	// Start returns the cursor before the first message. A client gets it when it first opens a stream, so that it can
	// continue there if it loses the stream before any message has arrived.
	Start() (cursor string)
	// Add adds the next message, and returns its cursor: a short text of printable ASCII that no other stream returns.
	// message must not be kept.
	Add(message []byte) (cursor string)
	// After returns the messages after a cursor, with their cursors, oldest first. ok is false if one of them is no
	// longer kept, or the cursor is not known.
	After(cursor string) (messages iter.Seq2[string, []byte], ok bool)
}

// MemoryHistory returns a HandlerOptions.History that keeps the given number of messages, and at most size bytes of
// them, in memory for each stream.
func MemoryHistory(messages, size int) func(peer *Peer, session string) History {
	return func(*Peer, string) History {
		return &memoryHistory{prefix: rand.Text()[:13] + "-", maxMessages: messages, maxBytes: size}
	}
}

type memoryHistory struct {
	prefix                string   // 65 random bits, so that cursors of other streams are not recognized
	first                 uint64   // number of messages before messages[0]
	messages              [][]byte // one after the other
	bytes                 int
	maxMessages, maxBytes int
}

func (h *memoryHistory) Start() string { return h.cursor(0) }

func (h *memoryHistory) Add(message []byte) string {
	h.messages = append(h.messages, bytes.Clone(message))
	h.bytes += len(message)
	n := h.first + uint64(len(h.messages))
	old := 0
	for ; old < len(h.messages) && (len(h.messages)-old > h.maxMessages || h.bytes > h.maxBytes); old++ {
		h.bytes -= len(h.messages[old])
	}
	// append sometimes moves the remaining messages; this releases the others.
	clear(h.messages[:old])
	h.messages = h.messages[old:]
	h.first += uint64(old)
	return h.cursor(n)
}

// cursor returns the cursor after the given number of messages.
func (h *memoryHistory) cursor(n uint64) string { return h.prefix + strconv.FormatUint(n, 10) }

func (h *memoryHistory) After(cursor string) (iter.Seq2[string, []byte], bool) {
	text, ok := strings.CutPrefix(cursor, h.prefix)
	n, err := strconv.ParseUint(text, 10, 64)
	if !ok || err != nil || n < h.first || n > h.first+uint64(len(h.messages)) {
		return nil, false
	}
	rest := slices.Clone(h.messages[n-h.first:])
	return func(yield func(string, []byte) bool) {
		for i, message := range rest {
			if !yield(h.cursor(n+1+uint64(i)), message) {
				return
			}
		}
	}, true
}
