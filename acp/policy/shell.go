package policy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/acpgo/sdk/internal/plain"
)

// anyWord is a word of a pattern that matches any one word, and anyWords is a last word that matches any further words.
const (
	anyWord  = "*"
	anyWords = "**"
)

// word is a word of a command.
type word struct {
	text    string
	literal bool // plain text, which does not depend on the shell's variables or on files
}

// command is a command with its arguments.
type command struct {
	words  []word
	folded []word    // the same, case-folded
	named  []word    // the same, with the first word as the name of a program
	reads  *reading  // what it does, if it is known to only read; nil otherwise
	piped  bool      // it reads the output of another command
	files  []subject // files that it reads
}

func newCommand(words []word) command {
	c := command{words: words}
	for _, w := range words {
		c.folded = append(c.folded, word{plain.Fold(w.text), w.literal})
	}
	if c.named = slices.Clone(c.folded); len(words) > 0 {
		c.named[0].text = programName(words[0].text)
		c.reads = readsOnly(words)
	}
	return c
}

// programName returns a command's name without its directory, case-folded.
func programName(text string) string {
	return strings.TrimSuffix(path.Base(slashed(plain.Fold(text))), ".exe")
}

func (c command) String() string {
	texts := make([]string, len(c.words))
	for i, w := range c.words {
		if texts[i] = w.text; w.literal && (w.text == "" || strings.ContainsAny(w.text, " \t\n'\"")) {
			texts[i] = fmt.Sprintf("%q", w.text)
		}
	}
	return strings.Join(texts, " ")
}

// dynamic reports whether a part of the command depends on the shell's variables or on files.
func (c command) dynamic() bool {
	return slices.ContainsFunc(c.words, func(w word) bool { return !w.literal })
}

// line describes what a command line for a shell does.
type line struct {
	text     string
	shell    bool      // a shell reads it
	covered  []command // commands that must be allowed, unless there is a flaw
	all      []command // all commands found in it
	targets  []string  // targets of redirections
	mentions []string  // names that may be those of further commands, case-folded
	flaw     string    // why no rule for commands can allow it, or ""
}

// maxLine and maxNesting bound what is parsed: the time for nested groups grows with the square of their depth.
const (
	maxLine    = 16 << 10
	maxNesting = 200
)

// parseLine parses a line as bash does, or, where they agree, as POSIX shells do.
func parseLine(text string) line {
	l := line{text: text, shell: true}
	if len(text) > maxLine {
		l.flaw = fmt.Sprintf("is longer than %d bytes", maxLine)
		return l
	}
	if strings.Count(text, "(")+strings.Count(text, "{")+strings.Count(text, "`") > maxNesting {
		l.flaw = fmt.Sprintf("has more than %d groups", maxNesting)
		return l
	}
	for _, r := range text {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			l.flaw = fmt.Sprintf("contains the control character %U", r)
			return l
		}
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).
		Parse(strings.NewReader(text), "")
	if err != nil {
		l.flaw = "cannot be parsed: " + err.Error()
	}
	if file == nil {
		return l
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				l.all = append(l.all, parseCall(n))
			}
		case *syntax.Redirect:
			if n.Word != nil {
				target, _ := literal(n.Word)
				l.targets = append(l.targets, target)
			}
		case *syntax.Comment:
			l.flaw = cmp.Or(l.flaw, "has a comment, which some shells execute")
		}
		return true
	})
	if err == nil {
		err = l.cover(file.Stmts, false)
		if err == nil && len(l.covered) == 0 {
			err = errors.New("has no command")
		}
		if err != nil {
			l.flaw = cmp.Or(l.flaw, err.Error())
		}
	}
	l.mention()
	return l
}

// argv returns what a command does whose arguments are not read by a shell.
func argv(args []string) line {
	var words []word
	for _, arg := range args {
		words = append(words, word{arg, true})
	}
	c := newCommand(words)
	// A line of this form could only run a program with a strange name.
	text, err := json.Marshal(args)
	l := line{text: string(text), covered: []command{c}, all: []command{c}}
	if err != nil {
		l.flaw = err.Error()
	}
	if len(args) == 0 || args[0] == "" {
		l.flaw = "has no command"
	}
	l.mention()
	return l
}

// mention collects the names that some program in the line may run as a command. A program that only reads runs
// nothing, but another one may run its output.
func (l *line) mention() {
	if l.flaw == "" && !slices.ContainsFunc(l.all, func(c command) bool { return c.reads == nil }) {
		return
	}
	known := map[string]bool{}
	for _, c := range l.all {
		for _, w := range c.folded[min(1, len(c.folded)):] {
			for name := range strings.FieldsFuncSeq(w.text, func(r rune) bool { return r == '/' || !plainName(r) }) {
				if name = strings.TrimSuffix(name, ".exe"); !known[name] {
					known[name] = true
					l.mentions = append(l.mentions, name)
				}
			}
		}
	}
}

func parseCall(call *syntax.CallExpr) command {
	var words []word
	for _, w := range call.Args {
		text, err := literal(w)
		words = append(words, word{text, err == nil})
	}
	return newCommand(words)
}

// cover adds the commands of statements to those that must be allowed. The error describes the part that no rule for
// commands can allow.
func (l *line) cover(stmts []*syntax.Stmt, piped bool) error {
	for _, stmt := range stmts {
		if stmt.Coprocess {
			return errors.New("has a coprocess")
		}
		if slices.ContainsFunc(stmt.Redirs, func(r *syntax.Redirect) bool { return !harmless(r) }) {
			return errors.New("has a redirection to something other than /dev/null")
		}
		var err error
		switch cmd := stmt.Cmd.(type) {
		case nil:
		case *syntax.CallExpr:
			if len(cmd.Assigns) > 0 {
				return errors.New("sets variables")
			}
			c := parseCall(cmd)
			c.piped = piped
			l.covered = append(l.covered, c)
		case *syntax.BinaryCmd:
			if err = l.cover([]*syntax.Stmt{cmd.X}, piped); err == nil {
				err = l.cover([]*syntax.Stmt{cmd.Y}, piped || cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll)
			}
		case *syntax.Subshell:
			err = l.cover(cmd.Stmts, piped)
		case *syntax.Block:
			err = l.cover(cmd.Stmts, piped)
		default:
			err = errors.New("has a loop, a condition, a function or a declaration")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// harmless reports whether a redirection involves no file, such as 2>&1 and >/dev/null.
func harmless(r *syntax.Redirect) bool {
	if r.N != nil && strings.Trim(r.N.Value, "0123456789") != "" || r.Hdoc != nil || r.Word == nil {
		return false
	}
	target, err := literal(r.Word)
	switch r.Op {
	case syntax.DplIn, syntax.DplOut:
		return err == nil && target != "" && strings.Trim(target, "0123456789") == ""
	case syntax.RdrOut, syntax.AppOut, syntax.RdrIn: // "&>" ends the command in POSIX shells, and the rest is another one
		return err == nil && target == "/dev/null"
	}
	return false
}

// errDynamic reports that a word is not just text.
var errDynamic = errors.New("not literal")

// literal returns the text of a word that is plain text for every POSIX shell. With an error, it returns the word
// unchanged.
func literal(w *syntax.Word) (string, error) {
	var b strings.Builder
	for i, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if !unquote(&b, p.Value, i == 0) {
				return source(w), errDynamic
			}
		case *syntax.SglQuoted:
			if p.Dollar {
				return source(w), errDynamic
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok || p.Dollar {
					return source(w), errDynamic
				}
				unescape(&b, lit.Value)
			}
			if p.Dollar || strings.Contains(source(w), "!") { // interactive shells expand it even in double quotes
				return source(w), errDynamic
			}
		default:
			return source(w), errDynamic
		}
	}
	return b.String(), nil
}

func source(w *syntax.Word) string {
	var b strings.Builder
	if err := syntax.NewPrinter().Print(&b, w); err != nil {
		return "?"
	}
	return b.String()
}

// unquote writes unquoted text, unless it has characters that a shell expands. At the beginning of a word there are
// more of these: "=ls" is a path in zsh.
func unquote(b *strings.Builder, text string, first bool) bool {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			if i++; i == len(text) {
				return false
			}
			if text[i] != '\n' {
				b.WriteByte(text[i])
			}
		case '*', '?', '[', ']', '{', '}', '^', '#', '!', '$', '`':
			return false
		case '~', '=':
			if first && i == 0 || c == '~' && strings.ContainsRune("=:", rune(text[max(i-1, 0)])) {
				return false
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return true
}

// unescape writes the text of a string in double quotes.
func unescape(b *strings.Builder, text string) {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte("$`\"\\\n", text[i+1]) >= 0 {
			if i++; text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
}

// glob reports whether a text matches a pattern in which "*" matches any characters.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// argument matches a word that "*" may stand for: a name or a text, but no option, assignment, file with options, or
// command of an editor or of SQLite, and nothing that a program might evaluate as a shell does.
var argument = regexp.MustCompile("^(?:[\\pL\\pN_/][^\\s=$`\\pC]*(?: [^$`\\pC]*)?|\\.[^\\s=$`\\pC]*)$")

// jqOutside matches programs of jq that may read more than their input: the environment, and modules that do.
var jqOutside = regexp.MustCompile(`\b(env|import|include)\b`)

// covers reports whether a pattern of a rule that allows matches all of a command.
func covers(pattern []string, c command) bool {
	for i, token := range pattern {
		switch {
		case token == anyWords:
			return true
		case i == len(c.words):
			return false
		case token == anyWord:
			text := c.words[i].text
			if !argument.MatchString(text) || leadsUp(text) || pattern[0] == "go" && strings.HasSuffix(text, ".go") &&
				takesData(pattern) {
				return false // a file of Go may be any program
			}
			if pattern[0] == "jq" && takesData(pattern) && jqOutside.MatchString(text) {
				return false
			}
		case token != c.words[i].text:
			return false
		}
	}
	return len(pattern) == len(c.words)
}

// leadsUp reports whether a path in a word has a ".." element.
func leadsUp(text string) bool {
	return slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("/\\=:,; ", r) }),
		"..")
}

// touches reports whether a folded pattern of a rule that restricts matches a command: its name with or without
// directories, ignoring case.
func touches(pattern []string, c command) verdict {
	best := match(pattern, c.folded)
	if best == yes || len(c.words) == 0 || !c.words[0].literal {
		return best
	}
	return max(best, match(pattern, c.named))
}

// mentioned reports whether the name in a pattern of a rule that restricts occurs in a line where it may be that of a
// command.
func (l *line) mentioned(pattern []string) bool {
	wanted := programName(pattern[0])
	return slices.ContainsFunc(l.mentions, func(name string) bool {
		// as in -vSrm
		return glob(wanted, name) || len(name) > 2 && name[0] == '-' && name[1] != '-' && glob("*"+wanted, name[2:])
	})
}

func folded(texts []string) []string {
	folded := make([]string, len(texts))
	for i, text := range texts {
		folded[i] = plain.Fold(text)
	}
	return folded
}

// match compares a pattern with words. A word that is not literal may stand for any word, or for several.
func match(pattern []string, words []word) verdict {
	for i, token := range pattern {
		if token == anyWords {
			return yes
		}
		if i == len(words) {
			return no
		}
		if !words[i].literal {
			return maybe
		}
		if !glob(token, words[i].text) {
			return no
		}
	}
	switch rest := words[len(pattern):]; {
	case len(rest) == 0:
		return yes
	case slices.ContainsFunc(rest, func(w word) bool { return w.literal }):
		return no
	}
	return maybe // they may expand to nothing
}
