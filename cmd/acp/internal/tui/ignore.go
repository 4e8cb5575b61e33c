package tui

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/acpgo/sdk/internal/gitignore"
)

// ignores are the rules for a directory of a repository. Nil is for a directory outside of repositories.
type ignores struct {
	root  string
	rules gitignore.Rules
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
	more := *r
	more.read(filepath.Join(dir, ".gitignore"), base)
	return &more
}

// path returns the path of a file from the root, with slashes.
func (r *ignores) path(file string) (string, bool) {
	relative, err := filepath.Rel(r.root, file)
	return filepath.ToSlash(relative), err == nil && filepath.IsLocal(relative)
}

// read adds the rules of a file, which apply to the directory base. An unreadable file has none.
func (r *ignores) read(file, base string) {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > gitignore.MaxFile {
		return
	}
	if text, err := os.ReadFile(file); err == nil {
		r.rules = r.rules.With(text, base)
	}
}

// match reports whether a file or directory is ignored.
func (r *ignores) match(file string, dir bool) bool {
	if r == nil {
		return false
	}
	whole, ok := r.path(file)
	return ok && r.rules.Match(whole, dir)
}
