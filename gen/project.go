package gen

// A Target is a generated package of this repository.
type Target struct {
	Schema   string // file, from the module's root
	Dir      string // folder, from there
	Package  string
	Protocol string   // which of [Overrides] apply
	Base     string   // folder of the package that it extends, which is a target too; or ""
	Shares   []Shared // hand-written files of other packages that it has too
}

// Shared are hand-written files of one package that another one has as well, over its own types; see
// [Copy].
type Shared struct {
	Dir   string   // folder, from the module's root
	Files []string // without .go; nil for all that are neither generated nor tests nor doc.go
}

// versionless are the files of package acp that say nothing about a version of the protocol.
var versionless = Shared{"acp", []string{"agent", "alias", "client", "config", "content", "values", "conns", "routes", "session", "toolcalls"}}

// Targets are the generated packages of this repository, beside the one at its root.
var Targets = []Target{
	{Schema: "schema.json", Dir: "acp", Package: "acp", Protocol: "v1"},
	{Schema: "schema/v1.unstable.json", Dir: "acp/unstable", Package: "unstable", Protocol: "v1.unstable", Base: "acp", Shares: []Shared{{Dir: "acp"}}},
	{Schema: "schema/v2.json", Dir: "acp/v2draft", Package: "v2draft", Protocol: "v2", Shares: []Shared{versionless}},
	{Schema: "schema/v2.unstable.json", Dir: "acp/v2draft/unstable", Package: "unstable", Protocol: "v2.unstable", Base: "acp/v2draft",
		Shares: []Shared{versionless, {Dir: "acp/v2draft"}, {"acp/unstable", []string{"manage", "proxy"}}}},
}

// RootPackage is the name of the package at the root, which embeds the schemas.
const RootPackage = "sdk"
