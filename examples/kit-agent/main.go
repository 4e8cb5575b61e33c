// Command kit-agent is a small agent, made of the building blocks of packages agentkit and sessionstore. It has no model and
// starts no MCP servers. Words in the prompt select what it does: plan, think, read FILE, edit FILE, run `COMMAND`, name, and long,
// which writes until it is cancelled. It asks before it edits and runs, unless the session's mode is "auto".
package main

import (
	"cmp"
	"context"
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
)

func main() {
	dir := flag.String("state", "", "folder for sessions (default: in the user's folder for state)")
	login := flag.Bool("login", false, "refuse sessions until the client has logged in")
	flag.Parse()
	if err := serve(context.Background(), *dir, *login); err != nil {
		log.Fatal("kit-agent: ", err)
	}
}

// serve serves one client on standard input and output, until the client ends the connection.
func serve(ctx context.Context, dir string, login bool) (err error) {
	if dir == "" {
		if dir, err = sessionstore.DefaultDir("acp-kit-agent"); err != nil {
			return err
		}
	}
	store, err := sessionstore.Open(dir, nil)
	if err != nil {
		return err
	}
	config := agentkit.Config[state]{Store: store, Open: open, Prompt: answer, Commands: commands, WhileBusy: agentkit.Queue}
	if login {
		guest := acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "guest", Name: "As a guest"})
		welcome := func(context.Context, *acp.AgentConn, acp.AuthMethodID) error { return nil } // there is nothing to prove
		config.Login = &agentkit.Login{Methods: []acp.AuthMethod{guest}, Run: welcome}
	}
	opts := &acp.AgentOptions{Info: acp.Implementation{Name: "kit-agent", Version: "1.0"}}
	return errors.Join(agentkit.NewSessions(config).Serve(ctx, acp.Stdio(), opts), store.Close())
}

// state is what is stored of a session beside the conversation: what the user has allowed for good, and said and chosen.
type state struct {
	Allowed     []acp.ToolKind
	Name, Style string
}

type turn = agentkit.Turn[state]

// open prepares a session that is new, loaded or resumed.
func open(_ context.Context, s *agentkit.Session[state], o *agentkit.Opening) error {
	o.Modes = []acp.SessionMode{{ID: "ask", Name: "Ask first"}, {ID: "auto", Name: "Do it"}}
	o.Select("style", "Style", &s.State.Style, "plain", "loud")
	return nil
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
	{Name: "long", Description: "Write a long text", Run: writeLong},
}

// answer answers a prompt that is not a command. When it fails or is cancelled, the turn closes what is open.
func answer(ctx context.Context, t *turn, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	text := agentkit.PromptText(req)
	words := regexp.MustCompile(`[.,:]*(\s+|$)`).Split(strings.ToLower(text), -1)
	todo := slices.DeleteFunc(slices.Clone(commands), func(c agentkit.Command[state]) bool { return !slices.Contains(words, c.Name) })
	var plan *agentkit.Plan
	if slices.Contains(words, "plan") {
		var steps []string
		for _, c := range todo {
			steps = append(steps, c.Description)
		}
		plan = t.Plan(ctx, steps...)
	}
	for i, c := range todo {
		if err := errors.Join(plan.Start(i), c.Run(ctx, t, text)); err != nil {
			return nil, err
		}
		if err := plan.Done(i); err != nil {
			return nil, err
		}
	}
	format := map[string]string{"plain": "You said: %s", "loud": "You said: %s!"}[t.State.Style]
	return nil, t.Sayf(ctx, format, text)
}

func writeLong(ctx context.Context, t *turn, _ string) error {
	message := t.NewMessage(ctx)
	for range 2400 {
		if _, err := fmt.Fprint(message, "On and on it goes. "); err != nil {
			return err // also when the turn is cancelled
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

func askName(ctx context.Context, t *turn, _ string) error {
	form, err := acp.Ask(ctx, t, "Who are you?", struct{ Name string }{t.State.Name})
	if err != nil { // whatever became of the question, the turn goes on
		return t.Sayf(ctx, "I do not know your name. ")
	}
	t.State.Name = form.Name
	return errors.Join(t.SaveState(ctx), t.Sayf(ctx, "Hello %s. ", form.Name))
}

// permit asks the user, unless that is not needed.
func permit(ctx context.Context, t *turn, call *agentkit.ToolCall) error {
	kind := call.State().Kind
	if t.Mode() == "auto" || slices.Contains(t.State.Allowed, kind) {
		return nil
	}
	chosen, err := call.Ask(ctx, acp.AllowOnce("once", "Allow"), acp.AllowAlways("always", "Always allow"), acp.RejectOnce("no", "Reject"))
	if err != nil || chosen.OptionID != "always" {
		return err
	}
	t.State.Allowed = append(t.State.Allowed, kind)
	return t.SaveState(ctx)
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
		if err := errors.Join(call.Diff(path, file.Content, changed), permit(ctx, t, call)); err != nil {
			return err
		}
		_, err = t.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: path, Content: changed})
		return err
	})
}

func runCommand(ctx context.Context, t *turn, prompt string) error {
	quoted := strings.Trim(regexp.MustCompile("`[^`]*[^`\\s][^`]*`").FindString(prompt), "`")
	argv := strings.Fields(cmp.Or(quoted, "echo hello"))
	return t.Tool(ctx, acp.ToolKindExecute, "Run "+strings.Join(argv, " "), func(call *agentkit.ToolCall) error {
		if err := permit(ctx, t, call); err != nil {
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
