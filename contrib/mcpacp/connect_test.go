//lint:file-ignore SA1019 MCP has deprecated sampling; servers still ask for it

package mcpacp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/contrib/mcpacp"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// input is the input of tools.
type input struct {
	Text string `json:"text,omitempty"`
}

// add adds a tool to a server.
func add(s *mcp.Server, tool *mcp.Tool, run func(ctx context.Context, req *mcp.CallToolRequest, text string) (*mcp.CallToolResult, error)) {
	mcp.AddTool(s, tool, func(ctx context.Context, req *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		res, err := run(ctx, req, in.Text)
		return res, nil, err
	})
}

// addText adds a tool that returns a text.
func addText(s *mcp.Server, tool *mcp.Tool, run func(ctx context.Context, req *mcp.CallToolRequest) (string, error)) {
	add(s, tool, func(ctx context.Context, req *mcp.CallToolRequest, _ string) (*mcp.CallToolResult, error) {
		text, err := run(ctx, req)
		return textResult(text), err
	})
}

func textResult(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// kinds is a server with a tool for each kind of result.
func kinds() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "kinds", Version: "1"}, nil)
	yes := true
	add(s, &mcp.Tool{Name: "content", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, Title: "All content"}},
		func(context.Context, *mcp.CallToolRequest, string) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{
				&mcp.TextContent{Text: "text"},
				&mcp.ImageContent{Data: []byte("png"), MIMEType: "image/png"},
				&mcp.AudioContent{Data: []byte("wav"), MIMEType: "audio/wav"},
				&mcp.ResourceLink{URI: "note://1", Name: "note"},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "note://2", Text: "the note"}},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "note://3"}},
				&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "note://4", Blob: []byte("x")}},
			}}, nil
		})
	add(s, &mcp.Tool{Name: "search", Title: "Search", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &yes}},
		func(context.Context, *mcp.CallToolRequest, string) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
	addText(s, &mcp.Tool{Name: "drop", Annotations: &mcp.ToolAnnotations{DestructiveHint: &yes}},
		func(context.Context, *mcp.CallToolRequest) (string, error) { return "", errors.New("nothing to drop") })
	addText(s, &mcp.Tool{Name: "large"},
		func(context.Context, *mcp.CallToolRequest) (string, error) { return strings.Repeat("x", 1<<20), nil })
	addText(s, &mcp.Tool{Name: "elicit"}, func(ctx context.Context, req *mcp.CallToolRequest) (string, error) {
		res, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Sure?", RequestedSchema: map[string]any{"type": "object"}})
		if err != nil {
			return "", err
		}
		return res.Action, nil
	})
	add(s, &mcp.Tool{Name: "sample"}, func(ctx context.Context, req *mcp.CallToolRequest, _ string) (*mcp.CallToolResult, error) {
		res, err := req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1})
		if err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{res.Content}}, nil
	})
	s.AddResource(&mcp.Resource{URI: "note://1", Name: "note"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "note://1", Text: "a note"}}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		hello := &mcp.PromptMessage{Role: "user", Content: &mcp.TextContent{Text: "Hello"}}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{hello}}, nil
	})
	return s
}

// serveHTTP declares servers over HTTP and SSE at a handler, which ends with the test.
func serveHTTP(t *testing.T, handler http.HandlerFunc, headers ...acp.HTTPHeader) (overHTTP, overSSE acp.MCPServer) {
	t.Helper()
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close)
	return declareHTTP("web", listener.URL, headers...), declareSSE("web", listener.URL, headers...)
}

func declareHTTP(name, url string, headers ...acp.HTTPHeader) acp.MCPServer {
	return acp.NewMCPServerHTTP(acp.MCPServerHTTP{Name: name, URL: url, Headers: headers})
}

func declareSSE(name, url string, headers ...acp.HTTPHeader) acp.MCPServer {
	return acp.NewMCPServerSSE(acp.MCPServerSSE{Name: name, URL: url, Headers: headers})
}

// web declares a server over HTTP or SSE. It requires a header.
func web(t *testing.T, s *mcp.Server, way string) acp.MCPServer {
	t.Helper()
	find := func(*http.Request) *mcp.Server { return s }
	opts := &mcp.StreamableHTTPOptions{Stateless: way == "HTTP, 2026-07-28", JSONResponse: way == "HTTP, JSON"}
	var handler http.Handler = mcp.NewStreamableHTTPHandler(find, opts)
	if way == "SSE" {
		handler = mcp.NewSSEHandler(find, nil)
	}
	overHTTP, overSSE := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Token") != "secret" {
			http.Error(w, "no token", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}, acp.HTTPHeader{Name: "X-Token", Value: "secret"})
	if way == "SSE" {
		return overSSE
	}
	return overHTTP
}

// That a tool only reads is believed once the user has said so.
func TestTrust(t *testing.T) {
	h := open(t, nil, web(t, kinds(), "HTTP"))
	h.prompt(t, "web__content")
	h.answer = "always"
	h.prompt(t, "web__content", "web__drop")
	h.answer = "reject"
	h.prompt(t, "web__content", "web__search", "web__drop")
	const content = `web: All content, completed: "text" Image Audio ResourceLink Resource Resource Resource`
	h.sees(t, "other: "+content, "agent: ANY", "other: "+content, "agent: ANY", `edit: web: drop, failed: "ANY"`, "agent: ANY",
		"read: "+content, "agent: ANY", "fetch: web: Search, completed:", "agent: ANY", `edit: web: drop, failed: "ANY"`, "agent: ANY")
	if len(h.asked) != 4 {
		t.Errorf("asked about %+v", h.asked)
	}
}

// What the user sees of calls, over HTTP and SSE.
func TestCalls(t *testing.T) {
	for _, way := range []string{"HTTP", "HTTP, JSON", "HTTP, 2026-07-28", "SSE"} {
		t.Run(way, func(t *testing.T) {
			h := open(t, nil, web(t, kinds(), way))
			h.prompt(t, "tools", "web__content", `web__search {"x":1}`, "web__drop", "resources", "prompts")
			want := []string{
				"agent: tools: web__content web__drop web__elicit web__large web__sample web__search. ",
				`other: web: All content, completed: "text" Image Audio ResourceLink Resource Resource Resource`,
				"agent: result: text *mcp.ImageContent *mcp.AudioContent *mcp.ResourceLink *mcp.EmbeddedResource *mcp.EmbeddedResource *mcp.EmbeddedResource. ",
				"other: web: Search, failed: \"ANY\"", "agent: failed: ANY. ",
				`edit: web: drop, failed: "nothing to drop"`, "agent: failed: nothing to drop. web note://1: a note. web greet: Hello. ",
			}
			h.sees(t, want...)
			if len(h.asked) != 3 || h.asked[2].Title.Value() != "web: drop" || h.asked[2].Name.Value() != "web__drop" {
				t.Errorf("asked about %+v", h.asked)
			}
			call := h.updates[slices.IndexFunc(h.updates, isCall)].Variant.(*acp.SessionUpdateToolCall)
			if string(call.RawInput) != "{}" || call.Name.Value() != "web__content" || call.Status != acp.ToolCallStatusPending {
				t.Errorf("the call began as %+v", call)
			}
			output := h.output(t, "web__content")
			if content, ok := output["content"].([]any); !ok || len(content) != 7 {
				t.Errorf("the output is %v", output)
			}
		})
	}
}

func isCall(u acp.SessionUpdate) bool {
	_, ok := u.Variant.(*acp.SessionUpdateToolCall)
	return ok
}

// output is the raw output of the first call of a tool, or nil.
func (h *host) output(t *testing.T, name string) (output map[string]any) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	var id acp.ToolCallID
	for _, u := range h.updates {
		switch u := u.Variant.(type) {
		case *acp.SessionUpdateToolCall:
			if id == "" && u.Name.Value() == name {
				id = u.ToolCallID
			}
		case *acp.SessionUpdateToolCallUpdate:
			if u.ToolCallID == id && len(u.RawOutput) > 0 {
				if err := json.Unmarshal(u.RawOutput, &output); err != nil {
					t.Error(err)
				}
			}
		}
	}
	return output
}

// A long result is shown, but not a second time as output. The limit of messages applies to HTTP, too.
func TestLongResults(t *testing.T) {
	h := open(t, nil, web(t, kinds(), "HTTP"))
	h.prompt(t, "web__large")
	if line := h.seen()[0]; !strings.HasPrefix(line, `other: web: large, completed: "xxx`) || len(line) < 1<<20 {
		t.Errorf("the user saw %.100s", line)
	}
	if output := h.output(t, "web__large"); output != nil {
		t.Error("the result was sent twice")
	}
	for _, way := range []string{"HTTP", "HTTP, JSON"} {
		h = open(t, &mcpacp.Options{MaxMessage: 100 << 10}, web(t, kinds(), way))
		h.prompt(t, "web__content", "web__large")
		h.await(t, "notice")
		if line := h.seen()[2]; !strings.HasPrefix(line, `other: web: large, failed: "the MCP server \"web\": `) {
			t.Errorf("%s: the user saw %.500s", way, line)
		}
	}
}

// Servers' requests go where the agent says, and are not offered otherwise.
func TestElicitationAndSampling(t *testing.T) {
	h := open(t, nil, web(t, kinds(), "HTTP"))
	h.prompt(t, "web__elicit", "web__sample")
	for _, line := range h.seen() {
		if strings.HasPrefix(line, "other") && !strings.Contains(line, "does not support") {
			t.Errorf("without handlers the user saw %s", line)
		}
	}
	opts := &mcpacp.Options{Client: mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "decline"}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Model: "none", Role: "assistant", Content: &mcp.TextContent{Text: "sampled"}}, nil
		},
	}}
	h = open(t, opts, web(t, kinds(), "SSE"))
	h.prompt(t, "web__elicit", "web__sample")
	want := []string{
		`other: web: elicit, completed: "decline"`, "agent: result: decline. ", `other: web: sample, completed: "sampled"`, "agent: result: sampled. ",
	}
	h.sees(t, want...)
}

// unsent is a session whose updates with the progress of calls fail.
type unsent struct {
	agentkit.Asker
	err error
}

func (u unsent) Update(ctx context.Context, update acp.SessionUpdate) error {
	err := u.Asker.Update(ctx, update)
	if isProgress(update) {
		err = errors.Join(err, u.err)
	}
	return err
}

// A call whose progress cannot be shown is cancelled. One whose progress is shown, and not stored, continues.
func TestProgressFails(t *testing.T) {
	lost := errors.New("lost")
	for _, failure := range []error{lost, agentkit.ErrNotStored} {
		server, ended := newTools(), make(chan error, 1)
		addText(server.Server, &mcp.Tool{Name: "work"}, func(ctx context.Context, req *mcp.CallToolRequest) (string, error) {
			n := &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Message: "begun"}
			err := req.Session.NotifyProgress(ctx, n)
			select {
			case <-ctx.Done():
			case <-server.release:
			}
			ended <- ctx.Err()
			return "done", err
		})
		provider := &mcpacp.Provider{}
		h := &host{provider: provider, answer: "allow"}
		h.watch = func(u acp.SessionUpdate) {
			if isProgress(u) && failure != lost {
				time.AfterFunc(100*time.Millisecond, func() { close(server.release) }) // after the update has failed
			}
		}
		c := config(nil)
		c.Prompt = func(ctx context.Context, turn *agentkit.Turn[state], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			if _, err := turn.State.tools.Tools(ctx); err != nil {
				return nil, err
			}
			res, err := turn.State.tools.Call(ctx, unsent{turn, failure}, "own__work", nil)
			if err == nil && (res.IsError != (failure == lost) || !res.IsError && texts(res) != "done") {
				t.Errorf("%v: the result is %s", failure, texts(res))
			}
			return nil, err
		}
		h.serve(t, c)
		h.newSession(t, must.Get(provider.Provide(h.ClientConn, "own", server.Server))(t).Declaration)
		h.prompt(t, "go")
		if err := <-ended; (err != nil) != (failure == lost) {
			t.Errorf("%v: the tool ended with %v", failure, err)
		}
	}
}

func isProgress(u acp.SessionUpdate) bool {
	call, ok := u.Variant.(*acp.SessionUpdateToolCallUpdate)
	return ok && len(call.Content.Value()) == 1 && !call.Status.Present()
}

// cancelDuringProgress has the user cancel the turn when a call shows its progress.
func cancelDuringProgress(t *testing.T, h *host) {
	h.watch = func(u acp.SessionUpdate) {
		if isProgress(u) {
			go func() {
				if err := h.session.Cancel(t.Context()); err != nil {
					t.Error(err)
				}
			}()
		}
	}
}

// The tools of two servers have different names, whatever the servers are called.
func TestEqualNames(t *testing.T) {
	tier.Need(t, tier.Normal)
	h := open(t, nil, server(t, "twin", ""), server(t, "twin", "ask: says first"), server(t, "a__ü b_", ""), server(t, "", ""))
	h.prompt(t, "tools", "twin__ask", "twin_2__ask")
	want := []string{
		"agent: tools: twin__ask twin__echo twin_2__ask twin_2__echo a_b__ask a_b__echo mcp__ask mcp__echo. ",
		`other: twin: ask, completed: "fine"`, "agent: result: fine. ", `other: twin: ask, completed: "first"`, "agent: result: first. ",
	}
	h.sees(t, want...)
}

// A client that does not know notices gets messages of the agent, which must not come between turns.
func TestWithoutNotices(t *testing.T) {
	tier.Need(t, tier.Normal)
	h := &host{plain: true}
	c := config(nil)
	var set *mcpacp.Set
	open := c.Open
	c.Open = func(ctx context.Context, s *agentkit.Session[state], o *agentkit.Opening) error {
		err := open(ctx, s, o)
		set = s.State.tools
		return err
	}
	h.open(t, c, stdio("gone", "/no/such/program", nil), server(t, "bad", stubborn))
	h.shows(t, `agent: The MCP server "gone" did not start: fork/exec /no/such/program: no such file or directory`)
	pid := h.pid(t)
	changed := set.Changed()
	must.Do(t, syscall.Kill(pid, syscall.SIGKILL))
	<-changed
	h.shows(t, fmt.Sprintf(`agent: result: %d. The MCP server "bad" has ended: subprocess ended: signal: killed`, pid))
}

// stubborn is a server that tells its process id, and does not end with its input.
const stubborn = "ask: says $pid\nend: stay"

// pid calls a stubborn server, and returns its process id.
func (h *host) pid(t *testing.T) int {
	t.Helper()
	h.prompt(t, "bad__ask")
	_, text, _ := strings.Cut(h.seen()[len(h.seen())-1], "result: ")
	return must.Get(strconv.Atoi(strings.TrimSuffix(text, ". ")))(t)
}

// shows prompts until the user has seen a line that begins with prefix.
func (h *host) shows(t *testing.T, prefix string) {
	t.Helper()
	for range 100 {
		h.prompt(t, "tools")
		if slices.ContainsFunc(h.seen(), func(line string) bool { return strings.HasPrefix(line, prefix) }) {
			return
		}
	}
	t.Fatalf("the user never saw %q, but %q", prefix, h.seen())
}

// A process that does not end with its input is killed, and closing the session waits for that.
func TestSessionEnd(t *testing.T) {
	tier.Need(t, tier.Normal)
	h := open(t, nil, server(t, "bad", stubborn))
	process := must.Get(os.FindProcess(h.pid(t)))(t)
	if err := process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("while the session is open: %v", err)
	}
	must.Do(t, h.session.Close(t.Context()))
	if err := process.Signal(syscall.Signal(0)); err == nil {
		t.Error("the process lives on")
	}
}

// A server over HTTP that leads to another origin is not followed there: the user knows the declared one alone.
func TestHeadersOfOthers(t *testing.T) {
	seen := make(chan string, 8)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("X-Token")
		http.Error(w, "not here", http.StatusNotFound)
	}))
	defer other.Close()
	redirects := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer redirects.Close()
	sends := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/messages\n\n", other.URL)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer sends.Close()
	secret := acp.HTTPHeader{Name: "X-Token", Value: "secret"}
	for _, declared := range []acp.MCPServer{
		declareHTTP("web", redirects.URL, secret), declareSSE("web", redirects.URL, secret), declareSSE("web", sends.URL, secret),
	} {
		h := open(t, nil, declared)
		h.await(t, `notice: The MCP server "web" did not start: `)
		origin := "it leads to another origin than the declared one, " + strings.TrimPrefix(other.URL, "http://")
		if len(seen) > 0 || !strings.Contains(strings.Join(h.seen(), "\n"), origin) {
			t.Errorf("another host got %d requests; the user saw %q", len(seen), h.seen())
		}
	}
}

// What the user and the model get to know of failures has no addresses, because they may hold secrets; the log has them.
func TestSecretAddresses(t *testing.T) {
	var log bytes.Buffer
	opts := &mcpacp.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	real := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return kinds() }, nil)
	var down atomic.Bool
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() || r.URL.Path != "/hidden/path" {
			panic(http.ErrAbortHandler)
		}
		real.ServeHTTP(w, r)
	}))
	t.Cleanup(listener.Close)
	secret := listener.URL + "/hidden/path?key=hidden+key"
	h := open(t, opts, declareHTTP("web", secret), declareSSE("events", listener.URL+"/hidden?key=2"), declareHTTP("broken", "hidden:/%zz"))
	h.await(t, `notice: The MCP server "events" did not start: Get …: EOF`)
	h.await(t, `notice: The MCP server "broken" did not start: parse …: invalid URL escape …`)
	h.prompt(t, "tools")
	down.Store(true)
	listener.CloseClientConnections()
	h.prompt(t, "web__search")
	down.Store(false) // the end of the session reaches the server
	seen := strings.Join(h.seen(), "\n")
	if !strings.Contains(seen, `agent: failed: the MCP server "web": calling "tools/call": `) {
		t.Errorf("the user saw %s", seen)
	}
	if strings.Contains(seen, "hidden") || strings.Contains(seen, "session ID") {
		t.Errorf("the user saw %s", seen)
	}
	must.Do(t, h.Close())
	for _, want := range []string{"hidden/path?key=hidden+key", "hidden?key=2", "hidden:/%zz"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %s: %s", want, &log)
		}
	}
}

// More servers than may be are refused.
func TestTooManyServers(t *testing.T) {
	h := open(t, nil)
	many := slices.Repeat([]acp.MCPServer{stdio("x", "/x", nil)}, 65)
	_, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: t.TempDir(), MCPServers: many})
	if !errors.Is(err, acp.ErrInvalidParams) || !bytes.Contains([]byte(err.Error()), []byte("64")) {
		t.Errorf("65 servers: %v", err)
	}
}

// A server over HTTP or SSE that does not answer does not start, and leaves nothing behind.
func TestHTTPHangs(t *testing.T) {
	overHTTP, overSSE := serveHTTP(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the end of a request is not seen before
		<-r.Context().Done()
	})
	// Some requests of the MCP SDK have contexts that do not end. They are ended, too: here the subscription to changes,
	// which the server takes and does not serve.
	stateless := &mcp.StreamableHTTPOptions{Stateless: true} // as revision 2026-07-28 is
	real := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return kinds() }, stateless)
	subscription, _ := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the agent has ended it
		}
		if bytes.Contains(body, []byte("subscriptions/listen")) {
			<-r.Context().Done()
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		real.ServeHTTP(w, r)
	})
	for _, declared := range []acp.MCPServer{overHTTP, overSSE, subscription} {
		h := open(t, &mcpacp.Options{StartTime: 500 * time.Millisecond}, declared)
		h.await(t, `notice: The MCP server "web" did not start: it does not answer`)
	}
}
