package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// patience is the time limit of what must happen.
const patience = time.Minute

// inspected is an inspection that is served.
type inspected struct {
	t      *testing.T
	in     *Inspection
	server *Server
	secret string // of taps
}

func serveTest(t *testing.T, o Options) *inspected {
	t.Helper()
	o.Version = "v0"
	in := must.Get(New(o))(t)
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	secret := NewTapSecret()
	server := in.Serve(listener, secret)
	t.Cleanup(func() {
		must.Do(t, errors.Join(server.Close(), in.Close()))
		if _, err := os.Stat(in.dir); !os.IsNotExist(err) {
			t.Errorf("the files are left: %v", err)
		}
	})
	return &inspected{t, in, server, secret}
}

// processAgent returns the agent that is the test binary.
func processAgent(kind string) *Agent {
	return &Agent{
		Words: []string{os.Args[0]},
		Connect: func(_ context.Context, stderr io.Writer) (rpc.Transport, error) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), testAgent+"="+kind)
			cmd.Stderr = stderr
			return rpc.Command(cmd), nil
		},
	}
}

// browser is a client of the page's HTTP.
type browser struct {
	i      *inspected
	c      *http.Client
	secret string
}

func (i *inspected) browser() *browser {
	i.t.Helper()
	b := &browser{i: i, c: &http.Client{Transport: &http.Transport{}}}
	i.t.Cleanup(b.c.CloseIdleConnections)
	_, b.secret, _ = strings.Cut(i.server.URL(), "#")
	p := b.open(0, "")
	p.until("hello", func() bool { return p.hello.Secret != "" })
	b.secret = p.hello.Secret
	p.conn.CloseNow()
	return b
}

// ask asks for a path, with the secret.
func (b *browser) ask(path string) (*http.Response, error) {
	b.i.t.Helper()
	r := mustRequest(b.i.t, "http://"+b.i.server.host+path)
	r.Header.Set("Authorization", "Bearer "+b.secret)
	return b.c.Do(r)
}

// get returns the body of a path.
func (b *browser) get(path string) []byte {
	b.i.t.Helper()
	res := must.Get(b.ask(path))(b.i.t)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		b.i.t.Fatalf("%s: %s, %v: %.300s", path, res.Status, err, text)
	}
	return text
}

// testPage is a page over the WebSocket.
type testPage struct {
	i        *inspected
	conn     *websocket.Conn
	hello    hello
	cursor   int64
	rows     map[string][]rowEvent // by source
	late     []lateEvent
	items    []itemEvent
	sources  []sourceEvent
	state    stateMessage
	replies  map[int]reply
	commands int
}

// open opens a page that knows the log up to a cursor.
func (b *browser) open(since int64, run string) *testPage {
	b.i.t.Helper()
	ctx, cancel := context.WithTimeout(b.i.t.Context(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+b.i.server.host+"/ws", &websocket.DialOptions{
		HTTPClient: b.c, HTTPHeader: http.Header{"Origin": {"http://" + b.i.server.host}},
	})
	must.Do(b.i.t, err)
	conn.SetReadLimit(-1)
	p := &testPage{i: b.i, conn: conn, rows: map[string][]rowEvent{}, replies: map[int]reply{}}
	b.i.t.Cleanup(func() { conn.CloseNow() })
	p.write(map[string]any{"do": "attach", "since": since, "run": run, "keys": []string{b.secret}})
	return p
}

func (p *testPage) write(message any) {
	p.i.t.Helper()
	text, err := json.Marshal(message)
	if err == nil {
		err = p.conn.Write(p.i.t.Context(), websocket.MessageText, text)
	}
	must.Do(p.i.t, err)
}

// until reads messages until there is what the test wants. The time limit is for each message.
func (p *testPage) until(what string, there func() bool) {
	p.i.t.Helper()
	for !there() {
		ctx, cancel := context.WithTimeout(p.i.t.Context(), patience)
		_, text, err := p.conn.Read(ctx)
		cancel()
		if err != nil {
			p.i.t.Fatalf("waiting for %s: %v; rows %v", what, err, p.summary())
		}
		p.take(text)
	}
}

// decoded returns a message or an event as what its type says.
func decoded[T any](p *testPage, text []byte) (v T) {
	p.i.t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		p.i.t.Fatalf("%v in %.300s", err, text)
	}
	return v
}

func (p *testPage) take(text []byte) {
	p.i.t.Helper()
	switch is := decoded[struct{ Is string }](p, text).Is; is {
	case "hello":
		p.hello = decoded[hello](p, text)
	case "state":
		p.state = decoded[stateMessage](p, text)
	case "reply":
		r := decoded[reply](p, text)
		p.replies[r.ID] = r
	case "log":
		l := decoded[logMessage](p, text)
		p.cursor = l.Cursor
		for _, event := range l.Events {
			p.take(event)
		}
	case "source":
		p.sources = append(p.sources, decoded[sourceEvent](p, text))
	case "row":
		r := decoded[rowEvent](p, text)
		p.rows[r.Source] = append(p.rows[r.Source], r)
	case "late":
		p.late = append(p.late, decoded[lateEvent](p, text))
	case "item":
		p.items = append(p.items, decoded[itemEvent](p, text))
	default:
		p.i.t.Fatalf("unknown message or event %.300s", text)
	}
}

// summary lists the rows.
func (p *testPage) summary() []string {
	var lines []string
	for _, rows := range p.rows {
		for _, r := range rows[max(0, len(rows)-30):] {
			lines = append(lines, fmt.Sprintf("%s/%d %s %s %s %.80s", r.Source, r.N, r.From, r.Kind, r.Method, r.Raw+r.Text))
		}
	}
	return lines
}

// do sends a command, and returns the reply.
func (p *testPage) do(members map[string]any) reply {
	p.i.t.Helper()
	p.commands++
	id := p.commands
	members["id"] = id
	p.write(members)
	p.until(fmt.Sprint("the reply to ", members), func() bool { _, ok := p.replies[id]; return ok })
	return p.replies[id]
}

// request sends a request, and returns its response.
func (p *testPage) request(source, method string, params any) rowEvent {
	p.i.t.Helper()
	return p.response(source, p.do(map[string]any{"do": "send", "source": source, "method": method, "params": params}))
}

func (p *testPage) response(source string, r reply) rowEvent {
	p.i.t.Helper()
	if r.Error != "" {
		p.i.t.Fatal(r.Error)
	}
	return p.row(source, "the response "+r.Sent, func(row *rowEvent) bool { return row.Re > 0 && row.ID == r.Sent && row.From == "agent" })
}

// row waits for a row.
func (p *testPage) row(source, what string, match func(*rowEvent) bool) (found rowEvent) {
	p.i.t.Helper()
	seen := 0
	p.until(what, func() bool {
		for _, r := range p.rows[source][seen:] {
			if match(&r) {
				found = r
				return true
			}
			seen++
		}
		return false
	})
	return found
}

// connect starts the agent, and begins a session.
func (p *testPage) connect(source string) {
	p.i.t.Helper()
	if r := p.do(map[string]any{"do": "start"}); r.Error != "" {
		p.i.t.Fatal(r.Error)
	}
	p.request(source, "initialize", map[string]any{
		"protocolVersion": 1, "clientInfo": map[string]any{"name": "test", "version": "1"},
		"clientCapabilities": map[string]any{"fs": map[string]any{"readTextFile": true, "writeTextFile": true}, "terminal": true},
	})
	if r := p.request(source, "session/new", map[string]any{"cwd": "/", "mcpServers": []any{}}); r.Session != "s-1" {
		p.i.t.Errorf("the session of session/new is %q", r.Session)
	}
}

func (p *testPage) prompt(source, text string) reply {
	p.i.t.Helper()
	return p.do(map[string]any{"do": "send", "source": source, "method": "session/prompt", "params": map[string]any{
		"sessionId": "s-1", "prompt": []any{map[string]any{"type": "text", "text": text}},
	}})
}

// findings returns the findings of all rows of a source.
func (p *testPage) findings(source string) []string {
	var all []string
	for _, r := range p.rows[source] {
		for _, f := range r.Findings {
			all = append(all, fmt.Sprintf("%d %s %s: %s", r.N, f.Rule, f.Pointer, f.Message))
		}
	}
	for _, l := range p.late {
		if l.Source == source {
			all = append(all, fmt.Sprintf("%d %s %s: %s", l.N, l.Finding.Rule, l.Finding.Pointer, l.Finding.Message))
		}
	}
	return all
}

func TestSecurity(t *testing.T) {
	i := serveTest(t, Options{})
	must.Do(t, i.in.Read("run.jsonl", strings.NewReader(small), ""))
	home := "http://" + i.server.host
	secret := "Bearer " + i.browser().secret
	bare := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(method, path string, header http.Header) *http.Response {
		r := must.Get(http.NewRequest(method, home+path, nil))(t)
		r.Header = header
		if host := header.Get("Host"); host != "" {
			r.Host = host
		}
		res := must.Get(bare.Do(r))(t)
		res.Body.Close()
		return res
	}
	with := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	_, token, _ := strings.Cut(i.server.URL(), "#")
	upgrade := []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}
	static := []string{"/", "/app.js", "/app.css"}
	paths := []string{"/schema/1", "/find?q=x", "/raw?source=1&n=1", "/export?source=1&as=recording", "/nothing"}
	for _, test := range []struct {
		name, method, path string
		header             http.Header
		want               int
	}{
		{"a token is no secret", "GET", "/find?q=x", with("Authorization", "Bearer "+token), 403},
		{"a token in the query", "GET", "/find?q=x&token=" + token, with(), 403},
		{"a wrong secret", "GET", "/find?q=x", with("Authorization", "Bearer x"), 403},
		{"an empty secret", "GET", "/find?q=x", with("Authorization", "Bearer "), 403},
		{"the secret as a cookie", "GET", "/find?q=x", with("Cookie", "acp-inspect="+secret), 403},
		{"a foreign host", "GET", "/", with("Host", "evil.example"), 403},
		{"a foreign host, with the secret", "GET", "/find?q=x", with("Host", "evil.example", "Authorization", secret), 403},
		{"the name localhost", "GET", "/find?q=x", with("Host", strings.Replace(i.server.host, "127.0.0.1", "localhost", 1), "Authorization", secret), 403},
		{"a host without the port", "GET", "/find?q=x", with("Host", "127.0.0.1", "Authorization", secret), 403},
		{"another origin", "GET", "/find?q=x", with("Origin", "https://evil.example", "Authorization", secret), 403},
		{"another port", "GET", "/find?q=x", with("Origin", "http://127.0.0.1:1", "Authorization", secret), 403},
		{"an opaque origin", "GET", "/find?q=x", with("Origin", "null", "Authorization", secret), 403},
		{"a form", "POST", "/find", with("Authorization", secret), 405},
		{"a preflight", "OPTIONS", "/ws", with("Origin", "https://evil.example"), 403},
		{"a WebSocket of another origin", "GET", "/ws", with(append(slices.Clone(upgrade), "Origin", "https://evil.example", "Authorization", secret)...), 403},
		{"a WebSocket of another port", "GET", "/ws", with(append(slices.Clone(upgrade), "Origin", "http://127.0.0.1:1", "Authorization", secret)...), 403},
		{"a WebSocket without an origin", "GET", "/ws", with(append(slices.Clone(upgrade), "Authorization", secret)...), 403},
		{"a tap without the secret", "GET", "/tap", with(upgrade...), 403},
		{"a tap with another secret", "GET", "/tap", with(append(slices.Clone(upgrade), tapHeader, "n."+proof("x", "tap", "n"))...), 403},
		{"a tap of a page", "GET", "/tap", with(append(slices.Clone(upgrade), tapHeader, "n."+proof(i.secret, "tap", "n"), "Origin", home)...), 403},
		{"the secret", "GET", "/find?q=x", with("Authorization", secret), 200},
		{"the secret and the origin", "GET", "/find?q=x", with("Authorization", secret, "Origin", home), 200},
		{"a file elsewhere", "GET", "/../inspect.go", with("Authorization", secret), 404},
		{"a source that is not there", "GET", "/raw?source=2&n=1", with("Authorization", secret), 404},
		{"a row that is not there", "GET", "/raw?source=1&n=-1", with("Authorization", secret), 404},
	} {
		if res := get(test.method, test.path, test.header); res.StatusCode != test.want {
			t.Errorf("%s: %s, want %d", test.name, res.Status, test.want)
		}
	}
	for _, path := range slices.Concat(static, paths) {
		res := get("GET", path, with())
		if want := map[bool]int{true: 200, false: 403}[slices.Contains(static, path)]; res.StatusCode != want {
			t.Errorf("%s without the secret: %s, want %d", path, res.Status, want)
		}
		for _, res := range []*http.Response{res, get("GET", path, with("Authorization", secret))} {
			h := res.Header
			csp := h.Get("Content-Security-Policy")
			for _, part := range []string{"default-src 'none'", "frame-ancestors 'none'", "script-src 'self'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'"} {
				if !strings.Contains(csp, part) {
					t.Errorf("%s: the policy %q lacks %s", path, csp, part)
				}
			}
			if strings.Contains(csp, "unsafe") || h.Get("X-Frame-Options") != "DENY" || h.Get("X-Content-Type-Options") != "nosniff" ||
				h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" || h.Get("Access-Control-Allow-Origin") != "" ||
				h.Get("Set-Cookie") != "" {
				t.Errorf("%s: %v", path, h)
			}
		}
	}
}

// TestKeys: the fragment of a URL admits one page, once. That page gets the secret, for the time when it is loaded again.
func TestKeys(t *testing.T) {
	i := serveTest(t, Options{})
	b := i.browser()
	b.open(0, "").until("hello", func() bool { return true })
	before, fragment, ok := strings.Cut(i.server.URL(), "#")
	if !ok || before != "http://"+i.server.host+"/" || fragment == b.secret {
		t.Fatalf("the URL is %s#%s", before, fragment)
	}
	for _, test := range []struct {
		name string
		keys []string
		want bool
	}{
		{"none", nil, false},
		{"an empty one", []string{""}, false},
		{"a wrong one", []string{"x"}, false},
		{"a token", []string{fragment}, true},
		{"the token again", []string{fragment}, false},
		{"the token again, with the secret", []string{fragment, b.secret}, true},
		{"the secret", []string{b.secret}, true},
		{"the secret of taps", []string{i.secret}, false},
	} {
		conn, _, err := websocket.Dial(t.Context(), "ws://"+i.server.host+"/ws", &websocket.DialOptions{
			HTTPClient: b.c, HTTPHeader: http.Header{"Origin": {"http://" + i.server.host}},
		})
		must.Do(t, err)
		attach, err := json.Marshal(map[string]any{"do": "attach", "keys": test.keys})
		if err == nil {
			err = conn.Write(t.Context(), websocket.MessageText, attach)
		}
		must.Do(t, err)
		conn.SetReadLimit(-1)
		_, text, err := conn.Read(t.Context())
		if got := err == nil && bytes.Contains(text, []byte(`"hello"`)); got != test.want || !got && websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
			t.Errorf("%s: %v, %v, want %v", test.name, got, err, test.want)
		}
		conn.CloseNow()
	}
	var report bytes.Buffer
	if err := i.in.WriteReport(&report); err != nil || strings.Contains(report.String(), b.secret) {
		t.Errorf("the report has the secret, %v", err)
	}
}

// TestStrangers: connections that have not shown a secret are bounded, and do not keep a page out.
func TestStrangers(t *testing.T) {
	i := serveTest(t, Options{})
	first := i.browser()
	p := first.open(0, "")
	p.until("hello", func() bool { return p.hello.Is != "" })
	kinds := []string{
		"", "GET / HTTP/1.1\r\nHost: " + i.server.host + "\r\n\r\n",
		"GET /ws HTTP/1.1\r\nHost: " + i.server.host + "\r\nOrigin: http://" + i.server.host +
			"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
	}
	ended := make(chan struct{})
	const all = 3 * maxStrangers
	for n := range all {
		conn := must.Get(net.Dial("tcp", i.server.host))(t)
		t.Cleanup(func() { conn.Close() })
		must.Get(io.WriteString(conn, kinds[n%len(kinds)]))(t)
		go func() {
			_, _ = io.Copy(io.Discard, conn) // until the server or the test ends it
			select {
			case ended <- struct{}{}:
			case <-t.Context().Done():
			}
		}()
	}
	for n := range all - maxStrangers {
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatalf("%d connections of %d were closed", n, all)
		}
	}
	i.browser()
	first.get("/find?q=x")
	if r := p.do(map[string]any{"do": "match", "pattern": "a", "text": "a"}); r.Error != "" {
		t.Error(r.Error)
	}
}

// TestMatch: a pattern that takes forever in JavaScript does not here, and what Go does not know is left to the agent.
func TestMatch(t *testing.T) {
	long := strings.Repeat("a", 1000) + "!"
	for _, test := range [][3]string{
		{"^(a+)+$", long, "no"}, {"^(a+)+$", "aaa", ""}, {"^(?=a)b", "c", ""}, {strings.Repeat("(a{99}){9}", 101), "b", ""},
	} {
		if got := match(test[0], test[1]); got != test[2] {
			t.Errorf("%.20s, %.20s: %q", test[0], test[1], got)
		}
	}
}

func mustRequest(t *testing.T, url string) *http.Request {
	r := must.Get(http.NewRequest(http.MethodGet, url, nil))(t)
	return r
}

// TestManyConnections: a recording may have more connections than the process may have files open, and all can be read.
func TestManyConnections(t *testing.T) {
	i := serveTest(t, Options{})
	var limit int
	if dir, err := os.ReadDir("/proc/self/fd"); err != nil {
		t.Skip("SKIPPED: it needs /proc")
	} else {
		limit = len(dir) + 50
	}
	const connections = 300
	must.Do(t, i.in.Read("run.jsonl", strings.NewReader(strings.Repeat(small, connections)), ""))
	if open, err := os.ReadDir("/proc/self/fd"); err != nil || len(open) > limit {
		t.Errorf("%d files are open, %v", len(open), err)
	}
	sources := i.in.all()
	if len(sources) != connections {
		t.Fatalf("%d sources", len(sources))
	}
	last := sources[connections-1]
	if line, err := last.line(4); err != nil || string(line) != "<b>no message</b>" {
		t.Errorf("%q, %v", line, err)
	}
	last.note(fmt.Errorf("after the end"))
	var report bytes.Buffer
	if err := i.in.WriteReport(&report); err != nil || !strings.Contains(report.String(), "after the end") {
		t.Errorf("the report: %v", err)
	}
}

// small is a recording with a finding in line 3, a line that is no message, standard error, and a line that cannot be
// read.
const small = `{"recording":1,"tool":"acp","command":["my-agent"],"date":"2026-01-02T15:04:05.123Z","masked":true}
{"t":0.5,"from":"client","raw":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}"}
{"t":10.5,"from":"agent","raw":"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"1\"}}"}
{"t":11,"from":"agent","stderr":"loading"}
{"t":12,"from":"agent","raw":"<b>no message</b>"}
not JSON
{"t":13,"from":"agent","bytes":"/w=="}
{"t":14,"from":"client","lost":12}
{"t":15,"exit":{"code":1,"signal":null},"closed":"agent"}
`

func TestFile(t *testing.T) {
	i := serveTest(t, Options{})
	must.Do(t, i.in.Read("run.jsonl", strings.NewReader(small), ""))
	p := i.browser().open(0, "")
	p.until("the end", func() bool { return len(p.state.Sources) > 0 })
	var got []string
	for _, r := range p.rows["1"] {
		got = append(got, fmt.Sprintf("%d %v %s %s>%s %s re %d %q%q", r.N, r.T, r.Kind, r.From, r.To, r.Method, r.Re, r.Raw, r.Text))
	}
	want := []string{
		`1 0.5 request client>agent initialize re 0 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}"""`,
		`2 10.5 response agent>client initialize re 1 "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"1\"}}"""`,
		`3 11 stderr agent>  re 0 "loading"""`,
		`4 12 invalid agent>client  re 0 "<b>no message</b>"""`,
		`5 -1 gap >  re 0 """line 6: not JSON"`,
		`6 13 invalid agent>client  re 0 "�"""`,
		`7 -1 gap >  re 0 """line 8: not recorded because the recorder could not keep up: 12 bytes from the client"`,
		`8 15 end >  re 0 """the agent has ended the connection; the agent's exit status is 1"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if r := p.rows["1"][1]; *r.Delay != 10 || len(r.Findings) == 0 || !slices.ContainsFunc(r.Findings, func(f findingInfo) bool {
		return f.Pointer == "/result/protocolVersion" && f.Side == "agent"
	}) {
		t.Errorf("the response is %+v", r)
	}
	s := p.state.Sources[0]
	if s.Open || s.Messages != 4 || s.Rows != 8 || s.Findings.Must == 0 || s.Stats.Messages != 4 || len(s.Sides) != 2 {
		t.Errorf("the state is %+v", s)
	}
	if src := p.sources[0]; src.Name != "run.jsonl" || src.Kind != "file" || !src.Masked || src.Date != "2026-01-02T15:04:05.123Z" {
		t.Errorf("the source is %+v", src)
	}
	b := i.browser()
	if line := b.get("/raw?source=1&n=6"); string(line) != "\xff" {
		t.Errorf("row 6 is %q", line)
	}
	var found found
	if err := json.Unmarshal(b.get("/find?q=NO+message"), &found); err != nil || !slices.Equal(found.Rows, []foundRow{{"1", 4}}) || found.More {
		t.Errorf("found %v, %v", found, err)
	}
	// The exported recording is the same, but for the line that cannot be read.
	if exported, want := string(b.get("/export?source=1&as=recording")), strings.Replace(small, "not JSON\n", "", 1); !sameRecording(t, exported, want) {
		t.Errorf("exported:\n%s\nwant:\n%s", exported, want)
	}
	for _, bad := range []string{"", "hello\n", "{}\n"} {
		if err := i.in.Read("bad", strings.NewReader(bad), ""); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
	// A recording that ends in the middle.
	must.Do(t, i.in.Read("cut.jsonl", strings.NewReader(small[:len(small)-200]), ""))
	p.until("the truncated recording", func() bool { return len(p.state.Sources) == 2 && !p.state.Sources[1].Open })
	if last := p.rows["2"][len(p.rows["2"])-1]; last.Kind != "gap" {
		t.Errorf("the truncated recording ends with %+v", last)
	}
}

// sameRecording reports whether two recordings have the same entries.
func sameRecording(t *testing.T, a, b string) bool {
	read := func(text string) (entries []string) {
		r := recording.NewReader(strings.NewReader(text), nil)
		for {
			e, err := r.Read()
			if err == io.EOF {
				return entries
			}
			must.Do(t, err)
			if e.Kind != recording.KindHeader {
				entries = append(entries, fmt.Sprintf("%v %v %v %q %+v %v", e.Kind, e.Time.UTC(), e.Direction, e.Line, e.End != nil, e.Err != nil))
			}
		}
	}
	return slices.Equal(read(a), read(b))
}

// Each write and each command of a remote agent waits for a hand, and reading does not.
func TestConsent(t *testing.T) {
	folder := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(folder, "a.txt"), []byte("from the disk"), 0o600))
	agent := processAgent("right")
	agent.Remote = true
	i := serveTest(t, Options{Agent: agent, Folder: folder})
	p := i.browser().open(0, "")
	p.connect("1")
	said := func(text string) {
		t.Helper()
		p.row("1", "the agent saying "+text, func(r *rowEvent) bool { return r.Update == "agent_message_chunk" && strings.Contains(r.Raw, text) })
	}
	p.prompt("1", "read "+filepath.Join(folder, "a.txt"))
	said("from the disk")
	last := 0
	decide := func(method string, allow bool) {
		t.Helper()
		row := p.row("1", "the request", func(r *rowEvent) bool { return r.Method == method && r.Kind == "request" && r.N > last })
		last = row.N
		option, seen := 1, false
		if allow {
			option = 0
		}
		for began := time.Now(); ; { // until the request has reached the question, and that has been seen for long enough
			r := p.do(map[string]any{"do": "choose", "source": "1", "row": row.N, "option": option})
			switch {
			case r.Error == "":
				if allow && !seen {
					t.Error("allowed before it was seen")
				}
				return
			case time.Since(began) > time.Minute:
				t.Fatal(r.Error)
			case strings.Contains(r.Error, "nothing in this row"):
			case !seen:
				seen = true
				p.do(map[string]any{"do": "seen", "source": "1", "row": row.N})
			case !strings.Contains(r.Error, view.ErrTooEarly.Error()):
				t.Fatal(r.Error)
			}
		}
	}
	for _, allow := range []bool{false, true} {
		path := filepath.Join(folder, fmt.Sprint(allow))
		wrote := p.prompt("1", "write "+path+" text")
		decide("fs/write_text_file", allow)
		p.response("1", wrote)
		if _, err := os.Stat(path); (err == nil) != allow {
			t.Errorf("allow %v: %v", allow, err)
		}
		p.prompt("1", "run "+filepath.Join(folder, "x"))
		decide("terminal/create", allow)
		said(map[bool]string{false: "not permitted", true: "term_"}[allow])
	}
	p.prompt("1", "write "+filepath.Join(folder, "masked")+" ghp_"+strings.Repeat("a1B2", 9))
	said("masked: see --no-mask")
	if r := p.do(map[string]any{"do": "choose", "source": "1", "row": last, "option": 0}); r.Error == "" {
		t.Error("a request is allowed twice")
	}
}

// A question ends with its turn, or when the user cancels that.
func TestQuestionsEndWithTheirTurn(t *testing.T) {
	agent := processAgent("right")
	agent.Remote = true
	folder := t.TempDir()
	p := serveTest(t, Options{Agent: agent, Folder: folder}).browser().open(0, "")
	p.connect("1")
	last := 0
	for prompt, want := range map[string]string{
		"late permission": `"cancelled"`, "permission": `"cancelled"`,
		"late write " + filepath.Join(folder, "a") + " x": "not permitted", "late run touch": "not permitted",
	} {
		p.prompt("1", prompt)
		asked := p.row("1", "the question", func(r *rowEvent) bool {
			return r.From == "agent" && r.Kind == "request" && r.N > last
		})
		last = asked.N
		if prompt == "permission" {
			p.do(map[string]any{"do": "send", "source": "1", "method": "session/cancel", "params": map[string]any{"sessionId": "s-1"}, "notification": true})
		}
		answer := p.row("1", "the answer", func(r *rowEvent) bool { return r.Re == asked.N })
		if !answer.Auto || !strings.Contains(answer.Raw, want) {
			t.Errorf("%s: answered by %s", prompt, answer.Raw)
		}
		if r := p.do(map[string]any{"do": "choose", "source": "1", "row": asked.N, "option": 0}); !strings.Contains(r.Error, "nothing in this row") {
			t.Errorf("%s: the question can be answered: %+v", prompt, r)
		}
	}
}

// A permission request gets one answer, also while that waits to be written.
func TestAnsweredOnce(t *testing.T) {
	q := &question{session: "s", id: json.RawMessage("7"), Question: view.Ask(&acp.RequestPermissionRequest{
		SessionID: "s", Options: []acp.PermissionOption{acp.AllowOnce("y", "Yes")}}, nil)}
	q.Shown(view.Whole, time.Now().Add(-time.Minute))
	s := &source{questions: map[int]*question{1: q}, over: map[string]int{}}
	l := &live{source: s, ended: make(chan struct{})}
	s.respond = l.respond
	if err := l.choose(&command{Row: 1}); !errors.Is(err, errQueue) {
		t.Errorf("an answer that does not fit: %v", err)
	}
	l.out = make(chan outgoing, 3)
	must.Do(t, l.choose(&command{Row: 1}))
	if err := l.choose(&command{Row: 1}); err == nil {
		t.Error("the question can be answered twice")
	}
	s.withdraw("s", 2)
	if answer := <-l.out; !strings.Contains(string(answer.line), `"selected"`) || len(l.out) > 0 {
		t.Errorf("the answer is %s, and %d follow", answer.line, len(l.out))
	}
}

// What the server keeps of messages is bounded, and it counts findings by their levels.
func TestBounds(t *testing.T) {
	for text, want := range map[string]string{"abcd": "abcd", "abcde": "abcd", "abc\u00e9": "abc", "ab\xff\xffe": "ab\xff\xff"} {
		var r rowEvent
		if setText(&r, []byte(text), 4); r.Raw != want || r.Cut != (len(text) > 4) || r.Size != len(text) {
			t.Errorf("%q: %q, cut %v, %d bytes", text, r.Raw, r.Cut, r.Size)
		}
	}
	var c capabilities
	for _, length := range []int{200, 201} {
		c.add(conformance.Agent, conformance.Request, strings.Repeat("m", length), nil)
	}
	if len(c.used) != 1 {
		t.Errorf("%d methods are counted", len(c.used))
	}
	s := &source{}
	for _, level := range []conformance.Level{conformance.Must, conformance.Should, conformance.ShouldNot, conformance.Advice} {
		s.finding(&conformance.Finding{Level: level})
	}
	if want := (findingCount{Must: 1, Should: 2, Advice: 1}); s.findings != want {
		t.Errorf("findings: %+v", s.findings)
	}
}

func TestLive(t *testing.T) {
	folder := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(folder, "a.txt"), []byte("from the disk"), 0o600))
	i := serveTest(t, Options{Agent: processAgent("right"), Folder: folder})
	b := i.browser()
	p := b.open(0, "")
	p.connect("1")
	if p.response("1", p.prompt("1", "hello")).Session != "s-1" {
		t.Error("the response to the prompt has no session")
	}
	// A permission request, which a second page answers.
	q := b.open(0, "")
	asked := p.prompt("1", "permission")
	question := q.row("1", "the permission request", func(r *rowEvent) bool { return r.Method == "session/request_permission" })
	answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`, question.ID)
	if r := q.do(map[string]any{"do": "raw", "source": "1", "line": answer}); r.Error != "" {
		t.Fatal(r.Error)
	}
	p.response("1", asked)
	if r := p.row("1", "the answer", func(r *rowEvent) bool { return r.Re == question.N }); r.From != "client" || r.Auto {
		t.Errorf("the answer is %+v", r)
	}
	// Cancellation.
	waiting := p.prompt("1", "wait")
	p.do(map[string]any{"do": "send", "source": "1", "method": "session/cancel", "params": map[string]any{"sessionId": "s-1"}, "notification": true})
	if r := p.response("1", waiting); !strings.Contains(r.Raw, "cancelled") {
		t.Errorf("the cancelled turn ends with %s", r.Raw)
	}
	// Files from the folder, from memory, and by the user.
	said := func(text string) {
		t.Helper()
		p.row("1", "the agent saying "+text, func(r *rowEvent) bool { return r.Update == "agent_message_chunk" && strings.Contains(r.Raw, text) })
	}
	p.prompt("1", "read "+filepath.Join(folder, "a.txt"))
	said("from the disk")
	if r := p.row("1", "the served file", func(r *rowEvent) bool { return r.Method == "fs/read_text_file" && r.Kind == "response" }); !r.Auto {
		t.Errorf("the answer is %+v", r)
	}
	p.prompt("1", "read /etc/hostname")
	said("outside the directories")
	if r := p.do(map[string]any{"do": "answers", "source": "1", "answers": answers{"memory", "memory"}}); r.Error != "" {
		t.Fatal(r.Error)
	}
	p.prompt("1", "write /m.txt in-memory")
	said("result {}")
	p.prompt("1", "read /m.txt")
	said("in-memory")
	p.prompt("1", "run anything")
	said("simulated-1")
	if r := p.do(map[string]any{"do": "answers", "source": "1", "answers": answers{"ask", "ask"}}); r.Error != "" {
		t.Fatal(r.Error)
	}
	p.prompt("1", "read /asked.txt")
	open := p.row("1", "a file that the user serves", func(r *rowEvent) bool {
		return strings.Contains(r.Raw, "/asked.txt") && r.Kind == "request" && r.From == "agent"
	})
	p.do(map[string]any{"do": "raw", "source": "1", "line": fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"by hand","data":{"uri":"file:///asked.txt"}}}`, open.ID)})
	said("by hand")
	for _, bad := range []map[string]any{
		{"do": "answers", "source": "1", "answers": answers{"everything", "ask"}}, {"do": "raw", "source": "1", "line": "a\nb"}, {"do": "raw", "source": "2", "line": "a"},
		{"do": "nothing", "source": "1"}, {"do": "answers", "source": "1"},
	} {
		if r := p.do(bad); r.Error == "" {
			t.Errorf("%v is done", bad)
		}
	}
	// Nobody has broken anything so far.
	if found := p.findings("1"); len(found) > 0 {
		t.Errorf("findings: %q", found)
	}
	// A page that comes back gets the rest, once.
	lost := p.cursor
	p.conn.CloseNow()
	q.response("1", q.prompt("1", "while the page is away"))
	again := b.open(lost, q.hello.Run)
	again.row("1", "the rest", func(r *rowEvent) bool { return strings.Contains(r.Raw, "You said: while the page is away") })
	if first := again.rows["1"][0]; first.N <= p.rows["1"][len(p.rows["1"])-1].N-1 {
		t.Errorf("the page got row %d again; it had %d", first.N, len(p.rows["1"]))
	}
	other := b.open(lost, "another run")
	other.row("1", "everything", func(r *rowEvent) bool { return r.N == 1 })
	for _, line := range []string{`{"jsonrpc":"2.0","meth`, "{\"jsonrpc\":\"2.0\",\"method\":\"_x\",\"params\":{}"} {
		before := len(q.rows["1"])
		q.do(map[string]any{"do": "raw", "source": "1", "line": line})
		q.until("the parse error after "+line, func() bool {
			return slices.ContainsFunc(q.rows["1"][before:], func(r rowEvent) bool { return r.From == "agent" && strings.Contains(r.Raw, "-32700") })
		})
	}
	if r := q.do(map[string]any{"do": "kill", "source": "1", "how": "close"}); r.Error != "" {
		t.Error(r.Error)
	}
	if end := q.row("1", "the end", func(r *rowEvent) bool { return r.Kind == "end" }); !strings.Contains(end.Text, "exit status is 0") {
		t.Errorf("the end is %q", end.Text)
	}
	q.until("the state of the end", func() bool { return len(q.state.Sources) == 1 && !q.state.Sources[0].Open })
	var agentText strings.Builder
	for _, item := range q.items {
		if item.Kind == "agent" {
			agentText.WriteString(item.Text + item.Append)
		}
	}
	if !strings.Contains(agentText.String(), "You said: hello") {
		t.Errorf("the conversation is %q", agentText.String())
	}
	s := q.state.Sources[0]
	if !slices.ContainsFunc(s.Sides[0].Observed, func(o observed) bool {
		return o.Method == "fs/read_text_file" && o.Capability == "fs.readTextFile" && o.Claimed && o.Count == 4
	}) {
		t.Errorf("observed of the client: %+v", s.Sides[0].Observed)
	}
}

// An agent that writes hostile text, floods, dies or does not start leaves the page usable and the recording complete.
func TestBadAgent(t *testing.T) {
	agent := processAgent("right")
	var gone atomic.Bool
	connect := agent.Connect
	agent.Connect = func(ctx context.Context, stderr io.Writer) (rpc.Transport, error) {
		if gone.Load() {
			return rpc.Command(exec.Command("/nothing")), nil
		}
		return connect(ctx, stderr)
	}
	i := serveTest(t, Options{Agent: agent})
	b := i.browser()
	p := b.open(0, "")
	p.connect("1")
	p.response("1", p.prompt("1", "hostile"))
	count := tier.Pick(1000, 20_000, 20_000, 1_000_000)
	p.response("1", p.prompt("1", fmt.Sprint("flood ", count)))
	p.prompt("1", "die")
	end := p.row("1", "the end", func(r *rowEvent) bool { return r.Kind == "end" })
	if !strings.Contains(end.Text, "exit status is 7") {
		t.Errorf("the end is %q", end.Text)
	}
	p.until("the state", func() bool { return len(p.state.Sources) == 1 && !p.state.Sources[0].Open })
	if open := p.state.Sources[0].Unanswered; len(open) != 1 {
		t.Errorf("unanswered: %v", open)
	}
	if n := p.state.Sources[0].Unanswered[0]; !slices.ContainsFunc(p.late, func(l lateEvent) bool { return l.N == n }) {
		t.Errorf("no finding about the prompt that was never answered: %+v", p.late)
	}
	for n, r := range p.rows["1"] {
		if r.N != n+1 {
			t.Fatalf("row %d comes after %d", r.N, n)
		}
		if len(r.Raw) > p.hello.Limits.Raw+3 || r.Cut != (r.Size > len(r.Raw)) && !r.Bytes {
			t.Fatalf("row %d has %d of %d bytes, cut %v", r.N, len(r.Raw), r.Size, r.Cut)
		}
		if r.Cut && r.Size > 10<<20 {
			if line := b.get(fmt.Sprint("/raw?source=1&n=", r.N)); len(line) != r.Size || !bytes.HasSuffix(line, []byte("}}}}")) {
				t.Errorf("the long line has %d bytes, want %d", len(line), r.Size)
			}
		}
	}
	all := must.Get(recording.ReadAll(bytes.NewReader(b.get("/export?source=1&as=recording"))))(t)
	numbers := 0
	var long int
	for _, m := range all.Messages() {
		if bytes.Contains(m.Line, fmt.Appendf(nil, `"text":"%d "`, numbers)) {
			numbers++
		}
		long = max(long, len(m.Line))
	}
	if numbers != count || long < 10<<20 {
		t.Errorf("the recording has %d of %d updates, and a longest line of %d bytes", numbers, count, long)
	}
	// Two of the same page: the agent starts again.
	p.connect("2")
	p.response("2", p.prompt("2", "hello"))
	gone.Store(true)
	if r := p.do(map[string]any{"do": "start"}); r.Error == "" {
		t.Error("an agent that is not there was started")
	}
	p.row("3", "why it did not start", func(r *rowEvent) bool { return r.Kind == "gap" && strings.Contains(r.Text, "not started") })
}

// A page that does not read delays neither the agent nor other pages, and later gets everything.
func TestSlowPage(t *testing.T) {
	i := serveTest(t, Options{Agent: processAgent("right")})
	b := i.browser()
	slow := b.open(0, "")
	p := b.open(0, "")
	p.connect("1")
	count := tier.Pick(1000, 20_000, 20_000, 200_000)
	p.response("1", p.prompt("1", fmt.Sprint("flood ", count)))
	slow.row("1", "the end of the flood", func(r *rowEvent) bool { return r.N == len(p.rows["1"]) })
	if len(slow.rows["1"]) < count {
		t.Errorf("the slow page has %d rows", len(slow.rows["1"]))
	}
}

// Many messages cost no memory per message but an offset.
func TestMemory(t *testing.T) {
	var file bytes.Buffer
	file.WriteString(strings.SplitAfter(small, "\n")[0])
	w := &file
	count := tier.Pick(2000, 20_000, 100_000, 1_000_000)
	for n := range count {
		fmt.Fprintf(w, `{"t":%d,"from":"agent","raw":"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s-%d\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"%d\"}}}}"}`+"\n", n, n%3, n)
	}
	size := file.Len()
	i := serveTest(t, Options{})
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	must.Do(t, i.in.Read("many.jsonl", bytes.NewReader(file.Bytes()), ""))
	for _, s := range i.in.all() {
		s.flush()
	}
	grown := int64(heap()) - int64(before)
	runtime.KeepAlive(&file)
	t.Logf("%d messages, %d bytes: %d bytes of memory", count, size, grown)
	if limit := int64(16<<20 + 100*count); grown > limit {
		t.Errorf("memory has grown by %d bytes, more than %d", grown, limit)
	}
}

func TestTap(t *testing.T) {
	i := serveTest(t, Options{})
	path := filepath.Join(t.TempDir(), "dir", "inspect.json")
	remove := must.Get(WriteTapFile(path, TapFile{i.server.host, i.secret}))(t)
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	to := must.Get(DialTap(path))(t)
	p := i.browser().open(0, "")
	w, err := recording.NewWriter(to, recording.Header{Tool: "acp", Command: []string{"my-agent", "--acp"}}, recording.NewMasker())
	must.Do(t, err)
	message := func(d conformance.Direction, line string) {
		must.Do(t, w.Message(conformance.Message{Direction: d, Line: []byte(line)}))
	}
	// Each message is shown before the next one is sent.
	message(conformance.ToAgent, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`)
	p.row("1", "the request", func(r *rowEvent) bool { return r.Method == "initialize" })
	message(conformance.ToClient, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"a","version":"1"}}}`)
	p.row("1", "the response", func(r *rowEvent) bool { return r.Re == 1 })
	if s := p.sources[0]; s.Kind != "tap" || s.Name != "my-agent --acp" || !s.Masked {
		t.Errorf("the source is %+v", s)
	}
	if err := to.Close(); err != nil { // without the end of the recording; see TestKilledTap
		t.Fatal(err)
	}
	p.until("the end", func() bool { return len(p.state.Sources) == 1 && !p.state.Sources[0].Open })
	// Other files.
	for name, text := range map[string]string{
		"another secret":  fmt.Sprintf(`{"address":%q,"secret":"x"}`, i.server.host),
		"another machine": fmt.Sprintf(`{"address":"192.0.2.1:80","secret":%q}`, i.secret),
		"a name":          fmt.Sprintf(`{"address":"localhost:80","secret":%q}`, i.secret),
		"no JSON":         "x",
	} {
		bad := filepath.Join(t.TempDir(), "inspect.json")
		must.Do(t, os.WriteFile(bad, []byte(text), 0o600))
		if c, err := DialTap(bad); err == nil {
			t.Errorf("%s: connected", name)
			c.Close()
		}
	}
	if runtime.GOOS != "windows" {
		must.Do(t, os.Chmod(path, 0o644))
		if _, err := DialTap(path); err == nil || !strings.Contains(err.Error(), "others than you") {
			t.Errorf("a file that others can read: %v", err)
		}
	}
	// A program that has taken the port of an inspection learns nothing.
	thief := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	stolen := make(chan string, 1)
	go func() {
		conn, err := thief.Accept()
		if err != nil {
			stolen <- err.Error()
			return
		}
		defer conn.Close()
		first := make([]byte, 4096)
		n, _ := conn.Read(first)
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n")
		rest, _ := io.ReadAll(conn)
		stolen <- string(first[:n]) + string(rest)
	}()
	must.Get(WriteTapFile(path, TapFile{thief.Addr().String(), i.secret}))(t)
	if _, err := DialTap(path); err == nil {
		t.Error("connected to the thief")
	}
	if text := <-stolen; strings.Contains(text, i.secret) || !strings.HasPrefix(text, "GET /tap") || strings.Contains(text, "recording\"") {
		t.Errorf("the thief got %q", text)
	}
	must.Do(t, thief.Close())
	if _, err := DialTap(path); err == nil {
		t.Error("connected to nothing")
	}
	// Another inspection's file stays.
	must.Do(t, remove())
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	os.Remove(path)
	if _, err := DialTap(path); err != ErrNoInspection {
		t.Errorf("without a file: %v", err)
	}
	must.Do(t, remove())
}

// Of a conductor's trace, each hop is a source between two components.
func TestChain(t *testing.T) {
	const trace = `{"type":"request","ts":0.1,"protocol":"acp","from":"client","to":"proxy:0","id":1,"method":"initialize","params":{"protocolVersion":1}}
{"type":"request","ts":0.2,"protocol":"acp","from":"proxy:0","to":"agent","id":7,"method":"initialize","params":{"protocolVersion":1}}
{"type":"response","ts":0.3,"protocol":"acp","from":"agent","to":"proxy:0","id":7,"is_error":false,"payload":{"protocolVersion":1}}
{"type":"response","ts":0.4,"protocol":"acp","from":"proxy:0","to":"client","id":1,"is_error":false,"payload":{"protocolVersion":1}}
`
	i := serveTest(t, Options{})
	must.Do(t, i.in.Read("chain.jsonl", strings.NewReader(trace), ""))
	must.Do(t, i.in.Read("hop.jsonl", strings.NewReader(trace), "proxy:0"))
	p := i.browser().open(0, "")
	p.until("the state", func() bool { return len(p.state.Sources) == 3 })
	var got []string
	for _, s := range p.sources {
		for _, r := range p.rows[s.Source] {
			if r.Method != "" {
				got = append(got, fmt.Sprintf("%s %v: %s>%s %s %s", s.Name, s.Lanes, r.From, r.To, r.Kind, r.ID))
			}
		}
	}
	want := []string{
		"chain.jsonl, client to proxy:0 [client proxy:0]: client>proxy:0 request 1", "chain.jsonl, client to proxy:0 [client proxy:0]: proxy:0>client response 1",
		"chain.jsonl, proxy:0 to agent [proxy:0 agent]: proxy:0>agent request 7", "chain.jsonl, proxy:0 to agent [proxy:0 agent]: agent>proxy:0 response 7",
		"hop.jsonl [client agent]: client>agent request 7", "hop.jsonl [client agent]: agent>client response 7",
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
}
