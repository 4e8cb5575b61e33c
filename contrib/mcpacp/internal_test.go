package mcpacp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/acptest"
	"github.com/acpgo/sdk/internal/test/must"
)

// A server may send a thousand messages at once, and after that a thousand in a second.
func TestPace(t *testing.T) {
	stopped := make(chan struct{})
	close(stopped)
	var p pace
	p.wait(900*messageCost, stopped)
	if left := time.Until(p.next); left > 0 {
		t.Errorf("after 900 messages the next one is read in %v", left)
	}
	p.wait(60_100*messageCost, stopped)
	if left := time.Until(p.next); left < 30*time.Second || left > time.Minute {
		t.Errorf("after a minute's messages more the next one is read in %v", left)
	}
}

// The lines of a stream of events are counted however it is divided into reads, also those that are no message.
func TestPaceOfEvents(t *testing.T) {
	text := strings.Repeat("data:1\n\n:\n\n", 500)
	for name, r := range map[string]io.Reader{
		"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text)), "halves": iotest.HalfReader(strings.NewReader(text)),
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			b := &body{ReadCloser: io.NopCloser(r), events: true, max: 100}
			if got, err := io.ReadAll(b); string(got) != text || err != nil {
				t.Errorf("%s: read %q, %v", name, got, err)
			}
			if got := b.pace.next.Sub(start); got != 0 { // a second's lines, from a second ago
				t.Errorf("%s: the next line is due %v after the start", name, got)
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// A server that ends its stream of events again and again, and has the MCP SDK open it at once, is asked ten times a second.
func TestPaceOfStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})
		v := &server{set: &Set{opts: Options{Logger: slog.Default()}}}
		rt := &roundTripper{server: v, base: answer, ctx: t.Context(), target: &url.URL{Scheme: "http", Host: "x"}, max: 1}
		for method, want := range map[string]time.Duration{http.MethodPost: 0, http.MethodGet: 2 * time.Second} {
			start := time.Now()
			for range 30 {
				req := must.Get(http.NewRequestWithContext(t.Context(), method, "http://x/", nil))(t)
				must.Do(t, must.Get(rt.RoundTrip(req))(t).Body.Close())
			}
			if got := time.Since(start); got != want {
				t.Errorf("30 times %s took %v, want %v", method, got, want)
			}
		}
	})
}

// A request that was refused, and is not sent again because its connection ends, has not reached the server.
func TestRefusedIsUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuses := roundTrip(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
		})
		v := &server{set: &Set{}, session: &mcp.ClientSession{}}
		rt := &roundTripper{server: v, base: refuses, ctx: t.Context(), target: &url.URL{Scheme: "http", Host: "x"}, max: 1}
		posted := new(atomic.Bool)
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), postedKey{}, posted), time.Millisecond)
		defer cancel()
		call := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		req := must.Get(http.NewRequestWithContext(ctx, http.MethodPost, "http://x/", call))(t)
		if res, err := rt.RoundTrip(req); res != nil || !errors.Is(err, errNotRun) || posted.Load() {
			t.Errorf("got %v, %v; may have reached the server: %v", res, err, posted.Load())
		}
	})
}

// Tools waits for two seconds for lists that have changed, also if two servers change theirs by turns.
func TestSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &server{state: ready}, &server{state: ready}
		s := &Set{servers: []*server{a, b}, ctx: t.Context(), changed: make(chan struct{})}
		s.change(func() { a.stale = time.Now() })
		done := make(chan time.Time, 1)
		go func() {
			if err := s.settle(t.Context()); err != nil {
				t.Error(err)
			}
			done <- time.Now()
		}()
		start := time.Now()
		for range 10 {
			time.Sleep(pauseTime)
			s.change(func() { a.stale, b.stale = time.Time{}, time.Now() })
			a, b = b, a
		}
		if got := (<-done).Sub(start); got != 2*pauseTime {
			t.Errorf("Tools waited %v", got)
		}
	})
}

// Names are what models accept, and no two names of a server become one.
func TestNames(t *testing.T) {
	taken := map[string]bool{}
	for _, test := range [][2]string{
		{"files", "files"}, {"files", "files_2"}, {"files", "files_3"}, {"files_2", "files_2_2"}, {"My Files!", "My_Files"}, {"__a__b__", "a_b"},
		{"9front", "mcp_9front"}, {"-x", "mcp_-x"}, {"", "mcp"}, {"é", "mcp_2"}, {strings.Repeat("long-", 9), "long-long-long-long-"},
	} {
		if got := uniqueName(test[0], taken); got != test[1] {
			t.Errorf("the server %q is %q, want %q", test[0], got, test[1])
		}
	}
	long := strings.Repeat("x", 80)
	seen := map[string]string{}
	for _, tool := range []string{"read", "read.file", "read/file", "read_file", "é", "ü", long, long + "y", strings.Repeat(long, 13), strings.Repeat("x", 56), ""} {
		name := toolName("files", tool)
		if len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || !strings.HasPrefix(name, "files__") {
			t.Errorf("%q is %q", tool, name)
		}
		if other, ok := seen[name]; ok {
			t.Errorf("%q and %q are both %q", tool, other, name)
		}
		seen[name] = tool
	}
	if got := toolName("files", "read_file"); got != "files__read_file" {
		t.Errorf("read_file is %q", got)
	}
}

// A list ends where it is as long as a message may be.
func TestLongList(t *testing.T) {
	for items, want := range map[int]string{3: "", 4: "the rest of its list was left out: it is longer than 100 bytes"} {
		v := &server{set: &Set{opts: Options{StartTime: time.Minute, MaxTools: 10, MaxMessage: 100}}}
		list, err := pages(t.Context(), v, func(_ context.Context, cursor string) ([]*string, string, error) {
			item := strings.Repeat("x", 30)
			if cursor += "x"; len(cursor) == items {
				return []*string{&item}, "", nil
			}
			return []*string{&item, nil}, cursor, nil
		})
		if got := fmt.Sprint(err); len(list) != 3 || err != nil && got != want || err == nil && want != "" {
			t.Errorf("of %d items it took %d: %v", items, len(list), err)
		}
	}
}

// The user gets each message about a server once, ten in all, and that it has ended.
func TestTold(t *testing.T) {
	agent := acptest.Script(t, nil, func(_ context.Context, turn *agentkit.Turn[any]) error {
		set, err := Connect(context.Background(), turn, []acp.MCPServer{{}}, nil) // a server that does not start, because it has no type
		if err != nil {
			return err
		}
		defer set.Close()
		set.running.Wait()
		v := &server{set: set, title: "x", told: map[string]bool{}}
		for i := range 100 {
			v.tell("%s is bad", fmt.Errorf("reason %d", i%2))
		}
		for i := range 100 {
			v.tell("%s is bad", fmt.Errorf("reason %d", i))
		}
		v.run()
		set.say()
		return nil
	})
	tap := conformance.Tap(t, conformance.Client, agent, nil)
	client := must.Get(acp.Connect(t.Context(), tap, acp.ClientHandlers{}, &acp.ClientOptions{Info: acp.Implementation{Name: "client", Version: "1"}}))(t)
	defer client.Close()
	session := must.Get(client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: t.TempDir()}))(t)
	turn := session.Stream(t.Context(), acp.TextBlock("go"))
	var told []string
	for u := range turn.Updates() {
		if chunk, ok := u.Variant.(*acp.SessionUpdateAgentMessageChunk); ok {
			told = append(told, chunk.Content.Text())
		}
	}
	must.Get(turn.Result())(t)
	slices.Sort(told)
	last := `The MCP server "x" did not start: its type is not known` + "\n"
	want := []string{`The MCP server "mcp" did not start: its type is not known` + "\n", last}
	for i := range 9 {
		want = append(want, fmt.Sprintf("x is bad: reason %d\n", i))
	}
	want = append(want, "x is bad: reason 9\nMore messages about its tools are not shown.\n")
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("the user saw (-want +got):\n%s", diff)
	}
}

// Titles are one short line, and texts about progress are short.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("é", 1<<20)
	tool := &Tool{Tool: &mcp.Tool{Name: "x", Title: "Read a file\n\u202eallowed\u2028" + long}}
	if got, want := displayName(tool), "Read a file  allowed "+strings.Repeat("é", (maxTitle-21)/2)+"\uFFFD…"; got != want {
		t.Errorf("got the title %q", got)
	}
	p := &progress{more: make(chan struct{}, 1)}
	v := &server{set: &Set{}, calls: map[string]*progress{"1": p}}
	v.progressed(&mcp.ProgressNotificationParams{ProgressToken: "1", Progress: 1, Message: "x" + long})
	if want := "1 x" + strings.Repeat("é", maxProgress/2-1) + "\uFFFD…"; p.text != want {
		t.Errorf("got the progress %q", p.text)
	}
}

// A decision for always is bound to all that a declaration says: the values of variables and headers, which are not to be
// read in it, choose programs as well.
func TestIdentify(t *testing.T) {
	env := func(pairs ...string) (all []acp.EnvVariable) {
		for p := range slices.Chunk(pairs, 2) {
			all = append(all, acp.EnvVariable{Name: p[0], Value: p[1]})
		}
		return all
	}
	stdio := func(command string, env []acp.EnvVariable, args ...string) acp.MCPServer {
		return acp.NewMCPServerStdio(acp.MCPServerStdio{Name: "s", Command: command, Args: args, Env: env})
	}
	http := func(url, name, value string) acp.MCPServer {
		return acp.NewMCPServerHTTP(acp.MCPServerHTTP{Name: "s", URL: url, Headers: []acp.HTTPHeader{{Name: name, Value: value}}})
	}
	seen := map[string]bool{}
	for _, config := range []acp.MCPServer{
		stdio("/bin/a", env("X", "1")), stdio("/bin/b", env("X", "1")), stdio("/usr/bin/a", env("X", "1")), stdio("/bin/a", env("Y", "1")),
		stdio("/bin/a", env("X", "1"), "x", "y"), stdio("/bin/a", env("X", "1"), "x y"), stdio("/bin/a", env("X", "1"), "X"),
		stdio("/bin/a", env("X", "secret")), stdio("/bin/a", env("X", "1", "PATH", "/b")), stdio("/bin/a", env("X", "1", "PATH", "/c")),
		stdio("/bin/a", env("X", "/b", "PATH", "1")), stdio("/bin/a", env("X", "2", "X", "1")), stdio("/bin/a", env("X", "1", "X", "2")),
		http("https://a/1", "X", "1"), http("https://a/2", "X", "1"), http("https://a/1", "Y", "1"), http("https://a/1", "X", "secret"),
		acp.NewMCPServerSSE(acp.MCPServerSSE{Name: "s", URL: "https://a/1", Headers: []acp.HTTPHeader{{Name: "X"}}}),
		acp.NewMCPServerACP(acp.MCPServerACP{Name: "s"}), acp.NewMCPServerACP(acp.MCPServerACP{Name: "t"}),
	} {
		id := identify(config)
		if seen[id] || strings.Contains(id, "secret") {
			t.Errorf("%v is %s, as another one, or with its secret", config, id)
		}
		seen[id] = true
	}
	for _, config := range []acp.MCPServer{
		stdio("/bin/a", env("PATH", "/b", "X", "1")), http("https://a/1", "x", "1"), // the order and the case say nothing
		acp.NewMCPServerACP(acp.MCPServerACP{Name: "s", ServerID: "new for each connection"}),
	} {
		if id := identify(config); !seen[id] {
			t.Errorf("%v is another one, %s", config, id)
		}
	}
}
