package gen

// A Target is a generated package of this repository.
type Target struct {
	Schema   string // file, from the module's root
	Stable   string // the schema without experimental features
	Dir      string // folder, from there
	Package  string
	Protocol string   // which of [Overrides] apply
	Shares   []Shared // hand-written files of other packages that it has too
}

// Shared are hand-written files of one package that another one has as well, over its own types; see
// [Copy].
type Shared struct {
	Dir   string   // folder, from the module's root
	Files []string // without .go
}

// versionless are the files of package acp that say nothing about a version of the protocol.
var versionless = Shared{"acp", []string{
	"agent", "alias", "ask", "client", "config", "conns", "content", "experimental", "manage", "proxy", "routes", "session", "toolcalls", "values",
}}

// Targets are the generated packages of this repository, beside the one at its root.
var Targets = []Target{
	{Schema: "schema/v1.unstable.json", Stable: "schema.json", Dir: "acp", Package: "acp", Protocol: "v1.unstable"},
	{Schema: "schema/v2.unstable.json", Stable: "schema/v2.json", Dir: "acp/v2draft", Package: "v2draft", Protocol: "v2.unstable", Shares: []Shared{versionless}},
}

// RootPackage is the name of the package at the root, which embeds the schemas.
const RootPackage = "sdk"
