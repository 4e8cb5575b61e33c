// The tables of the history: maps of a limited size.

package judge

import (
	"crypto/sha256"
	"strings"
)

// Table is a map of a limited size. When it is full, the oldest entry goes.
type Table[V any] struct {
	limit   int
	Entries map[string]*entryOf[V]
	// The entries in their order: oldest.behind is the second oldest.
	oldest, newest *entryOf[V]
	Forgot         bool // some entry went
}

type entryOf[V any] struct {
	key            string
	value          V
	before, behind *entryOf[V]
}

func NewTable[V any](limit int) Table[V] {
	return Table[V]{limit: limit, Entries: map[string]*entryOf[V]{}}
}

// Get finds an entry.
func (t *Table[V]) Get(key string) (v V, ok bool) {
	if e := t.Entries[Short(key)]; e != nil {
		return e.value, true
	}
	return v, false
}

// put adds or replaces an entry.
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
	e := &entryOf[V]{key: strings.Clone(key), value: v, before: t.newest}
	if t.newest != nil {
		t.newest.behind = e
	} else {
		t.oldest = e
	}
	t.newest = e
	t.Entries[e.key] = e
}

// drop removes an entry that is needed no more.
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

// None reports whether nothing was ever put in.
func (t *Table[V]) None() bool { return len(t.Entries) == 0 && !t.Forgot }

// All yields the entries, the oldest first.
func (t *Table[V]) All(yield func(string, V) bool) {
	for e := t.oldest; e != nil; {
		next := e.behind
		if !yield(e.key, e.value) {
			return
		}
		e = next
	}
}

// Short is a text that stands for an id of any length.
func Short(id string) string {
	if len(id) <= 2*sha256.Size {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "\x00" + string(sum[:])
}
