package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/acpgo/sdk/internal/plain"
)

// pathPattern is a pattern of paths.
type pathPattern struct {
	text     string
	folded   string // the same, case-folded
	relative bool   // relative to the session's working directory
}

func compilePaths(patterns []string, home string) (compiled []pathPattern, err error) {
	for _, pattern := range patterns {
		text := pattern
		switch {
		case len(text) > 2 && driveLetter(text[0]) && text[1:3] == `:\`, strings.HasPrefix(text, `\\`):
			return nil, fmt.Errorf("pattern %q contains \\, which escapes characters: use / instead", pattern)
		case strings.HasPrefix(text, "~") && !strings.HasPrefix(text, "~/"):
			return nil, fmt.Errorf("pattern %q begins with ~ but not with ~/, the home directory; use ./~ for a file of "+
				"that name", pattern)
		case strings.HasPrefix(text, "$"), strings.HasPrefix(text, "%"), strings.HasPrefix(text, "file:"):
			return nil, fmt.Errorf("pattern %q begins with a variable or a URL, which are not supported", pattern)
		}
		if rest, ok := strings.CutPrefix(text, "~/"); ok {
			if home == "" {
				home = "/home" // only the form of the pattern is checked
			}
			text = escapeGlob(slashed(home)) + "/" + rest
		}
		for element := range strings.SplitSeq(text, "/") {
			if element == ".." {
				return nil, fmt.Errorf("pattern %q contains \"..\"", pattern)
			}
		}
		relative := !rooted(text) && !strings.HasPrefix(text, "**")
		if relative {
			text = strings.TrimPrefix(text, "./")
		}
		if !doublestar.ValidatePattern(text) {
			return nil, fmt.Errorf("pattern %q is malformed", pattern)
		}
		compiled = append(compiled, pathPattern{text, plain.Fold(text), relative})
	}
	return compiled, nil
}

// rooted reports whether a path or a pattern, with slashes, is absolute.
func rooted(text string) bool {
	return strings.HasPrefix(text, "/") || len(text) >= 3 && driveLetter(text[0]) && text[1] == ':' && text[2] == '/'
}

func driveLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// escapeGlob escapes the special characters of patterns.
func escapeGlob(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune(`\*?[]{}`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// base is a session's working directory, for use at the beginning of patterns.
type base struct{ text, folded string }

func newBase(cwd string) base {
	if cwd == "" {
		return base{}
	}
	text := strings.TrimSuffix(escapeGlob(cwd), "/") + "/"
	return base{text, plain.Fold(text)}
}

// matches reports whether a path with slashes matches, in a session with the given working directory. If folded is set,
// the path is folded, and the comparison ignores case.
func (p pathPattern) matches(name string, in base, folded bool) bool {
	text, before := p.text, in.text
	if folded {
		text, before = p.folded, in.folded
	}
	if p.relative {
		if before == "" {
			return false
		}
		text = before + text
	}
	ok, err := doublestar.Match(text, name)
	return err == nil && ok // compilePaths has checked the pattern
}

// subject is a path that a request is about.
type subject struct {
	text   string   // as received
	forms  []string // with slashes, absolute and clean: as named, and where it leads
	folded []string // the same, case-folded
	flaw   string   // why no rule can allow it, or ""
	// unresolved: where it leads is not known.
	unresolved bool
}

// examine reads a path. byInput reports whether a tool reads it from its input: then it may be relative to the working
// directory, or more than a path.
func examine(text, cwd string, byInput bool, resolve func(string) (string, error)) subject {
	s := examineName(text, cwd, byInput, resolve)
	if plain := bare(text); byInput && plain != text && plain != "" {
		other := examineName(plain, cwd, byInput, resolve)
		s.forms, s.unresolved = append(s.forms, other.forms...), s.unresolved || other.unresolved
	}
	for _, form := range s.forms {
		s.folded = append(s.folded, plain.Fold(form))
	}
	return s
}

func examineName(text, cwd string, byInput bool, resolve func(string) (string, error)) subject {
	s := subject{text: text, unresolved: true}
	name := text
	windows := len(name) >= 2 && driveLetter(name[0]) && name[1] == ':' || strings.HasPrefix(name, `\\`)
	if windows {
		name = slashed(name)
		s.flaw = windowsFlaw(name)
	}
	if byInput {
		s.flaw = cmp.Or(s.flaw, inputFlaw(text))
	}
	switch {
	case name == "":
		s.flaw = "is empty"
		return s
	case strings.ContainsRune(name, 0):
		s.flaw = "contains a NUL"
		return s
	case !rooted(name):
		if !byInput || cwd == "" || windows {
			s.flaw = "is not absolute"
		}
		if cwd == "" || windows {
			return s
		}
		if !strings.HasPrefix(cwd, "/") {
			name = strings.ReplaceAll(name, `\`, "/")
			s.flaw = cmp.Or(s.flaw, windowsFlaw("C:/"+name))
		}
		name = strings.TrimSuffix(cwd, "/") + "/" + name
	}
	if strings.Contains(name, `\`) {
		s.flaw = "contains a backslash"
	}
	if strings.ContainsFunc(name, invisible) { // some file systems ignore them
		s.flaw = "contains a character that is not visible"
	}
	for element := range strings.SplitSeq(name, "/") {
		if element == ".." {
			s.flaw = `contains ".."`
		}
	}
	name = clean(name)
	s.forms = []string{name}
	if resolve == nil {
		s.unresolved = false
		return s
	}
	real, err := resolve(filepath.FromSlash(name))
	if err != nil {
		if s.flaw == "" {
			s.flaw = "cannot be resolved: " + err.Error()
		}
		return s
	}
	s.unresolved = false
	if real = clean(slashed(real)); real != name {
		s.forms = append(s.forms, real)
	}
	return s
}

// bare returns a path without surrounding characters that a tool may remove: white space, quotes, and invisible
// characters.
func bare(text string) string {
	return strings.TrimFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || invisible(r) || unicode.Is(unicode.Quotation_Mark, r) || r == '`'
	})
}

func invisible(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

var (
	// pathList matches a path after another one.
	pathList = regexp.MustCompile(`[,;|:\s][ \t]*(?:/|~|[A-Za-z]:[/\\])`)
	// escaped matches a character that is escaped as in an address.
	escaped = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
)

// inputFlaw returns what a tool may take a path in its input for, other than the path of a single file.
func inputFlaw(text string) string {
	scheme, _, hasScheme := strings.Cut(text, ":")
	rest := text
	if len(text) > 1 && driveLetter(text[0]) && text[1] == ':' {
		rest = text[2:]
	}
	switch {
	case bare(text) != text:
		return "is surrounded by white space or quotes, which a tool may strip"
	case strings.HasPrefix(text, "@"):
		return "begins with @, which some tools strip"
	case escaped.MatchString(text):
		return "contains a percent-encoded character"
	case strings.HasPrefix(text, "~"):
		return "begins with ~, which many tools expand"
	case strings.Contains(text, "://"),
		hasScheme && scheme != "" && (len(scheme) > 1 || !driveLetter(scheme[0])) &&
			!strings.ContainsFunc(scheme, func(r rune) bool { return !alphanumeric(r) && !strings.ContainsRune("+.-", r) }):
		return "is an address"
	case strings.Contains(text, "$") || strings.Count(text, "%") > 1:
		return "contains a variable, which a tool may expand"
	case strings.ContainsAny(text, "*?[{") || strings.HasPrefix(text, "!") ||
		strings.Contains(text, "@(") || strings.Contains(text, "+(") || strings.Contains(text, "!("):
		return "contains a wildcard, which a tool may expand"
	case pathList.MatchString(rest):
		return "may be a list of paths"
	}
	return ""
}

func alphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// clean returns a path without empty and dot elements, and with an upper-case drive. It keeps the second slash of a
// network path.
func clean(name string) string {
	if strings.HasPrefix(name, "//") && !strings.HasPrefix(name, "///") && os.PathSeparator == '\\' {
		return "/" + path.Clean(name)
	}
	name = path.Clean(name)
	if len(name) >= 2 && name[1] == ':' {
		name = strings.ToUpper(name[:1]) + name[1:]
	}
	return name
}

// slashed returns a path with slashes, if it has backslashes as Windows writes them.
func slashed(name string) string {
	if strings.HasPrefix(name, `\\`) || len(name) >= 2 && driveLetter(name[0]) && name[1] == ':' {
		return strings.ReplaceAll(name, `\`, "/")
	}
	return name
}

// windowsFlaw returns the element of a path that Windows may interpret as a different name.
func windowsFlaw(name string) string {
	if strings.HasPrefix(name, "//") {
		return "is a Windows path without a drive"
	}
	for element := range strings.SplitSeq(name[2:], "/") {
		switch {
		case element == "" || element == "." || element == "..":
		case strings.ContainsAny(element, `:~<>|?*"`) || strings.HasSuffix(element, ".") || strings.HasSuffix(element, " "):
			return fmt.Sprintf("has an element that Windows interprets differently: %q", element)
		}
	}
	return ""
}

// ResolveLinks returns where a path leads when its symbolic links are followed on this machine; elements that do not
// exist are kept unchanged. Use it for Options.Resolve.
func ResolveLinks(name string) (string, error) {
	rest := ""
	for at := name; ; {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		// A dangling link exists itself, and writing to it creates its target.
		if _, err := os.Lstat(at); err == nil {
			return "", fmt.Errorf("%s is a dangling symbolic link", at)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		parent := filepath.Dir(at)
		if parent == at {
			return "", fmt.Errorf("%s: %w", name, fs.ErrNotExist)
		}
		rest = filepath.Join(filepath.Base(at), rest)
		at = parent
	}
}
