package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/draw"
	"github.com/acpgo/sdk/cmd/acp/internal/history"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/conformance"
)

// Model is the whole program as a model of Bubble Tea.
type Model struct {
	opts  *Options
	tasks *tasks
	send  func(tea.Msg)
	mail  *mailbox
	clients
	now   func() time.Time
	style *styles
	drawn *draw.Theme // the theme of package draw

	width, height int
	client        *talk.Client
	connection    connection
	chats         []*chat
	opening       map[acp.SessionID]bool // stored sessions
	chat          *chat                  // the visible chat; nil until there is one
	waiting       *editor                // the editor until then
	typed         []*prompt              // prompts sent until then
	layers        []layer                // over the chat; the last one takes the keys
	questions     []*question
	focused       *question // the question that takes the keys
	note          string    // the last message that belongs to no chat
	stderr        []string  // the last lines of the agent's standard error
	notes         []string  // all messages to the user, the newest last
	findings      []conformance.Finding
	pending       []tea.Cmd // returned by the next update
	history       sentPrompts
	files         files
	ticking       bool
	planToggled   bool // the plan is folded while the agent works, and unfolded otherwise
	lastKey       time.Time
	lastInterrupt time.Time
	lastAnswer    time.Time // to a question
	lastBell      time.Time
	unfocused     bool   // the terminal reports that its window does not have the focus
	bell          func() // rings it, if there is no screen
	loggingIn     bool   // in the terminal; afterwards the agent is restarted
	stale         bool   // the agent's files have changed since it was started
	leaving       bool
	plain         bool              // there is no screen
	told          func(text string) // called for each message to the user; may be nil
	err           error             // why the program ends
}

// layer is shown over the chat and takes the keys.
type layer interface {
	// full reports whether the layer takes the whole screen, except for the status line.
	full() bool
	// key handles a key.
	key(m *Model, k tea.KeyPressMsg) tea.Cmd
	// paste handles pasted text.
	paste(m *Model, text string) tea.Cmd
	// view draws the layer in at most height lines.
	view(m *Model, width, height int) []string
}

// newModel returns the model of a new program.
func newModel(ctx context.Context, opts *Options, send func(tea.Msg)) *Model {
	m := &Model{opts: opts, tasks: newTasks(ctx), send: send, mail: newMailbox(), opening: map[acp.SessionID]bool{},
		now: time.Now, style: newStyles(true)}
	m.drawn = m.theme()
	m.waiting = newEditor(m)
	return m
}

// doMsg is what the loop has to do: what a task has found out, or what the time has come for.
type doMsg func(*Model) tea.Cmd

// leaveMsg returns the message that ends the program.
func leaveMsg(err error) tea.Msg { return doMsg(func(m *Model) tea.Cmd { return m.leave(err) }) }

// Init starts the agent.
func (m *Model) Init() tea.Cmd {
	m.tasks.start(func(ctx context.Context) { m.mail.deliver(ctx, m.send) })
	if m.opts.Watch != "" {
		m.tasks.start(func(ctx context.Context) {
			watchFiles(ctx, m.opts.Watch, func() {
				m.mail.put(doMsg(func(m *Model) tea.Cmd {
					m.stale = true
					return m.renew()
				}))
			})
		})
	}
	m.tell("", m.starting())
	return tea.Batch(tea.RequestBackgroundColor, m.earlier(), m.tasks.cmd(func(ctx context.Context) tea.Msg {
		client, err := m.connect(ctx)
		return doMsg(func(m *Model) tea.Cmd { return m.started(client, err) })
	}))
}

// starting says what is being started, and where.
func (m *Model) starting() string {
	agent := &m.opts.Talk.Agent
	if agent.Command == nil {
		return fmt.Sprintf("Connecting to %s, for %s…", agent.Name, m.opts.Talk.Cwd)
	}
	return fmt.Sprintf("Starting %s (%s) in %s…", agent.Name, m.command(), m.opts.Talk.Cwd)
}

// command returns the agent's command without its variables, which may contain secrets; "" for an agent at a URL.
func (m *Model) command() string {
	if m.opts.Talk.Agent.Command == nil {
		return ""
	}
	command := *m.opts.Talk.Agent.Command
	command.Env = nil
	return command.String()
}

// connect starts the agent or connects to it.
func (m *Model) connect(ctx context.Context) (*talk.Client, error) {
	opts := hooks{m.mail.put}.options(m.opts)
	client, err := talk.Open(ctx, opts)
	if err == nil {
		m.clients.add(client)
	}
	return client, err
}

// Update handles a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := m.update(msg)
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
	case doMsg:
		return msg(m)
	case turnMsg:
		return m.turnEnded(msg)
	case outputMsg:
		m.output(msg)
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
	}
	return nil
}

// editor returns the editor that takes the keys.
func (m *Model) editor() *editor {
	if m.chat != nil {
		return m.chat.editor
	}
	return m.waiting
}

// started handles the client of an agent that was started.
func (m *Model) started(client *talk.Client, err error) tea.Cmd {
	if err != nil {
		if m.tasks.ctx.Err() != nil {
			return nil
		}
		if m.opts.Watch != "" {
			m.connection = dead
			return tea.Batch(m.askRestart(err), m.renew())
		}
		return m.leave(err) // there is nothing to talk to
	}
	m.client = client
	if m.connection == dead { // it has ended meanwhile, and the user was asked what to do
		return nil
	}
	m.connection = connected
	return tea.Batch(m.begin(), m.renew())
}

// begin opens the session that the user wants first.
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
		s, err := m.setUp(ctx)(client.NewSession(ctx, ""))
		return openedMsg(s, "", err, (*Model).newSession)
	})
}

// setUp returns a function that sets up an opened session.
func (m *Model) setUp(ctx context.Context) func(*talk.Session, error) (*talk.Session, error) {
	return func(s *talk.Session, err error) (*talk.Session, error) {
		if err == nil && m.opts.Setup != nil {
			if err := m.opts.Setup(ctx, s); err != nil {
				m.mail.put(eventMsg{Kind: talk.Warning, Err: err}) // the session can still be used
			}
		}
		return s, err
	}
}

// openedMsg returns the message about a session that was opened, or why it was not. about says what was done, and again
// opens it after a login.
func openedMsg(session *talk.Session, about string, err error, again func(*Model) tea.Cmd) tea.Msg {
	return doMsg(func(m *Model) tea.Cmd {
		switch {
		case errors.Is(err, acp.ErrAuthRequired):
			return m.askLogin(err, again)
		case err != nil:
			m.tell("", fmt.Sprintf("No session was opened: %v", err))
			return nil
		}
		m.note = ""
		c := m.open(session)
		c.note = about
		return m.next(c)
	})
}

// call runs a call of the agent whose only result is an error.
func (m *Model) call(what string, f func(ctx context.Context) error, then func(*Model) tea.Cmd) tea.Cmd {
	return m.tasks.cmd(func(ctx context.Context) tea.Msg {
		err := f(ctx)
		again := func(m *Model) tea.Cmd { return m.call(what, f, then) }
		return doMsg(func(m *Model) tea.Cmd { return m.done(what, err, again, then) })
	})
}

// done handles the end of a call: then is what follows it, and again is retried after a login.
func (m *Model) done(what string, err error, again, then func(*Model) tea.Cmd) tea.Cmd {
	switch {
	case errors.Is(err, acp.ErrAuthRequired):
		return m.askLogin(err, again)
	case err != nil:
		m.loggingIn = false
		m.tellHere(fmt.Sprintf("%s: %v", what, err))
		return nil
	}
	if c := m.chat; c != nil { // the call may have changed modes and options
		c.take(c.session.State().Snapshot())
	}
	if then != nil {
		return then(m)
	}
	return nil
}

// tell shows a message about a session to the user; session is "" if it is about none.
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

// tellHere shows a message in the visible chat.
func (m *Model) tellHere(text string) { m.tell(m.here(), text) }

// here returns the id of the visible session, or "".
func (m *Model) here() acp.SessionID {
	if m.chat == nil {
		return ""
	}
	return m.chat.id
}

// tellBriefly shows a message for a limited time, unless another replaces it.
func (m *Model) tellBriefly(session acp.SessionID, text string, d time.Duration) {
	m.tell(session, text)
	if m.plain {
		return
	}
	text = clean(text)
	over := func(m *Model) tea.Cmd {
		note := &m.note
		if c := m.chatOf(session); c != nil {
			note = &c.note
		}
		if *note == text {
			*note = ""
			m.resize()
		}
		return nil
	}
	m.pending = append(m.pending, tea.Tick(d, func(time.Time) tea.Msg { return doMsg(over) }))
}

// back handles the restored connection.
func (m *Model) back() tea.Cmd {
	m.connection = connected
	m.dismiss((*question).isDead)
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

// tick redraws once a second while a turn is in progress, to update its time.
func (m *Model) tick() tea.Cmd {
	if m.plain || m.ticking || !slices.ContainsFunc(m.chats, func(c *chat) bool { return c.cancel != nil }) {
		return nil
	}
	m.ticking = true
	return tea.Tick(time.Second, func(time.Time) tea.Msg {
		return doMsg(func(m *Model) tea.Cmd {
			m.ticking = false
			if m.chat != nil {
				m.chat.draw.Tick()
			}
			return m.tick()
		})
	})
}

// twice is the time within which a second interrupt quits.
const twice = 2 * time.Second

// interrupt handles Ctrl-C: it cancels the turn; pressed twice, or twice without a turn, it quits.
func (m *Model) interrupt() tea.Cmd { return m.interruptChat(m.chat) }

// interruptQuestion handles Ctrl-C in a question: it cancels the turn of the question, which need not be that of the
// visible chat.
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
		m.tellBriefly(m.here(), "Press Ctrl-C again to quit.", twice)
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

// push puts a layer over the others.
func (m *Model) push(l layer) { m.layers = append(m.layers, l) }

// pop removes a layer.
func (m *Model) pop(l layer) {
	m.layers = slices.DeleteFunc(m.layers, func(o layer) bool { return o == l })
	if len(m.layers) == 0 && m.chat != nil {
		m.chat.unread = false
	}
}

// top returns the layer that takes the keys, or nil.
func (m *Model) top() layer {
	if len(m.layers) == 0 {
		return nil
	}
	return m.layers[len(m.layers)-1]
}

// Options configure the program.
type Options struct {
	// Talk configures the client. The program sets all its functions except Findings itself.
	Talk talk.Options
	// Level is the lowest level of findings that counts.
	Level conformance.Level
	// Start is the session that is opened first.
	Start Start
	// Setup is called for each new session before it is shown, to choose a mode, a model, and options.
	Setup func(ctx context.Context, s *talk.Session) error
	// NoMouse leaves the mouse to the terminal.
	NoMouse bool
	// Notify says when to ring the bell; "" means never.
	Notify Notify
	// Prompts stores prompts: those of earlier runs in the directory, and those of this one. Nil stores none.
	Prompts *history.File
	// Long is the shortest duration of a tool call or a turn that is shown; 0 means 2 s.
	Long time.Duration
	// Resume returns the command line that opens a stored session; if it is nil, none is shown.
	Resume func(acp.SessionID) string
	// Watch is a directory: when files in it change, the agent is restarted after its turn. "" watches nothing.
	Watch string
	// In and Out are the terminal.
	In, Out *os.File
	// OpenURL opens a page in the user's browser. Default: the system's way to do it.
	OpenURL func(address string) error
}

// Start is the session that is opened first: a new one, unless a field says otherwise.
type Start struct {
	// Continue opens the last session of the directory.
	Continue bool
	// Session opens a stored session; NoHistory opens it without its history.
	Session   acp.SessionID
	NoHistory bool
	// Pick shows the list of stored sessions.
	Pick bool
}

func (o *Options) openURL(address string) error {
	if o.OpenURL != nil {
		return o.OpenURL(address)
	}
	return openBrowser(address)
}

// endTime is how long the program may take to end before it is forced to.
const endTime = 3 * time.Second

// clients are all clients that were opened, so that none is left behind when the program ends while one is starting.
type clients struct {
	mu  sync.Mutex
	all []*talk.Client
}

func (c *clients) add(client *talk.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, client)
}

// last returns the one that was opened last, or nil.
func (c *clients) last() *talk.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) == 0 {
		return nil
	}
	return c.all[len(c.all)-1]
}

// close closes them. An agent that does not end in time is killed.
func (c *clients) close() (err error) {
	c.mu.Lock()
	all := c.all
	c.mu.Unlock()
	for _, client := range all {
		closed := make(chan error, 1)
		go func() { closed <- client.Close() }()
		select {
		case err = <-closed:
		case <-time.After(endTime):
			err = client.Kill()
			<-closed
		}
	}
	return err // of the last one; the others' errors were shown
}

// chat is an open session.
type chat struct {
	session  *talk.Session
	id       acp.SessionID
	snapshot *view.Snapshot
	draw     *draw.Transcript
	times    *times
	editor   *editor
	queue    []*prompt // prompts that wait for the end of the turn
	title    string    // given by the user

	cancel        context.CancelFunc // of the turn in progress; nil if there is none
	cancelled     bool               // whether the turn in progress was cancelled
	began         time.Time          // when the turn began
	unread        bool               // a turn has ended since the chat was shown
	failed        error              // why the last turn failed
	lastSearch    string             // the text that the user searched for last
	note          string             // the last line for the user
	stop          context.CancelFunc // stops watching
	reconnecting  bool               // the agent was restarted and is restoring the session
	resendPending bool               // a prompt was sent meanwhile
}

// prompt is a prompt as typed and as sent.
type prompt struct {
	text   string
	pasted []string
}

// turnMsg is the end of a turn.
type turnMsg struct {
	chat *chat
	err  error
	// again is a prompt that was not sent because the user has to log in.
	again prompt
}

// watch sends snapshots of a chat to the loop.
func (m *Model) watch(c *chat) {
	var ctx context.Context
	ctx, c.stop = context.WithCancel(m.tasks.ctx)
	m.tasks.start(func(context.Context) {
		follow(ctx, c.session.State(), func(s *view.Snapshot) {
			m.send(doMsg(func(m *Model) tea.Cmd {
				m.changed(c, s)
				return nil
			}))
		})
	})
}

// changed handles a snapshot of a chat.
func (m *Model) changed(c *chat, s *view.Snapshot) {
	if s.SameHistory(c.snapshot) && s.Version < c.snapshot.Version {
		return // the turn ended meanwhile
	}
	before := c.snapshot.Commands
	c.take(s)
	if c != m.chat {
		return
	}
	c.draw.Update(s)
	if !slices.EqualFunc(before, s.Commands, func(a, b acp.AvailableCommand) bool { return a.Name == b.Name }) {
		m.editor().complete(m) // a "/" may have been typed
	}
	m.resize()
}

// follow passes on snapshots of a conversation: the first change at once, later ones at most once per frame.
func follow(ctx context.Context, state *view.State, send func(*view.Snapshot)) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for snapshot := range state.Watch(ctx) {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		send(snapshot)
		pause.Reset(frame)
	}
}

// open creates the chat of an opened session and shows it.
func (m *Model) open(s *talk.Session) *chat {
	if c := m.chatOf(s.ID()); c != nil { // loaded again
		c.stop()
		c.session = s
		m.watch(c)
		m.show(c)
		return c
	}
	c := &chat{session: s, id: s.ID(), snapshot: s.State().Snapshot(), times: newTimes(m.now, m.opts.Long),
		editor: newEditor(m)}
	c.draw = draw.NewTranscript(&draw.Options{Theme: m.drawn, Width: max(1, m.width), Terminal: m.terminalOutput,
		Elapsed: c.times.elapsed, Took: c.times.took})
	if m.chat == nil { // typed while the agent was starting
		c.editor, c.queue = m.waiting, m.typed
		m.waiting, m.typed = newEditor(m), nil
	}
	c.draw.Update(c.snapshot)
	m.chats = append(m.chats, c)
	m.watch(c)
	m.show(c)
	return c
}

// show shows a chat.
func (m *Model) show(c *chat) {
	m.chat = c
	c.unread = false
	c.draw.Update(c.snapshot)
	m.focused = nil
	for _, q := range m.questions { // they have just come into view: keys typed before are not meant for them
		q.drawn = time.Time{}
	}
	m.pending = append(m.pending, m.rearm())
	m.resize()
}

// chatOf returns the chat of a session, or nil.
func (m *Model) chatOf(id acp.SessionID) *chat {
	if i := slices.IndexFunc(m.chats, func(c *chat) bool { return c.id == id }); i >= 0 {
		return m.chats[i]
	}
	return nil
}

// forget removes a closed chat and shows another.
func (m *Model) forget(c *chat) tea.Cmd {
	c.stop()
	if c.cancel != nil {
		c.cancel()
		c.cancel = nil // nothing is sent anymore
	}
	m.chats = slices.DeleteFunc(m.chats, func(o *chat) bool { return o == c })
	if m.chat != c {
		return nil
	}
	m.chat = nil
	if len(m.chats) > 0 {
		m.show(m.chats[len(m.chats)-1])
		return nil
	}
	return m.newSession()
}

// name returns the displayed name of a chat.
func (c *chat) name() string {
	if c.title != "" {
		return clean(c.title)
	}
	if title := c.snapshot.Title.Value(); title != "" {
		return clean(title)
	}
	return cmp.Or(c.firstSaid(), "New session")
}

// firstSaid returns the first line of the user's first prompt, or "".
func (c *chat) firstSaid() string {
	for item := range c.snapshot.Items() {
		if message, ok := item.Variant.(*view.Message); ok && message.Role == view.User {
			first, _, _ := strings.Cut(strings.TrimSpace(message.Text()), "\n")
			return clean(first)
		}
	}
	return ""
}

// say sends a prompt, or queues it until the end of the turn.
func (m *Model) say(c *chat, p prompt) tea.Cmd {
	if c.cancel != nil || c.reconnecting || m.connection != connected {
		c.resendPending = c.reconnecting || m.connection == connecting
		c.queue = append(c.queue, &p)
		m.resize()
		return nil
	}
	blocks, err := p.blocks(c.session.Cwd(), m.client.Initialized().AgentCapabilities.PromptCapabilities)
	if err != nil {
		m.tell(c.id, fmt.Sprintf("Not sent: %v", err))
		c.editor.set(p)
		return nil
	}
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(m.tasks.ctx)
	c.cancelled, c.failed, c.unread, c.note, c.began = false, nil, false, "", m.now()
	c.draw.Bottom()
	return tea.Batch(m.tasks.cmd(func(context.Context) tea.Msg {
		_, err := c.session.Prompt(ctx, blocks...)
		return turnMsg{c, err, p}
	}), m.tick())
}

// turnEnded handles the end of a turn and begins the next one.
func (m *Model) turnEnded(msg turnMsg) tea.Cmd {
	c := msg.chat
	if c.cancel == nil {
		return nil // the chat has been closed
	}
	m.dismiss((*question).isOver)        // the messages that withdraw its questions may still be on their way
	c.take(c.session.State().Snapshot()) // the end of the turn is drawn with all of its content
	c.times.ended(c.snapshot, m.now().Sub(c.began))
	c.cancel()
	c.cancel = nil
	c.draw.Update(c.snapshot)
	c.draw.Tick()
	c.unread = c != m.chat || len(m.layers) > 0
	m.resize()
	if c.note == cancelling {
		c.note = ""
	}
	switch { // the end of the turn is drawn with the conversation
	case errors.Is(msg.err, acp.ErrAuthRequired):
		return m.askLogin(msg.err, func(m *Model) tea.Cmd { return m.say(c, msg.again) })
	case c.cancelled:
	case msg.err != nil:
		c.failed = msg.err
		m.notify()
	default:
		if len(c.queue) == 0 {
			m.notify()
		}
		if cmd := m.renew(); cmd != nil {
			c.resendPending = len(c.queue) > 0
			return cmd
		}
		return m.next(c)
	}
	if len(c.queue) > 0 { // after a failure or cancellation, queued prompts are not sent automatically
		m.tell(c.id, "Press Enter to send the queued prompts.")
	}
	return m.renew()
}

// next sends the next queued prompt.
func (m *Model) next(c *chat) tea.Cmd {
	if len(c.queue) == 0 || c.cancel != nil || c.reconnecting || m.connection != connected {
		return nil
	}
	p := c.queue[0]
	c.queue = c.queue[1:]
	m.resize()
	return m.say(c, *p)
}

// cancelling is shown until the agent has responded.
const cancelling = "Cancelling…"

// cancelTurn cancels the turn of a chat, and reports whether there was one that had not been cancelled yet.
func (m *Model) cancelTurn(c *chat) bool {
	if c == nil || c.cancel == nil || c.cancelled {
		return false
	}
	c.cancelled = true
	c.cancel()
	c.note = cancelling
	return true
}

// take handles a newer snapshot of a chat.
func (c *chat) take(s *view.Snapshot) {
	if c.cancel != nil {
		c.times.take(c.snapshot, s)
	}
	c.snapshot = s
}

// steer sends what is typed into the running turn.
func (m *Model) steer() tea.Cmd {
	c := m.chat
	if c == nil || c.cancel == nil || c.cancelled || strings.TrimSpace(c.editor.area.Value()) == "" {
		return m.submit()
	}
	p := c.editor.take()
	m.resize()
	return tea.Batch(m.keep(p), m.sayInto(c, p))
}

// sayInto sends a prompt into the turn of a chat. If that is not possible, the prompt becomes the first in the queue.
func (m *Model) sayInto(c *chat, p prompt) tea.Cmd {
	wait := func(why string) tea.Cmd {
		c.queue = slices.Insert(c.queue, 0, &p)
		m.tell(c.id, why)
		return nil
	}
	if m.connection != connected || !m.client.CanSteer() {
		return wait("The agent does not accept prompts in a running turn: queued until the end of the turn.")
	}
	blocks, err := p.blocks(c.session.Cwd(), m.client.Initialized().AgentCapabilities.PromptCapabilities)
	if err != nil {
		return wait(fmt.Sprintf("Not sent: %v", err))
	}
	return m.tasks.cmd(func(ctx context.Context) tea.Msg {
		outcome, err := c.session.Steer(ctx, blocks...)
		return doMsg(func(m *Model) tea.Cmd { return m.steered(c, p, outcome, err) })
	})
}

// steered handles the agent's response.
func (m *Model) steered(c *chat, p prompt, outcome talk.Steered, err error) tea.Cmd {
	if m.chatOf(c.id) != c {
		return nil
	}
	switch {
	case err == nil && outcome == talk.SteeredIn:
		m.tell(c.id, "Sent into the turn: "+p.text)
		return nil
	case err == nil && outcome == talk.SteeredAnew:
		m.tell(c.id, "The turn was over, and a new one has begun: "+p.text)
		return nil
	}
	c.queue = slices.Insert(c.queue, 0, &p)
	switch {
	case err != nil:
		m.tell(c.id, fmt.Sprintf("Not sent into the turn; queued until its end: %v", err))
	case outcome != talk.SteeredLate:
		m.tell(c.id, "Not sent into the turn; queued until its end. The agent says: "+string(outcome))
	}
	m.resize()
	if c.failed != nil || c.cancelled { // then queued prompts are not sent automatically
		return nil
	}
	return m.next(c)
}
