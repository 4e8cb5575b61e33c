package tui

import (
	"errors"
	"net/url"
	"os/exec"
	"runtime"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/internal/plain"
)

// pageDialog asks whether to open a page. It shows the whole address, and opens nothing without being asked to.
type pageDialog struct {
	page   *talk.Elicitation
	answer func(*acp.CreateElicitationResponse)
	facts  int // how many of the first lines of the body show where the page is
}

func (d *pageDialog) choices() []choice {
	return []choice{{"o", "open it in the browser"}, {"y", "I will open it myself"}, {"n", "decline"},
		{"ctrl+q", "cancel"}}
}

func (d *pageDialog) init(*Model) tea.Cmd { return nil }

func (d *pageDialog) title(m *Model) string { return m.agentName() + " asks you to open a page" }

// body returns the address and then, after a bar, what the agent says about it.
func (d *pageDialog) body(m *Model, width int) []string {
	text, host, notes := plain.Address(d.page.URL)
	var lines []string
	for l := range splitLines(ansi.Hardwrap(visibly(text), width, true)) {
		lines = append(lines, m.style.key.Render(l))
	}
	if host != "" {
		lines = append(lines, wrap("It leads to: "+visibly(host), width)...)
	}
	for _, note := range notes {
		for _, l := range wrap(visibly(note), width) {
			lines = append(lines, m.style.error.Render(l))
		}
	}
	d.facts = len(lines)
	lines = append(lines, "")
	for _, l := range wrap(cleanText(d.page.Message), width-2) {
		lines = append(lines, "│ "+l)
	}
	return lines
}

func (d *pageDialog) foot(m *Model, width int) []string {
	return wrap(m.style.key.Render("o")+" open in the browser  "+m.style.key.Render("y")+" I will open it myself  "+
		m.style.key.Render("n")+" decline  "+m.style.key.Render("Ctrl-Q")+" cancel", width)
}

func (d *pageDialog) key(m *Model, q *question, k tea.KeyPressMsg) (bool, tea.Cmd) {
	accepted := acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{})
	key := k.String()
	if (key == "o" || key == "y") && q.seen < d.facts {
		m.tellHere("Scroll to see the whole address first: PgDn.")
		return false, nil
	}
	switch key {
	case "o":
		address, _, _ := plain.Address(d.page.URL) // as it was shown
		if err := m.opts.openURL(address); err != nil {
			m.tellHere("Not opened: " + err.Error())
			return false, nil
		}
		d.answer(&accepted)
	case "y":
		d.answer(&accepted)
	case "n", "ctrl+x":
		d.answer(declined())
	case "ctrl+q":
		d.answer(cancelled())
	case "ctrl+c":
		return false, m.interruptQuestion(q)
	default:
		return false, nil
	}
	return true, nil
}

func (d *pageDialog) paste(*Model, string) (bool, tea.Cmd) { return false, nil }

// openBrowser opens a page in the user's browser.
func openBrowser(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("only http and https addresses can be opened")
	}
	command := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		command = []string{"open"}
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	cmd := exec.Command(command[0], append(command[1:], u.String())...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // the browser outlives the program; its exit status does not matter
	return nil
}
