// The tables of the history: maps of a limited size.

package conformance

import (
	"crypto/sha256"
	"strings"
)

// table is a map of a limited size. When it is full, the oldest entry goes.
type table[V any] struct {
	limit   int
	entries map[string]*entryOf[V]
	// The entries in their order: oldest.behind is the second oldest.
	oldest, newest *entryOf[V]
	forgot         bool // some entry went
}

type entryOf[V any] struct {
	key            string
	value          V
	before, behind *entryOf[V]
}

func newTable[V any](limit int) table[V] {
	return table[V]{limit: limit, entries: map[string]*entryOf[V]{}}
}

// get finds an entry.
func (t *table[V]) get(key string) (v V, ok bool) {
	if e := t.entries[short(key)]; e != nil {
		return e.value, true
	}
	return v, false
}

// put adds or replaces an entry.
func (t *table[V]) put(key string, v V) {
	key = short(key)
	if e := t.entries[key]; e != nil {
		e.value = v
		return
	}
	if len(t.entries) >= t.limit {
		t.remove(t.oldest)
		t.forgot = true
	}
	e := &entryOf[V]{key: strings.Clone(key), value: v, before: t.newest}
	if t.newest != nil {
		t.newest.behind = e
	} else {
		t.oldest = e
	}
	t.newest = e
	t.entries[e.key] = e
}

// drop removes an entry that is needed no more.
func (t *table[V]) drop(key string) {
	if e := t.entries[short(key)]; e != nil {
		t.remove(e)
	}
}

func (t *table[V]) remove(e *entryOf[V]) {
	delete(t.entries, e.key)
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

// none reports whether nothing was ever put in.
func (t *table[V]) none() bool { return len(t.entries) == 0 && !t.forgot }

// all yields the entries, the oldest first.
func (t *table[V]) all(yield func(string, V) bool) {
	for e := t.oldest; e != nil; {
		next := e.behind
		if !yield(e.key, e.value) {
			return
		}
		e = next
	}
}

// short is a text that stands for an id of any length.
func short(id string) string {
	if len(id) <= 2*sha256.Size {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "\x00" + string(sum[:])
}
