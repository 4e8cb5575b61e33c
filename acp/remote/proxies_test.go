package remote_test

// Real proxies in front of the server: nginx and Caddy with the settings of docs/remote.md, if they are installed.
// Times are a fifteenth: proxies cut what is idle for 4 s, and the server keeps alive every second.

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/actor"
	"github.com/acpgo/sdk/internal/test/must"
)

const (
	proxyHost    = "agent.example" // as the documentation names it
	idleCut      = 4 * time.Second
	proxyAlive   = time.Second
	proxyMessage = 4 << 20 // MaxMessage of the server, and the limit of the proxy
)

// settings returns the blocks of a language in the documentation.
func settings(t *testing.T, language string) []string {
	t.Helper()
	text := must.Get(os.ReadFile("../../docs/remote.md"))(t)
	var blocks []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// edit replaces what differs between the documentation and a trial; all of it must be there.
func edit(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the settings have no %q:\n%s", pairs[i], text)
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// certificate writes a certificate of the proxy and its key, and returns who trusts it.
func certificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: proxyHost}, DNSNames: []string{proxyHost},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	cert := must.Get(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	private := must.Get(x509.MarshalPKCS8PrivateKey(key))(t)
	pool := x509.NewCertPool()
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		text := pem.EncodeToMemory(block)
		if name == "cert.pem" {
			pool.AppendCertsFromPEM(text)
		}
		must.Do(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	return pool
}

// proxied is a server behind a proxy.
type proxied struct {
	t       *testing.T
	address string // the proxy's
	token   string // what is behind s3cret in that of the client
	trust   *x509.CertPool
	state   string       // the directory of those of the agents
	prompts atomic.Int64 // that they got
	slow    atomic.Bool  // the user takes longer to answer than the proxy waits
	servers []*remote.Server
}

// behind starts servers and, in front of them, a proxy, which configure makes of its address, the folder of its files, and
// the servers.
func behind(t *testing.T, keepAlive time.Duration, servers int, configure func(address, dir string, upstreams []string) *exec.Cmd) *proxied {
	t.Helper()
	t.Parallel() // most of the time nothing happens
	p := &proxied{t: t, state: t.TempDir()}
	var upstreams []string
	for range servers {
		upstreams = append(upstreams, p.serve(keepAlive))
	}
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	p.address = listener.Addr().String()
	must.Do(t, listener.Close())
	dir := t.TempDir()
	p.trust = certificate(t, dir)
	cmd := configure(p.address, dir, upstreams)
	var said logBuffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &said, &said
	must.Do(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }) // it may have ended
		<-ended
		timer.Stop()
		if t.Failed() {
			t.Logf("%s says:\n%s", cmd.Path, said.String())
		}
	})
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", p.address)
		if err == nil {
			conn.Close()
			return p
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the proxy ended with %v:\n%s", err, said.String())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("the proxy does not listen:\n%s", said.String())
		}
	}
}

// serve starts a server, as the documentation has it behind a proxy on the same machine.
func (p *proxied) serve(keepAlive time.Duration) (address string) {
	t := p.t
	agents := remote.Handler(p.agent, &remote.HandlerOptions{
		Authenticate: func(r *http.Request) (string, error) {
			token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer s3cret")
			if !ok {
				return "", errNo
			}
			return token, nil
		},
		AllowedHosts: []string{proxyHost},
		KeepAlive:    keepAlive, MaxMessage: proxyMessage,
	})
	p.servers = append(p.servers, agents)
	mux := http.NewServeMux()
	mux.Handle(remote.DefaultPath, agents)
	web := remote.NewHTTPServer(mux)
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := agents.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		// A proxy keeps connections that it may use again.
		if err := web.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// agent is the scripted agent; the prompts that it gets are counted.
func (p *proxied) agent(ctx context.Context, transport rpc.Transport, peer *remote.Peer) error {
	stream, err := transport.Connect(ctx)
	if err != nil {
		return err
	}
	counted := rpc.Wrap(stream, rpc.Wrapper{Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
		line, err := next()
		if bytes.Contains(line, []byte(`"method":"session/prompt"`)) {
			p.prompts.Add(1)
		}
		return line, err
	}})
	agent, err := actor.NewAgent(actor.AgentOptions{State: filepath.Join(p.state, peer.ConnectionID)})
	if err != nil {
		return err
	}
	return errors.Join(agent.Serve(ctx, opened{counted}), agent.Close())
}

// opened is a transport that is connected.
type opened struct{ rpc.Stream }

func (o opened) Connect(context.Context) (rpc.Stream, error) { return o.Stream, nil }

// client makes requests to the proxy by the name that it has.
func (p *proxied) client() *http.Client {
	_, port, err := net.SplitHostPort(p.address)
	if err != nil {
		p.t.Fatal(err)
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != net.JoinHostPort(proxyHost, port) {
				return nil, fmt.Errorf("no way to %s", address)
			}
			return new(net.Dialer).DialContext(ctx, network, p.address)
		},
		TLSClientConfig: &tls.Config{RootCAs: p.trust}, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 8,
	}
	p.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// url is where the agent is.
func (p *proxied) url(scheme string) string {
	_, port, _ := net.SplitHostPort(p.address)
	return scheme + "://" + net.JoinHostPort(proxyHost, port) + remote.DefaultPath
}

// connect connects a client. It has a file, and allows everything, in a slow turn only after some time.
func (p *proxied) connect(scheme string, o remote.DialOptions, expect ...string) (conn *acp.ClientConn, gaps *atomic.Int64) {
	p.t.Helper()
	gaps = new(atomic.Int64)
	o.HTTPClient, o.MinBackoff = p.client(), 10*time.Millisecond
	o.OnGap = func(string, error) { gaps.Add(1) }
	token := p.token
	o.Header = func(context.Context) (http.Header, error) {
		return http.Header{"Authorization": {"Bearer s3cret" + token}}, nil
	}
	conn = must.Get(acp.Connect(p.t.Context(), conformance.Tap(p.t, conformance.Client, remote.Dial(p.url(scheme), &o), &conformance.TapOptions{Expect: expect}), acp.ClientHandlers{
		RequestPermission: func(ctx context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			if p.slow.Load() {
				select {
				case <-time.After(2 * idleCut):
				case <-ctx.Done():
				}
			}
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(req.Options[0].OptionID)}, nil
		},
		ReadTextFile: func(context.Context, *acp.ClientSession, *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
			return &acp.ReadTextFileResponse{Content: "Buy milk."}, nil
		},
	}, &acp.ClientOptions{Info: acp.Implementation{Name: "client", Version: "1.0.0"}, ConnectTimeout: patience}))(p.t)
	p.t.Cleanup(func() { conn.Close() }) // whatever became of it
	return conn, gaps
}

// These prompts let the agent read a file, ask, and write until the turn is cancelled.
const (
	reading = "read notes.txt"
	asking  = "permission"
	endless = "Write a very long story."
)

// say has a turn, and returns what the agent says in it. An endless turn is cancelled.
func say(ctx context.Context, session *acp.ClientSession, text string) (said string, err error) {
	turn := session.Stream(ctx, acp.TextBlock(text))
	for update := range turn.Updates() {
		if said += update.AgentText(); said != "" && text == endless {
			turn.Cancel()
		}
	}
	res, err := turn.Result()
	if err == nil {
		said += " " + string(res.StopReason)
	}
	return said, err
}

// drive has whole turns through the proxy: with calls of the agent, many updates, one that is silent for longer than the
// proxy waits, long messages, and one that is cancelled.
func (p *proxied) drive(t *testing.T, scheme string) {
	before := p.prompts.Load()
	p.t = t
	conn, gaps := p.connect(scheme, remote.DialOptions{}, "PRM-5") // the prompt that is too long is never answered
	session, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	answered := func(prompt string) string { return "You said: " + prompt + " end_turn" }
	many := strings.Repeat("six words are in one update. ", 1000)
	long := strings.Repeat("x", proxyMessage-1000)
	prompts := []string{reading, asking, many, long, endless, reading}
	for i, prompt := range prompts {
		p.slow.Store(i == 1)
		said, err := say(t.Context(), session, prompt)
		ends := strings.HasSuffix(said, " cancelled")
		if err != nil || prompt == endless && !ends || prompt != endless && said != answered(prompt) {
			t.Errorf("%.20s: %.200q, %v", prompt, said, err)
		}
	}
	if n := p.prompts.Load() - before; n != int64(len(prompts)) {
		t.Errorf("the agent got %d prompts of %d", n, len(prompts))
	}
	if n := gaps.Load(); n > 0 {
		t.Errorf("streams were lost %d times", n)
	}
	_, err = say(t.Context(), session, strings.Repeat("x", proxyMessage))
	if closed, ok := errors.AsType[*remote.CloseError](err); scheme == "wss" && (!ok || closed.Code != 1009) {
		t.Errorf("too long: %v", err)
	}
	if status, ok := errors.AsType[*remote.StatusError](err); scheme == "https" && (!ok || status.Status != 413 || status.Size < proxyMessage) {
		t.Errorf("too long: %v", err)
	}
	t.Logf("%s: too long: %v", scheme, err)
}

// browser requires that a page of the server's own origin may connect, and no other.
func (p *proxied) browser(t *testing.T) {
	p.t = t
	client := p.client()
	own := strings.TrimSuffix(p.url("https"), remote.DefaultPath)
	for origin, want := range map[string]int{own: http.StatusOK, "https://evil.example": http.StatusForbidden, "https://" + proxyHost + ":1": http.StatusForbidden} {
		req := must.Get(http.NewRequestWithContext(t.Context(), "POST", p.url("https"), strings.NewReader(initialize)))(t)
		req.Header = http.Header{"Content-Type": {"application/json"}, "Origin": {origin}, "Authorization": {"Bearer s3cret"}}
		resp := must.Get(client.Do(req))(t)
		text, err := io.ReadAll(resp.Body)
		if resp.Body.Close(); err != nil || resp.StatusCode != want {
			t.Errorf("from %s: %s %s, %v, want %d", origin, resp.Status, text, err, want)
		}
	}
}

// installed finds a proxy's program, or skips the test.
func installed(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("SKIPPED: no trial of the settings for %s: %v", name, err)
	}
	return path
}

// nginx makes the command of nginx with the settings of the documentation.
func nginx(t *testing.T) func(address, dir string, upstreams []string) *exec.Cmd {
	program := installed(t, "nginx")
	return func(address, dir string, upstreams []string) *exec.Cmd {
		blocks := settings(t, "nginx")
		server := edit(t, blocks[0], "listen 443 ssl", "listen "+address+" ssl",
			"timeout 1h;", fmt.Sprintf("timeout %ds;", idleCut/time.Second), "client_max_body_size 64m;", fmt.Sprintf("client_max_body_size %dm;", proxyMessage>>20))
		if len(upstreams) > 1 {
			server = edit(t, blocks[1], "node1:8123", upstreams[0], "node2:8123", upstreams[1]) + edit(t, server, "127.0.0.1:8123", "agents")
		} else {
			server = edit(t, server, "127.0.0.1:8123", upstreams[0])
		}
		user := ""
		if os.Getuid() == 0 {
			user = "user root;" // that of the folder
		}
		var text strings.Builder
		text.WriteString("daemon off; worker_processes 1; pid pid; error_log stderr; " + user + "\nevents {}\nhttp {\naccess_log off;\n")
		for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			text.WriteString(kind + "_temp_path " + dir + ";\n")
		}
		config := filepath.Join(dir, "nginx.conf")
		must.Do(t, os.WriteFile(config, []byte(text.String()+server+"}\n"), 0o600))
		return exec.Command(program, "-p", dir, "-e", "stderr", "-c", config)
	}
}

// caddy makes the command of Caddy with one of the settings of the documentation.
func caddy(t *testing.T, block int, pairs ...string) func(address, dir string, upstreams []string) *exec.Cmd {
	program := installed(t, "caddy")
	return func(address, dir string, upstreams []string) *exec.Cmd {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		var replaced []string
		for i, name := range pairs {
			replaced = append(replaced, name, upstreams[i])
		}
		text := edit(t, settings(t, "caddy")[block], append(replaced, proxyHost+" {", fmt.Sprintf("https://%s:%s {\n\tbind 127.0.0.1\n\ttls cert.pem key.pem", proxyHost, port))...)
		config := filepath.Join(dir, "Caddyfile")
		must.Do(t, os.WriteFile(config, []byte("{\n\tadmin off\n\tauto_https off\n\tpersist_config off\n}\n"+text), 0o600))
		cmd := exec.Command(program, "run", "--config", config, "--adapter", "caddyfile")
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
		return cmd
	}
}

// TestProxy_Nginx has whole turns through nginx with the settings of the documentation.
func TestProxy_Nginx(t *testing.T) {
	p := behind(t, proxyAlive, 1, nginx(t))
	for _, scheme := range []string{"wss", "https"} {
		t.Run(scheme, func(t *testing.T) { p.drive(t, scheme) })
	}
	t.Run("browser", func(t *testing.T) { p.browser(t) })
}

// TestProxy_NginxCuts shows what the trial would see without comments and pings: nginx cuts what is idle.
func TestProxy_NginxCuts(t *testing.T) {
	p := behind(t, -1, 1, nginx(t))
	for _, scheme := range []string{"wss", "https"} {
		var expect []string
		if scheme == "wss" {
			expect = []string{"PRM-5"} // the prompt is never answered
		}
		conn, gaps := p.connect(scheme, remote.DialOptions{KeepAlive: -1}, expect...)
		session := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"}))(t)
		p.slow.Store(true)
		said, err := say(t.Context(), session, asking)
		switch {
		case scheme == "wss" && err == nil:
			t.Errorf("an idle WebSocket was not cut")
		case scheme == "https" && (err != nil || said != "You said: permission end_turn" || gaps.Load() == 0):
			t.Errorf("over HTTP the turn must go on: %q, %v, %d gaps", said, err, gaps.Load())
		}
		t.Logf("%s: %q, %v, %d gaps", scheme, said, err, gaps.Load())
	}
}

// TestProxy_Caddy has whole turns through Caddy with the settings of the documentation.
func TestProxy_Caddy(t *testing.T) {
	p := behind(t, proxyAlive, 1, caddy(t, 0, "127.0.0.1:8123"))
	for _, scheme := range []string{"wss", "https"} {
		t.Run(scheme, func(t *testing.T) { p.drive(t, scheme) })
	}
	t.Run("browser", func(t *testing.T) { p.browser(t) })
}

// TestProxy_NginxAffinity has connections over HTTP with several servers behind nginx, which chooses by the token.
func TestProxy_NginxAffinity(t *testing.T) { affinity(t, nginx(t)) }

// TestProxy_CaddyAffinity does so behind Caddy, which chooses by a cookie.
func TestProxy_CaddyAffinity(t *testing.T) {
	affinity(t, caddy(t, 1, "node1:8123", "node2:8123"))
}

func affinity(t *testing.T, proxy func(address, dir string, upstreams []string) *exec.Cmd) {
	p := behind(t, proxyAlive, 2, proxy)
	for n := range 16 {
		p.token = fmt.Sprint("-", n)
		conn, _ := p.connect("https", remote.DialOptions{})
		session := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"}))(t)
		if said, err := say(t.Context(), session, reading); err != nil || said != "You said: read notes.txt end_turn" {
			t.Errorf("%q, %v", said, err)
		}
	}
	for i, server := range p.servers {
		if server.Stats().Opened[remote.HTTP] == 0 {
			t.Errorf("server %d has had no connection", i)
		}
	}
}
