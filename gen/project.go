// This file owns the list of what is generated in this repository.

package gen

// A Target is a generated package of this repository.
type Target struct {
	Schema   string // file, from the module's root
	Dir      string // folder, from there
	Package  string
	Protocol string // which of [Overrides] apply
}

// Targets are the generated packages of this repository, beside the one at its root.
var Targets = []Target{
	{Schema: "schema.json", Dir: "acp", Package: "acp", Protocol: "v1"},
}

// RootPackage is the name of the package at the root, which embeds the schemas.
const RootPackage = "sdk"
