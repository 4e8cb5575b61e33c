package tui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/muesli/cancelreader"

	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/draw"
	"github.com/acpgo/sdk/internal/tty"
)

// plainWidth is the maximum width of the lines that this mode composes itself. Text of the agent is not wrapped.
const plainWidth = 100

// plainProgram is the program in plain mode.
type plainProgram struct {
	m       *Model
	out     io.Writer
	msgs    chan tea.Msg
	ended   chan struct{}
	running sync.WaitGroup

	typing *typing
	prompt bool // the cursor is after a prompt

	chat     *chat
	shown    *view.Snapshot
	rest     string           // of an unfinished line of the agent
	turn     int              // the last turn whose end was written
	item     int              // the message being written
	statuses map[int]string   // of tool calls, as last written
	plan     string           // as last written
	layer    layer            // the layer last written
	question *question        // the question last written
	asked    time.Time        // when it was written
	lines    *view.LineDialog // about it, if it asks for permission
	printed  int              // how many lines were printed
	end      int              // after the question, if it asks for permission
	taking   bool             // what is printed is the answer to the user's line
	held     []string         // told while a question waits
	form     *plainForm       // the form being filled in
}

// typedLine is a line that the user typed, and the time when its first part arrived.
type typedLine struct {
	text string
	at   time.Time
	err  error
}

// RunPlain is Run for terminals that are used line by line.
func RunPlain(ctx context.Context, opts *Options) error {
	p := &plainProgram{
		out: opts.Out, msgs: make(chan tea.Msg), ended: make(chan struct{}),
		typing: newTyping(opts.In), statuses: map[int]string{}, item: -1,
	}
	p.m = newModel(ctx, opts, p.send)
	p.m.plain = true
	p.m.drawn = draw.Plain()
	p.m.width, p.m.height = plainWidth, 1000
	p.m.told = p.told
	p.m.taken = p.typing.stop
	p.m.bell = func() { fmt.Fprint(p.out, "\a") }
	if err := p.typing.start(); err != nil {
		return fmt.Errorf("the terminal: %w", err)
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, endSignals...)
	defer signal.Stop(signals)
	p.print(`Type a prompt and press Enter. ":help" lists all commands, Ctrl-C cancels the turn, ":quit" quits.`)
	p.do(p.m.Init())
	for !p.m.leaving {
		p.show()
		if l, ok := p.typing.take(); ok {
			p.typed(l)
			continue
		}
		select {
		case msg := <-p.msgs:
			if t, ok := msg.(terminalMsg); ok {
				msg = t.msg
				if err := p.typing.start(); err != nil {
					p.do(p.m.leave(fmt.Errorf("the terminal: %w", err)))
				}
			}
			p.update(msg)
		case <-p.typing.wake:
		case s := <-signals:
			p.print() // messages must not follow what was typed on the same line
			if s == os.Interrupt {
				p.do(p.m.interrupt())
			} else {
				p.do(p.m.leave(&SignalError{s}))
			}
		}
	}
	p.showHeld()
	p.flush()
	p.print()
	close(p.ended)
	p.typing.stop()
	err := p.m.end()
	p.running.Wait()
	p.m.sayResume()
	return errors.Join(err, p.m.result(nil))
}

// send sends a message to the loop.
func (p *plainProgram) send(msg tea.Msg) {
	select {
	case p.msgs <- msg:
	case <-p.ended:
	}
}

func (p *plainProgram) update(msg tea.Msg) {
	_, cmd := p.m.Update(msg)
	p.do(cmd)
}

// do runs a command in a goroutine.
func (p *plainProgram) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	p.running.Go(func() { p.result(cmd()) })
}

// result handles the result of a command: a message, or more commands.
func (p *plainProgram) result(msg tea.Msg) {
	if msg == nil {
		return
	}
	if v := reflect.ValueOf(msg); v.Kind() == reflect.Slice && v.Type().Elem() == reflect.TypeFor[tea.Cmd]() {
		for i := range v.Len() {
			cmd, _ := v.Index(i).Interface().(tea.Cmd)
			p.do(cmd)
		}
		return
	}
	p.send(msg)
}

// typing reads what the user types as it arrives; the time of a line says what it can be an answer to.
type typing struct {
	in   *os.File
	wake chan struct{}

	mu    sync.Mutex
	lines []typedLine

	reader  cancelreader.CancelReader
	running sync.WaitGroup
	rest    []byte // of an unfinished line
	began   time.Time
}

func newTyping(in *os.File) *typing { return &typing{in: in, wake: make(chan struct{}, 1)} }

// start begins reading.
func (t *typing) start() error {
	reader, err := cancelreader.NewReader(t.in)
	if err != nil {
		return err
	}
	t.reader = reader
	t.running.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := reader.Read(buf)
			if len(t.rest) == 0 {
				t.began = time.Now()
			}
			t.rest = append(t.rest, buf[:n]...)
			for {
				line, rest, whole := bytes.Cut(t.rest, []byte("\n"))
				if !whole {
					break
				}
				t.put(typedLine{text: strings.TrimSuffix(string(line), "\r"), at: t.began})
				t.rest, t.began = rest, time.Now()
			}
			switch {
			case errors.Is(err, cancelreader.ErrCanceled):
				return
			case err != nil:
				if len(t.rest) > 0 {
					t.put(typedLine{text: string(t.rest), at: t.began})
				}
				t.put(typedLine{err: err})
				return
			}
		}
	})
	return nil
}

func (t *typing) put(l typedLine) {
	t.mu.Lock()
	t.lines = append(t.lines, l)
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// take returns the next line.
func (t *typing) take() (typedLine, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lines) == 0 {
		return typedLine{}, false
	}
	l := t.lines[0]
	t.lines = t.lines[1:]
	return l, true
}

// stop stops reading, so that another program can read from the terminal.
func (t *typing) stop() {
	if t.reader == nil {
		return
	}
	if t.reader.Cancel() { // otherwise its input ends by itself, or with the program
		t.running.Wait()
	}
	_ = t.reader.Close() // nothing was written to it
	t.reader = nil
}

// maxHeld is how many lines are held while a question waits.
const maxHeld = 1000

// told writes a message to the user. It waits behind a question, so that no words of an agent in it stand between the
// question and the answer.
func (p *plainProgram) told(text string) {
	switch {
	case p.question == nil || p.taking:
		p.print("-- " + text)
	case len(p.held) < maxHeld:
		p.held = append(p.held, "-- "+text)
	case len(p.held) == maxHeld:
		p.held = append(p.held, "-- More messages did not fit.")
	}
}

// print writes lines.
func (p *plainProgram) print(lines ...string) {
	p.printed++
	if p.prompt {
		fmt.Fprintln(p.out)
		p.prompt = false
	}
	for _, l := range lines {
		if _, err := fmt.Fprintln(p.out, l); err != nil && !p.m.leaving {
			p.m.leave(fmt.Errorf("the terminal: %w", err))
		}
	}
}

// ask writes a prompt for input.
func (p *plainProgram) ask(text string) {
	if !p.prompt {
		fmt.Fprint(p.out, text)
		p.prompt = true
	}
}

// typed handles a line.
func (p *plainProgram) typed(l typedLine) {
	m := p.m
	p.taking = true
	defer func() { p.taking = false }()
	if l.err != nil {
		if errors.Is(l.err, io.EOF) {
			l.err = nil
		}
		p.do(m.leave(l.err))
		return
	}
	p.prompt = false // Enter has ended the line
	text := strings.TrimSpace(l.text)
	if name, ok := strings.CutPrefix(text, ":"); ok && !strings.HasPrefix(name, ":") {
		p.command(name)
		return
	}
	fresh := !l.at.Before(p.asked) // what was typed before a question is not an answer to it
	switch top := m.top().(type) {
	case *picker:
		if top.sudden && !fresh {
			break
		}
		if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(top.list.found) {
			top.list.at = n - 1
			it, _ := top.list.current()
			p.do(top.choose(m, top, it))
			return
		}
		if text == "" {
			m.pop(top)
			return
		}
		if !top.letters { // a filter
			top.input.SetValue(text)
			top.filtered()
			p.layer = nil
			return
		}
		p.print("Type a number, or press Enter to go back.")
		return
	case *line:
		m.pop(top)
		if text != "" {
			p.do(top.done(m, text))
		}
		return
	}
	if q := m.question(); q != nil && q == p.question && fresh {
		if p.form != nil {
			p.form.take(p, l.text)
			return
		}
		if p.lines != nil {
			d := q.dialog.(*permissionDialog)
			option, lines := p.lines.Answer(text, l.at, m.now(), d.latest(m))
			if option != nil {
				d.chosen(m, q, option)
				m.withdraw(q)
				return
			}
			if len(lines) > 0 {
				p.print(lines...)
				p.end = p.printed
			}
			return
		}
		choices := q.dialog.choices()
		if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(choices) {
			answered, cmd := q.dialog.key(m, q, keyPress(choices[n-1].value))
			if answered {
				m.withdraw(q)
			}
			p.do(cmd)
			return
		}
		if text == "" {
			p.question = nil // show it again
			return
		}
		p.print(fmt.Sprintf("Type a number from 1 to %d, press Enter to see the question again, or type :cancel.",
			len(choices)))
		return
	}
	if strings.HasPrefix(text, "::") {
		l.text = strings.TrimPrefix(text, ":") // a prompt that begins with a colon
	}
	if text == "" {
		p.do(m.submit())
		return
	}
	m.editor().set(prompt{text: l.text})
	cmd := m.submit()
	if m.chat == nil || slices.ContainsFunc(m.chat.queue, func(q *prompt) bool { return q.text == l.text }) {
		p.print("-- Queued: " + clean(l.text))
	}
	p.do(cmd)
}

// keyPress returns a key by its name.
func keyPress(name string) tea.KeyPressMsg {
	if letter, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: rune(letter[0]), Mod: tea.ModCtrl}
	}
	return tea.KeyPressMsg{Code: rune(name[0]), Text: name}
}

// command runs an action by its name.
func (p *plainProgram) command(name string) {
	m := p.m
	q := m.question()
	switch {
	case name == "help":
		var lines []string
		for _, a := range actions() {
			if a.name != "" && a.run != nil {
				lines = append(lines, hanging(":"+a.name, a.about, 16, plainWidth)...)
			}
		}
		p.print(append(lines, "Type a number to answer a question or to choose from a list, and an empty line to leave a "+
			"list. To begin a prompt with a colon, type two.")...)
		return
	case p.form != nil && q == p.question && (name == "decline" || name == "cancel-form"):
		res := declined()
		if name == "cancel-form" {
			res = cancelled()
		}
		q.dialog.(*formDialog).end(res)
		m.withdraw(q)
		return
	case name == "answer":
		p.do(m.goToQuestion())
		p.question = nil
		return
	}
	for _, a := range actions() {
		if a.name == name && a.run != nil {
			p.do(a.run(m))
			return
		}
	}
	p.print(fmt.Sprintf("There is no :%s. See :help.", clean(name)))
}

// show writes what is new.
func (p *plainProgram) show() {
	m := p.m
	if p.question == nil || p.question != m.question() { // while a question waits, it stays the last thing on the terminal
		p.showHeld()
	}
	switch top := m.top().(type) {
	case *picker:
		if p.layer != layer(top) || top.refresh != nil && p.layer == nil {
			p.layer = top
			p.asked = m.now()
			if top.refresh != nil {
				top.refreshNow(m)
			}
			p.flush()
			p.print("", top.title)
			for i, n := range top.list.found {
				it := top.list.items[n]
				mark := ""
				if it.current {
					mark = " (now)"
				}
				p.print(fmt.Sprintf("  %d. %s%s  %s", i+1, it.label, mark, it.about))
				if i == 99 {
					p.print("  … type part of a name to see fewer")
					break
				}
			}
		}
		p.ask("Number: ")
		return
	case *line:
		p.flush()
		p.ask(top.title + " [" + top.input.Value() + "]: ")
		return
	case *pages:
		p.flush()
		p.print("", top.title)
		p.print(top.text(m, plainWidth)...)
		m.pop(top)
	case *answering:
		m.pop(top)
	}
	p.layer = nil
	if q := m.question(); q != p.question || p.lines != nil && p.printed != p.end {
		p.question, p.form, p.lines = q, nil, nil
		if q != nil {
			p.flush()
			title := []string{"", q.dialog.title(m)}
			if _, ok := q.dialog.(*permissionDialog); !ok {
				p.print(title...)
			}
			switch d := q.dialog.(type) {
			case *formDialog:
				p.print(strings.Split(cleanText(d.asked.Message), "\n")...)
				p.form = &plainForm{dialog: d, q: q}
			case *permissionDialog:
				p.lines = &view.LineDialog{Question: d.q, Title: title, Option: "  %d. %s", Prompt: "Number: ",
					Again: "Type a number from 1 to %d, press Enter to see the question again, or type :cancel.\nNumber: ",
					Draw: func() ([]string, int, []string) {
						text := draw.Permission(d.q, m.drawn, m.diffs, m.terminalOutput, plainWidth)
						return text.Head, text.Facts, text.Body
					}}
				p.print(p.lines.Show(m.now())...)
				tty.Discard(p.typing.in)
				p.end = p.printed
			default:
				body := q.dialog.body(m, plainWidth)
				p.print(body...)
				q.seen = len(body)
				for i, c := range q.dialog.choices() {
					p.print(fmt.Sprintf("  %d. %s", i+1, c.label))
				}
			}
			p.asked = m.now()
		}
	}
	switch {
	case p.form != nil && p.question != nil:
		p.form.ask(p)
	case p.lines != nil:
		p.ask(p.lines.Asks())
	case p.question != nil:
		p.ask("Number: ")
	case m.chat == nil && m.client != nil && m.connection == connected && m.note == "":
		p.ask("There is no session (:new opens one): ")
	case m.calls > 0: // what is typed next may depend on their results
	case m.chat != nil && m.chat.cancel == nil && m.client != nil && m.connection == connected:
		p.flush()
		p.ask("> ")
	}
}

// showHeld writes what has happened, also while a question waited.
func (p *plainProgram) showHeld() {
	p.showChat()
	if held := p.held; len(held) > 0 {
		p.held = nil
		p.print(held...)
	}
}

// showChat writes what is new in the conversation.
func (p *plainProgram) showChat() {
	m := p.m
	c := m.chat
	if c == nil {
		return
	}
	if c != p.chat {
		p.flush()
		p.chat, p.shown, p.item, p.turn, p.statuses, p.plan = c, nil, -1, 0, map[int]string{}, ""
		if len(m.chats) > 1 {
			p.print("", "Session: "+c.name())
		}
	}
	now := c.session.State().Snapshot() // a question must not precede what it is about
	c.take(now)
	if now == p.shown {
		return
	}
	if p.shown != nil && !now.SameHistory(p.shown) {
		p.shown, p.item, p.turn, p.statuses = nil, -1, 0, map[int]string{}
	}
	for item := range now.Changed(p.shown) {
		p.showItem(item)
	}
	if plan := draw.Plan(m.drawn, now, plainWidth, 1000); strings.Join(plan, "\n") != p.plan {
		p.plan = strings.Join(plan, "\n")
		p.flush()
		p.print(plan...)
	}
	for turn := range now.Turns() {
		if turn.Ended && !turn.Replayed && turn.Number > p.turn {
			p.turn = turn.Number
			p.flush()
			took := c.times.took(turn.Number)
			if c.cancel != nil { // the turn has ended, but its result was not handled yet
				took = c.times.ifLong(m.now().Sub(c.began))
			}
			p.print(draw.TurnEnd(m.drawn, turn, took, plainWidth)...)
		}
	}
	p.shown = now
}

// showItem writes the new part of an item.
func (p *plainProgram) showItem(item *view.Item) {
	m := p.m
	switch v := item.Variant.(type) {
	case *view.Message:
		if v.Sent {
			return // the user has typed it
		}
		added, ok := item.Added(p.shown)
		if !ok {
			added = v.Text()
		}
		if p.item != item.Index {
			p.flush()
			p.item = item.Index
			added = map[view.Role]string{view.User: "You: ", view.Agent: "Agent: ", view.Thought: "Thought: "}[v.Role] + added
		}
		p.rest += added
		if end := strings.LastIndexByte(p.rest, '\n'); end >= 0 {
			p.print(strings.Split(cleanText(p.rest[:end]), "\n")...)
			p.rest = p.rest[end+1:]
		}
	case *view.ToolCall:
		lines := draw.ToolCall(m.drawn, v, draw.Ended(v), m.terminalOutput, plainWidth)
		if text := strings.Join(lines, "\n"); text != p.statuses[item.Index] {
			p.statuses[item.Index] = text
			p.flush()
			p.print(lines...)
		}
	default:
		p.flush()
		p.print(strings.Split(cleanText(item.String()), "\n")...)
	}
}

// flush writes the unfinished line of the agent.
func (p *plainProgram) flush() {
	if p.rest != "" {
		rest := p.rest
		p.rest = ""
		p.print(cleanText(rest))
	}
	p.item = -1
}

// plainForm asks the user to fill in a form field by field.
type plainForm struct {
	dialog *formDialog
	q      *question
	at     int
	asked  bool
}

// ask asks for the next field.
func (f *plainForm) ask(p *plainProgram) {
	fields := f.dialog.fields
	for f.at < len(fields) && fields[f.at].kind == unknownField {
		p.print(clean(fields[f.at].Title) + ": this client does not support this kind of field and leaves it out.")
		f.at++
	}
	if f.at == len(fields) {
		p.ask("Send the form? y, :decline or :cancel-form: ")
		return
	}
	field := fields[f.at]
	if !f.asked {
		f.asked = true
		title := clean(field.Title)
		if field.Required {
			title += " (required)"
		}
		if field.about != "" {
			title += ": " + clean(field.about)
		}
		p.print("", title)
		for i, c := range field.Choices {
			p.print(fmt.Sprintf("  %d. %s", i+1, clean(c.Title)))
		}
	}
	hint := clean(field.text)
	switch field.kind {
	case booleanField:
		hint = "y or n, " + strconv.FormatBool(field.on)
	case selectField:
		hint = "a number, " + hint
	case multiField:
		hint = "numbers, " + clean(strings.Join(field.chosen, " "))
	}
	p.ask(fmt.Sprintf("[%s]: ", strings.TrimSuffix(hint, ", ")))
}

// take handles the user's input for a field. An empty line keeps the current value.
func (f *plainForm) take(p *plainProgram, text string) {
	fields := f.dialog.fields
	if f.at == len(fields) {
		if strings.EqualFold(strings.TrimSpace(text), "y") {
			f.dialog.end(acceptFields(fields))
			p.m.withdraw(f.q)
		}
		return
	}
	if err := fields[f.at].fill(text); err != nil {
		p.print(clean(err.Error()))
		return
	}
	f.at, f.asked = f.at+1, false
}

// fill sets the field to what the user typed.
func (f *field) fill(text string) error {
	word := strings.TrimSpace(text)
	switch f.kind {
	case booleanField:
		switch strings.ToLower(word) {
		case "":
		case "y", "yes", "true":
			f.on = true
		case "n", "no", "false":
			f.on = false
		default:
			return errors.New("expected y or n")
		}
		return nil
	case selectField, multiField:
		if word == "" {
			if f.kind == multiField {
				return f.validChoices(f.chosen)
			}
			return f.valid(f.text)
		}
		var chosen []string
		for _, w := range strings.FieldsFunc(word, func(r rune) bool { return r == ' ' || r == ',' }) {
			n, err := strconv.Atoi(w)
			if err != nil || n < 1 || n > len(f.Choices) {
				return fmt.Errorf("expected numbers from 1 to %d", len(f.Choices))
			}
			if v := f.Choices[n-1].Const; !slices.Contains(chosen, v) {
				chosen = append(chosen, v)
			}
		}
		if f.kind == multiField {
			if err := f.validChoices(chosen); err != nil {
				return err
			}
			f.chosen = chosen
			return nil
		}
		if len(chosen) != 1 {
			return errors.New("expected one number")
		}
		f.text = chosen[0]
		return nil
	}
	if word == "" {
		return f.valid(f.text)
	}
	if err := f.valid(text); err != nil {
		return err
	}
	f.text = text
	return nil
}
