package gen

// A Target is a generated package of this repository.
type Target struct {
	Schema   string // file, relative to the module's root
	Stable   string // the schema without experimental features
	Dir      string // directory, relative to the module's root
	Package  string
	Protocol string   // the key in [Overrides]
	Shares   []Shared // hand-written files of other packages that are copied to it
	Hooks    bool     // Dir/proxy has hooks for its methods
}

// Shared lists hand-written files of one package that are copied to another one, where they use that package's types;
// see [Copy].
type Shared struct {
	Dir   string   // directory, relative to the module's root
	Files []string // without .go
}

// versionless has the files of package acp that do not depend on the version of the protocol.
var versionless = Shared{"acp", []string{
	"agent", "alias", "auth", "client", "config", "conns", "content", "experimental", "proxy", "routes",
	"session", "toolcalls", "turn", "values",
}}

// Targets lists the generated packages of this repository, except the one at its root.
var Targets = []Target{
	{Schema: "schema/v1.unstable.json", Stable: "schema.json", Dir: "acp", Package: "acp", Protocol: "v1.unstable",
		Hooks: true},
	{Schema: "schema/v2.unstable.json", Stable: "schema/v2.json", Dir: "acp/acpv2", Package: "acpv2",
		Protocol: "v2.unstable", Shares: []Shared{versionless}},
}

// RootPackage is the name of the package at the root, which embeds the schemas.
const RootPackage = "sdk"

// featureBits has the features by the bits of their constants, which never change: a new feature comes last.
var featureBits = []string{
	"Archive", "AuthStatus", "Fork", "MCPOverACP", "Plans", "Providers", "SessionStatus", "SessionTitle", "Subagents",
	"SystemPrompt", "Usage",
}

// hot has the types of chunks of text, of which most of the traffic consists. They are read and written by code of
// their own, which is faster than tags and tables.
var hot = []string{
	"SessionNotification", "UpdateSessionNotification", "SessionUpdate", "ContentBlock", "ContentChunk", "TextContent",
}
