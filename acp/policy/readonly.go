package policy

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// reader is a command that changes nothing as long as it has no options other than these, which may be in any position.
// They do not include those that follow the links in a directory, because these may lead to files that no rule covers.
type reader struct {
	letters string // short options, which may be joined, and may be followed by numbers
	options string // options that are whole words, and may have a value after "="; those that end with "*" are prefixes
	// The meaning of operands: files, unless one of these says otherwise.
	none  bool           // none are allowed, except first
	texts bool           // they are not files
	first *regexp.Regexp // the first one is not a file, and must match
}

var (
	anyText = regexp.MustCompile(``)
	// sedPrint matches scripts that print some lines. Others can write files, and run commands.
	sedPrint = regexp.MustCompile(`^([0-9]+|\$|/[^/\\[\n]*/)(,([0-9]+|\$|/[^/\\[\n]*/))?p$`)
	dateForm = regexp.MustCompile(`^\+`)
)

// Options that several commands of git share. They do not include --output, which writes, nor --ext-diff and
// --textconv, which run programs.
const (
	gitRevisions = " --oneline --graph --all --branches --tags --remotes --decorate --no-decorate --author --committer " +
		"--grep --since" +
		" --until --after --before --max-count --skip --reverse --follow --merges --no-merges --first-parent " +
		"--format --pretty" +
		" --abbrev-commit --date --topo-order --date-order --source --left-right --cherry-pick"
	gitDiffs = " --stat --shortstat --numstat --summary --name-only --name-status --patch --no-patch --unified --color " +
		"--no-color --word-diff" +
		" --color-words --cached --staged --merge-base --ignore-all-space --ignore-space-change --ignore-blank-lines " +
		"--diff-filter" +
		" --find-renames --find-copies --no-renames --minimal --patience --histogram --diff-algorithm --function-context " +
		"--no-ext-diff" +
		" --no-textconv --no-prefix --relative --check --exit-code --quiet --raw --dirstat --compact-summary " +
		"--full-index --abbrev"
	grepOptions = " --ignore-case --line-number --files-with-matches --files-without-match --count --word-regexp " +
		"--fixed-strings" +
		" --extended-regexp --perl-regexp --invert-match --only-matching --max-count --after-context --before-context " +
		"--context"
)

// readers are commands, of up to three words, that are known to only read.
var readers = map[string]reader{
	"basename": {letters: "asz", texts: true},
	"cat":      {letters: "AbeEnstTuv", options: "--number --show-all"},
	"cmp":      {letters: "bls"},
	"column":   {letters: "t"},
	"cut":      {letters: "s", options: "-b* -c* -d* -f*"},
	"date":     {letters: "uR", options: "--utc", first: dateForm, none: true}, // another operand sets the clock
	"df":       {letters: "hTikP"},
	"diff":     {letters: "aBbciqsuUwyN", options: "--brief --unified --color --ignore-all-space --side-by-side"},
	"dirname":  {letters: "z", texts: true},
	"du":       {letters: "abchkmsx", options: "--max-depth --summarize --human-readable --apparent-size"},
	"echo":     {letters: "neE", texts: true},
	"false":    {none: true},
	"file":     {letters: "biL", options: "--brief --mime-type --mime"},
	"grep": {letters: "abcEFhHiIlLnoPqrsvwxmABC",
		options: "--include --exclude --exclude-dir --recursive --color --colour" + grepOptions, first: anyText},
	"head": {letters: "ncqv", options: "--lines --bytes"},
	"id":   {letters: "ugnGr", texts: true},
	"ls": {letters: "aABcCdFgGhHiklmnNopqQrRsStTuUvwxXZ1",
		options: "--all --almost-all --color --human-readable --recursive --directory --time-style " +
			"--group-directories-first --full-time"},
	"md5sum":   {},
	"nl":       {letters: "ban"},
	"pwd":      {letters: "LP", none: true},
	"readlink": {letters: "efmn"},
	"realpath": {letters: "emsz", options: "--relative-to --relative-base"},
	"rev":      {},
	"rg": {letters: "abcFHiIlnNopPsSUuvwxgtTmABC",
		options: "--hidden --no-ignore --glob --iglob --type --type-not --smart-case --color --no-heading --heading " +
			"--multiline --json --stats --sort --max-depth" + grepOptions, first: anyText},
	"rg --files": {letters: "gtTu", options: "--hidden --no-ignore --glob --iglob --type --type-not --sort --max-depth"},
	"sed -n":     {first: sedPrint},
	"sha256sum":  {},
	"sort": {letters: "bdfghinrsuVkt",
		options: "-k* -t* --reverse --numeric-sort --unique --human-numeric-sort --key --field-separator"},
	"stat":   {letters: "cfLtx", options: "--format --printf"},
	"tac":    {},
	"tail":   {letters: "ncqv", options: "--lines --bytes"},
	"tr":     {letters: "cCdst", options: "--delete --squeeze-repeats --complement", texts: true},
	"tree":   {letters: "adfhiILpPs", options: "--gitignore --dirsfirst --noreport"},
	"true":   {none: true},
	"type":   {letters: "at", texts: true},
	"uname":  {letters: "amnoprsv", none: true},
	"uniq":   {letters: "cdiu", none: true}, // a second operand is written to
	"wc":     {letters: "clmwL", options: "--lines --words --bytes --chars"},
	"which":  {letters: "a", texts: true},
	"whoami": {none: true},

	"command -v": {texts: true},
	"find": {letters: "HP", options: "-a -amin -and -anewer -atime -cmin -cnewer -ctime -daystart -depth -empty " +
		"-executable -false" +
		" -group -gid -ilname -iname -inum -ipath -iregex -links -lname -ls -maxdepth -mindepth -mmin -mount -mtime " +
		"-name -newer" +
		" -newermt -nogroup -not -nouser -o -or -path -perm -print -print0 -printf -prune -quit -readable -regex " +
		"-regextype -samefile" +
		" -size -true -type -uid -user -wholename -writable -xdev -xtype"},

	"go doc":     {options: "-all -c -cmd -short -src -u", texts: true},
	"go env":     {options: "-json -changed", texts: true},
	"go version": {options: "-m -v"},

	"git --version": {none: true},
	"git blame": {letters: "LwMCseflt",
		options: "-L* --date --porcelain --line-porcelain --show-email --reverse"},
	"git branch": {letters: "arv", options: "--all --remotes --verbose --show-current --color --no-color",
		none: true},
	"git branch --contains": {letters: "arv", options: "--all --remotes --format --sort"},
	"git branch --list": {letters: "arv",
		options: "--all --remotes --verbose --format --sort --merged --no-merged --contains --points-at"},
	"git cat-file":      {letters: "epst"},
	"git check-ignore":  {letters: "vnq", options: "--verbose --no-index"},
	"git config --get":  {texts: true},
	"git config --list": {options: "--show-origin --show-scope --name-only --global --local", none: true},
	"git count-objects": {letters: "vH", none: true},
	"git describe": {options: "--tags --always --dirty --long --abbrev --match --exact-match --all --contains " +
		"--first-parent"},
	"git diff":         {letters: "pubwRCMSGUzW", options: gitDiffs + gitRevisions},
	"git for-each-ref": {options: "--format --sort --count --contains --merged --no-merged --points-at"},
	"git grep": {letters: "abcEFhHiIlLnopPqvwWABC",
		options: "--cached --untracked --heading --break --show-function --color --recurse-submodules" + grepOptions,
		first:   anyText},
	"git log": {letters: "pnubwRCMSGUELizcm",
		options: "-L* --no-walk --show-pulls --full-history --simplify-merges" + gitDiffs + gitRevisions},
	"git ls-files": {letters: "cdmoistuvzk",
		options: "--cached --deleted --modified --others --ignored --stage --unmerged --exclude-standard --error-unmatch " +
			"--full-name --directory"},
	"git ls-tree": {letters: "rdtlz",
		options: "--name-only --name-status --full-name --full-tree --long --abbrev"},
	"git merge-base":     {letters: "a", options: "--all --is-ancestor --octopus --fork-point"},
	"git name-rev":       {options: "--name-only --tags --refs --always"},
	"git reflog":         {letters: "n", options: "--date --format --oneline", none: true},
	"git remote":         {letters: "v", options: "--verbose", none: true},
	"git remote get-url": {options: "--push --all", texts: true},
	"git rev-list": {letters: "n",
		options: "--count --objects --parents --children --left-only --right-only --not --no-walk" + gitRevisions},
	"git rev-parse": {letters: "q",
		options: "--abbrev-ref --all --git-common-dir --git-dir --is-bare-repository --is-inside-work-tree --quiet" +
			" --short --show-prefix --show-cdup --show-toplevel --symbolic --symbolic-full-name --verify --absolute-git-dir"},
	"git shortlog":   {letters: "sne", options: "--summary --numbered --email" + gitRevisions},
	"git show":       {letters: "pubwRCMSGUszcm", options: gitDiffs + gitRevisions},
	"git stash list": {letters: "pn", options: gitDiffs + gitRevisions},
	"git stash show": {letters: "pu", options: "--include-untracked --only-untracked" + gitDiffs},
	"git status": {letters: "sbuvz",
		options: "-uno -uall -unormal --short --branch --porcelain --long --untracked-files --ignored --show-stash " +
			"--ahead-behind --no-ahead-behind --renames --no-renames --column"},
	"git tag":           {letters: "n", options: "--sort --format --column", none: true},
	"git tag --list":    {letters: "n", options: "--sort --format --contains --merged --no-merged --points-at --column"},
	"git tag -l":        {letters: "n", options: "--sort --format --contains --merged --no-merged --points-at --column"},
	"git version":       {none: true},
	"git worktree list": {letters: "v", options: "--porcelain", none: true},
}

// others are further commands, which do not only read, whose operands, and values of these options, are names or texts
// that nothing runs. Operands of go are packages of the module.
var others = func() map[string]reader {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	all := map[string]reader{
		"gofmt": {letters: "lwsde"}, "git push origin": {letters: "u"}, "gh pr view": {}, "gh issue view": {},
		"kubectl get": {letters: "n"},
	}
	for name := range set("touch mkdir rmdir rm cp mv ln chmod tee printf jq sleep") {
		all[name] = reader{letters: letters, options: "--*"}
	}
	for name := range set("add mv rm restore checkout switch branch tag commit stash") {
		all["git "+name] = reader{letters: letters, options: "--*"}
	}
	for name := range set("build test vet fmt list") {
		all["go "+name] = reader{options: "-v -race -short -run -bench -skip -list -count -timeout -cover -json -failfast"}
	}
	for name := range set("build check clippy test") {
		all["cargo "+name] = reader{letters: "pq", options: "--package --all --workspace --release --lib"}
	}
	return all
}()

// takesData reports whether the words for which "*" stands in a pattern are data: the program is known, and cannot run
// them.
func takesData(pattern []string) bool {
	words := make([]word, len(pattern))
	for i, text := range pattern {
		if words[i] = (word{text, true}); text == anyWord {
			words[i].text = "x"
		}
	}
	if readsOnly(words) != nil {
		return true
	}
	for n := min(3, len(pattern)); n > 0; n-- {
		if other, ok := others[strings.Join(pattern[:n], " ")]; ok {
			return !slices.ContainsFunc(pattern[n:], func(text string) bool { return text[0] == '-' && !other.allows(text) })
		}
	}
	return false
}

// ReadOnlyCommands returns the commands that rules with ReadOnly cover, sorted.
func ReadOnlyCommands() []string { return slices.Sorted(maps.Keys(readers)) }

// reading describes a command that only reads.
type reading struct {
	name  string   // in readers
	files []string // the files that it reads
}

// readsOnly returns the description of a command that only reads, or nil.
func readsOnly(words []word) *reading {
	if slices.ContainsFunc(words, func(w word) bool { return !w.literal }) {
		return nil
	}
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.text
	}
	if len(texts) > 2 && texts[0] == "git" && texts[1] == "--no-pager" {
		texts = slices.Delete(texts, 1, 2)
	}
	for n := min(3, len(texts)); n > 0; n-- {
		name := strings.Join(texts[:n], " ")
		if reader, ok := readers[name]; ok &&
			!slices.ContainsFunc(texts[:n], func(text string) bool { return strings.Contains(text, " ") }) {
			if files, ok := reader.reads(texts[n:]); ok {
				return &reading{name, files}
			}
			return nil
		}
	}
	return nil
}

// reads returns the files that a command with the given arguments reads, if it does nothing else. After "--" there are
// no options; "--" may itself be the value of an option, but that makes no difference here.
func (r reader) reads(args []string) (files []string, ok bool) {
	operands := 0
	for _, arg := range args {
		switch {
		case arg == "--":
			continue
		case len(arg) > 1 && arg[0] == '-':
			if !r.allows(arg) || strings.Contains(arg, "%G") || strings.Contains(arg, "%(signature") { // these run GnuPG
				return nil, false
			}
			if _, value, ok := strings.Cut(arg, "="); ok && !r.texts {
				files = append(files, value)
			}
			continue
		}
		switch operands++; {
		case r.first != nil && operands == 1:
			if !r.first.MatchString(arg) {
				return nil, false
			}
		case r.none:
			return nil, false
		case !r.texts:
			files = append(files, arg)
		}
	}
	return files, true
}

// allows reports whether an option is allowed.
func (r reader) allows(arg string) bool {
	name, _, _ := strings.Cut(arg, "=")
	for option := range strings.FieldsSeq(r.options) {
		if beginning, ok := strings.CutSuffix(option, "*"); ok && strings.HasPrefix(arg, beginning) || option == name {
			return true
		}
	}
	return strings.Trim(arg[1:], r.letters+"0123456789") == ""
}
