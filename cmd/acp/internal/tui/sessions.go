package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/reconnect"
	"github.com/acpgo/sdk/cmd/acp/internal/draw"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/conformance"
)

// chatState describes a chat in the overview.
func (m *Model) chatState(c *chat) string {
	switch {
	case slices.ContainsFunc(m.questions, func(q *question) bool { return q.session == c.id }):
		return "? asks"
	case c.cancel != nil:
		return "● running"
	case c.failed != nil:
		return "! failed"
	case c.unread:
		return "✓ done"
	}
	return "  idle"
}

// showOverview shows the open sessions.
func (m *Model) showOverview() tea.Cmd {
	p := newPicker("Open sessions", nil, func(m *Model, p *picker, it item) tea.Cmd {
		m.layers = nil
		m.show(it.value.(*chat))
		return nil
	})
	p.letters, p.whole, p.keys = true, true, overviewKeys()
	p.refresh = func(m *Model) []item {
		items := []item{}
		for _, c := range m.chats {
			label := fmt.Sprintf("%-9s  %s", m.chatState(c), c.name())
			about := c.session.Cwd()
			for _, q := range m.questions {
				if q.session == c.id {
					about = q.dialog.title(m)
				}
			}
			items = append(items, item{label: label, about: clean(about), current: c == m.chat, value: c, same: c})
		}
		return items
	}
	p.refreshNow(m)
	m.push(p)
	return nil
}

// refreshNow refreshes the items and selects the current one.
func (p *picker) refreshNow(m *Model) {
	p.list.items = p.refresh(m)
	p.list.match()
}

// onItem returns the action that calls f with the value of the selected item of the list on top.
func onItem[T any](f func(m *Model, p *picker, value T) tea.Cmd) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd {
		if p, ok := m.top().(*picker); ok {
			it, _ := p.list.current()
			if value, ok := it.value.(T); ok {
				return f(m, p, value)
			}
		}
		return nil
	}
}

// overviewKeys returns the keys of the list of open sessions.
func overviewKeys() []binding {
	on := func(f func(m *Model, c *chat) tea.Cmd) func(*Model) tea.Cmd {
		return onItem(func(m *Model, _ *picker, c *chat) tea.Cmd { return f(m, c) })
	}
	return []binding{
		{"show", []string{"enter"}, "show the session", nil},
		{"cancel", []string{"c"}, "cancel its turn", on(func(m *Model, c *chat) tea.Cmd { m.cancelTurn(c); return nil })},
		{"new", []string{"n"}, "open a new session", func(m *Model) tea.Cmd { m.layers = nil; return m.newSession() }},
		{"stored", []string{"s"}, "list the agent's stored sessions", (*Model).showStored},
		{"rename", []string{"r"}, "rename the session", on((*Model).renameChat)},
		{"fork", []string{"f"}, "continue in a copy of the session", on((*Model).forkChat)},
		{"export", []string{"e"}, "write the session as Markdown to a file", on((*Model).exportChat)},
		{"close", []string{"x"}, "close the session", on((*Model).closeThis)},
		{"delete", []string{"D"}, "delete the session", on((*Model).deleteThis)},
	}
}

// turnTo shows the next chat.
func (m *Model) turnTo(step int) tea.Cmd {
	if n := len(m.chats); n > 1 {
		at := slices.Index(m.chats, m.chat)
		m.show(m.chats[(at+step+n)%n])
	}
	return m.rearm()
}

// ofChat returns the action that calls f with the visible chat.
func ofChat(f func(m *Model, c *chat) tea.Cmd) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd {
		if m.chat == nil {
			m.tell("", "There is no session.")
			return nil
		}
		return f(m, m.chat)
	}
}

// renameChat asks for another title: for the agent if it supports that, otherwise only here.
func (m *Model) renameChat(c *chat) tea.Cmd {
	m.push(newLine("Title of the session", c.name(), func(m *Model, text string) tea.Cmd {
		text = strings.TrimSpace(text)
		c.title = text
		if text == "" || !m.client.Capabilities().SessionCapabilities.Title.Present() {
			return nil
		}
		client := m.client
		return m.call("The agent did not accept the title",
			func(ctx context.Context) error { return client.Rename(ctx, c.id, text) }, nil)
	}))
	return nil
}

// forkChat continues in a copy.
func (m *Model) forkChat(c *chat) tea.Cmd {
	if !m.client.Capabilities().SessionCapabilities.Fork.Present() {
		m.tellHere("The agent cannot fork sessions.")
		return nil
	}
	m.layers = nil
	client := m.client
	return m.tasks.cmd(func(ctx context.Context) tea.Msg {
		s, err := client.Fork(ctx, c.id, c.session.Cwd())
		return openedMsg(s, "A copy of "+c.name(), err, nil)
	})
}

// closeThis closes a session; the agent keeps what it has stored.
func (m *Model) closeThis(c *chat) tea.Cmd {
	if c.cancel != nil {
		m.tellHere("A turn is in progress: cancel it first.")
		return nil
	}
	return tea.Batch(m.forget(c), m.call("The session was not closed", func(ctx context.Context) error {
		if err := c.session.Close(ctx); !errors.Is(err, acp.ErrUnsupported) {
			return err
		}
		return nil
	}, nil))
}

// deleteThis deletes a session after asking.
func (m *Model) deleteThis(c *chat) tea.Cmd {
	return m.confirmDelete(c.id, c.name(), func() {})
}

// confirmDelete asks whether to delete a session, which is closed if it is open.
func (m *Model) confirmDelete(id acp.SessionID, name string, then func()) tea.Cmd {
	if !m.client.Capabilities().SessionCapabilities.Delete.Present() {
		m.tellHere("The agent cannot delete sessions.")
		return nil
	}
	p := newPicker("Delete "+name+"?", []item{{label: "keep it", value: false}, {label: "delete it", value: true}},
		func(m *Model, p *picker, it item) tea.Cmd {
			m.pop(p)
			if !it.value.(bool) {
				return nil
			}
			m.cancelTurn(m.chatOf(id)) // so that no queued prompt is sent when its turn ends
			client := m.client
			return m.call("The session was not deleted", func(ctx context.Context) error { return client.Delete(ctx, id) },
				func(m *Model) tea.Cmd {
					then()
					if c := m.chatOf(id); c != nil {
						return m.forget(c)
					}
					return nil
				})
		})
	p.letters = true
	m.push(p)
	return nil
}

// exportChat asks for a file name and writes the session to the file.
func (m *Model) exportChat(c *chat) tea.Cmd {
	name := fmt.Sprintf("session-%s.txt", m.now().Format("20060102-150405"))
	m.push(newLine("Write the session to", filepath.Join(m.opts.Talk.Cwd, name), func(m *Model, path string) tea.Cmd {
		snapshot, client := c.snapshot, m.client
		o := &draw.ExportOptions{
			Title:    c.name(),
			Facts:    []string{"Agent: " + m.agentName(), "Directory: " + clean(c.session.Cwd())},
			Terminal: func(id acp.TerminalID) (draw.Output, bool) { return terminalOutput(client, id) },
		}
		return m.call("Not written", func(context.Context) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			return errors.Join(draw.Export(f, snapshot, o), f.Close())
		}, func(m *Model) tea.Cmd {
			m.tellHere("Written to " + path)
			return nil
		})
	}))
	return nil
}

// maxStored is how many stored sessions are shown.
const maxStored = 1000

// showStored lists the agent's stored sessions of this directory.
func (m *Model) showStored() tea.Cmd {
	if m.client == nil {
		return nil
	}
	if !m.client.Capabilities().SessionCapabilities.List.Present() {
		m.tellHere("The agent cannot list its sessions.")
		return nil
	}
	return m.listStored(false)
}

func (m *Model) listStored(everywhere bool) tea.Cmd {
	title, cwd := "Stored sessions of "+clean(m.opts.Talk.Cwd), m.opts.Talk.Cwd
	if everywhere {
		title, cwd = "Stored sessions", ""
	}
	p := newPicker(title, []item{{label: "…"}}, func(m *Model, _ *picker, it item) tea.Cmd {
		s, ok := it.value.(acp.SessionInfo)
		if !ok { // they are not listed yet
			return nil
		}
		return m.openThis(s, true)
	})
	p.whole, p.keys = true, storedKeys()
	m.push(p)
	client := m.client
	return m.tasks.cmd(func(ctx context.Context) tea.Msg {
		all, err := listSessions(ctx, client, cwd)
		return doMsg(func(m *Model) tea.Cmd {
			if err != nil {
				m.tellHere(fmt.Sprintf("The sessions could not be listed: %v", err))
			}
			p.stored(m, all)
			return nil
		})
	})
}

// listSessions lists stored sessions, the newest first.
func listSessions(ctx context.Context, client *talk.Client, cwd string) (all []acp.SessionInfo, err error) {
	for s, err := range client.Sessions(ctx, cwd) {
		if err != nil {
			return all, err
		}
		if all = append(all, s); len(all) == maxStored {
			break
		}
	}
	slices.SortStableFunc(all, func(a,
		b acp.SessionInfo) int {
		return cmp.Compare(b.UpdatedAt.Value(), a.UpdatedAt.Value())
	})
	return all, nil
}

// stored makes stored sessions the items.
func (p *picker) stored(m *Model, all []acp.SessionInfo) {
	var items []item
	for _, s := range all {
		items = append(items, item{
			label:   fmt.Sprintf("%-8s  %s", m.ago(s.UpdatedAt.Value()), m.nameOf(s)),
			about:   clean(s.Cwd),
			current: m.chatOf(s.SessionID) != nil,
			value:   s,
		})
	}
	p.list.items = items
	p.list.match()
	p.list.at = 0
}

// nameOf returns the displayed name of a stored session, which has no title before its first prompt.
func (m *Model) nameOf(s acp.SessionInfo) string {
	if c := m.chatOf(s.SessionID); c != nil {
		return c.name()
	}
	return cmp.Or(clean(s.Title.Value()), "Untitled ("+clean(string(s.SessionID))+")")
}

// ago says how long ago a time was; "" for an invalid time.
func (m *Model) ago(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return ""
	}
	switch d := m.now().Sub(at); {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	default:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
}

// storedKeys returns the keys of the list of stored sessions.
func storedKeys() []binding {
	return []binding{
		{"open", []string{"enter"}, "open it, with its history if the agent can do that", nil},
		{"open without history", []string{"ctrl+o"}, "open it without its history",
			onItem(func(m *Model, _ *picker, s acp.SessionInfo) tea.Cmd { return m.openThis(s, false) })},
		{"delete", []string{"ctrl+x"}, "delete it", onItem(func(m *Model, p *picker, s acp.SessionInfo) tea.Cmd {
			return m.confirmDelete(s.SessionID, m.nameOf(s), func() {
				p.list.items = slices.DeleteFunc(p.list.items, func(o item) bool {
					other, ok := o.value.(acp.SessionInfo)
					return ok && other.SessionID == s.SessionID
				})
				p.list.match()
			})
		})},
		{"all directories", []string{"ctrl+a"}, "list those of all directories", func(m *Model) tea.Cmd {
			if p, ok := m.top().(*picker); ok {
				m.pop(p)
			}
			return m.listStored(true)
		}},
	}
}

// openThis opens a session of the list.
func (m *Model) openThis(s acp.SessionInfo, history bool) tea.Cmd {
	m.layers = nil
	if c := m.chatOf(s.SessionID); c != nil {
		m.show(c)
		return nil
	}
	return m.openStored(s.SessionID, s.Cwd, history)
}

// openStored opens a stored session. That may take long, so it does not open the same one twice.
func (m *Model) openStored(id acp.SessionID, cwd string, history bool) tea.Cmd {
	m.tellHere("Opening the session…")
	if m.opening[id] {
		return nil
	}
	m.opening[id] = true
	client := m.client
	return m.tasks.cmd(func(ctx context.Context) tea.Msg {
		s, about, err := openSession(ctx, client, id, cwd, history)
		again := func(m *Model) tea.Cmd { return m.openStored(id, cwd, history) }
		return doMsg(func(m *Model) tea.Cmd {
			delete(m.opening, id)
			return m.update(openedMsg(s, about, err, again))
		})
	})
}

// openSession opens a session, with its history if that is wanted and the agent can load it.
func openSession(ctx context.Context, client *talk.Client, id acp.SessionID, cwd string, history bool) (*talk.Session,
	string, error) {
	can := client.Capabilities()
	load, resume := can.LoadSession, can.SessionCapabilities.Resume.Present()
	switch {
	case load && (history || !resume):
		s, err := client.Load(ctx, id, cwd)
		return s, "", err
	case resume:
		s, err := client.Resume(ctx, id, cwd)
		return s, "The session continues. The earlier conversation is not shown.", err
	}
	return nil, "", errors.New("the agent cannot open stored sessions")
}

// continueLast shows or opens the last session of this directory, or a new one if there is none.
func (m *Model) continueLast() tea.Cmd {
	if m.client == nil {
		return nil
	}
	cwd, client := m.opts.Talk.Cwd, m.client
	open := map[acp.SessionID]*chat{}
	for _, c := range m.chats {
		open[c.id] = c
	}
	return m.tasks.cmd(func(ctx context.Context) tea.Msg {
		all, err := listSessions(ctx, client, cwd)
		if err == nil && len(all) > 0 {
			if c := open[all[0].SessionID]; c != nil { // a turn may be running in it
				return doMsg(func(m *Model) tea.Cmd {
					if m.chatOf(c.id) != c { // it has been closed
						return nil
					}
					m.show(c)
					return m.rearm()
				})
			}
			s, about, err := openSession(ctx, client, all[0].SessionID, all[0].Cwd, true)
			return openedMsg(s, about, err, (*Model).continueLast)
		}
		if err != nil && !errors.Is(err, acp.ErrUnsupported) {
			return openedMsg(nil, "", err, (*Model).continueLast)
		}
		s, err := m.setUp(ctx)(client.NewSession(ctx, ""))
		return openedMsg(s, "This directory has no session to continue: this is a new one.", err, (*Model).continueLast)
	})
}

// unqueue moves the last queued prompt back to the editor.
func (m *Model) unqueue(c *chat) tea.Cmd {
	last := len(c.queue) - 1
	if last < 0 {
		m.tellHere("No prompts are queued.")
		return nil
	}
	if !c.editor.empty() { // what has been typed must not be lost
		m.history.add(c.editor.take())
	}
	c.editor.set(*c.queue[last])
	c.queue = c.queue[:last]
	m.resize()
	return nil
}

// askLogin asks the user to log in, and then retries what failed.
func (m *Model) askLogin(err error, again func(*Model) tea.Cmd) tea.Cmd {
	m.tell("", fmt.Sprintf("You need to log in: %v", errors.Unwrap(err)))
	return m.showLogins(again)
}

// login asks the user to log in.
func (m *Model) login() tea.Cmd { return m.showLogins(nil) }

// showLogins asks the user to choose a login method.
func (m *Model) showLogins(again func(*Model) tea.Cmd) tea.Cmd {
	if m.client == nil {
		return nil
	}
	var items []item
	for _, method := range m.client.LoginMethods() {
		items = append(items, item{label: clean(method.String()), about: clean(method.Description), value: method})
	}
	if len(items) == 0 {
		m.tellHere("The agent offers no login method.")
		return nil
	}
	p := newPicker(m.agentName()+": login methods", items, func(m *Model, p *picker, it item) tea.Cmd {
		method, client := it.value.(talk.LoginMethod), m.client
		switch method.Kind {
		case talk.AgentLogin:
			m.pop(p)
			m.tellHere("Logging in: " + method.Name + "…")
			return m.call("Login failed",
				func(ctx context.Context) error { return client.Login(ctx, method.ID, launch.Terminal{}) }, m.loggedIn(again))
		case talk.TerminalLogin:
			m.pop(p)
			if m.plain {
				m.tellHere("Log in with \"acp agents login\" in another terminal, and start again: " + method.String())
				return nil
			}
			run := &loginRun{login: func() error {
				return client.LoginInTerminal(m.tasks.ctx, method.ID,
					launch.Terminal{Stdin: m.opts.In, Stdout: m.opts.Out, Stderr: m.opts.Out})
			}}
			m.loggingIn = true
			// While the login has the terminal, the loop handles no messages, and restarting the agent sends some.
			restart := func(m *Model) tea.Cmd { return m.call("Restart failed", client.Restart, m.loggedIn(again)) }
			return tea.Exec(released{run}, func(err error) tea.Msg {
				return doMsg(func(m *Model) tea.Cmd { return m.done("Login failed", err, nil, restart) })
			})
		}
		m.tellHere(method.String())
		return nil
	})
	p.letters, p.sudden = true, again != nil
	m.push(p)
	return nil
}

// loggedIn reports the login, and retries what failed.
func (m *Model) loggedIn(again func(*Model) tea.Cmd) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd {
		m.loggingIn = false
		m.tellHere("Logged in.")
		if again == nil {
			return nil
		}
		return again(m)
	}
}

// loginRun runs a login while the program has released the terminal.
type loginRun struct{ login func() error }

func (r *loginRun) SetStdin(io.Reader)  {} // it opens the terminal itself
func (r *loginRun) SetStdout(io.Writer) {}
func (r *loginRun) SetStderr(io.Writer) {}
func (r *loginRun) Run() error          { return r.login() }

// deadDialog says that the agent has ended, and offers to restart it.
type deadDialog struct {
	noInput
	err error
}

// askRestart asks whether to restart an agent that has ended.
func (m *Model) askRestart(err error) tea.Cmd {
	m.dismiss(func(*question) bool { return true }) // the answers are no longer needed
	m.tell("", fmt.Sprintf("The agent has ended: %v", err))
	m.note = ""
	return m.addQuestion(&question{dialog: &deadDialog{err: err}})
}

func (d *deadDialog) choices() []choice {
	return []choice{{"r", "restart it"}, {"q", "quit"}}
}

func (d *deadDialog) title(m *Model) string { return m.agentName() + " has ended" }

func (d *deadDialog) body(m *Model, width int) []string {
	lines := wrap(cleanText(fmt.Sprint(d.err)), width)
	if exit, ok := errors.AsType[*acp.ExitError](d.err); ok &&
		strings.Contains(d.err.Error(), strings.TrimSpace(exit.Stderr)) {
		return lines
	}
	if n := len(m.stderr); n > 0 {
		lines = append(lines, "", "The end of its standard error:")
		for _, l := range m.stderr[max(0, n-10):] {
			lines = append(lines, wrap("  "+l, width)...)
		}
	}
	return lines
}

func (d *deadDialog) foot(m *Model, width int) []string {
	return wrap(m.style.key.Render("r")+" restart it  "+m.style.key.Render("q")+" quit", width)
}

func (d *deadDialog) key(m *Model, q *question, k tea.KeyPressMsg) (bool, tea.Cmd) {
	switch k.String() {
	case "r":
		return true, m.restart()
	case "q":
		return true, m.leave(nil)
	case "ctrl+c":
		return false, m.interruptQuestion(q)
	}
	return false, nil
}

// restart restarts the agent.
func (m *Model) restart() tea.Cmd {
	if m.connection != dead {
		m.tellHere("The agent is still running.")
		return nil
	}
	m.connection = connecting
	m.tell("", "Restarting the agent…")
	old := m.client
	return m.tasks.cmd(func(ctx context.Context) tea.Msg {
		if old != nil {
			// An error says why the connection ended, which was shown.
			_ = old.Close()
		}
		client, err := m.connect(ctx)
		return doMsg(func(m *Model) tea.Cmd { return m.restarted(client, err) })
	})
}

// restarted restores the sessions.
func (m *Model) restarted(client *talk.Client, err error) tea.Cmd {
	if err != nil {
		m.connection = dead
		return tea.Batch(m.askRestart(err), m.renew())
	}
	m.client = client
	m.connection = connected
	m.tell("", "The agent is back.")
	var cmds []tea.Cmd
	for _, c := range m.chats {
		c.reconnecting = true
		cmds = append(cmds, m.tasks.cmd(func(ctx context.Context) tea.Msg {
			s, about, err := openSession(ctx, client, c.id, c.session.Cwd(), true)
			return doMsg(func(m *Model) tea.Cmd { return m.reopened(c, s, about, err) })
		}))
	}
	if len(cmds) == 0 {
		cmds = append(cmds, m.begin(), m.renew())
	}
	return tea.Batch(cmds...)
}

// reopened handles a restored session.
func (m *Model) reopened(c *chat, session *talk.Session, about string, err error) tea.Cmd {
	goOn := c.resendPending
	c.reconnecting, c.resendPending = false, false
	if err != nil {
		m.tell(c.id, fmt.Sprintf("The session could not be restored: %v", err))
		if m.opts.Watch != "" { // every version of the agent gets a session to try
			if len(m.chats) == 1 { // typed while the agent was restarting
				m.waiting, m.typed = c.editor, c.queue
			}
			return tea.Batch(m.forget(c), m.renew())
		}
		return nil
	}
	c.stop()
	c.session = session
	c.failed = nil
	m.watch(c)
	m.tell(c.id, about)
	if cmd := m.renew(); cmd != nil || !goOn {
		c.resendPending = goOn
		return cmd
	}
	return m.next(c)
}

// hooks pass the events of a client to the loop as messages.
type hooks struct{ send func(tea.Msg) }

// options returns the options of a client that uses these hooks.
func (h hooks) options(opts *Options) *talk.Options {
	base := opts.Talk
	o := base
	o.Ask, o.Form, o.URL = h.permission, h.form, h.page
	o.Event = func(e talk.Event) { h.send(eventMsg(e)) }
	o.Output = func(s acp.SessionID, t acp.TerminalID) { h.send(outputMsg{s, t}) }
	if base.Findings != nil {
		o.Findings = func(f conformance.Finding) {
			if f.Level > opts.Level {
				return
			}
			base.Findings(f)
			h.send(doMsg(func(m *Model) tea.Cmd {
				if len(m.findings) < maxLines {
					m.findings = append(m.findings, f)
				}
				return nil
			}))
		}
	}
	o.TerminalLogin, o.Plans, o.Subagents = true, true, true
	// the user decides whether a program that has ended is started again
	o.NoReconnect = base.NoReconnect || base.Agent.Command != nil
	return &o
}

func (h hooks) permission(ctx context.Context, q *talk.Question) (acp.PermissionOptionID, error) {
	return ask(ctx, h, q.Session,
		func(answer func(acp.PermissionOptionID)) dialog { return newPermission(q, answer) })
}

func (h hooks) form(ctx context.Context, e *talk.Elicitation) (*acp.CreateElicitationResponse, error) {
	if err := tooLarge(e.Form); err != nil {
		h.send(eventMsg{Kind: talk.Warning, Session: e.Session, Err: fmt.Errorf("declined a form of the agent: %w", err)})
		return declined(), nil
	}
	return ask(ctx, h, e.Session,
		func(answer func(*acp.CreateElicitationResponse)) dialog { return newForm(e, answer) })
}

func (h hooks) page(ctx context.Context, e *talk.Elicitation) (*acp.CreateElicitationResponse, error) {
	return ask(ctx, h, e.Session,
		func(answer func(*acp.CreateElicitationResponse)) dialog { return &pageDialog{page: e, answer: answer} })
}

// ask asks a question and waits for its answer. When ctx ends, the question is withdrawn.
func ask[R any](ctx context.Context, h hooks, session acp.SessionID,
	build func(answer func(R)) dialog) (R, error) {
	answers := make(chan R, 1) // at most one answer is sent
	q := &question{session: session, over: ctx.Err}
	q.dialog = build(func(r R) { answers <- r })
	h.send(doMsg(func(m *Model) tea.Cmd { return m.addQuestion(q) }))
	select {
	case r := <-answers:
		return r, nil
	case <-ctx.Done():
		h.send(doMsg(func(m *Model) tea.Cmd {
			m.withdraw(q)
			return nil
		}))
		var none R
		return none, context.Cause(ctx)
	}
}

// happened handles an event of the client.
func (m *Model) happened(e talk.Event) tea.Cmd {
	switch e.Kind {
	case talk.Decided:
		if d := e.Decision; d.By.Effect != policy.Ask {
			m.tell(e.Session, fmt.Sprintf("Decided by a rule: %s (%s)", d, d.By.Why))
		}
	case talk.Warning:
		m.tell(e.Session, fmt.Sprintf("Warning: %v", e.Err))
	case talk.URLCompleted:
		m.tellHere("The page reports that it is done.")
	case reconnect.Lost:
		if m.ends() {
			m.connection = dead
			return m.askRestart(e.Err)
		}
		m.connection = lost
		m.tell("", fmt.Sprintf("The connection was lost: %v", e.Err))
	case reconnect.Waiting:
		if e.Err != nil {
			m.tell("", fmt.Sprintf("Not connected; next attempt in %v: %v", e.Wait, e.Err))
		}
	case talk.Slow:
		m.tell("", fmt.Sprintf("Waiting for the agent to answer %s.", e.Text))
	case reconnect.SessionLost:
		m.tell(e.Session, fmt.Sprintf("The session could not be restored: %v", e.Err))
	case reconnect.Restored:
		for _, d := range e.Differences {
			what := "mode"
			if !d.Mode {
				what = "option " + string(d.Option)
			}
			m.tell(e.Session, fmt.Sprintf("The agent has lost the %s: it was %s and is now %s", what, d.Was, d.Is))
		}
		if e.Session == "" {
			return m.back()
		}
	case reconnect.GaveUp:
		if m.connection != dead && m.connection != connecting { // this was reported before, with a better reason
			m.connection = dead
			return m.askRestart(e.Err)
		}
	}
	return nil
}

// ends reports whether an agent whose connection is lost has ended. A program has, unless it is being restarted after a
// login.
func (m *Model) ends() bool {
	return !m.loggingIn && (m.opts.Talk.NoReconnect || m.opts.Talk.Agent.Command != nil)
}

// connection is the state of the connection to the agent.
type connection int

const (
	connecting connection = iota // the first connection
	connected
	lost // it is being restored
	dead // it is not restored unless the user asks for it
)

// watchTime is the time between two looks at the watched directory.
const watchTime = 500 * time.Millisecond

// watchFiles calls changed after a file in dir was added, removed or written, as soon as two looks find the same: a
// build or a checkout, which writes many files, counts once. It polls because notifications of the system miss network
// file systems, and need one watch for each directory. It returns when ctx ends.
func watchFiles(ctx context.Context, dir string, changed func()) {
	ticker := time.NewTicker(watchTime)
	defer ticker.Stop()
	reported := fingerprint(ctx, dir)
	last := reported
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		now := fingerprint(ctx, dir)
		if now == last && now != reported && ctx.Err() == nil {
			reported = now
			changed()
		}
		last = now
	}
}

var fingerprintSeed = maphash.MakeSeed()

// fingerprint returns a hash of the names, sizes and times of the files in dir.
func fingerprint(ctx context.Context, dir string) uint64 {
	var h maphash.Hash
	h.SetSeed(fingerprintSeed)
	files := 0
	walkSources(ctx, dir, func(path string, d fs.DirEntry) bool {
		if info, err := d.Info(); err == nil { // otherwise it was just removed
			maphash.WriteComparable(&h, path)
			maphash.WriteComparable(&h, info.Size())
			maphash.WriteComparable(&h, info.ModTime().UnixNano())
		}
		files++
		return files < maxFiles
	})
	return h.Sum64()
}

// walkSources calls visit for the files in dir, until it returns false. Hidden files are left out, and in a repository
// those that Git ignores; without Git, directories of packages are. What cannot be read is left out too.
func walkSources(ctx context.Context, dir string, visit func(path string, d fs.DirEntry) bool) {
	git := exec.CommandContext(ctx, "git", "-c", "core.fsmonitor=", "ls-files", "-z", "--cached", "--others",
		"--exclude-standard") // the hook of a repository is not run
	git.Dir = dir
	if list, err := git.Output(); err == nil {
		for name := range strings.SplitSeq(string(list), "\x00") {
			path := filepath.Join(dir, filepath.FromSlash(name))
			info, err := os.Lstat(path)
			if err != nil || info.IsDir() || strings.HasPrefix(name, ".") || strings.Contains(name, "/.") {
				continue // it was removed, or is another repository
			}
			if !visit(path, fs.FileInfoToDirEntry(info)) {
				return
			}
		}
		return
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return fs.SkipAll
		case d == nil, path == dir:
			return nil
		case err != nil, strings.HasPrefix(d.Name(), "."), d.Name() == "node_modules", d.Name() == "__pycache__":
			if d.IsDir() {
				return fs.SkipDir
			}
		case !d.IsDir() && !visit(path, d):
			return fs.SkipAll
		}
		return nil
	})
}

// renew restarts the agent if its files have changed since it was started. It waits until no turn is in progress.
func (m *Model) renew() tea.Cmd {
	if !m.stale || m.connection == connecting || m.connection == lost {
		return nil
	}
	for _, c := range m.chats {
		if c.cancel != nil || c.reconnecting {
			return nil
		}
	}
	m.stale = false
	m.connection = dead
	m.dismiss((*question).isDead)
	return m.restart()
}
