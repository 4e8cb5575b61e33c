//go:build unix

package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// newTerminals runs commands in a directory of its own.
func newTerminals(t *testing.T, options *TerminalsOptions) (terminals *Terminals, dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir()) // as commands see it
	if err != nil {
		t.Fatal(err)
	}
	terminals = NewTerminals(openRoots(t, dir), Trusted(), options)
	t.Cleanup(func() {
		if err := terminals.Close(); err != nil {
			t.Error(err)
		}
	})
	return terminals, dir
}

func create(t *testing.T, terminals *Terminals, name string, args ...string) (id acp.TerminalID) {
	t.Helper()
	id = must.Get(terminals.create(session, command{name: name, args: args}, -1))(t)
	return id
}

func sh(t *testing.T, terminals *Terminals, script string) (id acp.TerminalID) {
	t.Helper()
	return create(t, terminals, "sh", "-c", script)
}

// finish waits for a command and returns all that it wrote.
func finish(t *testing.T, terminals *Terminals, id acp.TerminalID) (output string, exit exitStatus) {
	t.Helper()
	status := must.Get(terminals.wait(t.Context(), session, id))(t)
	output, _, again, err := terminals.tail(session, id)
	if err != nil || again == nil || *again != *status {
		t.Errorf("after the exit with %v: got %v, %v", *status, again, err)
	}
	return output, *status
}

// An overseer sees the output of terminals as it comes, for tests that must know how far a command is.
type overseer struct {
	mu   sync.Mutex
	more *sync.Cond
	text map[acp.TerminalID]string
}

func oversee(options *TerminalsOptions) *overseer {
	o := &overseer{text: make(map[acp.TerminalID]string)}
	o.more = sync.NewCond(&o.mu)
	options.OnOutput = func(_ Session, terminal acp.TerminalID, output []byte) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.text[terminal] += string(output)
		o.more.Broadcast()
	}
	return o
}

// await returns once the output of a terminal contains part; the test's own time limit ends a wait in vain.
func (o *overseer) await(id acp.TerminalID, part string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !strings.Contains(o.text[id], part) {
		o.more.Wait()
	}
}

// A lifeline is a FIFO that commands hold open for writing; its end says that none of them lives.
type lifeline struct {
	in, out *os.File
}

func newLifeline(t *testing.T, dir string) *lifeline {
	t.Helper()
	path := fifo(t, filepath.Join(dir, "lifeline"))
	out := must.Get(os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0))(t)
	t.Cleanup(func() { out.Close() })
	in := must.Get(os.OpenFile(path, os.O_WRONLY, 0))(t) // or it would have ended before the first command
	t.Cleanup(func() { in.Close() })
	return &lifeline{in, out}
}

// held returns once n lines came, one from each command that has it.
func (l *lifeline) held(t *testing.T, n int) {
	t.Helper()
	must.Get(io.ReadFull(l.out, make([]byte, n)))(t)
}

// cut returns once nobody holds it any more.
func (l *lifeline) cut(t *testing.T) {
	t.Helper()
	l.in.Close()
	must.Get(io.Copy(io.Discard, l.out))(t)
}

func TestCommand(t *testing.T) {
	t.Setenv("LOCAL_TEST", "inherited")
	terminals, dir := newTerminals(t, nil)
	must.Do(t, os.Mkdir(filepath.Join(dir, "sub"), 0o777))
	script := filepath.Join(dir, "sub", "script")
	must.Do(t, os.WriteFile(script, []byte("#!/bin/sh\necho \"script $1\"\n"), 0o777))
	env := func(kv ...string) (env []acp.EnvVariable) {
		for pair := range slices.Chunk(kv, 2) {
			env = append(env, acp.EnvVariable{Name: pair[0], Value: pair[1]})
		}
		return env
	}
	path := os.Getenv("PATH")
	tests := map[string]struct {
		command command
		want    string
	}{
		"arguments are verbatim": {command{name: "printf", args: []string{"%s|", "a b", "$HOME", "*", "", "'", "ü\n"}}, "a b|$HOME|*||'|ü\n|"},
		"no input":               {command{name: "cat"}, ""},
		"part of a character":    {command{name: "printf", args: []string{`a\342`}}, "a\uFFFD"},
		"absolute":               {command{name: "/bin/sh", args: []string{"-c", "echo $0"}}, "/bin/sh\n"},
		"both streams in order":  {command{name: "sh", args: []string{"-c", "printf a; printf b >&2; printf c; printf d >&2"}}, "abcd"},
		"starts in the root":     {command{name: "pwd"}, dir + "\n"},
		"cwd":                    {command{name: "pwd", cwd: acp.Some(filepath.Join(dir, "sub"))}, dir + "/sub\n"},
		"cwd that is unclean":    {command{name: "pwd", cwd: acp.Some(dir + "/sub/../sub/")}, dir + "/sub\n"},
		"PWD":                    {command{name: "sh", args: []string{"-c", "echo $PWD"}, cwd: acp.Some(filepath.Join(dir, "sub"))}, dir + "/sub\n"},
		"relative to the cwd":    {command{name: "./script", args: []string{"1"}, cwd: acp.Some(filepath.Join(dir, "sub"))}, "script 1\n"},
		"relative to the root":   {command{name: "sub/script", args: []string{"2"}}, "script 2\n"},
		"environment of ours":    {command{name: "sh", args: []string{"-c", "echo $LOCAL_TEST"}}, "inherited\n"},
		"environment of theirs":  {command{name: "sh", args: []string{"-c", "echo $LOCAL_TEST $B"}, env: env("LOCAL_TEST", "1", "LOCAL_TEST", "a=b", "B", "")}, "a=b\n"},
		"PATH of theirs":         {command{name: "script", args: []string{"3"}, env: env("PATH", filepath.Join(dir, "sub")+":"+path)}, "script 3\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			id := must.Get(terminals.create(session, tt.command, -1))(t)
			got, exit := finish(t, terminals, id)
			if got != tt.want || exit != (exitStatus{}) {
				t.Errorf("got %q, %v, want %q, 0", got, exit, tt.want)
			}
			must.Do(t, terminals.release(t.Context(), session, id))
		})
	}
}

func TestCommandRefused(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "root")
	put(t, filepath.Join(dir, "file"), "not executable")
	put(t, filepath.Join(top, "outside", "x"), "x")
	link(t, "../outside", filepath.Join(dir, "out"))
	must.Do(t, os.WriteFile(filepath.Join(dir, "broken"), []byte("#!/no/such/interpreter\n"), 0o777))
	must.Do(t, os.WriteFile(filepath.Join(dir, "empty"), nil, 0o777))
	terminals := NewTerminals(openRoots(t, dir), Trusted(), &TerminalsOptions{MaxTerminals: 1})
	defer terminals.Close()
	tests := map[string]struct {
		command command
		want    error
		param   string
	}{
		"unknown":            {command{name: "no-such-program"}, nil, "command"},
		"empty":              {command{}, nil, "command"},
		"a command line":     {command{name: "echo hello | tee out"}, nil, "command"},
		"missing":            {command{name: "./missing"}, fs.ErrNotExist, "command"},
		"not executable":     {command{name: "./file"}, fs.ErrPermission, "command"},
		"directory":          {command{name: dir}, nil, "command"},
		"current directory":  {command{name: "broken", env: []acp.EnvVariable{{Name: "PATH", Value: "." + ":" + ":sub"}}}, nil, "command"},
		"no interpreter":     {command{name: "./broken"}, fs.ErrNotExist, "command"},
		"no program":         {command{name: "./empty"}, syscall.ENOEXEC, "command"},
		"too much":           {command{name: "echo", args: []string{strings.Repeat("x", 8<<20)}}, syscall.E2BIG, "command"},
		"NUL in the command": {command{name: "a\x00"}, errNUL, "command"},
		"NUL in an argument": {command{name: "echo", args: []string{"a\x00"}}, errNUL, "command"},
		"NUL in a value":     {command{name: "echo", env: []acp.EnvVariable{{Name: "A", Value: "\x00"}}}, errNUL, "command"},
		"NUL in a name":      {command{name: "echo", env: []acp.EnvVariable{{Name: "A\x00", Value: ""}}}, errName, "env"},
		"no name":            {command{name: "echo", env: []acp.EnvVariable{{Name: "", Value: "x"}}}, errName, "env"},
		"newline in a name":  {command{name: "echo", env: []acp.EnvVariable{{Name: "A\nB", Value: "x"}}}, errName, "env"},
		"name with =":        {command{name: "echo", env: []acp.EnvVariable{{Name: "A=B", Value: "x"}}}, errName, "env"},
		"relative cwd":       {command{name: "echo", cwd: acp.Some("sub")}, errPath, "cwd"},
		"cwd outside":        {command{name: "echo", cwd: acp.Some(filepath.Join(top, "outside"))}, ErrOutside, "cwd"},
		"cwd by a link":      {command{name: "echo", cwd: acp.Some(filepath.Join(dir, "out"))}, ErrOutside, "cwd"},
		"missing cwd":        {command{name: "echo", cwd: acp.Some(filepath.Join(dir, "missing"))}, fs.ErrNotExist, "cwd"},
		"cwd is a file":      {command{name: "echo", cwd: acp.Some(filepath.Join(dir, "file"))}, syscall.ENOTDIR, "cwd"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			id, err := terminals.create(session, tt.command, -1)
			if err == nil {
				t.Fatalf("created %s", id)
			}
			if tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			param, ok := errors.AsType[*paramError](err)
			if ok != (tt.param != "") || ok && param.name != tt.param {
				t.Errorf("got %v, want one of %q", err, tt.param)
			}
		})
	}
	create(t, terminals, "true") // nothing of the above counts
}

// Whole command lines run in the shell, if the options name one and there is no such executable.
func TestShell(t *testing.T) {
	tier.Need(t, tier.Normal)
	terminals, dir := newTerminals(t, &TerminalsOptions{Shell: DefaultShell()})
	put(t, filepath.Join(dir, "file"), "text")
	must.Do(t, os.WriteFile(filepath.Join(dir, "with space"), []byte("#!/bin/sh\necho itself\n"), 0o777))
	for line, want := range map[string]string{
		"echo a  b | tr a-z A-Z": "A B\n",
		"X=1; echo $X":           "1\n",
		"./with space":           "itself\n",
		"pwd":                    dir + "\n",
		"cat ./file":             "text",
		"cat file; echo " + strings.Repeat("x", 300) + "/": "text" + strings.Repeat("x", 300) + "/\n",
	} {
		if got, _ := finish(t, terminals, create(t, terminals, line)); got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
	if _, exit := finish(t, terminals, create(t, terminals, "no-such-program 1")); exit.code != 127 {
		t.Errorf("unknown: got %v, want the shell's 127", exit)
	}
	for what, c := range map[string]command{
		"unknown, with args": {name: "no-such-program", args: []string{"1"}},
		"empty":              {},
		"not executable":     {name: "./file"},
		"a directory":        {name: dir},
	} {
		if id, err := terminals.create(session, c, -1); err == nil {
			t.Errorf("%s: got %s", what, id)
		}
	}
}

func TestExitStatus(t *testing.T) {
	// What this process ignores, such as SIGHUP under nohup, its commands would ignore as well.
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGHUP, syscall.SIGINT)
	defer signal.Stop(received)
	terminals, _ := newTerminals(t, nil)
	for script, want := range map[string]exitStatus{
		"exit 0":           {code: 0},
		"exit 3":           {code: 3},
		"exit 255":         {code: 255},
		"kill -KILL $$":    {code: -1, signal: "SIGKILL"},
		"kill -TERM $$":    {code: -1, signal: "SIGTERM"},
		"kill -INT $$":     {code: -1, signal: "SIGINT"},
		"kill -HUP $$":     {code: -1, signal: "SIGHUP"},
		"kill -USR1 $$":    {code: -1, signal: "SIGUSR1"},
		"sh -c 'exit 4'":   {code: 4},
		"exec sh -c false": {code: 1},
	} {
		if _, got := finish(t, terminals, sh(t, terminals, script)); got != want {
			t.Errorf("%s: got %v, want %v", script, got, want)
		}
	}
}

// A running terminal has output and no status; both come as they come.
func TestRunning(t *testing.T) {
	var options TerminalsOptions
	seen := oversee(&options)
	terminals, dir := newTerminals(t, &options)
	gate := fifo(t, filepath.Join(dir, "gate"))
	id := sh(t, terminals, `printf 'first \342\202'; read line <gate; printf '\254 %s' "$line"; exit 7`)
	seen.await(id, "\x82")
	// The bytes are shown after they were kept.
	if text, cut, exit, err := terminals.tail(session, id); text != "first " || cut || exit != nil || err != nil {
		t.Errorf("got %q, %t, %v, %v", text, cut, exit, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("no time")
	cancel(reason)
	if exit, err := terminals.wait(ctx, session, id); !errors.Is(err, reason) {
		t.Errorf("wait: got %v, %v, want %v", exit, err, reason)
	}
	put(t, gate, "go on\n")
	if got, exit := finish(t, terminals, id); got != "first € go on" || exit.code != 7 {
		t.Errorf("got %q, %v", got, exit)
	}
}

func TestOutputLimit(t *testing.T) {
	tier.Need(t, tier.Normal)
	terminals, _ := newTerminals(t, &TerminalsOptions{OutputLimit: 10, MaxOutputLimit: 1000})
	for limit, want := range map[int]int{-1: 10, 999: 999, 1000: 1000, 1001: 1000, 1 << 62: 1000} {
		id := must.Get(terminals.create(session, command{name: "sh", args: []string{"-c", "yes | head -c 300000; printf '\\nend'"}}, limit))(t)
		got, _ := finish(t, terminals, id)
		if len(got) != want || !strings.HasSuffix(got, "y\n\nend") {
			t.Errorf("limit %d: got %d bytes, %q, want %d", limit, len(got), got[max(0, len(got)-20):], want)
		}
	}
}

func TestTRM10_Kill(t *testing.T) {
	tests := map[string]struct {
		grace  time.Duration
		script string
		want   exitStatus
		output string
	}{
		"ends when asked":   {time.Hour, "echo ready; exec sleep 1000", exitStatus{-1, "SIGTERM"}, "ready\n"},
		"cleans up":         {time.Hour, "mkfifo gate; exec 4<>gate; trap 'echo bye; exit 5' TERM; echo ready; read line <&4", exitStatus{5, ""}, "ready\nbye\n"},
		"does not listen":   {time.Millisecond, "trap '' TERM; echo ready; sleep 1000", exitStatus{-1, "SIGKILL"}, "ready\n"},
		"is not asked":      {-1, "trap 'echo bye' TERM; echo ready; sleep 1000", exitStatus{-1, "SIGKILL"}, "ready\n"},
		"children and all":  {time.Hour, "sleep 1000 & sleep 1000 | sleep 1000 & echo ready; wait", exitStatus{-1, "SIGTERM"}, "ready\n"},
		"deaf children too": {time.Millisecond, "(trap '' TERM; echo ready; sleep 1000) & wait", exitStatus{-1, "SIGTERM"}, "ready\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			options := TerminalsOptions{KillGrace: tt.grace}
			seen := oversee(&options)
			terminals, dir := newTerminals(t, &options)
			line := newLifeline(t, dir)
			id := sh(t, terminals, "exec 3>lifeline; echo >&3; "+tt.script)
			line.held(t, 1)
			seen.await(id, "ready")
			for range 2 { // the second time nothing is left to be killed
				must.Do(t, terminals.kill(t.Context(), session, id))
			}
			line.cut(t)
			if got, exit := finish(t, terminals, id); got != tt.output || exit != tt.want {
				t.Errorf("got %q, %v, want %q, %v", got, exit, tt.output, tt.want)
			}
			must.Do(t, terminals.release(t.Context(), session, id))
		})
	}
}

// A kill that is not waited for is no longer gentle either.
func TestKillCancelled(t *testing.T) {
	options := TerminalsOptions{KillGrace: time.Hour}
	seen := oversee(&options)
	terminals, _ := newTerminals(t, &options)
	id := sh(t, terminals, "trap '' TERM; echo ready; sleep 1000")
	seen.await(id, "ready")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := terminals.kill(ctx, session, id); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, exit := finish(t, terminals, id); exit.signal != "SIGKILL" {
		t.Errorf("got %v", exit)
	}
}

func TestRelease(t *testing.T) {
	terminals, dir := newTerminals(t, nil)
	line := newLifeline(t, dir)
	id := sh(t, terminals, `exec 3>lifeline; echo >&3; (sleep 1000 & sleep 1000) & exec sleep 1000`)
	line.held(t, 1)
	other := create(t, terminals, "true")

	waiting := make(chan struct{})
	var waiters sync.WaitGroup
	for range 3 {
		waiters.Go(func() {
			waiting <- struct{}{}
			// Whether it comes before or after the release, it does not wait for ever.
			exit, err := terminals.wait(t.Context(), session, id)
			if _, unknown := errors.AsType[*unknownError](err); !unknown && (err != nil || exit.signal != "SIGTERM") {
				t.Errorf("waiter: got %v, %v", exit, err)
			}
		})
		<-waiting
	}
	must.Do(t, terminals.release(t.Context(), session, id))
	line.cut(t)
	waiters.Wait()

	_, _, _, outputErr := terminals.tail(session, id)
	_, waitErr := terminals.wait(t.Context(), session, id)
	for what, err := range map[string]error{
		"output":  outputErr,
		"wait":    waitErr,
		"kill":    terminals.kill(t.Context(), session, id),
		"release": terminals.release(t.Context(), session, id),
	} {
		if unknown, ok := errors.AsType[*unknownError](err); !ok || unknown.id != string(id) {
			t.Errorf("%s after release: got %v", what, err)
		}
	}
	if _, exit := finish(t, terminals, other); exit.code != 0 {
		t.Errorf("another terminal: got %v", exit)
	}
}

// What a command leaves running continues, and its output counts, until the terminal is released.
func TestLeftRunning(t *testing.T) {
	tier.Need(t, tier.Normal)
	var options TerminalsOptions
	seen := oversee(&options)
	terminals, dir := newTerminals(t, &options)
	line := newLifeline(t, dir)
	gate := fifo(t, filepath.Join(dir, "gate"))
	id := sh(t, terminals, `exec 3>lifeline; echo >&3
		(read x <gate; echo late; exec sleep 1000) &
		sleep 1000 >/dev/null 2>&1 &
		echo early`)
	line.held(t, 1)
	if exit, err := terminals.wait(t.Context(), session, id); err != nil || *exit != (exitStatus{}) {
		t.Errorf("got %v, %v", exit, err)
	}
	seen.await(id, "early")
	put(t, gate, "now\n")
	seen.await(id, "late")
	if text, _, exit, err := terminals.tail(session, id); text != "early\nlate\n" || exit == nil || err != nil {
		t.Errorf("got %q, %v, %v", text, exit, err)
	}
	must.Do(t, terminals.release(t.Context(), session, id))
	line.cut(t)
}

// What is left running without holding the output is killed as well.
func TestLeftRunningSilently(t *testing.T) {
	terminals, dir := newTerminals(t, nil)
	line := newLifeline(t, dir)
	id := sh(t, terminals, `exec 3>lifeline; echo >&3; sleep 1000 >/dev/null 2>&1 & exit 2`)
	line.held(t, 1)
	if _, exit := finish(t, terminals, id); exit.code != 2 {
		t.Errorf("got %v", exit)
	}
	must.Do(t, terminals.kill(t.Context(), session, id))
	line.cut(t)
}

// A process that leaves the group survives, but nothing waits for it although it holds the output.
func TestEscaped(t *testing.T) {
	tier.Need(t, tier.Normal)
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip(err)
	}
	options := TerminalsOptions{KillGrace: -1}
	seen := oversee(&options)
	terminals, dir := newTerminals(t, &options)
	line := newLifeline(t, dir)
	id := sh(t, terminals, `exec 3>lifeline; setsid sh -c 'echo "pid $$"; echo >&3; exec sleep 1000' & wait`)
	line.held(t, 1)
	seen.await(id, "\n")
	text, _, _, err := terminals.tail(session, id)
	pid, _ := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(text, "pid ")))
	if err != nil || pid <= 1 {
		t.Fatalf("got %q, %v", text, err)
	}
	must.Do(t, terminals.release(t.Context(), session, id))
	must.Do(t, syscall.Kill(pid, syscall.SIGKILL))
	line.cut(t)
}

func TestSessionsAreApart(t *testing.T) {
	terminals, dir := newTerminals(t, nil)
	line := newLifeline(t, dir)
	mine := sh(t, terminals, "exec 3>lifeline; echo >&3; exec sleep 1000")
	line.held(t, 1)
	theirs := must.Get(terminals.create(sibling("s2"), command{name: "true"}, -1))(t)
	if mine == theirs || len(mine) < 20 {
		t.Errorf("ids are %s, %s", mine, theirs)
	}
	_, _, _, outputErr := terminals.tail(sibling("s2"), mine)
	_, waitErr := terminals.wait(t.Context(), sibling("s2"), mine)
	for what, err := range map[string]error{
		"output":   outputErr,
		"wait":     waitErr,
		"kill":     terminals.kill(t.Context(), sibling("s2"), mine),
		"release":  terminals.release(t.Context(), sibling("s2"), mine),
		"empty id": terminals.release(t.Context(), session, ""),
	} {
		if _, ok := errors.AsType[*unknownError](err); !ok {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if _, _, exit, err := terminals.tail(session, mine); exit != nil || err != nil {
		t.Errorf("mine: got %v, %v", exit, err)
	}
	must.Do(t, terminals.CloseSession(session))
	line.cut(t)
	if exit, err := terminals.wait(t.Context(), sibling("s2"), theirs); err != nil || exit.code != 0 {
		t.Errorf("theirs: got %v, %v", exit, err)
	}
	create(t, terminals, "true") // the session may continue
}

func TestMaxTerminals(t *testing.T) {
	terminals, _ := newTerminals(t, &TerminalsOptions{MaxTerminals: 2})
	first, second := create(t, terminals, "true"), create(t, terminals, "true")
	if _, err := terminals.create(sibling("s2"), command{name: "true"}, -1); !errors.Is(err, ErrTooMany) {
		t.Errorf("a third: got %v", err)
	}
	finish(t, terminals, first) // having ended is not being released
	if _, err := terminals.create(session, command{name: "true"}, -1); !errors.Is(err, ErrTooMany) {
		t.Errorf("a third: got %v", err)
	}
	must.Do(t, terminals.release(t.Context(), session, second))
	create(t, terminals, "true")
}

func TestClose(t *testing.T) {
	terminals, dir := newTerminals(t, nil)
	line := newLifeline(t, dir)
	const n = 5
	for range n {
		sh(t, terminals, "exec 3>lifeline; echo >&3; sleep 1000 & sleep 1000")
	}
	line.held(t, n)
	for range 2 {
		must.Do(t, terminals.Close())
	}
	line.cut(t)
	if _, err := terminals.create(session, command{name: "true"}, -1); !errors.Is(err, ErrClosed) {
		t.Errorf("create: got %v", err)
	}
	if len(terminals.live) != 0 || terminals.count != 0 {
		t.Errorf("%d terminals, %d counted", len(terminals.live), terminals.count)
	}
}

// Whatever is created while all is closed is gone afterwards.
func TestCloseWhileCreating(t *testing.T) {
	for range 5 {
		terminals, dir := newTerminals(t, nil)
		line := newLifeline(t, dir)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				_, err := terminals.create(session, command{name: "sh", args: []string{"-c", "exec 3>lifeline; echo >&3; exec sleep 1000"}}, -1)
				if err != nil && !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
			})
		}
		line.held(t, 1)
		must.Do(t, terminals.Close())
		line.cut(t)
		wg.Wait()
	}
}

// Closing a session ends a command that is just being started, too.
func TestCloseSessionWhileStarting(t *testing.T) {
	terminals, _ := newTerminals(t, nil)
	term := &terminal{id: "t", session: session, started: make(chan struct{}), output: terminals.outputs.output(1)}
	must.Do(t, terminals.add(term))
	closed := make(chan error)
	go func() { closed <- terminals.CloseSession(session) }()
	for terminals.has(term) {
		runtime.Gosched()
	}
	must.Do(t, term.start(func() error { return terminals.launch(term, command{name: "sleep", args: []string{"1000"}}) }))
	must.Do(t, <-closed)
	if exit := term.exit(); exit == nil || exit.signal != "SIGTERM" {
		t.Errorf("got %v", exit)
	}
}

// Who takes the directories of a session away and then closes it, has no command of it left, however the two meet
// requests that are just being served.
func TestClosedSessionHasNothingLeft(t *testing.T) {
	tier.Need(t, tier.Normal)
	dir := t.TempDir()
	roots := openRoots(t)
	terminals := NewTerminals(roots, Trusted(), &TerminalsOptions{KillGrace: -1})
	defer terminals.Close()
	line := newLifeline(t, dir)
	counted := func() bool {
		terminals.mu.Lock()
		defer terminals.mu.Unlock()
		return terminals.count > 0
	}
	started := 0
	rounds := tier.Pick(40, 100, 500, 5000)
	for round := range rounds {
		must.Do(t, roots.SetSession(session, dir))
		created := make(chan acp.TerminalID)
		go func() {
			id, err := terminals.create(session, command{name: "sh", args: []string{"-c", "exec 3>lifeline; exec sleep 1000"}}, -1)
			if _, unknown := errors.AsType[*unknownError](err); err != nil && !unknown && !errors.Is(err, ErrClosed) && !errors.Is(err, fs.ErrClosed) {
				t.Error(err)
			}
			created <- id
		}()
		for i := 0; i < round%8 || round%2 == 0 && !counted(); i++ {
			runtime.Gosched() // so that they meet at different places, half of them behind the beginning
		}
		roots.RemoveSession(session)
		must.Do(t, terminals.CloseSession(session))
		id := <-created
		if id != "" {
			started++ // and was ended
		}
		if _, _, _, err := terminals.tail(session, id); err == nil {
			t.Fatalf("%s is left", id)
		}
	}
	t.Logf("%d of %d had started", started, rounds)
	line.cut(t)
}

// An agent that gets its own words back gets a short piece of them, which prints.
func TestEchoes(t *testing.T) {
	tier.Need(t, tier.Normal)
	terminals, dir := newTerminals(t, nil)
	files := NewFiles(terminals.roots, Trusted(), nil)
	for _, words := range []string{
		strings.Repeat("x", 1<<20), strings.Repeat("\x1b[2J", 1<<15), strings.Repeat("\x00", 1<<18), strings.Repeat("\u202e", 1<<16),
		strings.Repeat("\xff", 1<<16), strings.Repeat("/..", 1<<16), strings.Repeat("/a", 1<<16), strings.Repeat("x", 511) + "\U0001f600\n",
		"a\nAllow? y\n", "\u202eabc",
	} {
		_, readErr := files.read(t.Context(), session, dir+"/"+words, wholeText)
		_, relativeErr := files.read(t.Context(), session, words, wholeText)
		_, createErr := terminals.create(session, command{name: words}, -1)
		_, scriptErr := terminals.create(session, command{name: "./" + words}, -1)
		_, absoluteErr := terminals.create(session, command{name: "/" + words}, -1)
		_, argErr := terminals.create(session, command{name: "./no", args: []string{words}}, -1)
		_, cwdErr := terminals.create(session, command{name: "true", cwd: acp.Some(dir + "/" + words)}, -1)
		_, envErr := terminals.create(session, command{name: "true", env: []acp.EnvVariable{{Name: "=" + words}}}, -1)
		_, _, _, idErr := terminals.tail(session, acp.TerminalID(words))
		_, sessionErr := NewFiles(openRoots(t), Trusted(), nil).read(t.Context(), sibling(acp.SessionID(words)), dir+"/x", wholeText)
		for what, err := range map[string]error{
			"read": readErr, "read, relative": relativeErr, "create": createErr, "create, script": scriptErr, "create, absolute": absoluteErr,
			"create, args": argErr, "create, cwd": cwdErr, "create, env": envErr, "tail": idErr, "session": sessionErr,
		} {
			seen, ok := errors.AsType[*rpc.Error](forPeer(err))
			if !ok {
				t.Errorf("%s of %.20q: got %v", what, words, err)
				continue
			}
			// A path that is not refused at once is sent whole, as a URI.
			if n := len(seen.Message) + len(seen.Data); n > 3*maxPath+20*maxEcho {
				t.Errorf("%s of %.20q: an answer of %d bytes", what, words, n)
			}
			for _, text := range []string{err.Error(), seen.Message} {
				for _, r := range text {
					if r == utf8.RuneError || !strconv.IsPrint(r) {
						t.Errorf("%s of %.20q: %.100q has %q", what, words, text, r)
						break
					}
				}
			}
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	options := TerminalsOptions{MaxTerminals: 8}
	seen := oversee(&options)
	terminals, _ := newTerminals(t, &options)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			session := sibling(acp.SessionID(fmt.Sprint("session ", i)))
			for range 3 {
				script := command{name: "sh", args: []string{"-c", `echo "$0"; exec sleep 1000`, string(session.id)}}
				id, err := terminals.create(session, script, 4)
				if err != nil {
					t.Error(err)
					return
				}
				seen.await(id, string(session.id))
				text, cut, exit, err := terminals.tail(session, id)
				if want := fmt.Sprintf("n %d\n", i); text != want || !cut || exit != nil || err != nil {
					t.Errorf("got %q, %t, %v, %v, want %q", text, cut, exit, err, want)
				}
				if err := terminals.kill(t.Context(), session, id); err != nil {
					t.Error(err)
				}
				if err := terminals.release(t.Context(), session, id); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// A command has no terminal that it could ask for a password, and no group in common with the client.
func TestNoControllingTerminal(t *testing.T) {
	terminals, _ := newTerminals(t, nil)
	id := sh(t, terminals, "(: </dev/tty) 2>/dev/null && echo tty; ps -o pgid= -p $$; echo $$")
	got, _ := finish(t, terminals, id)
	lines := bufio.NewScanner(strings.NewReader(got))
	lines.Scan()
	group := strings.TrimSpace(lines.Text())
	lines.Scan()
	if group == "" || group != lines.Text() {
		t.Errorf("got %q", got)
	}
}
