package launch_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// self is a command that runs this test as an agent.
func self(t *testing.T, kind string) *launch.Command {
	t.Helper()
	program := must.Get(os.Executable())(t)
	return &launch.Command{Program: program, Env: map[string]string{"ACP_TEST_AGENT": kind}}
}

// write writes a file.
func write(t *testing.T, name, text string, mode fs.FileMode) string {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(name), 0o700))
	must.Do(t, buildtest.WriteFile(name, text, mode))
	return name
}

func requireShell(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("it needs a shell")
	}
}

// TestDoctor examines agents that have one thing wrong each.
func TestDoctor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		agent string
		kind  launch.ProblemKind // "": none
		time  time.Duration
		want  string // in the words
	}{
		{"good", "", 0, "ok"},
		{"locked", launch.LoginRequired, 0, `authenticate with "browser"`},
		{"broken", launch.SessionFailed, 0, "the disk is full"},
		{"crashes", launch.Exited, 0, "panic: nil map"},
		{"banner", launch.Banner, 0, "Welcome to my agent!"},
		{"dies", launch.Exited, 0, "exit status 3; it says: no configuration in /home/x"},
		{"dies without a word", launch.Exited, 0, "exit status 7, and has written nothing"},
		{"silent", launch.Silent, tier.Pick(2*time.Second, 2*time.Second, 5*time.Second, 5*time.Second), "waiting for the browser"},
		{"old", launch.WrongVersion, 0, "version 9 of the protocol"},
		{"no agent", launch.NotAnAgent, 0, "is it an agent?"},
		{"refuses", launch.Refused, 0, "no licence"},
		{"offline", launch.DownloadFailed, 0, "ENOTFOUND"},
	} {
		t.Run(c.agent, func(t *testing.T) {
			if slices.Contains([]string{"silent", "old", "no agent", "refuses"}, c.agent) {
				tier.Need(t, tier.Normal) // the end of these takes seconds
			}
			t.Parallel()
			d := launch.Doctor(t.Context(), self(t, c.agent), &launch.DoctorOptions{Time: c.time})
			blocks := c.kind != "" && c.kind != launch.Banner
			if d.OK() == blocks {
				t.Errorf("OK: %t\n%s", d.OK(), d)
			}
			if c.kind == "" && len(d.Problems) > 0 || c.kind != "" && (len(d.Problems) != 1 || d.Problems[0].Kind != c.kind) {
				t.Errorf("problems: %v", d.Problems)
			}
			if !strings.Contains(d.String(), c.want) {
				t.Errorf("no %q in\n%s", c.want, d)
			}
			if c.agent == "offline" && d.Problems[0].Err == nil { // it is not just ended
				t.Error("the error of the process is lost")
			}
			if !blocks && (!d.Session || d.Agent.AgentInfo.Value().Name != "test-agent" || !strings.Contains(d.String(), "session/close")) {
				t.Errorf("what it advertises is not told:\n%s", d)
			}
		})
	}
}

// TestDoctorTerminalLogin: a login in a terminal is shown as the command to run, if the client can run it. Nothing is left
// of the session's folder.
func TestDoctorTerminalLogin(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, can := range []bool{true, false} {
		d := launch.Doctor(t.Context(), self(t, "locked"), &launch.DoctorOptions{Client: acp.ClientOptions{TerminalAuth: can}})
		if got := strings.Contains(d.String(), "Shell: run A=b ACP_TEST_AGENT=locked") && strings.Contains(d.String(), "--log in"); got != can {
			t.Errorf("shown: %t, and the client can: %t\n%s", got, can, d)
		}
	}
	if left := must.Get(os.ReadDir(os.Getenv("TMPDIR")))(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestDiagnosisOffers: everything that an agent may advertise has a name.
func TestDiagnosisOffers(t *testing.T) {
	agent := new(acp.InitializeResponse)
	must.Do(t, json.Unmarshal([]byte(`{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"auth":{"logout":{}},
		"promptCapabilities":{"image":true,"audio":true,"embeddedContext":true},"mcpCapabilities":{"http":true,"sse":true},
		"sessionCapabilities":{"resume":{},"list":{},"close":{},"delete":{},"additionalDirectories":{}}}}`), agent))
	d := launch.Diagnosis{Command: launch.New("agent"), Agent: agent}
	if want := "offers:  prompts, session/load, session/resume, session/list, session/close, session/delete, additional directories, " +
		"logout, images, audio, embedded context, MCP over HTTP, MCP over SSE\n"; !strings.Contains(d.String(), want) {
		t.Errorf("no %q in\n%s", want, d.String())
	}
}

// TestDoctorInterrupted: the end of the context is reported.
func TestDoctorInterrupted(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d := launch.Doctor(ctx, self(t, "silent"), nil); !d.Has(launch.Interrupted) || d.OK() {
		t.Error(d)
	}
}

// TestDoctorNoSession opens none.
func TestDoctorNoSession(t *testing.T) {
	if d := launch.Doctor(t.Context(), self(t, "locked"), &launch.DoctorOptions{NoSession: true}); !d.OK() || d.Session {
		t.Error(d)
	}
}

// TestDoctorPrograms: what is wrong with the program itself.
func TestDoctorPrograms(t *testing.T) {
	requireShell(t)
	dir := t.TempDir()
	machine := byte(183) // arm64
	if runtime.GOARCH == "arm64" {
		machine = 62
	}
	elf := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 57)...)
	elf[16], elf[18], elf[20], elf[52], elf[54], elf[58] = 2, machine, 1, 64, 56, 64
	write(t, filepath.Join(dir, "pkg", "dist", "agent"), "#!/usr/bin/env node\n", 0o700)
	pipe := filepath.Join(dir, "pipe")
	must.Do(t, exec.Command("mkfifo", "-m", "700", pipe).Run())
	for _, c := range []struct {
		name    string
		command launch.Command
		kind    launch.ProblemKind
		want    string
	}{
		{"folder", launch.Command{Program: "sh", Dir: filepath.Join(dir, "none")}, launch.FolderMissing, "none, in which it is to start"},
		{"name", launch.Command{Program: "no-such-agent", Env: map[string]string{"PATH": "/one:/two"}}, launch.ProgramMissing, "looked for in /one, /two"},
		{"npx", launch.Command{Program: "npx", Env: map[string]string{"PATH": ""}}, launch.ProgramMissing, "It comes with Node.js"},
		{"path", launch.Command{Program: "./none", Dir: dir}, launch.ProgramMissing, "no program ./none"},
		{"mode", launch.Command{Program: write(t, filepath.Join(dir, "plain"), "#!/bin/sh\n", 0o600)}, launch.NotExecutable, "chmod +x"},
		{"mode in PATH", launch.Command{Program: "plain", Env: map[string]string{"PATH": dir}}, launch.NotExecutable, "may not be run"},
		{"text", launch.Command{Program: write(t, filepath.Join(dir, "text"), "hello", 0o700)}, launch.NotExecutable, "not a program that this system can run"},
		{"interpreter", launch.Command{Program: write(t, filepath.Join(dir, "perl"), "#!/no/such/perl -w\n", 0o700)}, launch.InterpreterMissing, "run by /no/such/perl"},
		{"one line", launch.Command{Program: write(t, filepath.Join(dir, "line"), "#!/no/such/perl", 0o700)}, launch.InterpreterMissing, "run by /no/such/perl,"},
		{"env", launch.Command{Program: filepath.Join(dir, "pkg", "dist", "agent"), Env: map[string]string{"PATH": "/usr/none"}}, launch.InterpreterMissing, "run by node, which is not in PATH: looked for in /usr/none"},
		{"pipe, for which nobody waits", launch.Command{Program: pipe}, launch.NotExecutable, "is not a file"},
		{"crlf", launch.Command{Program: write(t, filepath.Join(dir, "crlf"), "#!/bin/sh\r\n", 0o700)}, launch.NotExecutable, "carriage return"},
		{"processor", launch.Command{Program: write(t, filepath.Join(dir, "elf"), string(elf), 0o700)}, launch.WrongSystem, "is not made for"},
		{"windows", launch.Command{Program: write(t, filepath.Join(dir, "exe"), "MZ\x00", 0o700)}, launch.WrongSystem, "is not made for"},
		{"arguments", launch.Command{Program: must.Get(os.Executable())(t), Args: []string{strings.Repeat("x", 4<<20)}}, launch.NotStarted, "could not be started"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := launch.Doctor(t.Context(), &c.command, nil)
			if d.OK() || !d.Has(c.kind) || !strings.Contains(d.String(), c.want) {
				t.Errorf("want %s with %q:\n%s", c.kind, c.want, d)
			}
		})
	}
}

// TestExplain: what package runners and Node.js print, as they really do.
func TestExplain(t *testing.T) {
	for _, c := range []struct {
		kind         launch.ProblemKind
		output, want string
	}{
		{launch.TooNew, "npm error code ETARGET\nnpm error notarget No matching version found for cowsay@1.6.0 with a date before 7/8/1999, 3:13:31 PM.\nnpm error notarget In most cases", "before 7/8/1999, 3:13:31 PM (its setting min-release-age, or before), and cowsay@1.6.0 is newer"},
		{launch.NotPublished, "npm error code ETARGET\nnpm error notarget No matching version found for left-pad@99.0.0.\nnpm error notarget In most", "npm cannot find the version left-pad@99.0.0"},
		{launch.NotPublished, "npm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/@a%2fnone\nnpm error 404\nnpm error 404  The requested resource '@a/none@9.9.9' could not be found", "cannot find the package"},
		{launch.DownloadFailed, "npm error code ECONNREFUSED\nnpm error syscall connect\n", "ECONNREFUSED"},
		{launch.DownloadFailed, "npm ERR! code ENOTFOUND\n", "ENOTFOUND"},
		{launch.DownloadFailed, "npm error code ENOTCACHED\nnpm error request to https://registry.npmjs.org/is-even failed: cache mode is 'only-if-cached'", "offline"},
		{launch.DownloadFailed, "npm error code SELF_SIGNED_CERT_IN_CHAIN", "certificate"},
		{launch.DownloadFailed, "npm error code ENOSPC", "cannot write"},
		{launch.NoCommand, "npm error could not determine executable to run", "no command"},
		{launch.WrongNode, "node: bad option: --experimental-x\n", "--experimental-x"},
		{launch.WrongNode, "Error [ERR_UNKNOWN_BUILTIN_MODULE]: No such built-in module: node:sqlite\n    at Module._load", "no module node:sqlite"},
		{launch.WrongNode, "npm error code EBADENGINE\nnpm error engine Unsupported engine\nnpm error engine Not compatible with your version of node/npm: x@1.0.0\nnpm error notsup Required: {\"node\":\">=22\"}\n", "needs Node.js >=22"},
		{launch.WrongNode, "This program requires Node.js 22 or higher. You have v20.1.0\n", "requires Node.js 22"},
		{launch.WrongNode, "file:///t.mjs:1\nawait 1; using x = null\n               ^\n\nSyntaxError: Unexpected identifier 'x'\n    at compileSourceTextModule (node:internal/modules/esm/utils:346:16)\n\nNode.js v20.20.2\n", "Node.js v20.20.2 does not understand the program: SyntaxError: Unexpected identifier 'x'"},
		{launch.WrongNode, "npm warn EBADENGINE Unsupported engine {\nnpm warn EBADENGINE   package: '@qwen-code/qwen-code@0.24.4',\nnpm warn EBADENGINE   required: { node: '>=22.0.0' },\nnpm warn EBADENGINE   current: { node: 'v20.20.2', npm: '11.19.1' }\nnpm warn EBADENGINE }\n", "needs Node.js >=22.0.0, and this is v20.20.2"},
		{launch.Incomplete, "Error: Cannot find module './dist/x.js'\nRequire stack:\n\nNode.js v20.20.2", "./dist/x.js"},
		{launch.InterpreterMissing, "/lib/libc.so.6: version `GLIBC_2.38' not found (required by ./agent)", "GLIBC_2.38"},
		{launch.InterpreterMissing, "./agent: error while loading shared libraries: libssl.so.3: cannot open shared object file", "libssl.so.3"},
		{launch.InterpreterMissing, "/usr/bin/env: ‘node’: No such file or directory\n", "run by node"},
		{launch.LoginRequired, "starting\nError: You are not logged in. Run x login.\n", "You are not logged in"},
		{launch.LoginRequired, "missing API key", "missing API key"},
		{"", "npm notice new version\nlistening", ""},
		{"", "", ""},
	} {
		p, ok := launch.Explain(c.output)
		if ok != (c.kind != "") || p.Kind != c.kind || !strings.Contains(p.Text, c.want) {
			t.Errorf("%q: got %t %v, want %s with %q", c.output, ok, p, c.kind, c.want)
		}
	}
}

// TestProblemIsClean: nothing that a program has written reaches the terminal as it is.
func TestProblemIsClean(t *testing.T) {
	text := launch.Problem{Kind: launch.Exited, Text: "it says: \x1b[2J\n::error::x", Advice: "do\x07\r\u202e"}.String()
	if strings.ContainsAny(text, "\x1b\x07\r\u202e") || strings.Count(text, "\n") != 1 {
		t.Errorf("%q", text)
	}
}

// TestDoctorFolder: an agent that can be used is fine, whatever becomes of the folder that was made for it.
func TestDoctorFolder(t *testing.T) {
	requireShell(t)
	dir := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "none"))
	d := launch.Doctor(t.Context(), self(t, "fine"), nil)
	if d.Agent == nil || !d.Has(launch.SessionFailed) || d.Has(launch.NotAnAgent) {
		t.Error(d)
	}
}

// TestCommand: the environment, the lookup and the words of a command.
func TestCommand(t *testing.T) {
	requireShell(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tool"), "#!/bin/sh\necho \"$0 $* $A $B $C\"; pwd\n", 0o700)
	c := launch.Command{
		Program: "tool", Args: []string{"a b"}, Dir: dir,
		Environ: []string{"A=1", "B=2", "PATH=/none"}, Env: map[string]string{"B": "3", "PATH": dir, "C": "it's"},
	}
	out, err := c.Cmd().Output()
	if want := filepath.Join(dir, "tool") + " a b 1 3 it's\n" + dir + "\n"; err != nil || string(out) != want {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
	if got, want := c.String(), `B=3 C='it'\''s' PATH=`+dir+` tool 'a b'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	strange := launch.Command{Program: "evil", Env: map[string]string{"good --acp #": "x"}}
	if got, want := strange.String(), `'good --acp #=x' evil`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	pasted := launch.New("acp", "it's\n\x1b[201~\u009bé\\", "é")
	if got, want := pasted.String(), `acp $'it\047s\n\033[201~\302\233\303\251\\' 'é'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if bash, err := exec.LookPath("bash"); err == nil {
		if out, err := exec.Command(bash, "-c", "printf %s "+strings.TrimPrefix(pasted.String(), "acp ")).Output(); err != nil || string(out) != strings.Join(pasted.Args, "") {
			t.Errorf("a shell reads %q, %v", out, err)
		}
	}
	if err := (&launch.Command{Program: "true", Env: map[string]string{"A\nB": "x"}}).Cmd().Run(); err == nil || !strings.Contains(err.Error(), `"A\nB" is not a valid variable name`) {
		t.Errorf("got %v", err)
	}
	c.Program = "./tool"
	if got, err := c.Find(); err != nil || got != filepath.Join(dir, "tool") {
		t.Errorf("got %s, %v", got, err)
	}
	t.Chdir(dir)
	for _, in := range []string{"", "."} {
		here := launch.Command{Program: "./tool", Dir: in}
		if got, err := here.Find(); err != nil || got != filepath.Join(dir, "tool") {
			t.Errorf("in %q: got %s, %v", in, got, err)
		}
	}
	c.Program = "none"
	if _, err := c.Cmd().Output(); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if err := (&launch.Command{}).Cmd().Run(); err == nil {
		t.Error("nothing was run")
	}
}
