package mcpacp_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/contrib/mcpacp"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// script is an MCP server that does what a text says; testdata/servers.txt describes it.
type script struct {
	text, defaults string

	mu     sync.Mutex
	count  map[string]int      // of events
	later  map[string][]func() // what waits for an event
	asked  string              // the id of the last call of "ask"
	answer string              // to the last request of its own
}

func newScript(text, defaults string) *script {
	return &script{text: text, defaults: defaults, count: map[string]int{}, later: map[string][]func(){}}
}

const scriptDefaults = `
initialize: result {"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"test","version":"1"}}
tools/list: tools ask echo
echo: says $args after $cancelled cancellations
`

// received is what a script is told of a message.
type received struct {
	ID     json.RawMessage
	Method string
	Result json.RawMessage
	Params struct {
		Name      string
		Cursor    *string
		Arguments json.RawMessage
		Meta      struct{ ProgressToken string } `json:"_meta"`
	}
}

func (m *received) event() string {
	switch {
	case m.Method == "":
		return "answer"
	case m.Method == "tools/call":
		return m.Params.Name
	case m.Params.Cursor != nil:
		return m.Method + " next"
	}
	return m.Method
}

// happen has an event happen. do carries out actions, whose answers are messages.
func (s *script) happen(event string, m *received, do func(verb, arg string)) {
	s.count[event]++
	n := s.count[event]
	switch event {
	case "ask":
		s.asked = string(m.ID)
	case "answer":
		s.answer = string(m.Result)
	}
	actions := actionsOf(s.text, event, n)
	if len(actions) == 0 || strings.HasPrefix(actions[0], "first ") {
		actions = append(actions, actionsOf(s.defaults, event, n)...)
	}
	if len(actions) == 0 && m.ID != nil {
		actions = []string{`error {"code":-32601,"message":"unknown"}`}
	}
	s.act(actions, func(text string) string {
		if !strings.Contains(text, "$") {
			return text
		}
		cursor := ""
		if m.Params.Cursor != nil {
			cursor = *m.Params.Cursor
		}
		return strings.NewReplacer("$id", string(m.ID), "$asked", s.asked, "$token", m.Params.Meta.ProgressToken,
			"$args", string(m.Params.Arguments), "$cursor", cursor, "$result", s.answer, "$n", strconv.Itoa(n),
			"$cancelled", strconv.Itoa(s.count["notifications/cancelled"]), "$pid", strconv.Itoa(os.Getpid()),
			"$huge", strings.Repeat("x", 64<<20), "$deep", strings.Repeat("[", 5000)+strings.Repeat("]", 5000), "$bad", "\xff\xc0",
		).Replace(text)
	}, do)
	for _, f := range s.later[event] {
		f()
	}
	delete(s.later, event)
}

// actionsOf returns the actions of a script for the n-th event of a kind.
func actionsOf(text, event string, n int) (actions []string) {
	for line := range strings.Lines(text) {
		when, action, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		from, to := n, n
		if number, ok := strings.CutPrefix(when, event+" "); ok {
			if k, _ := fmt.Sscanf(number, "%d-%d", &from, &to); k == 0 {
				continue
			} else if k == 1 {
				to = from
			}
		} else if when != event {
			continue
		}
		if from <= n && n <= to {
			actions = append(actions, action)
		}
	}
	return actions
}

func (s *script) act(actions []string, expand func(string) string, do func(verb, arg string)) {
	answer := func(members string) { do("answer", `{"jsonrpc":"2.0","id":`+expand("$id")+`,`+members+`}`) }
	for i, action := range actions {
		verb, arg, _ := strings.Cut(action, " ")
		if verb == "await" {
			if s.count[arg] == 0 {
				s.later[arg] = append(s.later[arg], func() { s.act(actions[i+1:], expand, do) })
				return
			}
			continue
		}
		arg = expand(arg)
		switch verb {
		case "result", "error":
			answer(`"` + verb + `":` + arg)
		case "says":
			answer(fmt.Sprintf(`"result":{"content":[{"type":"text","text":%q}]}`, arg))
		case "tools":
			var tools []string
			for name := range strings.FieldsSeq(arg) {
				tools = append(tools, tool(name, `{"type":"object"}`))
			}
			answer(`"result":{"tools":[` + strings.Join(tools, ",") + `]}`)
		default:
			do(verb, arg)
		}
	}
}

func tool(name, schema string) string {
	return fmt.Sprintf(`{"name":%q,"inputSchema":%s}`, name, schema)
}

// serveStdio serves a script on standard input and output.
func serveStdio(text string) {
	s := newScript(text, scriptDefaults+"ask: says fine")
	do := func(verb, arg string) {
		switch verb {
		case "line", "answer", "first":
			fmt.Println(arg)
		case "lines":
			many, line, _ := strings.Cut(arg, " ")
			n, _ := strconv.Atoi(many)
			for i := range n {
				if _, err := fmt.Println(strings.ReplaceAll(line, "$i", strconv.Itoa(i))); err != nil {
					os.Exit(0)
				}
			}
		case "stderr":
			fmt.Fprintln(os.Stderr, arg)
		case "exit":
			code, _ := strconv.Atoi(arg)
			os.Exit(code)
		case "close":
			_ = os.Stdin.Close()
		case "stay":
			signal.Ignore(syscall.SIGTERM)
			time.Sleep(time.Hour)
		default:
			panic("no action " + verb)
		}
	}
	s.happen("start", &received{}, do)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var m received
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			panic(err)
		}
		s.happen(m.event(), &m, do)
	}
	s.happen("end", &received{}, do)
}

// scriptOverHTTP is a script over HTTP. It has one session, a new one after each initialize.
type scriptOverHTTP struct {
	*script
	session int // 0 means that it was forgotten
}

func (s *scriptOverHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	var m received
	if err != nil || r.Method == http.MethodPost && json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	event := m.event()
	if r.Method != http.MethodPost {
		event = r.Method
	}
	const header = "Mcp-Session-Id"
	if event == "initialize" {
		s.session = s.count[event] + 1
		w.Header().Set(header, strconv.Itoa(s.session))
	} else if m.ID != nil && (s.session == 0 || r.Header.Get(header) != strconv.Itoa(s.session)) {
		event = "unknown"
	}
	s.happen(event, &m, func(verb, arg string) {
		kind, status := "application/json", http.StatusOK
		switch verb {
		case "status":
			number, text, _ := strings.Cut(arg, " ")
			status, _ = strconv.Atoi(number)
			arg = text
		case "events":
			kind, arg = "text/event-stream", strings.ReplaceAll(arg, `\n`, "\n")
		case "cut":
			panic(http.ErrAbortHandler)
		case "forget":
			s.session = 0
			return
		case "answer":
		default: // the scenario sees neither an answer nor what it expects
			status, arg = http.StatusTeapot, "no action "+verb
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, arg)
	})
}

// acpDefaults are what a server over ACP does.
const acpDefaults = `
server/discover: result {"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}
tools/list: tools ask echo
ask: says fine
echo: says $args after $cancelled cancellations
`

// overACP serves a script over ACP.
func (s *script) overACP(ctx context.Context, conn *acp.ClientConn, req *acp.MessageMCPRequest) (*acp.MessageMCPResponse, error) {
	m := received{ID: json.RawMessage(strconv.Quote(string(req.RequestID))), Method: req.Method}
	params, err := json.Marshal(req.Params.Value())
	if err = errors.Join(err, json.Unmarshal(params, &m.Params)); err != nil {
		return nil, err
	}
	answered, answer := make(chan struct{}), new(acp.MessageMCPResponse)
	do := func(verb, arg string) {
		switch verb {
		case "line": // a notification, of this request if it names no other one
			var n struct {
				RequestID acp.MCPRequestID
				Method    string
				Params    map[string]json.RawMessage
			}
			if err := json.Unmarshal([]byte(arg), &n); err != nil {
				panic(err)
			}
			err = conn.MessageMCPNotification(ctx, &acp.MessageMCPNotification{
				ServerID: req.ServerID, RequestID: cmp.Or(n.RequestID, req.RequestID), Method: n.Method, Params: acp.Some(n.Params),
			})
			return
		case "answer":
			err = errors.Join(err, json.Unmarshal([]byte(arg), answer))
		case "refuse":
			refusal := new(acp.Error)
			err = cmp.Or[error](json.Unmarshal([]byte(arg), refusal), refusal)
		default:
			panic("no action " + verb)
		}
		close(answered)
	}
	happen := func(event string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.happen(event, &m, do)
	}
	happen(m.event())
	select {
	case <-answered:
		return answer, err
	case <-ctx.Done():
		m.ID = nil
		happen("notifications/cancelled")
		return nil, context.Cause(ctx)
	}
}

// The scenarios of testdata/servers.txt.
func TestServers(t *testing.T) {
	_, text, _ := strings.Cut(string(must.Get(os.ReadFile("testdata/servers.txt"))(t)), "\n\n# ")
	for scenario := range strings.SplitSeq(text, "\n\n# ") {
		name, steps, _ := strings.Cut(scenario, "\n")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, steps)
		})
	}
}

// play plays a scenario, of which lines with the same word in a row belong together.
func play(t *testing.T, steps string) {
	h := &host{answer: "allow"}
	opts := &mcpacp.Options{}
	opts.Client.ElicitationHandler = func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "decline"}, ctx.Err()
	}
	with := map[string]string{}
	var script, may []string
	open := sync.OnceFunc(func() { h.open(t, config(opts), h.bad(t, with, strings.Join(script, "\n"))...) })
	shown := 0
	for rest := strings.Split(strings.TrimSpace(steps), "\n"); len(rest) > 0; {
		var lines []string
		word, _, _ := strings.Cut(rest[0], " ")
		for len(rest) > 0 && strings.HasPrefix(rest[0]+" ", word+" ") {
			lines = append(lines, strings.TrimPrefix(rest[0][len(word):], " "))
			rest = rest[1:]
		}
		switch word {
		case "with":
			for option := range strings.FieldsSeq(strings.Join(lines, " ")) {
				name, value, _ := strings.Cut(option, "=")
				if !slices.Contains([]string{"MaxTools", "CallTime", "StartTime", "http", "acp", "command", "answer", "cancel"}, name) {
					t.Fatalf("no option %q", option)
				}
				with[name] = value
			}
			opts.MaxTools, _ = strconv.Atoi(with["MaxTools"])
			opts.CallTime, _ = time.ParseDuration(with["CallTime"])
			opts.StartTime, _ = time.ParseDuration(with["StartTime"])
			h.answer = cmp.Or(acp.PermissionOptionID(with["answer"]), h.answer)
			if _, ok := with["cancel"]; ok {
				cancelDuringProgress(t, h)
			}
		case "server":
			script = append(script, lines...)
		case "may":
			may = append(may, lines...)
		case "prompt":
			open()
			if res, err := h.session.Prompt(t.Context(), acp.TextBlock(strings.Join(lines, "\n"))); err != nil {
				h.note("error: " + err.Error())
			} else if res.StopReason != acp.StopReasonEndTurn {
				h.note("stop: " + string(res.StopReason))
			}
		case "sees":
			open()
			var all, seen []string
			for len(seen) < len(lines) {
				if all != nil {
					h.wait(t, lines)
				}
				all = append([]string{}, h.seen()...)
				seen = slices.DeleteFunc(slices.Clone(all[shown:]), func(line string) bool {
					return slices.ContainsFunc(may, func(may string) bool { return like(may, line) })
				})
			}
			shown = len(all)
			for i, line := range seen {
				seen[i] = strings.TrimRight(strings.ReplaceAll(line, "\n", "⏎"), " ")
			}
			slices.SortStableFunc(seen, func(a, b string) int { return notice(a) - notice(b) }) // it may also come earlier
			if diff := gocmp.Diff(lines, seen, gocmp.Comparer(like)); diff != "" {
				t.Errorf("the user saw (-want +got):\n%s", diff)
			}
		default:
			t.Fatalf("no step %q", word)
		}
	}
}

// note adds to what the user sees.
func (h *host) note(text string) {
	_ = h.take(context.Background(), nil, &acp.SessionNotification{Update: acp.AgentThoughtText(text)})
}

// bad declares the servers of a scenario: "bad", with a script, and "good".
func (h *host) bad(t *testing.T, with map[string]string, text string) []acp.MCPServer {
	if _, ok := with["acp"]; ok {
		h.handlers.MessageMCP = newScript(text, acpDefaults).overACP
		return []acp.MCPServer{declareACP("bad")}
	}
	if _, ok := with["http"]; ok {
		defaults := scriptDefaults + "notifications/initialized: status 202\nunknown: status 404\nGET: status 405\nDELETE: status 405\nask: says answer $n"
		server := httptest.NewServer(&scriptOverHTTP{script: newScript(text, defaults)})
		t.Cleanup(server.Close)
		return []acp.MCPServer{declareHTTP("bad", server.URL)}
	}
	tier.Need(t, tier.Normal)
	declared := server(t, "bad", text)
	if command := with["command"]; command != "" {
		declared = stdio("bad", command, nil)
	}
	return []acp.MCPServer{declared, server(t, "good", "")}
}

func notice(line string) int {
	if !strings.HasPrefix(line, "notice") {
		return 0
	}
	return 1 + strings.Count(line, `"good"`)
}

// like compares two lines, where ANY in one stands for any text.
func like(a, b string) bool {
	if strings.Contains(b, "ANY") {
		a, b = b, a
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(a), "ANY", ".*")
	return regexp.MustCompile("(?s)^" + pattern + "$").MatchString(b)
}
