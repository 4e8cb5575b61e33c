//go:build unix

package rpc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

func TestReason(t *testing.T) {
	for name, test := range map[string]struct{ stderr, want string }{
		"nothing":  {"", ""},
		"blank":    {" \n\n", ""},
		"a line":   {"warning\nfatal: out of cheese\n\n", "fatal: out of cheese"},
		"Go panic": {"starting\npanic: boom [recovered]\n\tpanic: bang\n\ngoroutine 1 [running]:\nmain.main()\n\t/x.go:3\nexit status 2\n", "panic: boom [recovered]"},
		"Go fatal": {"fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [select (no cases)]:\n", "fatal error: all goroutines are asleep - deadlock!"},
		"Rust":     {"thread 'main' panicked at src/main.rs:2:5:\nout of cheese\nnote: run with `RUST_BACKTRACE=1`\n", "thread 'main' panicked at src/main.rs:2:5: out of cheese"},
		"Python":   {"Traceback (most recent call last):\n  File \"a.py\", line 1\nValueError: no cheese\n", "ValueError: no cheese"},
		"Node":     {"/a.js:1\nthrow new Error('no cheese')\n^\n\nError: no cheese\n    at Object.<anonymous> (/a.js:1:7)\n\nNode.js v22.23.3\n", "Error: no cheese"},
		"Node, a module": {"node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module '/b.js'\n    at Module (node:internal:1) {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v20.19.0\n",
			"Error: Cannot find module '/b.js'"},
		"Node, a code": {"    throw new ERR_MODULE_NOT_FOUND(\n          ^\n\nError [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'\n    at y\n\nNode.js v22.0.0", "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x'"},
		"Node, a rejection": {"node:internal/process/promises:394\n      triggerUncaughtException(err, true);\n      ^\n\n[UnhandledPromiseRejection: reason \"x\".] {\n  code: 'ERR_UNHANDLED_REJECTION'\n}\n\nNode.js v22.23.3\n",
			`[UnhandledPromiseRejection: reason "x".] {`},
		"Node, a string":      {"/a.js:1\nthrow 'x'\n^\nx\n(Use `node --trace-uncaught ...`)\n\nNode.js v22.23.3\n", "x"},
		"Node, cut":           {"cket.<anonymous>\nTypeError: x is not a function\n    at y\n\nNode.js v22.23.3\n", "TypeError: x is not a function"},
		"Node, nothing known": {"Node.js v22.23.3\n", "Node.js v22.23.3"},
		"clap":                {"error: unexpected argument '--acp' found\n\nUsage: x [OPTIONS]\n\nFor more information, try '--help'.\n", "error: unexpected argument '--acp' found"},
		"flag":                {"flag provided but not defined: -acp\nUsage of x:\n  -model string\n    \tthe error: shown\n", "flag provided but not defined: -acp"},
		"cobra":               {"Error: unknown flag: --acp\nUsage:\n  x [flags]\n\nFlags:\n  -h, --help   help for x\n\n", "Error: unknown flag: --acp"},
		"argparse":            {"usage: x [-h] [--model MODEL]\nx: error: unrecognized arguments: --acp\n", "x: error: unrecognized arguments: --acp"},
		"yargs":               {"x [options]\n\nOptions:\n  --help  Show help\n\nUnknown argument: acp\n", "Unknown argument: acp"},
		"getopt":              {"x: unrecognized option '--acp'\nTry 'x --help' for more information.\n", "x: unrecognized option '--acp'"},
		"commander":           {"error: unknown option '--acp'\n(Did you mean --api?)\n", "error: unknown option '--acp'"},
		"anyhow":              {"Error: cannot read the configuration\n\nCaused by:\n    No such file or directory (os error 2)\n", "Error: cannot read the configuration"},
		"npm":                 {"npm error code E404\nnpm error 404 Not Found - GET https://example.com/x\nnpm error A complete log of this run can be found in: /l\n", "npm error 404 Not Found - GET https://example.com/x"},
		"Java":                {"Exception in thread \"main\" java.lang.IllegalStateException: no cheese\n\tat Main.main(Main.java:3)\n", "Exception in thread \"main\" java.lang.IllegalStateException: no cheese"},
		"Deno":                {"error: Uncaught (in promise) Error: no cheese\n    at file:///a.ts:1:7\n", "error: Uncaught (in promise) Error: no cheese"},
		"Ruby":                {"/x.rb:1:in `require': cannot load such file -- nope (LoadError)\n\tfrom /x.rb:1:in `<main>'\n", "/x.rb:1:in `require': cannot load such file -- nope (LoadError)"},
		"Elixir":              {"** (RuntimeError) no cheese\n    x.exs:1: (file)\n    (elixir 1.18) lib/code.ex:1: Code.x/1\n", "** (RuntimeError) no cheese"},
		"C++":                 {"terminate called after throwing an instance of 'x'\n  what():  no cheese\n", "what():  no cheese"},
		".NET":                {"You must install or update .NET to run this application.\n\nApp: /x\nLearn more:\nhttps://aka.ms/x\n", "You must install or update .NET to run this application."},
		"a log":               {"2026-11-28T10:00:00Z INFO starting\n2026-11-28T10:00:01Z ERROR no key\n2026-11-28T10:00:01Z INFO bye\n", "2026-11-28T10:00:01Z ERROR no key"},
		"slog":                {"time=2026-11-28T10:00:00Z level=ERROR msg=\"no key\"\n", "time=2026-11-28T10:00:00Z level=ERROR msg=\"no key\""},
		"an early error":      {"error: retrying\nsh: 1: x: not found\n", "error: retrying"},
		"long":                {strings.Repeat("é", 400), strings.Repeat("é", 250) + "…"},
	} {
		if got := (ProcessOutput{Stderr: test.stderr}).Reason(); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// The line of a panic is kept although more was written after it than is kept.
func TestPanicIsKept(t *testing.T) {
	c := connectChild(t, "panic")
	err := c.Wait()
	exit, ok := errors.AsType[*ExitError](err)
	if !ok || !strings.HasPrefix(exit.Stderr, "panic: out of cheese\n…\n") || !strings.Contains(err.Error(), "exit status 2: panic: out of cheese") {
		t.Errorf("got %.300v", err)
	}
	// However it arrives.
	for size := 1; size < 30; size++ {
		out := tail{max: 100}
		text := []byte("one\npanic: no cheese\n" + strings.Repeat("goroutine\n", 20))
		for len(text) > 0 {
			n := min(size, len(text))
			out.Write(text[:n])
			text = text[n:]
		}
		if got := out.String(); got != "panic: no cheese\n…\n"+strings.Repeat("goroutine\n", 10) {
			t.Errorf("in pieces of %d: %q", size, got)
		}
	}
}

// shell connects to a script.
func shell(t *testing.T, script string, ext *Extensions[Conn], opts *Options) *Conn {
	t.Helper()
	c := must.Get(Connect(t.Context(), Command(exec.Command("sh", "-c", script)), ext, opts))(t)
	t.Cleanup(func() { must.Do(t, c.Close()) })
	return c
}

// logged is a log whose lines are received.
type logged chan string

func (l logged) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// What was skipped on standard output, and how long nothing came, stand in the error.
func TestExitSaysWhatWasSkipped(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	// The script waits until the first line was read, and with it the rest.
	warned := make(logged, 2)
	opts := &Options{Logger: slog.New(slog.NewTextHandler(warned, nil))}
	c := shell(t, `printf 'npm WARN deprecated\nUsage: agent'; read -r line; sleep 1.1; echo oops >&2; exit 4`, nil, opts)
	<-warned
	must.Do(t, Notify(t.Context(), c, "_read", nil))
	err := c.Wait()
	exit, ok := errors.AsType[*ExitError](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	if exit.Noise != "npm WARN deprecated\nUsage: agent\n" || exit.Stderr != "oops\n" || exit.Silent < time.Second || exit.Silent > patience {
		t.Errorf("got %+v", exit)
	}
	if want := `exit status 4: oops; standard output had "Usage: agent"; silent for `; !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A process that closes its output and lives on says what it has said.
func TestOutputIsClosed(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	c := shell(t, `echo 'no such option' >&2; exec >&-; read -r line; exec sleep 60`, nil, nil)
	_, err := Call[struct{}](t.Context(), c, "_m", nil)
	if !errors.Is(err, io.EOF) || !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), "closed its output (standard error: no such option") {
		t.Errorf("got %v", err)
	}
}

// A message behind a banner without a newline is read, and the banner reported. After a message, what a log quotes is
// none.
func TestMessageBehindBanner(t *testing.T) {
	noise := make(chan string, 10)
	opts := &Options{SkipNoise: true, Hooks: Hooks{Invalid: func(line []byte, _ error) { noise <- string(line) }}}
	updates := make(chan int, 10)
	ext := &Extensions[Conn]{}
	HandleNotification(ext, "update", func(_ context.Context, _ *Conn, p *echoParams) error {
		updates <- p.N
		return nil
	})
	c := shell(t, `read -r line; printf 'Loading... {"jsonrpc":"2.0","id":1,"result":{"n":1}}\n'
		printf '\033[?25hReady{"jsonrpc":"2.0","method":"update","params":{"n":2}}\n'
		printf 'sent: {"jsonrpc":"2.0","method":"update","params":{"n":3}}\n'
		read -r line; printf 'sent: {"jsonrpc":"2.0","id":2,"result":{"n":1}}\n'
		printf '10%%\r99%%\r{"result":{"n":2},"id":2,"jsonrpc":"2.0"}\n'
		cat >/dev/null`, ext, opts)
	for n := 1; n <= 2; n++ {
		if res, err := echoMethod.Call(t.Context(), c, &echoParams{}); err != nil || res.N != n {
			t.Fatalf("call %d: %v, %v", n, res, err)
		}
	}
	if n := <-updates; n != 2 || len(updates) > 0 {
		t.Errorf("update %d came, and %d more", n, len(updates))
	}
	for _, want := range []string{"Loading... ", "\x1b[?25hReady", `sent: {"jsonrpc":"2.0","method":"update","params":{"n":3}}`,
		`sent: {"jsonrpc":"2.0","id":2,"result":{"n":1}}`, "10%\r99%\r"} {
		if got := <-noise; got != want {
			t.Errorf("reported %q, want %q", got, want)
		}
	}
}

// A transport may be told to keep nothing of standard error.
func TestNothingOfStandardErrorIsKept(t *testing.T) {
	transport := Command(exec.Command("/bin/sh", "-c", "echo no cheese >&2; exit 3"))
	transport.StderrTail = -1
	conn := must.Get(Connect(t.Context(), transport, nil, nil))(t)
	exit, ok := errors.AsType[*ExitError](conn.Wait())
	if !ok || exit.Stderr != "" || exit.State.ExitCode() != 3 {
		t.Errorf("got %v", exit)
	}
}
