// Command kit-agent is a small agent, made of the building blocks of packages agentkit and sessionstore. It has no model and
// starts no MCP servers. Words of a prompt say what it does: plan, think, read FILE, edit FILE, run `COMMAND`, and long, which
// writes until it is cancelled. It asks before it edits and runs, unless the session's mode is "auto".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/sessionstore"
)

func main() {
	dir := flag.String("state", "", "folder for sessions (default: in the user's folder for state)")
	flag.Parse()
	if err := serve(context.Background(), *dir); err != nil {
		log.Fatal("kit-agent: ", err)
	}
}

// serve serves one client on standard input and output, until the client ends the connection.
func serve(ctx context.Context, dir string) (err error) {
	if dir == "" {
		if dir, err = sessionstore.DefaultDir("acp-kit-agent"); err != nil {
			return err
		}
	}
	store, err := sessionstore.Open(dir, nil)
	if err != nil {
		return err
	}
	sessions := agentkit.NewSessions(agentkit.Config[state]{Store: store, Open: open, Prompt: answer, WhileBusy: agentkit.Queue})
	err = acp.ServeAgent(ctx, acp.Stdio(), sessions.Handlers(), sessions.Options(&acp.AgentOptions{
		Info: acp.Implementation{Name: "kit-agent", Version: "1.0"},
		Conn: acp.ConnOptions{DrainTime: time.Second},
	}))
	sessions.Close()
	return errors.Join(err, store.Close())
}

// state is what is stored of a session beside the conversation: what the user has allowed for good.
type state struct{ Allowed []acp.ToolKind }

type turn = agentkit.Turn[state]

// open prepares a session that is new, loaded or resumed.
func open(_ context.Context, _ *agentkit.Session[state], o *agentkit.Opening) error {
	o.Modes = []acp.SessionMode{{ID: "ask", Name: "Ask first"}, {ID: "auto", Name: "Do it"}}
	for _, sc := range scenes {
		o.Commands = append(o.Commands, acp.AvailableCommand{Name: sc.word, Description: sc.title})
	}
	if n := len(o.MCPServers); n > 0 {
		log.Printf("kit-agent: %d MCP servers are not started: there is no model that would use them", n)
	}
	return nil
}

// scenes are what the words of a prompt are for.
var scenes = []struct {
	word, title string
	play        func(ctx context.Context, t *turn, prompt []string) error
}{
	{"plan", "Make a plan", func(context.Context, *turn, []string) error { return nil }},
	{"think", "Think about it", think},
	{"read", "Read a file", readFile},
	{"edit", "Edit a file", editFile},
	{"run", "Run a command", runCommand},
	{"long", "Write a long text", writeLong},
}

// answer answers a prompt. When it fails or is cancelled, the turn closes what is open.
func answer(ctx context.Context, t *turn, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	prompt := strings.Fields(agentkit.PromptText(req))
	has := func(word string) bool {
		return slices.ContainsFunc(prompt, func(w string) bool { return strings.EqualFold(strings.Trim(w, "/.,:"), word) })
	}
	var plan []acp.PlanEntry
	show := func() error {
		if !has("plan") {
			return nil
		}
		return t.Update(ctx, acp.WholePlan(plan...))
	}
	for _, sc := range scenes {
		if !has(sc.word) {
			continue
		}
		plan = append(plan, acp.PlanEntry{Content: sc.title, Priority: acp.PlanEntryPriorityMedium, Status: acp.PlanEntryStatusInProgress})
		err := errors.Join(show(), sc.play(ctx, t, prompt))
		if errors.Is(err, agentkit.ErrDismissed) {
			return &acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
		} else if err != nil {
			return nil, err
		}
		plan[len(plan)-1].Status = acp.PlanEntryStatusCompleted
	}
	_, err := fmt.Fprintf(t.NewMessage(ctx), "You said: %s", strings.Join(prompt, " "))
	return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, errors.Join(err, show())
}

func think(ctx context.Context, t *turn, _ []string) error {
	_, err := fmt.Fprint(t.NewThought(ctx), "There is no model here: the prompt says what comes next.")
	return err
}

func writeLong(ctx context.Context, t *turn, _ []string) error {
	message := t.NewMessage(ctx)
	for range 2400 {
		if _, err := fmt.Fprint(message, "On and on it goes. "); err != nil {
			return err // also when the turn is cancelled
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

// use runs a tool as a tool call.
func use(ctx context.Context, t *turn, kind acp.ToolKind, title string, do func(*agentkit.ToolCall) error) error {
	call, err := t.StartToolCall(ctx, title, acp.WithKind(kind))
	if err != nil {
		return err
	}
	return call.End(do(call))
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

func readFile(ctx context.Context, t *turn, prompt []string) error {
	path := fileIn(t, prompt, "notes.txt")
	return use(ctx, t, acp.ToolKindRead, "Read "+filepath.Base(path), func(call *agentkit.ToolCall) error {
		file, err := t.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: path})
		if err != nil {
			return err
		}
		return call.Update(acp.WithLocation(path, 0), acp.WithContent(acp.ToolText(file.Content)))
	})
}

func editFile(ctx context.Context, t *turn, prompt []string) error {
	path := fileIn(t, prompt, "demo.txt")
	return use(ctx, t, acp.ToolKindEdit, "Edit "+filepath.Base(path), func(call *agentkit.ToolCall) error {
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

func runCommand(ctx context.Context, t *turn, prompt []string) error {
	argv := []string{"echo", "hello"}
	if parts := strings.Split(strings.Join(prompt, " "), "`"); len(parts) > 2 && strings.TrimSpace(parts[1]) != "" {
		argv = strings.Fields(parts[1])
	}
	return use(ctx, t, acp.ToolKindExecute, "Run "+strings.Join(argv, " "), func(call *agentkit.ToolCall) error {
		if err := permit(ctx, t, call); err != nil {
			return err
		}
		_, err := call.Run(ctx, &acp.CreateTerminalRequest{Command: argv[0], Args: argv[1:], Cwd: acp.Some(t.Cwd())})
		return err
	})
}

// fileIn is the last file that a prompt names, or def, in the session's directory.
func fileIn(t *turn, prompt []string, def string) string {
	for _, word := range prompt {
		if name := strings.Trim(word, "`'\",.:;"); strings.Contains(name, ".") {
			def = name
		}
	}
	return filepath.Join(t.Cwd(), def)
}
