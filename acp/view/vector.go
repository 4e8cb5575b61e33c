package view

import "slices"

// vector is a sequence that grows at its end and shrinks at its beginning. A copy does not change with the original if
// the original is given a new epoch first.
type vector[T any] struct {
	items       []*T   // those that are left
	epoch       uint64 // the only one that may replace items
	first, next int    // the elements: first ≤ i < next
}

func (v *vector[T]) has(i int) bool { return v.first <= i && i < v.next }

// get returns element i, which must exist.
func (v *vector[T]) get(i int) *T { return v.items[i-v.first] }

func (v *vector[T]) own(epoch uint64) {
	if v.epoch != epoch {
		v.items, v.epoch = slices.Clone(v.items), epoch
	}
}

// set replaces element i, which must exist.
func (v *vector[T]) set(i int, item *T, epoch uint64) {
	v.own(epoch)
	v.items[i-v.first] = item
}

// add appends an element. No copy has the memory after its own end.
func (v *vector[T]) add(item *T) int {
	v.items = append(v.items, item)
	v.next++
	return v.next - 1
}

// drop removes the first element, which must exist.
func (v *vector[T]) drop(epoch uint64) {
	v.own(epoch)
	v.items[0] = nil
	v.items = v.items[1:]
	v.first++
}

// each calls yield with the elements in order, until it returns false.
func (v *vector[T]) each(yield func(*T) bool) { v.changed(&vector[T]{}, yield) }

// changed calls yield with the elements that differ from those of an older copy of the vector, in order, until it
// returns false.
func (v *vector[T]) changed(old *vector[T], yield func(*T) bool) {
	for i, item := range v.items {
		if at := v.first + i; (!old.has(at) || old.get(at) != item) && !yield(item) {
			return
		}
	}
}
