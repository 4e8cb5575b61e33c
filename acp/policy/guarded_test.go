package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/internal/test/must"
)

// No mode and no remembered rule allows a change of what programs run or obey although nobody starts them.
func TestGuarded(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: the test makes links")
	}
	home := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	t.Setenv("HOME", home)
	put := func(name, text string) {
		path := filepath.Join(home, name)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
	put(".gitconfig", "[core]\n\tattributesFile = ~/attributes\n\tfsmonitor = userwatch\n[includeIf \"gitdir:~/a=b/\"] path = ~/when.cfg\n")
	put("when.cfg", "[gpg]\n\tprogram = sign/gpg\n")
	put("p/.git/config", `[core]
	hooksPath = scripts/hooks
	fsmonitor = "tools/watch --fast"
[filter "x"]
	clean = "!f() { tools/clean \"$@\"; }; f"
[include]
	path = ../more.cfg
[alias]
	st = status
[remote "origin"]
	url = ../other
	fetch = +refs/heads/main:refs/remotes/origin/main
[core]
	askPass = \
  tools/ask\
pass
	editor = "\"tools/quoted\" --wait"
	pager = my tools/page # comment
[diff "y"]
	textconv = sh -c '(tools/group)'
	command = ROOT=tools/assigned $(git rev-parse --show-toplevel)/tools/top `+"`tools/back`"+` \"$HOME\"/p/tools/home ${PWD}//tools/pwd
`)
	put("p/more.cfg", "[core]\n\tsshCommand = \"my tools/ssh\"\n")
	put("p/.git/modules/sub/config", "")
	put("p/sub/.git", "gitdir: ../.git/modules/sub\n")
	put("p/bare/HEAD", "")
	put("p/bare/objects/x", "")
	put("p/bare/refs/x", "")
	put("p/tree/.git", "gitdir: "+home+"/data/worktrees/tree\n")
	put("data/worktrees/tree/commondir", "../..\n")
	put("data/worktrees/tree/HEAD", "")
	put("data/config", "[core]\nhooksPath = h\n")
	put("data/HEAD", "")
	put("data/objects/x", "")
	put("data/refs/x", "")
	put("p/.git/worktrees/w/commondir", "../..\n")
	put(".cache/worktrees/w/.git", "gitdir: "+home+"/p/.git/worktrees/w\n")
	for link, target := range map[string]string{"p/innocent": ".git", "p/rc": "../.bashrc", "p/notes": "notes.txt", "p/none": ".git/hooks/new",
		"p/no\u200cne": ".git/hooks/new", `p/no\ne`: ".git/hooks/new"} {
		must.Do(t, os.Symlink(target, filepath.Join(home, link)))
	}
	put(".bashrc", "")
	put("p/notes.txt", "")
	decisions := &policy.Remembered{Memory: &policy.SessionMemory{}, Agent: "a"}
	in := func(cwd string, mode acp.SessionModeID) session { return session{"s", cwd, mode} }
	for cwd, files := range map[string]struct{ guarded, free string }{
		"p": {
			guarded: `.git/config .git/hooks/pre-commit .GIT/config .Git sub/.git sub/.git/config .g` + "\u200c" + `it/config .git./config GIT~1/config
				userwatch sign/gpg ../when.cfg tools/askpass tools/quoted tools/group tools/assigned tools/top tools/back tools/home tools/pwd
				no` + "\u200c" + `ne no\ne lefthook-local.yml mise.local.toml p.code-workspace _exrc
				.hg/hgrc .jj/repo/config .svn/x _darcs/x CVS/Root .envrc .vscode/tasks.json .zed/tasks.json .idea/x .husky/pre-commit
				.claude/settings.json .mcp.json .env .npmrc .gitmodules .bashrc a/.profile innocent/config innocent/hooks/x rc none
				bare/config bare/hooks/x bare/HEAD new/HEAD head lefthook.yml mise.toml scripts/hooks/pre-push tools/watch tools/clean
				more.cfg tree/h/post-checkout ../.bashrc ../.config/x ../bin/ls ../Library/LaunchAgents/x ../attributes
				../data/config ../data/worktrees/tree/config`,
			free: `main.go a/b.go notes new.txt .gitignore .github/workflows/ci.yml a/.gitattributes tools/other scripts/x header
				components/head/x.ts mise.go main/x tools/to/x home/x sub/a.c tree/a.c ../other/x origin Library/x bin/x`,
		},
		"":                   {guarded: ".bashrc .profile .ssh/authorized_keys bin/ls .cache/worktrees/w/x p/.git/config .local/state/rules.json", free: "notes.txt p/main.go"},
		".cache/worktrees/w": {guarded: ".git .envrc scripts/hooks", free: "main.go a/.gitignore"},
	} {
		session := in(filepath.Join(home, cwd), "")
		check := func(names string, free bool) {
			t.Helper()
			for name := range strings.FieldsSeq(names) {
				file := session.cwd + "/" + name
				if !strings.Contains(name, "innocent/") {
					file = filepath.Join(session.cwd, name)
				}
				call := acp.ToolCall{Kind: acp.ToolKindEdit, Name: acp.Some("edit"), Content: []acp.ToolCallContent{acp.ToolEdit(file, "1", "2")}}
				for _, mode := range []acp.SessionModeID{policy.ModeEdits, policy.ModeAll} {
					kind, _, err := decisions.Decide(in(session.cwd, mode), call)
					if err != nil || free != (kind == acp.PermissionOptionKindAllowOnce) {
						t.Errorf("in %q, mode %s: %q for %s, %v", cwd, mode, kind, name, err)
					}
					if kind, _, err := decisions.Decide(in("", mode), call); !free && kind != "" || err != nil {
						t.Errorf("mode %s alone: %q for %s, %v", mode, kind, name, err)
					}
				}
				if err := decisions.Remember(session, call, acp.PermissionOptionKindAllowAlways); free != (err == nil) {
					t.Errorf("in %q, %s for always: %v", cwd, name, err)
				}
				if kind, _, err := decisions.Decide(in(session.cwd, policy.ModeReadOnly), call); kind != acp.PermissionOptionKindRejectOnce || err != nil {
					t.Errorf("read only: %q, %v", kind, err)
				}
			}
		}
		check(files.guarded, false)
		check(files.free, true)
	}
	for _, name := range []string{"my tools/page", "my tools/x/y"} {
		call := acp.ToolCall{Kind: acp.ToolKindEdit, Content: []acp.ToolCallContent{acp.ToolEdit(filepath.Join(home, "p", name), "1", "2")}}
		if kind, _, err := decisions.Decide(in(home+"/p", policy.ModeEdits), call); (kind == "") != strings.HasSuffix(name, "page") || err != nil {
			t.Errorf("%s: %q, %v", name, kind, err)
		}
	}
	unplaced := acp.ToolCall{Kind: acp.ToolKindEdit, Content: []acp.ToolCallContent{acp.ToolEdit("link/x", "1", "2")}}
	if kind, _, err := decisions.Decide(in("", policy.ModeEdits), unplaced); kind != "" || err != nil {
		t.Errorf("a path that is relative to an unknown directory: %q", kind)
	}
	rule := policy.Rule{Effect: policy.Allow, Kinds: []acp.ToolKind{acp.ToolKindEdit}, Paths: []string{"**"}}
	must.Do(t, decisions.Memory.Add("s", rule))
	call := acp.ToolCall{Kind: acp.ToolKindEdit, Content: []acp.ToolCallContent{acp.ToolEdit(home+"/p/.git/config", "1", "2")}}
	if kind, _, err := decisions.Decide(in(home+"/p", ""), call); kind != "" || err != nil {
		t.Errorf("a remembered rule: %q, %v", kind, err)
	}
	read := acp.ToolCall{Kind: acp.ToolKindRead, Locations: []acp.ToolCallLocation{{Path: home + "/p/.git/config"}}}
	if kind, _, err := decisions.Decide(in("", policy.ModeAll), read); kind != acp.PermissionOptionKindAllowOnce || err != nil {
		t.Errorf("reading: %q", kind)
	}
	tool := acp.ToolCall{Kind: acp.ToolKindOther, Name: acp.Some("files__put"), RawInput: []byte(`{"path": ".git/config"}`)}
	if kind, _, err := decisions.Decide(in(home+"/p", policy.ModeAll), tool); kind != "" || err != nil {
		t.Errorf("another tool: %q, %v", kind, err)
	}
}
