package tui

// Which files Git ignores, according to gitignore(5). Git itself is not run: the directory may be a stranger's, and its
// configuration can make Git start programs. A set that begins with a ] or contains a class such as [:alpha:] matches
// nothing.

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// ignoreRule is a line of a file such as .gitignore.
type ignoreRule struct {
	base    string // the directory that it applies to, with slashes, from the root of the repository; "" for the root
	pattern string
	whole   bool // it matches the path from base, not only the name
	dirOnly bool
	keep    bool // it negates other rules
}

// maxIgnore is the maximum size of a file of rules in bytes, and maxIgnoreLine that of a line.
const (
	maxIgnore     = 1 << 20
	maxIgnoreLine = 4096
)

// ignores are the rules for a directory of a repository. The last matching rule applies. Nil is for a directory outside
// of repositories.
type ignores struct {
	root  string
	rules []ignoreRule
}

// ignoresOf returns the rules for a directory: the user's own, those of its repository, and those of the directories
// from the root of the repository to the directory itself.
func ignoresOf(dir string) *ignores {
	for root := dir; ; {
		if isRepository(root) {
			r := ignoresIn(root)
			for at := root; at != dir; {
				rest, err := filepath.Rel(at, dir)
				if err != nil {
					return r
				}
				first, _, _ := strings.Cut(filepath.ToSlash(rest), "/")
				at = filepath.Join(at, first)
				r = r.forFolder(at)
			}
			return r
		}
		parent := filepath.Dir(root)
		if parent == root {
			return nil
		}
		root = parent
	}
}

// isRepository reports whether a directory is the root of a repository or of a worktree.
func isRepository(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return err == nil
}

// ignoresIn returns the rules for the root of a repository.
func ignoresIn(root string) *ignores {
	r := &ignores{root: root}
	config := os.Getenv("XDG_CONFIG_HOME")
	if home, err := os.UserHomeDir(); config == "" && err == nil {
		config = filepath.Join(home, ".config")
	}
	if config != "" {
		r.read(filepath.Join(config, "git", "ignore"), "")
	}
	r.read(filepath.Join(root, ".git", "info", "exclude"), "")
	r.read(filepath.Join(root, ".gitignore"), "")
	return r
}

// forFolder returns the rules for a subdirectory.
func (r *ignores) forFolder(dir string) *ignores {
	if isRepository(dir) {
		return ignoresIn(dir)
	}
	if r == nil {
		return nil
	}
	base, ok := r.path(dir)
	if !ok {
		return r
	}
	more := &ignores{r.root, r.rules[:len(r.rules):len(r.rules)]}
	more.read(filepath.Join(dir, ".gitignore"), base)
	return more
}

// path returns the path of a file from the root, with slashes.
func (r *ignores) path(file string) (string, bool) {
	relative, err := filepath.Rel(r.root, file)
	return filepath.ToSlash(relative), err == nil && filepath.IsLocal(relative)
}

// read adds the rules of a file, which apply to the directory base. An unreadable file has none.
func (r *ignores) read(file, base string) {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnore {
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	for l := range strings.SplitSeq(strings.TrimPrefix(string(text), "\ufeff"), "\n") {
		if rule, ok := newIgnoreRule(strings.TrimSuffix(l, "\r"), base); ok {
			r.rules = append(r.rules, rule)
		}
	}
}

// newIgnoreRule parses a line; ok is false if it contains no rule.
func newIgnoreRule(text, base string) (rule ignoreRule, ok bool) {
	if strings.HasPrefix(text, "#") || len(text) > maxIgnoreLine {
		return rule, false
	}
	for strings.HasSuffix(text, " ") && !strings.HasSuffix(text, `\ `) {
		text = strings.TrimSuffix(text, " ")
	}
	rule.base = base
	if rest, found := strings.CutPrefix(text, "!"); found {
		rule.keep, text = true, rest
	}
	text, rule.dirOnly = strings.CutSuffix(text, "/")
	rule.whole = strings.Contains(text, "/")
	text = strings.TrimPrefix(text, "/")
	if text == "" {
		return rule, false
	}
	rule.pattern = strings.NewReplacer("{", `\{`, "}", `\}`, `\\`, `\\`, `\{`, `\{`, `\}`, `\}`).Replace(text)
	return rule, doublestar.ValidatePattern(rule.pattern)
}

// match reports whether a file or directory is ignored.
func (r *ignores) match(file string, dir bool) bool {
	if r == nil {
		return false
	}
	whole, ok := r.path(file)
	if !ok {
		return false
	}
	for i := len(r.rules) - 1; i >= 0; i-- {
		rule := &r.rules[i]
		if rule.dirOnly && !dir {
			continue
		}
		text := path.Base(whole)
		if rule.whole {
			text = strings.TrimPrefix(strings.TrimPrefix(whole, rule.base), "/") // the path relative to base
		}
		if doublestar.MatchUnvalidated(rule.pattern, text) {
			return !rule.keep
		}
	}
	return false
}
