package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/internal/test/must"
)

// What is wrong in a file of rules is said, with its line, and what rules allow that one may not expect.
func TestRuleFiles(t *testing.T) {
	var text string
	files := 0
	for line := range strings.Lines(string(must.Get(os.ReadFile("testdata/rules.txt"))(t))) {
		want, ok := strings.CutPrefix(line, "= ")
		if !ok {
			if !strings.HasPrefix(line, "#") {
				text += line
			}
			continue
		}
		text = strings.TrimSpace(text)
		got := "ok"
		rules, err := policy.Parse([]byte(text))
		if err != nil {
			got = err.Error()
			if syntax, ok := errors.AsType[*policy.SyntaxError](err); !ok || syntax.Unwrap() == nil {
				t.Errorf("%s\n%s is a %T", text, got, err)
			}
		} else {
			must.Get(policy.New(rules, &policy.Options{Home: "/home/me"}))(t)
		}
		for _, rule := range rules {
			got = strings.Join(append([]string{got}, rule.Warnings()...), ": ")
		}
		if got+"\n" != want {
			t.Errorf("%s\ngot %s, want %s", text, got, want)
		}
		text = ""
		files++
	}
	if files < 61 || strings.TrimSpace(text) != "" {
		t.Errorf("only %d files were read, and then %q", files, text)
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
