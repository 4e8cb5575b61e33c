package registry

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/acpgo/sdk/internal/plain"
)

// Kind is a way in which an agent is distributed.
type Kind string

// The kinds.
const (
	Binary Kind = "binary" // an archive for each system, or the program itself
	NPX    Kind = "npx"    // an npm package
	UVX    Kind = "uvx"    // a PyPI package
)

// Entry is the registry's description of an agent. Unknown members are dropped.
type Entry struct {
	ID           string       `json:"id"`
	Name         string       `json:"name"`
	Version      string       `json:"version"`
	Description  string       `json:"description"`
	Repository   string       `json:"repository,omitempty"`
	Website      string       `json:"website,omitempty"`
	Authors      []string     `json:"authors,omitempty"`
	License      string       `json:"license,omitempty"`
	LicenseURL   string       `json:"license_url,omitempty"`
	Icon         string       `json:"icon,omitempty"`
	Distribution Distribution `json:"distribution"`
	// Preview is a version that has not been released; nil if there is none.
	Preview *Preview `json:"preview,omitempty"`
}

// Preview is a version of an agent that has not been released.
type Preview struct {
	Version      string       `json:"version"`
	Distribution Distribution `json:"distribution"`
}

// Previewed returns the entry with the version and the distribution of its preview; nil if it has no preview.
func (e *Entry) Previewed() *Entry {
	if e.Preview == nil {
		return nil
	}
	p := *e
	p.Version, p.Distribution, p.Preview = e.Preview.Version, e.Preview.Distribution, nil
	return &p
}

// Distribution describes how to get and start an agent.
type Distribution struct {
	// Binary maps the name of each system that has an archive, such as "linux-x86_64", to the archive; see Platform.
	Binary map[string]Archive `json:"binary,omitempty"`
	// NPX is an npm package.
	NPX *Package `json:"npx,omitempty"`
	// UVX is a PyPI package.
	UVX *Package `json:"uvx,omitempty"`
}

// Archive is an agent for one system: an archive with its program in it, or the program itself.
type Archive struct {
	// Archive is the address.
	Archive string `json:"archive"`
	// Cmd is the program in the archive. node, python, python3, java and ruby mean the system's programs, and archives
	// that need one are not installed.
	Cmd  string            `json:"cmd"`
	Args []string          `json:"args,omitempty"`
	Env  map[string]string `json:"env,omitempty"`
	// SHA256 is the checksum of the archive, in hexadecimal digits; "" means that the download cannot be verified.
	SHA256 string `json:"sha256,omitempty"`
}

// Package is an agent in a package registry.
type Package struct {
	// Package is its name with its exact version.
	Package string `json:"package"`
	// Cmd is the command of the package to run; "" means its only command, or the command with the package's name.
	Cmd  string            `json:"cmd,omitempty"`
	Args []string          `json:"args,omitempty"`
	Env  map[string]string `json:"env,omitempty"`
}

// Platform returns the registry's name for the system that this program runs on, such as "linux-x86_64".
func Platform() string {
	processor := cmp.Or(map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH], runtime.GOARCH)
	return runtime.GOOS + "-" + processor
}

// Kinds returns the kinds in which an agent is distributed for a platform, binary first.
func (e *Entry) Kinds(platform string) []Kind {
	var kinds []Kind
	if _, ok := e.Distribution.Binary[platform]; ok {
		kinds = append(kinds, Binary)
	}
	if e.Distribution.NPX != nil {
		kinds = append(kinds, NPX)
	}
	if e.Distribution.UVX != nil {
		kinds = append(kinds, UVX)
	}
	return kinds
}

var (
	idPattern      = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	versionPattern = regexp.MustCompile(`^\d+\.\d+\.\d+`)
	// folderPattern matches versions that may be part of a directory's name.
	folderPattern = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}$`)
	// npmVersion matches one exact version; npm treats anything else as a name or a range.
	npmVersion = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	sumPattern = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
)

// maxID bounds the length of an id, which is the name of a directory.
const maxID = 64

// usable returns the reason why an entry cannot be used at all.
func (e *Entry) usable() error {
	switch {
	case !idPattern.MatchString(e.ID) || len(e.ID) > maxID || windowsName(e.ID) != "":
		return fmt.Errorf("the id %q is not a valid folder name", short(e.ID))
	case !versionPattern.MatchString(e.Version) || !folderPattern.MatchString(e.Version):
		return fmt.Errorf("%s has the version %q", e.ID, short(e.Version))
	}
	return nil
}

// splitPackage returns a package's name and version.
func splitPackage(kind Kind, pkg string) (name, version string) {
	if kind == UVX {
		if name, version, ok := strings.Cut(pkg, "=="); ok {
			name, _, _ = strings.Cut(name, "[")
			return name, version
		}
	}
	if i := strings.LastIndex(pkg, "@"); i > 0 {
		name, version = pkg[:i], pkg[i+1:]
	} else {
		name = pkg
	}
	if kind == UVX {
		name, _, _ = strings.Cut(name, "[")
	}
	return name, version
}

// older reports whether one version is before another, as semantic versions are ordered. Versions of other forms are
// compared by their three numbers.
func older(a, b string) bool {
	split := func(version string) (core, pre []string) {
		version, _, _ = strings.Cut(version, "+")
		numbers := versionPattern.FindString(version)
		rest, isPre := strings.CutPrefix(version[len(numbers):], "-")
		if isPre {
			pre = strings.Split(rest, ".")
		}
		return strings.Split(numbers, "."), pre
	}
	coreA, preA := split(a)
	coreB, preB := split(b)
	if by := slices.CompareFunc(coreA, coreB, compareIdentifiers); by != 0 {
		return by < 0
	}
	if len(preA) == 0 || len(preB) == 0 {
		return len(preA) > 0 && len(preB) == 0 // a version is after its previews
	}
	return slices.CompareFunc(preA, preB, compareIdentifiers) < 0
}

// compareIdentifiers compares parts of semantic versions: numbers by their value and before others, which are texts.
func compareIdentifiers(a, b string) int {
	number := func(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }
	switch {
	case number(a) && number(b):
		a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	case number(a):
		return -1
	case number(b):
		return 1
	}
	return cmp.Compare(a, b)
}

var (
	npmPattern = regexp.MustCompile(`^(@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*$`)
	uvPattern  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	uvSpec     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9._,-]+\])?(==|@)[0-9A-Za-z.+_-]+$`)
	cmdPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+-]*$`)
)

// exact returns the reason why a package of an entry is not an exact version of a named package, but an address, a
// file, a range or an option.
func (p *Package) exact(kind Kind, e *Entry) error {
	name, version := splitPackage(kind, p.Package)
	pattern := npmPattern
	if kind == UVX {
		pattern = uvPattern
	}
	switch {
	case !pattern.MatchString(name) || kind == UVX && !uvSpec.MatchString(p.Package):
		return fmt.Errorf("%q is not a package", short(p.Package))
	case !exactVersion(kind, version):
		return fmt.Errorf("the version of the package %q is not exact", short(p.Package))
	case version != e.Version:
		return fmt.Errorf("the package %q does not have the version %s", short(p.Package), e.Version)
	case p.Cmd != "" && !cmdPattern.MatchString(p.Cmd):
		return fmt.Errorf("%q is not a command of a package", short(p.Cmd))
	}
	return usableEnv(p.Env)
}

// exactVersion reports whether a version of a package is exact, and not a name or a range.
func exactVersion(kind Kind, version string) bool {
	return versionPattern.MatchString(version) && folderPattern.MatchString(version) &&
		(kind != NPX || npmVersion.MatchString(version))
}

// usableEnv refuses names that are not variables.
func usableEnv(env map[string]string) error {
	for name, value := range env {
		if !plain.IsVariable(name) || strings.Contains(value, "\x00") {
			return fmt.Errorf("%q is not a valid variable name", short(name))
		}
	}
	return nil
}

// maxEntry bounds an entry, in bytes: installed.json contains it, and may be several times as long. maxSkipped is how
// many unusable entries are reported.
const (
	maxEntry   = 64 << 10
	maxSkipped = 100
)

// parseList reads registry.json. Entries that cannot be used are left out and reported.
func parseList(text []byte) (agents []Entry, skipped []error, err error) {
	var file struct {
		Version string
		Agents  []json.RawMessage
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, nil, fmt.Errorf("the registry's list: %w", err)
	}
	if file.Agents == nil {
		return nil, nil, errors.New("the registry's list has no agents")
	}
	if major, _, _ := strings.Cut(file.Version, "."); major != "" && major != "1" {
		return nil, nil, fmt.Errorf("the registry's list has the unsupported format %s", short(file.Version))
	}
	seen, left := map[string]bool{}, 0
	for i, raw := range file.Agents {
		var e Entry
		var err error
		if len(raw) > maxEntry {
			err = fmt.Errorf("longer than %d bytes", maxEntry)
		} else if err = json.Unmarshal(raw, &e); err == nil {
			err = e.usable()
		}
		if err == nil && seen[e.ID] {
			err = fmt.Errorf("duplicate entry %s", e.ID)
		}
		if err != nil {
			if len(skipped) < maxSkipped {
				skipped = append(skipped, fmt.Errorf("entry %d of the registry: %w", i, err))
			} else {
				left++
			}
			continue
		}
		seen[e.ID] = true
		agents = append(agents, e)
	}
	if left > 0 {
		skipped = append(skipped, fmt.Errorf("%d more entries of the registry cannot be used", left))
	}
	return agents, skipped, nil
}

// same reports whether two distributions are the same.
func (d *Distribution) same(o *Distribution) bool {
	a, errA := json.Marshal(d)
	b, errB := json.Marshal(o)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// short returns the beginning of a text.
func short[Text ~string | ~[]byte](text Text) string {
	const most = 200
	if len(text) > most {
		return strings.ToValidUTF8(string(text[:most]), "") + "…"
	}
	return string(text)
}
