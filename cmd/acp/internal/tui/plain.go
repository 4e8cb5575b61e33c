package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"
	"github.com/muesli/cancelreader"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/draw"
)

// plainWidth is the maximum width of the lines that this mode composes itself. Text of the agent is not wrapped.
const plainWidth = 100

// plainProgram is the program in plain mode: what the model shows and asks, a view.Console prints and asks.
type plainProgram struct {
	m       *Model
	console *view.Console
	msgs    chan tea.Msg
	ended   chan struct{}
	running sync.WaitGroup

	commands int  // in progress
	reading  bool // a line is being read
	prompted bool // nothing was printed after the prompt
	shown    *view.Snapshot
	asked    any // what the console asks: a layer or a question of the model; nil if it asks nothing
	unask    context.CancelFunc
}

// stepMsg is what the loop of the plain mode has to do.
type stepMsg func()

// RunPlain is Run for terminals that are used line by line.
func RunPlain(ctx context.Context, opts *Options) error {
	in, err := cancelreader.NewReader(opts.In)
	if err != nil {
		return err
	}
	defer in.Close()
	console := view.NewConsole(in, opts.Out)
	console.ReadAhead = true
	p := &plainProgram{console: console, msgs: make(chan tea.Msg), ended: make(chan struct{})}
	o := *opts
	o.Talk.States = console.Sessions
	m := newModel(ctx, &o, p.send)
	p.m, m.plain, m.drawn = m, true, draw.Plain()
	m.width, m.height = plainWidth, 1000
	m.told = func(text string) { p.print("-- " + text) }
	m.bell = func() { fmt.Fprint(opts.Out, "\a") }
	console.DrawToolCall = func(c *view.ToolCall) string {
		return strings.Join(draw.ToolCall(m.drawn, c, draw.Ended(c), m.terminalOutput, plainWidth), "\n")
	}
	console.DrawQuestion = func(q *view.Question) ([]string, int, []string) {
		text := draw.Permission(q, m.drawn, m.terminalOutput, plainWidth)
		return text.Head, text.Facts, text.Body
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, endSignals...)
	defer signal.Stop(signals)
	p.print(`Type a prompt and press Enter. ":help" lists all commands, Ctrl-C cancels the turn, ":quit" quits.`)
	p.do(m.Init())
	for !m.leaving {
		p.show()
		select {
		case msg := <-p.msgs:
			p.update(msg)
		case s := <-signals:
			if s == os.Interrupt {
				p.do(m.interrupt())
			} else {
				p.do(m.leave(&SignalError{s}))
			}
		}
	}
	close(p.ended)
	in.Cancel() // a read that cannot be cancelled ends with the program
	err = m.end()
	p.running.Wait()
	p.print("")
	m.sayResume()
	return errors.Join(err, m.result(nil))
}

// send sends a message to the loop.
func (p *plainProgram) send(msg tea.Msg) {
	select {
	case p.msgs <- msg:
	case <-p.ended:
	}
}

// do runs a command in a goroutine.
func (p *plainProgram) do(cmd tea.Cmd) {
	if cmd != nil {
		p.commands++
		p.running.Go(func() {
			result := cmd()
			p.send(stepMsg(func() { p.ran(result) }))
		})
	}
}

// ran handles the result of a command.
func (p *plainProgram) ran(result tea.Msg) {
	p.commands--
	cmds := commandsIn(result)
	for _, cmd := range cmds {
		p.do(cmd)
	}
	if cmds == nil {
		p.update(result)
	}
}

// update handles a message.
func (p *plainProgram) update(msg tea.Msg) {
	switch msg := msg.(type) {
	case nil:
	case stepMsg:
		msg()
	default:
		_, cmd := p.m.Update(msg)
		p.do(cmd)
		if turn, ok := msg.(turnMsg); ok && turn.chat == p.m.chat {
			p.turnEnded(turn.chat)
		}
	}
}

// turnEnded prints how a turn has ended.
func (p *plainProgram) turnEnded(c *chat) {
	p.console.Show(c.id)
	var last *view.TurnState
	for turn := range c.snapshot.Turns() {
		last = turn
	}
	if last == nil || !last.Ended {
		return
	}
	if lines := draw.TurnEnd(p.m.drawn, last, c.times.took(last.Number), plainWidth); len(lines) > 0 {
		p.print(lines...)
	}
}

// print prints lines.
func (p *plainProgram) print(lines ...string) {
	p.prompted = false
	p.console.Printf("%s", strings.Join(lines, "\n"))
}

// show prints what is new, asks what is to be asked, and begins to read a line.
func (p *plainProgram) show() {
	m := p.m
	if c := m.chat; c != nil {
		if now := c.session.State().Snapshot(); now != p.shown {
			p.shown, p.prompted = now, false
		}
		p.console.Show(c.id)
	}
	var asked any
	switch top := m.top().(type) {
	case nil:
		if q := m.question(); q != nil {
			asked = q
		}
	case *picker:
		if p.ready(top) {
			asked = top
		}
	case *line:
		asked = top
	default: // needs no answer
		if top, ok := top.(*pages); ok {
			p.print(append([]string{top.title}, top.text(m, plainWidth)...)...)
		}
		m.pop(top)
		p.show()
		return
	}
	if asked != p.asked {
		if p.asked != nil {
			p.unask()
		}
		if p.asked = asked; asked != nil {
			p.ask(asked)
		}
	}
	if !p.prompted && asked == nil && m.top() == nil && p.commands == 0 && m.connection == connected {
		if m.chat != nil {
			p.print("> ")
		} else {
			p.print("There is no session (:new opens one): ")
		}
		p.prompted = true
	}
	if !p.reading {
		p.reading = true
		p.running.Go(func() {
			text, err := p.console.Line(m.tasks.ctx)
			p.send(stepMsg(func() {
				p.reading, p.prompted = false, false
				p.typed(text, err)
			}))
		})
	}
}

// ready reports whether a list can be asked, which may have to be awaited.
func (p *plainProgram) ready(l *picker) bool {
	if l.refresh != nil {
		if items := l.refresh(p.m); items != nil {
			l.set(items)
		}
	} else if len(l.list.items) == 0 {
		p.m.tellHere("There are none.")
		p.m.pop(l)
	}
	return len(l.list.items) > 0 && l.list.items[0].value != nil
}

// ask has the console ask a layer or a question.
func (p *plainProgram) ask(asked any) {
	m := p.m
	var ctx context.Context
	ctx, p.unask = context.WithCancel(m.tasks.ctx)
	wait := func(ask func() (then func() tea.Cmd)) {
		p.running.Go(func() {
			then := ask()
			p.send(stepMsg(func() {
				if asked == p.asked {
					p.asked, p.prompted = nil, false
					p.do(then())
				}
			}))
		})
	}
	text := func(then func(text string) tea.Cmd, question ...string) {
		wait(func() func() tea.Cmd {
			line, err := p.console.Ask(ctx, strings.Join(question, "\n"))
			return func() tea.Cmd {
				if err != nil {
					return m.leave(nil)
				}
				return then(strings.TrimSpace(line))
			}
		})
	}
	switch v := asked.(type) {
	case *picker:
		text(func(text string) tea.Cmd { return p.pick(v, text) }, append(v.lines(), "Which one? ")...)
	case *line:
		text(func(text string) tea.Cmd { return p.enter(v, text) }, v.title+" ["+v.input.Value()+"]: ")
	case *question:
		switch d := v.dialog.(type) {
		case *permissionDialog:
			d.q.Title = d.title(m)
			wait(func() func() tea.Cmd {
				option, err := p.console.AskPermission(ctx, v.session, d.q)
				return func() tea.Cmd {
					if err != nil {
						d.answer("")
					} else {
						d.chosen(m, v, option)
					}
					m.withdraw(v)
					return nil
				}
			})
		case *formDialog:
			req := &acp.CreateElicitationRequest{Message: d.title(m) + "\n" + d.asked.Message,
				Variant: &acp.CreateElicitationRequestForm{RequestedSchema: *d.asked.Form}}
			wait(func() func() tea.Cmd {
				res, err := p.console.CreateElicitation(ctx, nil, req)
				return func() tea.Cmd {
					if err == nil {
						d.end(res)
					}
					m.withdraw(v)
					return nil
				}
			})
		default:
			choices, body := d.choices(), d.body(m, plainWidth)
			v.seen = len(body)
			lines := append([]string{d.title(m)}, body...)
			for i, c := range choices {
				lines = append(lines, fmt.Sprintf("%d: %s", i+1, c.label))
			}
			text(func(text string) (cmd tea.Cmd) {
				if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(choices) {
					var answered bool
					if answered, cmd = d.key(m, v, keyPress(choices[n-1].value)); answered {
						m.withdraw(v)
					}
				}
				return cmd
			}, append(lines, "Which one? ")...)
		}
	}
}

// maxPicked is how many items of a list are printed.
const maxPicked = 100

// lines returns a list for the plain mode.
func (p *picker) lines() []string {
	lines := []string{p.title + " (an empty line goes back)"}
	for i, n := range p.list.found {
		if i == maxPicked {
			return append(lines, "… type part of a name to see fewer")
		}
		it := p.list.items[n]
		if it.current {
			it.label += " (now)"
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%d: %s  %s", i+1, it.label, it.about)))
	}
	return lines
}

// pick handles the answer to a list: a number, nothing to go back, or a filter.
func (p *plainProgram) pick(l *picker, text string) tea.Cmd {
	n, err := strconv.Atoi(text)
	switch {
	case err == nil && n >= 1 && n <= len(l.list.found):
		l.list.at = n - 1
		it, _ := l.list.current()
		return l.choose(p.m, l, it)
	case text == "":
		p.m.pop(l)
	case !l.letters:
		l.input.SetValue(text)
		l.filtered()
	}
	return nil
}

// enter handles the answer to a question for a line.
func (p *plainProgram) enter(l *line, text string) tea.Cmd {
	p.m.pop(l)
	if text == "" {
		return nil
	}
	return l.done(p.m, text)
}

// typed handles a line that answers no question: a command, or a prompt.
func (p *plainProgram) typed(said string, err error) {
	m := p.m
	text := strings.TrimSpace(said)
	name, command := strings.CutPrefix(text, ":")
	switch top := m.top().(type) {
	case *picker: // the user has chosen it, and did not wait to see it
		if err == nil && !command && !top.sudden {
			p.answered(p.pick(top, text))
			return
		}
	case *line:
		if err == nil && !command {
			p.answered(p.enter(top, text))
			return
		}
	}
	switch {
	case err != nil:
		p.do(m.leave(nil)) // the end of the input
	case command && !strings.HasPrefix(name, ":"):
		p.command(name)
	case text == "":
		p.do(m.submit())
	default:
		if command {
			said = name // a prompt that begins with a colon
		}
		m.editor().set(prompt{text: said})
		cmd := m.submit()
		if m.chat == nil || slices.ContainsFunc(m.chat.queue, func(q *prompt) bool { return q.text == said }) {
			p.print("-- Queued: " + clean(said))
		}
		p.do(cmd)
	}
}

// answered takes an answer to what the console asks or was about to ask.
func (p *plainProgram) answered(cmd tea.Cmd) {
	if p.asked != nil {
		p.unask()
	}
	p.asked = nil
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
	if name == "help" {
		var lines []string
		for _, a := range actions() {
			if a.name != "" && a.run != nil {
				lines = append(lines, hanging(":"+a.name, a.about, 16, plainWidth)...)
			}
		}
		p.print(append(lines, "Type a number to answer a question or to choose from a list, an empty line to leave a list, "+
			"and :decline to decline a form. To begin a prompt with a colon, type two.")...)
		return
	}
	if run := named(name); run != nil {
		p.do(run(p.m))
	} else {
		p.print(fmt.Sprintf("There is no :%s. See :help.", clean(name)))
	}
}
