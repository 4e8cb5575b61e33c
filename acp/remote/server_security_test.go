package remote_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/internal/test/pipenet"
)

var errNo = fmt.Errorf("no: %w", remote.ErrForbidden)

// withTokens lets alice and bob in, and knows mallory, who may not.
func withTokens() *remote.HandlerOptions {
	bearer := remote.BearerToken(map[string]string{"alice": "s3cret-a", "bob": "s3cret-b", "nobody": ""})
	return &remote.HandlerOptions{Authenticate: func(r *http.Request) (string, error) {
		if r.Header.Get("Authorization") == "Bearer s3cret-m" {
			return "", errNo
		}
		return bearer(r)
	}}
}

var (
	alice = []string{"Authorization", "Bearer s3cret-a"}
	bob   = []string{"Authorization", "Bearer s3cret-b"}
)

// TestREM80_NoAuthentication: without it a server is for its own machine.
func TestREM80_NoAuthentication(t *testing.T) {
	from := func(addr net.Addr, o *remote.HandlerOptions) int {
		f, handler := newFixture(t, o, nil)
		defer f.end()
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost/acp", nil)
		if addr != nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, addr))
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	outside := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}
	inside := &net.TCPAddr{IP: net.IPv6loopback, Port: 80}
	for _, c := range []struct {
		addr net.Addr
		o    *remote.HandlerOptions
		want int
	}{
		{outside, nil, 403},
		{nil, nil, 403}, // not known
		{inside, nil, 406},
		{&net.UnixAddr{Name: "socket"}, nil, 406},
		{outside, &remote.HandlerOptions{AllowUnauthenticated: true}, 406},
		{outside, withTokens(), 401},
	} {
		if got := from(c.addr, c.o); got != c.want {
			t.Errorf("%v, %+v: %d, want %d", c.addr, c.o, got, c.want)
		}
	}

	everywhere, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer everywhere.Close()
	here, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	open, closed := remote.Handler(nil, nil), remote.Handler(nil, withTokens())
	if open.CheckListener(everywhere) == nil || open.CheckListener(here) != nil || closed.CheckListener(everywhere) != nil {
		t.Error("CheckListener")
	}
}

// TestREM81_Authentication: everything is asked for a token, and a connection is there for its principal only.
func TestREM81_Authentication(t *testing.T) {
	f := serve(t, withTokens())
	p := f.open(alice...)
	if p.agent.peer.Principal != "alice" || p.agent.peer.Transport != remote.HTTP || p.agent.peer.RemoteAddr == "" {
		t.Errorf("%+v", p.agent.peer)
	}
	if h := p.agent.peer.Header; h.Get("Authorization") != "" || h.Get("Content-Type") != "application/json" {
		t.Errorf("the agent sees %v", h)
	}
	for who, c := range map[string]struct {
		header []string
		want   int
	}{
		"nobody":         {nil, 401},
		"an empty token": {[]string{"Authorization", "Bearer "}, 401},
		"a wrong token":  {[]string{"Authorization", "Bearer s3cret-x"}, 401},
		"another scheme": {[]string{"Authorization", "Basic s3cret-a"}, 401},
		"a cookie":       {[]string{"Cookie", "token=s3cret-a"}, 401},
		"who may not":    {[]string{"Authorization", "Bearer s3cret-m"}, 403},
		"another":        {bob, 404},
	} {
		for _, method := range []string{"POST", "GET", "DELETE"} {
			body := ""
			if method == "POST" {
				body = note("x", "{}")
			}
			header := append([]string{"Acp-Connection-Id", p.id, "Accept", "text/event-stream"}, c.header...)
			resp, text := f.do(method, body, header...)
			if resp.StatusCode != c.want || (c.want == 401) != (resp.Header.Get("WWW-Authenticate") != "") || strings.Contains(text, "s3cret") {
				t.Errorf("%s by %s: %s %s, want %d", method, who, resp.Status, text, c.want)
			}
		}
		if c.want != 404 {
			h := http.Header{}
			if len(c.header) > 0 {
				h.Set(c.header[0], c.header[1])
			}
			if _, resp, err := f.tryDial(&websocket.DialOptions{HTTPHeader: h}); err == nil || resp.StatusCode != c.want {
				t.Errorf("upgrade by %s: %v", who, err)
			}
		}
	}
	p.send(note("x", "{}")) // all that did nothing to it
	p.get("").want(note("x", "{}"))
	if n := len(f.agents); n != 0 {
		t.Errorf("%d agents were started", n)
	}
}

// TestREM81_BearerToken: a token is one principal's, always the same, and white space round it makes no difference.
func TestREM81_BearerToken(t *testing.T) {
	who := remote.BearerToken(map[string]string{"a": "one\r\n", "b": "two", "c": "two", "d": "two", "e": " ", "f": ""})
	for header, want := range map[string]string{
		"Bearer one": "a", "bearer  one ": "a", "Bearer two": "b", "Bearer ": "", "Bearer  ": "", "Bearer": "", "two": "",
	} {
		for range 20 {
			got, err := who(&http.Request{Header: http.Header{"Authorization": {header}}})
			if got != want || (err == nil) != (want != "") {
				t.Fatalf("%q: %q, %v, want %q", header, got, err, want)
			}
		}
	}
}

// TestREM82_Origin: pages of the own host and of allowed origins only, with every method and the upgrade.
func TestREM82_Origin(t *testing.T) {
	f := serve(t, &remote.HandlerOptions{AllowedOrigins: []string{"https://app.example", "http://localhost:5173"}})
	own := strings.TrimSuffix(f.url, remote.DefaultPath)
	for origin, ok := range map[string]bool{
		own:                           true,
		"https://app.example":         true,
		"https://APP.example":         true,
		"http://localhost:5173":       true,
		"http://app.example":          false,
		"https://app.example:444":     false,
		"https://app.example.evil":    false,
		"https://evil.example":        false,
		"http://127.0.0.1":            false, // another port
		"null":                        false,
		"":                            false,
		"file://":                     false,
		"https://app.example, " + own: false,
	} {
		for _, method := range []string{"POST", "GET", "DELETE", "PUT", "OPTIONS"} {
			resp, _ := f.do(method, "", "Origin", origin)
			if forbidden := resp.StatusCode == 403; forbidden == ok {
				t.Errorf("%s from %q: %s", method, origin, resp.Status)
			}
		}
		ws, resp, err := f.tryDial(&websocket.DialOptions{HTTPHeader: http.Header{"Origin": {origin}}})
		if err == nil {
			ws.CloseNow()
		}
		if (err == nil) != ok || !ok && resp.StatusCode != 403 {
			t.Errorf("upgrade from %q: %v", origin, err)
		}
	}
	// Twice is none of them.
	if resp, _ := f.do("POST", initialize, "Origin", own, "Origin", "https://evil.example"); resp.StatusCode != 403 {
		t.Errorf("two origins: %s", resp.Status)
	}
}

// TestREM83_Host: on a loopback address only its own names, and those that are allowed.
func TestREM83_Host(t *testing.T) {
	f := serve(t, &remote.HandlerOptions{AllowedHosts: []string{"acp.example.com"}})
	for host, ok := range map[string]bool{
		"localhost": true, "localhost:80": true, "LOCALHOST": true, "127.0.0.1": true, "127.1.2.3:4": true, "[::1]": true, "[::1]:80": true,
		"acp.example.com": true, "acp.example.com:443": true,
		"evil.example": false, "localhost.evil.example": false, "192.0.2.1": false, "127.0.0.1.evil.example": false,
	} {
		// With DNS rebinding both agree.
		for _, header := range [][]string{{"Host", host}, {"Host", host, "Origin", "http://" + host}} {
			for _, method := range []string{"POST", "GET", "DELETE"} {
				resp, _ := f.do(method, "", header...)
				if forbidden := resp.StatusCode == 403; forbidden == ok {
					t.Errorf("%s to %s: %s", method, host, resp.Status)
				}
			}
		}
		ws, _, err := f.tryDial(&websocket.DialOptions{Host: host})
		if err == nil {
			ws.CloseNow()
		}
		if (err == nil) != ok {
			t.Errorf("upgrade to %s: %v", host, err)
		}
	}
}

// TestREM84_CORS: off, and with a list for what is in it, exactly.
func TestREM84_CORS(t *testing.T) {
	const origin = "https://app.example"
	ask := []string{"Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type, acp-protocol-version, x-other"}
	if resp, _ := serve(t, nil).do("OPTIONS", "", ask...); resp.StatusCode != 403 || resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("off: %s %v", resp.Status, resp.Header)
	}
	o := withTokens()
	o.AllowedOrigins = []string{origin}
	f := serve(t, o)
	resp, _ := f.do("OPTIONS", "", ask...) // browsers ask without a token
	h := resp.Header
	if resp.StatusCode != 204 || h.Get("Access-Control-Allow-Origin") != origin || h.Get("Access-Control-Allow-Methods") != "POST, GET, DELETE" ||
		h.Get("Access-Control-Allow-Headers") != "Content-Type, Accept, Authorization, Last-Event-ID, Acp-Connection-Id, Acp-Session-Id, Acp-Protocol-Version" ||
		h.Get("Vary") != "Origin" {
		t.Errorf("preflight: %s %v", resp.Status, h)
	}
	resp, _ = f.do("POST", initialize, append(alice, "Origin", origin)...)
	h = resp.Header
	if resp.StatusCode != 200 || h.Get("Access-Control-Allow-Origin") != origin || h.Get("Access-Control-Expose-Headers") != "Acp-Connection-Id, Acp-Session-Id" {
		t.Errorf("%s %v", resp.Status, h)
	}
	if resp, _ = f.do("POST", initialize, alice...); resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("without an origin: %v", resp.Header)
	}
}

// TestREM85_TokenOfABrowser: a WebSocket can bring its token in the URL or as a subprotocol, if that is configured; it
// is neither logged nor sent back, and the agent does not see it.
func TestREM85_TokenOfABrowser(t *testing.T) {
	try := func(f *fixture, query string, protocols ...string) (*socket, int) {
		g := *f
		g.url += query
		ws, resp, err := g.tryDial(&websocket.DialOptions{Subprotocols: protocols})
		if resp == nil {
			t.Fatal(err)
		}
		for name, values := range resp.Header {
			if strings.Contains(strings.Join(values, " "), "s3cret") {
				t.Errorf("%s: %q", name, values)
			}
		}
		if err != nil {
			return nil, resp.StatusCode
		}
		t.Cleanup(func() { ws.CloseNow() })
		return &socket{fixture: f, Conn: ws, resp: resp}, resp.StatusCode
	}
	off := serve(t, withTokens())
	if _, status := try(off, "?token=s3cret-a"); status != 401 {
		t.Errorf("not configured: %d", status)
	}
	if _, status := try(off, "", "token.s3cret-a"); status != 401 {
		t.Errorf("not configured: %d", status)
	}
	o := withTokens()
	o.TokenQuery, o.TokenSubprotocol = "token", "token."
	authenticate := o.Authenticate
	o.Authenticate = func(r *http.Request) (string, error) { // which may log what it sees, but for that header
		r = r.Clone(r.Context())
		token := r.Header.Get("Authorization")
		r.Header.Del("Authorization")
		if seen := fmt.Sprint(r.URL, r.RequestURI, r.Header, r.Form); strings.Contains(seen, "s3cret") {
			t.Errorf("the authenticator sees %s", seen)
		}
		r.Header.Set("Authorization", token)
		return authenticate(r)
	}
	f := serve(t, o)
	for _, c := range []struct {
		query     string
		protocols []string
		want      int
	}{
		{"?token=s3cret-a", nil, 101},
		{"", []string{"acp", "token.s3cret-a"}, 101},
		{"?token=s3cret-x", nil, 401},
		{"", []string{"acp", "token.s3cret-x"}, 401},
	} {
		s, status := try(f, c.query, c.protocols...)
		if status != c.want {
			t.Errorf("%q %q: %d", c.query, c.protocols, status)
		}
		if s == nil {
			continue
		}
		s.send(initialize)
		s.message()
		if peer := receive(t, f.agents).peer; peer.Principal != "alice" || strings.Contains(fmt.Sprint(peer), "s3cret") {
			t.Errorf("the agent sees %+v", peer)
		}
	}
	g := *f
	g.url += "?token=s3cret-a"
	s := g.dial(&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer s3cret-b"}}})
	s.send(initialize)
	s.message()
	if peer := receive(t, f.agents).peer; peer.Principal != "bob" {
		t.Errorf("the header says bob, the agent sees %+v", peer)
	}
	// A stream of HTTP has headers.
	if resp, _ := f.do("GET", "", "Accept", "text/event-stream"); resp.StatusCode != 401 {
		t.Error(resp.Status)
	}
}

// TestREM86_Caps: connections in all, for each principal, and the length of ids.
func TestREM86_Caps(t *testing.T) {
	o := withTokens()
	o.MaxConnections, o.MaxConnectionsPerPrincipal = 5, 2
	f := serve(t, o)
	a := f.open(alice...)
	f.open(alice...)
	if resp, _ := f.do("POST", initialize, alice...); resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a third of alice: %s", resp.Status)
	}
	f.open(bob...)
	ws := f.dial(&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer s3cret-b"}}})
	if _, resp, err := f.tryDial(&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer s3cret-b"}}}); err == nil || resp.StatusCode != 429 {
		t.Errorf("a third of bob: %v", err)
	}
	if resp, _ := a.do("DELETE", "", a.header()...); resp.StatusCode != 202 {
		t.Error(resp.Status)
	}
	waitFor(t, func() bool { return f.Stats().Connections[remote.HTTP] == 2 })
	f.open(alice...)
	ws.CloseNow()
	waitFor(t, func() bool { return f.Stats().Connections[remote.WebSocket] == 0 })

	o = withTokens()
	o.MaxConnections = 2
	half := serve(t, o) // by default
	half.open(alice...)
	if resp, _ := half.do("POST", initialize, alice...); resp.StatusCode != 429 {
		t.Errorf("alice has more than half of the connections: %s", resp.Status)
	}
	half.open(bob...)

	g := serve(t, &remote.HandlerOptions{MaxConnections: 2})
	g.open()
	p := g.open()
	if resp, _ := g.do("POST", initialize); resp.StatusCode != 503 {
		t.Errorf("one too many: %s", resp.Status)
	}
	if _, resp, err := g.tryDial(nil); err == nil || resp.StatusCode != 503 {
		t.Errorf("one too many: %v", err)
	}
	long := strings.Repeat("x", 1025)
	if resp, _ := g.do("GET", "", "Accept", "text/event-stream", "Acp-Connection-Id", long); resp.StatusCode != 400 {
		t.Errorf("a connection's id of 1,025 bytes: %s", resp.Status)
	}
	if resp, _ := p.do("GET", "", p.header("Accept", "text/event-stream", "Acp-Session-Id", long)...); resp.StatusCode != 400 {
		t.Errorf("a session's id of 1,025 bytes: %s", resp.Status)
	}
}

// TestSlowRequests: whoever sends a header, or a body, too slowly is sent away.
func TestSlowRequests(t *testing.T) {
	bubble(t, &remote.HandlerOptions{BodyTimeout: 20 * time.Second}, func(f *fixture) {
		dial := f.client.Transport.(*http.Transport).DialContext
		for name, text := range map[string]string{
			"header":  "POST /acp HTTP/1.1\r\nHost: localhost\r\n",
			"refused": "POST /acp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{",
			"endless": "POST /acp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
			"body":    "POST /acp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
		} {
			conn, err := dial(context.Background(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if _, err := io.WriteString(conn, text); err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(bufio.NewReader(conn))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(began); took > 21*time.Second {
				t.Errorf("%s: sent away after %v with %q", name, took, answer)
			}
			if want := map[string]string{"body": "HTTP/1.1 408 ", "refused": "HTTP/1.1 415 ", "endless": "HTTP/1.1 415 "}[name]; !strings.HasPrefix(string(answer), want) {
				t.Errorf("%s: %q, want %s", name, answer, want)
			}
			conn.Close()
		}
	})
}

// TestNewHTTPServer_SlowBody: a body that a handler does not read bounds how long its answer takes; one that it has read
// does not.
func TestNewHTTPServer_SlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := pipenet.Listen()
		mux := http.NewServeMux()
		mux.HandleFunc("/long", func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Error(err)
			}
			select {
			case <-time.After(time.Hour):
			case <-r.Context().Done():
				t.Error("a request is cut whose body was read")
			}
		})
		srv := remote.NewHTTPServer(mux)
		served := make(chan error)
		go func() { served <- srv.Serve(l) }()
		for _, c := range []struct {
			path, length, want string
			took               time.Duration
		}{
			{"/long", "1", "HTTP/1.1 200 ", time.Hour},
			{"/none", "1000", "HTTP/1.1 404 ", time.Minute},
		} {
			conn, err := l.Dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if _, err := io.WriteString(conn, "POST "+c.path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: "+c.length+"\r\n\r\n{"); err != nil {
				t.Fatal(err)
			}
			answer, err := bufio.NewReader(conn).ReadString('\n')
			if took := time.Since(began); err != nil || !strings.HasPrefix(answer, c.want) || took != c.took {
				t.Errorf("%s: %q, %v after %v, want %s after %v", c.path, answer, err, took, c.want, c.took)
			}
			conn.Close()
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != http.ErrServerClosed {
			t.Error(err)
		}
	})
}

// TestHalfOpen: many WebSockets that never say anything are closed, and nothing is left of them.
func TestHalfOpen(t *testing.T) {
	bubble(t, nil, func(f *fixture) {
		sockets := make([]*socket, 200)
		for i := range sockets {
			sockets[i] = f.dial(nil)
		}
		for _, s := range sockets {
			s.ends(websocket.StatusPolicyViolation)
		}
		f.gone(remote.WebSocket, 10*time.Second)
		if n := len(f.agents); n != 0 {
			t.Errorf("%d agents were started", n)
		}
	})
}
