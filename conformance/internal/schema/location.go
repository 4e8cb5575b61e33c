// Where a definition is: for the compiler, each definition is a document of its own.

package schema

import (
	"net/url"
	"strings"
)

// scheme is the URL scheme under which each definition is a document of its own for the compiler,
// so that it compiles, and checks against the meta-schema, only what is used.
const scheme = "acp:///"

// locationOf is where a definition is for the compiler, definitionOf the name of the definition that a schema
// location lies in.
func locationOf(name string) string { return scheme + url.PathEscape(name) }

func definitionOf(location string) string {
	path, _, _ := strings.Cut(strings.TrimPrefix(location, scheme), "#")
	if name, err := url.PathUnescape(path); err == nil {
		return name
	}
	return path
}

// definitionName is the name of the definition that a reference names.
func definitionName(ref string) string {
	name := strings.TrimPrefix(ref, "#/$defs/")
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
}
