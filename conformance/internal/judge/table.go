package judge

import (
	"crypto/sha256"
	"slices"
)

// Table is a map of limited size. When it is full, adding an entry removes the oldest one.
type Table[V any] struct {
	limit  int
	values map[string]V
	keys   []string // the oldest first
	Forgot bool     // an entry was removed to make room
}

func NewTable[V any](limit int) Table[V] {
	return Table[V]{limit: limit, values: map[string]V{}}
}

// Get returns the value of an entry.
func (t *Table[V]) Get(key string) (v V, ok bool) {
	v, ok = t.values[Short(key)]
	return v, ok
}

// put adds an entry or replaces its value.
func (t *Table[V]) put(key string, v V) {
	key = Short(key)
	if _, ok := t.values[key]; !ok {
		if len(t.keys) >= t.limit {
			delete(t.values, t.keys[0])
			t.keys, t.Forgot = t.keys[1:], true
		}
		t.keys = append(t.keys, key)
	}
	t.values[key] = v
}

// drop removes an entry that is no longer needed.
func (t *Table[V]) drop(key string) {
	key = Short(key)
	delete(t.values, key)
	t.keys = slices.DeleteFunc(t.keys, func(k string) bool { return k == key })
}

// None reports whether the table is empty and has forgotten nothing.
func (t *Table[V]) None() bool { return len(t.keys) == 0 && !t.Forgot }

// All yields the entries, oldest first.
func (t *Table[V]) All(yield func(string, V) bool) {
	for _, key := range t.keys {
		if !yield(key, t.values[key]) {
			return
		}
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
