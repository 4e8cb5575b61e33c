package translate

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync"
)

// recent is a map of bounded size, which forgets what was added first.
type recent[V any] struct {
	max    int
	order  []string
	values map[string]V
}

func (r *recent[V]) get(key string) (v V) { return r.values[key] }

// put adds or replaces a value, and returns the one that was forgotten for it.
func (r *recent[V]) put(key string, v V) (forgotten V) {
	if _, ok := r.values[key]; !ok {
		if r.values == nil {
			r.values = map[string]V{}
		}
		if len(r.order) >= r.max {
			forgotten = r.remove(r.order[0])
		}
		r.order = append(r.order, key)
	}
	r.values[key] = v
	return forgotten
}

func (r *recent[V]) remove(key string) V {
	v := r.values[key]
	delete(r.values, key)
	r.order = slices.DeleteFunc(r.order, func(k string) bool { return k == key })
	return v
}

// account bounds what is kept of tool calls and terminals of a whole connection. When it is full, what was kept first
// is forgotten first.
type account struct {
	size int
	kept []*kept
}

// maxKept is how much is kept of all tool calls and terminals, and maxEach how much of one, in bytes.
const (
	maxKept = 16 << 20
	maxEach = 256 << 10

	perPiece = 64 // what a piece occupies besides its bytes
)

// kept is a list of pieces: the content of a tool call, or the output of a terminal.
type kept struct {
	pieces []raw
	size   int
	added  int  // bytes that were ever added
	lost   bool // older pieces were forgotten
	listed bool
}

// replace replaces all pieces.
func (a *account) replace(k *kept, pieces []raw) {
	a.forget(k)
	k.lost = false
	for _, p := range pieces {
		a.add(k, p)
	}
}

func (a *account) add(k *kept, piece raw) {
	if !k.listed {
		k.listed = true
		a.kept = append(a.kept, k)
	}
	k.pieces = append(k.pieces, slices.Clone(piece))
	k.size += len(piece) + perPiece
	k.added += len(piece)
	a.size += len(piece) + perPiece
	for k.size > maxEach && len(k.pieces) > 1 {
		n := len(k.pieces[0]) + perPiece
		k.pieces, k.lost = slices.Delete(k.pieces, 0, 1), true
		k.size -= n
		a.size -= n
	}
	if k.size > maxEach && len(k.pieces[0]) > 0 { // one piece alone
		a.forget(k)
		k.lost = true
	}
	for a.size > maxKept {
		oldest := a.kept[0]
		a.kept = a.kept[1:]
		oldest.listed = false
		oldest.lost = oldest.lost || oldest.size > 0
		a.forget(oldest)
	}
}

// extend adds bytes, which need not be whole.
func (a *account) extend(k *kept, more []byte) {
	if n := len(k.pieces); n > 0 && len(k.pieces[n-1])+len(more) <= 4<<10 {
		last := append(k.pieces[n-1], more...)
		k.pieces = k.pieces[:n-1]
		k.size -= len(last) - len(more) + perPiece
		k.added -= len(last) - len(more)
		a.size -= len(last) - len(more) + perPiece
		more = last
	}
	a.add(k, more)
}

func (a *account) forget(k *kept) {
	a.size -= k.size
	k.size, k.pieces = 0, nil
}

// release forgets k for good.
func (a *account) release(k *kept) {
	a.forget(k)
	if k.listed {
		k.listed = false
		a.kept = slices.DeleteFunc(a.kept, func(other *kept) bool { return other == k })
	}
}

// MetaIdempotencyKey is the name, in _meta, of what version 2 has and version 1 lacks for a prompt that is sent again.
// In a prompt it is the idempotencyKey. In the answer to initialize it is an object if the agent's end honours keys, as
// agents of version 2 do through a translation with [Options].Keys; the member replay is true if it does so only once
// session/load has replayed the session. A client whose own capabilities have it, as true, uses that. A prompt whose
// key is known is not inserted again. Its answer is that of the first one or, if nobody knows how that ended, an error
// with this member in its data. In the answer, it is the id of the first one's message, or true.
const MetaIdempotencyKey = "github.com/acpgo/sdk/idempotencyKey"

// Keys remembers the idempotency keys of prompts, so that a prompt that is sent again is not inserted again. It is
// bounded, and safe for concurrent use. The zero value is empty.
type Keys struct {
	mu       sync.Mutex
	sessions recent[*recent[*keyed]]
}

// maxKeys is how many keys are remembered of each session.
const maxKeys = 256

// keyed is what a key stands for.
type keyed struct {
	digest    [32]byte // of the prompt's params
	messageID string   // once it was accepted
	end       string   // the stop reason, once the turn with an agent of version 2 is over
}

// use returns what a key stands for, and remembers it if it is new.
func (k *Keys) use(session, key string, digest [32]byte) (*keyed, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sessions.max = maxSessions
	of := k.sessions.get(session)
	if of == nil {
		of = &recent[*keyed]{max: maxKeys}
		k.sessions.put(session, of)
	}
	if known := of.get(key); known != nil {
		copied := *known
		return &copied, false
	}
	of.put(key, &keyed{digest: digest})
	return nil, true
}

// accept remembers the message that a key's prompt became, and returns what was known. An empty messageID frees the
// key.
func (k *Keys) accept(session, key, messageID string) (before keyed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	of := k.sessions.get(session)
	if key == "" || of == nil {
		return keyed{}
	}
	if messageID == "" {
		of.remove(key)
	} else if known := of.get(key); known != nil {
		before, known.messageID = *known, messageID
	}
	return before
}

// end remembers how the turn of a key's prompt ended.
func (k *Keys) end(session, key, stopReason string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if of := k.sessions.get(session); key != "" && of != nil {
		if known := of.get(key); known != nil {
			known.end = stopReason
		}
	}
}

// Bounds on what is remembered. A peer that exceeds them gets worse translations, or errors; see
// docs/reference/translate.md.
const (
	maxSessions  = 256
	maxCalls     = 10_000 // requests in flight whose answers are translated
	maxWaiting   = 64     // prompts of a session that wait
	maxMessageID = 128
	maxKey       = 256      // bytes of an idempotency key
	maxQueued    = 16 << 20 // bytes of prompts that wait
	maxPending   = 64 << 20 // bytes of the requests in flight
	maxHeld      = 1 << 20  // bytes of updates that wait for an answer
	maxOptions   = 256 << 10
	maxSettings  = 16 << 20 // bytes of the options, modes and plans of all sessions
	maxID        = 1 << 10
)

// A client of version 1 gets content that grows as a whole, again and again. Of what an agent sends, it may get so many
// times as much, and so many bytes at each tick; more waits for later ticks.
const (
	maxTimes  = 16
	perTick   = 1 << 20
	maxCredit = 16 << 20
	maxStale  = 64
)

// short returns a key of bounded length for an id.
func short(id string) string {
	if len(id) <= 128 {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}
