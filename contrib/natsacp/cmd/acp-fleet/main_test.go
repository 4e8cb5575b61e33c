package main

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/contrib/natsacp"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
)

// envMain makes the test binary behave as the command.
const envMain = "ACP_FLEET_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(envMain) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		installed.Remove()
		buildtest.Remove()
		os.Exit(status)
	}))
}

// command returns a command of acp-fleet.
func command(t *testing.T, args ...string) *exec.Cmd {
	exe := must.Get(os.Executable())(t)
	c := exec.CommandContext(t.Context(), exe, args...)
	c.Env = append(os.Environ(), envMain+"=1")
	c.Stderr = &strings.Builder{}
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 20 * time.Second
	return c
}

// start starts a command, and returns its output.
func start(t *testing.T, args ...string) *bufio.Scanner {
	t.Helper()
	c := command(t, args...)
	out := must.Get(c.StdoutPipe())(t)
	must.Do(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt) // it may have ended
		_, _ = io.Copy(io.Discard, out)
		if err := c.Wait(); err != nil && t.Failed() {
			t.Logf("%s: %v: %s", args[0], err, c.Stderr)
		}
	})
	return bufio.NewScanner(out)
}

func output(t *testing.T, args ...string) string {
	t.Helper()
	c := command(t, args...)
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, c.Stderr)
	}
	return string(out)
}

func line(t *testing.T, in *bufio.Scanner) string {
	t.Helper()
	if !in.Scan() {
		t.Fatalf("there is no more output: %v", in.Err())
	}
	return in.Text()
}

// The page's first steps: up, a second node, and the end of the first.
func TestUp(t *testing.T) {
	agent := []string{"--", buildtest.Program(t, "github.com/acpgo/sdk/internal/test/actor/actor"), "-state", filepath.Join(t.TempDir(), "state")}
	up := start(t, append([]string{"up", "--store", t.TempDir(), "--listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0"}, agent...)...)
	url := line(t, up)
	join := strings.Fields(strings.TrimPrefix(line(t, up), "join with "))

	said := ""
	client := must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, remote.Dial(url, nil), nil), acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			text := n.Update.AgentText()
			said += text
			return nil
		},
	}, nil))(t)
	defer client.Close()
	s := must.Get(client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: t.TempDir()}))(t)
	prompt := func(text string) {
		t.Helper()
		said = ""
		if _, err := s.Prompt(t.Context(), acp.TextBlock(text)); err != nil {
			t.Fatal(err)
		}
		if want := "You said: " + text; said != want {
			t.Errorf("the agent said %q, want %q", said, want)
		}
	}
	prompt("one")

	second := start(t, append(append([]string{"node", "--node", "second"}, join...), agent...)...)
	if got, want := line(t, second), "node second is ready"; got != want {
		t.Errorf("the node says %q, want %q", got, want)
	}
	if got := output(t, append([]string{"drain", "first"}, join...)...); !strings.HasPrefix(got, "node first is draining, sessions left: ") || !strings.HasSuffix(got, "\nnode first has ended\n") {
		t.Errorf("drain says %q", got)
	}
	prompt("two")

	var sessions []natsacp.Session
	must.Do(t, json.Unmarshal([]byte(output(t, append([]string{"sessions", "--json"}, join...)...)), &sessions))
	if len(sessions) != 1 || sessions[0].Node != "second" || sessions[0].Epoch != 2 || sessions[0].Turn.Number != 2 {
		t.Errorf("the sessions are %+v", sessions)
	}
	if got := output(t, append([]string{"nodes"}, join...)...); !strings.Contains(got, "second") || strings.Contains(got, "first") ||
		!regexp.MustCompile(`(?m) PROTOCOL$(?s:.*) 1, 2$`).MatchString(got) {
		t.Errorf("the nodes are %s", got)
	}
}

// With a collector in the environment, gateways and nodes export the spans of a turn, as children of the client's.
func TestTelemetry(t *testing.T) {
	var mu sync.Mutex
	sent := map[string]string{} // by path
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		sent[r.URL.Path] += string(body)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")
	agent := buildtest.Program(t, "github.com/acpgo/sdk/internal/test/actor/actor")
	up := start(t, "up", "--store", t.TempDir(), "--listen", "127.0.0.1:0", "--", agent, "-state", t.TempDir())
	client := must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, remote.Dial(line(t, up), nil), nil), acp.ClientHandlers{}, nil))(t)
	defer client.Close()
	s := must.Get(client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: t.TempDir()}))(t)
	trace := "0af7651916cd43dd8448eb211c80319c"
	req := &acp.PromptRequest{SessionID: s.ID(), Prompt: []acp.ContentBlock{acp.TextBlock("one")}}
	must.Do(t, req.Meta.Set("traceparent", "00-"+trace+"-b7ad6b7169203331-01"))
	if _, err := client.Prompt(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	id := must.Get(hex.DecodeString(trace))(t)
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		mu.Lock()
		traces, metrics := sent["/v1/traces"], sent["/v1/metrics"]
		mu.Unlock()
		spans := strings.Count(traces, string(id)) // of the gateway and of the node
		if spans == 2 && strings.Contains(traces, "session/new") && strings.Contains(traces, "acp-fleet") &&
			strings.Contains(traces, "end_turn") && strings.Contains(metrics, "acp.turn.duration") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the collector got %d spans of the turn, %q, %q", spans, traces, metrics)
		}
	}
}

// The NATS server of up is reached by others only on loopback addresses, or with TLS.
func TestNATSListen(t *testing.T) {
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:4222", "example.com:4222", "4222", "127.0.0.1:x"} {
		c := command(t, "up", "--store", t.TempDir(), "--listen", "127.0.0.1:0", "--nats-listen", address, "--", "agent")
		if err := c.Run(); err == nil || !strings.Contains(fmt.Sprint(c.Stderr), "--nats-listen") {
			t.Errorf("%s: %s, %v", address, c.Stderr, err)
		}
	}
	web := httptest.NewUnstartedServer(nil)
	web.StartTLS()
	pair := web.TLS.Certificates[0] // for 127.0.0.1
	web.Close()
	key := must.Get(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))(t)
	dir := t.TempDir()
	cert := filepath.Join(dir, "cert.pem")
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, filepath.Join(dir, "key.pem"): {Type: "PRIVATE KEY", Bytes: key},
	} {
		must.Do(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
	up := start(t, "up", "--store", t.TempDir(), "--listen", "127.0.0.1:0", "--nats-listen", ":0", "--nats-cert", cert,
		"--nats-key", filepath.Join(dir, "key.pem"), "--", buildtest.Program(t, "github.com/acpgo/sdk/internal/test/actor/actor"))
	line(t, up)
	join := strings.Fields(strings.TrimPrefix(line(t, up), "join with "))
	_, port, err := net.SplitHostPort(join[1][strings.Index(join[1], "//")+2:])
	if err != nil {
		t.Fatal(err)
	}
	join[1] = "tls://127.0.0.1:" + port
	if got := output(t, append([]string{"nodes", "--nats-ca", cert}, join...)...); !strings.Contains(got, "first") {
		t.Errorf("the nodes are %s", got)
	}
	if err := command(t, append([]string{"nodes", "--connect-timeout", "1ms"}, join...)...).Run(); err == nil {
		t.Error("the server was not verified")
	}
}
