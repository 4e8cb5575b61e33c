package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp"
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
	p := newParser(data)
	var rules []Rule
	err := p.object(func(name string) error {
		if name != "rules" {
			return fmt.Errorf("unknown member %q", name)
		}
		return p.array(func() error {
			rule, err := p.rule()
			rules = append(rules, rule)
			return err
		})
	})
	if err == nil {
		err = p.end()
	}
	if err != nil {
		return nil, &SyntaxError{p.line(), err}
	}
	return rules, nil
}

// parser reads JSON token by token, so that it knows the position.
type parser struct {
	data []byte
	dec  *json.Decoder
	at   int64   // position of an error; if negative, that of the decoder
	ends []int64 // ends of the last texts that were read
}

func newParser(data []byte) *parser {
	return &parser{data: data, dec: json.NewDecoder(bytes.NewReader(data)), at: -1}
}

// line returns the line number of the current position.
func (p *parser) line() int {
	at := p.at
	if at < 0 {
		at = p.dec.InputOffset()
	}
	return 1 + bytes.Count(p.data[:min(at, int64(len(p.data)))], []byte{'\n'})
}

func (p *parser) token() (json.Token, error) {
	token, err := p.dec.Token()
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		p.at = wrong.Offset
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return token, err
}

func (p *parser) delim(want json.Delim, what string) error {
	token, err := p.token()
	if err == nil && token != want {
		err = fmt.Errorf("expected %s", what)
	}
	return err
}

// object reads an object, whose members member reads.
func (p *parser) object(member func(name string) error) error {
	if err := p.delim('{', "an object"); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.dec.More() {
		token, err := p.token()
		if err != nil {
			return err
		}
		name := token.(string) // More guarantees this
		if seen[name] {
			return fmt.Errorf("duplicate member %q", name)
		}
		seen[name] = true
		if err := member(name); err != nil {
			return err
		}
	}
	_, err := p.token()
	return err
}

func (p *parser) array(element func() error) error {
	if err := p.delim('[', "a list"); err != nil {
		return err
	}
	for p.dec.More() {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := p.token()
	return err
}

func (p *parser) text() (string, error) {
	token, err := p.token()
	text, ok := token.(string)
	if err == nil && !ok {
		err = errors.New("expected a string")
	}
	return text, err
}

func (p *parser) texts(to *[]string) error {
	*to, p.ends = []string{}, nil
	return p.array(func() error {
		text, err := p.text()
		*to, p.ends = append(*to, text), append(p.ends, p.dec.InputOffset())
		return err
	})
}

func (p *parser) boolean(to *bool) error {
	token, err := p.token()
	value, ok := token.(bool)
	if err == nil && !ok {
		err = errors.New("expected true or false")
	}
	*to = value
	return err
}

// end checks that nothing follows.
func (p *parser) end() error {
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("unexpected data after the rules")
	}
	return nil
}

func (p *parser) rule() (rule Rule, err error) {
	var commandEnds []int64
	err = p.object(func(name string) (err error) {
		switch name {
		case "effect":
			var text string
			text, err = p.text()
			rule.Effect = Effect(text)
		case "agent":
			err = p.texts(&rule.Agents)
		case "kind":
			var kinds []string
			err = p.texts(&kinds)
			rule.Kinds = []acp.ToolKind{}
			for _, kind := range kinds {
				rule.Kinds = append(rule.Kinds, acp.ToolKind(kind))
			}
		case "tool":
			err = p.texts(&rule.Tools)
		case "cwd":
			err = p.texts(&rule.Cwds)
		case "path":
			err = p.texts(&rule.Paths)
		case "command":
			err = p.texts(&rule.Commands)
			commandEnds = p.ends
		case "readOnly":
			err = p.boolean(&rule.ReadOnly)
		case "unsafe":
			err = p.boolean(&rule.Unsafe)
		case "line":
			err = p.texts(&rule.Lines)
		case "reason":
			rule.Reason, err = p.text()
		default:
			err = fmt.Errorf("unknown member %q", name)
		}
		return err
	})
	if err != nil {
		return rule, err
	}
	for i, pattern := range rule.Commands {
		if _, err := rule.commandWords(pattern); err != nil {
			p.at = commandEnds[i]
			return rule, err
		}
	}
	_, err = compile(rule, "")
	return rule, err
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
