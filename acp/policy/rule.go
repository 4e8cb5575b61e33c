package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/codec"
)

// Effect is the effect of a rule, or of a decision.
type Effect string

// The effects.
const (
	Allow  Effect = "allow"
	Ask    Effect = "ask"
	Reject Effect = "reject"
)

// Rule defines what to do with the requests that it matches. A nil field matches everything.
//
// A rule that allows must match the whole of a request: see the package documentation. A rule that asks or rejects
// matches if one path, one command or one line does, and Agents, Kinds, Tools and Cwds do too.
type Rule struct {
	// Effect is Allow, Ask or Reject.
	Effect Effect
	// Agents are names of agents, as they introduce themselves. "*" matches any characters.
	Agents []string
	// Kinds are kinds of tools.
	Kinds []acp.ToolKind
	// Tools are names of tools, as the agent's model knows them. "*" matches any characters.
	Tools []string
	// Cwds are patterns, like Paths, for the session's working directory.
	Cwds []string
	// Paths are patterns for files: "*" and "?" match characters other than "/", "**" any number of directories,
	// "[a-z]" one of several characters, "{a,b}" alternatives; "\" escapes them. A pattern that begins with "~/" is in
	// the user's home directory; one that begins with neither "/", a drive such as "C:/", nor "**" is in the session's
	// working directory. "/a/**" matches the directory and everything in it, "**" everything.
	Paths []string
	// Commands are commands, word by word: "go test ./...". In a rule that allows, words match exactly, and "*" matches
	// one word that the agent may choose: it must begin with a letter, a digit, "_", "/" or ".", and must not contain a
	// path with "..", a "=" before the first space, a "$" or a "`". It requires Unsafe unless the program is known to take
	// such words as data: see the package documentation. A last word "**" matches any further words, and always requires
	// Unsafe. In a rule that asks or rejects, "*" matches any characters of a word, and a last word "**"
	// matches any further words.
	Commands []string
	// ReadOnly covers read-only commands, used only with read-only options: see the package documentation. The files that
	// they name must be covered by Paths. Only rules that allow may set it.
	ReadOnly bool
	// Unsafe means that Commands allow whatever their programs can do, which is what a last word "**" implies, and a word
	// "*" of a program that may run it: with most programs this includes running other programs. Only rules that allow may
	// set it.
	Unsafe bool
	// Lines are whole command lines for a shell, which match exactly, whatever they contain; a list of arguments is
	// written as JSON.
	Lines []string
	// Reason explains to people why the rule exists.
	Reason string
}

// Warnings describes what a rule allows that its user may not expect: one sentence for each of the Commands that need
// Unsafe.
func (r Rule) Warnings() (warnings []string) {
	for _, pattern := range r.Commands {
		program, ok := strings.CutSuffix(pattern, anyWords)
		words := strings.Fields(pattern)
		switch program = strings.TrimSpace(program); {
		case r.Effect != Allow || !ok && (!slices.Contains(words, anyWord) || takesData(words)):
		case !ok:
			warnings = append(warnings,
				fmt.Sprintf("command %q allows what %s makes of the words, which may be to run other programs", pattern, words[0]))
		case program == "":
			warnings = append(warnings, fmt.Sprintf("command %q allows every program, whatever it does", pattern))
		default:
			warnings = append(warnings,
				fmt.Sprintf("command %q allows whatever %s can do, including changing files and running other programs", pattern,
					program))
		}
	}
	return warnings
}

// Warnings returns the warnings of all rules of a policy.
func (p *Policy) Warnings() (warnings []string) {
	for _, rule := range p.rules {
		warnings = append(warnings, rule.Warnings()...)
	}
	return warnings
}

// A SyntaxError reports an error in a file of rules.
type SyntaxError struct {
	// Line is the line number, from 1.
	Line int
	// Err is the error in that line.
	Err error
}

// Error implements the error interface.
func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns Err.
func (e *SyntaxError) Unwrap() error { return e.Err }

// maxFile is the greatest size of a file of rules, in bytes.
const maxFile = 4 << 20

// ReadFile reads rules from a file: see Parse. The errors name the file.
func ReadFile(path string) ([]Rule, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	rules, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rules, nil
}

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s: longer than %d bytes", path, maxFile)
	}
	return data, err
}

// Parse reads rules:
//
//	{"rules": [
//	  {"effect": "allow", "kind": ["read", "search"], "path": ["/home/me/project/**"]},
//	  {"effect": "allow", "readOnly": true, "path": ["/home/me/project/**"], "reason": "git log, ls, grep and others"},
//	  {"effect": "allow", "command": ["go build ./...", "go test *"]},
//	  {"effect": "allow", "command": ["make **"], "unsafe": true, "reason": "the Makefile is mine"},
//	  {"effect": "reject", "path": ["**/.env"], "reason": "secrets"}
//	]}
//
// The members of a rule are effect and reason; agent, kind, tool, cwd, path, command and line, which are lists; and
// readOnly and unsafe, which are booleans. See Rule for their meaning. An unknown or repeated member, an empty list, an
// unknown kind and a malformed pattern are errors: a *SyntaxError gives the line.
func Parse(data []byte) ([]Rule, error) {
	var rules []Rule
	d := codec.NewDecoder(data)
	for o := d.Object(); o.Next(); {
		if string(o.Name()) != "rules" {
			d.Failf("unknown member %q", o.Name())
		}
		o.Once(0)
		for a := d.Array(); a.Next(); {
			rules = append(rules, readRule(d))
		}
	}
	if err := endRules(d); err != nil {
		return nil, err
	}
	return rules, nil
}

// endRules returns the first error of reading all of a text.
func endRules(d *codec.Decoder) error {
	wrong, ok := errors.AsType[*codec.Error](d.End())
	if !ok {
		return nil
	}
	if err, ok := errors.AsType[*SyntaxError](wrong); ok {
		return err
	}
	return syntaxError(d, wrong.Offset, cmp.Or(wrong.Err, errors.New(wrong.Msg)))
}

// syntaxError returns an error at an offset of what was read.
func syntaxError(d *codec.Decoder, offset int, err error) *SyntaxError {
	return &SyntaxError{1 + bytes.Count(d.Slice(0)[:offset], []byte{'\n'}), err}
}

// readRule reads and checks a rule.
func readRule(d *codec.Decoder) (rule Rule) {
	var commands []int // where they begin
	o := d.Object()
	for o.Next() {
		switch string(o.Name()) {
		case "effect":
			o.Once(0)
			rule.Effect = Effect(d.Str())
		case "agent":
			o.Once(1)
			rule.Agents, _ = readTexts[string](d)
		case "kind":
			o.Once(2)
			rule.Kinds, _ = readTexts[acp.ToolKind](d)
		case "tool":
			o.Once(3)
			rule.Tools, _ = readTexts[string](d)
		case "cwd":
			o.Once(4)
			rule.Cwds, _ = readTexts[string](d)
		case "path":
			o.Once(5)
			rule.Paths, _ = readTexts[string](d)
		case "command":
			o.Once(6)
			rule.Commands, commands = readTexts[string](d)
		case "readOnly":
			o.Once(7)
			rule.ReadOnly = d.Bool()
		case "unsafe":
			o.Once(8)
			rule.Unsafe = d.Bool()
		case "line":
			o.Once(9)
			rule.Lines, _ = readTexts[string](d)
		case "reason":
			o.Once(10)
			rule.Reason = d.Str()
		default:
			d.Failf("unknown member %q", o.Name())
		}
	}
	if d.Err() != nil {
		return rule
	}
	for i, pattern := range rule.Commands {
		if _, err := rule.commandWords(pattern); err != nil {
			d.Fail(syntaxError(d, commands[i], err))
			return rule
		}
	}
	if _, err := compile(rule, ""); err != nil {
		d.Fail(err)
	}
	return rule
}

// readTexts reads a list of texts, and where each begins.
func readTexts[T ~string](d *codec.Decoder) (texts []T, starts []int) {
	texts = []T{}
	for a := d.Array(); a.Next(); {
		starts = append(starts, d.Offset())
		texts = append(texts, T(d.Str()))
	}
	return texts, starts
}

// Format returns rules in the form that Parse reads, one per line.
func Format(rules []Rule) []byte {
	var b bytes.Buffer
	b.WriteString("{\"rules\": [")
	for i, rule := range rules {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n  ")
		b.Write(rule.json())
	}
	b.WriteString("\n]}\n")
	return b.Bytes()
}

// String returns the rule in the form that is written to a file.
func (r Rule) String() string { return string(r.json()) }

func (r Rule) json() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	// It cannot fail: the value contains only strings.
	_ = enc.Encode(struct {
		Effect   Effect         `json:"effect"`
		Agents   []string       `json:"agent,omitzero"`
		Kinds    []acp.ToolKind `json:"kind,omitzero"`
		Tools    []string       `json:"tool,omitzero"`
		Cwds     []string       `json:"cwd,omitzero"`
		Paths    []string       `json:"path,omitzero"`
		Commands []string       `json:"command,omitzero"`
		ReadOnly bool           `json:"readOnly,omitzero"`
		Unsafe   bool           `json:"unsafe,omitzero"`
		Lines    []string       `json:"line,omitzero"`
		Reason   string         `json:"reason,omitzero"`
	}(r))
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// compiled is a rule that has been checked.
type compiled struct {
	Rule
	cwds, paths []pathPattern
	commands    [][]string
	folded      [][]string // the same, case-folded
}

// toolKinds are the kinds of tools that the protocol lists, for errors.
var toolKinds = []acp.ToolKind{
	acp.ToolKindRead, acp.ToolKindEdit, acp.ToolKindDelete, acp.ToolKindMove, acp.ToolKindSearch, acp.ToolKindExecute,
	acp.ToolKindThink,
	acp.ToolKindFetch, acp.ToolKindSwitchMode, acp.ToolKindOther,
}

// compile checks a rule. home is the user's home directory, for use in patterns.
func compile(rule Rule, home string) (*compiled, error) {
	c := &compiled{Rule: rule}
	switch rule.Effect {
	case Allow:
		if rule.Kinds == nil && rule.Tools == nil && rule.Paths == nil && rule.Commands == nil && rule.Lines == nil &&
			!rule.ReadOnly {
			return nil, errors.New("a rule that allows needs kinds, tools, paths, commands or lines")
		}
	case Ask, Reject:
		if rule.ReadOnly || rule.Unsafe {
			return nil, errors.New("only rules that allow can be readOnly or unsafe")
		}
	case "":
		return nil, errors.New("missing effect")
	default:
		return nil, fmt.Errorf("unknown effect %q, expected allow, ask or reject", rule.Effect)
	}
	for name, texts := range map[string][]string{
		"agent": rule.Agents, "tool": rule.Tools, "cwd": rule.Cwds, "path": rule.Paths, "command": rule.Commands,
		"line": rule.Lines,
	} {
		if texts != nil && len(texts) == 0 {
			return nil, fmt.Errorf("%s is empty and would match nothing", name)
		}
		for _, text := range texts {
			if text == "" || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
				return nil, fmt.Errorf("%s %q is empty, or has a NUL or bytes that are not UTF-8", name, text)
			}
		}
	}
	if rule.Kinds != nil && len(rule.Kinds) == 0 {
		return nil, errors.New("kind is empty and would match nothing")
	}
	for _, kind := range rule.Kinds {
		if !kind.Known() {
			return nil, fmt.Errorf("unknown kind %q, expected one of %v", kind, toolKinds)
		}
	}
	var err error
	if c.cwds, err = compilePaths(rule.Cwds, home); err != nil {
		return nil, err
	}
	for _, cwd := range c.cwds {
		if cwd.relative {
			return nil, fmt.Errorf("cwd %q is not absolute", cwd.text)
		}
	}
	if c.paths, err = compilePaths(rule.Paths, home); err != nil {
		return nil, err
	}
	for _, pattern := range rule.Commands {
		words, err := rule.commandWords(pattern)
		if err != nil {
			return nil, err
		}
		c.commands, c.folded = append(c.commands, words), append(c.folded, folded(words))
	}
	if rule.Unsafe && rule.Warnings() == nil {
		return nil, fmt.Errorf("the rule is unsafe, but no command ends with %s, or has a * that may be code", anyWords)
	}
	return c, nil
}

// commandWords checks one of the Commands, and returns its words.
func (r Rule) commandWords(pattern string) ([]string, error) {
	words := strings.Fields(pattern)
	for i, word := range words {
		wrong := ""
		switch {
		case word == anyWords && i < len(words)-1:
			wrong = "** is only for the last word"
		case strings.ContainsAny(word, "\"'`"):
			wrong = "words are compared without quotes"
		case word == "|" || word == "||" || word == "&" || word == "&&":
			wrong = "this is more than one command"
		case r.Effect != Allow:
		case word == anyWords && !r.Unsafe:
			wrong = `** allows whatever the program can do: write the words, with * for one that the agent may choose; ` +
				`or write "readOnly": true in place of commands that only read; or add "unsafe": true to the rule`
		case word == anyWords:
		case word == anyWord && i == 0:
			wrong = "the first word is the name of a program"
		case word == anyWord && folders[words[0]]:
			wrong = "other commands may run there later: write the folder's name"
		case word == anyWord && !r.Unsafe && !takesData(words):
			wrong = fmt.Sprintf("* may be code or a program that %s runs: write the words that are allowed; or add "+
				"\"unsafe\": true to the rule", words[0])
		case word != anyWord && strings.Contains(word, "*"):
			wrong = "* stands for a whole word: write the words that are allowed, each in a command of its own"
		}
		if wrong != "" {
			return nil, fmt.Errorf("command %q: %s", pattern, wrong)
		}
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("command %q has no words", pattern)
	}
	return words, nil
}
