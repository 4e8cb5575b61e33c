package agentkit_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/internal/test/must"
)

// actor does what a program says: in a turn, in a subagent, in Config.Open, or later.
type actor struct {
	*author
	ctx     context.Context
	session *agentkit.Session[state]
	turn    *agentkit.Turn[state] // nil outside of one
	to      agentkit.Asker        // where it acts
	opening *agentkit.Opening     // in Config.Open
	failed  error                 // the last failure of an action
}

// ending ends a program.
type ending struct {
	res *acp.PromptResponse
	err error
}

func (ending) Error() string { return "the program ends" }

// input is what follows the word of an action: all of it, and its first word apart from the rest.
type input struct{ all, first, rest string }

// answer does the actions of a program, which semicolons separate, and braces may surround. The name before a colon at
// its beginning is only that. An action that fails is noted, and the next one follows.
func (a *actor) answer(program string) (*acp.PromptResponse, error) {
	if program = strings.TrimSpace(program); strings.HasPrefix(program, "{") && strings.HasSuffix(program, "}") {
		program = strings.TrimSpace(program[1 : len(program)-1])
	}
	if name, rest, ok := strings.Cut(program, ": "); ok && !strings.Contains(name, " ") {
		program = rest
	}
	for program != "" {
		action := program[:width(program)]
		program = strings.TrimLeft(program[len(action):], "; ")
		var in input
		var word string
		word, in.all, _ = strings.Cut(strings.TrimSpace(action), " ")
		in.first, in.rest, _ = strings.Cut(in.all, " ")
		do := actions[word]
		if do == nil {
			continue // it is only a text
		}
		err := do(a, in)
		if end, ok := errors.AsType[ending](err); ok {
			return end.res, end.err
		}
		if err != nil {
			a.failed = err
			a.note("%s: %v", strings.TrimSpace(action), err)
		}
	}
	return nil, nil
}

// do does the actions of a program inside the action.
func (a *actor) do(program string) error {
	_, err := a.answer(program)
	return err
}

// with is who does more in the same turn, in a context of its own.
func (a *actor) with(ctx context.Context, to agentkit.Asker) *actor {
	return &actor{author: a.author, ctx: ctx, session: a.session, turn: a.turn, to: to}
}

// width is the length of the first action: up to a semicolon that no brackets surround.
func width(program string) int {
	depth := 0
	for i, r := range program {
		switch {
		case r == '{' || r == '[':
			depth++
		case r == '}' || r == ']':
			depth--
		case r == ';' && depth == 0:
			return i
		}
	}
	return len(program)
}

func (a *actor) say(u acp.SessionUpdate) error { return a.to.Update(a.ctx, u) }

// kept is what the program has made by a name.
func kept[T any](a *actor, name string) (value T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	value, _ = a.kept[name].(T)
	return value
}

func call(a *actor, id string) *agentkit.ToolCall { return kept[*agentkit.ToolCall](a, id) }

func screen(a *actor, id string) *agentkit.Terminal { return kept[*agentkit.Terminal](a, id) }

func (a *actor) keep(id string, value any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept[id] = value
}

// actions are what a program may do; the first word is the name of a tool call, text or terminal where there is one.
var actions map[string]func(a *actor, in input) error

func init() {
	actions = map[string]func(a *actor, in input) error{
		"say": func(a *actor, in input) error { return a.say(acp.AgentMessageText(meant(in.all))) },
		"part": func(a *actor, in input) error { // of a message
			chunk := acp.ContentChunk{Content: acp.TextBlock(in.rest), MessageID: acp.Some(acp.MessageID(in.first))}
			return a.say(acp.NewSessionUpdateAgentMessageChunk(chunk))
		},
		"think": func(a *actor, in input) error { return a.say(acp.AgentThoughtText(in.all)) },
		"title": func(a *actor, in input) error { return a.say(acp.TitleUpdate(meant(in.all))) },
		"mode": func(a *actor, in input) error {
			err := a.say(acp.ModeUpdate(acp.SessionModeID(in.all)))
			a.note("the mode is %s", a.session.Mode())
			return err
		},
		"own": func(a *actor, in input) error { return a.say(acp.ConfigUpdate(own(acp.SessionConfigValueID(in.all)))) },
		"update": func(a *actor, in input) error {
			var u acp.SessionUpdate
			return errors.Join(json.Unmarshal([]byte(in.all), &u), a.say(u))
		},
		"record": func(a *actor, in input) error {
			var u acp.SessionUpdate
			return errors.Join(json.Unmarshal([]byte(in.all), &u), a.session.Record(a.ctx, u))
		},
		"select": func(a *actor, in input) error {
			return a.session.SelectOption(a.ctx, acp.SessionConfigID(in.first), in.rest)
		},

		// The state.
		"count": func(a *actor, _ input) error { a.session.State.Prompts++; return a.session.SaveState(a.ctx) },
		"add":   func(a *actor, _ input) error { a.session.State.Prompts++; a.session.State.Quoted += 2; return nil },
		"state": func(a *actor, _ input) error {
			s := a.session.State
			a.note("%d prompts, %d quoted, style %s, loud %v, model %s", s.Prompts, s.Quoted, s.Style, s.Loud, s.Model)
			return nil
		},

		// Tool calls.
		"call": func(a *actor, in input) error {
			title, options := callOptions(in.rest)
			c, err := agentkit.StartToolCall(a.ctx, a.to, title, append(options, agentkit.WithToolCallID(acp.ToolCallID(in.first)))...)
			if c != nil {
				a.keep(in.first, c)
			}
			return err
		},
		"show": func(a *actor, in input) error {
			a.note("the author knows %s", line(acp.NewSessionUpdateToolCall(call(a, in.first).State())))
			return nil
		},
		"progress": func(a *actor, in input) error { return call(a, in.first).Progress(meant(in.rest)) },
		"diff": func(a *actor, in input) error {
			words := append(strings.Fields(in.all), "", "")
			return call(a, words[0]).Diff(words[1], strings.TrimPrefix(words[2], "-"), words[3])
		},
		"change": func(a *actor, in input) error {
			title, options := callOptions(in.rest)
			if title != "" {
				options = append(options, acp.WithTitle(title))
			}
			return call(a, in.first).Update(options...)
		},
		"done": func(a *actor, in input) error {
			_, options := callOptions(in.rest)
			return call(a, in.first).Done(options...)
		},
		"fail": func(a *actor, in input) error { return call(a, in.first).Fail(a.why(in.rest)) },
		"finish": func(a *actor, in input) error { // with End
			if err := call(a, in.first).End(a.why(in.rest)); err != nil {
				return ending{err: err}
			}
			return nil
		},
		"embed": func(a *actor, in input) error { return call(a, in.all).Terminal(terminal("t")) },
		"drop":  func(a *actor, in input) error { return kept[io.Closer](a, in.all).Close() }, // a call, text or terminal
		"tool": func(a *actor, in input) error { // with Turn.Tool
			do := func(*agentkit.ToolCall) error { return a.why(in.rest) }
			return a.turn.Tool(a.ctx, acp.ToolKindEdit, in.first, do, agentkit.WithToolCallID(acp.ToolCallID(in.first)))
		},
		"ask": func(a *actor, in input) error {
			words := strings.Fields(in.all)
			var options []acp.PermissionOption
			for _, kind := range words[1:] {
				id, kind, _ := strings.Cut(kind, "=")
				options = append(options, acp.PermissionOption{OptionID: acp.PermissionOptionID(id), Name: id, Kind: acp.PermissionOptionKind(kind)})
			}
			chosen, err := call(a, words[0]).Ask(a.ctx, options...)
			if chosen.OptionID != "" {
				a.note("chosen is %s", chosen.OptionID)
			}
			return err
		},
		"askturn": func(a *actor, in input) error { // with Turn.RequestPermission
			_, err := a.turn.RequestPermission(a.ctx, acp.ToolCallRef(acp.ToolCallID(in.all)), acp.AllowOnce("yes", "Yes"))
			return err
		},

		"run": func(a *actor, in input) error { // a command in a terminal of the client, for a time
			words := append(strings.Fields(in.all), "1h")
			ctx, cancel := context.WithTimeoutCause(a.ctx, must.Get(time.ParseDuration(words[2]))(a.t), errors.New("too late"))
			defer cancel()
			res, err := call(a, words[0]).Run(ctx, &acp.CreateTerminalRequest{Command: words[1]})
			if res != nil {
				a.note("%s has printed %q and ended: %v", words[1], res.Output, res.ExitStatus.Present())
			}
			return err
		},

		// Texts.
		"write": func(a *actor, in input) error {
			m := kept[*agentkit.Text](a, in.first)
			if m == nil {
				m = agentkit.NewMessage(a.ctx, a.to)
				a.keep(in.first, m)
			}
			_, err := m.WriteString(meant(in.rest))
			return err
		},

		// What a turn has beside.
		"atend": func(a *actor, in input) error {
			a.keep(in.first, a.turn.AtEnd(func(ctx context.Context) error { return a.with(ctx, a.turn).do(in.rest) }))
			return nil
		},
		"stop": func(a *actor, in input) error {
			a.note("stopped %s: %v", in.all, kept[func() bool](a, in.all)())
			return nil
		},
		"atclose": func(a *actor, in input) error {
			s := a.session
			s.AtClose(func() {
				a.note("at close %s, with a context that is over: %v", in.all, s.Context().Err() != nil)
				if in.all != "late" {
					panic("others run all the same")
				}
			})
			return nil
		},
		"over": func(a *actor, _ input) error {
			a.note("the session is over: %v", a.session.Context().Err() != nil)
			return nil
		},
		"history": func(a *actor, _ input) error {
			for update, err := range a.session.History(a.ctx) {
				if err != nil {
					return err
				}
				a.note("history %s", line(update))
			}
			return nil
		},
		"messages": func(a *actor, _ input) error {
			messages, err := a.session.Messages(a.ctx)
			for _, text := range told(messages) {
				a.note("%s", text)
			}
			return err
		},
		"next": func(a *actor, _ input) error { // waits for the next prompt and takes it
			req, err := a.take()
			if err != nil {
				return err
			}
			time.Sleep(time.Microsecond) // of the bubble: a message of the extension is answered
			return a.say(acp.AgentMessageText("took " + agentkit.PromptText(req)))
		},
		"grab": func(a *actor, _ input) error { _, err := a.take(); return err }, // the same at once
		"fork": func(a *actor, in input) error {
			if in.rest == "" {
				in.rest = string(a.turn.ID())
			}
			res, err := a.sessions.Fork(a.ctx, a.turn.Conn(), acp.SessionID(in.rest), &acp.NewSessionRequest{Cwd: "/fork"})
			if err == nil {
				a.name(in.first, res.SessionID)
			}
			return err
		},
		"steps": func(a *actor, in input) error { // a plan: the names of its steps
			a.keep("steps", a.turn.Plan(a.ctx, strings.Fields(in.all)...))
			return nil
		},
		"step": func(a *actor, in input) error {
			p := kept[*agentkit.Plan](a, "steps")
			return p.Do(must.Get(strconv.Atoi(in.first))(a.t), func() error { return a.why(in.rest) })
		},
		"notify": func(a *actor, in input) error {
			return a.turn.Notify(a.ctx, acp.Notice{Severity: acp.NoticeSeverityWarning, Title: in.first, Description: acp.Some(in.rest)})
		},
		"compact": func(a *actor, in input) error {
			return a.turn.Compact(a.ctx, func() (string, error) {
				switch in.all {
				case "fail":
					return "", errors.New("too long")
				case "wait":
					<-a.ctx.Done()
					return "", context.Cause(a.ctx)
				}
				return in.all, nil
			})
		},
		"subagent": func(a *actor, in input) error {
			ctx, cancel := context.WithCancel(a.ctx)
			defer cancel()
			return a.turn.Subagent(ctx, in.first, "Helps", func(ctx context.Context, s *agentkit.Subagent[state]) error {
				if in.rest == "{ give up }" {
					cancel()
				}
				return a.with(ctx, s).do(in.rest)
			})
		},

		"stream": func(a *actor, in input) error { // options, a colon, and what the attempts yield
			options, program, ok := strings.Cut(in.all, ": ")
			if !ok {
				options, program = "", in.all
			}
			opts := &agentkit.StreamOptions{}
			for option := range strings.FieldsSeq(options) {
				key, value, _ := strings.Cut(option, "=")
				switch key {
				case "hidden":
					opts.Hidden = true
				case "max":
					opts.MaxBytes = must.Get(strconv.Atoi(value))(a.t)
				case "silence":
					opts.Silence = must.Get(time.ParseDuration(value))(a.t)
				}
			}
			attempts, n := strings.Split(program, " | "), 0
			begun := time.Now()
			err := a.turn.Stream(a.ctx, func(ctx context.Context) iter.Seq2[agentkit.Piece, error] {
				n++
				return pieces(ctx, attempts[n-1])
			}, opts)
			a.note("%d attempts took %v", n, time.Since(begun).Round(time.Millisecond))
			return err
		},
		"form": func(a *actor, _ input) error {
			_, err := a.to.(elicitor).ElicitForm(a.ctx, "form", acp.ElicitationSchema{})
			return err
		},
		"url": func(a *actor, _ input) error {
			_, err := a.to.(elicitor).ElicitURL(a.ctx, "url", acp.ElicitationID(rand.Text()), "https://example.com")
			return err
		},

		// Commands in terminals that the agent has itself.
		"terminal": func(a *actor, in input) error {
			words := strings.SplitN(in.all, " ", 3)
			terminal, err := call(a, words[0]).StartTerminal(words[2], "/w")
			if err == nil {
				a.keep(words[1], terminal)
				a.name(words[1], acp.SessionID(terminal.ID()))
			}
			return err
		},
		"print": func(a *actor, in input) error {
			text := meant(in.rest)
			n, err := screen(a, in.first).Write([]byte(text))
			if err == nil && n != len(text) {
				a.note("%d bytes of %d were written", n, len(text))
			}
			return err
		},
		"exit": func(a *actor, in input) error {
			return screen(a, in.first).Exited(must.Get(strconv.Atoi(in.rest))(a.t))
		},
		"cancellable": func(a *actor, in input) error { // a call or a terminal; the action "cause" waits for its end
			ctx, err := kept[interface {
				Cancellable() (context.Context, error)
			}](a, in.all).Cancellable()
			if err != nil {
				return err
			}
			if before := kept[context.Context](a, "context of "+in.all); before != nil && before != ctx {
				return errors.New("another context")
			}
			a.keep("context of "+in.all, ctx)
			return nil
		},
		"cause": func(a *actor, in input) error {
			ctx := kept[context.Context](a, "context of "+in.all)
			<-ctx.Done()
			time.Sleep(time.Microsecond) // of the bubble: the request that has ended it is answered
			a.note("%s ended: %v", in.all, context.Cause(ctx))
			return nil
		},

		// Time, and the end.
		"times": func(a *actor, in input) error {
			for range must.Get(strconv.Atoi(in.first))(a.t) {
				if err := a.do(in.rest); err != nil {
					return ending{err: err}
				}
			}
			return nil
		},
		"sleep": func(a *actor, in input) error { time.Sleep(must.Get(time.ParseDuration(in.all))(a.t)); return nil },
		"wait": func(a *actor, in input) error { // until the client opens the gate, or the context has ended
			select {
			case <-a.gate(in.all):
				return nil
			case <-a.ctx.Done():
				a.note("the turn ended: %v", context.Cause(a.ctx))
				return ending{err: context.Cause(a.ctx)}
			}
		},
		"hold":  func(a *actor, in input) error { <-a.gate(in.all); return nil },
		"until": func(a *actor, _ input) error { <-a.ctx.Done(); return nil },
		"later": func(a *actor, in input) error { // when the client opens the gate "later"
			go func() {
				<-a.gate("later")
				if err := a.do(in.all); err != nil {
					a.note("%v", err)
				}
			}()
			return nil
		},
		"outlive": func(a *actor, _ input) error { a.ctx = context.WithoutCancel(a.ctx); return nil },
		"soon": func(a *actor, _ input) error { // ends the context of what follows
			ctx, cancel := context.WithCancelCause(a.ctx)
			a.ctx = ctx
			a.keep("soon", func() { cancel(errors.New("too slow")) })
			return nil
		},
		"now":    func(a *actor, _ input) error { kept[func()](a, "soon")(); return nil },
		"disk":   func(a *actor, in input) error { a.store.set(in.all); return nil },
		"logged": func(a *actor, in input) error { a.logged = in.all == "in"; return nil },
		"refuse": func(a *actor, in input) error { a.refusal = in.all; return nil }, // what Open is asked
		"reason": func(_ *actor, in input) error {
			return ending{res: &acp.PromptResponse{StopReason: acp.StopReason(in.all)}}
		},
		"error": func(a *actor, in input) error { return ending{err: a.why(in.all)} },
		"panic": func(_ *actor, in input) error { panic(in.all) },
		"modes": func(a *actor, in input) error { a.modes = nil; a.set("modes "+in.all, ""); return nil },
		"command": func(a *actor, in input) error { // of Open
			a.opening.Commands = append(a.opening.Commands, acp.SlashCommand(in.all, "Of Open", "more"))
			return nil
		},
		"brokencommand": func(a *actor, in input) error {
			a.opening.Commands = []acp.AvailableCommand{{Name: in.all, Meta: acp.Meta{"x": json.RawMessage("{")}}}
			return nil
		},
	}
}

// why is failure, with two more names.
func (a *actor) why(name string) error {
	switch name {
	case "it": // the last one
		return a.failed
	case "cause": // that of the context
		return context.Cause(a.ctx)
	}
	return a.failure(name)
}

// pieces is what a model yields: words and their texts, separated by slashes.
func pieces(ctx context.Context, steps string) iter.Seq2[agentkit.Piece, error] {
	return func(yield func(agentkit.Piece, error) bool) {
		for step := range strings.SplitSeq(steps, " / ") {
			var p agentkit.Piece
			var err error
			word, text, _ := strings.Cut(step, " ")
			switch word {
			case "text":
				p.Text = text
			case "thought":
				p.Thought = text
			case "more":
				p.More = len(text)
			case "down":
				err = &agentkit.APIError{Reason: "connection refused"}
			case "busy":
				err = &agentkit.APIError{Status: 429, RetryAfter: text, Reason: "slow down"}
			case "status":
				code, reason, _ := strings.Cut(text, " ")
				status, _ := strconv.Atoi(code)
				err = &agentkit.APIError{Status: status, Reason: reason}
			case "mistake":
				err = errors.New("a mistake")
			case "silence":
				wait, _ := time.ParseDuration(text)
				select {
				case <-time.After(wait):
					continue
				case <-ctx.Done():
					err = ctx.Err()
				}
			}
			if !yield(p, err) {
				return
			}
			time.Sleep(time.Microsecond) // of the bubble: each piece is sent alone
		}
	}
}

// elicitor is a turn, or a subagent.
type elicitor interface {
	ElicitForm(context.Context, string, acp.ElicitationSchema) (*acp.CreateElicitationResponse, error)
	ElicitURL(context.Context, string, acp.ElicitationID, string) (*acp.CreateElicitationResponse, error)
}

// take waits for the next prompt and takes it into the turn.
func (a *actor) take() (*acp.PromptRequest, error) {
	for {
		if req := a.turn.NextPrompt(); req != nil {
			a.note("took %s", agentkit.PromptText(req))
			return req, nil
		}
		select {
		case <-a.turn.Queued():
		case <-a.ctx.Done():
			return nil, context.Cause(a.ctx)
		}
	}
}

// meant is a text as it is written: in quotes, as "x*5", which repeats x, or as it is.
func meant(text string) string {
	if quoted, err := strconv.Unquote(text); err == nil {
		return quoted
	}
	if piece, times, ok := strings.Cut(text, "*"); ok {
		if n, err := strconv.Atoi(times); err == nil {
			return strings.Repeat(piece, n)
		}
	}
	return text
}

// callOptions are words like kind=edit, and otherwise the title.
func callOptions(text string) (title string, options []acp.ToolCallOption) {
	var words []string
	for word := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "kind":
			options = append(options, acp.WithKind(acp.ToolKind(value)))
		case "name":
			options = append(options, acp.WithName(value))
		case "in":
			options = append(options, acp.WithInput(json.RawMessage(value)))
		case "out":
			options = append(options, acp.WithOutput(json.RawMessage(value)))
		case "at":
			options = append(options, acp.WithLocation(value, 3))
		case "status":
			options = append(options, acp.WithStatus(acp.ToolCallStatus(value)))
		case "text":
			options = append(options, acp.WithContent(acp.ToolText(value)))
		case "meta":
			options = append(options, func(u *acp.ToolCallUpdate) { u.Meta = acp.Meta{value: json.RawMessage("1")} })
		default:
			words = append(words, word)
		}
	}
	return strings.Join(words, " "), options
}

// failure is an error by its name; none is nil.
func (a *author) failure(name string) error {
	word, text, _ := strings.Cut(name, " ")
	switch word {
	case "":
		return nil
	case "public":
		return acp.Public(errors.New(text))
	case "rejected":
		return agentkit.ErrRejected
	case "dismissed":
		return agentkit.ErrDismissed
	case "cancelled":
		return acp.ErrTurnCancelled
	case "auth_required":
		return acp.ErrAuthRequired
	case "invalid":
		return acp.InvalidParamsf("%s", text)
	case "api":
		status, _ := strconv.Atoi(text)
		return &agentkit.APIError{Status: status, Reason: "because"}
	case "unsendable":
		return &acp.Error{Code: -32000, Message: text, Data: json.RawMessage("{")}
	}
	return errors.New(name)
}

// told is messages as lines.
func told(messages []agentkit.Message) (lines []string) {
	for _, m := range messages {
		var line strings.Builder
		fmt.Fprint(&line, [...]string{"", "user", "agent", "summary"}[m.Role], ":")
		for _, block := range m.Content {
			fmt.Fprintf(&line, " %q", agentkit.ContentText(block))
		}
		for _, call := range m.ToolCalls {
			fmt.Fprintf(&line, " [%s %s %s %s]", call.Name.Value(), call.Status, call.RawInput, call.RawOutput)
		}
		lines = append(lines, line.String())
	}
	return lines
}
