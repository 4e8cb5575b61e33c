// The choices of a schema become unions: the names of their variants, the content of each, and the member or kind of
// value by which a decoder distinguishes variants without a tag. Variants that can only be distinguished by trying are
// an error.

package gen

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/acpgo/sdk/internal/gen/model"
	"github.com/acpgo/sdk/internal/gen/schema"
)

// maxNames is the maximum number of members of the variants of a choice that is itself a variant.
const maxNames = 1000

// maxUntagged is the maximum number of variants of a union without a tag: each has code for the members of all others.
const maxUntagged = 500

// A branch is one of the alternatives of a choice.
type branch struct {
	node *schema.Node
	own  *schema.Node // its own keywords, nil if there are none
	refs []string     // the definitions that it refers to for the rest
	form *schema.Node // both together, without null
	kind string       // of its values
}

// branches returns the alternatives without null.
func (b *builder) branches(nodes []*schema.Node) []*branch {
	var out []*branch
	for _, n := range nodes {
		form, _ := b.form(n)
		if form == nil {
			continue
		}
		if at, ok := form.Impossible(); ok {
			b.problem(at, "no value fits the schema")
			continue
		}
		br := &branch{node: n, form: form, kind: b.kindOf(form)}
		br.own, br.refs = b.shapes.Parts(n)
		out = append(out, br)
	}
	return out
}

func (b *builder) fillUnion(u *model.Union, n *schema.Node) {
	used := []string{"type", "oneOf", "anyOf", "properties", "required", "additionalProperties"}
	if rest := n.UnevaluatedProperties; rest != nil && rest.Bool != nil && !*rest.Bool {
		used = append(used, "unevaluatedProperties") // unknown members are dropped
	}
	b.take(n, "a choice", used...)
	reported := len(b.problems)
	choices := b.branches(n.Branches())
	var beside []*branch
	if len(choices) == 0 {
		if len(b.problems) == reported {
			b.problem(n.Pointer, "a choice of nothing but null has no Go shape")
		}
		return
	}
	if len(n.OneOf) > 0 && len(n.AnyOf) > 0 {
		choices, beside = b.branches(n.OneOf), b.branches(n.AnyOf)
		if b.tagOf(n, choices) == "" || b.tagOf(n, beside) != "" {
			b.problem(n.Pointer, "oneOf and anyOf on one schema need a tag in oneOf and none in anyOf")
			return
		}
	}
	if beside == nil {
		choices = b.spread(n, choices)
	}
	u.Tag = b.tagOf(n, choices)
	discriminated := b.discriminated(u, n, choices)
	if discriminated {
		n = b.shapes.Require(n, u.Tag)
	}
	if beside == nil && (discriminated || b.shared(u, n, choices)) {
		n = b.shapes.Distribute(n)
		if at, ok := n.Impossible(); ok {
			b.problem(at, "no value fits the schema")
			return
		}
		choices = b.branches(n.Branches())
		u.Tag = b.tagOf(n, choices)
	}
	if u.Tag == "" && len(n.OneOf) > 0 {
		b.exclude(choices)
	}
	b.checkClosed(n, slices.Concat(choices, beside))
	u.Fields = b.fields(u, n, u.Tag)
	if beside != nil {
		u.Fields = append(u.Fields, b.flat(u, n, beside))
	}
	if p := n.Property(u.Tag); p != nil && u.Tag != "" {
		_, u.TagNull = b.shapes.Of(p).Kinds()
		u.TagLenient = p.DefaultOnError
	}
	b.variants(u, n, choices)
	for _, v := range u.Variants {
		if v.Type != nil && u.Merged() {
			b.problem(v.Pointer, "what stands beside the members of an object must be one with known members")
		}
	}
	if u.Untagged != nil && u.Untagged.Inline && u.TagNull {
		keepNull(u)
	} else {
		u.TagLenient = false
	}
}

// discriminated reports whether n says that the tag distinguishes its branches although some do not require it.
// Pydantic generates such schemas for tags with a default, but does not accept values without the tag.
func (b *builder) discriminated(u *model.Union, n *schema.Node, choices []*branch) bool {
	if u.Tag == "" || u.Tag != n.Discriminator {
		return false
	}
	optional := false
	for _, br := range choices {
		if _, ok := b.constantOf(br.form, u.Tag); !ok {
			return false
		}
		optional = optional || !br.form.Requires(u.Tag)
	}
	return optional
}

// shared reports whether the keywords next to the choice are about more than members that no branch mentions and the
// tag as an arbitrary string. In that case, they are part of each branch.
func (b *builder) shared(u *model.Union, n *schema.Node, choices []*branch) bool {
	if n.AdditionalProperties != nil && others(n) != nil {
		return true
	}
	for _, name := range n.Required {
		if n.Property(name) == nil {
			return true
		}
	}
	if len(n.Properties) > 0 && slices.ContainsFunc(choices, func(br *branch) bool { return b.members(br.form).strict }) {
		return true
	}
	for _, p := range n.Properties {
		if p.Name == u.Tag {
			form := b.shapes.Of(p.Node)
			if kinds, _ := form.Kinds(); !form.Any() && (!slices.Equal(kinds, []string{"string"}) || len(form.Asserted()) > 1) {
				return true
			}
			untagged := func(br *branch) bool { return br.form.Property(u.Tag) == nil }
			if n.Requires(u.Tag) && slices.ContainsFunc(choices, untagged) {
				return true
			}
			continue
		}
		if _, never := b.shapes.Of(p.Node).Impossible(); never {
			return true
		}
		for _, br := range choices {
			if b.members(br.form).all[p.Name] {
				return true
			}
		}
	}
	return false
}

// spread returns the branches of a choice so that each has one tag, if they have a tag: a branch that is only a choice
// is replaced by its branches, unless the others have a tag without them, and one with several tags by one for each.
func (b *builder) spread(n *schema.Node, choices []*branch) []*branch {
	reported := len(b.problems)
	defer func() { b.problems = b.problems[:reported] }()
	tag, all := b.tagOf(n, choices), choices
	if tag == "" {
		all = nil
		for _, br := range choices {
			if inner := br.form.Branches(); br.kind == "object" && len(inner) > 0 && len(br.form.Asserted()) == 1 {
				all = append(all, b.branches(inner)...)
			} else {
				all = append(all, br)
			}
		}
		if tag = b.tagOf(n, all); tag == "" {
			tag = b.listedTag(all)
		}
	}
	var out []*branch
	for _, br := range all {
		values := b.tags(br, tag)
		if len(values) < 2 {
			out = append(out, br)
			continue
		}
		for _, value := range values {
			out = append(out, b.branches([]*schema.Node{b.shapes.Pin(br.node, tag, value)})...)
		}
	}
	if len(all) > len(choices) && slices.ContainsFunc(out, func(br *branch) bool { return len(b.tags(br, tag)) != 1 }) {
		return choices
	}
	return b.nest(n, out, tag)
}

// nest combines the branches with the same tag into one, if another member tells these apart.
func (b *builder) nest(n *schema.Node, choices []*branch, tag string) []*branch {
	value := func(br *branch) (value string) {
		if len(b.tags(br, tag)) == 1 {
			value, _ = b.constantOf(br.form, tag)
		}
		return value
	}
	groups := map[string][]*schema.Node{}
	for _, br := range choices {
		if tag := value(br); tag != "" {
			groups[tag] = append(groups[tag], br.node)
		}
	}
	var out []*branch
	for _, br := range choices {
		group := groups[value(br)]
		if len(group) < 2 {
			out = append(out, br)
			continue
		}
		if br.node != group[0] {
			continue
		}
		var rest []*schema.Node
		for _, same := range b.branches(group) {
			rest = append(rest, b.shapes.WithoutMember(same.form, tag))
		}
		if b.tagOf(n, b.branches(rest)) == "" {
			return choices
		}
		out = append(out, b.branches([]*schema.Node{b.shapes.Group(n, tag, br.form.Property(tag), rest)})...)
	}
	return out
}

// listedTag returns the first member for which each branch lists strings.
func (b *builder) listedTag(choices []*branch) string {
	for _, p := range choices[0].form.Properties {
		if !slices.ContainsFunc(choices, func(br *branch) bool { return len(b.tags(br, p.Name)) == 0 }) {
			return p.Name
		}
	}
	return ""
}

// tags returns the strings that a branch lists for a member that it requires. If it is only one, it is left out.
func (b *builder) tags(br *branch, name string) (out []json.RawMessage) {
	p := br.form.Property(name)
	if p == nil || br.kind != "object" || !br.form.Requires(name) {
		return nil
	}
	form := b.shapes.Full(p)
	if _, ok := b.tagValue(p); ok {
		return make([]json.RawMessage, 1)
	}
	if form == nil || len(form.Branches()) > 0 {
		return nil
	}
	for _, raw := range form.Enum {
		if schema.KindOfValue(raw) != "string" {
			return nil
		}
	}
	return form.Enum
}

// exclude forbids the member in each branch of a oneOf that it would need to match another branch with the same members
// as well.
func (b *builder) exclude(choices []*branch) {
	same := func(a, b schema.Property) bool { return a.Name == b.Name && a.Node == b.Node }
	forms := make([]*schema.Node, len(choices))
	for i, br := range choices {
		forms[i] = br.form
		for _, other := range choices {
			more := slices.DeleteFunc(slices.Clone(other.form.Required), br.form.Requires)
			if br.kind == "object" && len(more) == 1 && slices.EqualFunc(br.form.Properties, other.form.Properties, same) {
				forms[i] = b.shapes.Forbid(forms[i], more[0])
			}
		}
	}
	for i, br := range choices {
		br.form = forms[i]
	}
}

// checkClosed reports a choice between members that the keywords next to it do not allow.
func (b *builder) checkClosed(n *schema.Node, choices []*branch) {
	if n.AdditionalProperties == nil {
		return
	}
	for _, br := range choices {
		for name := range b.members(br.form).all {
			if n.Property(name) == nil {
				b.problem(n.At("additionalProperties"), "it also forbids the members of %s", br.node.Pointer)
				return
			}
		}
	}
}

// keepNull gives the untagged variant of u a member for a tag that is null, and, if u is lenient, for a tag that is not
// a string.
func keepNull(u *model.Union) {
	s := u.Untagged.Payload.(*model.Struct)
	s.Fields = append(s.Fields, &model.Field{
		Common: model.Common{Pointer: s.Pointer, Doc: "It is null if it is there: a value makes another variant."},
		JSON:   u.Tag, Type: model.Null{}, Presence: model.Tri, Nullable: true, OnError: u.TagLenient,
	})
}

// flat declares the union of a second choice in the object of u, and the field for it.
func (b *builder) flat(u *model.Union, n *schema.Node, choices []*branch) *model.Field {
	inner := &model.Union{Common: model.Common{Pointer: n.At("anyOf"), Owner: u, Part: "anyOf"}}
	b.pkg.Decls = append(b.pkg.Decls, inner)
	b.variants(inner, n, choices)
	for _, v := range inner.Variants {
		if _, ok := v.Payload.(*model.Struct); !ok {
			b.problem(v.Pointer, "a second choice must be between objects")
		}
	}
	return &model.Field{Common: model.Common{Pointer: inner.Pointer}, Type: model.Named{Decl: inner}, Flat: true}
}

// variants adds the variants of u, which the branches of n describe.
func (b *builder) variants(u *model.Union, n *schema.Node, choices []*branch) {
	if u.Tag != "" && slices.ContainsFunc(choices, func(br *branch) bool { return br.kind != "object" }) {
		choices = b.groupObjects(u, n, choices)
	}
	if u.Tag != "" {
		u.Unknown = &model.Variant{Common: model.Common{Pointer: n.Pointer, Owner: u, Part: "unknown"}, Union: u}
	}
	var described []*branch // one for each variant
	tags := map[string]string{}
	var open []*branch
	for _, br := range choices {
		v, isOpen := b.variant(u, br, tags)
		if isOpen {
			open = append(open, br)
		}
		if v == nil {
			continue
		}
		u.Variants = append(u.Variants, v)
		described = append(described, br)
	}
	b.checkOpen(u, open, tags)
	b.checkUntagged(u, described)
	if u.Tag == "" && len(described) > maxUntagged {
		b.problem(u.Pointer, "more than %d variants without a tag have no Go shape", maxUntagged)
	} else if u.Tag == "" {
		b.tellApart(u, described, len(n.OneOf) > 0)
	}
	b.checkMapping(u, n, choices)
	for i, v := range u.Variants {
		v.Part = cmp.Or(v.Part, v.Key)
		if v.Part == "" && v == u.Untagged {
			v.Part = b.ownMember(described, i)
		}
		if v.Part == "" && described[i].kind != "any" {
			v.Part = described[i].kind
		}
		if v.Inline {
			v.Payload.Base().Part = v.Part
		}
		if v.Part == "" {
			b.problem(v.Pointer, "the variant has no tag, title, payload or member to name it by")
		}
	}
}

// groupObjects combines the branches that are objects, which have a tag, into one branch that is a union of its own.
// Then u itself has no tag.
func (b *builder) groupObjects(u *model.Union, n *schema.Node, choices []*branch) []*branch {
	var objects []*schema.Node
	isObject := func(br *branch) bool { return br.kind == "object" }
	for _, br := range choices {
		if isObject(br) {
			objects = append(objects, br.node)
		}
	}
	u.Tag = ""
	group := b.shapes.Choice(n, objects)
	inner := &branch{node: group, own: group, form: group, kind: "object"}
	first := slices.IndexFunc(choices, isObject)
	return slices.Insert(slices.DeleteFunc(slices.Clone(choices), isObject), first, inner)
}

// tagOf returns the property whose constants name the variants, or "" if there is none. It is the property for which
// most branches have a string, if each other branch leaves it open or does not have it. If only definitions that the
// branches refer to have it, at least two must.
func (b *builder) tagOf(n *schema.Node, choices []*branch) string {
	own := func(br *branch) *schema.Node { return br.own }
	all := func(br *branch) *schema.Node { return br.form }
	if name := b.tagAmong(n, choices, own, 1); name != "" {
		return name
	}
	return b.tagAmong(n, choices, all, 2)
}

// tagAmong implements tagOf for the schemas that of returns. At least the given number of them must have the property.
func (b *builder) tagAmong(n *schema.Node, choices []*branch, of func(*branch) *schema.Node, least int) string {
	var names []string
	count := map[string]int{}
	for _, br := range choices {
		form := of(br)
		if form == nil || br.kind != "object" {
			continue
		}
		for _, p := range form.Properties {
			if _, ok := b.tagValue(p.Node); ok {
				names = append(names, p.Name)
				count[p.Name]++
			}
		}
	}
	best, tie := "", false
	for _, name := range names {
		switch {
		case name == best:
		case count[name] > count[best]:
			best, tie = name, false
		case count[name] == count[best]:
			tie = true
		}
	}
	if count[best] < least {
		return ""
	}
	if d := n.Discriminator; tie && count[d] == count[best] {
		return d
	}
	if tie {
		b.problem(n.Pointer, "the variants have more than one constant member in common")
	}
	return best
}

// tagValue returns the only string that a member allows.
func (b *builder) tagValue(n *schema.Node) (string, bool) {
	form := b.shapes.Full(n)
	if form == nil {
		return "", false
	}
	if branches := form.Branches(); len(branches) == 1 {
		form = branches[0]
	}
	raw, ok := constant(form)
	var s string
	return s, ok && json.Unmarshal(raw, &s) == nil
}

// constantOf returns the only string that a form allows for a member, if the form has that member.
func (b *builder) constantOf(form *schema.Node, member string) (string, bool) {
	if p := form.Property(member); p != nil {
		return b.tagValue(p)
	}
	return "", false
}

// variant returns the variant that br describes, or nil if br is open, that is, for all tags other than the listed
// ones. The listed tags and their places are in tags.
func (b *builder) variant(u *model.Union, br *branch, tags map[string]string) (v *model.Variant, open bool) {
	n := br.node
	v = &model.Variant{Union: u, Common: model.Common{Pointer: n.Pointer, Doc: n.Description, Deprecated: n.Deprecated,
		Owner: u, Part: n.Title}}
	if u.Tag != "" {
		if tag := br.form.Property(u.Tag); tag != nil {
			form := b.shapes.Of(tag)
			value, isConst := b.tagValue(tag)
			_, never := form.Impossible()
			required := br.form.Requires(u.Tag)
			if isConst && form.Ref() == "" && len(form.Branches()) == 0 {
				b.take(form, "a tag", "type", "const", "enum")
			}
			switch {
			case isConst:
				v.Tag, v.Tagged = value, true
				if v.Part == "" || required {
					v.Part = cmp.Or(value, "empty")
				}
				if at, ok := tags[value]; ok {
					b.problem(n.Pointer, "the variant shares its tag %q with the one at %s", value, at)
				}
				tags[value] = n.Pointer
				if required {
					b.content(v, br)
					return v, false
				}
			case never:
			case isNull(form):
				u.TagNull = true
				if required {
					b.problem(tag.Pointer, "a tag that must be null has no Go shape")
				}
			case required && slices.Equal(form.Asserted(), []string{"type", "not"}) || required && len(form.Except()) > 0:
				u.Unknown.Pointer, u.Unknown.Doc = n.Pointer, n.Description
				u.Open = true
				b.takeOpen(u, br)
				u.UnknownHas = b.required(br.form, u.Tag)
				return nil, true
			default:
				b.problem(tag.Pointer, "the tag is neither a constant nor left open by a not")
				return nil, false
			}
		}
		if u.Untagged != nil {
			b.problem(n.Pointer, "a second variant without the tag %q", u.Tag)
		}
		u.Untagged = v
	}
	b.content(v, br)
	return v, false
}

// checkUntagged checks what the variant without a tag says about a tag that is present nevertheless.
func (b *builder) checkUntagged(u *model.Union, described []*branch) {
	i := slices.Index(u.Variants, u.Untagged)
	if i < 0 {
		return
	}
	form := described[i].form
	if form.Property(u.Tag) != nil {
		return
	}
	if len(form.Branches()) > 0 {
		for j, br := range described {
			if names := b.members(br.form).required; j != i && len(names) > 1 {
				b.problem(br.node.Pointer, "a variant that requires members has no Go shape beside a choice without the tag %q",
					u.Tag)
			}
		}
		return
	}
	more := form.AdditionalProperties
	u.Untagged.Closed = more != nil && more.Bool != nil && !*more.Bool
	if u.KeepsTag() && others(form) != nil {
		b.problem(u.Untagged.Pointer, "the tag %q is one of the members that the variant without a tag keeps", u.Tag)
	}
}

// takeOpen reports keywords next to the choice that became part of the variant for other tags. Values of that variant
// are kept unchanged, whatever it says about their members itself.
func (b *builder) takeOpen(u *model.Union, br *branch) {
	own, _ := b.form(b.shapes.Undistributed(br.node))
	if own == nil {
		return
	}
	for _, p := range b.shapes.Members(br.form) {
		if p.Name == u.Tag {
			continue
		}
		if own.Requires(p.Name) != br.form.Requires(p.Name) || own.Property(p.Name) != br.form.Property(p.Name) {
			b.problem(p.Pointer, "the member %q has no Go shape on the variant for other tags at %s", p.Name, br.node.Pointer)
		}
	}
}

// required returns the members that objects of a form must have in addition to the tag.
func (b *builder) required(form *schema.Node, tag string) (out []model.Member) {
	for _, name := range form.Required {
		if name == tag {
			continue
		}
		m := model.Member{Name: name}
		if p := form.Property(name); p != nil {
			form, null := b.form(p)
			if form != nil && !b.kindsOf(form)["any"] {
				m.Kinds = slices.Sorted(maps.Keys(b.kindsOf(form)))
			}
			if null && (form == nil || m.Kinds != nil) {
				m.Kinds = append(m.Kinds, "null")
			}
		}
		out = append(out, m)
	}
	return out
}

// checkOpen reports branches for tags other than the listed ones, unless they are for all others.
func (b *builder) checkOpen(u *model.Union, open []*branch, tags map[string]string) {
	for i, br := range open {
		form := b.shapes.Of(br.form.Property(u.Tag))
		if i > 0 {
			b.problem(br.node.Pointer, "a second variant for tags that are not listed")
			continue
		}
		excluded := map[string]bool{}
		for _, raw := range form.Except() {
			var s string
			if json.Unmarshal(raw, &s) == nil {
				excluded[s] = true
			}
		}
		for _, tag := range slices.Sorted(maps.Keys(tags)) {
			if !excluded[tag] {
				b.problem(form.At("not"), "it does not exclude the tag %q, which %s has", tag, tags[tag])
			}
		}
		if kinds, null := form.Kinds(); null || !slices.Equal(kinds, []string{"string"}) || len(form.Asserted()) != 2 {
			b.problem(form.Pointer, "the tags that are not listed must be any strings")
		}
	}
}

// checkMapping reports a discriminator's mapping that contradicts the tags.
func (b *builder) checkMapping(u *model.Union, n *schema.Node, choices []*branch) {
	for _, value := range slices.Sorted(maps.Keys(n.Mapping)) {
		at := n.Pointer + "/discriminator/mapping/" + schema.Escape(value)
		name, _, ok := schema.DefinitionOf(n.Mapping[value])
		if !ok {
			name = n.Mapping[value]
		}
		same := slices.ContainsFunc(choices, func(br *branch) bool {
			tag, isConst := b.constantOf(br.form, n.Discriminator)
			return slices.Contains(br.refs, name) && n.Discriminator != "" && isConst && tag == value
		})
		if !same {
			b.problem(at, "the branch that it names does not have this value as a constant")
		}
	}
}

// content determines the content of the variant.
func (b *builder) content(v *model.Variant, br *branch) {
	u := v.Union
	if payload := b.payload(v, br); payload != nil {
		v.Payload = payload
		return
	}
	form := br.form
	switch {
	case len(br.refs) == 1 && br.own == nil && (br.kind != "object" || u.Tag == ""):
		v.Type = b.refType(br.refs[0]) // no object, or one without known members
		v.Part = cmp.Or(v.Part, br.refs[0])
	case len(form.Branches()) > 0 && br.kind == "object":
		v.Part = cmp.Or(v.Part, "object")
		if v == u.Untagged && v.Tagged {
			b.problem(br.node.Pointer, "a tag that may be missing beside a choice has no Go shape")
		}
		inner := form
		if u.Tag != "" && form.Property(u.Tag) != nil {
			inner = b.shapes.WithoutMember(form, u.Tag)
		}
		named, ok := b.inPlace(inner, u, v.Part).(model.Named)
		if !ok {
			v.Type = model.Any{}
			return // already reported
		}
		d := named.Decl
		if u.Tag != "" && b.members(inner).all[u.Tag] {
			b.problem(br.node.Pointer, "a choice whose variants have the tag %q among their members has no Go shape", u.Tag)
		}
		if u.Tag != "" && b.members(inner).open {
			b.problem(br.node.Pointer, "a choice whose variants would keep the tag %q as one of any members has no Go shape",
				u.Tag)
		}
		if b.isMembers(d) {
			v.Payload = d
		} else {
			v.Type = model.Named{Decl: d}
		}
	case u.Tag != "" || br.kind == "object" && (len(form.Properties) > 0 || u.Merged()):
		tag := u.Tag
		if v == u.Untagged && v.Tagged { // the tag may be missing
			tag = ""
			v.OwnTag = true
		}
		s := &model.Struct{Common: model.Common{Pointer: br.node.Pointer, Doc: v.Doc, Owner: u, Part: v.Part}, Variant: v}
		b.pkg.Decls = append(b.pkg.Decls, s)
		b.fillStruct(s, form, tag)
		v.Payload, v.Inline, v.Refs = s, true, br.refs
	default:
		v.Type, _ = b.typeOf(form, u, cmp.Or(v.Part, br.kind))
	}
}

// payload returns the declaration that a branch refers to, if the branch has nothing else except the tag.
func (b *builder) payload(v *model.Variant, br *branch) model.Decl {
	u := v.Union
	if len(br.refs) != 1 || br.kind != "object" {
		return nil
	}
	if own := br.own; own != nil {
		for _, k := range own.Asserted() {
			switch k {
			case "type":
			case "properties":
				if len(own.Properties) != 1 || own.Properties[0].Name != u.Tag || u.Tag == "" {
					return nil
				}
			case "required":
				if !slices.Equal(own.Required, []string{u.Tag}) || u.Tag == "" {
					return nil
				}
			default:
				return nil
			}
		}
	}
	named, ok := b.refType(br.refs[0]).(model.Named)
	if !ok || !b.isMembers(named.Decl) {
		return nil
	}
	def, _ := b.form(b.doc.Def(br.refs[0]))
	if (u.Tag != "" || u.Merged()) && len(def.Branches()) == 0 && others(def) != nil {
		return nil // it would keep the tag, and the members that all variants share, as its own members
	}
	if u.Tag != "" && b.members(def).all[u.Tag] {
		tag := def.Property(u.Tag)
		if tag == nil {
			b.problem(br.node.Pointer, "a choice whose variants have the tag %q among their members has no Go shape", u.Tag)
			return named.Decl
		}
		if value, ok := b.tagValue(tag); !ok || value != v.Tag || def.Requires(u.Tag) != br.form.Requires(u.Tag) {
			return nil
		}
		v.OwnTag = true
	}
	if v.Tagged && v == u.Untagged && !v.OwnTag {
		return nil // it has no place for a tag that may be missing
	}
	v.Part = cmp.Or(v.Part, br.refs[0])
	return named.Decl
}

// isMembers reports whether the declaration is always an object with known members.
func (b *builder) isMembers(d model.Decl) bool {
	switch d := d.(type) {
	case *model.Struct:
		return true
	case *model.Union:
		if d.Schema == "" {
			return d.Objects()
		}
		form, _ := b.form(b.doc.Def(d.Schema))
		return b.kindOf(form) == "object"
	}
	return false
}

// tellApart determines how a decoder recognizes each variant of an untagged union: by its kind of value, or for objects
// by a required member that no other variant has, or for arrays by such a member of the first item.
func (b *builder) tellApart(u *model.Union, choices []*branch, oneOf bool) {
	groups := map[string][]int{}
	for i, br := range choices {
		kinds := b.kindsOf(br.form)
		if kinds["any"] {
			switch {
			case u.Fallback != nil:
				b.problem(u.Pointer, "the variants at %s and %s are both for any value", u.Fallback.Pointer, u.Variants[i].Pointer)
			case oneOf && len(choices) > 1:
				b.problem(u.Pointer, "any value is one of the variant at %s, so that oneOf forbids the others",
					u.Variants[i].Pointer)
			}
			u.Fallback = u.Variants[i]
			continue
		}
		for kind := range kinds {
			groups[kind] = append(groups[kind], i)
		}
	}
	b.numbers(u, choices, groups["integer"], groups["number"], oneOf)
	for _, kind := range slices.Sorted(maps.Keys(groups)) {
		group := groups[kind]
		if len(group) == 1 {
			continue
		}
		if slices.ContainsFunc(group, func(i int) bool { return choices[i].kind != kind }) {
			b.problem(u.Pointer, "the variants at %s and %s both have values of the kind %s", u.Variants[group[0]].Pointer,
				u.Variants[group[1]].Pointer, kind)
			continue
		}
		if kind == "object" && slices.ContainsFunc(group,
			func(i int) bool { return len(b.members(choices[i].form).all) == 0 }) {
			b.problem(u.Pointer, "any object is one of its variants, so no other can be told from it")
			continue
		}
		if kind != "object" && kind != "array" {
			b.problem(u.Pointer, "the variants at %s and %s are both of the kind %s", u.Variants[group[0]].Pointer,
				u.Variants[group[1]].Pointer, kind)
			continue
		}
		b.keys(u, choices, group, kind == "array")
	}
}

// numbers reports a union with an integer variant and a number variant, unless each accepts all integers or numbers.
func (b *builder) numbers(u *model.Union, choices []*branch, integers, numbers []int, oneOf bool) {
	if len(integers) == 0 || len(numbers) == 0 || integers[0] == numbers[0] {
		return
	}
	if oneOf {
		b.problem(u.Pointer, "an integer is a number too, so that oneOf forbids it")
	}
	i, n := choices[integers[0]], choices[numbers[0]]
	if i.kind != "integer" || n.kind != "number" || !slices.Equal(i.form.Asserted(), []string{"type"}) ||
		!slices.Equal(n.form.Asserted(), []string{"type"}) || i.form.Format != "" && i.form.Format != "int64" {
		b.problem(u.Pointer, "integers beside numbers have a Go shape only if both are without bounds")
	}
}

// keys chooses the members by which a decoder recognizes the variants of the group. If each variant has a required
// member that no other has, these are used. Otherwise the variants are tried one after the other. Then each needs a
// member that the remaining ones do not have, or that has another value in all of them; the last one needs none.
func (b *builder) keys(u *model.Union, choices []*branch, group []int, items bool) {
	known := make([]*memberNames, len(choices))
	left := map[string]int{}     // the number of variants that have a member
	constant := map[string]int{} // the number in which it has only one value
	same := map[string]int{}     // the number in which it has that same value, by its key
	count := func(i, more int) {
		for name := range known[i].all {
			left[name] += more
		}
		for name, value := range known[i].values {
			constant[name] += more
			same[value.key] += more
		}
	}
	for _, i := range group {
		known[i] = b.memberNames(choices[i], items)
		count(i, 1)
	}
	if !items {
		for _, i := range group {
			if known[i].open {
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(left)) {
				if !known[i].all[name] {
					u.Variants[i].Drops = append(u.Variants[i].Drops, name)
				}
			}
		}
	}
	own := func(i int) string {
		for _, name := range known[i].required {
			if left[name] == 1 {
				return name
			}
		}
		return ""
	}
	open := func(i int) bool { return known[i].open }
	if !slices.ContainsFunc(group, func(i int) bool { return own(i) == "" }) {
		rank := 0
		for _, first := range []bool{true, false} { // variants that keep other members come first
			for _, i := range group {
				if open(i) == first {
					u.Variants[i].Key, u.Variants[i].Rank = own(i), rank
					rank++
				}
			}
		}
		return
	}
	rest := slices.Clone(group)
	for rank := 0; len(rest) > 1; rank++ {
		at := -1
		for j, i := range rest {
			if own(i) != "" && (at < 0 || open(i) && !open(rest[at])) {
				at = j
			}
		}
		if at >= 0 {
			u.Variants[rest[at]].Key = own(rest[at])
		} else {
			at = slices.IndexFunc(rest, func(i int) bool {
				for _, name := range known[i].required {
					value, ok := known[i].values[name]
					if ok && constant[name] == left[name] && same[value.key] == 1 {
						u.Variants[i].Key, u.Variants[i].KeyValue = name, value.raw
						return true
					}
				}
				return false
			})
		}
		if at < 0 && !items {
			at = b.byPresence(u, choices, rest)
		}
		if at < 0 {
			for _, i := range rest {
				b.problem(choices[i].node.Pointer, "no required member tells the variant from the others")
			}
			return
		}
		i := rest[at]
		u.Variants[i].Rank = rank
		count(i, -1)
		rest = slices.Delete(rest, at, at+1)
		if rank == len(group)-2 {
			u.Variants[rest[0]].Rank = rank + 1
		}
	}
	if items {
		b.problem(u.Pointer, "arrays without a required member of their items for each have no Go shape")
	}
}

// byPresence finds, among variants with the same members, one that accepts every value of the others that has a member
// which only it requires.
func (b *builder) byPresence(u *model.Union, choices []*branch, rest []int) int {
	if len(rest) > model.MaxMembers {
		return -1
	}
	same := func(a, b schema.Property) bool { return a.Name == b.Name && a.Node == b.Node }
	for at, i := range rest {
		form := choices[i].form
		for _, name := range form.Required {
			if !slices.ContainsFunc(rest, func(j int) bool {
				other := choices[j].form
				more := func(name2 string) bool { return name2 != name && !other.Requires(name2) }
				return j != i && (other.Requires(name) || !slices.EqualFunc(form.Properties, other.Properties, same) ||
					slices.ContainsFunc(form.Required, more))
			}) {
				u.Variants[i].Key = name
				return at
			}
		}
	}
	return -1
}

// ownMember returns the first member that variant i requires and no other variant has.
func (b *builder) ownMember(choices []*branch, i int) string {
	for _, name := range b.members(choices[i].form).required {
		other := func(br *branch) bool { return br != choices[i] && b.members(br.form).all[name] }
		if !slices.ContainsFunc(choices, other) {
			return name
		}
	}
	return ""
}

// memberNames has the names of the members of a schema's objects.
type memberNames struct {
	required []string
	all      map[string]bool
	values   map[string]fixed // the required members with only one value
	open     bool             // other members are kept
	strict   bool             // other members are forbidden, or restricted by a schema
}

// fixed is the only value of a member. Its key contains the member's name, and is the same for the same value in any
// notation.
type fixed struct {
	raw json.RawMessage
	key string
}

// memberNames returns the members of a branch, or of its items.
func (b *builder) memberNames(br *branch, items bool) *memberNames {
	if !items {
		return b.members(br.form)
	}
	if br.form.Items == nil {
		return &memberNames{}
	}
	form, _ := b.form(br.form.Items)
	if form == nil {
		return &memberNames{}
	}
	return b.members(form)
}

// members returns the members of the objects of a form.
func (b *builder) members(form *schema.Node) *memberNames {
	if known, ok := b.known[form]; ok {
		return known
	}
	out := &memberNames{all: map[string]bool{}, values: map[string]fixed{}, required: slices.Clone(form.Required)}
	b.known[form] = out // the members found so far, for a choice that has itself as a branch
	for _, p := range b.shapes.Members(form) {
		member := b.shapes.Full(p.Node)
		if member == nil {
			out.all[p.Name] = true
			continue
		}
		if _, never := member.Impossible(); never {
			continue
		}
		out.all[p.Name] = true
		if value, ok := constant(member); ok && form.Requires(p.Name) {
			out.values[p.Name] = fixed{value, p.Name + "=" + schema.ValueKey(value)}
		}
	}
	out.open = len(form.Branches()) == 0 && others(form) != nil
	out.strict = form.AdditionalProperties != nil && !form.AdditionalProperties.Any()
	b.choiceMembers(out, form)
	return out
}

// choiceMembers adds the members of the branches of a form. Members that all branches require are required.
func (b *builder) choiceMembers(out *memberNames, form *schema.Node) {
	for _, list := range [][]*schema.Node{form.OneOf, form.AnyOf} {
		count := map[string]int{}
		var order []string
		for _, n := range list {
			br, _ := b.form(n)
			if br == nil {
				continue
			}
			inner := b.members(br)
			if len(out.all)+len(inner.all) > maxNames {
				b.problem(n.Pointer, "more than %d members of a choice within a choice have no Go shape", maxNames)
				return
			}
			for name := range inner.all {
				out.all[name] = true
			}
			for _, name := range inner.required {
				if count[name]++; count[name] == 1 {
					order = append(order, name)
				}
			}
			out.open = out.open || inner.open
			out.strict = out.strict || inner.strict
		}
		for _, name := range order {
			if count[name] == len(list) && !slices.Contains(out.required, name) {
				out.required = append(out.required, name)
			}
		}
	}
}

// kindOf returns the JSON kind of all values of a form, or "any". It returns "" for a choice whose kind is being
// determined.
func (b *builder) kindOf(form *schema.Node) string {
	kinds := slices.Collect(maps.Keys(b.kindsOf(form)))
	switch len(kinds) {
	case 0:
		return ""
	case 1:
		return kinds[0]
	}
	return "any"
}

// kindsOf returns the JSON kinds of the values of a form without null, or "any". It returns none for a choice whose
// kinds are being determined.
func (b *builder) kindsOf(form *schema.Node) map[string]bool {
	if kinds, ok := b.kinds[form]; ok {
		return kinds
	}
	out := map[string]bool{}
	b.kinds[form] = out
	if kinds, _ := form.Kinds(); len(kinds) == 1 {
		out[kinds[0]] = true
		return out
	}
	branches := form.Branches()
	if len(branches) == 0 {
		out["any"] = true
	}
	for _, n := range branches {
		if br, _ := b.form(n); br != nil {
			maps.Copy(out, b.kindsOf(br))
		}
	}
	return out
}

// nullable reports whether a branch of the form is a definition that allows null.
func (b *builder) nullable(form *schema.Node) bool {
	if null, ok := b.nulls[form]; ok {
		return null
	}
	b.nulls[form] = false
	found := slices.ContainsFunc(form.Branches(), func(n *schema.Node) bool {
		br, null := b.form(n)
		return null || br != nil && b.nullable(br)
	})
	b.nulls[form] = found
	return found
}
