package actor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/agentkit/workspace"
	"github.com/acpgo/sdk/acp/sessionstore"
)

// AgentOptions configures an Agent.
type AgentOptions struct {
	State       string        // the directory for sessions and the login; "" means that of the user
	RequireAuth bool          // refuse sessions until the client has logged in
	CommandTime time.Duration // for a command in a terminal; 0 means a minute
	PageSize    int           // sessions in one answer to session/list; 0 means agentkit's default
	MaxBytes    int           // what a connection holds at most; 0 means the default
	Logger      *slog.Logger
}

// Agent is the scripted agent, for any number of connections.
type Agent struct {
	*agentkit.Sessions[*state]

	AgentOptions

	store sessionstore.Store
}

// state is the state of a session.
type state struct {
	Thoughts string // an option
	Usage    bool   // an option
	Used     uint64 // approximate size of the conversation in bytes

	files   *workspace.Workspace
	servers []*server
}

type turn = agentkit.Turn[*state]

// NewAgent returns an agent, which the caller closes.
func NewAgent(opts AgentOptions) (*Agent, error) {
	opts.Logger = cmp.Or(opts.Logger, slog.Default())
	a := &Agent{AgentOptions: opts}
	var err error
	if a.store, a.State, err = sessionstore.OpenApp("acp-actor", opts.State, nil); err != nil {
		return nil, err
	}
	login := &agentkit.Login{
		Methods: []acp.AuthMethod{
			acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "example-login", Name: "Log in"}),
			acp.NewAuthMethodTerminal(acp.AuthMethodTerminal{
				ID: "example-terminal", Name: "Log in in a terminal", Args: []string{"-login"},
			}),
		},
		Run: func(_ context.Context, _ *acp.AgentConn, id acp.AuthMethodID) error {
			if id != "example-login" {
				return acp.InvalidParamsf("%q is not a method for authenticate", id)
			}
			return nil
		},
		Valid: func(context.Context, *acp.AgentConn) (bool, error) {
			_, err := os.Stat(loginFile(a.State))
			return !a.RequireAuth || err == nil, nil
		},
		Logout: func(context.Context, *acp.AgentConn) error {
			if err := os.Remove(loginFile(a.State)); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		},
	}
	config := agentkit.Config[*state]{
		Store: a.store, Login: login, Open: a.open, Prompt: a.answer,
		Close:  func(s *agentkit.Session[*state]) { closeServers(s.State.servers) },
		Decide: auto{}, AutoSave: true, PageSize: opts.PageSize, Logger: opts.Logger,
	}
	a.Sessions = agentkit.NewSessions(config)
	return a, nil
}

// auto allows, in the mode "auto", everything but to delete.
type auto struct{}

func (auto) Modes() []acp.SessionMode {
	return []acp.SessionMode{{ID: "ask", Name: "Ask"}, {ID: "auto", Name: "Auto"}}
}

func (auto) Decide(s agentkit.Place, call acp.ToolCall) (acp.PermissionOptionKind, string, error) {
	if s.Mode() == "auto" && call.Kind != acp.ToolKindDelete {
		return acp.PermissionOptionKindAllowOnce, "", nil
	}
	return "", "", nil
}

func loginFile(dir string) string { return filepath.Join(dir, "login") }

// Serve serves a client until the connection ends.
func (a *Agent) Serve(ctx context.Context, transport acp.Transport) error {
	return a.Sessions.Serve(ctx, transport, &acp.AgentOptions{
		Info:   acp.Implementation{Name: "acp-actor", Version: "1.0.0"},
		Prompt: acp.PromptCapabilities{Image: true, Audio: true, EmbeddedContext: true},
		MCP:    acp.MCPCapabilities{HTTP: true}, AdditionalDirectories: true,
		Conn: acp.ConnOptions{Logger: a.Logger, MaxBytes: a.MaxBytes},
	})
}

// Close ends all sessions. No connection may be served any more.
func (a *Agent) Close() error {
	a.Sessions.Close()
	return a.store.Close()
}

// open prepares a session that is new, loaded or resumed.
func (a *Agent) open(ctx context.Context, s *agentkit.Session[*state], o *agentkit.Opening) (err error) {
	if s.State == nil {
		s.State = &state{Usage: true}
	}
	o.Select("thoughts", "Thoughts", &s.State.Thoughts, "shown", "hidden")
	o.Toggle("usage", "Report usage", &s.State.Usage)
	for _, sc := range scenes {
		o.Commands = append(o.Commands, acp.SlashCommand(sc.word, sc.title, sc.hint))
	}
	if s.State.files, err = workspace.Open(s, nil); err != nil {
		return err
	}
	s.State.servers = a.startServers(ctx, s.Cwd(), o.MCPServers)
	return nil
}

// scene is what a word in a prompt plays.
type scene struct {
	word, title, hint string
	play              func(ctx context.Context, a *Agent, t *turn, text string) error
}

// scenes are all scenes but the plan, in the order in which they are played.
var scenes = []scene{
	{"think", "Think about it", "", think},
	{"read", "Read a file", "path", readFile},
	{"edit", "Edit a file", "path", editFile},
	{"run", "Run a command", "`command`", runCommand},
	{"permission", "Ask for permission", "", askPermission},
	{"form", "Ask a question", "", askForm},
	{"link", "Open a page", "", askURL},
	{"mode", "Switch the mode", "", switchMode},
	{"notice", "Send a notice", "", func(ctx context.Context, _ *Agent, t *turn, _ string) error {
		return t.Notify(ctx, acp.Notice{Severity: acp.NoticeSeverityInfo, Title: "The script is at its notice"})
	}},
	{"compact", "Compact the context", "", func(ctx context.Context, _ *Agent, t *turn, _ string) error {
		return t.Compact(ctx, func() (string, error) { return "The user and the agent had a talk.", nil })
	}},
	{"mcp", "List the tools of MCP servers", "", listTools},
	{"fail", "Fail", "", func(ctx context.Context, _ *Agent, t *turn, _ string) error {
		return t.Tool(ctx, acp.ToolKindOther, "Try the impossible", func(c *agentkit.ToolCall) error {
			return errors.Join(c.Begin(), acp.Public(errors.New("it is impossible")))
		})
	}},
	{"plan", "Make a plan of what follows", "", nil},
}

// reasons are the words that choose how a turn ends.
var reasons = map[string]acp.StopReason{
	"max_tokens": acp.StopReasonMaxTokens, "max_turn_requests": acp.StopReasonMaxTurnRequests,
	"refuse": acp.StopReasonRefusal,
}

// answer answers a prompt.
func (a *Agent) answer(ctx context.Context, t *turn, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	text := agentkit.PromptText(req)
	t.State.Used += uint64(len(text) + 256*len(req.Prompt))
	t.AtEnd(func(ctx context.Context) error { return report(ctx, t) })
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_'
	})
	if strings.HasPrefix(strings.Join(words, " "), "write a very long") {
		return nil, writeVeryLong(ctx, t)
	}
	stop := acp.StopReasonEndTurn
	for _, word := range words {
		stop = cmp.Or(reasons[word], stop)
	}
	said := func(sc scene) bool { return slices.Contains(words, sc.word) }
	chosen := slices.DeleteFunc(slices.Clone(scenes), func(sc scene) bool { return sc.play == nil || !said(sc) })
	chosen = append(chosen, scene{title: "Answer", play: func(ctx context.Context, _ *Agent, t *turn, _ string) error {
		return reply(ctx, t, req, stop)
	}})
	var plan *agentkit.Plan
	if slices.Contains(words, "plan") {
		var steps []string
		for _, sc := range chosen {
			steps = append(steps, sc.title)
		}
		plan = t.Plan(ctx, steps...)
	}
	for i, sc := range chosen {
		if err := plan.Do(i, func() error { return sc.play(ctx, a, t, text) }); err != nil {
			return nil, err
		}
	}
	return &acp.PromptResponse{StopReason: stop}, nil
}

// report sends, at the end of a turn, when it was, and the usage if the option says so.
func report(ctx context.Context, t *turn) error {
	now := acp.Some(sessionstore.FormatTime(time.Now()))
	err := t.Update(ctx, acp.NewSessionUpdateSessionInfoUpdate(acp.SessionInfoUpdate{UpdatedAt: now}))
	if t.State.Usage {
		const size = 200_000
		usage := acp.UsageUpdate{Used: min(t.State.Used/4, size), Size: size}
		err = errors.Join(err, t.Update(ctx, acp.NewSessionUpdateUsageUpdate(usage)))
	}
	return err
}

// reply is the last part of a turn.
func reply(ctx context.Context, t *turn, req *acp.PromptRequest, stop acp.StopReason) error {
	if stop == acp.StopReasonRefusal {
		return say(ctx, t, "I would rather not.")
	}
	var text strings.Builder
	text.WriteString("You said: " + agentkit.PromptText(req))
	for _, block := range req.Prompt {
		if _, ok := block.Variant.(*acp.ContentBlockText); !ok {
			text.WriteString("\n\nYou attached a " + strings.TrimPrefix(fmt.Sprintf("%T", block.Variant), "*acp.ContentBlock") + ".")
		}
	}
	err := say(ctx, t, text.String())
	for _, block := range req.Prompt {
		if link, ok := block.Variant.(*acp.ContentBlockResourceLink); ok && err == nil {
			chunk := acp.ContentChunk{Content: acp.ResourceLinkBlock(link.Name, link.URI)}
			err = t.Update(ctx, acp.NewSessionUpdateAgentMessageChunk(chunk))
		}
	}
	return err
}

// say sends a message in chunks of a few words, as a model does.
func say(ctx context.Context, t *turn, text string) error { return stream(t.NewMessage(ctx), t, text) }

func stream(message *agentkit.Text, t *turn, text string) error {
	t.State.Used += uint64(len(text))
	for words := range slices.Chunk(strings.SplitAfter(text, " "), 6) {
		if _, err := message.WriteString(strings.Join(words, "")); err != nil {
			return err
		}
		if err := message.Flush(); err != nil {
			return err
		}
	}
	return message.Close()
}

// writeVeryLong writes until the turn is cancelled.
func writeVeryLong(ctx context.Context, t *turn) error {
	message := t.NewMessage(ctx)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 2400 {
		if _, err := message.WriteString("On and on it goes. "); err != nil {
			return err
		}
		if err := message.Flush(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func think(ctx context.Context, _ *Agent, t *turn, _ string) error {
	if t.State.Thoughts == "hidden" {
		return nil
	}
	const text = "The user wants something. There is no model here, so the script says what comes next."
	return stream(t.NewThought(ctx), t, text)
}

func readFile(ctx context.Context, _ *Agent, t *turn, text string) error {
	path := t.State.files.Path(pathAfter(text, "read", "notes.txt"))
	return t.Tool(ctx, acp.ToolKindRead, "Read "+filepath.Base(path), func(c *agentkit.ToolCall) error {
		if err := c.Begin(); err != nil {
			return err
		}
		text, err := t.State.files.Read(ctx, path, 0, 0)
		if err != nil {
			return err
		}
		return c.Progress(text)
	}, acp.WithLocation(path, 1))
}

func editFile(ctx context.Context, _ *Agent, t *turn, text string) error {
	path := t.State.files.Path(pathAfter(text, "edit", "demo.txt"))
	return t.Tool(ctx, acp.ToolKindEdit, "Edit "+filepath.Base(path), func(c *agentkit.ToolCall) error {
		old, err := t.State.files.Read(ctx, path, 0, 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return t.State.files.Replace(ctx, c, path, old+"The agent was here.\n")
	}, acp.WithLocation(path, 0))
}

// pathAfter returns the path that follows a word of the prompt, or def.
func pathAfter(text, word, def string) string {
	found, command := false, strings.HasPrefix(text, "/"+word)
	for token := range strings.FieldsSeq(text) {
		token = strings.TrimRight(strings.Trim(token, "\"'`("), "\"'`).,;:!?")
		switch {
		case strings.EqualFold(strings.TrimPrefix(token, "/"), word):
			found = true
		case found && (command || strings.ContainsAny(token, `./\`)):
			return token
		}
	}
	return def
}

func runCommand(ctx context.Context, a *Agent, t *turn, text string) error {
	if !t.Conn().Initialized().ClientCapabilities.Terminal {
		return say(ctx, t, "I would run a command, but your client has no terminals.\n\n")
	}
	argv := []string{"echo", "Hello from the terminal"}
	if runtime.GOOS == "windows" {
		argv = []string{"cmd", "/c", "echo Hello from the terminal"}
	}
	if _, rest, ok := strings.Cut(text, "`"); ok {
		quoted, _, closed := strings.Cut(rest, "`")
		if words := strings.Fields(quoted); closed && len(words) > 0 {
			argv = words
		}
	}
	title := "Run `" + strings.Join(argv, " ") + "`"
	return t.Tool(ctx, acp.ToolKindExecute, title, func(c *agentkit.ToolCall) error {
		if _, err := c.Ask(ctx); err != nil {
			return err
		}
		running, cancel := context.WithTimeout(ctx, cmp.Or(a.CommandTime, time.Minute))
		defer cancel()
		res, err := c.Run(running, &acp.CreateTerminalRequest{Command: argv[0], Args: argv[1:], Cwd: acp.Some(t.Cwd())})
		if res == nil {
			return err
		}
		if err := res.ExitStatus.Value().Err(); err != nil {
			return acp.Public(err)
		}
		return c.Progress("The command exited with status 0.")
	}, acp.WithInput(map[string]any{"command": argv[0], "args": argv[1:]}))
}

// askPermission only asks.
func askPermission(ctx context.Context, _ *Agent, t *turn, _ string) error {
	return t.Tool(ctx, acp.ToolKindDelete, "Delete everything (not really)", func(c *agentkit.ToolCall) error {
		if _, err := c.Ask(ctx); err != nil {
			return err
		}
		return c.Progress("Nothing was deleted.")
	})
}

// askForm asks for the user's name and favourite colour.
func askForm(ctx context.Context, _ *Agent, t *turn, _ string) error {
	type person struct {
		Name   string `json:"name" title:"Your name"`
		Colour string `json:"colour,omitempty" title:"Your favourite colour" enum:"red,green,blue"`
	}
	who, answered, err := acp.Ask(ctx, t, "Who are you?", person{Colour: "red"})
	switch {
	case err != nil && !errors.Is(err, acp.ErrDismissed):
		return err
	case err != nil || !answered:
		return say(ctx, t, "Then I go on without an answer.\n\n")
	}
	return say(ctx, t, fmt.Sprintf("Hello %s, who likes %s.\n\n", who.Name, cmp.Or(who.Colour, "no colour")))
}

// askURL asks the user to open a page, on which nothing is to be done.
func askURL(ctx context.Context, _ *Agent, t *turn, _ string) error {
	wait := func(context.Context) error { return nil }
	opened, err := t.OpenURL(ctx, "Please look at this page.", "https://example.com/welcome", wait)
	if err == nil && opened || ctx.Err() != nil {
		return err
	}
	return say(ctx, t, "Then I go on without an answer.\n\n")
}

func switchMode(ctx context.Context, _ *Agent, t *turn, _ string) error {
	mode := acp.SessionModeID("ask")
	if t.Mode() == mode {
		mode = "auto"
	}
	return t.Update(ctx, acp.ModeUpdate(mode))
}
