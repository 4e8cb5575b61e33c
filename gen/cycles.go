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
	for _, cycle := range cycles(b.pkg.Decls, containedIn) {
		for _, f := range cycleMembers(cycle) {
			if f.Presence != model.Required || f.Nullable {
				f.Type = model.Pointer{Elem: f.Type.(model.Named)}
			}
		}
	}
	for _, cycle := range cycles(b.pkg.Decls, containedIn) {
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
func cycleMembers(cycle []model.Decl) (out []*model.Field) {
	of := map[model.Decl]bool{}
	for _, d := range cycle {
		of[d] = true
	}
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

// containedIn returns the declarations whose values are stored inside that of d.
func containedIn(d model.Decl) (out []model.Decl) {
	for _, f := range model.Fields(d) {
		if inner := contained(f); inner != nil {
			out = append(out, inner)
		}
	}
	return out
}

// checkUnions reports unions that are variants of themselves, because the depth of such a value is undetermined.
func (b *builder) checkUnions() {
	for _, cycle := range cycles(b.pkg.Decls, variantsOf) {
		for _, v := range cycle[0].(*model.Union).Variants {
			if inner := valueOf(v); inner != nil && slices.Contains(cycle, inner) {
				b.problem(v.Pointer, "the union is a variant of itself")
			}
		}
	}
}

// variantsOf returns the unions that are variants of d.
func variantsOf(d model.Decl) (out []model.Decl) {
	if u, ok := d.(*model.Union); ok {
		for _, v := range u.Variants {
			if inner, ok := valueOf(v).(*model.Union); ok {
				out = append(out, inner)
			}
		}
	}
	return out
}

// valueOf returns the declaration that a variant is a value of, or nil if it has none.
func valueOf(v *model.Variant) model.Decl {
	if named, ok := v.Type.(model.Named); ok {
		return named.Decl
	}
	return v.Payload
}

// cycles returns groups of declarations that can be reached from each other, in the order of decls. It uses Tarjan's
// algorithm, which takes linear time.
func cycles(decls []model.Decl, next func(model.Decl) []model.Decl) (found [][]model.Decl) {
	index, low := map[model.Decl]int{}, map[model.Decl]int{} // index counts from 1
	open := map[model.Decl]bool{}
	var stack []model.Decl
	var visit func(d model.Decl)
	visit = func(d model.Decl) {
		index[d] = len(index) + 1
		low[d], open[d] = index[d], true
		at, itself := len(stack), false
		stack = append(stack, d)
		for _, inner := range next(d) {
			if index[inner] == 0 {
				visit(inner)
			}
			if open[inner] {
				itself = itself || inner == d
				low[d] = min(low[d], low[inner])
			}
		}
		if low[d] < index[d] {
			return
		}
		cycle := slices.Clone(stack[at:])
		for _, other := range cycle {
			open[other] = false
		}
		if stack = stack[:at]; len(cycle) > 1 || itself {
			found = append(found, cycle)
		}
	}
	place := map[model.Decl]int{}
	for i, d := range decls {
		if place[d] = i; index[d] == 0 {
			visit(d)
		}
	}
	byPlace := func(a, b model.Decl) int { return place[a] - place[b] }
	for _, cycle := range found {
		slices.SortFunc(cycle, byPlace)
	}
	slices.SortFunc(found, func(a, b []model.Decl) int { return byPlace(a[0], b[0]) })
	return found
}
