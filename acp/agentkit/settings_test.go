package agentkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/internal/test/must"
)

// author is the author of the agent of a conversation.
type author struct {
	*player
	config    agentkit.Config[state]
	opts      acp.AgentOptions
	accept    map[string]string // rules that are broken on purpose
	plain     bool              // only HandlePrompt is used
	bind      bool              // the author handles options alone
	forgotten bool              // Sessions.Options is not used
	opening   map[string]string // what Config.Open does, for each reason, and for all of them
	modes     []acp.SessionMode
	options   []string // of Open: style, loud and own
	logged    bool     // in, as stored credentials say
	last      *agentkit.Session[state]
	refusal   string // Open fails with this error
}

var reasons = []string{"created", "loaded", "resumed", "forked"}

// set reads a setting:
//
//	store              sessions are stored
//	busy queue         prompts wait; or busy steer
//	config JSON        numbers and booleans of Config
//	agent JSON         acp.AgentOptions
//	client JSON        the client's capabilities
//	modes ID…          Open provides these modes; with "setmode" Config.SetMode is set
//	options NAME…      Open provides options: style and model are of Select, loud of Toggle, others of Config.SetOption
//	commands NAME…     Config.Commands
//	login ID…          Config.Login
//	decide KIND=ANSWER Config.Decide, by the kind of the call
//	remember           Config.Decide remembers what the user decides
//	open PROGRAM       what Open does; "open.loaded PROGRAM" only for this reason
//	close panic        Config.Close panics
//	watch              opening and closing of sessions are noted
//	log                what is logged is noted
//	held               the first prompt is held back until the client opens the gate "held"
//	slow               answers to prompts are held back a second
//	plain              the agent has only HandlePrompt
//	bind               the author handles session/set_config_option, which lasts as long as the session
//	forgotten          Sessions.Options is not used
//	tool error TEXT    Config.ToolError
//	untitled           sessions get no titles
//	accept ID WHY      a rule is broken on purpose
func (a *author) set(line, dir string) {
	if line == "" || strings.HasPrefix(line, "#") {
		return
	}
	word, arg, _ := strings.Cut(line, " ")
	switch word {
	case "store":
		store := must.Get(sessionstore.Open(filepath.Join(dir, "store"), nil))(a.t)
		a.t.Cleanup(func() { must.Do(a.t, store.Close()) })
		a.store = &disk{Store: store}
		a.config.Store = a.store
	case "busy":
		a.config.WhileBusy = map[string]agentkit.WhileBusy{"queue": agentkit.Queue, "steer": agentkit.Steer}[arg]
	case "config":
		numbers := struct{ MaxSessions, MaxWaiting, PageSize *int }{&a.config.MaxSessions, &a.config.MaxWaiting, &a.config.PageSize}
		switches := struct{ Fork, Subagents, AutoSave *bool }{&a.config.Fork, &a.config.Subagents, &a.config.AutoSave}
		must.Do(a.t, errors.Join(json.Unmarshal([]byte(arg), &numbers), json.Unmarshal([]byte(arg), &switches)))
	case "agent":
		must.Do(a.t, json.Unmarshal([]byte(arg), &a.opts))
	case "client":
		must.Do(a.t, json.Unmarshal([]byte(arg), &a.client))
	case "modes":
		for id := range strings.FieldsSeq(arg) {
			a.modes = append(a.modes, acp.SessionMode{ID: acp.SessionModeID(id), Name: strings.ToUpper(id)})
		}
	case "setmode":
		a.config.SetMode = a.setMode
	case "options":
		a.options = strings.Fields(arg)
		a.config.SetOption = a.setOption
	case "commands":
		for name := range strings.FieldsSeq(arg) {
			run := func(ctx context.Context, t *agentkit.Turn[state], input string) error {
				a.note("command %s %q of %d", name, input, len(t.Request().Prompt))
				return t.Sayf(ctx, "done")
			}
			a.config.Commands = append(a.config.Commands, agentkit.Command[state]{Name: name, Description: name, Run: run})
		}
	case "login":
		a.config.Login = a.login(strings.Fields(arg))
	case "decide":
		a.config.Decide = decisions(strings.Fields(arg))
	case "open":
		a.opening = map[string]string{"": arg}
	case "open.created", "open.loaded", "open.resumed", "open.forked":
		if a.opening == nil {
			a.opening = map[string]string{}
		}
		a.opening[word[len("open."):]] = arg
	case "watch":
		a.config.Close = func(s *agentkit.Session[state]) { a.note("close %s", s.State.secret) }
	case "close": // Config.Close panics
		a.config.Close = func(*agentkit.Session[state]) { panic(arg) }
	case "remember":
		rules := must.Get(policy.New(nil, nil))(a.t)
		a.config.Decide = &policy.Remembered{Policy: rules, Memory: policy.NewFile(filepath.Join(dir, "rules.json")), Agent: "me"}
	case "log":
		a.config.Logger = slog.New(slog.NewTextHandler(a, &slog.HandlerOptions{ReplaceAttr: timeless}))
	case "held": // the first prompt is held before its handler, until the client opens this gate
		var held atomic.Bool
		a.opts.Conn.Hooks.Serve = func(ctx context.Context, call *acp.CallInfo, next func(context.Context) error) error {
			if call.Method == acp.MethodPrompt && !held.Swap(true) {
				<-a.gate("held")
			}
			return next(ctx)
		}
	case "slow":
		a.opts.Conn.Hooks.Serve = slow
	case "plain":
		a.plain = true
	case "bind":
		a.bind = true
	case "forgotten":
		a.forgotten = true
	case "tool":
		a.config.ToolError = func(call acp.ToolCall, err error) string {
			if call.Title != "mine" {
				return ""
			}
			return strings.TrimPrefix(arg, "error ") + " " + err.Error()
		}
	case "untitled":
		a.config.Title = func([]acp.ContentBlock) string { return "" }
	case "accept":
		id, why, _ := strings.Cut(arg, " ")
		a.accept[id] = why
	default:
		a.t.Fatalf("the setting %q is unknown", line)
	}
}

// slow is middleware that holds the answers to prompts back a while.
func slow(ctx context.Context, call *acp.CallInfo, next func(context.Context) error) error {
	err := next(ctx)
	if call.Method == acp.MethodPrompt {
		time.Sleep(time.Second) // of the bubble
	}
	return err
}

func timeless(_ []string, attr slog.Attr) slog.Attr {
	if attr.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return attr
}

// Write notes what is logged, without stacks.
func (a *author) Write(p []byte) (int, error) {
	text, _, _ := strings.Cut(strings.TrimSpace(string(p)), `\ngoroutine`)
	a.note("%s", text)
	return len(p), nil
}

// finish makes the agent.
func (a *author) finish() {
	if a.config.Logger == nil {
		a.config.Logger = quiet
	}
	a.opts.Conn.Logger = a.config.Logger
	a.config.Prompt = func(ctx context.Context, t *agentkit.Turn[state], req *acp.PromptRequest) (*acp.PromptResponse, error) {
		return (&actor{author: a, ctx: ctx, session: t.Session, turn: t, to: t}).answer(agentkit.PromptText(req))
	}
	a.config.Open = func(ctx context.Context, s *agentkit.Session[state], o *agentkit.Opening) error {
		if a.config.Close != nil {
			a.note("open %s %s %v, %d prompts, mode %s", reasons[o.Reason], o.Cwd, o.AdditionalDirectories, s.State.Prompts, o.Mode)
		}
		if prompt, ok := o.SystemPrompt.Get(); ok {
			a.note("%s with the system prompt %q", reasons[o.Reason], prompt.Content[0].Text())
		}
		s.State.secret = "of " + o.Cwd
		for _, name := range a.options {
			switch name {
			case "style":
				o.Select("style", "Style", &s.State.Style, "plain", "fancy", "plain")
				o.ConfigOptions[len(o.ConfigOptions)-1].Description = acp.Some("How it looks")
			case "loud":
				o.Toggle("loud", "Loud", &s.State.Loud)
			case "mode":
				o.ConfigOptions = append(o.ConfigOptions, acp.SelectOption("mode", "Mine", "x", acp.SelectValue("x", "X")))
			case "model":
				o.Select("model", "Model", &s.State.Model, "small", "large")
			default:
				o.ConfigOptions = append(o.ConfigOptions, own("x"))
			}
		}
		o.Modes, a.last = append(o.Modes, a.modes...), s
		in := &actor{author: a, ctx: ctx, session: s, to: s, opening: o}
		_, err := in.answer(a.opening[""])
		if err == nil {
			_, err = in.answer(a.opening[reasons[o.Reason]])
		}
		if a.refusal == "panic" {
			panic("Open")
		}
		return errors.Join(err, a.failure(a.refusal))
	}
	if !a.plain {
		a.sessions = agentkit.NewSessions(a.config)
	}
}

func own(value acp.SessionConfigValueID) acp.SessionConfigOption {
	return acp.SelectOption("own", "Own", value, acp.SelectValue("x", "X"), acp.SelectValue("y", "Y"))
}

// start serves a client.
func (a *author) start(far acp.Transport, ended chan<- error) {
	handlers, opts := acp.AgentHandlers{NewSession: newSession}, &a.opts
	if a.plain {
		handlers.Prompt = agentkit.HandlePrompt(
			func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
				return (&actor{author: a, ctx: ctx, to: s}).answer(agentkit.PromptText(req))
			})
	} else {
		if handlers = a.sessions.Handlers(); !a.forgotten {
			opts = a.sessions.Options(opts)
		}
		if a.bind {
			handlers.SetSessionConfigOption = agentkit.Bind(a.sessions, a.bound)
		}
	}
	agent := must.Get(acp.StartAgent(context.Background(), far, handlers, opts))(a.t)
	go func() { ended <- agent.Wait() }()
}

// record is a session that another process has stored.
func (a *author) record(id acp.SessionID) sessionstore.Record {
	now := time.Now()
	return sessionstore.Record{Info: sessionstore.Info{ID: id, Cwd: "/w", Created: now, Updated: now}}
}

// late does something outside of turns.
func (a *author) late(program string) {
	_, err := (&actor{author: a, ctx: context.Background(), session: a.last, to: a.last}).answer(program)
	if err != nil {
		a.note("%v", err)
	}
}

func (a *author) setMode(ctx context.Context, s *agentkit.Session[state], mode acp.SessionModeID) error {
	time.Sleep(time.Microsecond) // of the bubble: the change before is answered
	a.note("mode from %s to %s", s.Mode(), mode)
	switch mode {
	case "slow":
		time.Sleep(time.Second) // of the bubble
	case "held":
		<-a.gate("mode")
	case "no":
		return acp.InvalidParamsf("not this one")
	}
	return nil
}

func (a *author) setOption(
	_ context.Context, _ *agentkit.Session[state], req *acp.SetSessionConfigOptionRequest,
) ([]acp.SessionConfigOption, error) {
	value, _ := req.Select()
	a.note("option %s to %s", req.ConfigID, value)
	return []acp.SessionConfigOption{own(value)}, nil
}

func (a *author) bound(
	ctx context.Context, s *agentkit.Session[state], _ *acp.SetSessionConfigOptionRequest,
) (*acp.SetSessionConfigOptionResponse, error) {
	a.note("set in the session %s", s.State.secret)
	<-ctx.Done()
	a.note("ended: %v", context.Cause(ctx))
	return nil, errors.New("it does not matter why")
}

func (a *author) login(ids []string) *agentkit.Login {
	login := &agentkit.Login{
		Run: func(_ context.Context, _ *acp.AgentConn, method acp.AuthMethodID) error {
			a.note("login %s", method)
			if method == "bad" {
				return acp.InvalidParamsf("a bad key")
			}
			return nil
		},
		Valid:  func(context.Context, *acp.AgentConn) (bool, error) { return a.logged, nil },
		Logout: func(context.Context, *acp.AgentConn) error { a.note("logout"); return nil },
	}
	for _, id := range ids {
		login.Methods = append(login.Methods, acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: acp.AuthMethodID(id), Name: id}))
	}
	return login
}

// decisions are what Config.Decide answers, as KIND=ANSWER; the answer "broken" is an error.
type decisions []string

func (d decisions) Decide(s agentkit.Place, call acp.ToolCall) (acp.PermissionOptionKind, string, error) {
	for _, rule := range d {
		kind, answer, _ := strings.Cut(rule, "=")
		switch {
		case kind != string(call.Kind):
		case answer == "broken":
			return "", "", errors.New("the rules are broken")
		default:
			return acp.PermissionOptionKind(answer), "rule 1 in " + s.(*agentkit.Session[state]).Cwd(), nil
		}
	}
	return "", "", nil
}

// disk is a store whose disk fails when the conversation says so: "full" for all but prompts, "broken" for everything,
// "deaf" for messages of the agent, "small" with ErrTooLarge; "slow" is one that does not answer until it is "ok".
type disk struct {
	sessionstore.Store
	mu    sync.Mutex
	fault string
	ok    chan struct{}
}

var errDisk = errors.New("the disk is full")

func (d *disk) set(fault string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ok != nil {
		close(d.ok)
		d.ok = nil
	}
	if d.fault = fault; fault == "slow" {
		d.ok = make(chan struct{})
	}
}

func (d *disk) fails(updates ...acp.SessionUpdate) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, prompt := updates[0].Variant.(*acp.SessionUpdateUserMessageChunk)
	deaf := slices.ContainsFunc(updates, func(u acp.SessionUpdate) bool { return u.AgentText() != "" })
	switch {
	case d.fault == "broken", d.fault == "full" && !prompt, d.fault == "deaf" && deaf:
		return errDisk
	case d.fault == "small":
		return fmt.Errorf("%w: %w", sessionstore.ErrTooLarge, errDisk)
	}
	return nil
}

func (d *disk) Append(ctx context.Context, id acp.SessionID, updates ...acp.SessionUpdate) error {
	if err := d.fails(updates...); err != nil {
		return err
	}
	return d.Store.Append(ctx, id, updates...)
}

func (d *disk) Updates(ctx context.Context, id acp.SessionID) iter.Seq2[acp.SessionUpdate, error] {
	return func(yield func(acp.SessionUpdate, error) bool) {
		for update, err := range d.Store.Updates(ctx, id) {
			if failed := d.fails(acp.UserMessageText("")); failed != nil {
				update, err = acp.SessionUpdate{}, failed
			}
			if !yield(update, err) || err != nil {
				return
			}
		}
	}
}

func (d *disk) Get(ctx context.Context, id acp.SessionID) (sessionstore.Record, error) {
	d.mu.Lock()
	ok := d.ok
	d.mu.Unlock()
	if ok != nil {
		<-ok
	}
	return d.Store.Get(ctx, id)
}
