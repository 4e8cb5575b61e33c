package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/codec"
)

// Memory keeps the user's "always" decisions. It must be safe for concurrent use.
type Memory interface {
	// Rules returns the rules that apply to a session.
	Rules(session acp.SessionID) ([]Rule, error)
	// Add stores a rule that was decided in a session.
	Add(session acp.SessionID, rule Rule) error
}

// maxRemembered bounds the rules that one memory keeps.
const maxRemembered = 10_000

var errFull = fmt.Errorf("policy: more than %d rules are remembered", maxRemembered)

// SessionMemory keeps rules for the session in which they were decided, as long as the program runs. The zero value is
// empty and ready to use.
type SessionMemory struct {
	mu    sync.Mutex
	rules map[acp.SessionID][]Rule
	count int
}

// Rules implements Memory.
func (m *SessionMemory) Rules(session acp.SessionID) ([]Rule, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.rules[session]), nil
}

// Add implements Memory.
func (m *SessionMemory) Add(session acp.SessionID, rule Rule) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if slices.ContainsFunc(m.rules[session], rule.equal) {
		return nil
	}
	if m.count >= maxRemembered {
		return errFull
	}
	if m.rules == nil {
		m.rules = map[acp.SessionID][]Rule{}
	}
	m.rules[session] = append(m.rules[session], rule)
	m.count++
	return nil
}

// Forget forgets the rules of a session that is over.
func (m *SessionMemory) Forget(session acp.SessionID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count -= len(m.rules[session])
	delete(m.rules, session)
}

func (r Rule) equal(other Rule) bool { return bytes.Equal(r.json(), other.json()) }

// File keeps rules in a file, for all sessions: one rule per line, as in a file of rules. A rule is appended with a
// single write, so that several programs may share the file, and a program that is killed while writing leaves at most
// a torn line, which is dropped. Only its owner can access the file.
type File struct {
	path string
	mu   sync.Mutex
	torn int
}

// NewFile returns the memory in a file. Add creates the file if it does not exist, with its parent directories.
func NewFile(path string) *File { return &File{path: path} }

// DamagedEntries returns how many torn lines the last read dropped.
func (f *File) DamagedEntries() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.torn
}

// Rules implements Memory. A line that is not a rule, and was not torn off, is an error, which wraps a *SyntaxError. It
// is also an error if anyone but its owner may write to the file.
func (f *File) Rules(acp.SessionID) ([]Rule, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rules, _, err := f.read()
	return rules, err
}

// read returns the rules, and whether the last line is complete; mu is held.
func (f *File) read() (rules []Rule, ended bool, err error) {
	f.torn = 0
	if info, err := os.Stat(f.path); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return nil, false, fmt.Errorf("%s: writable by others: its mode is %v", f.path, info.Mode().Perm())
	}
	data, err := readBounded(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	number := 0
	for text := range bytes.Lines(data) {
		number++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		text = bytes.TrimRight(text, "\r\n")
		d := codec.NewDecoder(text)
		rule := readRule(d)
		switch err := endRules(d); {
		case errors.Is(err, codec.ErrSyntax) && isTorn(text):
			f.torn++
		case err != nil:
			return nil, false, fmt.Errorf("%s: %w", f.path, &SyntaxError{number, errors.Unwrap(err)})
		default:
			rules = append(rules, rule)
		}
	}
	return rules, len(data) == 0 || data[len(data)-1] == '\n', nil
}

// isTorn reports whether a line is the beginning of a JSON text.
func isTorn(line []byte) bool {
	err := json.NewDecoder(bytes.NewReader(line)).Decode(new(any))
	return errors.Is(err, io.ErrUnexpectedEOF)
}

// Add implements Memory. When it returns nil, the rule has been synced to the disk.
func (f *File) Add(_ acp.SessionID, rule Rule) (err error) {
	if _, err := compile(rule, ""); err != nil {
		return fmt.Errorf("policy: rule %s: %w", rule, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	rules, ended, err := f.read()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(rules, rule.equal) {
		return nil
	}
	if len(rules) >= maxRemembered {
		return errFull
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	text := append(rule.json(), '\n')
	if !ended {
		text = append([]byte{'\n'}, text...)
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size()+int64(len(text)) > maxFile {
		return fmt.Errorf("%s: it would be longer than the %d bytes that can be read", f.path, maxFile)
	}
	if _, err := file.Write(text); err != nil {
		return err
	}
	return file.Sync()
}

// RuleFor returns the rule that a [Handler] adds to a memory when the user chooses an option of the kind allow_always
// or reject_always, so that it can be shown to the user first, or the reason why there is none. The rule makes the same
// decision for the same request. A rule for a memory that outlives the session applies to one agent and one working
// directory. One that allows a tool of an MCP server, of an agent that says which server it is, as those that use
// contrib/mcpacp do, applies to the server as it is declared now, and to no other program or address of its name.
func (p *Policy) RuleFor(req Request, kind acp.PermissionOptionKind, memory Memory) (Rule, error) {
	_, forSession := memory.(*SessionMemory)
	f, stored := p.facts(req), !forSession
	rule := Rule{Effect: Allow, Reason: "the user said so"}
	switch kind {
	case acp.PermissionOptionKindAllowAlways:
	case acp.PermissionOptionKindRejectAlways:
		rule.Effect = Reject
	default:
		return Rule{}, fmt.Errorf("option kind %q is not for always", kind)
	}
	for _, flaw := range f.flaws {
		return Rule{}, errors.New(flaw)
	}
	rule.Kinds = []acp.ToolKind{f.kind}
	if f.agent != "" {
		rule.Agents = []string{f.agent}
	}
	if f.cwd != "" {
		rule.Cwds = []string{escapeGlob(f.cwd)}
	}
	if stored && (f.agent == "" || f.cwd == "") {
		return Rule{}, errors.New("unknown agent name or working directory")
	}
	if strings.Contains(f.agent+f.tool+f.declared, "*") {
		return Rule{}, errors.New("a name contains *")
	}
	if f.tool != "" {
		rule.Tools = []string{f.tool}
	}
	if f.declared != "" && rule.Effect == Allow {
		rule.Tools = []string{f.declared}
	}
	for _, path := range f.paths {
		if path.flaw != "" {
			return Rule{}, fmt.Errorf("the path %q %s", path.text, path.flaw)
		}
		for _, form := range path.forms {
			rule.Paths = append(rule.Paths, escapeGlob(form))
		}
	}
	for _, line := range f.lines {
		rule.Lines = append(rule.Lines, line.text)
	}
	if rule.Paths == nil && rule.Lines == nil && rule.Tools == nil {
		return Rule{}, errors.New("it names no tool, path or command")
	}
	if rule.Effect == Reject && len(f.paths)+len(f.lines) > 1 {
		return Rule{}, errors.New("a rule would reject each part of it alone too")
	}
	return rule, nil
}
