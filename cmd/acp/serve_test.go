package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/cutproxy"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// parrot is an agent that does what its prompts say: it repeats them, prints an environment variable, counts, or dies.
func parrot() {
	fmt.Println("Loading models...") // as some agents do by mistake
	fmt.Fprintln(os.Stderr, "parrot: begins")
	beAgent(acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "one"}, nil
		},
		Prompt: func(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			text := req.Prompt[0].Text()
			name, is := strings.CutPrefix(text, "$")
			count, counts := strings.CutPrefix(text, "count to ")
			switch {
			case counts:
				end, err := strconv.Atoi(count)
				if err != nil {
					return nil, acp.InvalidParamsf("%v", err)
				}
				for n := range end {
					if err := session.Update(ctx, acp.AgentMessageText(fmt.Sprintf("%d,", n+1))); err != nil {
						return nil, err
					}
				}
				text = "done"
			case is:
				text = os.Getenv(name)
			case text == "die":
				fmt.Fprintln(os.Stderr, "parrot: as you wish")
				os.Exit(7)
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, session.Update(ctx, acp.AgentMessageText(text))
		},
	}, nil)
}

// gatewayProcess is acp serve, as a process.
type gatewayProcess struct {
	cmd *exec.Cmd
	url string // as it prints it
	log lines
}

// logged returns what it has written to standard error.
func (g *gatewayProcess) logged() string { return g.log.String() }

// waitLog waits until the log matches a pattern.
func (g *gatewayProcess) waitLog(t *testing.T, pattern string) {
	t.Helper()
	matches := regexp.MustCompile(pattern).MatchString
	for deadline := time.Now().Add(2 * time.Minute); !matches(g.logged()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the log has no %s:\n%s", pattern, g.logged())
		}
	}
}

// end interrupts the process, which must exit successfully.
func (g *gatewayProcess) end(t *testing.T) {
	t.Helper()
	must.Do(t, g.cmd.Process.Signal(syscall.SIGTERM))
	timer := time.AfterFunc(3*time.Minute, func() { _ = g.cmd.Process.Kill() }) // it may have ended
	defer timer.Stop()
	if err := g.cmd.Wait(); err != nil {
		t.Errorf("%s ended with %v:\n%s", g.cmd.Args, err, g.logged())
	}
}

// startGateway starts acp serve on a free port.
func startGateway(t *testing.T, env []string, args ...string) *gatewayProcess {
	t.Helper()
	cmd := exec.Command(must.Get(exec.LookPath("acp"))(t), append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(append(os.Environ(), "XDG_STATE_HOME="+t.TempDir()), env...)
	return startServer(t, cmd)
}

// startServer starts a program that serves and prints its URL.
func startServer(t *testing.T, cmd *exec.Cmd) *gatewayProcess {
	t.Helper()
	g := &gatewayProcess{cmd: cmd}
	g.cmd.Stderr = &g.log
	stdout := must.Get(g.cmd.StdoutPipe())(t)
	must.Do(t, g.cmd.Start())
	t.Cleanup(func() {
		if g.cmd.ProcessState == nil {
			_ = g.cmd.Process.Kill() // the test failed before its end
			_ = g.cmd.Wait()
		}
	})
	if g.url = firstLine(t, stdout); g.url == "" {
		t.Fatalf("it does not serve:\n%s", g.logged())
	}
	return g
}

// firstLine returns the first line that a program prints, or "" if it exits before.
func firstLine(t *testing.T, out io.Reader) string {
	t.Helper()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// at returns the URL with another scheme.
func (g *gatewayProcess) at(scheme string) string {
	_, rest, _ := strings.Cut(g.url, "://")
	return scheme + "://" + rest
}

// get requests a path next to the agent's.
func get(t *testing.T, url string) (status int, text string) {
	t.Helper()
	res := must.Get(http.Get(url))(t)
	defer res.Body.Close()
	body := must.Get(io.ReadAll(res.Body))(t)
	return res.StatusCode, string(body)
}

// heard connects a client under the tap, and returns a function that prompts the agent.
func heard(t *testing.T, transport acp.Transport) (prompt func(text string) (string, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	conn, err := acp.Connect(ctx, conformance.Tap(t, conformance.Client, transport, nil), acp.ClientHandlers{}, nil)
	must.Do(t, err)
	t.Cleanup(func() { conn.Close() })
	session := must.Get(conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/"}))(t)
	return func(text string) (string, error) {
		turn := session.Stream(ctx, acp.TextBlock(text))
		var said strings.Builder
		for update := range turn.Updates() {
			text := update.AgentText()
			said.WriteString(text)
		}
		_, err := turn.Result()
		return said.String(), err
	}
}

// connectCommand returns acp connect as the agent of a client.
func connectCommand(t *testing.T, env []string, args ...string) acp.Transport {
	t.Helper()
	cmd := exec.Command(must.Get(exec.LookPath("acp"))(t), append([]string{"connect"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = t.Output()
	return acp.Command(cmd)
}

// bearer has a token for all requests.
func bearer(token string) *remote.DialOptions {
	return &remote.DialOptions{Header: func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer " + token}}, nil
	}}
}

const secret = "a-very-secret-token"

// Each named token has sessions of its own, also for an agent that keeps them in the home, and names that a file system
// may confuse are different names.
func TestServeHomes(t *testing.T) {
	dir := t.TempDir()
	file, state := filepath.Join(dir, "tokens"), filepath.Join(dir, "state")
	must.Do(t, os.WriteFile(file, []byte("ada token-of-ada\nAda token-of-Ada\n../ada token-of-dots\nbob token-of-bob\ntoken-of-nobody\n"), 0o600))
	g := startGateway(t, []string{"HOME=" + dir, "XDG_CACHE_HOME=" + filepath.Join(dir, "own")}, "--token-file", file, "--state", state, "--", must.Get(exampleAgent())(t))
	as := func(name string) *acp.ClientConn {
		t.Helper()
		conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, remote.Dial(g.at("ws"), bearer("token-of-"+name)), nil), acp.ClientHandlers{}, nil)
		must.Do(t, err)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	names := []string{"ada", "Ada", "dots", "bob", "nobody"}
	made := map[string]acp.SessionID{}
	for _, name := range names {
		conn := as(name)
		session := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir}))(t)
		must.Get(session.Prompt(t.Context(), acp.TextBlock("secret of "+name)))(t)
		made[name] = session.ID()
		must.Do(t, conn.Close())
	}
	for _, name := range names {
		conn := as(name)
		list := must.Get(conn.ListSessions(t.Context(), &acp.ListSessionsRequest{}))(t)
		if len(list.Sessions) != 1 || list.Sessions[0].SessionID != made[name] {
			t.Errorf("%s lists %v, want only %s", name, list.Sessions, made[name])
		}
		for other, id := range made {
			_, err := conn.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: id, Cwd: dir})
			if (err == nil) != (other == name) {
				t.Errorf("%s loads the session of %s: %v", name, other, err)
			}
		}
	}
	homes, err := os.ReadDir(state)
	if err != nil || len(homes) != 4 {
		t.Fatalf("the homes are %v, %v", homes, err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for _, home := range homes {
		if info, err := home.Info(); err != nil || info.Mode() != fs.ModeDir|0o700 {
			t.Errorf("%s: %v, %v", home.Name(), info.Mode(), err)
		}
	}
	must.Do(t, os.Chmod(filepath.Join(state, homes[0].Name()), 0o755))
	out, err := exec.Command(must.Get(exec.LookPath("acp"))(t), "serve", "--token-file", file, "--state", state, "--", "cat").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "accessible to others") {
		t.Errorf("with a home that others can read: %v, %s", err, out)
	}
}

// An agent that is a command can be used at a URL and, through that, as a command again.
func TestServeAndConnect(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	must.Do(t, os.WriteFile(file, []byte("# who may\nada "+secret+"\n"), 0o600))
	g := startGateway(t, []string{"ACP_SERVE_TOKEN=another"}, "--token-file", file, "--env", "COLOUR=green", "--", must.Get(exec.LookPath("parrot"))(t))
	base := strings.TrimSuffix(g.url, remote.DefaultPath)
	if status, text := get(t, base+"/healthz"); status != 200 || text != "ok\n" {
		t.Errorf("health: %d %s", status, text)
	}
	if status, _ := get(t, base+"/other"); status != 404 {
		t.Errorf("another path: %d", status)
	}
	if status, _ := get(t, g.url); status != 401 {
		t.Errorf("without token: %d", status)
	}
	for _, scheme := range []string{"ws", "http"} {
		t.Run(scheme, func(t *testing.T) {
			for name, transport := range map[string]acp.Transport{
				"Dial":                    remote.Dial(g.at(scheme), bearer(secret)),
				"connect with a file":     connectCommand(t, nil, "--token-file", file, g.at(scheme)),
				"connect with a variable": connectCommand(t, []string{"ACP_CONNECT_TOKEN=" + secret}, g.at(scheme)),
				"connect with a header":   connectCommand(t, []string{"MINE=Bearer " + secret}, "--header-env", "Authorization=MINE", g.at(scheme)),
			} {
				prompt := heard(t, transport)
				for text, want := range map[string]string{"hello": "hello", "$COLOUR": "green", "$ACP_SERVE_TOKEN": ""} {
					if got, err := prompt(text); got != want || err != nil {
						t.Errorf("%s: %s: got %q, %v, want %q", name, text, got, err, want)
					}
				}
			}
			_, err := acp.Connect(t.Context(), connectCommand(t, []string{"ACP_CONNECT_TOKEN=wrong"}, g.at(scheme)), acp.ClientHandlers{}, nil)
			// A WebSocket is refused before the client's request is read; over HTTP it is that request that is refused.
			said := fmt.Sprint(err)
			if exit, ok := errors.AsType[*acp.ExitError](err); ok {
				said = exit.Stderr
			}
			if err == nil || !strings.Contains(said, "401") {
				t.Errorf("with a wrong token: got %v", err)
			}
		})
	}
	g.end(t)
	log := g.logged()
	for pattern, want := range map[string]int{
		`msg="acp: connection opened".*principal=ada`: 8, `msg="acp: connection ended"`: 8, `text="parrot: begins"`: 8,
		`(?i)level=(warn|error)`: 0, secret: 0, "another": 0, "hello": 0,
	} {
		if got := len(regexp.MustCompile(pattern).FindAllString(log, -1)); got != want {
			t.Errorf("the log has %d times %s, want %d", got, pattern, want)
		}
	}
	if t.Failed() {
		t.Log(log)
	}
}

// The flags of acp serve reach the server, which refuses what they say, serves others meanwhile, and logs no secret.
func TestServeRefuses(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	must.Do(t, os.WriteFile(tokens, []byte("ada "+secret+"-of-ada\nmallory "+secret+"-of-mallory\n"), 0o600))
	const ada, mallory, guess = secret + "-of-ada", secret + "-of-mallory", "a-guess-of-a-token"
	const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`
	g := startGateway(t, nil, "--token-file", tokens, "--token-query", "token", "--log-debug", "--max-message", "65536", "--max-connections-each", "2", "--",
		must.Get(exec.LookPath("parrot"))(t))
	prompt := heard(t, remote.Dial(g.at("ws"), bearer(ada)))
	ask := func(token, query, body string, header ...string) *http.Response {
		t.Helper()
		r := must.Get(http.NewRequestWithContext(t.Context(), "POST", g.url+query, strings.NewReader(body)))(t)
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		for _, line := range header {
			name, value, _ := strings.Cut(line, ": ")
			r.Header.Set(name, value)
			if name == "Host" {
				r.Host = value
			}
		}
		res := must.Get(http.DefaultClient.Do(r))(t)
		res.Body.Close()
		return res
	}
	id := "Acp-Connection-Id: " + ask(ada, "", hello).Header.Get("Acp-Connection-Id")
	for _, test := range []struct {
		name string
		res  *http.Response
		want int
	}{
		{"no token", ask("", "", hello), 401},
		{"a wrong token", ask(guess, "", hello), 401},
		{"a wrong token in the URL", ask("", "?token="+guess, hello), 401},
		{"a foreign origin", ask(ada, "", hello, "Origin: https://evil.example"), 403},
		{"a foreign host", ask(ada, "", hello, "Host: evil.example"), 403},
		{"both, the same", ask(ada, "", hello, "Host: evil.example", "Origin: http://evil.example"), 403},
		{"the connection of another", ask(mallory, "", "{}", id), 404},
		{"a connection without a token", ask("", "", "{}", id), 401},
		{"a long body", ask(mallory, "", strings.Repeat(" ", 100_000)), 413},
		{"a long header", ask(mallory, "", hello, "X-Long: "+strings.Repeat("x", 100_000)), 431},
		{"the third connection", ask(ada, "", hello), 429},
	} {
		if test.res.StatusCode != test.want {
			t.Errorf("%s: got %s, want %d", test.name, test.res.Status, test.want)
		}
	}
	conn, _, err := websocket.Dial(t.Context(), g.at("ws")+"?token="+mallory, nil)
	must.Do(t, err)
	defer conn.CloseNow()
	_ = conn.Write(t.Context(), websocket.MessageText, make([]byte, 100_000)) // it may be cut off
	if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
		t.Errorf("a long frame: %v", err)
	}
	if got, err := prompt("what-ada-says"); err != nil || got != "what-ada-says" {
		t.Errorf("ada: %q, %v", got, err)
	}
	g.end(t)
	for _, word := range []string{secret, guess, "what-ada-says"} {
		if strings.Contains(g.logged(), word) {
			t.Errorf("the log has %q:\n%s", word, g.logged())
		}
	}
}

// When an agent dies, pending calls fail, and the gateway continues.
func TestServeAgentDies(t *testing.T) {
	g := startGateway(t, nil, "--metrics", "127.0.0.1:0", "--", must.Get(exec.LookPath("parrot"))(t))
	for _, scheme := range []string{"ws", "http"} {
		prompt := heard(t, remote.Dial(g.at(scheme), nil))
		if _, err := prompt("die"); err == nil {
			t.Error("a dead agent has answered")
		} else {
			t.Logf("%s: %v", scheme, err)
		}
		if got, err := heard(t, remote.Dial(g.at(scheme), nil))("hello"); got != "hello" || err != nil {
			t.Errorf("the next connection: got %q, %v", got, err)
		}
	}
	g.waitLog(t, `(?s)exit status 7.*exit status 7`)
	g.end(t)
}

// The metrics are in the format of Prometheus.
func TestServeMetrics(t *testing.T) {
	g := startGateway(t, nil, "--metrics", "127.0.0.1:0", "--", must.Get(exec.LookPath("parrot"))(t))
	g.waitLog(t, `metrics`)
	found := regexp.MustCompile(`http://127\.0\.0\.1:\d+/metrics`).FindString(g.logged())
	prompt := heard(t, remote.Dial(g.at("http"), nil))
	must.Get(prompt("hello"))(t)
	get(t, strings.TrimSuffix(g.url, remote.DefaultPath)+"/healthz")
	_, text := get(t, found)
	for _, line := range []string{
		"# TYPE acp_connections gauge", `acp_connections{transport="http"} 1`, `acp_connections_opened_total{transport="http"} 1`,
		"acp_streams 2", "acp_agents 1", "acp_agents_started_total 1", "acp_agent_noise_lines_total 1", `acp_agents_failed_total{when="later"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("the metrics have no line %s:\n%s", line, text)
		}
	}
	g.end(t)
}

// The gateway ends in order while a client is connected: it closes the client's connection and ends the agent.
func TestServeEnds(t *testing.T) {
	tier.Need(t, tier.Normal)
	for _, scheme := range []string{"ws", "http"} {
		t.Run(scheme, func(t *testing.T) {
			g := startGateway(t, nil, "--log-debug", "--", must.Get(exec.LookPath("parrot"))(t))
			conn, err := acp.Connect(t.Context(), remote.Dial(g.at(scheme), &remote.DialOptions{ReopenTime: time.Second}), acp.ClientHandlers{}, nil)
			must.Do(t, err)
			defer conn.Close()
			g.end(t)
			select {
			case <-conn.Done():
			case <-time.After(3 * time.Minute):
				t.Errorf("the client does not learn that the server has ended; the server:\n%s", g.logged())
			}
			if !regexp.MustCompile(`state="exit status 0"`).MatchString(g.logged()) {
				t.Errorf("the agent did not end well:\n%s", g.logged())
			}
		})
	}
}

// The connection between connect and serve is cut again and again, and nothing is lost; but losing a WebSocket is the
// end.
func TestConnectComesBack(t *testing.T) {
	tier.Need(t, tier.Normal)
	g := startGateway(t, nil, "--", must.Get(exec.LookPath("parrot"))(t))
	address, _, _ := strings.Cut(strings.TrimPrefix(g.url, "http://"), "/")
	const end = 500
	var want strings.Builder
	for n := range end {
		fmt.Fprintf(&want, "%d,", n+1)
	}
	through := func(cuts int, scheme string) (acp.Transport, *lines, *cutproxy.Proxy) {
		proxy := must.Get(cutproxy.New(address))(t)
		proxy.Limit(20_000, cuts)
		t.Cleanup(func() { must.Do(t, proxy.Close()) })
		said := &lines{}
		cmd := exec.Command(must.Get(exec.LookPath("acp"))(t), "connect", "--reopen-timeout", "3m", scheme+"://"+proxy.Addr()+remote.DefaultPath)
		cmd.Stderr = said
		return acp.Command(cmd), said, proxy
	}
	transport, said, proxy := through(3, "http")
	if got, err := heard(t, transport)("count to " + strconv.Itoa(end)); err != nil || got != want.String()+"done" {
		t.Errorf("over HTTP: %d bytes that end with %.20q, %v", len(got), got[max(0, len(got)-20):], err)
	}
	if n := proxy.Cuts(); n != 3 {
		t.Errorf("the session's stream was cut %d times, want 3", n)
	}
	if text := said.String(); strings.Contains(text, "missing") {
		t.Errorf("it says that messages may be missing: %s", text)
	}

	transport, _, _ = through(1, "ws")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	tap := conformance.Tap(t, conformance.Client, transport, &conformance.TapOptions{Expect: []string{"PRM-5"}})
	conn := must.Get(acp.Connect(ctx, tap, acp.ClientHandlers{}, nil))(t)
	defer conn.Close()
	session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/"})
	must.Do(t, err)
	_, err = session.Prompt(ctx, acp.TextBlock("count to "+strconv.Itoa(end)))
	exit, ok := errors.AsType[*acp.ExitError](err)
	if !ok || exit.State.ExitCode() != statusFailed || !strings.Contains(exit.Stderr, "1006") {
		t.Errorf("over a lost WebSocket: %v", err)
	}
	t.Log(err)
	g.end(t)
}

// lines is text that a process writes.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
