// Package gitignore tells which files Git ignores, according to gitignore(5). Git itself is not run: a directory may be
// a stranger's, and its configuration can make Git start programs. A set that begins with a ] or contains a class such
// as [:alpha:] matches nothing, and a ? matches a character, in Git a byte.
package gitignore

import (
	"path"
	"slices"
	"strings"
)

// Rules are the rules for a directory, of which the last one that matches decides.
type Rules []rule

// rule is a line of a file such as .gitignore.
type rule struct {
	base    string   // the directory that it applies to, with slashes; "" for the root
	pattern []string // by slashes
	whole   bool     // it matches the path from base, not only the name
	dirOnly bool
	keep    bool // it negates other rules
}

// MaxFile is the maximum size of a file of rules in bytes, and maxLine that of a line.
const (
	MaxFile = 1 << 20
	maxLine = 4096
)

// With returns the rules and, after them, those of a file for the directory base, whose path has slashes; "" is the
// root.
func (r Rules) With(text []byte, base string) Rules {
	r = slices.Clip(r)
	for line := range strings.SplitSeq(strings.TrimPrefix(string(text), "\ufeff"), "\n") {
		if rule, ok := newRule(strings.TrimSuffix(line, "\r"), base); ok {
			r = append(r, rule)
		}
	}
	return r
}

// Match reports whether a file or directory is ignored. Its path is that from the root, with slashes.
func (r Rules) Match(file string, dir bool) bool {
	for _, rule := range slices.Backward(r) {
		if rule.dirOnly && !dir {
			continue
		}
		name := []string{path.Base(file)}
		if rule.whole {
			name = strings.Split(strings.TrimPrefix(strings.TrimPrefix(file, rule.base), "/"), "/")
		}
		if match(rule.pattern, name) {
			return !rule.keep
		}
	}
	return false
}

// match reports whether a pattern matches a path. The element ** matches any elements, and at the end one or more.
func match(pattern, name []string) bool {
	again, from := 0, -1 // what follows the last **, and the elements that it has matched
	p, n := 0, 0
	for n < len(name) || p < len(pattern) {
		if p < len(pattern) && pattern[p] == "**" && (p+1 < len(pattern) || n < len(name)) {
			if p++; p == len(pattern) {
				return true
			}
			again, from = p, n
			continue
		}
		if p < len(pattern) && n < len(name) {
			if ok, err := path.Match(pattern[p], name[n]); ok && err == nil {
				p, n = p+1, n+1
				continue
			}
		}
		if from < 0 || from == len(name) {
			return false
		}
		from++
		p, n = again, from
	}
	return true
}

// newRule parses a line; ok is false if it contains no rule.
func newRule(text, base string) (r rule, ok bool) {
	if strings.HasPrefix(text, "#") || len(text) > maxLine {
		return r, false
	}
	for strings.HasSuffix(text, " ") && !strings.HasSuffix(text, `\ `) {
		text = strings.TrimSuffix(text, " ")
	}
	r.base = base
	if rest, found := strings.CutPrefix(text, "!"); found {
		r.keep, text = true, rest
	}
	text, r.dirOnly = strings.CutSuffix(text, "/")
	r.whole = strings.Contains(text, "/")
	text = negated.Replace(strings.TrimPrefix(text, "/"))
	r.pattern = strings.Split(text, "/")
	return r, text != ""
}

// negated writes a negated set as package path does.
var negated = strings.NewReplacer(`\\`, `\\`, `\[`, `\[`, "[!", "[^")
