package policy_test

// The search for requests that are allowed and that no rule allows. The oracle has nothing in common with the package:
// paths are compared element by element, and what a line for a shell does, bash says, which runs it.

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// requests is how many random requests are decided about.
func requests() int { return tier.Pick(100, 1_000, 3_000, 100_000) }

// choices makes rules and requests of bytes.
type choices struct{ data []byte }

func (c *choices) n(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	b := c.data[0]
	c.data = c.data[1:]
	return int(b) % n
}

func (c *choices) of(texts ...string) string { return texts[c.n(len(texts))] }

// some are up to n texts, or nil.
func (c *choices) some(n int, texts ...string) (some []string) {
	for range c.n(n + 1) {
		some = append(some, c.of(texts...))
	}
	return some
}

func (c *choices) rule(root string) policy.Rule {
	rule := policy.Rule{Effect: policy.Effect(c.of("allow", "allow", "allow", "allow", "ask", "reject"))}
	for _, kind := range c.some(2, "read", "edit", "execute", "execute", "other") {
		rule.Kinds = append(rule.Kinds, acp.ToolKind(kind))
	}
	rule.Paths = c.some(2, root+"/p/**", root+"/p/*", root+"/q", "**", root+"/p/a/**", "a", "./a/*")
	rule.Commands = c.some(3, "a **", "b **", "b", "a *", "b a", "c **", "a b **", "**")
	rule.Unsafe = rule.Effect == policy.Allow && strings.Contains(strings.Join(rule.Commands, " "), "*")
	switch c.n(12) {
	case 0:
		rule.Agents = []string{c.of("A", "B", "*")}
	case 1:
		rule.Tools = []string{c.of("x", "y")}
	case 2:
		rule.Cwds = []string{c.of(root+"/p", root+"/q/**")}
	case 3:
		rule.Lines = []string{c.of("a; b", "c")}
	}
	return rule
}

func (c *choices) path(root string) string {
	return c.of(root+"/p/a", root+"/p/a/b", root+"/p", root+"/q", root+"/p/../q", root+"/p//a/", root+"/P/a", root+"/p/./a",
		"a", "../q", "", "/", root+"/p/a\\b", root+"/p/a\x00", "C:/p/a")
}

func (c *choices) line(root string) string {
	var b strings.Builder
	for range c.n(12) {
		b.WriteString(c.of("a", "b", "c", "a ", "b ", "a ", " ", " ", ";", "; ", " && ", " || ", " | ", "|", "&", "\n", "$(", ")", "`", "'",
			`"`, `\`, "$x", "${x}", "${x:-c}", "$((1))", "<(", ">", " > ", " >> ", "<", "/dev/null", root+"/p/a", root+"/q", root+"/w", "<<a\n", "<<<",
			"{", "{ ", "; }", "}", "(", "*", "?", "[a-c]", "~", "=", "x=", " #", "! ", "if ", "then ", "; fi", "for a in b; do ", "; done",
			" 2>&1", "&>", "a() ", "$'", "$\"", "{a,b}", "\t", "\r", "|&", "@(a|b)"))
	}
	return b.String()
}

func (c *choices) request(root string) (req policy.Request, lines []string, args [][]string, paths []string) {
	req.Agent, req.Cwd = c.of("A", "A", "B", ""), c.of(root+"/p", root+"/p", root+"/q", "")
	call := &req.ToolCall
	call.ToolCallID, call.Title = "t", "T"
	call.Kind = acp.ToolKind(c.of("read", "edit", "execute", "execute", "other", "", "strange"))
	if c.n(4) == 0 {
		call.Name = acp.Some(c.of("x", "y"))
	}
	for range c.n(3) {
		path := c.path(root)
		paths = append(paths, path)
		call.Locations = append(call.Locations, acp.ToolCallLocation{Path: path})
	}
	if c.n(4) == 0 {
		path := c.path(root)
		paths = append(paths, path)
		call.Content = append(call.Content, acp.ToolDiff(path, ""))
	}
	switch c.n(8) {
	case 0:
		path := c.path(root)
		if path != "" && !filepath.IsAbs(path) && req.Cwd != "" && !strings.HasPrefix(path, "C:") {
			paths = append(paths, req.Cwd+"/"+path)
		} else {
			paths = append(paths, path)
		}
		call.RawInput = acp.Raw(map[string]string{"file_path": path})
	case 1:
		argv := append([]string{c.of("a", "b", "c")}, c.some(3, "a", "b", "$x", "; c", "**")...)
		args = append(args, argv)
		call.RawInput = acp.Raw(map[string][]string{"command": argv})
	case 2:
		line := c.line(root)
		args, lines = nil, append(lines, line)
		call.RawInput = acp.Raw(map[string][]string{"command": {"bash", "-c", line}})
	case 3, 4, 5, 6:
		line := c.line(root)
		lines = append(lines, line)
		call.RawInput = acp.Raw(map[string]string{"command": line})
	}
	return req, lines, args, paths
}

// elements are those of a path, or nil if it is not one that can be allowed.
func elements(path string) []string {
	if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "\x00\\") {
		return nil
	}
	all := []string{"/"}
	for element := range strings.SplitSeq(path, "/") {
		switch element {
		case "", ".":
		case "..":
			return nil
		default:
			all = append(all, element)
		}
	}
	return all
}

// matchElements compares the elements of a pattern with those of a path, in every way.
func matchElements(pattern, path []string) bool {
	switch {
	case len(pattern) == 0:
		return len(path) == 0
	case pattern[0] == "**":
		return matchElements(pattern[1:], path) || len(path) > 0 && matchElements(pattern, path[1:])
	case len(path) == 0:
		return false
	}
	return (pattern[0] == "*" && path[0] != "/" || pattern[0] == path[0]) && matchElements(pattern[1:], path[1:])
}

func matchesPath(patterns []string, cwd, path string) bool {
	all := elements(path)
	return all != nil && slices.ContainsFunc(patterns, func(pattern string) bool {
		if pattern == "**" {
			return true
		}
		if !strings.HasPrefix(pattern, "/") {
			if cwd == "" {
				return false
			}
			pattern = cwd + "/" + pattern
		}
		return matchElements(elements(pattern), all)
	})
}

// matchWords compares the words of a pattern with those of a command.
func matchWords(pattern, words []string) bool {
	switch {
	case len(pattern) == 0:
		return len(words) == 0
	case pattern[0] == "**":
		return true
	case len(words) == 0:
		return false
	}
	return (pattern[0] == "*" || pattern[0] == words[0]) && matchWords(pattern[1:], words[1:])
}

func matchesCommand(patterns, words []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matchWords(strings.Fields(pattern), words) })
}

// shell runs lines in bash, where there are only the commands a, b and c.
type shell struct {
	bash, root, log string
	env             []string
}

func newShell(t testing.TB, root string) *shell {
	t.Helper()
	s := &shell{root: root, log: filepath.Join(root, "log")}
	var err error
	if s.bash, err = exec.LookPath("bash"); err != nil || runtime.GOOS == "windows" {
		t.Skip("there is no bash to say what lines do")
	}
	commands := filepath.Join(root, "bin")
	must.Do(t, os.Mkdir(commands, 0o755))
	script := "#!" + s.bash + "\n{ printf 'N%s\\0' \"${0##*/}\"; for w; do printf 'W%s\\0' \"$w\"; done; } >> '" + s.log + "'\necho c\nexit $STATUS\n"
	for _, name := range []string{"a", "b", "c"} {
		must.Do(t, buildtest.WriteFile(filepath.Join(commands, name), script, 0o755))
	}
	s.env = []string{"PATH=" + commands, "HOME=" + root, "x=a c"}
	return s
}

// run returns the commands that a line has run, and the files that it has made.
func (s *shell) run(t testing.TB, line string) (commands [][]string, files []string) {
	t.Helper()
	for _, status := range []string{"0", "1"} {
		for _, name := range []string{"p", "q", "w", "log", "run"} {
			must.Do(t, os.RemoveAll(filepath.Join(s.root, name)))
		}
		for _, name := range []string{"p", "run"} {
			must.Do(t, os.Mkdir(filepath.Join(s.root, name), 0o755))
		}
		must.Do(t, os.WriteFile(filepath.Join(s.root, "run", "b"), nil, 0o644))
		// It fails as often as not. The second command waits for what the first has left running.
		cmd := exec.CommandContext(t.Context(), s.bash, "-c", `eval "$1"; wait`, "bash", line)
		cmd.Dir, cmd.Env = filepath.Join(s.root, "run"), append(s.env, "STATUS="+status)
		_ = cmd.Run()
		log, err := os.ReadFile(s.log)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for entry := range bytes.SplitSeq(log, []byte{0}) {
			switch {
			case len(entry) == 0:
			case entry[0] == 'N':
				commands = append(commands, []string{string(entry[1:])})
			default:
				last := &commands[len(commands)-1]
				*last = append(*last, string(entry[1:]))
			}
		}
		err = filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && path != s.log && path != filepath.Join(s.root, "run", "b") && filepath.Dir(path) != filepath.Join(s.root, "bin") {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return commands, files
}

// checkDecision decides about a request that bytes make, and checks that what is allowed, a rule allows. It returns what was
// decided.
func checkDecision(t testing.TB, s *shell, data []byte) policy.Effect {
	t.Helper()
	c := &choices{data}
	req, lines, args, paths := c.request(s.root)
	var rules []policy.Rule
	for range 1 + c.n(3) {
		rules = append(rules, c.rule(s.root))
	}
	p, err := policy.New(rules, &policy.Options{Home: s.root, POSIXShell: true})
	if err != nil {
		return "" // a rule that allows everything is none
	}
	d := must.Get(p.Explain(req))(t)
	if d.Effect != policy.Allow {
		return d.Effect
	}
	var ran [][]string
	var files []string
	for _, line := range lines {
		ran, files = s.run(t, line)
	}
	allowed := slices.ContainsFunc(rules, func(r policy.Rule) bool {
		if r.Effect != policy.Allow || r.Agents != nil && !slices.Contains(r.Agents, req.Agent) && (r.Agents[0] != "*" || req.Agent == "") ||
			r.Tools != nil && !slices.Contains(r.Tools, req.ToolCall.Name.Value()) ||
			r.Cwds != nil && !matchesPath(r.Cwds, "", req.Cwd) ||
			r.Kinds != nil && !slices.Contains(r.Kinds, req.ToolCall.Kind) ||
			req.ToolCall.Kind == "" || req.ToolCall.Kind == "strange" {
			return false
		}
		if len(paths)+len(lines)+len(args) == 0 && (r.Paths != nil || r.Commands != nil || r.Lines != nil || req.ToolCall.Kind != "other") {
			return false
		}
		for _, path := range paths {
			if strings.HasPrefix(path, "C:/p") && slices.Contains(r.Paths, "**") {
				continue
			}
			if !matchesPath(r.Paths, req.Cwd, path) {
				return false
			}
		}
		for _, words := range args {
			if !matchesCommand(r.Commands, words) {
				return false
			}
		}
		if len(lines) == 0 || slices.Contains(r.Lines, lines[0]) {
			return true
		}
		for _, words := range ran {
			if !matchesCommand(r.Commands, words) {
				return false
			}
		}
		for _, file := range files {
			if !matchesPath(r.Paths, req.Cwd, file) {
				return false
			}
		}
		return r.Commands != nil
	})
	for _, r := range rules {
		restricts := r.Effect != policy.Allow && (r.Kinds == nil || slices.Contains(r.Kinds, req.ToolCall.Kind)) &&
			r.Agents == nil && r.Tools == nil && r.Cwds == nil
		hit := r.Paths == nil && r.Commands == nil && r.Lines == nil
		for _, path := range slices.Concat(paths, files) {
			hit = hit || matchesPath(r.Paths, req.Cwd, path)
		}
		for _, words := range slices.Concat(args, ran) {
			hit = hit || matchesCommand(r.Commands, words)
		}
		if restricts && hit {
			allowed = false
		}
	}
	if !allowed {
		t.Errorf("no rule allows it: %q, which ran %q and wrote %q: %s", lines, ran, files, d)
	}
	return d.Effect
}

// No request is allowed that no rule allows.
func TestAllowed(t *testing.T) {
	s := newShell(t, t.TempDir())
	r := rand.New(rand.NewPCG(17, 6))
	decided := map[policy.Effect]int{}
	for range requests() {
		data := make([]byte, 80)
		for i := range data {
			data[i] = byte(r.UintN(256))
		}
		decided[checkDecision(t, s, data)]++
	}
	t.Log(decided)
	if requests() >= 1000 {
		for _, effect := range []policy.Effect{policy.Allow, policy.Ask, policy.Reject} {
			if decided[effect] == 0 {
				t.Errorf("nothing was decided as %s", effect)
			}
		}
	}
}

func FuzzAllowed(f *testing.F) {
	s := newShell(f, f.TempDir())
	for i := range 20 {
		f.Add(bytes.Repeat([]byte{byte(i), byte(3 * i), byte(7 * i)}, 20))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkDecision(t, s, data) })
}
