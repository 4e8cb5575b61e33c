// This file owns acp_gen.go, the package that embeds the schemas.

package emit

import (
	"path"
	"strings"

	"github.com/dave/jennifer/jen"
)

// Version says where one schema file comes from.
type Version struct {
	Path    string // from the module's root
	Package string // npm package
	Version string // of the package
	Date    string // of the release, as 2006-01-02
	SHA256  string // of the file, in hexadecimal digits
}

// Root returns the source of the package that embeds the schemas.
func Root(pkg string, versions []Version) ([]byte, error) {
	f := newFile(pkg, "From schema/VERSIONS.")
	f.PackageComment("Package " + pkg + " holds the schemas of the Agent Client Protocol that the packages below it are")
	f.PackageComment("generated from. It stands at the root because embedding cannot reach a parent folder.")
	f.Anon("embed")

	f.Comment("Where the schemas come from.")
	f.Const().Defs(
		jen.Comment("// SchemaPackage is the npm package that publishes them."),
		jen.Id("SchemaPackage").Op("=").Lit(versions[0].Package),
		jen.Comment("// SchemaVersion is the version of that package."),
		jen.Id("SchemaVersion").Op("=").Lit(versions[0].Version),
		jen.Comment("// SchemaDate is the day of its release."),
		jen.Id("SchemaDate").Op("=").Lit(versions[0].Date))
	f.Line()

	f.Comment("The SHA-256 of each schema.")
	f.Const().DefsFunc(func(g *jen.Group) {
		for _, v := range versions {
			name, what := schemaName(v.Path)
			g.Comment("// Digest" + name + " is the digest of the schema of " + what + ".")
			g.Id("Digest" + name).Op("=").Lit(v.SHA256)
		}
	})
	f.Line()
	for _, v := range versions {
		name, what := schemaName(v.Path)
		hidden := "schema" + name
		add(f,
			jen.Comment("//go:embed "+v.Path),
			jen.Var().Id(hidden).String())
		add(f,
			jen.Comment("// Schema"+name+" returns the JSON Schema of "+what+"."),
			jen.Func().Id("Schema"+name).Params().String().Add(oneLine(jen.Return(jen.Id(hidden)))))
	}
	return render(f)
}

// schemaName returns the part of the identifiers that stands for a schema file, and what it describes:
// schema.json is version 1, v2.unstable.json is what it says.
func schemaName(file string) (name, what string) {
	base := strings.TrimSuffix(path.Base(file), ".json")
	if base == "schema" {
		base = "v1"
	}
	version, unstable, _ := strings.Cut(base, ".")
	what = "version " + strings.TrimPrefix(version, "v")
	name = strings.ToUpper(version[:1]) + version[1:]
	if unstable != "" {
		name += strings.ToUpper(unstable[:1]) + unstable[1:]
		what += " with " + unstable + " features"
	}
	return name, what
}
