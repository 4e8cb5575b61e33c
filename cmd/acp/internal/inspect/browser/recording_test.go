package browser

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"github.com/acpgo/sdk/cmd/acp/internal/inspect"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
)

// faulty returns a recording in which the agent sends one wrong update: a plan whose entry has a priority that does not
// exist.
func faulty(t *testing.T) string {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/faulty.jsonl"))(t)
	return string(text)
}

// downloads makes a tab save downloads in a folder.
func (p *tab) downloads(dir string) {
	p.t.Helper()
	ctx, stop := p.limited()
	defer stop()
	if _, err := chromedp.CallBrowser(ctx, cdpbrowser.SetDownloadBehavior, cdpbrowser.SetDownloadBehaviorParams{
		Behavior: cdpbrowser.SetDownloadBehaviorBehaviorAllow, BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID, DownloadPath: dir,
	}); err != nil {
		p.t.Fatal(err)
	}
}

// download clicks a button and returns the file that it downloads.
func (p *tab) download(dir, name string) string {
	p.t.Helper()
	before := must.Get(os.ReadDir(dir))(p.t)
	p.click("button", name)
	path := ""
	p.wait(func() bool {
		now := must.Get(os.ReadDir(dir))(p.t)
		for _, f := range now {
			known := slices.ContainsFunc(before, func(old os.DirEntry) bool { return old.Name() == f.Name() })
			if !known && !strings.HasSuffix(f.Name(), ".crdownload") && !strings.HasPrefix(f.Name(), ".") {
				path = filepath.Join(dir, f.Name())
			}
		}
		return path != ""
	}, "the download of "+name)
	return path
}

// TestRecording looks at a recording with findings: filters it, reads a finding, exports it, and opens the report from
// disk.
func TestRecording(t *testing.T) {
	in, server := inspection(t, inspect.Options{})
	read(t, in, "shop.jsonl", faulty(t))
	dir := t.TempDir()
	p := newTab(t, wide)
	p.downloads(dir)
	p.open(server.URL())
	p.see("43 rows")
	look(p)

	p.click("details.menu summary", "Export")
	recorded := must.Get(os.Open(p.download(dir, "Recording")))(t)
	defer recorded.Close()
	messages := 0
	for r := recording.NewReader(recorded, nil); ; {
		e, err := r.Read()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if e.Kind == recording.KindMessage {
			messages++
		}
	}
	if messages != 41 {
		t.Errorf("the recording has %d messages, want 41", messages)
	}
	report := p.download(dir, "Report")
	away := newTab(t, wide)
	away.open("file://" + report)
	away.see("43 rows")
	look(away)
	for _, address := range away.requests {
		if !strings.HasPrefix(address, "file:") && !strings.HasPrefix(address, "data:") {
			t.Errorf("the report loads %s", address)
		}
	}
}

// look tries a page that shows the recording.
func look(p *tab) {
	p.t.Helper()
	length := func(n int) string { return fmt.Sprintf(`%s.length === %d`, rows(""), n) }
	p.fill("select", "Filter by findings", "must")
	p.until(length(1))
	p.see("1 of 43 rows")
	p.fill("select", "Filter by findings", "")
	p.fill("select", "Filter by method", "session/request_permission")
	p.until(length(2))
	p.fill("select", "Filter by direction", "client")
	p.until(length(1))
	p.fill("select", "Filter by direction", "stderr")
	p.fill("select", "Filter by method", "")
	p.until(length(1))
	p.see("loaded 3 tools in 94 ms")
	p.fill("select", "Filter by direction", "")
	p.fill("select", "Filter by session", "sess_1")
	p.until(rows("initialize") + ".length === 0")
	p.fill("select", "Filter by session", "")
	p.fill("input", "Search in messages", "DISCOUNT")
	p.until(rows("agent_thought_chunk") + ".length === 1")
	p.fill("input", "Search in messages", "")

	// Chunks are folded until they are opened.
	p.until(rows("agent_thought_chunk × 8, The discount may be applied after the sum. Let me look.") + ".length === 1")
	p.click(".row", "agent_thought_chunk × 8")
	p.press("\r")
	p.until(rows("agent_thought_chunk") + ".length === 9")
	p.press("\r")
	p.until(rows("agent_thought_chunk") + ".length === 1")

	// A finding, at its place, with what would be right.
	p.click(".verdict", "1 MUST")
	p.until(`document.querySelector(".at-fault .fault.must")?.textContent.includes('unknown value "urgent"')`)
	p.until(`document.querySelector(".at-fault .said")?.textContent === 'priority: "urgent"'`)
	p.until(`document.querySelector(".example pre")?.textContent.includes('"priority": "high"')`)
	p.until(`document.querySelector(".at-fault .description")?.textContent === "The relative importance of this task."`)

	// Its request and response lead to each other, by the keyboard.
	p.click(".row", "session/request_permission, call_2")
	p.press("r")
	p.until(`document.querySelector(".message-pane h2").textContent.startsWith("32 ")`)
	p.press("r")
	p.until(`document.querySelector(".message-pane h2").textContent.startsWith("31 ")`)
	p.press("4")
	p.see("A tool call that was permitted is reported as")
	p.press("5")
	p.see("promptCapabilities.embeddedContext")
	p.press("6")
	p.see("Requests without an answer")
	p.press("3")
	p.see("permission: Allow")
}

// TestFindTheFault is what a user does who does not know what is wrong with an agent that sends one wrong update: it
// counts the clicks from the link to the answer.
func TestFindTheFault(t *testing.T) {
	need(t)
	acp := buildtest.Program(t, "github.com/acpgo/sdk/cmd/acp")
	out, _ := command(t, acp, "inspect", "--", acp, "replay", "testdata/faulty.jsonl", "--as", "agent")
	p := newTab(t, wide)
	p.open(out.line())
	p.prompt("Why does the total of the cart ignore the discount?") // starts the agent, too
	p.click(".question button", "Allow")
	clicks := p.clicks
	p.click(".verdict", "MUST")
	for _, want := range []string{`unknown value "urgent"; known: high, medium, low`, "/params/update/entries/1/priority", "broken by the agent", `"priority": "high"`} {
		p.see(want)
	}
	t.Logf("%d clicks in the turn, and %d more to what is wrong and where", clicks, p.clicks-clicks)
	if p.clicks-clicks != 1 {
		t.Errorf("%d clicks", p.clicks-clicks)
	}
}

// TestCompare shows two recordings side by side.
func TestCompare(t *testing.T) {
	in, server := inspection(t, inspect.Options{})
	read(t, in, "shop.jsonl", faulty(t))
	other := strings.NewReplacer(`\"loadSession\":true,`, "", `urgent`, `low`, "Shop agent", "Other agent").Replace(faulty(t))
	read(t, in, "other.jsonl", other)
	p := newTab(t, wide)
	p.open(server.URL())
	p.until(`document.querySelectorAll(".timeline:not([hidden])").length === 2`)
	p.until(rows("") + ".length > 40")
	p.click("[role=tab]", "Capabilities")
	p.until(`document.querySelector("tr.differs th")?.textContent === "loadSession"`)
	p.see("Other agent")
	p.press("c")
	p.until(`document.querySelectorAll(".timeline:not([hidden])").length === 1`)
	p.until(`!document.querySelector("tr.differs")`)
}

// TestTrace shows the hops of a conductor's trace as one diagram with all participants.
func TestTrace(t *testing.T) {
	in, server := inspection(t, inspect.Options{})
	file := must.Get(os.Open("testdata/trace.jsonl"))(t)
	defer file.Close()
	must.Do(t, in.Read("trace.jsonl", file, ""))
	p := newTab(t, wide)
	p.open(server.URL())
	p.until(`[...document.querySelectorAll(".lane-name")].map((e) => e.textContent).join() === "client,proxy:0,agent"`)
	p.until(rows("client to proxy:0, request, initialize") + ".length === 1")
	p.until(rows("proxy:0 to agent, request, initialize") + ".length === 1")
	p.click(".row", "proxy:0 to agent, request, initialize")
	p.press("r")
	p.until(`document.querySelector(".message-pane .facts").textContent.startsWith("agent → proxy:0")`)
	p.click("[role=tab]", "Statistics")
	p.until(`document.querySelectorAll(".totals").length === 2`)
}

// output is the standard output of a program, by lines.
type output struct {
	t     *testing.T
	lines chan string
}

func (o *output) line() string {
	o.t.Helper()
	line, ok := <-o.lines
	if !ok {
		o.t.Fatal("the program has ended")
	}
	return line
}

// command starts a program, which is ended with the test.
func command(t *testing.T, name string, args ...string) (*output, *exec.Cmd) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(), "HOME="+t.TempDir())
	cmd.Stderr = os.Stderr
	pipe := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	o := &output{t: t, lines: make(chan string, 100)}
	done := make(chan error, 1)
	go func() {
		defer close(o.lines)
		scanner := bufio.NewScanner(pipe)
		for scanner.Scan() {
			o.lines <- scanner.Text()
		}
		done <- scanner.Err()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = cmd.Wait() // its status is that of the signal
	})
	return o, cmd
}
