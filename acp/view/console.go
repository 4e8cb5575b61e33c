package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/tty"
)

// Console is a client's user interface of plain lines: it prints conversations, with the agent's text made printable,
// asks the user, and reads prompts. SessionUpdate, RequestPermission and CreateElicitation are handlers of a client;
// CreateElicitation serves forms. Its methods are safe for concurrent use, and it asks one question at a time. While a
// question waits, everything else that is to be printed is held, so that it cannot be mistaken for a part of the
// question. Errors of the writer are ignored. The fields must be set before other methods are called.
type Console struct {
	// Sessions holds the conversations.
	Sessions *Sessions
	// DrawToolCall returns the text of a tool call, which is printed as it is whenever it has changed. Nil prints a tool
	// call as a whole once, and then what changed.
	DrawToolCall func(*ToolCall) string
	// DrawQuestion returns lines to be printed as they are: those of the facts and, after them, of the notes; how many are
	// of the facts; and other lines that help the user, such as the content of the tool call. That of NewConsole draws the
	// facts and the notes in 80 columns.
	DrawQuestion func(*Question) (head []string, facts int, body []string)
	// ReadAhead says that a person types: Run reads lines while a turn is in progress, and ":cancel" answers no question.
	// NewConsole sets it if the input is a terminal: a script may have written the answers to questions that are still to
	// come.
	ReadAhead bool

	out      io.Writer
	lines    *lines
	terminal tty.File // nil if the input is none

	mu    sync.Mutex
	shown map[acp.SessionID]*Snapshot
	asks  bool            // a question waits
	held  []acp.SessionID // to be shown after it
	texts []string        // to be printed after it
	size  int             // of texts
	id    acp.SessionID   // the session printed last
	last  int             // its item printed last, or -1
}

// NewConsole returns a Console that reads from in only while a line is wanted.
func NewConsole(in io.Reader, out io.Writer) *Console {
	c := &Console{
		Sessions: &Sessions{}, DrawQuestion: drawPlainly, out: out, lines: newLines(in),
		shown: map[acp.SessionID]*Snapshot{}, last: -1,
	}
	if tty.Is(in) {
		c.terminal, c.ReadAhead = in.(tty.File), true
	}
	return c
}

// Line returns the next line that the user types, io.EOF at the end of the input, or the cause of ctx if it ends first.
// Line does not return the answers to questions: while a question is waiting, input goes to the question and not to
// Line.
func (c *Console) Line(ctx context.Context) (string, error) { return c.lines.next(ctx) }

// Run reads lines, and calls do with each that is not empty, until the end of the input, when it returns nil, or until
// ctx ends, when it returns its cause. The context of do ends when the user interrupts the program. With ReadAhead,
// lines are read meanwhile: ":cancel" ends the context, and others are handled afterwards. Run prints the errors of do.
func (c *Console) Run(ctx context.Context, do func(ctx context.Context, line string) error) error {
	var ahead []string
	for {
		if len(ahead) == 0 {
			if c.ReadAhead {
				c.Printf("> ")
			}
			line, err := c.Line(ctx)
			if errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			ahead = []string{line}
		}
		line := ahead[0]
		ahead = ahead[1:]
		if text := strings.TrimSpace(line); text == "" || text == cancel {
			continue
		}
		turn, stopTurn := signal.NotifyContext(ctx, os.Interrupt)
		reading, stop := context.WithCancel(ctx)
		var reader sync.WaitGroup
		if c.ReadAhead {
			reader.Go(func() {
				for {
					next, err := c.Line(reading)
					switch {
					case err != nil: // the turn has ended, or Line will report the error again
						return
					case strings.TrimSpace(next) == cancel:
						stopTurn()
					default:
						ahead = append(ahead, next)
						c.Printf("[after this turn: %s]", next)
					}
				}
			})
		}
		err := do(turn, line)
		stop()
		reader.Wait()
		stopTurn()
		if err != nil {
			c.Printf("error: %v", err)
		}
	}
}

// maxOutput is how many bytes of a terminal's output are printed, from its end.
const maxOutput = 8 << 10

// ShowTerminals has the output of terminals printed, once for each, when the agent has waited for its end or releases
// it. Call it before the handlers are used, when those of terminals are set, for example by local.Serve.
func (c *Console) ShowTerminals(handlers *acp.ClientHandlers) {
	output, wait, release := handlers.TerminalOutput, handlers.WaitForTerminalExit, handlers.ReleaseTerminal
	if output == nil || wait == nil || release == nil {
		return
	}
	var mu sync.Mutex
	printed := map[acp.TerminalID]bool{}
	show := func(ctx context.Context, s *acp.ClientSession, id acp.TerminalID) {
		mu.Lock()
		done := printed[id]
		printed[id] = true
		mu.Unlock()
		if done {
			return
		}
		res, err := output(ctx, s, &acp.TerminalOutputRequest{SessionID: s.ID(), TerminalID: id})
		if err != nil {
			return // the agent's request fails for the same reason
		}
		text, ended := strings.TrimRight(res.Output, "\n"), "running"
		if len(text) > maxOutput {
			text = "…" + strings.ToValidUTF8(text[len(text)-maxOutput:], "")
		}
		if status, ok := res.ExitStatus.Get(); ok {
			ended = fmt.Sprintf("exit status %d", status.ExitCode.Value())
			if name, ok := status.Signal.Get(); ok {
				ended = name
			}
		}
		c.Printf("terminal %s: %s\n  %s", PrintableLine(string(id)), PrintableLine(ended), indented(text))
	}
	handlers.WaitForTerminalExit = func(
		ctx context.Context, s *acp.ClientSession, req *acp.WaitForTerminalExitRequest,
	) (*acp.WaitForTerminalExitResponse, error) {
		res, err := wait(ctx, s, req)
		if err == nil {
			show(ctx, s, req.TerminalID)
		}
		return res, err
	}
	handlers.ReleaseTerminal = func(
		ctx context.Context, s *acp.ClientSession, req *acp.ReleaseTerminalRequest,
	) (*acp.ReleaseTerminalResponse, error) {
		show(ctx, s, req.TerminalID)
		mu.Lock()
		delete(printed, req.TerminalID)
		mu.Unlock()
		return release(ctx, s, req)
	}
}

// ask prints a question, which must be printable, and returns the answer.
func (c *Console) ask(ctx context.Context, question string) (string, error) {
	text, err := c.lines.ask(ctx, c.ReadAhead, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		fmt.Fprint(c.out, "\n", question)
		c.last = -1
	})
	if err != nil && !errors.Is(err, io.EOF) {
		c.Printf("This question has ended without an answer.")
	}
	return text, err
}

// begin waits until no other question waits, shows the session that the question is about, and then holds other output
// until done is called.
func (c *Console) begin(ctx context.Context, session acp.SessionID) error {
	if err := c.lines.begin(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.show(session)
	c.asks = true
	return nil
}

func (c *Console) done() {
	c.mu.Lock()
	c.asks = false
	for _, text := range c.texts {
		c.line(text)
	}
	for _, session := range c.held {
		c.show(session)
	}
	c.held, c.texts, c.size = nil, nil, 0
	c.mu.Unlock()
	c.lines.done()
}

// SessionUpdate serves session/update: it folds an update into the session's State, and shows it.
func (c *Console) SessionUpdate(ctx context.Context, s *acp.ClientSession, n *acp.SessionNotification) error {
	if err := c.Sessions.Update(ctx, s, n); err != nil {
		return err
	}
	c.Show(n.SessionID)
	return nil
}

// RequestPermission serves session/request_permission with [Console.AskPermission]. At the end of the input the
// question is dismissed.
func (c *Console) RequestPermission(
	ctx context.Context, s *acp.ClientSession, req *acp.RequestPermissionRequest,
) (*acp.RequestPermissionResponse, error) {
	state := c.Sessions.known(s.ID())
	q := Ask(req, &QuestionOptions{
		Idle:   state != nil && state.Snapshot().Idle(),
		Latest: func() (acp.ToolCall, bool) { return c.Sessions.ToolCall(s.ID(), req.ToolCall.ToolCallID) },
	})
	outcome := acp.PermissionCancelled()
	if len(req.Options) == 0 {
		c.Printf("The agent asks for permission for %s, and offers no answer.", Subject(&q.Call))
		return &acp.RequestPermissionResponse{Outcome: outcome}, nil
	}
	option, err := c.AskPermission(ctx, s.ID(), q)
	if err == nil {
		outcome = acp.PermissionSelected(option.OptionID)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return &acp.RequestPermissionResponse{Outcome: outcome}, nil
}

// AskPermission shows a session and a question in it, and the user types the number of an option. With ReadAhead, a
// line allows something only [Delay] after the question was shown; other input may have been written before the
// questions. At the end of the input the error is io.EOF. If ctx ends first, it is its cause, and a line says that
// nothing is asked any more.
func (c *Console) AskPermission(ctx context.Context, in acp.SessionID, q *Question) (*acp.PermissionOption, error) {
	if err := c.begin(ctx, in); err != nil {
		return nil, err
	}
	defer c.done()
	d := &lineDialog{Question: q, draw: c.DrawQuestion}
	for lines := d.show(time.Now()); ; {
		if c.terminal != nil && len(lines) > 0 {
			tty.Discard(c.terminal)
		}
		text, err := c.ask(ctx, strings.Join(append(lines, d.asks()), "\n"))
		if err != nil {
			return nil, err
		}
		now := time.Now()
		begun := now
		if !c.ReadAhead {
			begun = now.Add(Delay)
		}
		var option *acp.PermissionOption
		if option, lines = d.answer(text, begun, now); option != nil {
			return option, nil
		}
	}
}

// which is the prompt for the number of an option.
const which = "Which one? "

// Choose asks the user to choose one of several options by its number, and returns its index. At the end of the input
// the error is io.EOF. If ctx ends first, it is its cause.
func (c *Console) Choose(ctx context.Context, question string, options ...string) (int, error) {
	if err := c.begin(ctx, ""); err != nil {
		return 0, err
	}
	defer c.done()
	lines := []string{PrintableLine(question)}
	for i, option := range options {
		lines = append(lines, fmt.Sprintf("%d: %s", i+1, PrintableLine(option)))
	}
	for {
		text, err := c.ask(ctx, strings.Join(append(lines, which), "\n"))
		if err != nil {
			return 0, err
		}
		if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n >= 1 && n <= len(options) {
			return n - 1, nil
		}
	}
}

// Ask prints a question, which may have several lines, and returns the line that the user types. At the end of the
// input the error is io.EOF. If ctx ends first, it is its cause.
func (c *Console) Ask(ctx context.Context, question string) (string, error) {
	if err := c.begin(ctx, ""); err != nil {
		return "", err
	}
	defer c.done()
	return c.ask(ctx, Printable(question))
}

// CreateElicitation serves elicitation/create, mode form: it asks for the [FormFields] one at a time. An empty line
// selects the field's default value, or leaves the field out if there is none; a choice is made by its value or its
// number, and several are separated by commas; ":decline" declines the form. Fields of an unknown kind are left out;
// without others, the user only agrees. At the end of the input the question is dismissed. Other modes are declined.
func (c *Console) CreateElicitation(
	ctx context.Context, _ *acp.ClientConn, req *acp.CreateElicitationRequest,
) (*acp.CreateElicitationResponse, error) {
	if err := c.begin(ctx, ""); err != nil {
		return nil, err
	}
	defer c.done()
	res := acp.NewCreateElicitationResponseDecline()
	if form, ok := req.Variant.(*acp.CreateElicitationRequestForm); ok {
		content, err := fill(form, req.Message, func(question string) (string, error) { return c.ask(ctx, question) })
		switch {
		case errors.Is(err, io.EOF):
			res = acp.NewCreateElicitationResponseCancel()
		case errors.Is(err, errDeclined):
		case err != nil:
			return nil, err
		default:
			res = acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{Content: acp.Some(content)})
		}
	}
	return &res, nil
}

// maxHeld is how many bytes are held while a question waits; what does not fit is dropped.
const maxHeld = 1 << 20

// Printf prints a line.
func (c *Console) Printf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	switch {
	case !c.asks:
		c.line(text)
	case c.size+len(text) <= maxHeld:
		c.size += len(text) + overhead
		c.texts = append(c.texts, text)
	case c.size <= maxHeld:
		c.size += maxHeld
		c.texts = append(c.texts, "… (more did not fit)")
	}
}

// line prints text on a line of its own; mu is held.
func (c *Console) line(text string) {
	fmt.Fprint(c.out, "\n", Printable(text))
	c.last = -1
}

// Show prints the part of a session's conversation that is new since Show last printed it: the text appended to a
// message, but no prompt that this client sent; a tool call as a whole once, and then what changed; the entries of the
// plan, and the modes, options and commands, that are new or changed; and the title. While a question waits, this is
// done after it. It prints nothing if Sessions has no State of the session. SessionUpdate shows updates; call Show
// after State.SetSession.
func (c *Console) Show(session acp.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.asks {
		c.show(session)
	} else if !slices.Contains(c.held, session) {
		c.held = append(c.held, session)
	}
}

// show is Show; mu is held.
func (c *Console) show(session acp.SessionID) {
	state := c.Sessions.known(session)
	if state == nil {
		delete(c.shown, session)
		return
	}
	now, shown := state.Snapshot(), c.shown[session]
	if !now.SameHistory(shown) {
		shown = nil
	}
	if shown != nil && shown.Version == now.Version {
		return
	}
	if c.id != session && c.id != "" {
		c.line("session " + PrintableLine(string(session)))
	}
	c.id, c.shown[session] = session, now
	for item := range now.Changed(shown) {
		c.item(item, shown)
	}
	var before [][]string
	if shown != nil {
		if now.Versions == shown.Versions {
			return
		}
		before = settings(shown)
	}
	for i, lines := range settings(now) {
		var old []string
		if before != nil {
			old = before[i]
		}
		news := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return slices.Contains(old, line) })
		if len(news) == 0 && len(lines) >= len(old) {
			continue
		}
		if len(lines) > 0 && strings.HasSuffix(lines[0], ":") && (len(news) == 0 || news[0] != lines[0]) {
			news = slices.Insert(news, 0, lines[0])
		}
		if len(news) > 0 {
			c.line(strings.Join(news, "\n"))
		}
	}
}

// item prints what is new of an item; mu is held.
func (c *Console) item(item *Item, shown *Snapshot) {
	text := ""
	switch v := item.Variant.(type) {
	case *Message:
		if v.Sent {
			return // the user has typed it
		}
		if added, ok := item.Added(shown); ok {
			if item.Index == c.last || added == "" {
				fmt.Fprint(c.out, Printable(added))
				return
			}
			text = Printable(v.Role.String() + ": " + added)
		}
	case *ToolCall:
		var old ItemVariant
		if shown != nil {
			if item := shown.Item(item.Index); item != nil {
				old = item.Variant
			}
		}
		before, ok := old.(*ToolCall)
		if c.DrawToolCall != nil {
			if text = c.DrawToolCall(v); ok && text == c.DrawToolCall(before) {
				return
			}
		} else if ok {
			if text = Printable(v.added(before)); text == "" {
				return
			}
		}
	}
	if text == "" { // all of it is new
		text = Printable(item.String())
	}
	fmt.Fprint(c.out, "\n", text)
	c.last = item.Index
}

// settings returns the lines about the plan, the mode, the options, the commands and the title. The first line of each
// is its heading; there are none about what was not reported.
func settings(s *Snapshot) [][]string {
	lines := make([][]string, 5)
	add := func(part int, format string, words ...any) {
		for i, word := range words {
			words[i] = PrintableLine(fmt.Sprint(word)) // so that it cannot imitate another entry
		}
		lines[part] = append(lines[part], fmt.Sprintf(format, words...))
	}
	entries := func(entries []acp.PlanEntry) {
		for _, e := range entries {
			add(0, "  %s: %s", e.Status, e.Content)
		}
	}
	if plan, ok := s.Plan.Get(); ok {
		add(0, "plan:")
		entries(plan.Entries)
	}
	for _, plan := range s.Plans {
		add(0, "plan %s:", plan.ID)
		switch v := plan.Content.Variant.(type) {
		case *acp.PlanUpdateContentItems:
			entries(v.Entries)
		case *acp.PlanUpdateContentFile:
			add(0, "  in %s", v.URI)
		case *acp.PlanUpdateContentMarkdown:
			for line := range strings.Lines(v.Content) {
				add(0, "  %s", strings.TrimSuffix(line, "\n"))
			}
		default: // a newer kind
		}
	}
	if modes, ok := s.Modes.Get(); ok {
		add(1, "mode: %s", modes.CurrentModeID)
		for _, m := range modes.AvailableModes {
			add(1, "  %s: %s", m.ID, m.Name)
		}
	}
	if options := s.ConfigOptions.Value(); len(options) > 0 {
		add(2, "options:")
		for _, o := range options {
			add(2, "  %s = %s", o.ID, optionText(o))
		}
	}
	if len(s.Commands) > 0 {
		add(3, "commands:")
		for _, command := range s.Commands {
			add(3, "  /%s: %s", command.Name, command.Description)
		}
	}
	if title := s.Title.Value(); title != "" {
		add(4, "title: %s", title)
	}
	return lines
}

// optionText returns the value of a config option, and the values that it can have.
func optionText(option acp.SessionConfigOption) string {
	switch v := option.Variant.(type) {
	case *acp.SessionConfigOptionBoolean:
		return fmt.Sprint(v.CurrentValue)
	case *acp.SessionConfigOptionSelect:
		var values []string
		all, _ := v.Options.All()
		for _, o := range all {
			values = append(values, string(o.Value))
		}
		return fmt.Sprintf("%s (%s)", v.CurrentValue, strings.Join(values, ", "))
	default:
		return "?"
	}
}
