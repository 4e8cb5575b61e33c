//go:build linux || darwin

package terminal

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// m is a JSON object. The agent sends much that the types of the library do not have.
type m = map[string]any

// gateVariable names the pipe from which the agent reads a byte at each gate of a script before it continues.
const gateVariable = "STAGE_GATE"

// stage is the program of the agent.
func stage() {
	a := &stageAgent{sessions: map[acp.SessionID]*stageSession{}, out: &stageOutput{w: os.Stdout}}
	flags := flag.NewFlagSet("stage", flag.ExitOnError)
	flags.BoolVar(&a.login, "login-required", false, "have no session before a login")
	terminalLogin := flags.Bool("login", false, "be the login in a terminal")
	flags.BoolVar(&a.bare, "bare", false, "offer nothing but sessions")
	flags.BoolVar(&a.deaf, "deaf", false, "do not answer initialize")
	broken := flags.String("broken", "", "die at the start with these last words")
	flags.StringVar(&a.title, "title", "Stage", "the agent's `NAME`")
	flags.StringVar(&a.model, "model", "Large 5", "the `NAME` of its first model")
	flags.StringVar(&a.logins, "logins", "", "the `FILE` that a login in a terminal makes")
	if err := flags.Parse(os.Args[1:]); err != nil {
		os.Exit(2)
	}
	switch {
	case *broken != "":
		fmt.Fprintln(os.Stderr, *broken)
		os.Exit(5)
	case *terminalLogin:
		fmt.Print("Password: ")
		var word string
		if _, err := fmt.Scanln(&word); err != nil || word != "sesame" {
			fmt.Println("Wrong.")
			os.Exit(1)
		}
		if err := os.WriteFile(a.logins, nil, 0o600); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if name := os.Getenv(gateVariable); name != "" {
		gate, err := os.OpenFile(name, os.O_RDWR, 0) // with its own writer it never ends
		if err != nil {
			fmt.Fprintln(os.Stderr, "stage:", err)
			os.Exit(1)
		}
		a.gate = gate
	}
	err := acp.ServeAgent(context.Background(), rpc.IO(os.Stdin, a.out, 0), a.handlers(), a.options())
	if err != nil {
		fmt.Fprintln(os.Stderr, "stage:", err)
		os.Exit(1)
	}
}

// stageOutput is standard output, to which lines can be written that no library would write.
type stageOutput struct {
	mu   sync.Mutex
	w    io.WriteCloser
	part bool     // a part of a line has been written
	held [][]byte // until the line is complete
}

func (l *stageOutput) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, err := l.w.Write(b)
	if n > 0 {
		l.part = b[n-1] != '\n'
	}
	for !l.part && err == nil && len(l.held) > 0 {
		_, err = l.w.Write(l.held[0])
		l.held = l.held[1:]
	}
	return n, err
}

func (l *stageOutput) Close() error { return l.w.Close() }

// raw writes a line unchanged.
func (l *stageOutput) raw(line string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.part {
		l.held = append(l.held, []byte(line+"\n"))
		return nil
	}
	_, err := io.WriteString(l.w, line+"\n")
	return err
}

type stageAgent struct {
	login, bare, deaf bool
	logins            string
	title, model      string
	gate              *os.File
	out               *stageOutput

	mu       sync.Mutex
	sessions map[acp.SessionID]*stageSession
	created  int
	loggedIn bool
	deleted  []acp.SessionID
}

type stageSession struct {
	cwd            string
	large          string // the name of the first model
	mode           acp.SessionModeID
	model, thought acp.SessionConfigValueID
	title          string
}

// kept returns the sessions of earlier days.
func kept() []acp.SessionInfo {
	ago := func(days int) acp.Opt[string] {
		return acp.Some(time.Now().Add(-time.Duration(days)*24*time.Hour - time.Hour).UTC().Format(time.RFC3339))
	}
	return []acp.SessionInfo{
		{SessionID: "old-1", Title: acp.Some("Fix the build"), UpdatedAt: ago(3)},
		{SessionID: "old-2", Title: acp.Some("Write the docs"), UpdatedAt: ago(4)},
		{SessionID: "old-3", UpdatedAt: ago(5)},
	}
}

func (a *stageAgent) handlers() acp.AgentHandlers {
	h := acp.AgentHandlers{NewSession: a.newSession, Prompt: a.prompt}
	if a.bare {
		return h
	}
	h.Authenticate = func(_ context.Context, _ *acp.AgentConn, req *acp.AuthenticateRequest) (*acp.AuthenticateResponse, error) {
		if req.MethodID != "agent" {
			return nil, acp.InvalidParamsf("no such login")
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.loggedIn = true
		return &acp.AuthenticateResponse{}, nil
	}
	h.Logout = func(context.Context, *acp.AgentConn, *acp.LogoutRequest) (*acp.LogoutResponse, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.loggedIn = false
		return &acp.LogoutResponse{}, nil
	}
	h.ListSessions = a.list
	h.LoadSession = a.load
	h.ResumeSession = func(_ context.Context, _ *acp.AgentSession, req *acp.ResumeSessionRequest) (*acp.ResumeSessionResponse, error) {
		s := a.add(req.SessionID, req.Cwd)
		return &acp.ResumeSessionResponse{Modes: acp.Some(s.modes()), ConfigOptions: acp.Some(s.options())}, nil
	}
	h.ForkSession = func(ctx context.Context, session *acp.AgentSession, req *acp.ForkSessionRequest) (*acp.ForkSessionResponse, error) {
		id := req.SessionID + "-fork"
		s := a.add(id, req.Cwd)
		return &acp.ForkSessionResponse{SessionID: id, Modes: acp.Some(s.modes()), ConfigOptions: acp.Some(s.options())}, nil
	}
	h.CloseSession = func(context.Context, *acp.AgentSession, *acp.CloseSessionRequest) (*acp.CloseSessionResponse, error) {
		return &acp.CloseSessionResponse{}, nil
	}
	h.DeleteSession = func(_ context.Context, _ *acp.AgentSession, req *acp.DeleteSessionRequest) (*acp.DeleteSessionResponse, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.deleted = append(a.deleted, req.SessionID)
		return &acp.DeleteSessionResponse{}, nil
	}
	h.SetSessionTitle = func(ctx context.Context, session *acp.AgentSession, req *acp.SetSessionTitleRequest) (*acp.SetSessionTitleResponse, error) {
		a.mu.Lock()
		if s := a.sessions[req.SessionID]; s != nil {
			s.title = req.Title
		}
		a.mu.Unlock()
		return &acp.SetSessionTitleResponse{Title: req.Title}, session.Update(ctx, acp.TitleUpdate(req.Title))
	}
	h.SetSessionMode = func(ctx context.Context, session *acp.AgentSession, req *acp.SetSessionModeRequest) (*acp.SetSessionModeResponse, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.sessions[req.SessionID].mode = req.ModeID
		return &acp.SetSessionModeResponse{}, nil
	}
	h.SetSessionConfigOption = a.set
	return h
}

func (a *stageAgent) options() *acp.AgentOptions {
	o := &acp.AgentOptions{
		Info:         acp.Implementation{Name: "stage", Title: acp.Some(a.title), Version: "1.2.3"},
		Prompt:       acp.PromptCapabilities{Image: true, Audio: true, EmbeddedContext: true},
		Experimental: acp.FeatureFork | acp.FeatureSessionTitle,
	}
	if a.deaf {
		o.Initialize = func(ctx context.Context, _ *acp.InitializeRequest, _ *acp.InitializeResponse) error {
			<-ctx.Done()
			return ctx.Err()
		}
	}
	if !a.bare {
		o.AuthMethods = []acp.AuthMethod{
			acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "agent", Name: "Log in at once", Description: acp.Some("Asks for nothing.")}),
			acp.NewAuthMethodTerminal(acp.AuthMethodTerminal{
				ID: "terminal", Name: "Log in in the terminal", Description: acp.Some("The password is sesame."), Args: []string{"-login"},
			}),
		}
	}
	return o
}

// add creates a session.
func (a *stageAgent) add(id acp.SessionID, cwd string) *stageSession {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &stageSession{cwd: cwd, large: a.model, mode: "ask", model: "large", thought: "medium"}
	a.sessions[id] = s
	return s
}

func (s *stageSession) modes() acp.SessionModeState {
	return acp.SessionModeState{CurrentModeID: s.mode, AvailableModes: []acp.SessionMode{
		{ID: "ask", Name: "Ask", Description: acp.Some("Asks before it changes something.")},
		{ID: "code", Name: "Code", Description: acp.Some("Changes files without asking.")},
		{ID: "plan", Name: "Plan", Description: acp.Some("Changes nothing.")},
	}}
}

func (s *stageSession) options() []acp.SessionConfigOption {
	model := acp.SelectOption("model", "Model", s.model, acp.SelectValue("large", s.large), acp.SelectValue("small", "Small 5"), acp.SelectValue("tiny", "Tiny 5"))
	model.Category = acp.Some(acp.SessionConfigOptionCategoryModel)
	thought := acp.SelectOption("thought", "Thinking", s.thought, acp.SelectValue("low", "Low"), acp.SelectValue("medium", "Medium"), acp.SelectValue("high", "High"))
	thought.Category = acp.Some(acp.SessionConfigOptionCategoryThoughtLevel)
	return []acp.SessionConfigOption{model, thought}
}

func (a *stageAgent) authorized() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.login || a.loggedIn {
		return nil
	}
	if _, err := os.Stat(a.logins); a.logins != "" && err == nil {
		return nil
	}
	return acp.ErrAuthRequired
}

func (a *stageAgent) newSession(ctx context.Context, conn *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
	if err := a.authorized(); err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.created++
	id := acp.SessionID(fmt.Sprintf("new-%d", a.created))
	a.mu.Unlock()
	s := a.add(id, req.Cwd)
	if a.bare {
		return &acp.NewSessionResponse{SessionID: id}, nil
	}
	acp.AfterResponse(ctx, func(ctx context.Context) {
		// A client that no longer reads does not need it.
		_ = conn.Session(id).Update(ctx, acp.CommandsUpdate(
			acp.AvailableCommand{Name: "review", Description: "Review the changes", Input: acp.Some(
				acp.NewAvailableCommandInputUnstructured(acp.UnstructuredCommandInput{Hint: "what to look at"}))},
			acp.AvailableCommand{Name: "test", Description: "Run the tests"},
			acp.AvailableCommand{Name: "reset", Description: "Forget everything"},
		))
	})
	return &acp.NewSessionResponse{SessionID: id, Modes: acp.Some(s.modes()), ConfigOptions: acp.Some(s.options())}, nil
}

func (a *stageAgent) list(_ context.Context, _ *acp.AgentConn, req *acp.ListSessionsRequest) (*acp.ListSessionsResponse, error) {
	if err := a.authorized(); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	res := &acp.ListSessionsResponse{Sessions: []acp.SessionInfo{}}
	for _, info := range kept() {
		if slices.Contains(a.deleted, info.SessionID) {
			continue
		}
		info.Cwd, _ = os.Getwd()
		res.Sessions = append(res.Sessions, info)
	}
	for _, id := range slices.Sorted(maps.Keys(a.sessions)) {
		if s := a.sessions[id]; strings.HasPrefix(string(id), "new-") && !slices.Contains(a.deleted, id) {
			info := acp.SessionInfo{SessionID: id, Cwd: s.cwd}
			if s.title != "" {
				info.Title = acp.Some(s.title)
			}
			res.Sessions = append(res.Sessions, info)
		}
	}
	return res, nil
}

func (a *stageAgent) load(ctx context.Context, session *acp.AgentSession, req *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
	if err := a.authorized(); err != nil {
		return nil, err
	}
	s := a.add(req.SessionID, req.Cwd)
	t := &scene{ctx: ctx, agent: a, session: session, stage: s}
	if err := t.perform(func(t *scene) { t.play(lines["old-session"]) }); err != nil {
		return nil, err
	}
	return &acp.LoadSessionResponse{Modes: acp.Some(s.modes()), ConfigOptions: acp.Some(s.options())}, nil
}

func (a *stageAgent) set(_ context.Context, _ *acp.AgentSession, req *acp.SetSessionConfigOptionRequest) (*acp.SetSessionConfigOptionResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sessions[req.SessionID]
	if v, ok := req.Variant.(*acp.SetSessionConfigOptionRequestValueID); ok {
		switch req.ConfigID {
		case "model":
			s.model = v.Value
		case "thought":
			s.thought = v.Value
		}
	}
	return &acp.SetSessionConfigOptionResponse{ConfigOptions: s.options()}, nil
}

// A scene is a turn. What fails in it ends it, by check.
type scene struct {
	ctx     context.Context
	agent   *stageAgent
	session *acp.AgentSession
	stage   *stageSession
	prompt  string
	blocks  []acp.ContentBlock
}

// cut is the panic that ends a scene with an error.
type cut struct{ error }

// check ends the scene if there is an error.
func check(err error) {
	if err != nil {
		panic(cut{err})
	}
}

// perform plays a scene, and returns the error that ends it.
func (t *scene) perform(play func(*scene)) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case cut:
			err = v.error
		default:
			panic(v)
		}
	}()
	play(t)
	return nil
}

// errCancelled ends a scene that the user has cancelled.
var errCancelled = errors.New("cancelled")

// stops are stop reasons other than end_turn.
type stops acp.StopReason

func (s stops) Error() string { return string(s) }

func (a *stageAgent) prompt(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	if err := a.authorized(); err != nil {
		return nil, err
	}
	a.mu.Lock()
	s := a.sessions[req.SessionID]
	a.mu.Unlock()
	if s == nil {
		return nil, acp.SessionNotFound(req.SessionID)
	}
	t := &scene{ctx: ctx, agent: a, session: session, stage: s, blocks: req.Prompt}
	for _, b := range req.Prompt {
		t.prompt += b.Text()
	}
	word, _, _ := strings.Cut(strings.TrimSpace(t.prompt), " ")
	play := scenes[word]
	if text, ok := lines[word]; play == nil && ok {
		play = func(t *scene) { t.play(text) }
	} else if play == nil {
		play = playEcho
	}
	err := t.perform(play)
	var stop stops
	switch {
	case ctx.Err() != nil, errors.Is(err, errCancelled):
		return &acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	case errors.As(err, &stop):
		return &acp.PromptResponse{StopReason: acp.StopReason(stop)}, nil
	case err != nil:
		return nil, err
	}
	return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}

// afterwards returns the scene as it goes on after a cancellation.
func (t *scene) afterwards() *scene {
	after := *t
	after.ctx = context.WithoutCancel(t.ctx)
	return &after
}

func text(s string) m { return m{"type": "text", "text": s} }

// update sends updates in order.
func (t *scene) update(updates ...m) {
	for _, u := range updates {
		check(rpc.Notify(t.ctx, t.session.RPC(), "session/update", m{"sessionId": t.session.ID(), "update": u}))
	}
}

// say sends a chunk of a message.
func (t *scene) say(s string) {
	t.update(m{"sessionUpdate": "agent_message_chunk", "content": text(s)})
}

//go:embed testdata/scenes.txtar
var scenesFile []byte

// lines are the scenes of the file by their names.
var lines = func() map[string]string {
	all := map[string]string{}
	for _, f := range txtar.Parse(scenesFile).Files {
		all[f.Name] = string(f.Data)
	}
	return all
}()

// play plays the lines of a scene.
func (t *scene) play(text string) {
	for line := range strings.Lines(strings.ReplaceAll(text, "$CWD", t.stage.cwd)) {
		line = strings.TrimSpace(line)
		if line == "" {
			t.gate()
			continue
		}
		var v m
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			check(fmt.Errorf("%w in %s", err, line))
		}
		switch params, _ := v["params"].(m); v["method"] {
		case nil:
			t.update(v)
		case "session/request_permission":
			t.permit(params)
		default:
			res := t.ask(v["method"].(string), params)
			if params["mode"] == "url" {
				check(rpc.Notify(t.ctx, t.session.RPC(), "elicitation/complete", m{"elicitationId": params["elicitationId"]}))
			}
			t.say("Your answer: `" + string(res) + "`")
		}
	}
}

// gate waits until the test lets the agent continue.
func (t *scene) gate() {
	if t.agent.gate == nil {
		check(errors.New("the test has made no gate"))
	}
	stop := context.AfterFunc(t.ctx, func() { t.agent.gate.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var b [1]byte
	_, err := t.agent.gate.Read(b[:])
	if err != nil && t.ctx.Err() != nil {
		t.agent.gate.SetReadDeadline(time.Time{})
		err = errCancelled
	}
	check(err)
}

// ask sends the client a request, and returns the result.
func (t *scene) ask(method string, params m) json.RawMessage {
	res, err := t.try(method, params)
	check(err)
	return res
}

// try is ask for a request that the client may refuse.
func (t *scene) try(method string, params m) (json.RawMessage, error) {
	params["sessionId"] = t.session.ID()
	got, err := rpc.Call[json.RawMessage](t.ctx, t.session.RPC(), method, params)
	if err != nil {
		return nil, err
	}
	return *got, nil
}

// playEcho says what was said.
func playEcho(t *scene) {
	var kinds []string
	for _, b := range t.blocks {
		switch v := b.Variant.(type) {
		case *acp.ContentBlockText:
		case *acp.ContentBlockImage:
			kinds = append(kinds, fmt.Sprintf("an image (%s, %d characters)", v.MimeType, len(v.Data)))
		case *acp.ContentBlockResourceLink:
			kinds = append(kinds, "a link to "+v.Name)
		case *acp.ContentBlockResource:
			kinds = append(kinds, "a resource")
		default:
			kinds = append(kinds, fmt.Sprintf("%T", v))
		}
	}
	said := "You said: " + t.prompt
	if len(kinds) > 0 {
		said += "\n\nWith " + strings.Join(kinds, ", ") + "."
	}
	t.say(said)
}

// scenes maps the first word of a prompt to what the agent plays, if it is not in the file.
var scenes = map[string]func(*scene){
	"markdown": playMarkdown, "terminal": playTerminal, "live": playLive, "mode": playSwitchMode, "models": playSwitchModel, "die": playDie,
	"hang": playHang, "wait": playWait, "flood": playFlood, "evil": playEvilTwin(true), "benign": playEvilTwin(false), "long": playLong,
	"utf8": playNoUTF8, "garbage": playGarbage, "files": playFiles, "tree": playTree, "outputs": playOutputs,
	"refuse": func(*scene) { check(stops("refusal")) },
	"max":    func(*scene) { check(stops("max_tokens")) },
	"error":  func(*scene) { check(rpc.ErrInternal.WithMessagef("the model has no quota left")) },
}

const document = "# A title\n\nSome *emphasis*, **strong** words, `code` and a [link](https://example.com).\n\n" +
	"- first\n- second\n  - nested\n\n1. one\n2. two\n\n> a quote\n\n" +
	"| name | value |\n| --- | ---: |\n| a | 1 |\n| b | 22 |\n\n" +
	"```go\nfunc main() {\n\tfmt.Println(\"hello\") // greets\n}\n```\n\nThe end: 世界 😀.\n"

func playMarkdown(t *scene) {
	for part := range slices.Chunk([]rune(document), 7) {
		t.say(string(part))
	}
}

// path returns a path in the directory of the session.
func (t *scene) path(name string) string { return t.stage.cwd + "/" + name }

const before = "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfmt.Println(\"hello\")\n\tfmt.Println(\"old line\")\n\treturn\n}\n"

// playTerminal runs a command in a terminal of the client.
func playTerminal(t *scene) {
	t.command("printf 'plain\\n\\033[31mred\\033[0m \\033[1;32mgreen\\033[0m\\n'; echo 'to stderr' >&2; exit 3", nil)
}

// playLive runs a command that continues until the gate opens.
func playLive(t *scene) {
	t.command("echo one; echo two; exec sleep 1000", func(id string) {
		t.gate()
		t.ask("terminal/kill", m{"terminalId": id})
	})
}

// playOutputs produces many lines of output.
func playOutputs(t *scene) {
	t.command("i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo line $i; done", nil)
}

func (t *scene) command(script string, meanwhile func(id string), args ...string) {
	var created struct{ TerminalID string }
	check(json.Unmarshal(t.ask("terminal/create", m{"command": "sh", "args": append([]string{"-c", script}, args...)}), &created))
	defer func() { t.afterwards().ask("terminal/release", m{"terminalId": created.TerminalID}) }()
	t.update(m{"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "Run a script", "kind": "execute", "status": "in_progress",
		"rawInput": m{"command": "sh script"}, "content": []m{{"type": "terminal", "terminalId": created.TerminalID}}})
	if meanwhile != nil {
		meanwhile(created.TerminalID)
	}
	exit := t.ask("terminal/wait_for_exit", m{"terminalId": created.TerminalID})
	t.update(m{"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed"})
	t.say("It ended: `" + string(exit) + "`")
}

var fourKinds = []m{
	{"optionId": "yes", "name": "Yes, once", "kind": "allow_once"},
	{"optionId": "always", "name": "Yes, and do not ask again", "kind": "allow_always"},
	{"optionId": "no", "name": "No", "kind": "reject_once"},
	{"optionId": "never", "name": "No, never", "kind": "reject_always"},
}

// permit asks for permission, with four options unless the request has others.
func (t *scene) permit(req m) {
	call := req["toolCall"].(m)
	if req["options"] == nil {
		req["options"] = fourKinds
	}
	var got struct {
		Outcome struct{ Outcome, OptionID string }
	}
	check(json.Unmarshal(t.ask("session/request_permission", req), &got))
	status := "completed"
	if got.Outcome.OptionID != "yes" && got.Outcome.OptionID != "always" {
		status = "failed"
	}
	t.update(m{"sessionUpdate": "tool_call_update", "toolCallId": call["toolCallId"], "status": status})
	t.say(strings.TrimSpace("Your answer: " + got.Outcome.Outcome + " " + got.Outcome.OptionID))
}

// playSwitchMode has the agent change the mode.
func playSwitchMode(t *scene) {
	t.agent.mu.Lock()
	t.stage.mode = "plan"
	t.agent.mu.Unlock()
	t.update(m{"sessionUpdate": "current_mode_update", "currentModeId": "plan"})
	t.say("The mode is another one.")
}

// playSwitchModel has the agent change the model.
func playSwitchModel(t *scene) {
	t.agent.mu.Lock()
	t.stage.model = "tiny"
	options := t.stage.options()
	t.agent.mu.Unlock()
	t.update(m{"sessionUpdate": "config_option_update", "configOptions": options})
	t.say("The model is another one.")
}

// playDie ends the agent with a message on standard error.
func playDie(t *scene) {
	t.say("I feel")
	t.gate()
	fmt.Fprintln(os.Stderr, "stage: loading the model")
	fmt.Fprintln(os.Stderr, "stage: fatal: out of memory")
	os.Exit(7)
}

// playHang never ends, not even when it is cancelled.
func playHang(t *scene) {
	t.say("I think about it.")
	select {}
}

// playWait ends when it is cancelled.
func playWait(t *scene) {
	t.say("I wait for you.")
	<-t.ctx.Done()
	t.afterwards().say("\n\nYou have cancelled.")
	check(errCancelled)
}

// playFlood sends the number of updates that the prompt gives.
func playFlood(t *scene) {
	n := 10_000
	if _, count, found := strings.Cut(t.prompt, " "); found {
		var err error
		n, err = strconv.Atoi(count)
		check(err)
	}
	for i := range n {
		// From time to time a paragraph, so that there are blocks to render, and a tool call.
		s := fmt.Sprintf("word%d ", i)
		if i%50 == 49 {
			s += "\n\n"
		}
		check(context.Cause(t.ctx)) // what can be sent without waiting is still sent
		t.say(s)
		if i%1000 == 999 {
			id := fmt.Sprintf("f%d", i)
			t.update(m{"sessionUpdate": "tool_call", "toolCallId": id, "title": "Step " + id, "kind": "read", "status": "in_progress"},
				m{"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"})
		}
	}
	t.say(fmt.Sprintf("\n\nThe last of %d.", n))
}

// playLong sends a line without a space, and a tool call with long lines.
func playLong(t *scene) {
	line := strings.Repeat("0123456789", 200_000)
	t.update(m{"sessionUpdate": "tool_call", "toolCallId": "l1", "title": "Title " + line[:100_000], "kind": "read", "status": "completed",
		"content": []m{{"type": "content", "content": text(line)}, {"type": "diff", "path": t.path("long.txt"), "oldText": line, "newText": line + "!"}}})
	t.say(line)
	t.say("\n\nThat was long.")
}

// playNoUTF8 sends bytes that are not text.
func playNoUTF8(t *scene) {
	check(t.agent.out.raw(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"` + string(t.session.ID()) +
		`","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"bytes: ` + "\xff\xfe\xc3\x28\x9b31m\xed\xa0\x80" + ` and \ud800 too"}}}}`))
	t.say("\n\nThat was no text.")
}

// playGarbage sends lines that are not messages.
func playGarbage(t *scene) {
	for _, line := range []string{"Loading...", "{", `{"jsonrpc":"2.0"}`, "[]", "\x1b[31mred\x1b[0m"} {
		check(t.agent.out.raw(line))
	}
	t.say("That was no protocol.")
}

// playFiles reads and writes files of the client.
func playFiles(t *scene) {
	res, err := t.try("fs/read_text_file", m{"path": t.path("notes.txt")})
	if err != nil {
		t.say("I may not read: " + err.Error())
		return
	}
	if _, err := t.try("fs/write_text_file", m{"path": t.path("written.txt"), "content": "by the agent\n"}); err != nil {
		t.say("I may not write: " + err.Error())
		return
	}
	t.say("I have read `" + string(res) + "` and written.")
}

// playTree starts processes: its own children, and some in a terminal.
func playTree(t *scene) {
	check(exec.Command("sh", "-c", "sleep 1000 & sleep 1000 & wait").Start())
	t.command("sleep 1000 & sleep 1000 & echo growing; wait", func(string) { playWait(t) })
}

// escapes are sequences that must never reach a terminal from an agent, each with a word by which it is found.
var escapes = []string{
	"\x1b]0;pwned\a", "\x1b]2;pwned\x1b\\", "\x1b]52;c;cHduZWQ=\a", "\x1b]8;;http://pwned/\x1b\\link\x1b]8;;\x1b\\", "\x1b]1337;File=:pwned\a",
	"\x1b[2J\x1b[H", "\x1b[?1049l", "\x1b[?25h", "\x1b[?1003h", "\x1b[?2004l", "\x1b[6n", "\x1b[c", "\x1b[>0q", "\x1b[21t", "\x1b[31;5m", "\x1b[!p",
	"\x1bc", "\x1b(0", "\x1b#8", "\x1bP$qm\x1b\\", "\x1bP+q544e\x1b\\", "\x1b_pwned\x1b\\", "\x1b^pwned\x1b\\", "\x1bXpwned\x1b\\", "\x1b[5i", "\x1b[4i",
	"\u009b31m", "\u009d0;pwned\u009c", "\u0090pwned\u009c", "\u0085", "\x07", "\b\b\b\b", "\r", "\v\f", "\x0e\x0f", "\x00", "\x7f", "\x05", "\x18\x1a",
	"\u202epwned\u202c", "\u2066\u2069", "\u2028\u2029", "\u200b\ufeff", "\U000e0041",
}

// playEvilTwin plays a conversation with every kind of message, with hostile or harmless text in every member.
func playEvilTwin(evil bool) func(*scene) {
	return func(t *scene) {
		or := func(attack string) string {
			if evil {
				return attack
			}
			return "text"
		}
		all := or(strings.Join(escapes, ""))
		t.every("e0", all)
		if os.Getenv("STAGE_SHORT") == "" {
			for i, attack := range escapes {
				t.every(fmt.Sprint("e", i+1), or(attack))
			}
		}
		t.play(with(lines["asks"], "", all))
		fmt.Fprintln(os.Stderr, "stderr", all)
		t.say("The end of all.")
	}
}

// with puts an id and a text into lines.
func with(lines, id, text string) string {
	quoted, _ := json.Marshal(text) // a text can always be encoded
	return strings.NewReplacer("$ID", id, "@", string(quoted[1:len(quoted)-1])).Replace(lines)
}

// every sends every kind of update with a text in every member.
func (t *scene) every(id, s string) {
	// Arguments of programs cannot contain a NUL.
	t.command("printf '%s\\n' \"$0\"", nil, strings.ReplaceAll(s, "\x00", ""))
	t.play(with(lines["every"], id, s))
}
