package schema

import (
	"net/url"
	"strings"
)

// scheme is the URL scheme of definitions. To the compiler, each definition is a separate document, so that it
// compiles, and checks against the meta-schema, only the definitions that are used.
const scheme = "acp:///"

// locationOf returns the location of a definition for the compiler, definitionOf the name of the definition that
// contains a location.
func locationOf(name string) string { return scheme + url.PathEscape(name) }

func definitionOf(location string) string {
	path, _, _ := strings.Cut(strings.TrimPrefix(location, scheme), "#")
	if name, err := url.PathUnescape(path); err == nil {
		return name
	}
	return path
}

// definitionName returns the name of the definition that a reference names.
func definitionName(ref string) string {
	name := strings.TrimPrefix(ref, "#/$defs/")
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
}
