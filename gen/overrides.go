// The human decisions about schemas, which cannot be derived from the schemas themselves. An unused entry is an error,
// so that a schema bump shows which decisions are stale.

package gen

import (
	"embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/acpgo/sdk/internal/gen/model"
	"github.com/acpgo/sdk/internal/gen/schema"
)

// Kind is the kind of decision that an Override makes.
type Kind int

// The kinds of Override. For the kinds that name something, the subject can also be the JSON pointer of the named
// thing, as it appears in errors.
const (
	// Name names a type, which by default is named after its definition or after the type that it is a part of.
	// Subject: the definition, or the owner, a slash and the part.
	Name Kind = iota
	// Member names the field of a member. Subject: the type as for Name, a slash, the member.
	Member
	// Value names the constant of a value. Subject: the type as for Name, a slash, the value.
	Value
	// Variant names the type of a variant. Subject: the union as for Name, a slash, the tag or title.
	Variant
	// Constructor names the function that creates a variant, and gives it a parameter for each required member.
	// Subject: the same as for Variant.
	Constructor
	// Handler names the handler of a method, which by default is named after the definition of its parameters. Subject:
	// that definition.
	Handler
	// Capabilities names the definition of the capabilities of a side. Subject: the side.
	Capabilities
	// Capability is the path of the capability that gates a method: calls need it, the method is served only with it,
	// and it is advertised if the handlers are set. Subject: the method.
	Capability
	// Needs is the path of a capability that a call needs because of its content. Subject: the method, or the method, a
	// space, a member of its parameters, a dot, and the tag of a variant; the member or the tag may be missing.
	Needs
	// Derived means that the runtime itself handles a method. Subject: the method.
	Derived
	// CallNote is text that the documentation of the connection's call of a method has in addition to the schema's
	// description. Subject: the method.
	CallNote
	// HandlerNote is the same for the handler of a method. Subject: the method.
	HandlerNote
	// ConnByHand means that the connection's call of a method is hand-written. Subject: the method.
	ConnByHand
	// UsesAnswer means that the connection's call of a method processes the answer. It is hand-written around an
	// unexported call. Subject: the method.
	UsesAnswer
	// SessionByHand is the same for the call of a session. Subject: the method.
	SessionByHand
	// Always means that a member is encoded even if leaving it out would mean the same. Subject: the definition, a
	// slash, the member.
	Always
	// Ungated means that no capability gates a method, although it looks as if one did. Subject: the method.
	Ungated
	// Feature names the feature of something experimental. The constant with that name after "Feature" enables it.
	// Subject: the method, or the type as for Name, a slash, and the member, value or variant. Things that a capability
	// gates belong to the feature of the capability.
	Feature
	// Ignored leaves out a keyword or a member of objects, as if the schema did not have it. Subject: the JSON pointer,
	// as it appears in errors, or the name of a keyword wherever it occurs.
	Ignored

	kinds = iota
)

var kindNames = [kinds]string{
	"Name", "Member", "Value", "Variant", "Constructor", "Handler", "Capabilities", "Capability", "Needs", "Derived",
	"CallNote", "HandlerNote", "ConnByHand", "UsesAnswer", "SessionByHand", "Always", "Ungated", "Feature", "Ignored",
}

func (k Kind) String() string { return kindNames[k] }

// Override is one decision.
type Override struct {
	Kind    Kind
	Subject string // the subject of the decision
	Value   string // the decision, "" for kinds that need only the subject
	Why     string
}

//go:embed overrides/*.txt
var tables embed.FS

// Overrides has the decisions about the schemas of this project, by protocol. Decisions about a stable schema also
// apply to the unstable one.
var Overrides = map[string][]Override{
	"v1":          table("both", "v1"),
	"v1.unstable": table("both", "v1", "v1.unstable", "both.unstable"),
	"v2":          table("both", "v2"),
	"v2.unstable": table("both", "v2", "v2.unstable", "both.unstable"),
}

// table returns the decisions in the named files of the folder overrides.
func table(names ...string) (out []Override) {
	for _, name := range names {
		text, err := tables.ReadFile("overrides/" + name + ".txt")
		if err != nil {
			panic(err) // cannot happen: the file is embedded
		}
		overrides, _, err := ParseOverrides(string(text))
		if err != nil {
			panic(name + ": " + err.Error()) // a mistake in this repository, which every test notices
		}
		out = append(out, overrides...)
	}
	return out
}

// filler matches what descriptions of unknown variants have in common; codec.Unknown says it once.
var filler = regexp.MustCompile("^Custom or future [^.]*\\.$|" +
	"^Values beginning with `_` are reserved for implementation-specific extensions\\. " +
	"(Unknown values that do not begin with `_`|Other unknown values) are reserved for future ACP variants\\.$")

// openings maps the first words of descriptions to words that can follow the name of the described thing, because a doc
// comment begins with that name. The first match is used.
var openings = slices.Concat([][2]string{
	{"A ", "is a "}, {"An ", "is an "}, {"The user ", "says that the user "}, {"The ", "is the "},
	{"Typed identifier ", "is the identifier "}, {"Protocol version identifier", "is the protocol version identifier"},
	{"Request parameters ", "holds the parameters "}, {"Request to ", "asks to "}, {"Request for ", "asks for "},
	{"Request from the agent to ", "is the agent's request to "}, {"Represents ", "represents "},
	{"Describes ", "describes "}, {"Embed ", "embeds "}, {"Images ", "holds an image "},
	{"Content blocks ", "is one of the content blocks, which "},
},
	after("is", "Information", "Metadata", "Content produced", "Resource content", "Text provided"),
	after("is a", "Type-safe elicitation schema"),
	after("is an", "Update"),
	after("is the", "Unique identifier", "Response", "Notification", "Terminal-based", "Standard content block",
		"Semantic category", "Severity hint", "Configuration", "Status", "Execution status", "Exit status", "Lifecycle state",
		"Schema for", "Property schema", "Context window and cost update"),
	after("is one of the", "Categories", "Different types", "Priority levels", "Reasons", "Allowed"),
	after("holds", "Optional"),
	after("holds the", "Capabilities", "Possible values", "Items", "Session capabilities", "Prompt capabilities",
		"MCP capabilities", "File system capabilities", "Authentication capabilities", "Elicitation capabilities",
		"Logout capabilities"),
	after("declares", "Client support"),
)

// after returns openings that follow a verb in small letters.
func after(verb string, openings ...string) (out [][2]string) {
	for _, opening := range openings {
		follows := strings.ToLower(opening[:1]) + opening[1:]
		if strings.HasPrefix(opening, "MCP") {
			follows = opening
		}
		out = append(out, [2]string{opening + " ", verb + " " + follows + " "})
	}
	return out
}

// decisions is a list of overrides that tracks which of them were used.
type decisions struct {
	list   []Override
	used   []bool
	needed int // the number of those that must be used; the others are for the unstable schema
	// gateless has the methods, fields and variants whose gates are stale.
	gateless map[any]bool
}

func newDecisions(list, unstable []Override) *decisions {
	all := slices.Concat(list, unstable)
	return &decisions{all, make([]bool, len(all)), len(list), map[any]bool{}}
}

// moves returns the overrides for the unstable schema that this schema uses, because what they are about is stable. The
// features of such things stay where they are.
func (j *decisions) moves() (out []Override) {
	for i, o := range j.list[j.needed:] {
		if j.used[j.needed+i] && o.Kind != Feature {
			out = append(out, o)
		}
	}
	return out
}

// find returns the override of a kind for one of the given subjects.
func (j *decisions) find(kind Kind, subjects ...string) (is string, ok bool) {
	for i, o := range j.list {
		if o.Kind == kind && slices.Contains(subjects, o.Subject) {
			j.used[i] = true
			return o.Value, true
		}
	}
	return "", false
}

// useAll marks the overrides of a kind as used.
func (j *decisions) useAll(kind Kind) {
	for i, o := range j.list {
		j.used[i] = j.used[i] || o.Kind == kind
	}
}

// unused returns an error for each unused override.
func (j *decisions) unused() error {
	var problems []error
	for i, o := range j.list[:j.needed] {
		if !j.used[i] {
			why := "the schema has no such thing"
			if slices.ContainsFunc(j.list[:i], o.same) {
				why = "another one decides it"
			}
			problems = append(problems, &schema.Error{Err: &Stale{o, why}})
		}
	}
	return errors.Join(problems...)
}

// anchorRef matches a reference to an anchor.
var anchorRef = regexp.MustCompile(`"\$ref"\s*:\s*"#[^/"]`)

// suggestIgnored suggests ignoring unknown keywords, but not anchors that the schema refers to.
func suggestIgnored(document []byte, err error) error {
	for _, problem := range Problems(err) {
		if e, ok := problem.(*schema.Error); ok && e.Err == schema.ErrKeyword {
			if strings.HasSuffix(strings.ToLower(e.Pointer), "anchor") && anchorRef.Match(document) {
				continue
			}
			e.Err = &Wanted{Override{Kind: Ignored, Subject: e.Pointer, Why: "what it says of values is not checked"}, e.Err}
		}
	}
	return err
}

// pathOf returns the path of a declaration in the subjects of overrides: the name of a definition, or for a part of one
// its owner, a slash, and the property, tag, title or value. Slashes within these are written as ~1, tildes as ~0.
func pathOf(d model.Decl) string {
	c := d.Base()
	switch {
	case c.Schema != "":
		return schema.Escape(c.Schema)
	case c.Owner != nil:
		return pathOf(c.Owner) + "/" + schema.Escape(c.Part)
	}
	return schema.Escape(c.Part)
}

// decide applies the decisions about members and methods.
func decide(pkg *model.Package, j *decisions) error {
	var problems []error
	for _, d := range pkg.Decls {
		for _, f := range model.Fields(d) {
			if f.Presence == model.Plain {
				_, f.Always = j.find(Always, pathOf(d)+"/"+schema.Escape(f.JSON))
			}
		}
	}
	pkg.Capabilities = map[model.Side]model.Decl{}
	for _, side := range []model.Side{model.Agent, model.Client} {
		if definition, ok := j.find(Capabilities, string(side)); ok {
			pkg.Capabilities[side] = declared(pkg, definition)
		}
	}
	for _, m := range pkg.Methods {
		_, m.Derived = j.find(Derived, m.Name)
		m.CallNote, _ = j.find(CallNote, m.Name)
		m.HandlerNote, _ = j.find(HandlerNote, m.Name)
		_, m.ConnByHand = j.find(ConnByHand, m.Name)
		_, m.UsesAnswer = j.find(UsesAnswer, m.Name)
		_, m.SessionByHand = j.find(SessionByHand, m.Name)
		if path, ok := j.find(Capability, m.Name); ok {
			fields, err := capability(pkg, j, m, Override{Kind: Capability, Subject: m.Name, Value: path})
			problems = append(problems, err)
			j.gateless[m] = fields == nil
			m.Capability = fields
		}
		for _, need := range needs(m) {
			path, ok := j.find(Needs, need.subject)
			if !ok {
				continue
			}
			fields, err := capability(pkg, j, m, Override{Kind: Needs, Subject: need.subject, Value: path})
			if problems = append(problems, err); fields == nil {
				if need.Variant != nil {
					j.gateless[&need.Variant.Common] = true
				} else if need.Field != nil {
					j.gateless[&need.Field.Common] = true
				}
				continue
			}
			need.Capability = fields
			m.Needs = append(m.Needs, need.Need)
		}
	}
	return errors.Join(problems...)
}

// capability returns the fields of an override's path in the capabilities of the side that handles a method, or nil.
func capability(pkg *model.Package, j *decisions, m *model.Method, o Override) ([]*model.Field, error) {
	root, _ := j.find(Capabilities, string(m.Side))
	fields, missing := resolve(declared(pkg, root), o.Value)
	if missing != "" {
		if i := slices.IndexFunc(j.list, o.same); i >= j.needed { // only the unstable schema has it
			j.used[i] = false
			return nil, nil
		}
		return nil, &schema.Error{Pointer: m.Pointer, Err: &Stale{o, fmt.Sprintf("%q has no %q", root, missing)}}
	}
	return fields, nil
}

// need is a part of a method that may need a capability, with its subject in overrides.
type need struct {
	model.Need
	subject string
}

// needs returns everything that may need a capability: the method, the members of its parameters, and their variants.
func needs(m *model.Method) []need {
	all := []need{{subject: m.Name}}
	variants := func(f *model.Field, d model.Decl, of string) {
		if u, ok := d.(*model.Union); ok {
			for _, v := range u.Variants {
				all = append(all, need{model.Need{Field: f, Variant: v}, of + "." + v.Tag})
			}
		}
	}
	variants(nil, m.Params, m.Name+" ")
	for _, f := range model.Fields(m.Params) {
		subject := m.Name + " " + f.JSON
		all = append(all, need{model.Need{Field: f}, subject})
		t := f.Type
		if s, ok := t.(model.Slice); ok {
			t = s.Elem
		}
		if named, ok := t.(model.Named); ok {
			variants(f, named.Decl, subject)
		}
	}
	return all
}

// declared returns the declaration of a definition, or nil.
func declared(pkg *model.Package, definition string) model.Decl {
	for _, d := range pkg.Decls {
		if definition != "" && d.Base().Schema == definition {
			return d
		}
	}
	return nil
}

// resolve follows a path of member names and returns the fields, or the name that is missing.
func resolve(d model.Decl, path string) (fields []*model.Field, missing string) {
	for name := range strings.SplitSeq(path, ".") {
		members := model.Fields(d)
		i := slices.IndexFunc(members, func(f *model.Field) bool { return f.JSON == name })
		if i < 0 {
			return nil, name
		}
		fields = append(fields, members[i])
		named, _ := members[i].Type.(model.Named)
		d = named.Decl
	}
	return fields, ""
}
