package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
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
	// neither reads nor ends
	"deaf": func() {
		fmt.Println(`{"n":0}`)
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

// The proxy ends as its agent does, although the client is still there, and says what keeps it from starting one.
func TestAgentEnds(t *testing.T) {
	for _, test := range []struct {
		agent  []string
		out    string
		status int
	}{
		{role(t, "brief"), "{\"last\":\"words\"}\n", 3}, {[]string{"/no/such/agent"}, "", 1}, {nil, "", 1},
	} {
		cmd := through(t, nil, test.agent...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if test.agent == nil {
			in.Close()
		}
		var log bytes.Buffer
		cmd.Stderr = &log
		out, err := cmd.Output()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if string(out) != test.out || !ok || exit.ExitCode() != test.status || test.status == 1 && !strings.HasPrefix(log.String(), "proxy: ") {
			t.Errorf("%q: got %q, %v; %s", test.agent, out, err, &log)
		}
		in.Close()
	}
}

// hostile is what a terminal would obey, and what would look like a line of the proxy's.
const hostile = "hello\x1b[2J\x1b]0;x\a\u009b1A\u202e\u2066\r\nproxy: all is well\u2028"

// What an agent writes to standard error has a mark, and does nothing but appear.
func TestHostileStandardError(t *testing.T) {
	for _, flags := range [][]string{nil, {"-v"}} {
		cmd := through(t, flags, role(t, "loud")...)
		var log bytes.Buffer
		cmd.Stderr = &log
		if err := cmd.Run(); err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(log.String()) {
			line = strings.TrimSuffix(line, "\n")
			if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.HasPrefix(line, "proxy: all") {
				t.Errorf("%q is printed", line)
			}
		}
		if !strings.Contains(log.String(), "agent: hello") || !strings.Contains(log.String(), "agent: proxy: all is well") {
			t.Errorf("got %q", log.String())
		}
	}
}
