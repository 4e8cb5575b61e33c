// Package schema parses the JSON Schema documents in which the Agent Client Protocol is published.
//
// It walks the document in order and finds every schema in it. go-jsonschema parses the keywords whose values are
// strings and names; see library.go. An unknown keyword is an error, so that no meaning is lost silently.
package schema

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"

	"github.com/acpgo/sdk/internal/gen/text"
)

// Document is one schema document: its root, and its definitions in the order of the document.
type Document struct {
	Root   *Node
	Defs   []Property
	Digest [sha256.Size]byte // of the bytes that were parsed

	byName map[string]*Node
}

// Def returns the definition with that name, or nil.
func (d *Document) Def(name string) *Node { return d.byName[name] }

// Property is a named subschema: a member of properties or of $defs.
type Property struct {
	Name string
	*Node
}

// Node is one schema object, or a boolean schema.
type Node struct {
	// Pointer is the JSON pointer of the schema in its document.
	Pointer string
	Annotations
	// Format and Required are the values of these keywords.
	Format   string
	Required []string
	// Bool is set for the boolean schemas true and false, which have nothing else.
	Bool *bool

	Properties            []Property
	Items                 *Node
	PrefixItems           []*Node
	AdditionalProperties  *Node
	UnevaluatedProperties *Node
	OneOf, AnyOf, AllOf   []*Node

	// Const and Enum are kept as written, so that numbers stay exact. They are nil if the keyword is absent.
	Const json.RawMessage
	Enum  []json.RawMessage

	ref   string
	name  string // of the definition that ref names
	types []string
	words []word  // in the order of the document
	not   []*Node // several for a canonical form

	ignoresPatterns bool // patternProperties is left out

	// These are for canonical forms: the values that not excludes, and for a schema without values the place of the
	// keyword that is the reason, and whether the schema false is a part.
	except    []json.RawMessage
	reason    string
	forbidden bool
}

// Annotations has the values of keywords that only describe values.
type Annotations struct {
	Title, Description string
	Default            json.RawMessage // as written, or nil
	Deprecated         bool
	Discriminator      string            // the property that discriminator names
	Mapping            map[string]string // from values of that property to references
	Method, Side       string            // x-method and x-side
	// DefaultOnError, DefaultOnNull and SkipInvalidItems are the x-deserialize-* keywords.
	DefaultOnError, DefaultOnNull, SkipInvalidItems bool
}

// A word is a keyword of a schema.
type word struct {
	name string
	at   string          // its place
	raw  json.RawMessage // its value, if there is no field for it
}

// word returns a keyword of n, or an empty one that does not belong to n.
func (n *Node) word(keyword string) *word {
	for i := range n.words {
		if n.words[i].name == keyword {
			return &n.words[i]
		}
	}
	return new(word)
}

// Has reports whether the schema uses the keyword.
func (n *Node) Has(keyword string) bool { return n.word(keyword).name != "" }

// Value returns the value of a keyword that has no field, such as a bound, or nil.
func (n *Node) Value(keyword string) json.RawMessage { return n.word(keyword).raw }

// Ref returns the name of the definition that $ref names, or "".
func (n *Node) Ref() string { return n.name }

// Property returns the property with that name, or nil.
func (n *Node) Property(name string) *Node {
	for _, p := range n.Properties {
		if p.Name == name {
			return p.Node
		}
	}
	return nil
}

// Requires reports whether the property is listed as required.
func (n *Node) Requires(name string) bool { return slices.Contains(n.Required, name) }

// Branches returns the branches of oneOf followed by those of anyOf.
func (n *Node) Branches() []*Node { return slices.Concat(n.OneOf, n.AnyOf) }

// Kinds returns the JSON types that the keyword type allows, except null, and whether it allows null.
func (n *Node) Kinds() (kinds []string, null bool) {
	if !n.Has("type") {
		return nil, false
	}
	for _, t := range n.types {
		if t == "null" {
			null = true
		} else {
			kinds = append(kinds, t)
		}
	}
	return kinds, null
}

// Any reports whether the schema accepts every value: true, or an object that only annotates.
func (n *Node) Any() bool {
	if n.Bool != nil {
		return *n.Bool
	}
	return len(n.Asserted()) == 0
}

// Error is a fault of a schema with its location.
type Error struct {
	// Pointer is the JSON pointer of the offending schema; "" is the document itself.
	Pointer string
	// Msg is the problem, Err its cause. At least one of them is set.
	Msg string
	Err error
}

// Error returns the fault on one line of limited length.
func (e *Error) Error() string {
	parts := []string{cmp.Or(e.Pointer, "/")}
	if e.Msg != "" {
		parts = append(parts, e.Msg)
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return text.Brief(strings.Join(parts, ": "))
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
