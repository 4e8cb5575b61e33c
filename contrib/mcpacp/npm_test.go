package mcpacp_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/npmtest"
)

// folder has the npm packages that the tests use.
var folder = npmtest.Folder{Files: []string{"testdata/npm/*"}}

// inputs returns those of all tools of a server from npm, from testdata/inputs.txt; DIR is the directory of the session.
func inputs(t *testing.T, server string) map[string]string {
	t.Helper()
	tools := map[string]string{}
	for line := range strings.Lines(string(must.Get(os.ReadFile("testdata/inputs.txt"))(t))) {
		if words := strings.SplitN(strings.TrimSpace(line), " ", 3); words[0] == server {
			tools[words[1]] = words[2]
		}
	}
	return tools
}

// needsTasks ends the notice about simulate-research-query, a tool for clients with tasks, which is left out.
const needsTasks = "it can only be called as a task"

// All tools of real servers are listed and called in turns of examples/kit-agent, a process, over every transport that
// the servers have; what passes is judged while it does, and again from its recording.
func TestServersFromNPM(t *testing.T) {
	dir := folder.Dir(t)
	node := must.Get(exec.LookPath("node"))(t)
	kitAgent := buildtest.Program(t, "../../examples/kit-agent")
	script := func(name string) string {
		return filepath.Join(dir, "node_modules", "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	}
	for _, test := range []struct {
		name, server string
		declare      func(t *testing.T, cwd string) acp.MCPServer
	}{
		{"everything on stdio", "everything", func(*testing.T, string) acp.MCPServer {
			return stdio("everything", node, []string{script("everything"), "stdio"})
		}},
		{"everything over HTTP", "everything", func(t *testing.T, _ string) acp.MCPServer {
			return declareHTTP("everything", listenOn(t, "/mcp", node, script("everything"), "streamableHttp"))
		}},
		{"everything over SSE", "everything", func(t *testing.T, _ string) acp.MCPServer {
			return declareSSE("everything", listenOn(t, "/sse", node, script("everything"), "sse"))
		}},
		{"filesystem", "filesystem", func(_ *testing.T, cwd string) acp.MCPServer {
			return stdio("filesystem", node, []string{script("filesystem"), cwd})
		}},
		{"memory", "memory", func(_ *testing.T, cwd string) acp.MCPServer {
			file := acp.EnvVariable{Name: "MEMORY_FILE_PATH", Value: filepath.Join(cwd, "memory.jsonl")}
			return stdio("memory", node, []string{script("memory")}, file)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			cwd := t.TempDir()
			for name, text := range map[string]string{"a.txt": "one\n", "b.txt": "two\n", "a.png": "\x89PNG\r\n\x1a\n"} {
				must.Do(t, os.WriteFile(filepath.Join(cwd, name), []byte(text), 0o600))
			}
			recording := &conformance.Recording{}
			h := &host{answer: "once", cwd: cwd, tap: &conformance.TapOptions{Level: conformance.Advice, OnMessage: recording.Add}}
			cmd := exec.Command(kitAgent, "-state", t.TempDir())
			cmd.Stderr = t.Output()
			h.connect(t, acp.Command(cmd))
			h.newSession(t, test.declare(t, cwd))
			var tools []string
			for len(tools) == 0 { // a server may start more slowly than kit-agent waits
				h.prompt(t, "/mcp")
				for _, line := range h.seen() {
					list, ok := strings.CutPrefix(line, "agent: ")
					if strings.HasPrefix(line, "notice: ") && strings.HasSuffix(line, needsTasks) {
						continue
					}
					if !ok {
						t.Fatalf("the user saw %s", line)
					}
					tools = strings.Fields(list)
				}
			}
			inputs := inputs(t, test.server)
			if len(tools) != len(inputs) {
				t.Errorf("%d tools, want %d: %q", len(tools), len(inputs), tools)
			}
			for _, tool := range tools {
				_, name, _ := strings.Cut(tool, "__")
				input, ok := inputs[name]
				if !ok {
					t.Errorf("no input for %s", tool)
					continue
				}
				h.prompt(t, "/mcp "+tool+" "+strings.ReplaceAll(input, "DIR", cwd))
			}
			called := 0
			for _, line := range h.seen() {
				if strings.Contains(line, ", completed:") {
					called++
				} else if strings.Contains(line, ", failed:") {
					t.Errorf("the user saw %.500s", line)
				}
			}
			t.Logf("%s: %d tools listed, %d called", test.name, len(tools), called)
			if called != len(tools) {
				t.Errorf("%d calls were answered, of %d tools", called, len(tools))
			}
			judge := conformance.NewJudge(nil, nil)
			for _, m := range recording.Messages() {
				for _, finding := range judge.Message(m) {
					t.Errorf("the recording: %v", finding)
				}
			}
		})
	}
}

// listenOn starts a server that listens on the port in its environment, and returns its address.
func listenOn(t *testing.T, path string, argv ...string) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	port := l.Addr().(*net.TCPAddr).Port
	must.Do(t, l.Close())
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), fmt.Sprint("PORT=", port))
	stderr := must.Get(cmd.StderrPipe())(t)
	must.Do(t, cmd.Start())
	var reading sync.WaitGroup
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		reading.Wait()
		_ = cmd.Wait() // it was killed
	})
	for in := bufio.NewScanner(stderr); in.Scan(); {
		if strings.Contains(in.Text(), fmt.Sprint("port ", port)) {
			reading.Go(func() { _, _ = io.Copy(io.Discard, stderr) })
			return fmt.Sprintf("http://127.0.0.1:%d%s", port, path)
		}
	}
	t.Fatal("the server does not listen")
	return ""
}
