package view

import "slices"

const (
	bits  = 5
	width = 1 << bits
)

// vector is a sequence that grows at its end and shrinks at its beginning. A copy does not change with the original if
// the original is given a new epoch first. Reading and writing take time that grows with the logarithm, to the base 32,
// of the number of elements.
type vector[T any] struct {
	root        *node[T]
	height      uint // levels above the leaves, times bits
	first, next int  // the elements: first ≤ i < next
}

// node is a leaf with items, or an inner node with kids. Only its own epoch may write to it.
type node[T any] struct {
	epoch uint64
	kids  []*node[T]
	items []*T
}

func newNode[T any](leaf bool, epoch uint64) *node[T] {
	if leaf {
		return &node[T]{epoch: epoch, items: make([]*T, width)}
	}
	return &node[T]{epoch: epoch, kids: make([]*node[T], width)}
}

// own returns a node that the epoch may write to.
func (n *node[T]) own(epoch uint64) *node[T] {
	if n.epoch == epoch {
		return n
	}
	return &node[T]{epoch: epoch, kids: slices.Clone(n.kids), items: slices.Clone(n.items)}
}

func (v *vector[T]) has(i int) bool { return v.first <= i && i < v.next }

// get returns element i, which must exist.
func (v *vector[T]) get(i int) *T {
	n := v.root
	for shift := v.height; shift > 0; shift -= bits {
		n = n.kids[i>>shift&(width-1)]
	}
	return n.items[i&(width-1)]
}

// set replaces element i, which must exist, or adds it if i is next.
func (v *vector[T]) set(i int, item *T, epoch uint64) {
	if v.root == nil {
		v.root = newNode[T](true, epoch)
	}
	for i>>v.height >= width {
		root := newNode[T](false, epoch)
		root.kids[0] = v.root
		v.root = root
		v.height += bits
	}
	v.root = v.root.own(epoch)
	n := v.root
	for shift := v.height; shift > 0; shift -= bits {
		kid := &n.kids[i>>shift&(width-1)]
		if *kid == nil {
			*kid = newNode[T](shift == bits, epoch)
		} else {
			*kid = (*kid).own(epoch)
		}
		n = *kid
	}
	n.items[i&(width-1)] = item
	v.next = max(v.next, i+1)
}

func (v *vector[T]) add(item *T, epoch uint64) int {
	v.set(v.next, item, epoch)
	return v.next - 1
}

// drop removes the first element, which must exist.
func (v *vector[T]) drop(epoch uint64) {
	v.root = v.root.own(epoch)
	v.root.clear(v.first, v.height, epoch)
	v.first++
}

// clear removes the parts that are needed only up to element i, and reports whether nothing of the node is needed
// afterwards.
func (n *node[T]) clear(i int, shift uint, epoch uint64) bool {
	at := i >> shift & (width - 1)
	if shift == 0 {
		n.items[at] = nil
		return at == width-1
	}
	kid := n.kids[at].own(epoch)
	n.kids[at] = kid
	if !kid.clear(i, shift-bits, epoch) {
		return false
	}
	n.kids[at] = nil
	return at == width-1
}

// each calls yield with the elements in order, until it returns false.
func (v *vector[T]) each(yield func(*T) bool) { v.changed(&vector[T]{}, yield) }

// changed calls yield with the elements that differ from those of an older copy of the vector, in order, until it
// returns false. It visits only what changed.
func (v *vector[T]) changed(old *vector[T], yield func(*T) bool) {
	if v.root == nil {
		return
	}
	was, height := old.root, old.height
	for was != nil && height < v.height { // the vector has outgrown the old root, which is now the first kid
		parent := &node[T]{kids: make([]*node[T], width)}
		parent.kids[0] = was
		was = parent
		height += bits
	}
	v.root.changed(was, yield)
}

func (n *node[T]) changed(old *node[T], yield func(*T) bool) bool {
	if n == old {
		return true
	}
	for i, item := range n.items {
		if item != nil && (old == nil || old.items[i] != item) && !yield(item) {
			return false
		}
	}
	for i, kid := range n.kids {
		var was *node[T]
		if old != nil {
			was = old.kids[i]
		}
		if kid != nil && !kid.changed(was, yield) {
			return false
		}
	}
	return true
}
