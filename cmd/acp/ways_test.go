package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/registry"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// grabber is an agent that takes what it can get, whatever the client offers, and leaves in $GRAB_DIR what it got: what
// initialize said, the number of MCP servers, and the text of a file. What it writes and runs is there, too.
func grabber() {
	dir := os.Getenv("GRAB_DIR")
	got := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			panic(err)
		}
	}
	beAgent(acp.AgentHandlers{
		NewSession: func(_ context.Context, _ *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			got("mcp", strconv.Itoa(len(req.MCPServers)))
			return &acp.NewSessionResponse{SessionID: acp.SessionID(rand.Text())}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			var calls sync.WaitGroup
			for method, params := range map[string]map[string]any{
				"fs/read_text_file":  {"path": filepath.Join(dir, "file.txt")},
				"fs/write_text_file": {"path": filepath.Join(dir, "written"), "content": "x"},
				"terminal/create":    {"command": "sh", "args": []string{"-c", "echo $GRAB_SECRET > " + filepath.Join(dir, "ran.tmp") + " && mv ran.tmp ran"}, "cwd": dir},
			} {
				params["sessionId"] = s.ID()
				calls.Go(func() {
					res, err := rpc.Call[struct{ Content, TerminalID string }](ctx, s, method, params)
					switch {
					case err != nil:
					case res.Content != "":
						got("read", res.Content)
					case res.TerminalID != "":
						for err = os.ErrNotExist; err != nil; time.Sleep(time.Millisecond) { // the turn ends when the command has
							_, err = os.Stat(filepath.Join(dir, "ran"))
						}
					}
				})
			}
			calls.Wait()
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}, &acp.AgentOptions{Initialize: func(_ context.Context, req *acp.InitializeRequest, _ *acp.InitializeResponse) error {
		text, err := json.Marshal(req)
		got("initialize", string(text))
		return err
	}})
}

// A way is how an agent is reached.
type way struct {
	// agent returns the table of the configuration that names the agent, in TOML.
	agent func(g *grabbed) string
	flags []string // of acp exec
	slow  bool
	try   func(g *grabbed) (got []string) // by default, acp exec and acp agents login
}

// grabbed is one try.
type grabbed struct {
	*testing.T
	dir, home string
	env       []string
}

// the returns whether the agent has got something.
func (g *grabbed) the(name string) string {
	text, _ := os.ReadFile(filepath.Join(g.dir, name)) // on error it has not
	return string(text)
}

func (g *grabbed) serve() string {
	return startGateway(g.T, g.env, "--", must.Get(exec.LookPath("grabber"))(g.T)).url
}

func (g *grabbed) acp(args ...string) {
	cmd := exec.Command(must.Get(exec.LookPath("acp"))(g.T), args...)
	cmd.Env, cmd.Dir = append(os.Environ(), g.env...), g.dir
	out, err := cmd.CombinedOutput() // the status says, too, what was rejected
	g.Logf("%q: %v\n%s", args, err, out)
}

var words = map[bool]string{true: "yes", false: "no"}

func toml(words ...string) string {
	text, err := json.Marshal(words)
	if err != nil {
		panic(err)
	}
	return string(text) // an array of plain strings is the same in JSON
}

// waysToAgents are the rows of the table in SECURITY.md.
var waysToAgents = map[string]way{
	"command": {agent: func(g *grabbed) string { return "command = " + toml(must.Get(exec.LookPath("grabber"))(g.T)) }},
	"command, --deny": {
		agent: func(g *grabbed) string { return "command = " + toml(must.Get(exec.LookPath("grabber"))(g.T)) }, flags: []string{"--deny"},
	},
	"registry": {agent: func(g *grabbed) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/registry.json" {
				fmt.Fprintf(w, "#!/bin/sh\nexec '%s'\n", must.Get(exec.LookPath("grabber"))(g.T))
				return
			}
			fmt.Fprintf(w, `{"version":"1.0.0","agents":[{"id":"grab-acp","name":"Grabber","version":"1.0.0","description":"","distribution":{"binary":{%q:{"archive":"http://%s/grab-acp","cmd":"./grab-acp"}}}}]}`,
				registry.Platform(), r.Host)
		}))
		g.Cleanup(server.Close)
		g.env = append(g.env, "ACP_REGISTRY_URL="+server.URL+"/registry.json")
		g.acp("agents", "install", "--yes", "grab-acp")
		return `registry = "grab-acp"`
	}},
	"acp conduct": {agent: func(g *grabbed) string {
		return "command = " + toml(must.Get(exec.LookPath("acp"))(g.T), "conduct", "--", must.Get(exec.LookPath("grabber"))(g.T))
	}},
	"acp conduct --agent URL": {agent: func(g *grabbed) string {
		return "command = " + toml(must.Get(exec.LookPath("acp"))(g.T), "conduct", "--agent", g.serve())
	}},
	"acp translate": {agent: func(g *grabbed) string {
		return "command = " + toml(must.Get(exec.LookPath("acp"))(g.T), "translate", "--", must.Get(exec.LookPath("grabber"))(g.T))
	}},
	"acp connect URL": {agent: func(g *grabbed) string {
		return "command = " + toml(must.Get(exec.LookPath("acp"))(g.T), "connect", g.serve())
	}},
	"URL": {agent: func(g *grabbed) string { return fmt.Sprintf("url = %q", "ws"+strings.TrimPrefix(g.serve(), "http")) }},
	"URL, --remote-files, --remote-terminals": {
		agent: func(g *grabbed) string { return fmt.Sprintf("url = %q", g.serve()) }, flags: []string{"--remote-files", "--remote-terminals"},
	},
	"acp serve": {agent: func(g *grabbed) string { return fmt.Sprintf("url = %q", g.serve()) }},
	"acp-fleet": {slow: true, agent: func(g *grabbed) string {
		program := filepath.Join(g.TempDir(), "acp-fleet")
		build := exec.Command("go", "build", "-o", program, "./cmd/acp-fleet")
		build.Dir = "../../contrib/natsacp"
		if out, err := build.CombinedOutput(); err != nil {
			g.Fatalf("%v\n%s", err, out)
		}
		cmd := exec.Command(program, "up", "--listen", "127.0.0.1:0", "--", must.Get(exec.LookPath("grabber"))(g.T))
		cmd.Env = append(os.Environ(), g.env...)
		return fmt.Sprintf("url = %q", startServer(g.T, cmd).url)
	}},
	"acp inspect --agent URL --folder": {agent: func(g *grabbed) string { return fmt.Sprintf("url = %q", g.serve()) }, try: inspectGrabber},
}

// inspectGrabber tries acp inspect.
func inspectGrabber(g *grabbed) []string {
	page := openPage(g.T, startInspect(g.T, g.env, "--agent", "grab", "--folder", g.dir, "-C", g.dir).url)
	page.do("start", map[string]any{})
	page.request("1", "initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}})
	session := page.request("1", "session/new", map[string]any{"cwd": g.dir, "mcpServers": []any{}})
	page.do("send", map[string]any{"source": "1", "method": "session/prompt", "params": map[string]any{"sessionId": session.Session, "prompt": []any{}}})
	page.row("the file", func(r *inspectedRow) bool { return r.Method == "fs/read_text_file" && r.Re > 0 })
	asked := map[string]string{}
	for _, method := range []string{"fs/write_text_file", "terminal/create"} {
		request := page.row(method, func(r *inspectedRow) bool { return r.Method == method && r.Kind == "request" })
		before := g.the(map[string]string{"fs/write_text_file": "written", "terminal/create": "ran"}[method])
		asked[method] = map[bool]string{true: "asks", false: "yes"}[before == ""]
		row := map[string]any{"source": "1", "row": request.N, "option": 0}
		for seen := false; ; { // until the request has become a question, and that has been visible for long enough
			answer := page.try("choose", row)
			if answer == "" {
				break
			}
			switch {
			case strings.Contains(answer, "nothing in this row"), seen && strings.Contains(answer, view.ErrTooEarly.Error()):
			case !seen:
				seen = true
				page.try("seen", row)
			default:
				g.Fatalf("%s: %s", method, answer)
			}
		}
	}
	page.row("the end", func(r *inspectedRow) bool { return r.Method == "session/prompt" && r.Re > 0 })
	// Only now is it sure that the agent has kept what it got.
	return []string{
		words[g.the("read") != ""], asked["fs/write_text_file"], asked["terminal/create"], words[strings.Contains(g.the("ran"), "sesame")],
		words[g.the("mcp") != "0"], "no",
	}
}

// TestWays tries what an agent may do by each way to reach it, and compares that with SECURITY.md.
func TestWays(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the agent runs sh")
	}
	rows := waysTable(t)
	if got, want := slices.Sorted(maps.Keys(rows)), slices.Sorted(maps.Keys(waysToAgents)); !slices.Equal(got, want) {
		t.Fatalf("SECURITY.md has the rows\n%q, and the test\n%q", got, want)
	}
	for name, w := range waysToAgents {
		t.Run(name, func(t *testing.T) {
			if w.slow && tier.Current() < tier.Full {
				t.Skip("it builds a NATS server")
			}
			got := tryWay(t, w, false)
			if w.try == nil && !slices.Contains(w.flags, "--deny") {
				allowed := tryWay(t, w, true)
				for i := range got {
					if got[i] == "no" && allowed[i] == "yes" {
						got[i] = "asks"
					}
				}
			}
			if want := rows[name]; !slices.Equal(got, want) {
				t.Errorf("%s: it may %q, and SECURITY.md says %q", name, got, want)
			}
		})
	}
}

func tryWay(t *testing.T, w way, allow bool) []string {
	g := &grabbed{T: t, dir: t.TempDir(), home: t.TempDir()}
	g.env = []string{"GRAB_DIR=" + g.dir, "GRAB_SECRET=sesame", "HOME=" + g.home, "XDG_CONFIG_HOME=" + g.home, "XDG_STATE_HOME=" + g.home, "XDG_DATA_HOME=" + g.home, "XDG_CACHE_HOME=" + g.home}
	must.Do(t, os.WriteFile(filepath.Join(g.dir, "file.txt"), []byte("text"), 0o600))
	config := "mcp = [\"tools=sh\"]\n[agents.grab]\n" + w.agent(g) + "\n"
	if err := os.Mkdir(filepath.Join(g.home, "acp"), 0o700); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	must.Do(t, os.WriteFile(filepath.Join(g.home, "acp", "config.toml"), []byte(config), 0o600))
	if w.try != nil {
		return w.try(g)
	}
	args := append([]string{"exec", "--agent", "grab", "--timeout", "2m"}, w.flags...)
	if allow {
		args = append(args, "--allow")
	}
	g.acp(append(args, "grab")...)
	got := []string{
		words[g.the("read") != ""], words[g.the("written") != ""], words[g.the("ran") != ""], words[strings.Contains(g.the("ran"), "sesame")],
		words[g.the("mcp") != "0"],
	}
	if g.the("mcp") == "" {
		t.Error("the agent was not reached")
	}
	must.Do(t, os.Remove(filepath.Join(g.dir, "initialize")))
	g.acp("agents", "login", "grab")
	if g.the("initialize") == "" {
		t.Error("the agent was not reached for a login")
	}
	return append(got, words[strings.Contains(g.the("initialize"), `"auth":{"terminal":true`)])
}

// waysTable returns what the table in SECURITY.md says about each way: what it is now, for each column.
func waysTable(t *testing.T) map[string][]string {
	t.Helper()
	text := must.Get(os.ReadFile("../../SECURITY.md"))(t)
	_, section, ok := strings.Cut(string(text), "\n## What an agent may do without asking\n")
	if !ok {
		t.Fatal("SECURITY.md does not have the section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string][]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 7 || !strings.HasPrefix(cells[0], "`") {
			continue
		}
		for i, cell := range cells {
			if _, now, changed := strings.Cut(cell, " → "); changed {
				cells[i] = now
			}
		}
		rows[strings.ReplaceAll(cells[0], "`", "")] = cells[1:]
	}
	return rows
}

// TestWaysAreAll finds the places that decide how an agent is reached. If this test fails, a way was added: add a row to the
// table in SECURITY.md and to the map waysToAgents, and then the place here.
func TestWaysAreAll(t *testing.T) {
	read := func(name string) string {
		text := must.Get(os.ReadFile(name))(t)
		return string(text)
	}
	all := func(pattern, text string) (found []string) {
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			found = append(found, match[1])
		}
		slices.Sort(found)
		return slices.Compact(found)
	}
	_, schemes, _ := strings.Cut(read("../../acp/remote/dial.go"), "switch u.Scheme {")
	schemes, _, _ = strings.Cut(schemes, "default:")
	check := func(what string, got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, the ways have %q", what, got, want)
		}
	}
	check("schemes of URLs", all(`"(\w+)"`, schemes), "http", "https", "ws", "wss") // URL
	var makers []string
	for function := range strings.SplitSeq(read("internal/agents/agent.go"), "\nfunc ") {
		if strings.Contains(function, "Agent{") {
			makers = append(makers, all(`^(?:\(.*?\) )?(\w+)`, function)...)
		}
	}
	check("what makes an agent", makers, "started", "at") // command and registry, URL
	_, address, _ := strings.Cut(read("internal/config/file.go"), "type Agent struct {")
	address, _, _ = strings.Cut(address, "\n}")
	check("addresses in the configuration", all(`(?m)^\t(Command|URL|Registry|[A-Z]\w*URL)\b`, address), "Command", "Registry", "URL")
	var reach []string
	files := must.Get(filepath.Glob("*.go"))(t)
	for _, name := range files {
		if text := read(name); !strings.HasSuffix(name, "_test.go") && regexp.MustCompile(`\.resolver\(|remote\.Dial\(|agents\.New\(`).MatchString(text) {
			reach = append(reach, name)
		}
	}
	// agents.go and doctor.go have neither files nor terminals; ask.go has the function resolver.
	check("commands that reach agents", reach, "agents.go", "ask.go", "conduct.go", "connect.go", "doctor.go", "exec.go", "inspect.go", "run.go", "translate.go")
}
