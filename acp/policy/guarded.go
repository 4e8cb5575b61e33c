package policy

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/plain"
)

// Modes, and remembered rules, allow no change of a file that programs obey or run although nobody starts it: the next
// git status runs what .git/config names, the next shell what .bashrc has, an editor the tasks of .vscode. These files
// have hidden names, with few exceptions, and few hidden files are of another kind.
var (
	unguarded = set(".gitignore .gitattributes .gitkeep .github .gitlab-ci.yml .editorconfig .dockerignore .prettierrc",
		".prettierignore .eslintignore .clang-format .golangci.yml .golangci.yaml")
	// obeyed are those that are not hidden, and systems the directories in the home directory. HEAD
	// makes a repository of a directory.
	obeyed = set("head lefthook.yml lefthook.yaml lefthook.toml lefthook.json lefthook-local.yml lefthook-local.yaml",
		"lefthook-local.toml lefthook-local.json mise.toml mise.local.toml _vimrc _gvimrc _exrc _netrc")
	systems      = []string{"Library", "AppData", "Documents/PowerShell", "Documents/WindowsPowerShell", "bin"}
	repositories = set(".git .hg .jj .svn .bzr _darcs cvs")
)

// guarded returns why the user is asked about a tool call whatever the mode and the remembered rules allow, or "".
func guarded(cwd string, call acp.ToolCall) string {
	switch call.Kind {
	case acp.ToolKindRead, acp.ToolKindSearch, acp.ToolKindFetch, acp.ToolKindThink,
		acp.ToolKindExecute: // commands are seen whole
		return ""
	}
	home, _ := os.UserHomeDir() // without one there are no files there
	p := &Policy{resolve: ResolveLinks, home: home, posix: true}
	for _, path := range p.facts(Request{Cwd: cwd, ToolCall: call}).paths {
		if path.unresolved {
			return fmt.Sprintf("%q %s", path.text, cmp.Or(path.flaw, "cannot be resolved"))
		}
		for _, form := range path.forms {
			if why := guardedFile(cwd, home, filepath.FromSlash(form)); why != "" {
				return fmt.Sprintf("%q %s", path.text, why)
			}
		}
	}
	return ""
}

func guardedFile(cwd, home, file string) string {
	below := file // what the user has chosen with the working directory does not count
	if real, err := ResolveLinks(cwd); cwd != "" && err == nil {
		for _, dir := range []string{cwd, real} {
			if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
				below = rel
			}
		}
	}
	for _, name := range names(file) {
		if repositories[name] {
			return "belongs to a repository's own data"
		}
	}
	const by = "may be run or obeyed by programs that nobody starts for it"
	inside := func(dir, file string) bool {
		rel, err := filepath.Rel(dir, file)
		return err == nil && filepath.IsLocal(rel)
	}
	for _, dir := range systems {
		if dir = filepath.Join(home, dir); home != "" && inside(dir, file) && !inside(dir, cwd) {
			return by
		}
	}
	elements := names(below)
	for i, name := range elements {
		switch {
		case name[0] == '.' && !unguarded[name]:
			return by
		case i == len(elements)-1 && (obeyed[name] || strings.HasSuffix(name, ".code-workspace")):
			return by
		case strings.Contains(name, "~"): // GIT~1 is .git on Windows
			return "may be another name of a hidden file"
		}
	}
	has := func(elements ...string) bool {
		_, err := os.Lstat(filepath.Join(elements...))
		return err == nil
	}
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		if has(dir, "HEAD") && (has(dir, "objects") && has(dir, "refs") || has(dir, "commondir")) {
			return "is in a directory of Git"
		}
		if has(dir, ".git") && named(filepath.Join(dir, ".git"), dir, home, file) {
			return "is named by the configuration of Git"
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if home != "" && named("", home, home, file) {
		return "is named by the configuration of Git"
	}
	return ""
}

// names returns the elements of a path as the most lenient file system compares them.
func names(path string) (names []string) {
	for name := range strings.FieldsFuncSeq(path, func(r rune) bool { return strings.ContainsRune(`/\:`, r) }) {
		name = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) {
				return -1
			}
			return r
		}, plain.Fold(name))
		if trimmed := strings.TrimRight(name, ". "); trimmed != "" {
			names = append(names, trimmed)
		}
	}
	return names
}

// named reports whether a file is one that the configuration of Git names, such as a hook or a further configuration,
// or in a directory that it names. git is the directory that has the configuration or, in a worktree, the file that
// names it.
func named(git, dir, home, file string) bool {
	configs := []string{"/etc/gitconfig", filepath.Join(home, ".gitconfig"),
		filepath.Join(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), "git", "config")}
	at := func(base, name string) string {
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			return filepath.Join(home, rest)
		} else if filepath.IsAbs(name) {
			return filepath.Clean(name)
		}
		return filepath.Join(base, name)
	}
	if git != "" {
		common := git
		if pointer, ok := strings.CutPrefix(readRegular(git), "gitdir:"); ok {
			git = at(dir, strings.TrimSpace(pointer))
			common = at(git, strings.TrimSpace(readRegular(filepath.Join(git, "commondir"))))
		}
		configs = append(configs, filepath.Join(git, "config.worktree"), filepath.Join(git, "config"),
			filepath.Join(common, "config"))
	}
	root := filepath.VolumeName(dir) + string(filepath.Separator)
	mentions := map[string]*regexp.Regexp{}
	for i := 0; i < min(len(configs), maxConfigs); i++ {
		bases := []string{dir, filepath.Dir(configs[i]), home, root}
		for _, base := range bases {
			if mentions[base] == nil {
				mentions[base] = mention(base, dir, file)
			}
		}
		for line := range strings.Lines(continued.Replace(readRegular(configs[i]))) {
			key, value, ok := strings.Cut(section.ReplaceAllString(line, ""), "=")
			if key = plain.Fold(strings.TrimSpace(key)); !ok ||
				slices.Contains([]string{"url", "pushurl", "worktree", "name", "email"}, key) {
				continue
			}
			text := variable.ReplaceAllString(unquoted.Replace(value), " ")
			if slices.ContainsFunc(bases, func(base string) bool { return mentions[base].MatchString(text) }) {
				return true
			}
			value, _, _ = strings.Cut(value, " #")
			value, _, _ = strings.Cut(value, " ;")
			words := strings.FieldsFunc(value, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"'!;|&`, r) })
			for _, word := range append(words, strings.Trim(value, "\" \t\r\n")) {
				for _, base := range bases[:2] {
					path := at(base, word)
					rel, err := filepath.Rel(path, file)
					if around, _ := filepath.Rel(path, dir); err == nil && filepath.IsLocal(rel) && !filepath.IsLocal(around) {
						return true
					}
					if strings.HasSuffix(key, "path") { // it includes another configuration
						configs = append(configs, path)
					}
				}
			}
		}
	}
	return false
}

var (
	continued = strings.NewReplacer("\\\r\n", "", "\\\n", "")
	section   = regexp.MustCompile(`^\s*\[[^]"]*("(\\.|[^"\\])*")?\]`)
	unquoted  = strings.NewReplacer(`\`, "", `"`, "", "'", "")
	variable  = regexp.MustCompile(`\$\{?\w+\}?`)
)

// mention matches a text that has the name of a file relative to base, or of a directory that it is in and dir is not.
// The text is code for a shell, often, so what comes before a slash may be anything that stands for base.
func mention(base, dir, file string) *regexp.Regexp {
	elements := func(path string) []string {
		rel, err := filepath.Rel(base, path)
		if err != nil || !filepath.IsLocal(rel) || rel == "." {
			return nil
		}
		return strings.Split(filepath.ToSlash(rel), "/")
	}
	outer, inner := elements(dir), elements(file)
	if len(inner) == 0 || len(inner) > maxConfigs {
		return regexp.MustCompile(`[^\x00-\x{10ffff}]`) // nothing
	}
	optional := 0
	var b strings.Builder
	b.WriteString(`(?i)(?:^|[^\pL\pN_./-]|(?:^|[^\pL\pN_-])/)`)
	for i, element := range inner {
		switch {
		case i == 0:
		case i <= len(outer) && slices.Equal(outer[:i], inner[:i]):
			b.WriteString("/+")
		default:
			b.WriteString("(?:/+")
			optional++
		}
		b.WriteString(regexp.QuoteMeta(unquoted.Replace(element)))
	}
	b.WriteString(strings.Repeat(")?", optional) + `/*(?:$|[^\pL\pN_./-])`)
	return regexp.MustCompile(b.String())
}

const maxConfigs = 100

// readRegular returns the text of a file, or "" if it cannot be read or is not a regular file, which could block.
func readRegular(path string) string {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(text)
}
