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
// question. Errors of the writer are ignored.
type Console struct {
	// Sessions holds the conversations.
	Sessions Sessions
	// ReadAhead has Run read lines while a turn is in progress. NewConsole sets it if the input is a terminal: a script
	// may have written the answers to questions that are still to come.
	ReadAhead bool

	out      io.Writer
	lines    *lines
	terminal *os.File // nil if the input is none

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
	c := &Console{out: out, lines: newLines(in), shown: map[acp.SessionID]*Snapshot{}, last: -1}
	if tty.Is(in) {
		c.terminal, c.ReadAhead = in.(*os.File), true
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
		if text := strings.TrimSpace(line); text == "" || text == ":cancel" {
			continue
		}
		turn, cancel := signal.NotifyContext(ctx, os.Interrupt)
		reading, stop := context.WithCancel(ctx)
		var reader sync.WaitGroup
		if c.ReadAhead {
			reader.Go(func() {
				for {
					next, err := c.Line(reading)
					switch {
					case err != nil: // the turn has ended, or Line will report the error again
						return
					case strings.TrimSpace(next) == ":cancel":
						cancel()
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
		cancel()
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

// ask prints a question and returns the answer.
func (c *Console) ask(ctx context.Context, question string) (string, error) {
	return c.lines.ask(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.line(question)
	})
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

// RequestPermission serves session/request_permission: it shows the tool call and the options as a [Question], and the
// user types the number of one. On a terminal, a line allows something only if it was begun [Delay] after the question
// was shown; other input may have been written before the questions. At the end of the input the question is dismissed.
// If ctx ends first, as with the turn, a line says that nothing is asked any more.
func (c *Console) RequestPermission(
	ctx context.Context, s *acp.ClientSession, req *acp.RequestPermissionRequest,
) (*acp.RequestPermissionResponse, error) {
	if err := c.begin(ctx, s.ID()); err != nil {
		return nil, err
	}
	defer c.done()
	cancelled := &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}
	state := c.Sessions.known(s.ID())
	q := Ask(req, &QuestionOptions{Idle: state != nil && state.Snapshot().Idle()})
	if len(req.Options) == 0 {
		c.Printf("The agent asks for permission for %s, and offers no answer.", Subject(&q.Call))
		return cancelled, nil
	}
	d := &LineDialog{Question: q, Option: "%d: %s", Prompt: "Which one?", Again: "Which one, 1 to %d?"}
	for lines := d.Show(time.Now()); ; {
		if c.terminal != nil {
			tty.Discard(c.terminal)
		}
		text, err := c.ask(ctx, strings.Join(append(lines, d.Asks()), "\n"))
		if errors.Is(err, io.EOF) {
			return cancelled, nil
		} else if err != nil {
			c.Printf("This question has ended without an answer.")
			return nil, err
		}
		now := time.Now()
		begun := now
		if c.terminal == nil {
			begun = now.Add(Delay)
		}
		var latest *acp.ToolCall
		if call, ok := c.Sessions.ToolCall(s.ID(), req.ToolCall.ToolCallID); ok {
			latest = &call
		}
		var option *acp.PermissionOption
		if option, lines = d.Answer(text, begun, now, latest); option != nil {
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(option.OptionID)}, nil
		}
	}
}

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
		text, err := c.ask(ctx, strings.Join(append(lines, "Which one?"), "\n"))
		if err != nil {
			return 0, err
		}
		if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n >= 1 && n <= len(options) {
			return n - 1, nil
		}
	}
}

// CreateElicitation serves elicitation/create, mode form: it asks for the [FormFields] one at a time. An empty line
// selects the field's default value, or leaves the field out if there is none; several choices are separated by commas.
// Fields of an unknown kind are left out. At the end of the input the question is dismissed. Other modes are declined.
func (c *Console) CreateElicitation(
	ctx context.Context, _ *acp.ClientConn, req *acp.CreateElicitationRequest,
) (*acp.CreateElicitationResponse, error) {
	if err := c.begin(ctx, ""); err != nil {
		return nil, err
	}
	defer c.done()
	res := acp.NewCreateElicitationResponseDecline()
	if form, ok := req.Variant.(*acp.CreateElicitationRequestForm); ok {
		c.mu.Lock()
		c.line(req.Message)
		c.mu.Unlock()
		content, err := fill(form, func(question string) (string, error) { return c.ask(ctx, question) })
		switch {
		case errors.Is(err, io.EOF):
			res = acp.NewCreateElicitationResponseCancel()
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
		if added, ok := item.Added(shown); ok && item.Index == c.last {
			fmt.Fprint(c.out, Printable(added))
			return
		}
	case *ToolCall:
		if before, ok := shownItem(shown, item.Index).(*ToolCall); ok {
			if text = v.added(before); text == "" {
				return
			}
		}
	}
	if text == "" { // all of it is new
		text = item.String()
	}
	fmt.Fprint(c.out, "\n", Printable(text))
	c.last = item.Index
}

// shownItem returns an item of a snapshot, or nil.
func shownItem(shown *Snapshot, index int) ItemVariant {
	if shown != nil {
		if item := shown.Item(index); item != nil {
			return item.Variant
		}
	}
	return nil
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
	if plan, ok := s.Plan.Get(); ok {
		add(0, "plan:")
		for _, e := range plan.Entries {
			add(0, "  %s: %s", e.Status, e.Content)
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
