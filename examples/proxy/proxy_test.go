package main

import (
	"bytes"
	"context"
	"encoding/json"
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
	"github.com/acpgo/sdk/acp/rpc"
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
	buildtest.Main(m, map[string]*string{"../agent": &exampleAgent})
}

// agents are programs to stand behind the proxy.
var agents = map[string]func(){
	// gives back what it gets, and ends with status 7
	"echo": func() {
		io.Copy(os.Stdout, os.Stdin)
		os.Exit(7)
	},
	// answers only when its input has ended, and then at length
	"late": func() {
		io.Copy(io.Discard, os.Stdin)
		for i := range 1000 {
			fmt.Printf("{\"n\":%d,\"fill\":%q}\n", i, strings.Repeat("x", 1000))
		}
	},
	// puts what a terminal obeys on standard error
	"loud": func() { fmt.Fprint(os.Stderr, hostile) },
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
	machine, err := local.Serve(&handlers, dir)
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
	for _, want := range []string{
		`agent → client: answer to initialize #1: version 1, "acp-example-agent"`,
		`client → agent: session/prompt #3 of ` + string(session.ID()) + `: "plan, edit a.txt, run ` + "`echo hello`\"",
		`agent → client: session/update of ` + string(session.ID()) + `: Plan`,
		`: "Edit a.txt", 3 options`,
		`client → agent: answer to session/request_permission #2: "allow"`,
		`agent → client: answer to session/prompt #4: cancelled`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s", want)
		}
	}
	said := 0
	for line := range strings.Lines(log.String()) {
		if !strings.Contains(line, ": ended: ") {
			said++
		}
	}
	if said != lines {
		t.Errorf("%d lines were logged for %d messages:\n%s", said, lines, log.String())
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
	cmd.Stdin = strings.NewReader("{}\n")
	got, err := cmd.Output()
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

func TestDescriptions(t *testing.T) {
	var out strings.Builder
	w := &watcher{out: &out, pending: map[string]string{}}
	for _, m := range []struct {
		d    direction
		line string
		want string
	}{
		{toTheAgent, `{"jsonrpc":"2.0","id":1,"method":"session/load","params":{}}`, "client → agent: session/load #1"},
		{toTheClient, `{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[]}}`, `agent → client: session/request_permission #1 of s: "", 0 options`},
		{toTheClient, `{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"no\nsuch"}}`, `agent → client: answer to session/load #1: error -32002: "no\nsuch"`},
		{toTheAgent, `{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"cancelled"}}}`, "client → agent: answer to session/request_permission #1: not chosen"},
		{toTheAgent, `{"jsonrpc":"2.0","id":1,"result":{}}`, "client → agent: answer to nothing known #1"},
		{toTheClient, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"later"}}}`, "agent → client: session/update of s: Unknown"},
		{toTheClient, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":3}}`, "agent → client: session/update: "},
		{toTheAgent, `{"jsonrpc":"2.0","method":"session/prompt","params":"` + strings.Repeat("x", maxDecoded) + `"}`, "client → agent: session/prompt: 1048578 bytes"},
		{toTheClient, `nonsense`, "agent → client: no message: "},
	} {
		out.Reset()
		w.see(m.d, []byte(m.line))
		if got := out.String(); !strings.HasPrefix(got, m.want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s\ngot  %swant %s", m.line, got, m.want)
		}
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

// Nothing of a message reaches the terminal as it is, and each has one line.
func TestHostileText(t *testing.T) {
	quote := func(text string) string {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(quoted)
	}
	h := quote(hostile)
	for _, line := range []string{
		`{"id":` + h + `,"method":` + h + `}`,
		`{"id":` + h + `,"result":null}`,
		`{"id":1,"error":{"code":1,"message":` + h + `}}`,
		`{"method":"session/update","params":{"sessionId":` + h + `,"update":{"sessionUpdate":` + h + `}}}`,
		`{"method":"session/update","params":{"sessionId":` + h + `,"update":{"sessionUpdate":"plan","entries":` + h + `}}}`,
		`{"method":"session/prompt","params":{"sessionId":` + h + `,"prompt":[{"type":"text","text":` + h + `}]}}`,
		`{"id":7,"method":"session/request_permission","params":{"sessionId":` + h + `,"toolCall":{"toolCallId":"1","title":` + h + `},"options":[]}}`,
		`{"id":8,"method":` + h + `,"params":` + h + `}`,
		`{` + hostile,
	} {
		var out strings.Builder
		w := &watcher{out: &out, pending: map[string]string{`client → agent1`: "session/prompt"}}
		w.see(toTheClient, []byte(line))
		w.see(toTheAgent, []byte(`{"id":8,"result":{}}`))
		if strings.Count(out.String(), "\n") != 2 {
			t.Errorf("%s\nprints %q", line, out.String())
		}
		checkPlain(t, out.String())
	}
	for _, method := range []string{acp.MethodInitialize, acp.MethodPrompt, acp.MethodRequestPermission} {
		var out strings.Builder
		w := &watcher{out: &out, pending: map[string]string{`client → agent1`: method}}
		w.see(toTheClient, []byte(`{"id":1,"result":{"protocolVersion":1,"agentInfo":{"name":`+h+`,"version":"1"},"stopReason":`+h+
			`,"outcome":{"outcome":"selected","optionId":`+h+`}}}`))
		if !strings.Contains(out.String(), `hello\x1b`) {
			t.Errorf("%s prints %q", method, out.String())
		}
		checkPlain(t, out.String())
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

// Requests that are never answered are not kept for ever.
func TestPendingIsBounded(t *testing.T) {
	var out strings.Builder
	w := &watcher{out: &out, pending: map[string]string{}}
	for i := range 3 * maxPending {
		w.see(toTheAgent, fmt.Appendf(nil, `{"id":%d,"method":"a"}`, i))
	}
	if len(w.pending) != maxPending {
		t.Errorf("%d requests are kept, want %d", len(w.pending), maxPending)
	}
	for i := range 3 * maxPending {
		w.see(toTheClient, fmt.Appendf(nil, `{"id":%d,"result":null}`, i))
	}
	if len(w.pending) > 0 {
		t.Errorf("%d requests are kept after all answers", len(w.pending))
	}
	w.see(toTheAgent, fmt.Appendf(nil, `{"id":%q,"method":"a"}`, strings.Repeat("x", 1<<20)))
	w.see(toTheAgent, fmt.Appendf(nil, `{"id":1,"method":%q}`, strings.Repeat("x", 1<<20)))
	if len(w.pending) > 0 {
		t.Error("a request with a huge id or method is kept")
	}
}

// The proxy's own two ends can be any streams.
func TestPassOverPipes(t *testing.T) {
	client, up := acp.Pipe()
	down, agent := acp.Pipe()
	streams := map[acp.Transport]rpc.Stream{}
	for _, transport := range []acp.Transport{client, up, down, agent} {
		stream, err := transport.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		streams[transport] = stream
		defer stream.Close()
	}
	w := &watcher{pending: map[string]string{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.pass(toTheAgent, streams[up], streams[down])
	}()
	go func() {
		if err := streams[client].Write([]byte("{}")); err != nil {
			t.Error(err)
		}
	}()
	if got, err := streams[agent].Read(); err != nil || string(got) != "{}" {
		t.Errorf("got %q, %v", got, err)
	}
	streams[client].Close()
	<-done
}

// A message that is too long is refused, or fails the call that it answers, and those after it are passed on.
func TestTooLong(t *testing.T) {
	const limit = 1000
	fill := strings.Repeat("x", 2*limit)
	in := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"a","params":"` + fill + `"}`,
		`{"jsonrpc":"2.0","method":"a","params":"` + strings.Repeat("x", 20*limit) + `"}`,
		`{"jsonrpc":"2.0","id":"2","result":"` + fill + `"}`,
		`{"jsonrpc":"2.0","result":"` + strings.Repeat("x", 20*limit) + `","id":3,"more":"` + fill + `"}`,
		`{"last":1}`,
	}, "\n") + "\n"
	var back, forth, log bytes.Buffer
	streams := make([]rpc.Stream, 2)
	for i, transport := range []rpc.Transport{
		rpc.IO(io.NopCloser(strings.NewReader(in)), nopCloser{&back}, limit),
		rpc.IO(io.NopCloser(strings.NewReader("")), nopCloser{&forth}, limit),
	} {
		var err error
		if streams[i], err = transport.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer streams[i].Close()
	}
	w := &watcher{out: &log, pending: map[string]string{string(toTheAgent) + `"2"`: "b"}}
	w.pass(toTheClient, streams[0], streams[1])
	refused := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32600,"message":"message longer than 1000 bytes"}}` + "\n"
	}
	if got, want := back.String(), refused("1")+refused("null"); got != want {
		t.Errorf("got back\n%swant\n%s", got, want)
	}
	want := `{"jsonrpc":"2.0","id":"2","error":{"code":-32603,"message":"answer longer than 1000 bytes"}}` + "\n" + `{"last":1}` + "\n"
	if got := forth.String(); got != want {
		t.Errorf("passed on\n%swant\n%s", got, want)
	}
	if n := strings.Count(log.String(), "not passed on: "); n != 4 || len(w.pending) > 0 {
		t.Errorf("%d calls are pending after\n%s", len(w.pending), log.String())
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
