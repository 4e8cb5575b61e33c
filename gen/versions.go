package gen

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	"github.com/acpgo/sdk/internal/gen/emit"
)

// Version says where one schema file comes from.
type Version = emit.Version

// ParseVersions reads the text of schema/VERSIONS: for each file a line of its path, the npm package or
// other source, the version, the release date, the SHA-256 of its bytes, and the name of the protocol's
// own release that has them, which may be absent. A dash stands for what is not known. Empty lines and
// those that begin with # are passed over.
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
			return nil, fmt.Errorf("line %d: want path, package, version, date and sha256, got %d fields", i+1, len(fields))
		}
		if digest, err := hex.DecodeString(fields[4]); err != nil || len(digest) != sha256.Size {
			return nil, fmt.Errorf("line %d: %q is not a SHA-256", i+1, fields[4])
		}
		out = append(out, Version{Path: fields[0], Package: fields[1], Version: fields[2], Date: fields[3], SHA256: fields[4], Release: strings.TrimPrefix(fields[5], "-")})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no schema is listed")
	}
	return out, nil
}

// Source returns the description of a schema for [Config], by its digest: which package it is of.
func Source(versions []Version, data []byte) (string, error) {
	digest := fmt.Sprintf("%x", sha256.Sum256(data))
	for _, v := range versions {
		if v.SHA256 == digest {
			return fmt.Sprintf("%s of %s %s", path.Base(v.Path), v.Package, v.Version), nil
		}
	}
	return "", fmt.Errorf("no listed schema has the digest %s", digest)
}

// Root returns the file of the package that embeds the schemas. It belongs in the folder that the
// paths of the versions start from.
func Root(pkg string, versions []Version) (map[string][]byte, error) {
	source, err := emit.Root(pkg, versions)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"acp_gen.go": source}, nil
}
