package policy_test

// The search for lines that run what a rule rejects, or what no rule allows, by way of another program. The oracle is
// what shells do: they run the lines, with real programs and with commands that note that they were run.

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/internal/proc"
	"github.com/acpgo/sdk/internal/test/must"
)

// pieces are what lines are made of. Only c must not be run.
var pieces = []string{
	"a ", "b ", "c", "c ", "x ", "c x ", "'c' ", `"c" `, `\c `, "c\\\n ", "$'c' ", "`c` ", `"$(c)" `, "$(c) ", "{c,x} ", "? ", "[c] ", "$x ", "${x} ", "w ", "b ",
	"; ", " && ", " || ", " | ", "\n", "& ", "|& ", " 2>&1 ", " >w ", " <w ", " </dev/null ", "# ", "! ", "{ ", "; } ", "(", ") ", "<(c) ", ">(c) ", "<<<c ", "<<c\nc\nc\n",
	"nice ", "nice -n 1 ", "env ", "env -i ", "env -S ", "env -u x ", "env A=b ", "nohup ", "timeout 1 ", "timeout -k 1 1 ", "setsid ", "stdbuf -o0 ", "xargs ", "xargs -n 1 ",
	"xargs -I{} ", "echo c | ", "find . -exec ", "find . -maxdepth 0 -execdir ", "{} + ", "{} ", `\; `, "flock w ", "-c ", "ionice -c3 ", "chrt -o 0 ", "taskset 1 ",
	"setpriv ", "script ", "-qc ", "-q /dev/null ", "su ", "runuser ", "-u root ", "sh ", "bash ", "dash ", "awk ", `'BEGIN{system("c")}' `, `'{print|"c"}' `, "sed ", "'1e c' ",
	"s/x/c/e ", "e ", "tar ", "cf w b ", "--checkpoint=1 ", "--checkpoint-action=exec=c ", "--to-command=c ", "-I c ", "cIf c w b ", "git ", "alias.x=!c ", "core.pager=c ",
	"--exec-path=. ", "time ", "command ", "builtin ", "exec ", "eval ", ". ", "trap ", "'c' EXIT ", "printf ", "-v ", "-v'z[$(c)]' ", "'z[$(c)]' ", "'z[`c`]' ", "test ",
	"[ ", "] ", "-eq 0 ", "read ", "unset ", "export ", `\export `, "'export' ", "declare ", "typeset ", "'typeset' ", "local ", "PATH=w ", "alias ", "a=c ", "hash ", "-p c a ",
	"cd ", "set ", "-- ", "-x ", "-A z ", "let ", "'let' ", "wait ", "-p ", "getopts ", "mapfile ", "readarray ", "-C c -c 1 z ", "compgen ", "-W ", "-C c ", "'$(c)' ", "complete ", "jobs ",
	"coproc ", "unshare ", "nsenter ", "chroot / ", "sort ", "--compress-program=c ", "-S1 ", "split ", "--filter=c ", "for i in c; do $i; done ", "if ", "then ", "fi ", "c() { :; } ", "[[ ",
	"]] ", "(( ", ")) ", "$((z[$(c)])) ", "=c ", "~ ", "x=c ", "PS4='$(c)' ", "emulate sh ", "noglob ", "- ", "fc ", "print ", "shift ", "exit ", "return ", "ulimit ", "echo ", ": ",
	"perl ", "-e 'system(c)' ", "python3 ", "go ", "test -exec c ", "expr ", "busybox ", "ls ", "cat ", "tee >(c) ", "true ", "enable ", "bind ", "ENV=w ", "vared ", "zle ", "functions ",
	"setarch ", "linux64 ", "prlimit ", "choom -n 0 -- ", "uclampset ", "setterm ", "logger ", "nice -n 2 ", "start-stop-daemon ", "-S -x ", "--exec ", "run-parts . ", "ldd ", "sg root ", "newgrp ",
	"man ", "-P c ", "ld.so ", "wait ", "ssh ", "-oProxyCommand=c x ", "rsync ", "vim ", "+!c ", "make ", "--eval=z:;c ", "m4 ", "dc ", "zsh ", "ksh93 ", "mksh ",
}

// tools are real programs that lines may use.
var tools = strings.Fields(`nice env nohup timeout setsid stdbuf xargs find flock ionice chrt taskset setpriv script su runuser sh bash dash awk sed tar
	git unshare nsenter chroot sort split perl python3 expr ls cat tee true gzip test printf time setarch linux64 prlimit choom uclampset sg newgrp start-stop-daemon
	run-parts ssh make m4 dc zsh ksh93 mksh busybox echo`)

// runners run lines in each of some shells, with real programs beside the commands a, b and c.
type runners struct {
	*shell
	shells [][]string
}

func newRunners(t testing.TB) *runners {
	t.Helper()
	r := &runners{shell: newShell(t, t.TempDir())}
	for _, name := range tools {
		if path, err := exec.LookPath(name); err == nil {
			must.Do(t, os.Symlink(path, filepath.Join(r.root, "bin", name)))
		}
	}
	for _, name := range []string{"bash", "dash", "zsh", "ksh93", "mksh", "busybox"} {
		if path, err := exec.LookPath(name); err == nil {
			argv := []string{path, "-c"}
			if name == "busybox" {
				argv = []string{path, "sh", "-c"}
			}
			r.shells = append(r.shells, argv)
		}
	}
	// What lines leave behind ends with them where the user may have that.
	apart := []string{"unshare", "--pid", "--net", "--fork", "--kill-child=KILL"}
	if exec.CommandContext(t.Context(), apart[0], append(apart[1:], "true")...).Run() == nil {
		for i := range r.shells {
			r.shells[i] = slices.Concat(apart, r.shells[i])
		}
	}
	return r
}

// ran says by which shell c was run, and what it says.
func (r *runners) ran(t testing.TB, line string) (by []string) {
	t.Helper()
	for _, argv := range r.shells {
		for _, name := range []string{"log", "run"} {
			must.Do(t, os.RemoveAll(filepath.Join(r.root, name)))
		}
		dir := filepath.Join(r.root, "run")
		must.Do(t, os.Mkdir(dir, 0o755))
		for name, text := range map[string]string{"b": "c\n", "w": "c\n"} {
			must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
		output := &bytes.Buffer{}
		cmd := exec.Command(argv[0], append(argv[1:len(argv):len(argv)], "eval \"$1\"\nwait", "sh", line)...)
		cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append([]string{"STATUS=0"}, r.env...), 100*time.Millisecond
		cmd.Stdout, cmd.Stderr = output, output
		group := must.Get(proc.Start(cmd))(t) // some lines end their own
		killed := make(chan bool)
		late := time.AfterFunc(time.Second, func() { group.Kill(); close(killed) })
		_ = cmd.Wait() // most lines fail
		if !late.Stop() {
			<-killed
		}
		group.Reaped()
		group.Kill() // what it has left behind
		group.Free()
		log, err := os.ReadFile(r.log)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if bytes.Contains(log, []byte("Nc\x00")) {
			by = append(by, fmt.Sprintf("%q: %s", argv, output.String()))
		}
	}
	return by
}

// runPolicies are policies that allow much, and never c.
func runPolicies(t testing.TB) map[string]*policy.Policy {
	t.Helper()
	policies := map[string]*policy.Policy{}
	for name, rule := range map[string]string{
		"what only reads": `{"effect":"allow","readOnly":true,"path":["**"]}`,
		"a, b and what is built in": `{"effect":"allow","unsafe":true,"path":["**"],"readOnly":true,"command":["a **","b **","printf *","printf * *","test *","test * -eq 0",
			"[ * ]","[ * -eq 0 ]","read *","unset *","export *","declare *","typeset *","alias *","hash *","set *","let *","wait *","getopts * *","mapfile *","readarray *",
			"compgen *","complete *","fc *","print *","shift *","exit *","return *","ulimit *",": *","true *","enable *","bind *","vared *","zle *","functions *","local *",
			"expr * * *","git *","git log *","tar cf * *","sed -n 1p *","sort *","split *","man *","ssh *","go *","make *","python3 *","perl *","tee *"]}`,
	} {
		policies[name] = newPolicy(t, strings.ReplaceAll(rule, "\n\t\t\t", ""))
	}
	return policies
}

// checkRuns makes a line of bytes, and checks that it does not run c if a policy allows it. It returns how many do.
func checkRuns(t testing.TB, r *runners, policies map[string]*policy.Policy, data []byte) (allowed int) {
	t.Helper()
	var b strings.Builder
	for _, choice := range data[:min(len(data), 10)] {
		b.WriteString(pieces[int(choice)%len(pieces)])
	}
	line := strings.TrimSuffix(b.String(), " ")
	req := policy.Request{Cwd: r.root, ToolCall: acp.ToolCall{Kind: acp.ToolKindExecute, RawInput: acp.Raw(map[string]string{"command": line})}}
	var by []string
	for name, p := range policies {
		d := must.Get(p.Explain(req))(t)
		if d.Effect != policy.Allow {
			continue
		}
		if allowed++; allowed == 1 {
			by = r.ran(t, line)
		}
		if len(by) > 0 {
			t.Errorf("%s: the line %q has run c, by %q: %s", name, line, by, d)
		}
	}
	return allowed
}

// Nothing that is allowed runs what is not, also not by way of other programs.
func TestRuns(t *testing.T) {
	r, policies := newRunners(t), runPolicies(t)
	random := rand.New(rand.NewPCG(18, 7))
	allowed, most := 0, requests()/50
	for n := 0; allowed < most && n < 100*most; n++ {
		data := make([]byte, 1+random.IntN(8))
		for i := range data {
			data[i] = byte(random.UintN(256))
		}
		allowed += checkRuns(t, r, policies, data)
	}
	t.Logf("%d allowed, shells %v", allowed, r.shells)
	if most >= 20 && allowed == 0 {
		t.Error("nothing was allowed")
	}
}

func FuzzRuns(f *testing.F) {
	r, policies := newRunners(f), runPolicies(f)
	for i := range pieces[:min(len(pieces), 256)] {
		f.Add([]byte{byte(i), 3}) // and then c
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkRuns(t, r, policies, data) })
}

// What is known to read only changes no file, in a repository of Git and beside it, and runs nothing.
func TestReadOnlyCommands(t *testing.T) {
	s := newShell(t, t.TempDir())
	repo := filepath.Join(s.root, "repo")
	// Programs keep caches in the home.
	env := append(os.Environ(), "HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "PATH="+filepath.Dir(s.log)+"/bin:"+os.Getenv("PATH"))
	run := func(line string) error {
		cmd := exec.CommandContext(t.Context(), s.bash, "-c", line)
		cmd.Dir, cmd.Env = repo, env
		return cmd.Run()
	}
	must.Do(t, os.Mkdir(repo, 0o755))
	for _, name := range []string{"main.go", "names.txt", "b", "w"} {
		must.Do(t, os.WriteFile(filepath.Join(repo, name), []byte("c\n1w x\nmain\n"), 0o755))
	}
	if err := run("git init -q && git add . && git -c user.name=a -c user.email=a commit -qm a && git tag v1 && echo x >>main.go && git stash -q"); err != nil {
		t.Skip("there is no git: ", err)
	}
	p := must.Get(policy.New([]policy.Rule{{Effect: policy.Allow, ReadOnly: true, Paths: []string{"**"}}}, &policy.Options{POSIXShell: true}))(t)
	before := files(t, s.root)
	check := func(line string) bool {
		d := must.Get(p.Explain(policy.Request{Cwd: repo, ToolCall: acp.ToolCall{Kind: acp.ToolKindExecute, RawInput: acp.Raw(map[string]string{"command": line})}}))(t)
		if d.Effect != policy.Allow {
			return false
		}
		_ = run(line) // many fail
		after := files(t, s.root)
		for name, was := range before {
			if after[name] != was {
				t.Errorf("%q has changed %s: %s, was %s", line, name, after[name], was)
			}
		}
		for name := range after {
			if before[name] == "" {
				t.Errorf("%q has made %s", line, name)
			}
		}
		before = after
		return true
	}
	random := rand.New(rand.NewPCG(25, 2))
	arguments := strings.Fields(`new new main.go names.txt b . HEAD v1 c -exec c {} ; + -delete -fprint -fls -ok --output=new --output -o -onew --ext-diff --textconv
		-O -Oc --open-files-in-pager=c -w --edit -f -fc -i -n -p -l -m -M -c -d -D -e -E -r -R -s -S -t -u -v -x -z -C -H -L -1 -la --all --list --stat --pretty=%h
		1p 1wnew 1e --expression=1e --compress-program=c --files0-from=b --follow=b +%F -- - --cached --set-upstream-to=v1 --pre=c --add --format=%H --name-only -name -printf`)
	commands := policy.ReadOnlyCommands()
	allowed, most := 0, requests()/10
	for n := 0; allowed < most && n < 50*most; n++ {
		var line strings.Builder
		line.WriteString(commands[random.IntN(len(commands))])
		for range random.IntN(4) {
			line.WriteString(" '" + arguments[random.IntN(len(arguments))] + "'")
		}
		if check(line.String()) {
			allowed++
		}
	}
	t.Logf("%d allowed", allowed)
	if allowed < most {
		t.Errorf("only %d lines were allowed", allowed)
	}
}

// files describes the files in a folder but for the index of Git, which its commands may refresh.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() == ".git" || d.Name() == "index" {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		size := info.Size()
		if d.IsDir() {
			size = 0
		}
		all[path] = fmt.Sprint(info.Mode(), size, info.ModTime())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
