package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// runAs makes the test binary another program: the proxy, or one of the agents below.
const runAs = "EXAMPLE_PROXY_TEST_RUN_AS"

// exampleAgent is the reference agent, built for the tests.
var exampleAgent string

func TestMain(m *testing.M) {
	role := os.Getenv(runAs)
	if role == "proxy" {
		os.Unsetenv(runAs) // agents are other programs
		main()
		return
	}
	if act, ok := agents[role]; ok {
		act()
		return
	}
	buildtest.Main(m, map[string]*string{"../../internal/test/actor/actor": &exampleAgent})
}

// agents are programs to stand behind the proxy.
var agents = map[string]func(){
	// gives back what it gets, and ends with status 7
	"echo": func() {
		io.Copy(os.Stdout, os.Stdin)
		os.Exit(7)
	},
	// answers at length when its input has ended
	"late": func() {
		fmt.Println(`{"n":0}`)
		io.Copy(io.Discard, os.Stdin)
		var lines bytes.Buffer
		for i := range 1000 { // a pipe holds them all, so that the agent ends in its half second however slow the proxy is
			fmt.Fprintf(&lines, "{\"n\":%d,\"fill\":%q}\n", i+1, strings.Repeat("x", 30))
		}
		os.Stdout.Write(lines.Bytes())
	},
	// puts what a terminal obeys on standard error, and ends when the client does
	"loud": func() {
		fmt.Fprint(os.Stderr, hostile)
		io.Copy(io.Discard, os.Stdin)
	},
	// ends without being asked
	"brief": func() {
		fmt.Println(`{"last":"words"}`)
		os.Exit(3)
	},
	// neither reads nor ends; it says so when it is asked to
	"deaf": func() {
		fmt.Println(`{"pid":` + strconv.Itoa(os.Getpid()) + `}`)
		select {}
	},
}

// through is a proxy before an agent.
func through(t *testing.T, flags []string, agent ...string) *exec.Cmd {
	t.Helper()
	tier.Need(t, tier.Normal)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append(append(flags, "--"), agent...)...)
	cmd.Env = append(os.Environ(), runAs+"=proxy", "GORACE=atexit_sleep_ms=0")
	return cmd
}

// role is the command line of an agent of this binary.
func role(t *testing.T, name string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"env", runAs + "=" + name, self}
}

// A whole turn, validated on both sides of the proxy, is what it is without one.
func TestWholeTurn(t *testing.T) {
	tier.Need(t, tier.Normal)
	dir := t.TempDir()
	cmd := through(t, []string{"-v"}, exampleAgent, "-state", t.TempDir())
	var log bytes.Buffer
	cmd.Stderr = &log
	var recording conformance.Recording
	handlers := acp.ClientHandlers{
		RequestPermission: func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("allow")}, nil
		},
	}
	machine, err := local.Serve(&handlers, local.Trusted(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer machine.Close()
	tap := conformance.Tap(t, conformance.Client, acp.Command(cmd), &conformance.TapOptions{OnMessage: recording.Add})
	agent, err := acp.Connect(t.Context(), tap, handlers, nil)
	if err != nil {
		t.Fatal(err)
	}
	session, err := agent.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir})
	if err != nil {
		t.Fatal(err)
	}
	res, err := session.Prompt(t.Context(), acp.TextBlock("plan, edit a.txt, run `echo hello`"))
	if err != nil || res.StopReason != acp.StopReasonEndTurn {
		t.Errorf("got %v, %v", res, err)
	}
	turn := session.Stream(t.Context(), acp.TextBlock("Write a very long novel"))
	for range turn.Updates() {
		turn.Cancel()
	}
	if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonCancelled {
		t.Errorf("got %v, %v", res, err)
	}
	if err := agent.Close(); err != nil {
		t.Fatal(err)
	}
	if err := agent.Wait(); err != nil {
		t.Errorf("the proxy ended with %v", err)
	}
	lines := len(recording.Messages())
	for _, want := range []string{`client → {"jsonrpc":"2.0","id":1,"method":"initialize"`, `agent → {"jsonrpc":"2.0","id":4,"result":{"stopReason":"cancelled"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s", want)
		}
	}
	if logged := strings.Count(log.String(), "\n"); logged != lines {
		t.Errorf("%d lines were logged for %d messages:\n%s", logged, lines, log.String())
	}
}

// Nothing is changed, added or dropped, whatever it is.
func TestEveryByte(t *testing.T) {
	lines := strings.Join([]string{
		`{"jsonrpc":"2.0","method":"_vendor/thing","params":{"z":1,"a":[1.0,1e2,12345678901234567890],"_meta":{"k": null}}}`,
		`{ "id" : -1 , "jsonrpc":"2.0", "result" : null, "result2": {"a":1,"a":2} }`,
		`{"jsonrpc":"2.0","id":"1","method":"unknown/method","params":[1,2],"extra":"\ud83d\ude00 ` + "\u2028" + `"}`,
		`no JSON at all` + "\r",
		"\xff\xfe broken",
		`[{"jsonrpc":"2.0","id":1,"method":"batch"}]`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"_new","x":1}}}`,
		`{"long":"` + strings.Repeat("x", 3<<20) + `"}`,
	}, "\n") + "\n"
	for _, flags := range [][]string{nil, {"-v"}} {
		cmd := through(t, flags, role(t, "echo")...)
		cmd.Stdin = strings.NewReader(lines)
		got, err := cmd.Output()
		if string(got) != lines {
			t.Errorf("%v: %d bytes came back of %d", flags, len(got), len(lines))
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 7 {
			t.Errorf("%v: ended with %v, want status 7", flags, err)
		}
	}
}

// What the agent says after its input has ended still reaches the client.
func TestLateAnswers(t *testing.T) {
	cmd := through(t, nil, role(t, "late")...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	if _, err := r.ReadString('\n'); err != nil {
		t.Error("the agent did not start:", err)
	}
	in.Close()
	got, err := io.ReadAll(r)
	err = errors.Join(err, cmd.Wait())
	if n := bytes.Count(got, []byte("\n")); n != 1000 || err != nil {
		t.Errorf("got %d lines, %v, want 1000", n, err)
	}
}

// The proxy ends with its agent although the client is still there.
func TestAgentEnds(t *testing.T) {
	cmd := through(t, nil, role(t, "brief")...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	got, err := cmd.Output()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if string(got) != "{\"last\":\"words\"}\n" || !ok || exit.ExitCode() != 3 {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAgentDoesNotStart(t *testing.T) {
	out, err := through(t, nil, "/no/such/agent").CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != 1 || !strings.HasPrefix(string(out), "proxy: ") {
		t.Errorf("got %q, %v", out, err)
	}
	if _, err := through(t, nil).CombinedOutput(); err == nil {
		t.Error("no agent is not an error")
	}
}

// hostile is what a terminal would obey, and what would look like a line of the proxy's.
const hostile = "hello\x1b[2J\x1b]0;x\a\u009b1A\u202e\u2066\r\nproxy: all is well\u2028"

func checkPlain(t *testing.T, got string) {
	t.Helper()
	for line := range strings.Lines(got) {
		line = strings.TrimSuffix(line, "\n")
		if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.HasPrefix(line, "proxy: all") {
			t.Errorf("%q is printed", line)
		}
	}
}

// What an agent writes to standard error has a mark, and does nothing but appear.
func TestHostileStandardError(t *testing.T) {
	for _, flags := range [][]string{nil, {"-v"}} {
		cmd := through(t, flags, role(t, "loud")...)
		var log bytes.Buffer
		cmd.Stderr = &log
		if err := cmd.Run(); err != nil {
			t.Error(err)
		}
		checkPlain(t, log.String())
		if !strings.Contains(log.String(), "agent: hello") || !strings.Contains(log.String(), "agent: proxy: all is well") {
			t.Errorf("got %q", log.String())
		}
	}
}
