package gen

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	"github.com/acpgo/sdk/internal/gen/emit"
)

// Version describes the origin of a schema file.
type Version = emit.Version

// ParseVersions parses the text of schema/VERSIONS. It has a line for each file with its path, the npm package or other
// source, the version, the release date, the SHA-256 of its bytes, and the name of the protocol's own release of it,
// which may be absent. A dash means unknown. Empty lines and lines that begin with # are ignored.
func ParseVersions(text string) ([]Version, error) {
	var out []Version
	for i, line := range strings.Split(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) == 5 {
			fields = append(fields, "-")
		}
		if len(fields) != 6 {
			return nil, fmt.Errorf("line %d: expected path, package, version, date and sha256, got %d fields", i+1, len(fields))
		}
		if digest, err := hex.DecodeString(fields[4]); err != nil || len(digest) != sha256.Size {
			return nil, fmt.Errorf("line %d: %q is not a SHA-256", i+1, fields[4])
		}
		out = append(out, Version{Path: fields[0], Package: fields[1], Version: fields[2], Date: fields[3], SHA256: fields[4],
			Release: strings.TrimPrefix(fields[5], "-")})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no schema is listed")
	}
	return out, nil
}

// Source returns the origin of a schema for [Config], which it finds by the schema's digest.
func Source(versions []Version, data []byte) (string, error) {
	digest := fmt.Sprintf("%x", sha256.Sum256(data))
	for _, v := range versions {
		if v.SHA256 == digest {
			return fmt.Sprintf("%s of %s %s", path.Base(v.Path), v.Package, v.Version), nil
		}
	}
	return "", fmt.Errorf("no listed schema has the digest %s", digest)
}

// Root returns the file of the package that embeds the schemas. It belongs in the directory to which the paths of the
// versions are relative.
func Root(pkg string, versions []Version) (map[string][]byte, error) {
	source, err := emit.Root(pkg, versions)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"acp_gen.go": source}, nil
}
