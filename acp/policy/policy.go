package policy

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/plain"
)

// Options configures a Policy. A nil *Options, and the zero value of each field, mean the defaults.
type Options struct {
	// Resolve returns where a path leads: [ResolveLinks] follows symbolic links on this machine. To be allowed, a path
	// must be allowed under both names; it is rejected if it is rejected under either. An error means that nothing can
	// allow the path. The target of a link may change between the decision and the tool's work. By default paths are
	// not resolved.
	Resolve func(path string) (string, error)
	// Line returns the shell command line that a tool call of the kind execute runs, if its input does not contain it:
	// Gemini CLI has it only in the title, which is meant for people and need not be true. By default nothing can allow
	// such a call.
	Line func(agent string, call acp.ToolCall) (line string, ok bool)
	// POSIXShell means that command lines are for a shell like bash, even on Windows. By default, command lines on
	// Windows are assumed to be for a shell that parses them differently, and only Lines allow them.
	POSIXShell bool
	// Home is the user's home directory, for patterns that begin with "~/". The default is os.UserHomeDir.
	Home string
}

// Policy is a list of rules. It is immutable and safe for concurrent use.
type Policy struct {
	rules   []*compiled
	resolve func(string) (string, error)
	line    func(string, acp.ToolCall) (string, bool)
	home    string
	posix   bool
}

// New returns the policy with the given rules, whose order does not matter. The error names the invalid rule.
func New(rules []Rule, opts *Options) (*Policy, error) {
	p := &Policy{posix: runtime.GOOS != "windows"}
	if opts != nil {
		p.resolve, p.line, p.home, p.posix = opts.Resolve, opts.Line, opts.Home, p.posix || opts.POSIXShell
	}
	if p.home == "" {
		home, err := os.UserHomeDir()
		if err != nil && slices.ContainsFunc(rules, Rule.inHome) {
			return nil, fmt.Errorf("policy: a pattern begins with ~/: %w", err)
		}
		p.home = home
	}
	var err error
	p.rules, err = p.compile(rules)
	return p, err
}

// Load returns the policy with the rules in a file: see ReadFile and New.
func Load(path string, opts *Options) (*Policy, error) {
	rules, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	return New(rules, opts)
}

func (r Rule) inHome() bool {
	return slices.ContainsFunc(slices.Concat(r.Paths, r.Cwds), func(p string) bool { return strings.HasPrefix(p, "~/") })
}

func (p *Policy) compile(rules []Rule) (compiledRules []*compiled, err error) {
	for _, rule := range rules {
		c, err := compile(rule, p.home)
		if err != nil {
			return nil, fmt.Errorf("policy: rule %s: %w", rule, err)
		}
		compiledRules = append(compiledRules, c)
	}
	return compiledRules, nil
}

// Request is a request to decide about.
type Request struct {
	// Agent is the name with which the agent introduced itself; "" if it did not.
	Agent string
	// Cwd is the session's working directory; "" if it is not known.
	Cwd string
	// ToolCall is the tool call, as completely as it is known.
	ToolCall acp.ToolCall
}

// Decide decides about a tool call of an agent that applies the policy to its own tool calls, for Config.Decide of
// acp/agentkit. kind is that of the option to choose, or "" if the user is to be asked; why gives the reason in words.
func (p *Policy) Decide(session Session, call acp.ToolCall) (kind acp.PermissionOptionKind, why string, err error) {
	d, err := p.Explain(Request{Cwd: session.Cwd(), ToolCall: call})
	if err != nil {
		return "", "", err
	}
	return d.Kind(), d.Why, nil
}

// Kind returns the kind of the option that carries out the decision, or "" if the user is to be asked.
func (d Decision) Kind() acp.PermissionOptionKind {
	switch d.Effect {
	case Allow:
		return acp.PermissionOptionKindAllowOnce
	case Reject:
		return acp.PermissionOptionKindRejectOnce
	}
	return ""
}

// verdict reports whether a rule matches.
type verdict int

const (
	no verdict = iota
	maybe
	yes
)

// Verdict is the result of one rule for a request.
type Verdict struct {
	Rule Rule
	// Matches reports whether the rule matches. A rule that asks or rejects also matches if unknown parts of the
	// request could make it match; then Unsure is set, and the only effect of the rule is to ask.
	Matches, Unsure bool
	// Why gives the reason in words.
	Why string
}

// Decision is the decision of a policy about a request, with the reasons.
type Decision struct {
	// Effect is the decision.
	Effect Effect
	// Why gives the reason in words.
	Why string
	// About lists the kind, paths and commands that the rules matched.
	About []string
	// Verdicts holds the result of each rule, in the order in which the rules were given, with remembered rules last.
	Verdicts []Verdict
}

// String returns the decision with everything that led to it, on several lines.
func (d Decision) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", d.Effect, d.Why)
	for _, about := range d.About {
		fmt.Fprintf(&b, "  %s\n", about)
	}
	for _, v := range d.Verdicts {
		mark := "-"
		if v.Matches {
			mark = "+"
		}
		fmt.Fprintf(&b, "%s %s: %s\n", mark, v.Rule, v.Why)
	}
	return b.String()
}

// Explain decides about a request without answering, asking or remembering anything. remembered are additional rules;
// one of them that allows a tool by its name alone does not apply if the request says which MCP server the tool is of.
//
// Rules that reject take precedence over rules that ask, and those over rules that allow. The user is asked about a
// request that no rule matches.
func (p *Policy) Explain(req Request, remembered ...Rule) (Decision, error) {
	more, err := p.compile(remembered)
	if err != nil {
		return Decision{}, err
	}
	f, rules := p.facts(req), slices.Concat(p.rules, more)
	d := Decision{Effect: Ask, Why: "no rule matches", About: f.describe()}
	d.About = append(d.About, f.bound(rules)...)
	rank := map[Effect]int{Allow: 1, Ask: 2, Reject: 3}
	best := 0
	for i, rule := range rules {
		if i >= len(p.rules) && f.declared != "" && rule.Effect == Allow && slices.Contains(rule.Tools, f.tool) {
			continue // it was remembered before rules named the server, and so for any program of its name
		}
		matches, why := rule.judge(f)
		d.Verdicts = append(d.Verdicts, Verdict{rule.Rule, matches != no, matches == maybe, why})
		effect := rule.Effect
		if matches == maybe {
			effect = Ask
		}
		if matches != no && rank[effect] > best {
			best = rank[effect]
			d.Effect, d.Why = effect, fmt.Sprintf("rule %s: %s", rule.Rule, cmp.Or(rule.Reason, why))
		}
	}
	return d, nil
}

// facts holds what a request is about.
type facts struct {
	agent, cwd, tool string
	declared         string // tool, with the MCP server that it is of if that is known; "" otherwise
	base             base   // of cwd
	kind             acp.ToolKind
	paths            []subject
	lines            []line
	words            []subject // of all lines, and in the input, treated as paths
	mentions         []subject // possible paths inside these
	posix            bool      // programs are those of a POSIX system
	flaws            []string  // why no rule can allow the request

	// named: it names a path or a command; commanded: it names a command. Names deep in its input, where they may mean
	// anything, do not count.
	named, commanded bool
}

func (f *facts) describe() []string {
	about := []string{fmt.Sprintf("kind %q, tool %q, agent %q, cwd %q", f.kind, f.tool, f.agent, f.cwd)}
	for _, path := range f.paths {
		about = append(about, strings.TrimSpace(fmt.Sprintf("path %q %s", path.text, path.flaw)))
	}
	for _, line := range f.lines {
		about = append(about, strings.TrimSpace(fmt.Sprintf("line %q %s", line.text, line.flaw)))
		for _, command := range line.all {
			about = append(about, fmt.Sprintf("command %s", command))
		}
	}
	return append(about, f.flaws...)
}

// maxPaths bounds the paths of a request that are examined, maxComparisons the comparisons of paths and words with
// patterns.
const (
	maxPaths       = 10_000
	maxComparisons = 5_000_000
)

// bound drops the parts that are too many to compare with all rules, and returns a description of them. Nothing is
// allowed then.
func (f *facts) bound(rules []*compiled) (flaws []string) {
	paths, words, pathPatterns, commandPatterns := 0, 0, 0, 0
	for _, r := range rules {
		pathPatterns += len(r.paths)
		commandPatterns += len(r.commands)
	}
	for _, subject := range slices.Concat(f.paths, f.words, f.mentions) {
		paths += len(subject.forms)
	}
	for _, l := range f.lines {
		words += len(l.mentions)
		for _, c := range l.all {
			words += 1 + len(c.words)
		}
	}
	if paths*pathPatterns > maxComparisons {
		f.paths, f.words, f.mentions = nil, nil, nil
		flaws = append(flaws, fmt.Sprintf("it has too many paths, %d, for so many rules", paths))
	}
	if words*commandPatterns > maxComparisons {
		for i := range f.lines {
			f.lines[i].all, f.lines[i].mentions = nil, nil
		}
		flaws = append(flaws, fmt.Sprintf("it has too many words, %d, for so many rules", words))
	}
	f.flaws = append(f.flaws, flaws...)
	return flaws
}

// facts reads a request.
func (p *Policy) facts(req Request) *facts {
	call := req.ToolCall
	f := &facts{agent: req.Agent, tool: call.Name.Value(), kind: call.Kind, posix: p.posix}
	if server := ""; f.tool != "" {
		if ok, err := call.Meta.Get(plain.ServerKey, &server); ok && err == nil {
			f.declared = f.tool + " of " + server
		}
	}
	if cwd := slashed(req.Cwd); rooted(cwd) {
		f.cwd = clean(cwd)
		f.base = newBase(f.cwd)
	}
	if !call.Kind.Known() {
		f.flaws = append(f.flaws, fmt.Sprintf("unknown kind %q", call.Kind))
	}
	// A path of the input that is more than a path differs from a location of the same name.
	type named struct {
		text   string
		flawed bool
	}
	known := map[named]bool{}
	add := func(text string, byInput bool) {
		name := named{text, byInput && inputFlaw(text) != ""}
		if known[name] {
			return
		}
		known[name] = true
		if len(known) > maxPaths {
			if len(known) == maxPaths+1 {
				f.flaws = append(f.flaws, fmt.Sprintf("it names more than %d paths", maxPaths))
			}
			return
		}
		f.paths = append(f.paths, examine(text, f.cwd, byInput, p.resolve))
	}
	for _, location := range call.Locations {
		add(location.Path, false)
	}
	for _, content := range call.Content {
		switch c := content.Variant.(type) {
		case *acp.ToolCallContentDiff:
			add(c.Path, false)
		case *acp.ToolCallContentContent, *acp.ToolCallContentTerminal:
		default:
			f.flaws = append(f.flaws, "the tool call has content of an unknown kind")
		}
	}
	f.named = len(f.paths) > 0
	words := 0
	read := func(to *[]subject, text, cwd string, byInput bool, resolve func(string) (string, error)) {
		if words++; words > maxPaths {
			if words == maxPaths+1 {
				f.flaws = append(f.flaws, fmt.Sprintf("it has more than %d words", maxPaths))
			}
			return
		}
		*to = append(*to, examine(text, cwd, byInput, resolve))
	}
	addWord := func(to *[]subject, text string) { read(to, text, cmp.Or(f.cwd, "/"), true, nil) }
	if err := f.readInput(call.RawInput, func(path string) { add(path, true) },
		func(text string) { addWord(&f.words, text) }); err != nil {
		f.flaws = append(f.flaws, "the input: "+err.Error())
	}
	if call.Kind == acp.ToolKindExecute && !f.commanded && p.line != nil {
		if text, ok := p.line(req.Agent, call); ok {
			f.named, f.commanded = true, true
			f.lines = append(f.lines, parseLine(text))
		}
	}
	for i := range f.lines {
		line := &f.lines[i]
		if line.shell && !p.posix {
			line.flaw = cmp.Or(line.flaw, "is for an unknown shell")
		}
		for _, target := range line.targets {
			addWord(&f.words, target)
		}
		for _, c := range line.all {
			for _, w := range c.words {
				for _, text := range pathsIn(w.text, pathSeparators) {
					addWord(&f.words, text)
				}
				if len(line.mentions) > 0 && strings.ContainsAny(w.text, textSeparators) {
					for _, text := range pathsIn(w.text, textSeparators) {
						addWord(&f.mentions, text)
					}
				}
			}
		}
		for i, c := range line.covered {
			if c.reads == nil {
				continue
			}
			for _, name := range c.reads.files {
				if !rooted(name) && f.cwd != "" {
					name = strings.TrimSuffix(f.cwd, "/") + "/" + name
				}
				read(&line.covered[i].files, name, "", false, p.resolve)
			}
		}
	}
	switch call.Kind {
	case acp.ToolKindExecute:
		if !f.commanded {
			f.flaws = append(f.flaws, "the command is not known")
		}
	case acp.ToolKindRead, acp.ToolKindEdit, acp.ToolKindDelete, acp.ToolKindMove:
		if !f.named {
			f.flaws = append(f.flaws, "the file is not known")
		}
	}
	return f
}

// The separators of paths in a word of a command, and in a word that is text.
const (
	pathSeparators = "=:,@"
	textSeparators = " \t\n'\"`;|&()<>"
)

// pathsIn returns the texts that may be paths in a word of a command: all of it, and its parts, as in --file=a, -fa, @a
// and HEAD:a.
func pathsIn(text, separators string) []string {
	texts := []string{text}
	if len(text) > 2 && text[0] == '-' && text[1] != '-' {
		texts = append(texts, text[2:])
	}
	if !strings.ContainsAny(text, separators) {
		return texts
	}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		texts = append(texts, part)
	}
	if _, after, ok := strings.Cut(text, "="); ok { // which may contain further parts
		texts = append(texts, after)
	}
	return texts
}

// judge reports whether a rule matches, and why.
func (r *compiled) judge(f *facts) (verdict, string) {
	general, why := r.general(f)
	if general == no || general == maybe && r.Effect == Allow {
		return no, why
	}
	if r.Effect == Allow {
		by, why := r.uncovered(f)
		if why != "" {
			return no, why
		}
		return yes, strings.Join(append([]string{"it covers everything in the request"}, by...), "; ")
	}
	part, whyPart := r.touched(f)
	if part == yes && general == maybe {
		return maybe, why
	}
	return part, whyPart
}

// general compares everything other than single paths and commands.
func (r *compiled) general(f *facts) (verdict, string) {
	least, why := yes, ""
	check := func(what, value string, named bool, matches func() bool) {
		switch {
		case !named || least == no:
		case value == "":
			least, why = maybe, fmt.Sprintf("the %s is not known", what)
		case !matches():
			least, why = no, fmt.Sprintf("the %s is %q", what, value)
		}
	}
	restricts := r.Effect != Allow
	check("agent", f.agent, r.Agents != nil, func() bool { return anyGlob(r.Agents, f.agent, restricts) })
	check("kind", string(f.kind), r.Kinds != nil, func() bool { return slices.Contains(r.Kinds, f.kind) })
	if r.Kinds != nil && least == no && f.kind != "" && !f.kind.Known() && restricts {
		least, why = maybe, fmt.Sprintf("unknown kind %q", f.kind)
	}
	check("tool's name", f.tool, r.Tools != nil, func() bool {
		return anyGlob(r.Tools, f.tool, restricts) || f.declared != "" && slices.Contains(r.Tools, f.declared)
	})
	check("working directory", f.cwd, r.Cwds != nil, func() bool {
		if restricts {
			return anyPath(r.cwds, plain.Fold(f.cwd), f.base, true)
		}
		return anyPath(r.cwds, f.cwd, f.base, false)
	})
	return least, why
}

func anyGlob(patterns []string, text string, folded bool) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return glob(pattern, text) || folded && glob(plain.Fold(pattern), plain.Fold(text))
	})
}

func anyPath(patterns []pathPattern, name string, in base, folded bool) bool {
	return slices.ContainsFunc(patterns, func(p pathPattern) bool { return p.matches(name, in, folded) })
}

// uncovered returns the part of a request that a rule that allows does not cover, or "", and how it covers the
// commands.
func (r *compiled) uncovered(f *facts) (by []string, why string) {
	about := r.Paths != nil || r.Commands != nil || r.Lines != nil || r.ReadOnly
	for _, flaw := range f.flaws {
		return nil, flaw
	}
	if about && !f.named {
		return nil, "the request names no paths and no commands"
	}
	for _, path := range f.paths {
		if why := r.pathUncovered(path, f.base); why != "" {
			return nil, why
		}
	}
	commands := 0
	for _, l := range f.lines {
		commands += len(l.covered)
	}
	for _, l := range f.lines {
		switch {
		case slices.Contains(r.Lines, l.text):
			continue
		case r.Commands == nil && !r.ReadOnly:
			return nil, fmt.Sprintf("it says nothing about the line %q", l.text)
		case l.flaw != "":
			return nil, fmt.Sprintf("the line %q %s", l.text, l.flaw)
		}
		for _, c := range l.covered {
			words, why := r.commandUncovered(c, f, commands > 1)
			if why != "" {
				return nil, why
			}
			by = append(by, fmt.Sprintf("%s by %s", c, words))
		}
	}
	return by, ""
}

// folders are commands that change the directory of later commands.
var folders = set("cd chdir pushd popd")

// commandUncovered returns the words of a rule that cover a command, or why none do.
func (r *compiled) commandUncovered(c command, f *facts, among bool) (by, why string) {
	for _, w := range c.words {
		if !w.literal {
			return "", fmt.Sprintf("%s has a word that a shell may change: %s", c, w.text)
		}
	}
	if folders[c.words[0].text] {
		if len(c.words) == 2 && f.cwd != "" && clean(c.words[1].text) == f.cwd && !leadsUp(c.words[1].text) {
			return "the working directory, which it does not change", ""
		}
		if among {
			return "", fmt.Sprintf("%s changes where the other commands run", c)
		}
	}
	for i, pattern := range r.commands {
		if covers(pattern, c) {
			if c.piped && c.reads == nil && c.words[0].text != "tee" && pattern[len(pattern)-1] != anyWords {
				return "", fmt.Sprintf("%s reads what another command writes, which may be commands", c)
			}
			return fmt.Sprintf("%q", r.Commands[i]), ""
		}
	}
	if !r.ReadOnly || c.reads == nil || !f.posix {
		return "", fmt.Sprintf("it does not cover the command %s", c)
	}
	for _, file := range c.files {
		if why := r.pathUncovered(file, f.base); why != "" {
			return "", why
		}
	}
	return fmt.Sprintf("readOnly, %q", c.reads.name), ""
}

func (r *compiled) pathUncovered(path subject, in base) string {
	switch {
	case path.flaw != "":
		return fmt.Sprintf("the path %q %s", path.text, path.flaw)
	case r.Paths == nil:
		return fmt.Sprintf("it says nothing about the path %q", path.text)
	}
	for _, form := range path.forms {
		if !anyPath(r.paths, form, in, false) {
			return fmt.Sprintf("it does not cover the path %q", form)
		}
	}
	return ""
}

// touched reports whether a rule that asks or rejects matches a part of a request.
func (r *compiled) touched(f *facts) (verdict, string) {
	if r.Paths == nil && r.Commands == nil && r.Lines == nil {
		return yes, "it is about all such requests"
	}
	best, why := no, "it is about nothing in the request"
	better := func(v verdict, format string, args ...any) {
		if v > best {
			best, why = v, fmt.Sprintf(format, args...)
		}
	}
	if r.Paths != nil {
		for _, path := range slices.Concat(f.paths, f.words) {
			for i, form := range path.folded {
				if best < yes && anyPath(r.paths, form, f.base, true) {
					better(yes, "it matches the path %q", path.forms[i])
				}
			}
		}
		for _, path := range f.mentions {
			for i, form := range path.folded {
				if best < maybe && anyPath(r.paths, form, f.base, true) {
					better(maybe, "it may match the path %q", path.forms[i])
				}
			}
		}
		for _, path := range f.paths {
			if path.flaw != "" {
				better(maybe, "the path %q %s", path.text, path.flaw)
			}
		}
	}
	for _, l := range f.lines {
		if r.Paths != nil && (l.flaw != "" || slices.ContainsFunc(l.all, command.dynamic)) {
			better(maybe, "the files that the line %q uses are unknown", l.text)
		}
		if slices.Contains(r.Lines, l.text) {
			better(yes, "it matches the line %q", l.text)
		}
		if r.Commands != nil && l.flaw != "" {
			better(maybe, "the line %q %s", l.text, l.flaw)
		}
		for _, pattern := range r.folded {
			if best < maybe && l.mentioned(pattern) {
				better(maybe, "it may match a name in the line %q: %s", l.text, pattern[0])
			}
			for _, c := range l.all {
				if best == yes {
					break
				}
				if v := touches(pattern, c); v == yes {
					better(yes, "it matches the command %s", c)
				} else if v == maybe {
					better(maybe, "it may match the command %s", c)
				}
			}
		}
	}
	for _, flaw := range f.flaws {
		better(maybe, "%s", flaw)
	}
	return best, why
}
