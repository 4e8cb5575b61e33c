package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
)

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
			return tea.Exec(released{run},
				func(err error) tea.Msg { return doneMsg{what: "Login failed", err: err, then: restart} })
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
type deadDialog struct{ err error }

// askRestart asks whether to restart an agent that has ended.
func (m *Model) askRestart(err error) tea.Cmd {
	m.dismiss(func(dialog) bool { return true }) // the answers are no longer needed
	m.tell("", fmt.Sprintf("The agent has ended: %v", err))
	m.note = ""
	return m.addQuestion(&question{dialog: &deadDialog{err}})
}

func (d *deadDialog) choices() []choice {
	return []choice{{"r", "restart it"}, {"q", "quit"}}
}

func (d *deadDialog) init(*Model) tea.Cmd { return nil }

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

func (d *deadDialog) paste(*Model, string) (bool, tea.Cmd) { return false, nil }

// restartedMsg has the client of a restarted agent.
type restartedMsg struct {
	client *talk.Client
	err    error
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
		return restartedMsg{client, err}
	})
}

// restarted restores the sessions.
func (m *Model) restarted(msg restartedMsg) tea.Cmd {
	if msg.err != nil {
		m.connection = dead
		return tea.Batch(m.askRestart(msg.err), m.renew())
	}
	m.client = msg.client
	m.connection = connected
	m.tell("", "The agent is back.")
	var cmds []tea.Cmd
	for _, c := range m.chats {
		c.reconnecting = true
		cmds = append(cmds, m.tasks.cmd(func(ctx context.Context) tea.Msg {
			s, about, err := openSession(ctx, msg.client, c.id, c.session.Cwd(), true)
			return reopenedMsg{c, s, about, err}
		}))
	}
	if len(cmds) == 0 {
		cmds = append(cmds, m.begin(), m.renew())
	}
	return tea.Batch(cmds...)
}

// reopenedMsg has the restored session of a chat.
type reopenedMsg struct {
	chat    *chat
	session *talk.Session
	about   string
	err     error
}

// reopened handles a restored session.
func (m *Model) reopened(msg reopenedMsg) tea.Cmd {
	c := msg.chat
	goOn := c.resendPending
	c.reconnecting, c.resendPending = false, false
	if msg.err != nil {
		m.tell(c.id, fmt.Sprintf("The session could not be restored: %v", msg.err))
		if m.opts.Watch != "" { // every version of the agent gets a session to try
			if len(m.chats) == 1 { // typed while the agent was restarting
				m.waiting, m.typed = c.editor, c.queue
			}
			return tea.Batch(m.forget(c), m.renew())
		}
		return nil
	}
	c.stop()
	c.session = msg.session
	c.failed = nil
	m.watch(c)
	m.tell(c.id, msg.about)
	if cmd := m.renew(); cmd != nil || !goOn {
		c.resendPending = goOn
		return cmd
	}
	return m.next(c)
}
