package policy

import (
	_ "embed"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// reader is a command that changes nothing as long as it has no other options; commands.txt describes it.
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

//go:embed commands.txt
var commandsText string

// readers returns the commands of commands.txt, which are known to only read.
var readers = sync.OnceValue(func() map[string]reader {
	all, name := map[string]reader{}, ""
	for line := range strings.Lines(commandsText) {
		if line[0] == '#' || strings.TrimSpace(line) == "" {
			continue
		}
		if line[0] != ' ' {
			name, line, _ = strings.Cut(line, ":")
		}
		r := all[name]
		for word := range strings.FieldsSeq(line) {
			switch {
			case word == "none":
				r.none = true
			case word == "texts":
				r.texts = true
			case word == "text":
				r.first = anyText
			case word == "script":
				r.first = sedPrint
			case word == "form":
				r.first = dateForm
			case word[0] == '[':
				r.letters = strings.Trim(word, "[]")
			case word[0] == '@':
				r.options += all[word].options
			default:
				r.options += " " + word
			}
		}
		all[name] = r
	}
	maps.DeleteFunc(all, func(name string, _ reader) bool { return name[0] == '@' })
	return all
})

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
func ReadOnlyCommands() []string { return slices.Sorted(maps.Keys(readers())) }

// reading describes a command that only reads.
type reading struct {
	name  string   // in commands.txt
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
		if reader, ok := readers()[name]; ok &&
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
