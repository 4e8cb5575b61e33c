// Command kit-agent is a small agent, made of packages agentkit, policy, sessionstore and mcpacp. It has no model:
// words in the prompt select what it does: plan, think, read FILE, edit FILE, run `COMMAND`, name, and long, which
// writes until it is cancelled. /mcp TOOL {JSON} calls a tool of an MCP server, and /mcp lists the tools. Before it
// edits, runs and calls, the mode, the rules or the user must allow it.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/agentkit/workspace"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/contrib/mcpacp"
)

func main() {
	where := flag.String("state", "", "folder for sessions and rules (default: in the user's folder for state)")
	login := flag.Bool("login", false, "refuse sessions until the client has logged in")
	flag.Parse()
	store, dir, err := sessionstore.OpenApp("acp-kit-agent", *where, nil)
	if err != nil {
		log.Fatal("kit-agent: ", err)
	}
	config := agentkit.Config[state]{Store: store, Open: open, Prompt: answer, Commands: commands, AutoSave: true}
	config.Decide, config.WhileBusy, config.Extend = policy.ForAgent("kit-agent", dir), agentkit.Queue, mcpacp.Enable
	if *login {
		guest := acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "guest", Name: "As a guest"})
		accept := func(context.Context, *acp.AgentConn, acp.AuthMethodID) error { return nil }
		config.Login = &agentkit.Login{Methods: []acp.AuthMethod{guest}, Run: accept}
	}
	opts := &acp.AgentOptions{Info: acp.Implementation{Name: "kit-agent", Version: "1.0"}}
	err = agentkit.NewSessions(config).Serve(context.Background(), acp.Stdio(), opts)
	if err := errors.Join(err, store.Close()); err != nil {
		log.Fatal("kit-agent: ", err)
	}
}

// state is what a session has beside the conversation. The exported fields are stored.
type state struct {
	Name, Style string // of the user, and of the answers
	files       *workspace.Workspace
	tools       *mcpacp.Set
}

type turn = agentkit.Turn[state]

// open prepares a session that is new, loaded or resumed.
func open(ctx context.Context, s *agentkit.Session[state], o *agentkit.Opening) (err error) {
	o.Select("style", "Style", &s.State.Style, "plain", "loud")
	if s.State.files, err = workspace.Open(s, nil); err == nil {
		s.State.tools, err = mcpacp.Connect(ctx, s, o.MCPServers, nil)
	}
	return err
}

// commands are what the words of a prompt are for.
var commands = []agentkit.Command[state]{
	{Name: "think", Description: "Think about it", Run: func(ctx context.Context, t *turn, _ string) error {
		return t.Update(ctx, acp.AgentThoughtText("There is no model here: the prompt says what comes next."))
	}},
	{Name: "read", Description: "Read a file", Hint: "FILE", Run: readFile},
	{Name: "edit", Description: "Edit a file", Hint: "FILE", Run: editFile},
	{Name: "run", Description: "Run a command", Hint: "`COMMAND`", Run: runCommand},
	{Name: "name", Description: "Ask for the user's name", Run: askName},
	{Name: "mcp", Description: "Call a tool of an MCP server, or list them", Hint: "TOOL {JSON}", Run: callTool},
	{Name: "long", Description: "Write a long text", Run: writeLong},
}

// answer answers a prompt that is not a command. When it fails or is cancelled, the turn closes what is open.
func answer(ctx context.Context, t *turn, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	text := agentkit.PromptText(req)
	words := regexp.MustCompile(`[.,:]*(\s+|$)`).Split(strings.ToLower(text), -1)
	unsaid := func(c agentkit.Command[state]) bool { return !slices.Contains(words, c.Name) }
	todo := slices.DeleteFunc(slices.Clone(commands), unsaid)
	var plan *agentkit.Plan
	if slices.Contains(words, "plan") {
		var steps []string
		for _, c := range todo {
			steps = append(steps, c.Description)
		}
		plan = t.Plan(ctx, steps...)
	}
	for i, c := range todo {
		if err := plan.Do(i, func() error { return c.Run(ctx, t, text) }); err != nil {
			return nil, err
		}
	}
	return nil, t.Sayf(ctx, map[string]string{"plain": "You said: %s", "loud": "You said: %s!"}[t.State.Style], text)
}

func writeLong(ctx context.Context, t *turn, _ string) (err error) {
	message := t.NewMessage(ctx)
	for i := 0; i < 2400 && err == nil; i++ {
		_, err = fmt.Fprint(message, "On and on it goes. ") // an error also when the turn is cancelled
		time.Sleep(50 * time.Millisecond)
	}
	return err
}

func askName(ctx context.Context, t *turn, _ string) error {
	form, answered, err := acp.Ask(ctx, t, "Who are you?", struct{ Name string }{t.State.Name})
	if t.State.Name = form.Name; err != nil || !answered {
		return errors.Join(err, t.Sayf(ctx, "I do not know your name. "))
	}
	return t.Sayf(ctx, "Hello %s. ", form.Name)
}

func callTool(ctx context.Context, t *turn, input string) error {
	if name, args, _ := strings.Cut(input, " "); name != "" {
		_, err := t.State.tools.Call(ctx, t, name, json.RawMessage(args))
		return err
	}
	tools, err := t.State.tools.Tools(ctx)
	for _, tool := range tools {
		err = errors.Join(err, t.Sayf(ctx, "%s\n", tool.Name))
	}
	return err
}

// file is how a prompt names a file.
var file = regexp.MustCompile(`[\w/-]*\.\w+`)

func readFile(ctx context.Context, t *turn, prompt string) error {
	path := cmp.Or(file.FindString(prompt), "notes.txt")
	return t.Tool(ctx, acp.ToolKindRead, "Read "+path, func(call *agentkit.ToolCall) error {
		text, err := t.State.files.Read(ctx, path, 0, 0)
		if err == nil {
			err = call.Show(text)
		}
		return err
	}, acp.WithLocation(t.State.files.Path(path), 0))
}

func editFile(ctx context.Context, t *turn, prompt string) error {
	path := cmp.Or(file.FindString(prompt), "demo.txt")
	return t.Tool(ctx, acp.ToolKindEdit, "Edit "+path, func(call *agentkit.ToolCall) error {
		text, err := t.State.files.Read(ctx, path, 0, 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return t.State.files.Replace(ctx, call, path, text+"The agent was here.\n")
	})
}

func runCommand(ctx context.Context, t *turn, prompt string) error {
	quoted := regexp.MustCompile("`[^`]*[^`\\s][^`]*`").FindString(prompt)
	command := cmp.Or(strings.Trim(quoted, "`"), "echo hello")
	return t.Tool(ctx, acp.ToolKindExecute, "Run "+command, func(call *agentkit.ToolCall) error {
		_, err := t.State.files.Shell(ctx, call, command, time.Minute)
		return err
	}, acp.WithInput(map[string]string{"command": command}))
}
