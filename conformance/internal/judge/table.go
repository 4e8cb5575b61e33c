package judge

import (
	"crypto/sha256"
)

// Table is a map of limited size. When it is full, adding an entry removes the oldest one.
type Table[V any] struct {
	limit   int
	Entries map[string]*entryOf[V]
	// The entries as a list in their order; oldest.behind is the second oldest.
	oldest, newest *entryOf[V]
	Forgot         bool // an entry was removed to make room
}

type entryOf[V any] struct {
	key            string
	value          V
	before, behind *entryOf[V]
}

func NewTable[V any](limit int) Table[V] {
	return Table[V]{limit: limit, Entries: map[string]*entryOf[V]{}}
}

// Get returns the value of an entry.
func (t *Table[V]) Get(key string) (v V, ok bool) {
	if e := t.Entries[Short(key)]; e != nil {
		return e.value, true
	}
	return v, false
}

// put adds an entry or replaces its value.
func (t *Table[V]) put(key string, v V) {
	key = Short(key)
	if e := t.Entries[key]; e != nil {
		e.value = v
		return
	}
	if len(t.Entries) >= t.limit {
		t.remove(t.oldest)
		t.Forgot = true
	}
	e := &entryOf[V]{key: key, value: v, before: t.newest}
	if t.newest != nil {
		t.newest.behind = e
	} else {
		t.oldest = e
	}
	t.newest = e
	t.Entries[e.key] = e
}

// drop removes an entry that is no longer needed.
func (t *Table[V]) drop(key string) {
	if e := t.Entries[Short(key)]; e != nil {
		t.remove(e)
	}
}

func (t *Table[V]) remove(e *entryOf[V]) {
	delete(t.Entries, e.key)
	if e.before != nil {
		e.before.behind = e.behind
	} else {
		t.oldest = e.behind
	}
	if e.behind != nil {
		e.behind.before = e.before
	} else {
		t.newest = e.before
	}
}

// None reports whether the table is empty and has forgotten nothing.
func (t *Table[V]) None() bool { return len(t.Entries) == 0 && !t.Forgot }

// All yields the entries, oldest first.
func (t *Table[V]) All(yield func(string, V) bool) {
	for e := t.oldest; e != nil; {
		next := e.behind
		if !yield(e.key, e.value) {
			return
		}
		e = next
	}
}

// Short returns id, or a hash of it if it is long.
func Short(id string) string {
	if len(id) <= 2*sha256.Size {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "\x00" + string(sum[:])
}
