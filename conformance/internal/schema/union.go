// The branch of an anyOf or oneOf that a value means is determined before anything is validated, so that an invalid
// message is judged as what it was meant to be.

package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/acpgo/sdk/conformance/internal/finding"
)

// union is an anyOf or oneOf. The schema alone decides whether a value is valid: an MCP server of type "http" that has
// the members of a stdio server is a stdio server. The faults of an invalid value are those of the branch that it was
// meant to be, by its tag.
type union struct {
	keyword   string // "anyOf" or "oneOf"
	name      string // the definition that the union is, or that contains it
	exclusive bool   // oneOf
	tag       string // the member that distinguishes the branches, "" if none does
	byTag     map[string]choice
	branches  []branch
}

// branch is one alternative, with what is known about it without validation.
type branch struct {
	schema   *jsonschema.Schema
	path     string // its keyword path below the union's schema
	label    string // its name for display, "" for an inline schema without a title
	types    []string
	required []string
	tags     map[string]string // members that must have this value
	constant any               // the only value, if hasConst is set
	hasConst bool
	catchAll bool // it is for tags that no other branch has
}

// newUnion analyses the alternatives of a compiled schema.
func newUnion(keyword string, at *jsonschema.Schema, alternatives []*jsonschema.Schema) *union {
	u := &union{keyword: keyword, name: definitionOf(at.Location), exclusive: keyword == "oneOf"}
	count := map[string]int{}
	for i, schema := range alternatives {
		b := branch{schema: schema, path: fmt.Sprintf("%s/%d", keyword, i), label: schema.Title,
			tags: map[string]string{}}
		b.learn(schema)
		for name := range b.tags {
			count[name]++
		}
		u.branches = append(u.branches, b)
	}
	for name, n := range count {
		if n > count[u.tag] || n == count[u.tag] && name < u.tag {
			u.tag = name
		}
	}
	u.byTag = map[string]choice{}
	for i := range u.branches {
		b := &u.branches[i]
		tag, tagged := b.tags[u.tag]
		b.label = cmp.Or(b.label, tag)
		if tagged {
			u.byTag[tag] = choice{branches: append(u.byTag[tag].branches, *b)}
		}
	}
	return u
}

// learn collects the demands of a schema on a value, through references and allOf.
func (b *branch) learn(s *jsonschema.Schema) {
	if len(b.types) == 0 {
		b.types = s.Types
	}
	if len(s.Constant) > 0 {
		b.constant, b.hasConst = s.Constant[0], true
	}
	b.catchAll = b.catchAll || s.Not != nil
	b.required = append(b.required, s.Required...)
	for name, property := range s.Properties {
		if value, ok := constant(property); ok && slices.Contains(s.Required, name) {
			b.tags[name] = value
		}
	}
	if s.Ref != nil {
		b.learn(s.Ref)
	}
	for _, below := range s.AllOf {
		b.learn(below)
	}
}

// constant returns the only string that a schema allows.
func constant(s *jsonschema.Schema) (string, bool) {
	if len(s.Constant) == 0 {
		return "", false
	}
	value, ok := s.Constant[0].(string)
	return value, ok
}

// choice has the branches that a value may mean, all equally likely. If there are none, it has the reason, and the
// member that is to blame.
type choice struct {
	branches []branch
	member   string
	reason   string
	// otherwise is reported in place of a branch's own errors if no branch accepts the value.
	otherwise string
}

// choose chooses without validation.
func (u *union) choose(v any) choice {
	members, isObject := v.(map[string]any)
	if tag, ok := members[u.tag].(string); ok {
		if c, ok := u.byTag[tag]; ok {
			return c
		}
	}
	if c, ok := u.chooseConstant(v); ok {
		return c
	}
	fits := slices.DeleteFunc(slices.Clone(u.branches), func(b branch) bool { return b.hasConst || !accepts(b.types, v) })
	if len(fits) == 0 {
		return choice{reason: fmt.Sprintf("got %s, want %s", TypeName(v), u.types())}
	}
	switch {
	case isObject && u.tag != "":
		return u.chooseWithoutTag(fits, members)
	case isObject:
		return u.chooseMembers(fits, members)
	}
	return choice{branches: fits}
}

// chooseConstant chooses among branches that each allow a single value, like an enum.
func (u *union) chooseConstant(v any) (choice, bool) {
	closed, known := true, []string(nil)
	for _, b := range u.branches {
		switch {
		case b.hasConst && Equal(b.constant, v):
			return choice{branches: []branch{b}}, true
		case b.hasConst:
			known = append(known, fmt.Sprint(b.constant))
		default:
			closed = false
		}
	}
	if !closed {
		return choice{}, false
	}
	if s, ok := v.(string); ok {
		return choice{reason: fmt.Sprintf("unknown value %q; known: %s", finding.Clip(s), strings.Join(known, ", "))}, true
	}
	return choice{reason: fmt.Sprintf("got %s, want one of %s", TypeName(v), strings.Join(known, ", "))}, true
}

// chooseWithoutTag chooses for objects whose tag is missing or unknown, among the branches that have no tag.
func (u *union) chooseWithoutTag(fits []branch, members map[string]any) choice {
	var tags []string
	var catchAll, untagged []branch
	for _, b := range fits {
		switch tag, tagged := b.tags[u.tag]; {
		case tagged:
			tags = append(tags, tag)
		case b.catchAll:
			catchAll = append(catchAll, b)
		default:
			untagged = append(untagged, b)
		}
	}
	value, present := members[u.tag]
	text, isText := value.(string)
	known := strings.Join(tags, ", ")
	switch {
	case isText && len(catchAll) > 0:
		return choice{branches: catchAll}
	case isText && len(untagged) > 0:
		return choice{branches: untagged,
			otherwise: fmt.Sprintf("unknown %s %q; known: %s, or none", u.tag, finding.Clip(text), known)}
	case len(untagged) > 0:
		return choice{branches: untagged}
	case isText:
		return choice{member: u.tag, reason: fmt.Sprintf("unknown value %q; known: %s", finding.Clip(text), known)}
	case present:
		return choice{member: u.tag, reason: fmt.Sprintf("got %s, want one of %s", TypeName(value), known)}
	}
	return choice{reason: fmt.Sprintf("missing property %q, one of %s", u.tag, known)}
}

// chooseMembers chooses for objects without a tag, by the members that the branches require.
func (u *union) chooseMembers(fits []branch, members map[string]any) choice {
	complete := slices.DeleteFunc(slices.Clone(fits), func(b branch) bool {
		return slices.ContainsFunc(b.required, func(name string) bool { return !has(members, name) })
	})
	if len(complete) > 0 {
		return choice{branches: complete}
	}
	// A member that only one branch requires identifies it.
	var meant []branch
	var wanted []string
	for i, b := range fits {
		var marks []string
		for _, name := range b.required {
			if !slices.ContainsFunc(fits,
				func(o branch) bool { return o.path != fits[i].path && slices.Contains(o.required, name) }) {
				marks = append(marks, name)
			}
		}
		if slices.ContainsFunc(marks, func(name string) bool { return has(members, name) }) {
			meant = append(meant, b)
		}
		if len(marks) > 0 {
			wanted = append(wanted, fmt.Sprintf("%q", marks[0]))
		}
	}
	if len(meant) == 1 || len(fits) == 1 || len(wanted) < len(fits) {
		return choice{branches: append(meant, fits...)[:1]}
	}
	return choice{reason: "missing property " + strings.Join(wanted, " or ")}
}

func has(members map[string]any, name string) bool {
	_, ok := members[name]
	return ok
}

// types lists the JSON types that the branches accept.
func (u *union) types() string {
	var all []string
	for _, b := range u.branches {
		for _, t := range b.types {
			if !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
	}
	return strings.Join(all, " or ")
}

// excludes reports whether a value certainly does not belong to the branch, without validation.
func (b *branch) excludes(v any) bool {
	if b.hasConst && !Equal(b.constant, v) || !accepts(b.types, v) {
		return true
	}
	members, isObject := v.(map[string]any)
	if !isObject {
		return false
	}
	for name, tag := range b.tags {
		if members[name] != tag {
			return true
		}
	}
	return slices.ContainsFunc(b.required, func(name string) bool { return !has(members, name) })
}

// possible returns the branches that a value may belong to.
func (u *union) possible(v any) []branch {
	return slices.DeleteFunc(slices.Clone(u.branches), func(b branch) bool { return b.excludes(v) })
}

// validate validates a value, first by the branches that it means. If all is set, it tries every possible branch.
func (u *union) validate(ctx jsonschema.ValidationContext, v any, all bool) error {
	c := u.choose(v)
	var passed []string
	var nearest error
	var nearestBranch branch
	for _, b := range c.branches {
		err := ctx.Validate(b.schema, b.path, v, "")
		if err == nil {
			passed = append(passed, b.label)
			if !u.exclusive && !all {
				return nil
			}
			continue
		}
		if nearest == nil || nearer(err, nearest) {
			nearest, nearestBranch = err, b
		}
	}
	for _, b := range u.possible(v) {
		if len(passed) > 0 && !u.exclusive && !all {
			return nil
		}
		tried := slices.ContainsFunc(c.branches, func(o branch) bool { return o.path == b.path })
		if !tried && ctx.Validate(b.schema, b.path, v, "") == nil {
			passed = append(passed, b.label)
		}
	}
	switch {
	case len(passed) > 1 && u.exclusive:
		return ctx.Error(u.keyword+marker, "matches more than one of %s", strings.Join(passed, ", "))
	case len(passed) > 0:
		return nil
	case len(c.branches) == 0:
		return ctx.Error(u.keyword+marker+c.member, "%s", c.reason)
	case c.otherwise != "":
		return ctx.Error(u.keyword+marker, "%s", c.otherwise)
	case nearestBranch.label == "":
		return nearest
	}
	return jsonschema.ValidationError{}.Group(ctx.Error(u.keyword+marker, "%s %s", u.name, nearestBranch.label), nearest)
}

// marker is in the keyword location of errors that a union itself made, before the member that they are about, if any.
// Such an error is a verdict if it has no causes; otherwise its message names the variant that the causes belong to.
const marker = "#"

// nearer reports whether the branch that failed with a is closer to the value than the one that failed with b: it
// failed at fewer places, or deeper inside.
func nearer(a, b error) bool {
	leavesA, depthA := measure(a)
	leavesB, depthB := measure(b)
	return leavesA < leavesB || leavesA == leavesB && depthA > depthB
}

// measure returns the number of leaves of an error, and the depth in the value of the deepest one.
func measure(err error) (leaves, depth int) {
	e, ok := err.(*jsonschema.ValidationError)
	if !ok {
		return 1, 0
	}
	if len(e.Causes) == 0 {
		return 1, strings.Count(e.InstanceLocation, "/")
	}
	for _, cause := range e.Causes {
		n, d := measure(cause)
		leaves, depth = leaves+n, max(depth, d)
	}
	return leaves, depth
}

// accepts reports whether a value has one of the types. No types means all types.
func accepts(types []string, v any) bool {
	if len(types) == 0 {
		return true
	}
	name := TypeName(v)
	return slices.ContainsFunc(types, func(t string) bool {
		return t == name || t == "integer" && name == "number" && !strings.Contains(string(v.(json.Number)), ".")
	})
}

// TypeName returns the JSON type of a value.
func TypeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// Equal compares JSON values. Numbers are compared by value.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, Equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, Equal)
	case json.Number:
		b, ok := b.(json.Number)
		if !ok || a == b {
			return ok
		}
		x, okX := new(big.Rat).SetString(string(a))
		y, okY := new(big.Rat).SetString(string(b))
		return okX && okY && x.Cmp(y) == 0
	case nil, bool, string:
		return a == b
	}
	return false
}
