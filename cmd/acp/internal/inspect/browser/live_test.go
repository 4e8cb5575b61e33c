package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/cmd/acp/internal/inspect"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
)

// agent returns the reference agent, for pages to talk to.
func agent(t *testing.T, args ...string) *inspect.Agent {
	t.Helper()
	need(t)
	words := append([]string{buildtest.Program(t, "github.com/acpgo/sdk/internal/test/actor/actor")}, args...)
	return &inspect.Agent{
		Words: append([]string{"reference-agent"}, args...),
		Connect: func(_ context.Context, stderr io.Writer) (rpc.Transport, error) {
			cmd := exec.Command(words[0], words[1:]...)
			cmd.Stderr = stderr
			return rpc.Command(cmd), nil
		},
	}
}

// rows is an expression for the rows that the list draws and whose description contains a text.
func rows(text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".row:not([hidden])")].filter((r) => r.ariaLabel?.includes(%s))`, quote(text))
}

// prompt sends a prompt with the box.
func (p *tab) prompt(words string) {
	p.t.Helper()
	p.fill("textarea", "Prompt", words)
	p.press("\r")
}

// TestLive has turns with the agent: one whose permission request is granted, one that is cancelled while it waits.
func TestLive(t *testing.T) {
	dir := t.TempDir()
	_, server := inspection(t, inspect.Options{Agent: agent(t), Cwd: dir})
	p := newTab(t, wide)
	p.open(server.URL())
	p.see("not started")
	p.prompt("ask for permission")
	p.click(".question button", "Allow")
	p.until(rows("session/prompt, stopReason: end_turn") + ".length === 1")
	p.click("[role=tab]", "Conversation")
	p.see("permission: Allow")

	p.prompt("ask for permission again")
	p.see("The agent asks for permission")
	p.click(".prompt button", "Cancel")
	p.until(rows("session/prompt, stopReason: cancelled") + ".length === 1")
	p.until(rows("session/request_permission, outcome: {…}") + ".length === 2")
	p.until(`!document.querySelector(".question")`)
	p.see("No findings")

	// Another page sees the same, and may continue.
	other := newTab(t, narrow)
	other.open(server.URL())
	other.click("[role=tab]", "Timeline")
	other.until(rows("stopReason: cancelled") + ".length === 1")
	other.prompt("think")
	other.until(rows("stopReason: end_turn") + ".length === 2")
	p.until(rows("stopReason: end_turn") + ".length === 2")
}

// TestForms sends the form of each stable method once, as it is prefilled.
func TestForms(t *testing.T) {
	_, server := inspection(t, inspect.Options{Agent: agent(t), Cwd: t.TempDir()})
	p := newTab(t, wide)
	p.open(server.URL())
	p.click("[role=tab]", "Send")
	p.click("button", "Start and open a session")
	p.until(rows("session/new, response") + ".length + " + rows("response, session/new") + ".length > 0")
	methods := eval[[]string](p, `[...document.querySelectorAll("optgroup[label=Stable] option")].map((o) => o.value)`)
	if len(methods) < 12 || !slices.Contains(methods, "session/prompt") || !slices.Contains(methods, "session/cancel") {
		t.Fatalf("methods: %q", methods)
	}
	// The methods that end something come last.
	last := func(m string) bool {
		return strings.Contains(m, "delete") || strings.Contains(m, "close") || m == "logout"
	}
	slices.SortStableFunc(methods, func(a, b string) int {
		switch {
		case last(a) == last(b):
			return 0
		case last(a):
			return 1
		}
		return -1
	})
	for _, method := range methods {
		p.fill("select", "Method to send", method)
		p.until(`document.querySelector(".sender .problems")?.textContent === "Valid."`)
		before := eval[int](p, `+document.querySelector(".counted").textContent.match(/[\d,]+/)[0].replace(",", "")`)
		p.click(".sender .actions button.primary", "Send")
		p.until(fmt.Sprintf(`+document.querySelector(".counted").textContent.match(/[\d,]+/)[0].replace(",", "") > %d`, before))

		t.Log(method)
	}
}

// TestMisbehave does to the agent what a bad client does, and kills it.
func TestMisbehave(t *testing.T) {
	_, server := inspection(t, inspect.Options{Agent: agent(t), Cwd: t.TempDir()})
	p := newTab(t, wide)
	p.open(server.URL())
	p.click("[role=tab]", "Send")
	p.click("button", "Start and open a session")
	p.until(rows("session/new") + ".length === 2")
	p.fill("textarea", "Line to send", `{"jsonrpc":"2.0","id":"mine","method":"nothing/here"}`)
	p.click("button", "Send line")
	p.until(rows("nothing/here, -32601") + ".length === 1")
	p.click("button", "Send line")
	p.until(rows("-32601") + ".length === 2")
	p.click(".verdict", "MUST") // an id may be used once
	p.click("[role=tab]", "Send")
	p.click("button", "Kill")
	p.see("ended")
}

// TestControls uses what the page has for a conversation: a form of the agent, an image, a mode, an option, a message that
// is changed and sent again, and a request for a file that the user answers.
func TestControls(t *testing.T) {
	_, server := inspection(t, inspect.Options{Agent: agent(t), Cwd: t.TempDir()})
	p := newTab(t, wide)
	p.open(server.URL())
	p.click("summary", "Version, capabilities")
	p.fill(".setup select", "Files are", "ask")
	p.prompt("show a form")
	p.see("Who are you?")
	p.fill(".question textarea", "Your name", "Ada")
	p.until(`document.querySelector(".question .problems").textContent === "Valid."`)
	p.click(".question button", "Accept")
	p.until(rows("stopReason: end_turn") + ".length === 1")
	p.click("[role=tab]", "Conversation")
	p.see("Hello Ada, who likes")

	eval[bool](p, `(async () => {
		const files = new DataTransfer();
		files.items.add(new File([Uint8Array.from([0x89, 0x50, 0x4e, 0x47])], "dot.png", {type: "image/png"}));
		files.items.add(new File(["module shop\n"], "go.mod"));
		const input = document.querySelector("input[type=file]");
		input.files = files.files;
		input.dispatchEvent(new Event("change"));
		return true;
	})()`)
	p.see("dot.png · image")
	p.see("go.mod · resource")
	p.prompt("read notes.txt")
	p.see("fs/read_text_file")
	p.fill(".question textarea", "content", "one line")
	p.click(".question button", "Respond")
	p.until(rows("stopReason: end_turn") + ".length === 2")
	p.click(".row", "session/prompt, read notes.txt")
	p.see(`"iVBORw=="`)
	p.see(`"file:///go.mod"`)

	p.fill("select", "Mode", "auto")
	p.until(rows("response, session/set_mode") + ".length === 1")
	option := eval[string](p, `document.querySelector(".options select").ariaLabel`)
	p.fill(".options select", option, eval[string](p, `[...document.querySelector(".options select").options].at(-1).value`))
	p.until(rows("response, session/set_config_option") + ".length === 1")

	p.fill("input", "Search in messages", "show a form") // the list may have moved on to newer rows
	p.until(`document.querySelector(".counted").textContent.startsWith("3 of ")`)
	p.click(".row", "session/prompt, show a form")
	p.see(`text: "show a form"`) // the buttons are those of this row
	p.click("button", "Edit and send")
	p.fill(".sender textarea", "text", "think about it")
	p.click(".sender .actions button.primary", "Send")
	p.fill("input", "Search in messages", "think about it")
	p.until(rows("session/prompt, think about it") + ".length === 1")
	p.fill("input", "Search in messages", "end_turn")
	p.until(rows("stopReason: end_turn") + ".length === 3")
	p.see("No findings")
}

// cutter is a listener whose connections can be cut.
type cutter struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (c *cutter) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

// cut closes all connections.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

// TestLostConnection cuts the connection of the page, which connects again and has everything once.
func TestLostConnection(t *testing.T) {
	need(t)
	in := must.Get(inspect.New(inspect.Options{Version: "v0.0.0", Agent: agent(t), Cwd: t.TempDir()}))(t)
	wire := &cutter{Listener: listen(t)}
	server := in.Serve(wire, "")
	p := newTab(t, wide)
	p.open(server.URL())
	for n := 1; n <= 3; n++ {
		p.prompt("think")
		p.until(fmt.Sprintf(`%s.length === %d`, rows("stopReason: end_turn"), n))
		wire.cut()
		p.until(`document.querySelector(".link-state").textContent.startsWith("Connection lost")`)
		p.until(`document.querySelector(".link-state").textContent === "Connected"`)
	}
	must.Do(t, errors.Join(server.Close(), in.Close()))
	p.see("Connection lost")
	p.click(".row", "session/prompt, stopReason: end_turn") // what is there stays
	p.until(`document.querySelector(".message-pane .tree")?.textContent.includes("end_turn")`)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = slices.DeleteFunc(p.problems, func(problem string) bool {
		return strings.HasPrefix(problem, "WebSocket connection to") || strings.Contains(problem, "ERR_CONNECTION_REFUSED")
	})
}
