package policy_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/internal/test/must"
)

// What is wrong in a file of rules is said, with its line.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		``:                              "line 1: unexpected EOF",
		`[]`:                            "line 1: expected an object",
		"{\n\"rule\": []}":              `line 2: unknown member "rule"`,
		`{"rules": {}}`:                 "line 1: expected a list",
		`{"rules": [3]}`:                "line 1: expected an object",
		"{\"rules\": [\n{\n\"a\": 1}]}": `line 3: unknown member "a"`,
		"{\"rules\": [{\"effect\": \"allow\", \"kind\": [\"think\"]},\n{\"effect\": \"deny\"}]}": `line 2: unknown effect "deny"`,
		"{\"rules\": [\n{\"kind\": [\"read\"]}]}":                                                "line 2: missing effect",
		"{\"rules\": [\n{\"effect\": \"allow\"}]}":                                               "line 2: a rule that allows needs kinds, tools, paths, commands or lines",
		"{\"rules\": [\n{\"effect\": \"allow\", \"agent\": [\"a\"]}]}":                           "line 2: a rule that allows needs",
		"{\"rules\": [\n{\"effect\": \"ask\", \"Kind\": [\"read\"]}]}":                           `line 2: unknown member "Kind"`,
		"{\"rules\": [\n{\"effect\": \"ask\", \"kind\": \"read\"}]}":                             "line 2: expected a list",
		"{\"rules\": [\n{\"effect\": \"ask\", \"kind\": [\"raed\"]}]}":                           `line 2: unknown kind "raed", expected one of [read edit `,
		"{\"rules\": [\n{\"effect\": \"ask\", \"kind\": []}]}":                                   "line 2: kind is empty",
		"{\"rules\": [\n{\"effect\": \"ask\", \"path\": []}]}":                                   "line 2: path is empty",
		"{\"rules\": [\n{\"effect\": \"ask\", \"path\": [3]}]}":                                  "line 2: expected a string",
		"{\"rules\": [\n{\"effect\": \"ask\", \"path\": [\"\"]}]}":                               `line 2: path "" is empty, or has a NUL or bytes that are not UTF-8`,
		"{\"rules\": [\n{\"effect\": \"ask\", \"path\": [\"/a/../b\"]}]}":                        `line 2: pattern "/a/../b" contains ".."`,
		"{\"rules\": [\n{\"effect\": \"ask\", \"path\": [\"/a/[b\"]}]}":                          `line 2: pattern "/a/[b" is malformed`,
		"{\"rules\": [\n{\"effect\": \"ask\", \"cwd\": [\"a\"]}]}":                               `line 2: cwd "a" is not absolute`,
		"{\"rules\": [\n{\"effect\": \"ask\", \"command\": [\"** a\"]}]}":                        "line 2: command \"** a\": ** is only for the last word",
		"{\"rules\": [\n{\"effect\": \"ask\", \"command\": [\" \"]}]}":                           `line 2: command " " has no words`,
		"{\"rules\": [\n{\"effect\": \"ask\",\n\"effect\": \"allow\"}]}":                         `line 3: duplicate member "effect"`,
		"{\"rules\": [],\n\"rules\": []}":                                                        `line 2: duplicate member "rules"`,
		"{\"rules\": []}\n\n{}":                                                                  "line 3: unexpected data after the rules",
		"{\"rules\": [\n{\"effect\": \"ask\",,}]}":                                               "line 2: invalid character ','",
		"{\"rules\": [\n{\"effect\": \"ask\"}":                                                   "line 2: unexpected EOF",
		"{\"rules\": [\n{\"effect\": \"ask\", \"reason\": 3}]}":                                  "line 2: expected a string",
		"{\"rules\": [\n{\"effect\": \"allow\", \"readOnly\": 1}]}":                              "line 2: expected true or false",
		"{\"rules\": [\n{\"effect\": \"reject\", \"readOnly\": true}]}":                          "line 2: only rules that allow can be readOnly or unsafe",
		"{\"rules\": [\n{\"effect\": \"ask\", \"unsafe\": true}]}":                               "line 2: only rules that allow can be readOnly or unsafe",
		"{\"rules\": [\n{\"effect\": \"allow\", \"command\": [\"make\"], \"unsafe\": true}]}":    "line 2: the rule is unsafe, but no command ends with **",
		// Rules of old files.
		"{\"rules\": [\n{\n\"command\": [\"git status\",\n\"git log **\"],\n\"effect\": \"allow\"}]}": "line 4: command \"git log **\": ** allows whatever the program can do: " +
			"write the words, with * for one that the agent may choose; or write \"readOnly\": true in place of commands that only read; or add \"unsafe\": true to the rule",
		oldRule("awk *"):          `line 2: command "awk *": * may be code or a program that awk runs: write the words that are allowed; or add "unsafe": true to the rule`,
		oldRule("./scripts/*"):    `line 2: command "./scripts/*": * stands for a whole word: write the words that are allowed, each in a command of its own`,
		oldRule("npm run test:*"): `line 2: command "npm run test:*": * stands for a whole word`,
		oldRule("find **"):        `line 2: command "find **": ** allows whatever the program can do`,
		oldRule("git **"):         `line 2: command "git **": ** allows whatever the program can do`,
		oldRule("**"):             `line 2: command "**": ** allows whatever the program can do`,
		oldRule("cd **"):          `line 2: command "cd **": ** allows whatever the program can do`,
		oldRule("cd *"):           `line 2: command "cd *": other commands may run there later: write the folder's name`,
		oldRule("* status"):       `line 2: command "* status": the first word is the name of a program`,
	} {
		rules, err := policy.Parse([]byte(text))
		syntax, ok := errors.AsType[*policy.SyntaxError](err)
		if !ok || !strings.HasPrefix(err.Error(), want) || syntax.Unwrap() == nil {
			t.Errorf("%s\nwant an error that begins with %s\ngot %v, %v", text, want, err, rules)
		}
	}
}

func oldRule(command string) string {
	return fmt.Sprintf("{\"rules\": [\n{\"effect\": \"allow\", \"command\": [%q]}\n]}", command)
}

// A rule warns of what it allows, and only of that.
func TestWarnings(t *testing.T) {
	for rule, want := range map[string]string{
		`{"effect":"allow","command":["go test *","make **"],"unsafe":true}`: `[command "make **" allows whatever make can do, including changing files and running other programs]`,
		`{"effect":"allow","command":["**"],"unsafe":true}`:                  `[command "**" allows every program, whatever it does]`,
		`{"effect":"allow","command":["go test *"],"readOnly":true}`:         `[]`,
		`{"effect":"reject","command":["rm **"]}`:                            `[]`,
		`{"effect":"allow","path":["**"]}`:                                   `[]`,
	} {
		if got := fmt.Sprint(mustParse(t, rule)[0].Warnings()); got != want {
			t.Errorf("%s: got %s, want %s", rule, got, want)
		}
	}
}

// What is written is what was read.
func TestFormat(t *testing.T) {
	rules := []policy.Rule{
		{Effect: policy.Ask},
		{
			Effect: policy.Allow, Agents: []string{"a"}, Kinds: []acp.ToolKind{acp.ToolKindRead}, Tools: []string{"t*"}, Cwds: []string{"/a"},
			Paths: []string{"/a/<&>/**", "~/b"}, Commands: []string{"go test **"}, ReadOnly: true, Unsafe: true, Lines: []string{"a && b\n\"c\""}, Reason: "why",
		},
	}
	path := filepath.Join(t.TempDir(), "rules.json")
	must.Do(t, os.WriteFile(path, policy.Format(rules), 0o600))
	read, err := policy.ReadFile(path)
	if err != nil || !reflect.DeepEqual(read, rules) {
		t.Errorf("got %v, %v", read, err)
	}
	if _, err := policy.ReadFile(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	must.Do(t, os.WriteFile(path, []byte("{\n3}"), 0o600))
	if _, err := policy.ReadFile(path); err == nil || !strings.HasPrefix(err.Error(), path+": line 2: ") {
		t.Errorf("a file that is none: %v", err)
	}
}

// A rule that looks as if it did something, and would match nothing, is an error.
func TestRulesThatMatchNothing(t *testing.T) {
	for _, rule := range []policy.Rule{
		{Effect: policy.Reject, Paths: []string{`C:\Users\me\**`}},
		{Effect: policy.Reject, Paths: []string{`\\server\share\**`}},
		{Effect: policy.Reject, Paths: []string{`~`}},
		{Effect: policy.Reject, Paths: []string{`~root/**`}},
		{Effect: policy.Reject, Paths: []string{`~\x`}},
		{Effect: policy.Reject, Paths: []string{`$HOME/.ssh/**`}},
		{Effect: policy.Reject, Paths: []string{`%USERPROFILE%/**`}},
		{Effect: policy.Reject, Paths: []string{`file:///etc/**`}},
		{Effect: policy.Reject, Cwds: []string{`C:\x`}},
		{Effect: policy.Reject, Commands: []string{`git commit -m "a b"`}},
		{Effect: policy.Reject, Commands: []string{"git log | sh"}},
		{Effect: policy.Reject, Commands: []string{"a && b"}},
		{Effect: policy.Reject, Paths: []string{}},
		{Effect: policy.Reject, Commands: []string{}},
		{Effect: policy.Reject, Lines: []string{}},
		{Effect: policy.Reject, Agents: []string{}},
		{Effect: policy.Reject, Kinds: []acp.ToolKind{}},
	} {
		if _, err := policy.New([]policy.Rule{rule}, &policy.Options{Home: "/home/me"}); err == nil {
			t.Errorf("%s is a rule", rule)
		}
	}
	for _, rule := range []policy.Rule{
		{Effect: policy.Reject, Paths: []string{"C:/Users/me/**", "./~", "a$b", `/a\*b`, "a%b"}},
		{Effect: policy.Reject, Commands: []string{"find . -exec ls {} ;"}},
	} {
		if _, err := policy.New([]policy.Rule{rule}, &policy.Options{Home: "/home/me"}); err != nil {
			t.Error(err)
		}
	}
}

// The same rule that allows, asks and rejects rejects, and one that asks is before one that allows.
func TestContradictions(t *testing.T) {
	rule := func(effects ...policy.Effect) (rules []policy.Rule) {
		for _, effect := range effects {
			rules = append(rules, policy.Rule{Effect: effect, Kinds: []acp.ToolKind{acp.ToolKindRead}, Paths: []string{"/proj/**"}})
		}
		return rules
	}
	for _, c := range []struct {
		rules []policy.Rule
		want  policy.Effect
	}{
		{rule(policy.Allow, policy.Ask, policy.Reject), policy.Reject},
		{rule(policy.Reject, policy.Ask, policy.Allow), policy.Reject},
		{rule(policy.Allow, policy.Ask, policy.Allow), policy.Ask},
		{rule(policy.Allow), policy.Allow},
		{nil, policy.Ask},
	} {
		p := must.Get(policy.New(c.rules, nil))(t)
		if d, err := p.Explain(request(t, reads("/proj/a"))); err != nil || d.Effect != c.want {
			t.Errorf("%v: got %s, %v, want %s", c.rules, d.Effect, err, c.want)
		}
	}
}

func TestNewErrors(t *testing.T) {
	_, err := policy.New([]policy.Rule{{Effect: policy.Ask}, {Effect: policy.Allow}}, nil)
	if want := `policy: rule {"effect":"allow"}: a rule that allows needs kinds, tools, paths, commands or lines`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// An explanation says what the request is about and what each rule says.
func TestExplain(t *testing.T) {
	p := newPolicy(t, inProject+"\n"+`{"effect":"allow","command":["git status","go test *"]}`+"\n"+`{"effect":"reject","command":["rm **"],"reason":"nothing is removed"}`)
	for call, want := range map[string]string{
		runs("git status; rm $X"): `reject: rule {"effect":"reject","command":["rm **"],"reason":"nothing is removed"}: nothing is removed
  kind "execute", tool "", agent "A", cwd "/proj"
  line "git status; rm $X"
  command git status
  command rm $X
- {"effect":"allow","kind":["read","edit"],"path":["/proj/**"]}: the kind is "execute"
- {"effect":"allow","command":["git status","go test *"]}: rm $X has a word that a shell may change: $X
+ {"effect":"reject","command":["rm **"],"reason":"nothing is removed"}: it matches the command rm $X
`,
		runs("git status && go test ./x"): `allow: rule {"effect":"allow","command":["git status","go test *"]}: it covers everything in the request; git status by "git status"; go test ./x by "go test *"
  kind "execute", tool "", agent "A", cwd "/proj"
  line "git status && go test ./x"
  command git status
  command go test ./x
- {"effect":"allow","kind":["read","edit"],"path":["/proj/**"]}: the kind is "execute"
+ {"effect":"allow","command":["git status","go test *"]}: it covers everything in the request; git status by "git status"; go test ./x by "go test *"
- {"effect":"reject","command":["rm **"],"reason":"nothing is removed"}: it is about nothing in the request
`,
		reads("/proj/a", "/x/../b"): `ask: no rule matches
  kind "read", tool "", agent "A", cwd "/proj"
  path "/proj/a"
  path "/x/../b" contains ".."
- {"effect":"allow","kind":["read","edit"],"path":["/proj/**"]}: the path "/x/../b" contains ".."
- {"effect":"allow","command":["git status","go test *"]}: it says nothing about the path "/proj/a"
- {"effect":"reject","command":["rm **"],"reason":"nothing is removed"}: it is about nothing in the request
`,
	} {
		d, err := p.Explain(request(t, call))
		if err != nil || d.String() != want {
			t.Errorf("got\n%s%v\nwant\n%s", d, err, want)
		}
	}
}

// A path is allowed only where it leads, too, if links are followed.
func TestLinks(t *testing.T) {
	dir := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	proj := filepath.Join(dir, "proj")
	must.Do(t, errors.Join(os.Mkdir(proj, 0o755), os.Mkdir(filepath.Join(dir, "out"), 0o755), os.Mkdir(filepath.Join(proj, "in"), 0o755)))
	for from, to := range map[string]string{"out": "../out", "in2": "in", "none": "../none", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(proj, from)); err != nil {
			t.Skip("no symbolic links here: ", err)
		}
	}
	rules := []policy.Rule{
		{Effect: policy.Allow, Paths: []string{filepath.ToSlash(proj) + "/**"}},
		{Effect: policy.Reject, Paths: []string{"**/out/secret"}},
	}
	for _, resolve := range []func(string) (string, error){nil, policy.ResolveLinks} {
		p := must.Get(policy.New(rules, &policy.Options{Resolve: resolve}))(t)
		for name, want := range map[string]policy.Effect{
			"a": policy.Allow, "in/new/file": policy.Allow, "in2/file": policy.Allow, "out/file": policy.Ask, "none": policy.Ask,
			"loop": policy.Ask, "out/secret": policy.Reject,
		} {
			if resolve == nil && want == policy.Ask {
				want = policy.Allow
			}
			req := policy.Request{ToolCall: acp.ToolCall{
				Kind: acp.ToolKindEdit, Locations: []acp.ToolCallLocation{{Path: filepath.Join(proj, filepath.FromSlash(name))}},
			}}
			if d, err := p.Explain(req); err != nil || d.Effect != want {
				t.Errorf("%s: want %s, got %s, %v", name, want, d, err)
			}
		}
	}
}

// A word that the agent chooses is code, or the name of a program, unless the program is known to take it as data.
func TestUnsafeWords(t *testing.T) {
	unsafe := `awk *|gawk *|mawk -f *|sed *|sed -n *|sed -e *|sed -i *|eval *|exec *|xargs *|xargs rm *|find . -exec *|find -exec * *|env *|sh -c *
		bash *|bash -lc *|zsh -c *|python *|python3 -c *|python -m *|node *|node -e *|perl -e *|ruby -e *|php -r *|lua *|make *|make -C *
		git -c *|git *|git alias *|git submodule foreach *|git bisect run *|git rebase *|git clone *|git grep -O *|git config *|git push *
		tar --checkpoint-action *|tar -I * xf a|tar xf *|ssh host *|ssh *|sudo *|time *|nice *|nice -n 5 *|timeout 5 *|nohup *|watch *|parallel *
		vim -c *|vim *|less *|man *|npx *|npm run *|npm exec *|pnpm dlx *|yarn *|uvx *|uv run *|go run *|go test -exec *|go build -toolexec *|go vet -vettool *
		go generate *|go tool *|cargo run *|cargo test --config *|docker run *|docker exec app *|kubectl exec *|command *|builtin *|source *|. *|trap *
		./run *|/bin/ls *|LS *|rg --pre *|sort --compress-program *|date *|strace *|gdb *|rsync *|scp *|ssh-keygen *|openssl *|dd *|crontab *
		osascript -e *|powershell -c *|cmd /c *|start *|open *|xdg-open *|sqlite3 db *|psql -c *|jshell *|dc *|ed *|expect *|flock f *|setsid *
		chroot *|unshare *|doas *|su -c *|systemd-run *|at *|batch *|script -c *|busybox *|toybox *|apt *|pip install *|unknown *|cd *`
	data := `ls *|ls -la *|cat *|grep *|grep -rn * src|find *|find . -name *|git log *|git log --oneline *|git show *|git diff *|git add *|git commit -m *
		git checkout -b *|git push origin *|go test *|go test -run * ./...|go build *|cargo test *|gofmt -w *|echo *|touch *|mkdir -p *|rm -rf *
		cp -r * *|mv * *|tee *|sed -n 5p *|jq *|wc -l *`
	for group, want := range map[string]bool{unsafe: false, data: true} {
		for command := range strings.FieldsFuncSeq(group, func(r rune) bool { return r == '|' || r == '\n' || r == '\t' }) {
			rule := policy.Rule{Effect: policy.Allow, Commands: []string{command}}
			if _, err := policy.New([]policy.Rule{rule}, nil); (err == nil) != want {
				t.Errorf("%q: %v", command, err)
			}
			rule.Unsafe = true
			if _, err := policy.New([]policy.Rule{rule}, nil); command != "cd *" && (err != nil) != want || want != (rule.Warnings() == nil) {
				t.Errorf("%q, unsafe: %v, %q", command, err, rule.Warnings())
			}
			rule = policy.Rule{Effect: policy.Reject, Commands: []string{command}}
			if _, err := policy.New([]policy.Rule{rule}, nil); err != nil || rule.Warnings() != nil {
				t.Errorf("%q, rejected: %v", command, err)
			}
		}
	}
	p := newPolicy(t, `{"effect":"allow","command":["go test *", "jq *", "jq -r * *"]}`)
	for line, want := range map[string]policy.Effect{
		"jq name": policy.Allow, "jq -r environment a.json": policy.Allow, "jq env": policy.Ask, "jq -r 'a|env.KEY' a.json": policy.Ask,
		`jq 'include "a"; b'`: policy.Ask, `jq 'import "a" as b; b::c'`: policy.Ask, "go test ./a": policy.Allow, "go test /tmp/evil_test.go": policy.Ask, "go test a.go": policy.Ask,
	} {
		if d, err := p.Explain(request(t, runs(line))); d.Effect != want || err != nil {
			t.Errorf("%s: %s, %v", line, d.Effect, err)
		}
	}
}
