package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/tty"
)

// Console is a client's user interface of plain lines: it prints conversations, with the agent's text made printable, and
// asks the user. SessionUpdate, RequestPermission and CreateElicitation are handlers of a client; CreateElicitation serves
// forms. Its methods are safe for concurrent use, and it asks one question at a time. While a question waits, everything
// else that is to be printed is held, so that it cannot be mistaken for a part of the question. Errors of the writer are
// ignored.
type Console struct {
	// Sessions holds the conversations.
	Sessions Sessions

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
		c.terminal = in.(*os.File)
	}
	return c
}

// Line returns the next line that the user types, io.EOF at the end of the input, or the cause of ctx if it ends first.
// Line does not return the answers to questions: while a question is waiting, input goes to the question and not to
// Line.
func (c *Console) Line(ctx context.Context) (string, error) { return c.lines.next(ctx) }

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

// RequestPermission serves session/request_permission: it shows the tool call and the options as a [Question], and the user
// types the number of one. On a terminal, a line allows something only if it was begun [Delay] after the question was
// shown; other input may have been written before the questions. At the end of the input the question is dismissed. If ctx ends
// first, as with the turn, a line says that nothing is asked any more.
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
// message; other items as a whole; the plan, the mode, the options and the commands if they were reported; and the
// title if it changed. While a question waits, this is done after it. It prints nothing if Sessions has no State of the session. SessionUpdate shows updates; call
// Show after State.Opened.
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
		if added, ok := item.Added(shown); ok && item.Index == c.last {
			fmt.Fprint(c.out, Printable(added))
		} else {
			fmt.Fprint(c.out, "\n", Printable(item.String()))
		}
		c.last = item.Index
	}
	var before Versions
	var shownTitle string
	if shown != nil {
		before, shownTitle = shown.Versions, shown.Title.Value()
	}
	part := func(now, before uint64, write func(text *strings.Builder)) {
		if now != before {
			var text strings.Builder
			write(&text)
			c.line(text.String())
		}
	}
	entry := func(text *strings.Builder, format string, words ...any) {
		for i, word := range words {
			words[i] = PrintableLine(fmt.Sprint(word)) // so that it cannot imitate another entry
		}
		fmt.Fprintf(text, format, words...)
	}
	v := now.Versions
	if now.Plan.IsZero() {
		v.Plan = before.Plan // the State was reset
	}
	part(v.Plan, before.Plan, func(text *strings.Builder) {
		text.WriteString("plan:")
		for _, e := range now.Plan.Value().Entries {
			entry(text, "\n  %s: %s", e.Status, e.Content)
		}
	})
	part(v.Modes, before.Modes, func(text *strings.Builder) {
		modes := now.Modes.Value()
		entry(text, "mode: %s", modes.CurrentModeID)
		for _, m := range modes.AvailableModes {
			entry(text, "\n  %s: %s", m.ID, m.Name)
		}
	})
	part(v.ConfigOptions, before.ConfigOptions, func(text *strings.Builder) {
		text.WriteString("options:")
		for _, o := range now.ConfigOptions.Value() {
			entry(text, "\n  %s = %s", o.ID, optionText(o))
		}
	})
	part(v.Commands, before.Commands, func(text *strings.Builder) {
		text.WriteString("commands:")
		for _, command := range now.Commands {
			entry(text, "\n  /%s: %s", command.Name, command.Description)
		}
	})
	if title := now.Title.Value(); title != shownTitle {
		c.line("title: " + PrintableLine(title))
	}
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
