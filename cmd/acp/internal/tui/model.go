package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/draw"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/conformance"
)

// Model is the whole program as bubbletea runs it.
type Model struct {
	opts  *Options
	tasks *tasks
	send  func(tea.Msg)
	mail  *mailbox
	wire  wire
	clients
	now   func() time.Time
	style *styles
	drawn *draw.Theme // how package draw draws
	diffs draw.DiffLayout

	width, height int
	client        *talk.Client
	connection    connection
	chats         []*chat
	opening       map[acp.SessionID]bool // stored sessions
	chat          *chat                  // the one that is shown; nil until there is one
	waiting       *editor                // of what is typed until then
	typed         []*prompt              // what was sent until then
	layers        []layer                // what lies over the chat; the last one takes the keys
	watched       []*subagentLayer
	questions     []*question
	focused       *question // the one that takes the keys
	note          string    // the last line for the user that belongs to no chat
	stderr        []string  // the last lines of the agent
	notes         []string  // all lines for the user, the newest last
	findings      []conformance.Finding
	pending       []tea.Cmd // which the next update returns
	history       sentPrompts
	unkept        unkept
	files         files
	ticking       bool
	planFolded    bool
	calls         int // of the agent that are not answered, but for turns and those that open sessions
	lastKey       time.Time
	lastInterrupt time.Time
	lastAnswer    time.Time // to a question
	lastBell      time.Time
	jobs          jobs
	unfocused     bool   // the terminal says so of its window
	bell          func() // rings it, without a screen
	loggingIn     bool   // in the terminal, after which the agent is started anew
	stale         bool   // the agent's files have changed since it was started
	leaving       bool
	plain         bool              // there is no screen
	told          func(text string) // is told each line for the user; may be nil
	taken         func()            // is called before something takes the terminal, without a screen
	err           error             // why the program ends
}

// layer lies over the chat and takes the keys.
type layer interface {
	// full reports whether the layer takes the whole screen, but for the status line.
	full() bool
	// key takes a key.
	key(m *Model, k tea.KeyPressMsg) tea.Cmd
	// paste takes text that was pasted.
	paste(m *Model, text string) tea.Cmd
	// view draws the layer in at most height lines.
	view(m *Model, width, height int) []string
}

// newModel returns the model of a program that begins.
func newModel(ctx context.Context, opts *Options, send func(tea.Msg)) *Model {
	m := &Model{opts: opts, tasks: newTasks(ctx), send: send, mail: newMailbox(), opening: map[acp.SessionID]bool{}, now: time.Now, style: newStyles(true)}
	m.drawn = m.theme()
	m.waiting = newEditor(m)
	return m
}

// The messages about the client.
type (
	startedMsg struct {
		client *talk.Client
		err    error
	}
	tickMsg  struct{}
	jobMsg   struct{ stop bool } // the program is to stop, or goes on
	armedMsg struct{}
	leaveMsg struct{ err error }
)

// Init starts the agent.
func (m *Model) Init() tea.Cmd {
	if m.tasks.begin() {
		go func() {
			defer m.tasks.running.Done()
			m.mail.deliver(m.tasks.ctx, m.send)
		}()
	}
	if m.opts.Watch != "" && m.tasks.begin() {
		go func() {
			defer m.tasks.running.Done()
			watchFiles(m.tasks.ctx, m.opts.Watch, func() { m.mail.put(sourceMsg{}) })
		}()
	}
	m.tell("", m.starting())
	return tea.Batch(tea.RequestBackgroundColor, m.earlier(), m.tasks.cmd(func(ctx context.Context) tea.Msg {
		client, err := m.connect(ctx)
		return startedMsg{client, err}
	}))
}

// starting says what is started, and where.
func (m *Model) starting() string {
	agent := &m.opts.Talk.Agent
	if agent.Command == nil {
		return fmt.Sprintf("Connecting to %s, for %s…", agent.Name, m.opts.Talk.Cwd)
	}
	command := *agent.Command
	command.Env = nil // it may have secrets
	return fmt.Sprintf("Starting %s (%s) in %s…", agent.Name, command.String(), m.opts.Talk.Cwd)
}

// connect starts the agent.
func (m *Model) connect(ctx context.Context) (*talk.Client, error) {
	opts := hooks{m.mail.put}.options(m.opts)
	opts.Line = func(from conformance.Side, line []byte) { m.wire.add(time.Now(), from, line) }
	client, err := talk.Open(ctx, opts)
	if err == nil {
		m.clients.add(client)
	}
	return client, err
}

// Update takes a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.update(msg)
	m.unwatch()
	if len(m.pending) > 0 {
		cmd = tea.Batch(append(m.pending, cmd)...)
		m.pending = nil
	}
	return m, cmd
}

func (m *Model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.resize()
	case tea.BackgroundColorMsg:
		m.style = newStyles(msg.IsDark())
		m.drawn = m.theme()
		for _, c := range m.chats {
			c.draw.SetTheme(m.drawn)
		}
	case tea.FocusMsg:
		m.unfocused = false
	case tea.BlurMsg:
		m.unfocused = true
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		return m.paste(msg.Content)
	case tea.MouseWheelMsg:
		m.wheel(msg)
	case leaveMsg:
		return m.leave(msg.err)
	case startedMsg:
		return m.started(msg)
	case openedMsg:
		return m.opened(msg)
	case storedOpenedMsg:
		delete(m.opening, msg.id)
		return m.opened(msg.openedMsg)
	case shownMsg:
		if m.chatOf(msg.chat.id) == msg.chat { // it may be closed by now
			m.show(msg.chat)
			return m.rearm()
		}
	case doneMsg:
		return m.handleDone(msg)
	case changedMsg:
		if now := msg.chat.snapshot; msg.snapshot.SameHistory(now) && msg.snapshot.Version < now.Version {
			break // the end of the turn has crossed it
		}
		before := msg.chat.snapshot.Commands
		msg.chat.take(msg.snapshot)
		if msg.chat == m.chat {
			msg.chat.draw.Update(msg.snapshot)
			if !slices.EqualFunc(before, msg.snapshot.Commands, func(a, b acp.AvailableCommand) bool { return a.Name == b.Name }) {
				m.editor().complete(m) // a "/" may stand there already
			}
			m.resize()
		}
	case turnMsg:
		return m.turnEnded(msg)
	case outputMsg:
		m.output(msg)
	case askedMsg:
		return m.addQuestion(msg.question)
	case withdrawnMsg:
		m.withdraw(msg.question)
	case armedMsg: // draws
	case briefMsg:
		m.tellNoMore(msg)
	case tickMsg:
		m.ticking = false
		if m.chat != nil {
			m.chat.draw.Tick()
		}
		return m.tick()
	case mailMsg:
		var cmds []tea.Cmd
		for _, one := range msg {
			cmds = append(cmds, m.update(one))
		}
		return tea.Batch(cmds...)
	case stderrMsg:
		for _, l := range msg {
			m.stderr = append(m.stderr, clean(l))
		}
		m.stderr = m.stderr[max(0, len(m.stderr)-maxLines):]
	case eventMsg:
		return m.happened(talk.Event(msg))
	case foundMsg:
		if len(m.findings) < maxLines {
			m.findings = append(m.findings, conformance.Finding(msg))
		}
	case sourceMsg:
		m.stale = true
		return m.renew()
	case reopenedMsg:
		return m.reopened(msg)
	case restartedMsg:
		return m.restarted(msg)
	case jobMsg:
		if msg.stop {
			return m.suspend()
		}
		return m.retake()
	case subagentMsg:
		msg.layer.changed(msg.snapshot)
	case steeredMsg:
		return m.steered(msg)
	case earlierMsg:
		m.readEarlier(msg)
	case filesMsg:
		m.files = files(msg)
		m.editor().complete(m)
	case storedMsg:
		m.stored(msg)
	case formMsg:
		return msg.form.update(m, msg.msg)
	}
	return nil
}

// maxLines is how many lines of a list are kept.
const maxLines = 1000

// editor is the one that takes keys.
func (m *Model) editor() *editor {
	if m.chat != nil {
		return m.chat.editor
	}
	return m.waiting
}

// started takes the client of the agent that was started.
func (m *Model) started(msg startedMsg) tea.Cmd {
	if msg.err != nil {
		if m.tasks.ctx.Err() != nil {
			return nil
		}
		if m.opts.Watch != "" {
			m.connection = dead
			return tea.Batch(m.askRestart(msg.err), m.renew())
		}
		return m.leave(msg.err) // there is nothing to talk to
	}
	m.client = msg.client
	if m.connection == dead { // it has ended meanwhile, and the user was asked what to do
		return nil
	}
	m.connection = connected
	return tea.Batch(m.begin(), m.renew())
}

// begin opens the session that the user wants at first.
func (m *Model) begin() tea.Cmd {
	s := m.opts.Start
	switch {
	case s.Continue:
		return m.continueLast()
	case s.Session != "":
		return m.openStored(s.Session, m.opts.Talk.Cwd, !s.NoHistory)
	case s.Pick:
		return tea.Batch(m.newSession(), m.showStored())
	}
	return m.newSession()
}

// newSession opens a new session.
func (m *Model) newSession() tea.Cmd {
	if m.client == nil {
		return nil
	}
	m.tell("", "Opening a session…")
	client := m.client
	return m.tasks.cmd(func(ctx context.Context) tea.Msg {
		s, err := m.setUp(ctx)(client.NewSession(ctx, nil))
		return openedMsg{s, "", err, (*Model).newSession}
	})
}

// setUp has a session that was opened set up as the user wants it.
func (m *Model) setUp(ctx context.Context) func(*talk.Session, error) (*talk.Session, error) {
	return func(s *talk.Session, err error) (*talk.Session, error) {
		if err == nil && m.opts.Setup != nil {
			if err := m.opts.Setup(ctx, s); err != nil {
				m.mail.put(eventMsg{Kind: talk.Warning, Err: err}) // the session can be used all the same
			}
		}
		return s, err
	}
}

// opened takes a session that was opened.
func (m *Model) opened(msg openedMsg) tea.Cmd {
	switch {
	case errors.Is(msg.err, acp.ErrAuthRequired):
		return m.askLogin(msg.err, msg.again)
	case msg.err != nil:
		m.tell("", fmt.Sprintf("No session was opened: %v", msg.err))
		return nil
	}
	m.note = ""
	c := m.open(msg.session)
	c.note = msg.about
	return m.next(c)
}

// call runs a call of the agent that answers nothing but an error.
func (m *Model) call(what string, f func(ctx context.Context) error, then func(*Model) tea.Cmd) tea.Cmd {
	var cmd func(*Model) tea.Cmd
	cmd = func(m *Model) tea.Cmd {
		m.calls++
		return m.tasks.cmd(func(ctx context.Context) tea.Msg { return doneMsg{what, f(ctx), cmd, then, true} })
	}
	return cmd(m)
}

// handleDone takes the end of a call.
func (m *Model) handleDone(msg doneMsg) tea.Cmd {
	if msg.call {
		m.calls--
	}
	switch {
	case errors.Is(msg.err, acp.ErrAuthRequired):
		return m.askLogin(msg.err, msg.again)
	case msg.err != nil:
		m.loggingIn = false
		m.tellHere(fmt.Sprintf("%s: %v", msg.what, msg.err))
		return nil
	}
	if c := m.chat; c != nil { // the answer may have changed modes and options
		c.take(c.session.State().Snapshot())
	}
	if msg.then != nil {
		return msg.then(m)
	}
	return nil
}

// tell shows a line to the user; "" is not a session's.
func (m *Model) tell(session acp.SessionID, text string) {
	text = clean(text)
	m.notes = append(m.notes, m.now().Format("15:04:05 ")+text)
	m.notes = m.notes[max(0, len(m.notes)-maxLines):]
	if m.told != nil {
		m.told(text)
	}
	if c := m.chatOf(session); c != nil {
		c.note = text
	} else {
		m.note = text
	}
	m.resize()
}

// tellHere shows a line in the chat that is shown.
func (m *Model) tellHere(text string) { m.tell(m.here(), text) }

// here is the session that is shown, or "".
func (m *Model) here() acp.SessionID {
	if m.chat == nil {
		return ""
	}
	return m.chat.id
}

// briefMsg is the end of the time for which a line is shown.
type briefMsg struct {
	session acp.SessionID
	text    string
}

// tellBriefly shows a line for a time.
func (m *Model) tellBriefly(session acp.SessionID, text string, d time.Duration) {
	m.tell(session, text)
	if !m.plain {
		m.pending = append(m.pending, tea.Tick(d, func(time.Time) tea.Msg { return briefMsg{session, clean(text)} }))
	}
}

// tellNoMore removes a line that was shown briefly, unless another has taken its place.
func (m *Model) tellNoMore(msg briefMsg) {
	note := &m.note
	if c := m.chatOf(msg.session); c != nil {
		note = &c.note
	}
	if *note == msg.text {
		*note = ""
		m.resize()
	}
}

// back takes that the connection is made again.
func (m *Model) back() tea.Cmd {
	m.connection = connected
	m.dismiss(func(d dialog) bool { _, ok := d.(*deadDialog); return ok })
	m.tell("", "The agent is back.")
	if len(m.chats) == 0 {
		return m.begin()
	}
	var cmds []tea.Cmd
	for _, c := range m.chats {
		if c.failed == nil && !c.cancelled {
			cmds = append(cmds, m.next(c))
		}
	}
	return tea.Batch(cmds...)
}

// tick draws once a second while a turn is in progress, for its time.
func (m *Model) tick() tea.Cmd {
	if m.plain || m.ticking || !slices.ContainsFunc(m.chats, func(c *chat) bool { return c.cancel != nil }) {
		return nil
	}
	m.ticking = true
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return tickMsg{} })
}

// twice is the time within which a second interrupt leaves.
const twice = 2 * time.Second

// interrupt is Ctrl-C: it cancels the turn; twice, or without a turn twice, it leaves.
func (m *Model) interrupt() tea.Cmd { return m.interruptChat(m.chat) }

// interruptQuestion is Ctrl-C in a question: it cancels the turn that asks, which need not be of the chat that is shown.
func (m *Model) interruptQuestion(q *question) tea.Cmd {
	if c := m.chatOf(q.session); c != nil {
		return m.interruptChat(c)
	}
	return m.interrupt()
}

func (m *Model) interruptChat(c *chat) tea.Cmd {
	now := m.now()
	again := !m.lastInterrupt.IsZero() && now.Sub(m.lastInterrupt) < twice
	m.lastInterrupt = now
	if again {
		return m.leave(nil)
	}
	if !m.cancelTurn(c) {
		m.tellBriefly(m.here(), "Press Ctrl-C again to leave.", twice)
	}
	return nil
}

// leave ends the program.
func (m *Model) leave(err error) tea.Cmd {
	m.leaving = true
	if m.err == nil {
		m.err = err
	}
	return tea.Quit
}

// push lays a layer over the others.
func (m *Model) push(l layer) { m.layers = append(m.layers, l) }

// pop removes a layer.
func (m *Model) pop(l layer) {
	m.layers = slices.DeleteFunc(m.layers, func(o layer) bool { return o == l })
	if len(m.layers) == 0 && m.chat != nil {
		m.chat.unread = false
	}
}

// top is the layer that takes the keys, or nil.
func (m *Model) top() layer {
	if len(m.layers) == 0 {
		return nil
	}
	return m.layers[len(m.layers)-1]
}
