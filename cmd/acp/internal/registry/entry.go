// agent.json: what can be seen of it without the network.

package registry

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// entry is agent.json, as far as it could be read.
type entry struct {
	id, version string
	binary      map[string]*distribution // by platform
	npx, uvx    *distribution
}

// distribution is one way to get and to start the agent.
type distribution struct {
	pointer string
	archive string // of a binary
	sha256  string
	pkg     string // of npx and uvx, with its version
	cmd     string
	args    []string
	env     map[string]string
}

var (
	idPattern      = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	versionPattern = regexp.MustCompile(`^\d+\.\d+\.\d+`)
	versionInside  = regexp.MustCompile(`\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?`)
	latestPattern  = regexp.MustCompile(`(?i)(^|[^a-z])latest([^a-z]|$)`)
	sumPattern     = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
)

// platforms are the keys of binary.
var platforms = []string{"darwin-aarch64", "darwin-x86_64", "linux-aarch64", "linux-x86_64", "windows-aarch64", "windows-x86_64"}

func (c *checker) check() {
	c.begin(partEntry, "agent.json is as the registry's schema and scripts want it.")
	e := c.entry()
	c.begin(partIcon, "icon.svg is as the registry wants it.")
	c.icon()
	if e == nil {
		return
	}
	c.begin(partAddresses, "Addresses and packages exist.")
	if c.Offline {
		c.part.Skipped = "it needs the network"
	} else {
		c.addresses(e)
	}
	c.launches(e)
}

// entry reads agent.json; nil if there is nothing to read.
func (c *checker) entry() *entry {
	c.ran("REG-2")
	text, err := readFile(filepath.Join(c.Dir, "agent.json"))
	if err != nil {
		c.fail("REG-2", "", "agent.json: %v", err)
		return nil
	}
	if !json.Valid(text) {
		var v any
		c.fail("REG-2", "", "agent.json is no JSON: %v", json.Unmarshal(text, &v))
		return nil
	}
	m := members(text)
	if m == nil {
		c.fail("REG-2", "", "agent.json is no object")
		return nil
	}
	e := &entry{binary: map[string]*distribution{}}
	e.id, _ = c.text("REG-2", m, "", "id", true)
	c.text("REG-2", m, "", "name", true)
	e.version, _ = c.text("REG-2", m, "", "version", true)
	c.text("REG-2", m, "", "description", true)
	c.text("REG-2", m, "", "license", false)
	for _, name := range []string{"repository", "website", "license_url", "icon"} {
		if address, ok := c.text("REG-2", m, "", name, false); ok && !isAddress(address) {
			c.fail("REG-2", "/"+name, "%q is no address", address)
		}
	}
	if authors, ok := m["authors"]; ok {
		var list []string
		if json.Unmarshal(authors, &list) != nil || list == nil {
			c.fail("REG-2", "/authors", "it is no list of texts")
		}
	}
	known := []string{"id", "name", "version", "description", "distribution", "repository", "website", "authors", "license", "license_url", "icon", "$schema"}
	for _, name := range sorted(m) {
		if !slices.Contains(known, name) {
			c.warn("REG-2", "/"+name, "the registry knows no such member")
		}
	}
	c.identity(e)
	if m["distribution"] == nil {
		c.fail("REG-2", "", "distribution is left out")
		return e
	}
	c.distribution(e, m["distribution"])
	return e
}

func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

// text is a member that is a text and not empty.
func (c *checker) text(id string, m map[string]json.RawMessage, pointer, name string, required bool) (string, bool) {
	value, ok := m[name]
	if !ok {
		if required {
			c.fail(id, pointer, "%s is left out", name)
		}
		return "", false
	}
	var text *string
	if json.Unmarshal(value, &text) != nil || text == nil {
		c.fail(id, pointer+"/"+name, "it is no text")
		return "", false
	}
	if *text == "" {
		c.fail(id, pointer+"/"+name, "it is empty")
		return "", false
	}
	return *text, true
}

// identity looks at the id and the version.
func (c *checker) identity(e *entry) {
	if e.id != "" {
		c.ran("REG-3")
		if !idPattern.MatchString(e.id) {
			c.fail("REG-3", "/id", "%q has other characters than small letters, digits and -, or does not begin with a letter", e.id)
		}
		if folder := filepath.Base(c.Dir); folder != e.id {
			c.fail("REG-3", "/id", "it is %q, and the folder is %q", e.id, folder)
		}
		others, err := filepath.Glob(filepath.Join(escape(filepath.Dir(c.Dir)), "*", "agent.json"))
		if err != nil {
			others = nil // never: the pattern is right
		}
		for _, other := range others {
			if filepath.Dir(other) == c.Dir {
				continue
			}
			text, err := readFile(other)
			if err != nil {
				continue // somebody else's
			}
			var x struct{ ID string }
			if json.Unmarshal(text, &x) == nil && x.ID == e.id {
				c.fail("REG-3", "/id", "%s has the same id", filepath.Base(filepath.Dir(other)))
			}
		}
	}
	if e.version != "" {
		c.ran("REG-3")
		if !versionPattern.MatchString(e.version) {
			c.fail("REG-3", "/version", "%q does not begin with three numbers", e.version)
		}
	}
}

// escape is a path as a pattern.
func escape(path string) string {
	return strings.NewReplacer(`[`, `[[]`, `*`, `[*]`, `?`, `[?]`).Replace(path)
}

func (c *checker) distribution(e *entry, text json.RawMessage) {
	c.ran("REG-4")
	m := members(text)
	if len(m) == 0 {
		c.fail("REG-4", "/distribution", "it has none of binary, npx and uvx")
	}
	for _, kind := range sorted(m) {
		pointer := "/distribution/" + kind
		switch kind {
		case "binary":
			c.binary(e, m[kind])
		case "npx", "uvx":
			d := c.packaged(e, kind, m[kind])
			if kind == "npx" {
				e.npx = d
			} else {
				e.uvx = d
			}
		default:
			c.fail("REG-4", pointer, "there is no such distribution: binary, npx, uvx")
		}
	}
	if m["binary"] == nil {
		c.why("REG-5", "there is no binary")
		c.why("REG-6", "there is no binary")
	}
	if m["npx"] == nil && m["uvx"] == nil {
		c.why("REG-7", "there is no npx and no uvx")
	}
}

func (c *checker) binary(e *entry, text json.RawMessage) {
	c.ran("REG-5")
	m := members(text)
	if len(m) == 0 {
		c.fail("REG-5", "/distribution/binary", "it has no system")
		return
	}
	systems := map[string]bool{}
	for _, platform := range sorted(m) {
		pointer := "/distribution/binary/" + platform
		if !slices.Contains(platforms, platform) {
			c.fail("REG-5", pointer, "there is no such system: %s", strings.Join(platforms, ", "))
			continue
		}
		system, _, _ := strings.Cut(platform, "-")
		systems[system] = true
		one := members(m[platform])
		if one == nil {
			c.fail("REG-5", pointer, "it is no object")
			continue
		}
		d := &distribution{pointer: pointer}
		var ok bool
		if d.archive, ok = c.text("REG-5", one, pointer, "archive", true); ok {
			c.archive(e, d)
		}
		d.cmd, _ = c.text("REG-5", one, pointer, "cmd", true)
		if d.sha256, ok = c.text("REG-5", one, pointer, "sha256", false); ok && !sumPattern.MatchString(d.sha256) {
			c.fail("REG-5", pointer+"/sha256", "it has not the 64 digits of a SHA-256")
		}
		c.start("REG-5", d, one, "archive", "cmd", "args", "env", "sha256")
		if d.archive != "" && d.cmd != "" {
			e.binary[platform] = d
		}
	}
	var missing []string
	for _, system := range []string{"darwin", "linux", "windows"} {
		if !systems[system] {
			missing = append(missing, system)
		}
	}
	if len(missing) > 0 && len(systems) > 0 {
		c.warn("REG-5", "/distribution/binary", "it has nothing for %s", strings.Join(missing, " and "))
	}
}

// installers are what nobody may have to run.
var installers = []string{".dmg", ".pkg", ".deb", ".rpm", ".msi", ".appimage"}

// archive looks at the address of an archive.
func (c *checker) archive(e *entry, d *distribution) {
	c.ran("REG-6", "REG-8")
	pointer := d.pointer + "/archive"
	if !isAddress(d.archive) {
		c.fail("REG-8", pointer, "%q is no address", d.archive)
		return
	}
	name := strings.ToLower(fileName(d.archive))
	for _, suffix := range installers {
		if strings.HasSuffix(name, suffix) {
			c.fail("REG-6", pointer, "%s is an installer", name)
		}
	}
	if latestPattern.MatchString(d.archive) {
		c.fail("REG-8", pointer, "the address says latest, and not which version")
		return
	}
	if e.version == "" {
		return
	}
	if found := versionInside.FindAllString(d.archive, -1); len(found) > 0 && !strings.Contains(d.archive, e.version) {
		c.fail("REG-8", pointer, "the address is of the version %s, and the entry of %s", found[0], e.version)
	}
}

// fileName is the last part of an address.
func fileName(address string) string {
	if u, err := url.Parse(address); err == nil {
		address = u.Path
	}
	return address[strings.LastIndex(address, "/")+1:]
}

// packaged reads npx or uvx.
func (c *checker) packaged(e *entry, kind string, text json.RawMessage) *distribution {
	c.ran("REG-7", "REG-8")
	pointer := "/distribution/" + kind
	m := members(text)
	if m == nil {
		c.fail("REG-7", pointer, "it is no object")
		return nil
	}
	d := &distribution{pointer: pointer}
	var ok bool
	if d.pkg, ok = c.text("REG-7", m, pointer, "package", true); !ok {
		return nil
	}
	d.cmd, _ = c.text("REG-7", m, pointer, "cmd", false)
	c.start("REG-7", d, m, "package", "cmd", "args", "env")
	name, version := splitPackage(kind, d.pkg)
	switch {
	case name == "" || strings.ContainsAny(name, " \t"):
		c.fail("REG-7", pointer+"/package", "%q is no package", d.pkg)
		return nil
	case strings.EqualFold(version, "latest"):
		c.fail("REG-8", pointer+"/package", "%q says latest, and not which version", d.pkg)
	case version == "":
		c.fail("REG-8", pointer+"/package", "%q has no version", d.pkg)
	case !versionPattern.MatchString(version):
		c.fail("REG-8", pointer+"/package", "the version %q is not exact", version)
	case e.version != "" && version != e.version:
		c.fail("REG-8", pointer+"/package", "the package has the version %s, and the entry %s", version, e.version)
	}
	return d
}

// splitPackage is a package's name and version.
func splitPackage(kind, pkg string) (name, version string) {
	if kind == "uvx" {
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
	if kind == "uvx" {
		name, _, _ = strings.Cut(name, "[")
	}
	return name, version
}

// start reads args and env, and looks for members that nobody knows.
func (c *checker) start(id string, d *distribution, m map[string]json.RawMessage, known ...string) {
	if args, ok := m["args"]; ok {
		if json.Unmarshal(args, &d.args) != nil || d.args == nil {
			c.fail(id, d.pointer+"/args", "it is no list of texts")
		}
	}
	if env, ok := m["env"]; ok {
		if json.Unmarshal(env, &d.env) != nil || d.env == nil {
			c.fail(id, d.pointer+"/env", "it is no object of texts")
		}
		for _, name := range sorted(d.env) {
			if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(d.env[name], "\x00") {
				c.fail(id, fmt.Sprintf("%s/env/%s", d.pointer, name), "it is no variable")
				delete(d.env, name)
			}
		}
	}
	for _, name := range sorted(m) {
		if !slices.Contains(known, name) {
			c.fail(id, d.pointer+"/"+name, "the registry knows no such member")
		}
	}
}
