// Cycles of values that contain themselves are broken with pointers, where a member may be absent or null.

package gen

import (
	"slices"
	"strings"

	"github.com/acpgo/sdk/internal/gen/model"
)

// point changes the optional members through which a value could contain itself to pointers, and reports values that
// must contain themselves. It changes all such members, so that the result does not depend on the order of definitions.
func (b *builder) point() {
	for _, cycle := range cycles(b.pkg.Decls) {
		for _, f := range cycleMembers(cycle) {
			if f.Presence != model.Required || f.Nullable {
				f.Type = model.Pointer{Elem: f.Type.(model.Named)}
			}
		}
	}
	for _, cycle := range cycles(b.pkg.Decls) {
		var path []string
		for _, f := range cycleMembers(cycle) {
			path = append(path, f.Pointer)
		}
		b.problem(cycle[0].Base().Pointer, "the value contains itself by way of %s", strings.Join(path, ", "))
	}
	if len(b.problems) == 0 {
		b.checkSizes()
	}
}

// maxSize is the maximum number of members of a value, including the values that it contains. A type whose size doubles
// with each definition could not be compiled.
const maxSize = 10_000

// checkSizes reports the definitions whose values are too large, but not those that contain these. There must be no
// cycles.
func (b *builder) checkSizes() {
	sizes := map[model.Decl]int{}
	var size func(model.Decl) int
	size = func(d model.Decl) int {
		if n, ok := sizes[d]; ok {
			return n
		}
		n, reported := 0, false
		for _, f := range model.Fields(d) {
			n++
			if inner := contained(f); inner != nil {
				n += size(inner)
				reported = reported || sizes[inner] > maxSize
			}
		}
		if n > maxSize && !reported {
			b.problem(d.Base().Pointer, "the value has more than %d members, those of its parts included", maxSize)
		}
		sizes[d] = min(n, maxSize+1)
		return sizes[d]
	}
	for _, d := range b.pkg.Decls {
		size(d)
	}
}

// cycleMembers returns the members through which the declarations of a cycle contain each other.
func cycleMembers(cycle []model.Decl) []*model.Field {
	of := map[model.Decl]bool{}
	for _, d := range cycle {
		of[d] = true
	}
	var out []*model.Field
	for _, d := range cycle {
		for _, f := range model.Fields(d) {
			if of[contained(f)] {
				out = append(out, f)
			}
		}
	}
	return out
}

// contained returns the declaration whose value is stored inside that of f, or nil.
func contained(f *model.Field) model.Decl {
	if named, ok := f.Type.(model.Named); ok {
		switch named.Decl.(type) {
		case *model.Struct, *model.Union:
			return named.Decl
		}
	}
	return nil
}

// cycles returns groups of declarations that contain each other, in the order of decls. It uses Tarjan's algorithm,
// which takes time proportional to the number of members.
func cycles(decls []model.Decl) [][]model.Decl {
	t := &tarjan{index: map[model.Decl]int{}, low: map[model.Decl]int{}, open: map[model.Decl]bool{}}
	for _, d := range decls {
		if t.index[d] == 0 {
			t.visit(d)
		}
	}
	place := map[model.Decl]int{}
	for i, d := range decls {
		place[d] = i
	}
	byPlace := func(a, b model.Decl) int { return place[a] - place[b] }
	for _, cycle := range t.found {
		slices.SortFunc(cycle, byPlace)
	}
	slices.SortFunc(t.found, func(a, b []model.Decl) int { return byPlace(a[0], b[0]) })
	return t.found
}

type tarjan struct {
	index, low map[model.Decl]int // index counts from 1
	open       map[model.Decl]bool
	stack      []model.Decl
	found      [][]model.Decl
}

func (t *tarjan) visit(d model.Decl) {
	t.index[d] = len(t.index) + 1
	t.low[d] = t.index[d]
	t.stack = append(t.stack, d)
	t.open[d] = true
	itself := false
	for _, f := range model.Fields(d) {
		inner := contained(f)
		switch {
		case inner == nil:
		case t.index[inner] == 0:
			t.visit(inner)
			t.low[d] = min(t.low[d], t.low[inner])
		case t.open[inner]:
			itself = itself || inner == d
			t.low[d] = min(t.low[d], t.index[inner])
		}
	}
	if t.low[d] < t.index[d] {
		return
	}
	at := len(t.stack) - 1
	for t.stack[at] != d {
		at--
	}
	cycle := slices.Clone(t.stack[at:])
	t.stack = t.stack[:at]
	for _, other := range cycle {
		t.open[other] = false
	}
	if len(cycle) > 1 || itself {
		t.found = append(t.found, cycle)
	}
}

// checkUnions reports unions that are variants of themselves, because the depth of such a value is undetermined.
func (b *builder) checkUnions() {
	const (
		open = iota + 1
		done
	)
	state := map[*model.Union]int{}
	var visit func(u *model.Union)
	visit = func(u *model.Union) {
		state[u] = open
		for _, v := range u.Variants {
			inner, ok := valueOf(v).(*model.Union)
			switch {
			case !ok || state[inner] == done:
			case state[inner] == open:
				b.problem(v.Pointer, "the union is a variant of itself")
			default:
				visit(inner)
			}
		}
		state[u] = done
	}
	for _, d := range b.pkg.Decls {
		if u, ok := d.(*model.Union); ok && state[u] == 0 {
			visit(u)
		}
	}
}
