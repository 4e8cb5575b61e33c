// This file owns lines for a shell: which commands they run, and whether that is all that they do.

package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// anyWords is the last word of a pattern that any further words match.
const anyWords = "**"

// word is a word of a command.
type word struct {
	text    string
	literal bool // it is text, whatever the shell's variables and files are
}

// command is a command with its arguments.
type command struct {
	words    []word
	folded   []word   // the same, by fold
	names    []word   // the same, as names of programs
	programs []string // the same, as they are in lists of programs
	wraps    int      // from where on words may be a command that it runs, or 0
	hides    bool     // it may run commands that are not known
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

// dynamic reports whether the shell's variables and files are a part of the command.
func (c command) dynamic() bool {
	return slices.ContainsFunc(c.words, func(w word) bool { return !w.literal })
}

// line is what a line for a shell does.
type line struct {
	text      string
	shell     bool      // reads it
	covered   []command // that must be allowed, unless there is a flaw
	all       []command // that can be found in it
	redirects []string  // absolute paths that it reads or writes
	flaw      string    // why no rule for commands can allow it, or ""
}

// maxLine and maxNesting bound what is parsed: the time for nested groups grows with the square of their depth.
const (
	maxLine    = 16 << 10
	maxNesting = 200
)

// parseLine reads a line as bash does, and what is the same in POSIX shells.
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
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		l.flaw = "cannot be parsed: " + err.Error()
	}
	if file == nil {
		return l
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			l.all = append(l.all, words(call))
		}
		return true
	})
	if err != nil {
		return l
	}
	if err := l.cover(file.Stmts); err != nil {
		l.flaw = err.Error()
	} else if len(l.covered) == 0 {
		l.flaw = "has no command"
	}
	l.findText()
	return l
}

// argv is what a command does that no shell reads.
func argv(args []string) line {
	var words []word
	for _, arg := range args {
		words = append(words, word{arg, true})
	}
	c := known(words)
	// A line of this form could only run a program with a strange name.
	text, err := json.Marshal(args)
	l := line{text: string(text), covered: []command{c}, all: []command{c}}
	if err != nil {
		l.flaw = err.Error()
	}
	if len(args) == 0 || args[0] == "" {
		l.flaw = "has no command"
	}
	l.findText()
	return l
}

// findText looks for commands that are run of text, which is not read.
func (l *line) findText() {
	for _, c := range l.all {
		if l.flaw == "" && c.runsText() {
			l.flaw = fmt.Sprintf("has a command that may make a command of text: %s", c)
		}
	}
}

func words(call *syntax.CallExpr) command {
	var words []word
	for _, w := range call.Args {
		text, err := literal(w)
		words = append(words, word{text, err == nil})
	}
	return known(words)
}

// cover adds the commands of statements to those that must be allowed. The error says what no rule for commands can allow.
func (l *line) cover(stmts []*syntax.Stmt) error {
	for _, stmt := range stmts {
		if stmt.Coprocess {
			return errors.New("has a coprocess")
		}
		for _, redirect := range stmt.Redirs {
			if err := l.redirect(redirect); err != nil {
				return err
			}
		}
		switch cmd := stmt.Cmd.(type) {
		case nil:
		case *syntax.CallExpr:
			if err := l.call(cmd); err != nil {
				return err
			}
		case *syntax.BinaryCmd:
			if err := l.cover([]*syntax.Stmt{cmd.X, cmd.Y}); err != nil {
				return err
			}
		case *syntax.Subshell:
			if err := l.cover(cmd.Stmts); err != nil {
				return err
			}
		case *syntax.Block:
			if err := l.cover(cmd.Stmts); err != nil {
				return err
			}
		default:
			return errors.New("has more than commands: a loop, a condition, a function or a declaration")
		}
	}
	return nil
}

func (l *line) call(call *syntax.CallExpr) error {
	if len(call.Assigns) > 0 {
		return errors.New("sets variables")
	}
	c := words(call)
	if len(c.words) == 0 {
		return nil
	}
	if !c.words[0].literal || c.words[0].text == "" {
		return fmt.Errorf("has a command whose name is not known: %s", c.words[0].text)
	}
	for _, w := range call.Args {
		if err := l.expansions(w.Parts); err != nil {
			return err
		}
	}
	l.covered = append(l.covered, c)
	return nil
}

// expansions adds the commands inside words.
func (l *line) expansions(parts []syntax.WordPart) error {
	var zsh subscripts
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if zsh.inText(p.Value) {
				return errors.New("has a variable followed by [, which zsh takes for a subscript, and may run")
			}
		case *syntax.SglQuoted:
		case *syntax.DblQuoted:
			if err := l.expansions(p.Parts); err != nil {
				return err
			}
		case *syntax.CmdSubst:
			if p.TempFile || p.ReplyVar {
				return errors.New("has a substitution that is not one of bash")
			}
			if err := l.cover(p.Stmts); err != nil {
				return err
			}
		case *syntax.ParamExp:
			if !plainParameter(p) {
				return errors.New("has an expansion that does more than give a variable's value")
			}
		default:
			// Extended patterns too: the parser does not read the commands inside them, and zsh takes some for its own qualifiers,
			// which can run commands.
			return errors.New("has arithmetic, a process substitution or an extended pattern")
		}
		if _, ok := part.(*syntax.Lit); !ok {
			_, variable := part.(*syntax.ParamExp)
			zsh = subscripts{variable: variable}
		}
	}
	return nil
}

// subscripts finds what zsh may read as subscripts in the parts of a word.
type subscripts struct {
	variable bool // is just before
	dollar   bool // is before, in text: of a variable that is none for bash, such as $+x
}

// inText reports whether there may be one in the next text, which is unquoted. The parser splits texts as it likes.
func (s *subscripts) inText(text string) bool {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if i++; i < len(text) && text[i] == '\n' {
				continue
			}
		case '$':
			s.dollar = true
		case '[':
			if s.variable || s.dollar {
				return true
			}
		}
		s.variable = false
	}
	return false
}

// plainParameter reports whether an expansion is $NAME or ${NAME}.
func plainParameter(p *syntax.ParamExp) bool {
	var b strings.Builder
	if syntax.NewPrinter().Print(&b, p) != nil || p.Param == nil {
		return false
	}
	text := b.String()
	return text == "$"+p.Param.Value || text == "${"+p.Param.Value+"}"
}

// redirect adds the file that a redirection reads or writes.
func (l *line) redirect(r *syntax.Redirect) error {
	if r.N != nil && strings.Trim(r.N.Value, "0123456789") != "" {
		return errors.New("sets a variable by a redirection")
	}
	if r.Hdoc != nil || r.Word == nil {
		return errors.New("has a here-document")
	}
	target, err := literal(r.Word)
	if err != nil {
		return errors.New("has a redirection whose file is not known")
	}
	switch r.Op {
	case syntax.DplIn, syntax.DplOut:
		if target == "" || strings.Trim(target, "0123456789") != "" && target != "-" {
			return errors.New("has a redirection whose file is not known")
		}
		return nil
	case syntax.RdrOut, syntax.AppOut, syntax.RdrIn, syntax.RdrInOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
	default:
		return errors.New("has a here-document or a redirection of a kind that is not known")
	}
	if target == "/dev/null" {
		return nil
	}
	if !strings.HasPrefix(target, "/") {
		return fmt.Errorf("has a redirection whose file %q is relative to a directory that is not known", target)
	}
	l.redirects = append(l.redirects, target)
	return nil
}

// errDynamic says that a word is more than text.
var errDynamic = errors.New("not literal")

// literal is the text of a word that is nothing but text for every POSIX shell. With an error, it is the word as it stands.
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
			if p.Dollar {
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

// unquote writes unquoted text, unless it has characters that a shell expands. At the beginning of a word these are more:
// "=ls" is a path in zsh.
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

// unescape writes text in double quotes.
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

// glob reports whether a text matches a pattern in which "*" stands for any characters.
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

// covers reports whether a pattern matches a command, all of it.
func covers(pattern []string, c command) bool { return match(pattern, c.words) == yes }

// match compares a pattern with words. A word that is not literal may be any, or several.
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
	return maybe // they may be nothing
}
