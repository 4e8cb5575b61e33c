package emit

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/text"
)

// Version is the origin of one schema file.
type Version struct {
	Path    string // relative to the root of the module
	Package string // npm package, or another source
	Version string // of the package
	Date    string // of the release, as 2006-01-02
	SHA256  string // of the file, in hexadecimal digits
	Release string // of the protocol that contains the file; "" if it is not known
}

// Root returns the source of the package that embeds the schemas.
func Root(pkg string, versions []Version) ([]byte, error) {
	for _, v := range versions {
		if name, _ := schemaName(v.Path); !text.IsExported(name) || !filePath.MatchString(v.Path) {
			return nil, fmt.Errorf("%q is not a name for a schema: expected letters, digits and . _ - /", v.Path)
		}
	}
	f := newFile(pkg, "From schema/VERSIONS.")
	packageComment(f, []string{
		"Package " + pkg + " embeds the schemas of the Agent Client Protocol from which the packages of this module are",
		"generated. It is at the root because embed cannot reach files in a parent directory.",
	})
	f.Anon("embed")

	add(f, source(`// The origin of the schemas.
const (
	// SchemaPackage is the npm package, or the other source, of the schemas.
	SchemaPackage = %
	// SchemaVersion is the version of that package.
	SchemaVersion = %
	// SchemaDate is the date of its release.
	SchemaDate = %
	// SchemaRelease is the protocol's own release of the schema of version 1, such as
	// schema-v1.21.0, or "" if it is not known: the npm package does not name it.
	SchemaRelease = %
)
`, jen.Lit(versions[0].Package), jen.Lit(versions[0].Version), jen.Lit(versions[0].Date), jen.Lit(versions[0].Release)))
	var digests []jen.Code
	for _, v := range versions {
		name, what := schemaName(v.Path)
		digests = append(digests, comment([]string{"Digest" + name + " is the digest of the schema of " + what + "."})...)
		digests = append(digests, source("% = %", "Digest"+name, jen.Lit(v.SHA256)))
	}
	add(f, source("// The SHA-256 of each schema.\nconst (\n%\n)\n", digests))
	for _, v := range versions {
		name, what := schemaName(v.Path)
		embedded(f, "schema"+name, v.Path)
		declare(f, []string{"Schema" + name + " returns the JSON Schema of " + what + "."},
			source("func %() string { return % }", "Schema"+name, "schema"+name))
	}
	return render(f)
}

// filePath matches the paths that can be embedded.
var filePath = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`)

// schemaName returns the part of the identifiers that stands for a schema file, and the version of the protocol that
// the file describes: schema.json is version 1, the names of other files contain it.
func schemaName(file string) (name, what string) {
	base := strings.TrimSuffix(path.Base(file), ".json")
	if base == "schema" {
		base = "v1"
	}
	version, unstable, _ := strings.Cut(base, ".")
	what = "version " + strings.TrimPrefix(version, "v")
	name = upperFirst(version)
	if unstable != "" {
		name += upperFirst(unstable)
		what += " with " + unstable + " features"
	}
	return name, what
}

func upperFirst(s string) string { return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):] }
