package policy_test

// This file owns the search for lines that run what a rule rejects, or what no rule allows, by way of another program. The
// oracle is what shells do: they run the lines, with real programs and with commands that note that they were run.

import (
	"bytes"
	"fmt"
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
			if err := os.Symlink(path, filepath.Join(r.root, "bin", name)); err != nil {
				t.Fatal(err)
			}
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
			if err := os.RemoveAll(filepath.Join(r.root, name)); err != nil {
				t.Fatal(err)
			}
		}
		dir := filepath.Join(r.root, "run")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"b": "c\n", "w": "c\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		output := &bytes.Buffer{}
		cmd := exec.Command(argv[0], append(argv[1:len(argv):len(argv)], "eval \"$1\"\nwait", "sh", line)...)
		cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append([]string{"STATUS=0"}, r.env...), 100*time.Millisecond
		cmd.Stdout, cmd.Stderr = output, output
		group, err := proc.Start(cmd) // some end their own
		if err != nil {
			t.Fatal(err)
		}
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

// runPolicies are two policies that allow much, and never c.
func runPolicies(t testing.TB) map[string]*policy.Policy {
	t.Helper()
	policies := map[string]*policy.Policy{}
	for name, rules := range map[string]string{
		"everything but c": `{"effect":"allow","command":["**"],"path":["**"]}` + "\n" + `{"effect":"reject","command":["c **"]}`,
		"a, b and what is built in": `{"effect":"allow","path":["**"],"command":["a **","b **","printf **","test **","read **","unset **","export **","declare **","typeset **",
			"alias **","hash **","cd **","set **","let **","wait **","getopts **","mapfile **","readarray **","compgen **","complete **","fc **","print **","shift **","exit **",
			"return **","ulimit **","echo **",": **","ls **","cat **","true **","enable **","bind **","vared **","zle **","functions **","local **","expr **",
			"git **","tar **","sed **","awk **","sort **","split **","script **","su **","runuser **","unshare **","nsenter **","chroot **","setarch **","man **","ssh **","go **","sg **"]}`,
	} {
		policies[name] = newPolicy(t, strings.ReplaceAll(rules, "\n\t\t\t", ""))
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
		d, err := p.Explain(req)
		if err != nil {
			t.Fatal(err)
		}
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
	allowed, most := 0, *requests/50
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
