package tui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// cast is the agent of the tests. The first word of a prompt says what it plays, and it notes what it gets.
type cast struct {
	is      map[string]bool // what it can do and how, by the words of "agent"; see handlers
	before  []acp.SessionUpdate
	call    *acp.ToolCallUpdate // of its permission requests
	options []acp.PermissionOption
	form    string        // a schema
	steers  string        // the outcome of a prompt in a running turn; "fails", or "" if it does not know that
	gate    chan struct{} // created in the world of the test

	mu       sync.Mutex
	noted    []string
	conn     *acp.AgentConn
	made     int // sessions
	loggedIn bool
	broken   bool
	stored   []acp.SessionInfo
	model    acp.SessionConfigValueID
	fast     bool
}

func (c *cast) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noted = append(c.noted, fmt.Sprintf(format, args...))
}

// want checks what the agent has got since the last time.
func (c *cast) want(t *testing.T, want ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.Join(c.noted, "; ") != strings.Join(want, "; ") {
		t.Fatalf("the agent got %q, want %q", c.noted, want)
	}
	c.noted = nil
}

// slowly passes time if the agent is so.
func (c *cast) slowly(word string, d time.Duration) {
	if c.is[word] {
		time.Sleep(d)
	}
}

// connect makes the agent one that cannot be connected to at once, or at all.
func (c *cast) connect(o *Options) {
	connect := o.Talk.Agent.Connect
	o.Talk.Agent.Connect = func(ctx context.Context) (acp.Transport, error) {
		c.slowly("slow-to-connect", 5*time.Second)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.broken {
			return nil, errors.New("undefined: foo")
		}
		return connect(ctx)
	}
}

// store stores two sessions of a folder, and one of another.
func (c *cast) store(dir string) {
	at := func(d time.Duration) acp.Opt[string] { return acp.Some(time.Now().Add(-d).UTC().Format(time.RFC3339)) }
	c.stored = []acp.SessionInfo{
		{SessionID: "older", Cwd: dir, Title: acp.Some("The older one"), UpdatedAt: at(3 * time.Hour)},
		{SessionID: "newer", Cwd: dir, Title: acp.Some("The newer one"), UpdatedAt: at(5 * time.Minute)},
		{SessionID: "elsewhere", Cwd: os.TempDir(), Title: acp.Some("Elsewhere"), UpdatedAt: at(72 * time.Hour)},
	}
}

func (c *cast) handlers() acp.AgentHandlers {
	h := acp.AgentHandlers{
		NewSession: c.newSession, Prompt: c.prompt,
		Authenticate: func(_ context.Context, _ *acp.AgentConn, req *acp.AuthenticateRequest) (*acp.AuthenticateResponse, error) {
			c.note("login %s", req.MethodID)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.loggedIn = true
			return &acp.AuthenticateResponse{}, nil
		},
	}
	if c.is["stored"] || c.is["empty"] {
		h.LoadSession = c.load
		h.ListSessions = func(_ context.Context, _ *acp.AgentConn, req *acp.ListSessionsRequest) (*acp.ListSessionsResponse, error) {
			res := &acp.ListSessionsResponse{Sessions: []acp.SessionInfo{}}
			for _, s := range c.stored {
				if cwd, ok := req.Cwd.Get(); !ok || cwd == s.Cwd {
					res.Sessions = append(res.Sessions, s)
				}
			}
			return res, nil
		}
		h.DeleteSession = func(_ context.Context, _ *acp.AgentSession, req *acp.DeleteSessionRequest) (*acp.DeleteSessionResponse, error) {
			c.slowly("slow-to-delete", 5*time.Second)
			c.note("deleted %s", req.SessionID)
			return &acp.DeleteSessionResponse{}, nil
		}
	}
	if c.steers != "" {
		h.Extensions = &acp.Extensions[acp.AgentConn]{}
		rpc.Handle(h.Extensions, "_session/steering", c.steer)
	}
	if c.is["settings"] {
		h.SetSessionMode = func(context.Context, *acp.AgentSession, *acp.SetSessionModeRequest) (*acp.SetSessionModeResponse, error) {
			return &acp.SetSessionModeResponse{}, nil
		}
		h.SetSessionConfigOption = func(_ context.Context, _ *acp.AgentSession, req *acp.SetSessionConfigOptionRequest) (*acp.SetSessionConfigOptionResponse, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			switch v := req.Variant.(type) {
			case *acp.SetSessionConfigOptionRequestValueID:
				c.model = v.Value
			case *acp.SetSessionConfigOptionRequestBoolean:
				c.fast = v.Value
			}
			return &acp.SetSessionConfigOptionResponse{ConfigOptions: c.settings()}, nil
		}
	}
	if c.is["forks"] {
		h.ForkSession = func(_ context.Context, s *acp.AgentSession, _ *acp.ForkSessionRequest) (*acp.ForkSessionResponse, error) {
			c.note("fork %s", s.ID())
			return &acp.ForkSessionResponse{SessionID: "copy"}, nil
		}
		h.SetSessionTitle = func(_ context.Context, s *acp.AgentSession, req *acp.SetSessionTitleRequest) (*acp.SetSessionTitleResponse, error) {
			c.note("title of %s: %s", s.ID(), req.Title)
			return &acp.SetSessionTitleResponse{}, nil
		}
		h.ResumeSession = func(context.Context, *acp.AgentSession, *acp.ResumeSessionRequest) (*acp.ResumeSessionResponse, error) {
			return &acp.ResumeSessionResponse{}, nil
		}
	}
	return h
}

// steering are the params of a prompt in a running turn.
type steering struct {
	Prompt []acp.ContentBlock `json:"prompt"`
	Meta   struct {
		Steering struct {
			IdleBehavior string `json:"idleBehavior"`
		} `json:"steering"`
	} `json:"_meta"`
}

func (c *cast) steer(_ context.Context, _ *acp.AgentConn, p *steering) (*map[string]string, error) {
	c.note("%s (%s)", p.Prompt[0].Text(), p.Meta.Steering.IdleBehavior)
	if c.steers == "fails" {
		return nil, errors.New("not now")
	}
	return &map[string]string{"outcome": c.steers}, nil
}

// settings are the options of a session; mu must be held.
func (c *cast) settings() []acp.SessionConfigOption {
	m := acp.SelectOption("model", "Model", c.model, acp.SelectValue("opal", "Opal"), acp.SelectValue("onyx", "Onyx"))
	m.Category = acp.Some(acp.SessionConfigOptionCategoryModel)
	return []acp.SessionConfigOption{m, acp.BooleanOption("fast", "Fast", c.fast)}
}

func (c *cast) newSession(ctx context.Context, conn *acp.AgentConn, _ *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
	c.slowly("slow-to-start", time.Second)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.is["login"] && !c.loggedIn {
		return nil, acp.ErrAuthRequired
	}
	c.conn = conn
	c.made++
	res := &acp.NewSessionResponse{SessionID: acp.SessionID(fmt.Sprint("s", c.made))}
	if c.is["commands"] {
		acp.AfterResponse(ctx, func(ctx context.Context) {
			time.Sleep(time.Second)
			_ = conn.Session(res.SessionID).Update(ctx, acp.CommandsUpdate( // the client may have gone
				acp.AvailableCommand{Name: "review", Description: "Reviews it."}, acp.AvailableCommand{Name: "quit", Description: "Gives up."}))
		})
	}
	if c.is["settings"] {
		c.model = "opal"
		res.ConfigOptions = acp.Some(c.settings())
		res.Modes = acp.Some(acp.SessionModeState{CurrentModeID: "ask", AvailableModes: []acp.SessionMode{{ID: "ask", Name: "Ask first"}, {ID: "auto", Name: "Do it"}}})
	}
	return res, nil
}

func (c *cast) load(ctx context.Context, s *acp.AgentSession, req *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
	c.slowly("slow-to-load", 10*time.Second)
	c.note("loaded %s in %s", s.ID(), req.Cwd)
	c.mu.Lock()
	c.conn = s.Conn()
	c.mu.Unlock()
	if err := s.Update(ctx, acp.UserMessageText("Old question.")); err != nil {
		return nil, err
	}
	return &acp.LoadSessionResponse{}, s.Update(ctx, acp.AgentMessageText("Old answer of "+string(s.ID())+"."))
}

var (
	done    = &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}
	stopped = &acp.PromptResponse{StopReason: acp.StopReasonCancelled}
)

// prompt plays what the first word says: ask asks for permission, also for another command, soon does so in a second,
// twice in two requests, and leave ends the turn without waiting for the answer; form and page ask for that; slow says
// that it has begun, and a minute later that it is done; work calls tools; write writes a file; hold waits until the
// test opens the gate, and plays the rest. Everything else is repeated.
func (c *cast) prompt(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	text := req.Prompt[0].Text()
	if c.is["notes"] {
		c.note("%s", text)
		for _, b := range req.Prompt {
			if link, ok := b.Variant.(*acp.ContentBlockResourceLink); ok {
				c.note("link %s", link.Name)
			}
		}
	}
	word, rest, _ := strings.Cut(text, " ")
	if word == "hold" {
		select {
		case <-c.gate:
		case <-ctx.Done():
			return stopped, nil
		}
		word, rest = rest, ""
		c.mu.Lock()
		refused := c.is["login-later"] && !c.loggedIn
		c.mu.Unlock()
		if refused {
			return nil, acp.ErrAuthRequired
		}
	}
	switch word {
	case "soon":
		time.Sleep(time.Second)
		return c.ask(ctx, s, "")
	case "ask":
		return c.ask(ctx, s, rest)
	case "twice":
		var asking sync.WaitGroup
		for range 2 {
			asking.Go(func() { _, _ = c.ask(ctx, s, "") })
		}
		asking.Wait()
		return done, nil
	case "leave":
		go func() { _, _ = c.ask(context.WithoutCancel(ctx), s, "") }()
		time.Sleep(time.Millisecond)
		return done, nil
	case "form":
		return c.askForm(ctx, s)
	case "page":
		const long = "https://example.com/a-path-that-is-very-long/that-it-does-not-fit-into-one-line/of-the-screen/and-must-be-seen/whole"
		c.mu.Lock()
		c.made++
		id := acp.ElicitationID(fmt.Sprint("page ", c.made))
		c.mu.Unlock()
		res, err := s.ElicitURL(ctx, "Look at this.", id, long)
		return c.answered(res, err)
	case "slow":
		return slow(ctx, s, req)
	case "work":
		return c.work(ctx, s)
	case "write":
		_, err := s.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: rest, Content: "new words"})
		return done, err
	}
	return done, s.Update(ctx, acp.AgentMessageText("You said: "+text))
}

// ask asks for permission for a command, or for the call that the test has set, and notes the answer.
func (c *cast) ask(ctx context.Context, s *acp.AgentSession, command string) (*acp.PromptResponse, error) {
	if command == "" {
		command = "rm -rf build"
	}
	input, _ := json.Marshal(map[string]string{"command": command}) // always possible
	call := acp.ToolCallUpdate{ToolCallID: "t", Title: acp.Some("Remove the build of " + string(s.ID())), Kind: acp.Some(acp.ToolKindExecute), RawInput: input}
	if c.call != nil {
		call = *c.call
	}
	options := c.options
	if options == nil {
		options = fourOptions
	}
	for _, u := range c.before {
		if err := s.Update(ctx, u); err != nil {
			return nil, err
		}
	}
	outcome, err := s.RequestPermission(ctx, call, options...)
	if v, ok := outcome.Variant.(*acp.RequestPermissionOutcomeSelected); ok {
		c.note("%s", v.OptionID)
	} else {
		c.note("cancelled")
	}
	if err != nil {
		return stopped, nil
	}
	return done, s.Update(ctx, acp.AgentMessageText("Thank you."))
}

var fourOptions = []acp.PermissionOption{
	acp.AllowOnce("once", "Allow"), acp.AllowAlways("always", "Always allow"),
	acp.RejectOnce("no", "Reject"), acp.RejectAlways("never", "Never allow"),
}

// wideForm is a form with every kind of field.
const wideForm = `{"type":"object","required":["name","age"],"properties":{
	"name":{"type":"string","title":"Your name","minLength":2},
	"age":{"type":"integer","minimum":18,"maximum":99},
	"rate":{"type":"number"},
	"mail":{"type":"string","format":"email"},
	"sure":{"type":"boolean","title":"Are you sure?","default":true},
	"color":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}],"default":"g"},
	"tools":{"type":"array","items":{"type":"string","enum":["saw","hammer","plane"]},"minItems":1,"maxItems":2,"default":["saw"]}
}}`

func (c *cast) askForm(ctx context.Context, s *acp.AgentSession) (*acp.PromptResponse, error) {
	text := c.form
	if text == "" {
		text = wideForm
	}
	var schema acp.ElicitationSchema
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		return nil, err
	}
	res, err := s.ElicitForm(ctx, "Tell me about yourself.", schema)
	return c.answered(res, err)
}

// answered notes the answer to a form or a page, as JSON whose members are sorted.
func (c *cast) answered(res *acp.CreateElicitationResponse, err error) (*acp.PromptResponse, error) {
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(res)
	if err != nil {
		return nil, err
	}
	var sorted any
	if err := json.Unmarshal(text, &sorted); err != nil {
		return nil, err
	}
	text, err = json.Marshal(sorted)
	c.note("%s", text)
	return done, err
}

// slow responds with two chunks and waits for a minute between them.
func slow(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	text := req.Prompt[0].Text()
	if err := s.Update(ctx, acp.AgentMessageText("Begun: "+text+". ")); err != nil {
		return nil, err
	}
	select {
	case <-time.After(time.Minute):
	case <-ctx.Done():
		return stopped, nil
	}
	return done, s.Update(ctx, acp.AgentMessageText("Done: "+text+"."))
}

// work calls a tool that is done at once, and one that is allowed and then takes 75 seconds.
func (c *cast) work(ctx context.Context, s *acp.AgentSession) (*acp.PromptResponse, error) {
	set := func(id acp.ToolCallID, status acp.ToolCallStatus) error {
		return s.Update(ctx, acp.NewSessionUpdateToolCallUpdate(acp.ToolCallUpdate{ToolCallID: id, Status: acp.Some(status)}))
	}
	err := errors.Join(s.Update(ctx, acp.StartToolCall("quick", "Read a file")),
		s.Update(ctx, acp.StartToolCall("t", "Run the tests "+strings.Repeat("again and ", 20))),
		set("quick", acp.ToolCallStatusCompleted))
	if err == nil {
		c.call = &acp.ToolCallUpdate{ToolCallID: "t"}
		_, err = c.ask(ctx, s, "")
	}
	if err := errors.Join(err, set("t", acp.ToolCallStatusInProgress)); err != nil {
		return nil, err
	}
	time.Sleep(75 * time.Second)
	return done, errors.Join(set("t", acp.ToolCallStatusCompleted), s.Update(ctx, acp.AgentMessageText("Tested.")))
}
