// Command kit-agent is a small agent, made of packages agentkit, sessionstore and mcpacp. It has no model: words in the
// prompt select what it does: plan, think, read FILE, edit FILE, run `COMMAND`, name, and long, which writes until it
// is cancelled. /mcp TOOL {JSON} calls a tool of an MCP server, and /mcp lists the tools. It asks before it edits, runs
// and calls, unless the mode is "auto".
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/contrib/mcpacp"
)

func main() {
	dir := flag.String("state", "", "folder for sessions (default: in the user's folder for state)")
	login := flag.Bool("login", false, "refuse sessions until the client has logged in")
	flag.Parse()
	if err := serve(context.Background(), *dir, *login); err != nil {
		log.Fatal("kit-agent: ", err)
	}
}

func serve(ctx context.Context, dir string, login bool) error {
	store, _, err := sessionstore.OpenApp("acp-kit-agent", dir, nil)
	if err != nil {
		return err
	}
	config := agentkit.Config[state]{Store: store, Open: open, Prompt: answer, Commands: commands, Extend: mcpacp.Enable}
	config.WhileBusy = agentkit.Queue
	if login {
		guest := acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "guest", Name: "As a guest"})
		accept := func(context.Context, *acp.AgentConn, acp.AuthMethodID) error { return nil }
		config.Login = &agentkit.Login{Methods: []acp.AuthMethod{guest}, Run: accept}
	}
	opts := &acp.AgentOptions{Info: acp.Implementation{Name: "kit-agent", Version: "1.0"}}
	return errors.Join(agentkit.NewSessions(config).Serve(ctx, acp.Stdio(), opts), store.Close())
}

// state is stored beside the conversation: what the user has allowed for good, said and chosen.
type state struct {
	Allowed     []string // titles of tool calls, with the files or the server
	Name, Style string
	tools       *mcpacp.Set // not stored
}

type turn = agentkit.Turn[state]

// open prepares a session that is new, loaded or resumed.
func open(ctx context.Context, s *agentkit.Session[state], o *agentkit.Opening) (err error) {
	o.Modes = []acp.SessionMode{{ID: "ask", Name: "Ask first"}, {ID: "auto", Name: "Do it"}}
	o.Select("style", "Style", &s.State.Style, "plain", "loud")
	s.State.tools, err = mcpacp.Connect(ctx, s, o.MCPServers, &mcpacp.Options{Permit: permit})
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
	return errors.Join(t.SaveState(ctx), t.Sayf(ctx, "Hello %s. ", form.Name))
}

func permit(ctx context.Context, asker agentkit.Asker, tool *mcpacp.Tool, call *agentkit.ToolCall) error {
	t, state := asker.(*turn), call.State()
	what := fmt.Sprint(state.Title, state.Locations)
	if tool != nil {
		what += tool.Declaration // another program may have the same name
	}
	if t.Mode() == "auto" || slices.Contains(t.State.Allowed, what) {
		return nil
	}
	chosen, err := call.Ask(ctx, acp.AllowOnce("once", "Allow"),
		acp.AllowAlways("always", "Always allow, with any input: "+state.Title), acp.RejectOnce("no", "Reject"))
	if err != nil || chosen.OptionID != "always" {
		return err
	}
	t.State.Allowed = append(t.State.Allowed, what)
	return t.SaveState(ctx)
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

func readFile(ctx context.Context, t *turn, prompt string) error {
	path := fileIn(t, prompt, "notes.txt")
	return t.Tool(ctx, acp.ToolKindRead, "Read "+filepath.Base(path), func(call *agentkit.ToolCall) error {
		file, err := t.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: path})
		if err != nil {
			return err
		}
		return call.Update(acp.WithLocation(path, 0), acp.WithContent(acp.ToolText(file.Content)))
	})
}

func editFile(ctx context.Context, t *turn, prompt string) error {
	path := fileIn(t, prompt, "demo.txt")
	return t.Tool(ctx, acp.ToolKindEdit, "Edit "+filepath.Base(path), func(call *agentkit.ToolCall) error {
		file, err := t.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: path})
		if errors.Is(err, acp.ErrResourceNotFound) {
			file = &acp.ReadTextFileResponse{} // it is made
		} else if err != nil {
			return err
		}
		changed := file.Content + "The agent was here.\n"
		if err := errors.Join(call.Diff(path, file.Content, changed), permit(ctx, t, nil, call)); err != nil {
			return err
		}
		_, err = t.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: path, Content: changed})
		return err
	})
}

func runCommand(ctx context.Context, t *turn, prompt string) error {
	quoted := regexp.MustCompile("`[^`]*[^`\\s][^`]*`").FindString(prompt)
	argv := strings.Fields(cmp.Or(strings.Trim(quoted, "`"), "echo hello"))
	return t.Tool(ctx, acp.ToolKindExecute, "Run "+strings.Join(argv, " "), func(call *agentkit.ToolCall) error {
		if err := permit(ctx, t, nil, call); err != nil {
			return err
		}
		res, err := call.Run(ctx, &acp.CreateTerminalRequest{Command: argv[0], Args: argv[1:], Cwd: acp.Some(t.Cwd())})
		if err != nil {
			return err
		}
		return res.ExitStatus.Value().Err()
	})
}

// fileIn is the last file that a prompt names, or def, in the session's directory.
func fileIn(t *turn, prompt, def string) string {
	names := append([]string{def}, regexp.MustCompile(`[\w/-]*\.\w+`).FindAllString(prompt, -1)...)
	return filepath.Join(t.Cwd(), names[len(names)-1])
}
