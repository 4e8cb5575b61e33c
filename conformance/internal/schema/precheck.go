// A precheck is a fast test: if it accepts a value, every schema does. Other values go to the schema library, and only
// that makes findings.

package schema

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// precheck combines the demands of all schemas that apply to a value. If it admits a value, each of the schemas accepts
// the value, and every member in it is declared at its place. It may refuse valid values. The nil precheck admits every
// value.
type precheck struct {
	// choice is set if a union applies. The value is then checked by the precheck of the only branch that it can belong
	// to, and the other fields are empty.
	choice *choicePrecheck

	types   typeSet
	strings [][]string // a string must be in each of these lists
	formats []func(any) bool
	// minLength is in characters.
	minLength int

	whole       bool // a number must be an integer
	bounded     bool // and must be between least and most
	least, most int64

	minItems int
	items    *precheck // of each element

	members  map[string]memberPrecheck
	required int       // how many of them are required
	extra    bool      // other members are valid if values admits them
	values   *precheck // for members that are not listed
	not      []tagged
}

// memberPrecheck has the demands on a member. A member that is not declared is only required.
type memberPrecheck struct {
	precheck *precheck
	declared bool
	required bool
}

// typeSet is a set of JSON types, in which integers are a separate type.
type typeSet uint16

const wholeNumber = typeSet(1) << typeCount

func (s typeSet) has(t jsonType) bool { return s&(1<<t) != 0 }

// allTypes is the set of all types.
const allTypes = wholeNumber | 1<<typeNull | 1<<typeBoolean | 1<<typeNumber | 1<<typeString | 1<<typeArray | 1<<typeObject

// typesOf returns the set of types that a schema names.
func typesOf(names []string) (set typeSet) {
	if len(names) == 0 {
		return allTypes
	}
	for _, name := range names {
		if name == "integer" {
			set |= wholeNumber
		}
		if t := slices.Index(typeNames[:], name); t > int(typeNone) {
			set |= 1 << t
		}
		if name == "number" {
			set |= wholeNumber
		}
	}
	return set
}

// numbers returns the set with all numbers added if it has the integers.
func (s typeSet) numbers() typeSet {
	if s&wholeNumber != 0 {
		s |= 1 << typeNumber
	}
	return s
}

// tagged describes objects that have one of the given strings as a member.
type tagged struct {
	member string
	values []string
}

func (t tagged) matches(v *Value) bool {
	tag := v.child(t.member)
	return tag.kind() == typeString && slices.Contains(t.values, tag.string())
}

// choicePrecheck is a union.
type choicePrecheck struct {
	exclusive bool
	byType    [typeCount][]alternative
	byString  map[string][]alternative // for strings that a branch names
	tag       string                   // for objects
	byTag     map[string][]alternative // for tags that a branch names
}

// alternative is a branch that a value may belong to.
type alternative struct {
	precheck *precheck // everything that applies to values of the branch
	branch   *branch
	tag      typeSet  // the types of the union's tag, if there is one
	not      []tagged // the value must match none of these
	required []string // for an array, the required members of each element
}

// excludes reports whether an object or array certainly does not belong to the branch.
func (a *alternative) excludes(v, tag *Value) bool {
	if v.jsonType == typeArray {
		// The first element decides.
		for first := range v.children() {
			return first.jsonType == typeObject && lacks(first, a.required)
		}
		return false
	}
	if lacks(v, a.branch.required) || tag != nil && !a.tag.has(tag.jsonType) {
		return true
	}
	for name, tag := range a.branch.tags {
		if !v.child(name).equals(tag) {
			return true
		}
	}
	return slices.ContainsFunc(a.not, func(t tagged) bool { return t.matches(v) })
}

// lacks reports whether an object lacks any of the members.
func lacks(v *Value, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return v.child(name) == nil })
}

// admits reports whether the value is a valid value of exactly one branch. If the union is an anyOf, any branch is
// enough for a string, number and the like, because these have no members that could be unknown.
func (c *choicePrecheck) admits(v *Value) bool {
	t := v.jsonType
	from := c.byType[t]
	var tag *Value
	switch {
	case t == typeString && c.byString != nil:
		if named, ok := c.byString[v.string()]; ok {
			from = named
		}
	case t == typeObject && c.tag != "":
		if tag = v.child(c.tag); tag.kind() == typeString {
			if named, ok := c.byTag[tag.string()]; ok {
				from = named
			}
		}
	}
	if len(from) == 1 {
		return from[0].precheck.admits(v)
	}
	if t < typeArray {
		return !c.exclusive && slices.ContainsFunc(from, func(a alternative) bool { return a.precheck.admits(v) })
	}
	var only *alternative
	for i := range from {
		if from[i].excludes(v, tag) {
			continue
		}
		if only != nil {
			return false
		}
		only = &from[i]
	}
	return only != nil && only.precheck.admits(v)
}

// admits reports whether the value is certainly valid. No member in it may occur twice.
func (p *precheck) admits(v *Value) bool {
	if p == nil {
		return true
	}
	if p.choice != nil {
		return p.choice.admits(v)
	}
	switch v.jsonType {
	case typeNumber:
		return p.number(v.raw(), v.flags&fractional != 0)
	case typeString:
		return p.types.has(typeString) && p.string(v)
	case typeArray:
		return p.types.has(typeArray) && p.array(v)
	case typeObject:
		return p.types.has(typeObject) && p.object(v)
	}
	return p.types.has(v.jsonType) && len(p.strings) == 0
}

// number checks a number by its text. Long numbers are left to the library.
func (p *precheck) number(text string, fractional bool) bool {
	const most = 18 // digits that always fit an int64
	if len(p.strings) > 0 || len(text) > most {
		return false
	}
	whole, fraction := text, false
	if fractional {
		// Without an exponent, the value lies between two adjacent integers.
		if whole, _, fraction = strings.Cut(text, "."); !fraction || strings.ContainsAny(text, "eE") {
			return false
		}
	}
	if fractional && (p.whole || !p.types.has(typeNumber)) || p.types&wholeNumber == 0 {
		return false
	}
	if !p.bounded {
		return true
	}
	low, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return false
	}
	high := low
	switch {
	case fraction && text[0] == '-':
		low--
	case fraction:
		high++
	}
	return p.least <= low && high <= p.most
}

func (p *precheck) string(v *Value) bool {
	if len(p.strings) == 0 && p.minLength == 0 && len(p.formats) == 0 {
		return true
	}
	text := v.string()
	for _, list := range p.strings {
		if !slices.Contains(list, text) {
			return false
		}
	}
	if p.minLength > 0 && utf8.RuneCountInString(text) < p.minLength {
		return false
	}
	for _, check := range p.formats {
		if !check(text) {
			return false
		}
	}
	return true
}

func (p *precheck) array(v *Value) bool {
	if len(p.strings) > 0 {
		return false
	}
	if p.items == nil && p.minItems == 0 {
		return true
	}
	nodes, count := v.document.nodes, 0
	for i := v.at + 1; i < v.next; i = nodes[i].next {
		if !p.items.admits(&nodes[i]) {
			return false
		}
		count++
	}
	return count >= p.minItems
}

func (p *precheck) object(v *Value) bool {
	if len(p.strings) > 0 {
		return false
	}
	nodes, required := v.document.nodes, 0
	for i := v.at + 1; i < v.next; i = nodes[i].next {
		name := nodes[i].name()
		m := p.members[name]
		if m.required {
			required++
		}
		switch {
		case m.declared:
			if !m.precheck.admits(&nodes[i]) {
				return false
			}
		case p.values != nil:
			if !p.values.admits(&nodes[i]) {
				return false
			}
		case !p.extra && name != "_meta":
			return false
		}
	}
	if required < p.required {
		return false
	}
	return !slices.ContainsFunc(p.not, func(t tagged) bool { return t.matches(v) })
}

// refusal admits nothing. It is for schemas with keywords that prechecks do not support.
var refusal = &precheck{}

// maxPrechecks bounds the number of prechecks of a schema, because nested unions need many.
const maxPrechecks = 1 << 13

// prechecker builds the prechecks of a schema's definitions, each once.
type prechecker struct {
	made map[string]*precheck
	ids  map[any]int // of schemas and unions, for the keys of prechecks
}

func newPrechecker() *prechecker {
	return &prechecker{made: map[string]*precheck{}, ids: map[any]int{}}
}

// pick is a chosen branch of a union.
type pick struct {
	union  *union
	branch int
}

// precheck returns the precheck of the schemas that apply to the same value, if the value belongs to the picked
// branches.
func (b *prechecker) precheck(at []*jsonschema.Schema, picked []pick) *precheck {
	if len(picked) == 0 && !slices.ContainsFunc(at, func(s *jsonschema.Schema) bool { return !anything(s) || never(s) }) {
		return nil
	}
	key := b.key(at, picked)
	if p, ok := b.made[key]; ok {
		return p
	}
	if len(b.made) >= maxPrechecks {
		return refusal
	}
	all := conjunction{picked: picked}
	for _, s := range at {
		all.add(s)
	}
	if all.unknown {
		b.made[key] = refusal
		return refusal
	}
	p := &precheck{}
	b.made[key] = p // before those below it, which may be identical
	if len(all.open) > 0 {
		p.choice = b.choice(all.open[0], at, picked)
		return p
	}
	p.types, p.extra = allTypes, all.extra
	p.least, p.most = math.MinInt64, math.MaxInt64
	for _, s := range all.parts {
		p.demand(s)
	}
	b.addBelow(p, all.parts)
	return p
}

// key returns a key that is equal for the same schemas and branches.
func (b *prechecker) key(at []*jsonschema.Schema, picked []pick) string {
	var key []byte
	id := func(of any, after byte) {
		n, ok := b.ids[of]
		if !ok {
			n = len(b.ids)
			b.ids[of] = n
		}
		key = append(strconv.AppendInt(key, int64(n), 10), after)
	}
	for _, s := range at {
		id(s, ' ')
	}
	for _, p := range picked {
		id(p.union, '/')
		key = append(strconv.AppendInt(key, int64(p.branch), 10), ' ')
	}
	return string(key)
}

// conjunction combines the schemas that apply to a value and those that they refer to.
type conjunction struct {
	picked  []pick
	parts   []*jsonschema.Schema
	open    []*union // the unions of which no branch was picked yet
	extra   bool     // members that no part declares are valid
	unknown bool     // there is something that prechecks do not support
}

func (c *conjunction) add(s *jsonschema.Schema) {
	if slices.Contains(c.parts, s) || !precheckable(s) {
		c.unknown = true // a schema that is visited twice may refer to itself
		return
	}
	c.parts = append(c.parts, s)
	c.extra = c.extra || anything(s) || s.AdditionalProperties == true || s.UnevaluatedProperties != nil
	if s.Ref != nil {
		c.add(s.Ref)
	}
	for _, below := range s.AllOf {
		c.add(below)
	}
	for _, u := range keywordsOf(s).unions {
		i := slices.IndexFunc(c.picked, func(p pick) bool { return p.union == u })
		if i < 0 {
			c.open = append(c.open, u)
			continue
		}
		c.add(u.branches[c.picked[i].branch].schema)
	}
}

// precheckable reports whether prechecks support all keywords of a schema.
func precheckable(s *jsonschema.Schema) bool {
	k, ours := s.Extensions[extension].(*keywords)
	switch {
	case never(s),
		len(s.Constant) > 0 && !isString(s.Constant[0]),
		!precheckableFormat(s.Format),
		s.Not != nil && taggedObjects(s.Not) == nil,
		s.AdditionalProperties != nil && s.AdditionalProperties != true,
		s.UnevaluatedProperties != nil && (s.UnevaluatedProperties.Always == nil || never(s.UnevaluatedProperties)),
		!wholeBound(s.Minimum),
		!wholeBound(s.Maximum),
		s.Extensions != nil && (!ours || len(s.Extensions) > 1 || k.prefix > 0):
		return false
	}
	rest := *s
	rest.Always, rest.Types, rest.Constant, rest.Format, rest.Not, rest.Extensions = nil, nil, nil, "", nil, nil
	rest.Properties, rest.Required, rest.AdditionalProperties, rest.UnevaluatedProperties = nil, nil, nil, nil
	rest.MinItems, rest.MinLength, rest.Minimum, rest.Maximum = -1, -1, nil, nil
	rest.ContentEncoding, rest.ContentMediaType = "", "" // the library does not assert these
	return !demands(&rest)
}

func isString(v any) bool {
	_, ok := v.(string)
	return ok
}

// precheckableFormat reports whether prechecks support a format. A format that the library does not know either demands
// nothing.
func precheckableFormat(name string) bool {
	_, whole := wholeFormats[name]
	return formats[name] == nil || whole || name == "double" || name == "regex"
}

// wholeBound reports whether a bound is absent or an integer that fits an int64.
func wholeBound(r *big.Rat) bool { return r == nil || r.IsInt() && r.Num().IsInt64() }

// taggedObjects returns a description of the objects that a schema accepts, or nil if it accepts anything but objects
// that have one of some strings as a member.
func taggedObjects(s *jsonschema.Schema) []tagged {
	k := keywordsOf(s)
	rest := *s
	rest.Extensions = nil
	if demands(&rest) || s.Ref != nil || len(s.AllOf) > 0 || len(k.unions) != 1 || k.items != nil || k.values != nil || k.unions[0].exclusive {
		return nil
	}
	var all []tagged
	for _, b := range k.unions[0].branches {
		t, ok := taggedObject(b.schema)
		if !ok {
			return nil
		}
		i := slices.IndexFunc(all, func(o tagged) bool { return o.member == t.member })
		if i < 0 {
			all = append(all, t)
			continue
		}
		all[i].values = append(all[i].values, t.values...)
	}
	return all
}

func taggedObject(s *jsonschema.Schema) (t tagged, ok bool) {
	if !slices.Equal(s.Types, []string{"object"}) || len(s.Required) != 1 || len(s.Properties) != 1 {
		return tagged{}, false
	}
	name := s.Required[0]
	member := s.Properties[name]
	rest := *s
	rest.Types, rest.Required, rest.Properties = nil, nil, nil
	if member == nil || demands(&rest) || s.Ref != nil || len(s.AllOf) > 0 {
		return tagged{}, false
	}
	tag, ok := constant(member)
	rest = *member
	rest.Constant = nil
	if slices.Equal(rest.Types, []string{"string"}) {
		rest.Types = nil
	}
	if !ok || demands(&rest) || member.Ref != nil || len(member.AllOf) > 0 {
		return tagged{}, false
	}
	return tagged{name, []string{tag}}, true
}

// demand adds the demands of a schema on the value itself.
func (p *precheck) demand(s *jsonschema.Schema) {
	p.types &= typesOf(s.Types)
	if len(s.Constant) > 0 {
		p.strings = append(p.strings, []string{s.Constant[0].(string)})
	}
	p.format(s.Format)
	p.minLength = max(p.minLength, s.MinLength)
	p.minItems = max(p.minItems, s.MinItems)
	if s.Minimum != nil {
		p.bound(s.Minimum.Num().Int64(), math.MaxInt64)
	}
	if s.Maximum != nil {
		p.bound(math.MinInt64, s.Maximum.Num().Int64())
	}
	if s.Not != nil {
		p.not = append(p.not, taggedObjects(s.Not)...)
	}
}

func (p *precheck) bound(least, most int64) {
	p.bounded, p.least, p.most = true, max(p.least, least), min(p.most, most)
}

// format adds a format. Numbers that are too long for a float64 are not admitted anyway.
func (p *precheck) format(name string) {
	if b, ok := wholeFormats[name]; ok {
		p.whole = true
		p.bound(b.least, b.most)
	} else if check := jsonschema.Formats[name]; check != nil && formats[name] == nil {
		p.formats = append(p.formats, check)
	}
}

// addBelow adds the demands of the schemas on members and elements.
func (b *prechecker) addBelow(p *precheck, parts []*jsonschema.Schema) {
	var items, values []*jsonschema.Schema
	p.members = map[string]memberPrecheck{}
	declared := map[string][]*jsonschema.Schema{}
	for _, s := range parts {
		k := keywordsOf(s)
		items, values = include(items, k.items), include(values, k.values)
		for name := range s.Properties {
			declared[name] = nil
		}
		for _, name := range s.Required {
			p.members[name] = memberPrecheck{required: true}
		}
	}
	p.required = len(p.members)
	for name := range declared {
		var schemas []*jsonschema.Schema
		for _, s := range parts {
			if own := s.Properties[name]; own != nil {
				schemas = include(schemas, own)
			} else {
				schemas = include(schemas, keywordsOf(s).values)
			}
		}
		p.members[name] = memberPrecheck{b.precheck(schemas, nil), true, p.members[name].required}
	}
	if len(items) > 0 {
		p.items = b.precheck(items, nil)
	}
	if len(values) > 0 {
		p.values, p.extra = b.precheck(values, nil), true
	}
}

// include appends a schema to a set, unless it is nil.
func include(set []*jsonschema.Schema, s *jsonschema.Schema) []*jsonschema.Schema {
	if s == nil || slices.Contains(set, s) {
		return set
	}
	return append(set, s)
}

// choice returns the precheck of a union, for values to which the schemas in at apply too.
func (b *prechecker) choice(u *union, at []*jsonschema.Schema, picked []pick) *choicePrecheck {
	c := &choicePrecheck{exclusive: u.exclusive, tag: u.tag}
	alternatives := make([]alternative, len(u.branches))
	for i := range u.branches {
		a := alternative{branch: &u.branches[i], tag: allTypes}
		a.precheck = b.precheck(at, append(slices.Clip(picked), pick{u, i}))
		var own, elements conjunction
		own.add(a.branch.schema)
		for _, s := range own.parts {
			if s.Not != nil {
				a.not = append(a.not, taggedObjects(s.Not)...)
			}
			if tag := s.Properties[u.tag]; tag != nil && u.tag != "" {
				a.tag &= typesOf(tag.Types).numbers()
			}
			if items := keywordsOf(s).items; items != nil {
				elements.add(items)
			}
		}
		for _, s := range elements.parts {
			a.required = append(a.required, s.Required...)
		}
		alternatives[i] = a
	}
	only := func(from []alternative, which func(alternative) bool) (some []alternative) {
		for _, a := range from {
			if which(a) {
				some = append(some, a)
			}
		}
		return some
	}
	for t := typeNull; t < typeCount; t++ {
		c.byType[t] = only(alternatives, func(a alternative) bool {
			return typesOf(a.branch.types).numbers().has(t) && (t == typeString || !isString(a.branch.constant))
		})
	}
	named := c.byType[typeString]
	c.byType[typeString] = only(named, func(a alternative) bool { return !isString(a.branch.constant) })
	for _, a := range named {
		if text, ok := a.branch.constant.(string); ok {
			if c.byString == nil {
				c.byString = map[string][]alternative{}
			}
			c.byString[text] = only(named, func(a alternative) bool { return !isString(a.branch.constant) || a.branch.constant == text })
		}
	}
	for tag := range u.byTag {
		if c.byTag == nil {
			c.byTag = map[string][]alternative{}
		}
		c.byTag[tag] = only(c.byType[typeObject], func(a alternative) bool {
			own, named := a.branch.tags[u.tag]
			return own == tag || !named && !slices.ContainsFunc(a.not, func(t tagged) bool {
				return t.member == u.tag && slices.Contains(t.values, tag)
			})
		})
	}
	return c
}
