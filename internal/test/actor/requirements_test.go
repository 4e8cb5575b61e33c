package actor_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/probe"
	"github.com/acpgo/sdk/conformance/transcript"
	"github.com/acpgo/sdk/internal/test/actor"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/shortform"
	"github.com/acpgo/sdk/internal/test/tier"
)

// runAs makes the test binary an MCP server.
const runAs = "ACTOR_TEST_RUN_AS"

// program is the actor as a program.
var program string

func TestMain(m *testing.M) {
	if os.Getenv(runAs) == "mcp" {
		if err := probe.ServeMCP(os.Stdin, os.Stdout, io.Discard); err != nil {
			panic(err)
		}
		return
	}
	buildtest.Main(m, map[string]*string{"./actor": &program})
}

// macros are lines that stand for others, in which the rest of the line replaces %s.
var macros = map[string]string{
	"hello": `-> initialize#"hello" {"protocolVersion":1,"clientInfo":{"name":"test","version":"0"},"clientCapabilities":%s}
		<- #"hello" {"protocolVersion":1,"...":""}`,
	"new": `-> session/new#"new" {"cwd":"<dir>","mcpServers":[]%s}
		<- #"new" {"sessionId":"$s","...":""}
		<- session/update {"sessionId":"$s","update":{"sessionUpdate":"available_commands_update","...":""}}`,
	"say": `-> session/prompt#"p" {"sessionId":"$s","prompt":[{"type":"text","text":%s}]}`,
	"end": `<-* session/update {"sessionId":"$s","...":""}
		<- #"p" {"stopReason":%s,"...":""}`,
	"update": `<- session/update {"sessionId":"$s","update":{"sessionUpdate":%s,"...":""}}`,
	"said":   `<- session/update {"sessionId":"$s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%s},"messageId":"$any"}}`,
}

// everything is what the client of hello can do.
const everything = `{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"elicitation":{"form":{},"url":{}},` +
	`"session":{"configOptions":{"boolean":{}},"notices":{},"compaction":{}},"auth":{"terminal":true}}`

// write replaces the macros and the places of a script.
func write(script string, places *strings.Replacer) string {
	var b strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(script, "\n  ", " ")) { // a line continues in indented ones
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		if word == "hello" && rest == "" {
			rest = everything
		}
		if macro, ok := macros[word]; ok {
			line = strings.Replace(macro, "%s", rest, 1)
		}
		b.WriteString(places.Replace(line) + "\n")
	}
	return b.String()
}

// TestRequirements plays testdata/requirements. Each file has the ids of the requirements that it shows in its name, its
// comment says how, and its sections are
//
//	agent [FLAG…]   a connection to the agent, whose client is played; the state is that of the sections before
//	client [other]  a connection of the client, whose agent is played; with <other> as another directory
//	input           the lines of the client's user
//	output          texts that the client prints, in this order
//
// A line is one of the short form or of macros. <dir>, <other>, <self> and <url> are the directory of the session, another
// one, an MCP server over stdio and one over HTTP.
func TestRequirements(t *testing.T) {
	mcp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token" {
			http.Error(w, "no token", http.StatusUnauthorized)
			return
		}
		if err := probe.ServeMCP(r.Body, w, io.Discard); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		mcp.Close()
	})
	files, err := filepath.Glob("testdata/requirements/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive := must.Get(txtar.ParseFile(file))(t)
			state, dir, other := t.TempDir(), t.TempDir(), t.TempDir()
			var input string
			var output []string
			var printed strings.Builder
			quoted := func(text string) string { return strings.Trim(strconv.Quote(text), `"`) }
			self := must.Get(os.Executable())(t)
			places := strings.NewReplacer("<dir>/", quoted(dir+string(filepath.Separator)), "<dir>", quoted(dir),
				"<other>", quoted(other), "<self>", quoted(self), "<url>", mcp.URL)
			for _, section := range archive.Files {
				words, text := strings.Fields(section.Name), string(section.Data)
				switch words[0] {
				case "input":
					input = places.Replace(text)
				case "output":
					output = strings.Split(strings.TrimSpace(places.Replace(text)), "\n")
				case "agent":
					playClient(t, actor.AgentOptions{
						State: state, RequireAuth: slices.Contains(words, "require-auth"), PageSize: 3,
						Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
					}, write(text, places))
				case "client":
					client := actor.NewClient(dir, strings.NewReader(input), &printed)
					if slices.Contains(words, "other") {
						client.Directories = []string{other}
					}
					playAgent(t, client, write(text, places))
					got := printed.String()
					for _, want := range output {
						_, after, ok := strings.Cut(got, want)
						if !ok {
							t.Fatalf("the client does not print %q in what follows the text before:\n%s", want, got)
						}
						got = after
					}
				default:
					t.Fatalf("the section %s is unknown", section.Name)
				}
			}
		})
	}
}

// judged judges what one side sends: the other is played, and may send what is wrong on purpose.
func judged(side conformance.Side) *conformance.TapOptions {
	return &conformance.TapOptions{
		Level:  conformance.Should,
		Ignore: func(f conformance.Finding) bool { return f.Side != side },
	}
}

// playClient plays the client of a script against the agent, which must end afterwards.
func playClient(t *testing.T, opts actor.AgentOptions, script string) {
	t.Helper()
	agent := must.Get(actor.NewAgent(opts))(t)
	ours, theirs := acp.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- agent.Serve(context.Background(), conformance.Tap(t, conformance.Agent, ours, judged(conformance.Agent)))
	}()
	transcript.Run(t, shortform.Expand(t, script), conformance.Client, theirs)
	if err := errors.Join(<-served, agent.Close()); err != nil {
		t.Error(err)
	}
}

// playAgent plays the agent of a script against the client.
func playAgent(t *testing.T, client *actor.Client, script string) {
	t.Helper()
	ours, theirs := acp.Pipe()
	ran := make(chan error, 1)
	go func() {
		ran <- client.Run(context.Background(), conformance.Tap(t, conformance.Client, ours, judged(conformance.Client)))
	}()
	transcript.Run(t, shortform.Expand(t, script), conformance.Agent, theirs)
	if err := <-ran; err != nil && !errors.Is(err, acp.ErrClosed) {
		t.Error(err)
	}
}

// AUT-7: the arguments of the terminal method, after the agent's own, start a login that ends. Standard output has
// messages only, and the end of standard input ends the process (TRN-5, TRN-10).
func TestAUT7_TRN5_TRN10_Process(t *testing.T) {
	tier.Need(t, tier.Normal)
	state := t.TempDir()
	run := func(input string, args ...string) string {
		cmd := exec.Command(program, append([]string{"-require-auth", "-state", state}, args...)...)
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return string(out)
	}
	lines := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"auth":{"terminal":true}}}}` +
		"\n{\n" + `{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}}` + "\n"
	out := run(lines)
	for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if !strings.Contains(line, []string{`"id":1,"result":`, "-32700", "-32000"}[i]) {
			t.Errorf("line %d is %s", i, line)
		}
	}
	args := regexp.MustCompile(`"args":\["([^"]+)"\]`).FindStringSubmatch(out)
	if args == nil {
		t.Fatalf("no login in a terminal is offered: %s", out)
	}
	run("Ada\n", args[1])
	if out := run(lines); !strings.Contains(out, `"sessions":[]`) {
		t.Errorf("after the login: %s", out)
	}
}
