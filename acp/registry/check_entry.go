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

var (
	versionInside = regexp.MustCompile(`\d+\.\d+\.\d+(?:-[0-9A-Za-z.]+)?`)
	latestPattern = regexp.MustCompile(`(?i)(^|[^a-z])latest([^a-z]|$)`)
)

// platforms are the keys of binary.
var platforms = []string{"darwin-aarch64", "darwin-x86_64", "linux-aarch64", "linux-x86_64", "windows-aarch64",
	"windows-x86_64"}

func (c *checker) check(text []byte, failed error) {
	c.begin(stepEntry, "agent.json is as the registry's schema and scripts want it.")
	e := c.entry(text, failed)
	c.begin(stepIcon, "icon.svg is as the registry wants it.")
	c.icon()
	if e == nil {
		return
	}
	c.begin(stepAddresses, "Addresses and packages exist.")
	if c.Offline {
		c.step.Skipped = needsNetwork
	} else {
		c.addresses(e)
	}
	c.launches(e)
}

// entry reads agent.json; it returns nil if there is nothing to read.
func (c *checker) entry(text []byte, failed error) *Entry {
	c.ran("REG-2")
	if failed != nil {
		c.fail("REG-2", "", "agent.json: %v", failed)
		return nil
	}
	if !json.Valid(text) {
		var v any
		c.fail("REG-2", "", "agent.json is not JSON: %v", json.Unmarshal(text, &v))
		return nil
	}
	m := members(text)
	if m == nil {
		c.fail("REG-2", "", "agent.json is not an object")
		return nil
	}
	e := &Entry{Distribution: Distribution{Binary: map[string]Archive{}}}
	e.ID, _ = c.text("REG-2", m, "", "id", true)
	c.text("REG-2", m, "", "name", true)
	e.Version, _ = c.text("REG-2", m, "", "version", true)
	c.text("REG-2", m, "", "description", true)
	c.text("REG-2", m, "", "license", false)
	for _, name := range []string{"repository", "website", "license_url", "icon"} {
		if address, ok := c.text("REG-2", m, "", name, name == "license_url"); ok && !isAddress(address) {
			c.fail("REG-2", "/"+name, "%q is no address", address)
		}
	}
	if authors, ok := m["authors"]; ok {
		var list []string
		if json.Unmarshal(authors, &list) != nil || list == nil {
			c.fail("REG-2", "/authors", "it is not a list of texts")
		}
	}
	known := []string{"id", "name", "version", "description", "distribution", "repository", "website", "authors",
		"license", "license_url", "icon", "preview", "$schema"}
	for _, name := range sorted(m) {
		if !slices.Contains(known, name) {
			c.warn("REG-2", "/"+name, "the registry knows no such member")
		}
	}
	c.identity(e)
	if preview := m["preview"]; preview != nil {
		c.preview(e, preview)
	}
	if m["distribution"] == nil {
		c.fail("REG-2", "", "distribution is left out")
		return e
	}
	c.distribution(e, m["distribution"])
	return e
}

// preview reads the version before its release.
func (c *checker) preview(e *Entry, text json.RawMessage) {
	c.base = "/preview"
	defer func() { c.base = "" }()
	m := members(text)
	if m == nil {
		c.fail("REG-2", "", "it is not an object")
		return
	}
	p := &Entry{Distribution: Distribution{Binary: map[string]Archive{}}}
	p.Version, _ = c.text("REG-2", m, "", "version", true)
	for _, name := range sorted(m) {
		if name != "version" && name != "distribution" {
			c.fail("REG-2", "/"+name, "a preview has only version and distribution")
		}
	}
	c.identity(p)
	if p.Version != "" && versionPattern.MatchString(p.Version) && !previewPattern.MatchString(p.Version) {
		c.warn("REG-3", "/version", "%q is not like 1.2.3-preview.1", p.Version)
	}
	if m["distribution"] == nil {
		c.fail("REG-2", "", "distribution is left out")
		return
	}
	c.distribution(p, m["distribution"])
	e.Preview = &Preview{p.Version, p.Distribution}
}

func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

// text returns a member that must be a text and not empty.
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
		c.fail(id, pointer+"/"+name, "it is not text")
		return "", false
	}
	if *text == "" {
		c.fail(id, pointer+"/"+name, "it is empty")
		return "", false
	}
	return *text, true
}

// identity checks the id and the version.
func (c *checker) identity(e *Entry) {
	if e.ID != "" {
		c.ran("REG-3")
		if !idPattern.MatchString(e.ID) {
			c.fail("REG-3", "/id", "%q has other characters than small letters, digits and -, or does not begin with a letter",
				e.ID)
		}
		if c.dir != "" {
			c.folder(e)
		}
	}
	if e.Version != "" {
		c.ran("REG-3")
		if !versionPattern.MatchString(e.Version) {
			c.fail("REG-3", "/version", "%q does not begin with three numbers", e.Version)
		}
	}
}

// folder compares the id with the directory, and with the other entries next to it.
func (c *checker) folder(e *Entry) {
	if folder := filepath.Base(c.dir); folder != e.ID {
		c.fail("REG-3", "/id", "it is %q, and the folder is %q", e.ID, folder)
	}
	others, err := filepath.Glob(filepath.Join(escape(filepath.Dir(c.dir)), "*", "agent.json"))
	if err != nil {
		others = nil // impossible: the pattern is valid
	}
	for _, other := range others {
		if filepath.Dir(other) == c.dir {
			continue
		}
		text, err := readFile(other, maxFile)
		if err != nil {
			continue // it belongs to someone else
		}
		var x struct{ ID string }
		if json.Unmarshal(text, &x) == nil && x.ID == e.ID {
			c.fail("REG-3", "/id", "%s has the same id", filepath.Base(filepath.Dir(other)))
		}
	}
}

// escape returns a path as a pattern that matches only that path.
func escape(path string) string {
	return strings.NewReplacer(`[`, `[[]`, `*`, `[*]`, `?`, `[?]`).Replace(path)
}

func (c *checker) distribution(e *Entry, text json.RawMessage) {
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
			p := c.packaged(e, Kind(kind), m[kind])
			if Kind(kind) == NPX {
				e.Distribution.NPX = p
			} else {
				e.Distribution.UVX = p
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

func (c *checker) binary(e *Entry, text json.RawMessage) {
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
			c.fail("REG-5", pointer, "it is not an object")
			continue
		}
		var a Archive
		var ok bool
		if a.Archive, ok = c.text("REG-5", one, pointer, "archive", true); ok {
			c.archive(e, a.Archive, pointer+"/archive")
		}
		if a.Cmd, ok = c.text("REG-5", one, pointer, "cmd", true); ok && !slices.Contains(interpreters, a.Cmd) {
			if _, err := localCommand(a.Cmd); err != nil {
				c.fail("REG-6", pointer+"/cmd", "%v", err)
			}
		}
		if a.SHA256, ok = c.text("REG-5", one, pointer, "sha256", false); ok && !sumPattern.MatchString(a.SHA256) {
			c.fail("REG-5", pointer+"/sha256", "it has not the 64 digits of a SHA-256")
		}
		a.Args, a.Env = c.start("REG-5", pointer, one, "archive", "cmd", "args", "env", "sha256")
		if a.Archive != "" && a.Cmd != "" {
			e.Distribution.Binary[platform] = a
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

// archive checks the address of an archive.
func (c *checker) archive(e *Entry, address, pointer string) {
	c.ran("REG-6", "REG-8")
	if !isAddress(address) {
		c.fail("REG-8", pointer, "%q is no address", address)
		return
	}
	if name := strings.ToLower(fileName(address)); isInstaller(name) {
		c.fail("REG-6", pointer, "%s is an installer", name)
	} else if isOtherArchive(name) {
		c.fail("REG-6", pointer, "%s is an archive of an unsupported kind: .zip, .tar.gz, .tgz, .tar.bz2, .tbz2", name)
	}
	if latestPattern.MatchString(address) {
		c.fail("REG-8", pointer, "the address says latest, and not which version")
		return
	}
	if e.Version == "" {
		return
	}
	if found := versionInside.FindAllString(address, -1); len(found) > 0 && !strings.Contains(address, e.Version) {
		c.fail("REG-8", pointer, "the address is of the version %s, and the entry of %s", found[0], e.Version)
	}
}

// packaged reads npx or uvx.
func (c *checker) packaged(e *Entry, kind Kind, text json.RawMessage) *Package {
	c.ran("REG-7", "REG-8")
	pointer := "/distribution/" + string(kind)
	m := members(text)
	if m == nil {
		c.fail("REG-7", pointer, "it is not an object")
		return nil
	}
	var p Package
	var ok bool
	if p.Package, ok = c.text("REG-7", m, pointer, "package", true); !ok {
		return nil
	}
	p.Cmd, _ = c.text("REG-7", m, pointer, "cmd", false)
	p.Args, p.Env = c.start("REG-7", pointer, m, "package", "cmd", "args", "env")
	name, version := splitPackage(kind, p.Package)
	switch {
	case name == "" || strings.ContainsAny(name, " \t"):
		c.fail("REG-7", pointer+"/package", "%q is not a package", p.Package)
		return nil
	case strings.EqualFold(version, "latest"):
		c.fail("REG-8", pointer+"/package", "%q says latest, and not which version", p.Package)
	case version == "":
		c.fail("REG-8", pointer+"/package", "%q has no version", p.Package)
	case !exactVersion(kind, version):
		c.fail("REG-8", pointer+"/package", "the version %q is not exact", version)
	case e.Version != "" && version != e.Version:
		c.fail("REG-8", pointer+"/package", "the package has the version %s, and the entry %s", version, e.Version)
	}
	return &p
}

// start reads args and env, and checks for unknown members.
func (c *checker) start(id, pointer string, m map[string]json.RawMessage, known ...string) (list []string,
	variables map[string]string) {
	if args, ok := m["args"]; ok {
		if json.Unmarshal(args, &list) != nil || list == nil {
			c.fail(id, pointer+"/args", "it is not a list of texts")
		}
	}
	if env, ok := m["env"]; ok {
		if json.Unmarshal(env, &variables) != nil || variables == nil {
			c.fail(id, pointer+"/env", "it is not an object of texts")
		}
		for _, name := range sorted(variables) {
			if usableEnv(map[string]string{name: variables[name]}) != nil {
				c.fail(id, fmt.Sprintf("%s/env/%s", pointer, name), "it is not a valid variable name")
				delete(variables, name)
			}
		}
	}
	for _, name := range sorted(m) {
		if !slices.Contains(known, name) {
			c.fail(id, pointer+"/"+name, "the registry knows no such member")
		}
	}
	return list, variables
}
