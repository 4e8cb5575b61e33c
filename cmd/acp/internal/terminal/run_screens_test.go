//go:build linux || darwin

package terminal

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/cmd/acp/internal/test/screen"

	"github.com/acpgo/sdk/acp/view"
)

func TestRunMarkdown(t *testing.T) {
	p := ready(t, staging{rows: 44, cols: 80})
	p.say("markdown")
	p.answered("The end")
	p.shows("markdown")
	p.quit()
}

// A message is shown as it arrives: an unfinished paragraph, and an unfinished code block.
func TestRunStreaming(t *testing.T) {
	p := ready(t, staging{})
	p.say("stream")
	p.Wait("The first par")
	p.shows("stream-1")
	p.open()
	p.Wait("paragraph is")
	p.open()
	p.Wait("func f() {")
	p.shows("stream-3")
	p.open()
	p.answered("Done.")
	p.shows("stream-4")
	p.quit()
}

func TestRunThoughts(t *testing.T) {
	p := ready(t, staging{})
	p.say("think")
	p.answered("The answer is 42.")
	p.shows("thoughts-folded")
	p.Press("alt+up", "alt+up", "ctrl+o")
	p.Wait("something against it")
	p.shows("thoughts")
	p.quit()
}

func TestRunToolCalls(t *testing.T) {
	p := ready(t, staging{rows: 30, cols: 80})
	p.say("tools")
	p.answered("That was all.")
	p.shows("tools")
	p.quit()
}

func TestRunPlan(t *testing.T) {
	p := ready(t, staging{})
	p.say("plan")
	p.Wait("Find the mistake")
	p.shows("plan")
	p.Press("ctrl+t")
	p.Gone("Edit it")
	p.shows("plan-folded")
	p.Press("ctrl+t")
	p.Wait("Edit it")
	for range 3 {
		p.open()
	}
	p.answered("All steps are done.")
	p.shows("plan-done")
	p.quit()
}

func TestRunDiffs(t *testing.T) {
	p := ready(t, staging{cols: 120, rows: 36})
	p.say("diff")
	p.answered("Edited.")
	p.Press("alt+up", "alt+up", "ctrl+o")
	p.Wait("old line", "new line")
	p.shows("diff")
	p.quit()
}

// The question shows everything that is known, and has a key for each kind of answer. What is always allowed is not
// asked again.
func TestRunPermission(t *testing.T) {
	p := ready(t, staging{cols: 100, rows: 50})
	for i, answer := range []struct{ key, option string }{{"y", "yes"}, {"n", "no"}, {"Y", "always"}} {
		p.say("permission")
		p.Wait("Stage asks for permission", "Edit main.go", "apply-patch main.go", "main.go:6", "I must mend the comma.",
			"new line", "Yes, once", "No, never")
		p.Gone("Ctrl-G: answer")
		if i == 0 {
			p.shows("permission")
		}
		p.decide(answer.key)
		p.answered("Your answer: selected "+answer.option, "Answered: ")
	}
	p.say("permission")
	p.answered("Decided by a rule")
	p.quit()
}

// What is always rejected is not asked again either.
func TestRunPermissionNever(t *testing.T) {
	p := ready(t, staging{})
	p.say("bare-permission")
	p.Wait("Stage asks for permission")
	p.Gone("Ctrl-G: answer")
	p.decide("N")
	p.answered("Your answer: selected never")
	p.say("bare-permission")
	p.answered("Decided by a rule")
	p.quit()
}

// A question that contains only the id of a tool call shows what was reported about the call before.
func TestRunPermissionWithIDOnly(t *testing.T) {
	p := ready(t, staging{})
	p.say("bare-permission")
	p.Wait("Stage asks for permission", "Run rm -rf build")
	p.Gone("Ctrl-G: answer")
	p.shows("permission-bare")
	p.Resize(40, 20)
	p.Wait("$ rm -rf build", "Yes, once", "No, never")
	p.Press("r")
	p.Wait(`{"effect":"allow"`)
	p.Press("2")
	p.Wait("what is remembered has to be visible")
	p.Press("pgdown", "pgdown")
	p.decide("2")
	p.answered("Your answer: selected always")
	p.quit()
}

// A question of another session is visible from everywhere, and can be answered from there.
func TestRunPermissionOfAnotherSession(t *testing.T) {
	p := ready(t, staging{})
	p.say("later")
	p.Wait("working")
	p.Press("ctrl+n")
	p.Wait(" ready ", "●1")
	p.Type("half a prompt")
	p.Wait("half a prompt")
	p.open()
	p.Wait("?1")
	p.shows("attention")
	p.Press("ctrl+s")
	p.Wait("Open sessions")
	p.shows("overview")
	p.back("Open sessions")
	p.Press("ctrl+g")
	p.Wait("Run rm -rf build")
	p.decide("y")
	p.Wait("Your answer: selected yes")
	p.Press("alt+right")
	p.Wait("half a prompt")
	p.Press("ctrl+c", "ctrl+c")
	p.End()
}

// A question that arrives while the user types takes none of the typed keys.
func TestRunPermissionWhileTyping(t *testing.T) {
	p := ready(t, staging{})
	p.say("later")
	p.Wait("working")
	p.Type("yes")
	p.open()
	p.Wait("Stage asks for permission", "Ctrl-G: answer")
	p.Type(" YNn")
	p.Wait("yes YNn", "Ctrl-G: answer")
	p.Press("ctrl+g")
	p.Gone("Ctrl-G: answer")
	p.Press("n")
	p.answered("Your answer: selected no")
	p.Wait("yes YNn")
	p.Press("ctrl+c", "ctrl+c")
	p.End()
}

func TestRunTerminal(t *testing.T) {
	p := ready(t, staging{})
	p.say("terminal")
	p.answered("It ended")
	p.Press("alt+up", "alt+up", "ctrl+o")
	p.Wait("green")
	p.shows("terminal")
	if style, _ := p.Frame().Style("green"); !strings.Contains(style, "green") || !strings.Contains(style, "bold") {
		t.Errorf("the output's colours: %q", style)
	}
	p.quit()
}

// The output of a command is shown while it runs.
func TestRunTerminalLive(t *testing.T) {
	p := ready(t, staging{})
	p.say("live")
	p.Wait("one", "two", "working")
	p.shows("terminal-live")
	p.open()
	p.answered("It ended")
	p.quit()
}

func TestRunFiles(t *testing.T) {
	p := ready(t, staging{})
	p.say("files")
	p.answered("I have read", "Buy milk.")
	if text, err := os.ReadFile(filepath.Join(p.dir, "written.txt")); err != nil || string(text) != "by the agent\n" {
		t.Errorf("%q %v", text, err)
	}
	p.quit()
}

func TestRunModes(t *testing.T) {
	p := ready(t, staging{})
	p.Wait("Ask")
	p.Press("alt+m")
	p.Wait("Changes files without asking.")
	p.shows("modes")
	p.Type("cod")
	p.Gone("Changes nothing.")
	p.Press("enter")
	p.Gone("Changes files without asking.")
	p.Wait("Code")
	p.Press("shift+tab")
	p.Wait("Plan")
	p.say("mode")
	p.answered("The mode is another one.")
	p.quit()
}

func TestRunModels(t *testing.T) {
	p := ready(t, staging{})
	p.Wait("Large 5")
	p.Press("ctrl+l")
	p.Wait("Small 5")
	p.shows("models")
	p.Press("down", "enter")
	p.Gone("Large 5")
	p.Wait("Small 5")
	p.say("models")
	p.answered("The model is another one.", "Tiny 5")
	p.quit()
}

func TestRunOptions(t *testing.T) {
	p := ready(t, staging{})
	p.Press("alt+o")
	p.Wait("Thinking")
	p.shows("options")
	p.back("filter:")
	p.quit()
}

// back leaves a screen that shows a text. A key that follows Esc immediately would be the same key with Alt.
func (p *play) back(shown string) {
	p.t.Helper()
	p.Press("esc")
	p.Gone(shown)
}

// Commands of the agent are completed and chosen.
func TestRunCommands(t *testing.T) {
	p := ready(t, staging{})
	p.Type("/")
	p.Wait("/review", "/test", "Forget everything")
	p.shows("commands")
	p.Type("rev")
	p.Gone("/test")
	p.Press("tab")
	p.Wait("/review")
	p.Type("main.go")
	p.Press("enter")
	p.answered("You said: /review main.go")
	p.say("commands")
	p.answered("There is a new command.")
	p.Press("alt+c")
	p.Wait("A new command")
	p.back("filter:")
	p.quit()
}

// Files are found by some of their letters, and sent with the prompt; images as images.
func TestRunFilePicker(t *testing.T) {
	p := ready(t, staging{})
	p.Type("look at @gui")
	p.Wait("docs/guide.md")
	p.shows("files")
	p.Press("tab")
	p.Wait("@docs/guide.md")
	p.Type("and @pix")
	p.Wait("pixel.png")
	p.Press("tab")
	p.Wait("@pixel.png")
	p.Press("enter")
	p.answered("You said: look at", "a resource", "an image (image/png")
	p.quit()
}

// A session of an earlier day is listed, and loaded with its history.
func TestRunLoad(t *testing.T) {
	p := ready(t, staging{})
	p.Press("ctrl+r")
	p.Wait("Fix the build", "Write the docs")
	p.shows("stored")
	p.Press("enter")
	p.answered("Why does the build fail?", "Now it builds.")
	p.shows("loaded")
	p.quit()
}

func TestRunQueue(t *testing.T) {
	p := ready(t, staging{})
	p.say("later")
	p.Wait("working")
	p.say("the first that waits")
	p.say("the second")
	p.Wait("⏳ the first that waits", "⏳ the second")
	p.shows("queue")
	p.Press("alt+q")
	p.Wait("> the second")
	p.Press("enter")
	p.Wait("⏳ the second")
	p.open()
	p.Wait("Stage asks for permission")
	p.Press("ctrl+g")
	p.Gone("Ctrl-G: answer")
	p.decide("y")
	p.answered("You said: the first that waits", "You said: the second")
	p.quit()
}

// Ctrl-C cancels the turn, and the agent's last message is shown.
func TestRunCancel(t *testing.T) {
	p := ready(t, staging{})
	p.say("wait")
	p.Wait("I wait for you.", "working")
	p.Press("ctrl+c")
	p.answered("You have cancelled.")
	p.shows("cancelled")
	p.say("hello")
	p.answered("You said: hello")
	p.quit()
}

// Ctrl-C pressed twice quits, even if the agent does not end its turn.
func TestRunCancelTwice(t *testing.T) {
	p := ready(t, staging{})
	p.say("hang")
	p.Wait("I think about it.", "working")
	p.Press("ctrl+c")
	p.Wait("cancelling")
	p.Press("ctrl+c")
	p.Clean(p.End())
}

// The user is asked to log in when the agent requires it.
func TestRunLogin(t *testing.T) {
	t.Parallel()
	p := begin(t, staging{agent: []string{"-login-required"}})
	p.Wait("Log in at once", "Log in in the terminal")
	p.shows("login")
	p.Press("enter")
	p.Wait(" ready ")
	p.say("hello")
	p.answered("You said: hello")
	p.quit()
}

// A login in the terminal has the terminal to itself, and returns it.
func TestRunLoginInTerminal(t *testing.T) {
	t.Parallel()
	p := begin(t, staging{agent: []string{"-login-required", "-logins", "login-done"}})
	p.Wait("Log in at once", "Log in in the terminal")
	p.Press("down", "enter")
	f := p.Wait("Password: ")
	for _, mode := range f.Changed() {
		if mode == "alternate screen on" || strings.HasPrefix(mode, "mouse") {
			t.Errorf("%s, while another program has the terminal", mode)
		}
	}
	p.Type("sesame")
	p.Press("enter")
	p.Wait(" ready ")
	p.say("hello")
	p.answered("You said: hello")
	p.quit()
}

func TestRunUsage(t *testing.T) {
	p := ready(t, staging{cols: 100, rows: 24})
	p.say("usage")
	p.answered("Now you know.", "53k/200k (26%)", "0.42 USD")
	p.shows("usage")
	p.quit()
}

func TestRunForm(t *testing.T) {
	p := ready(t, staging{cols: 80, rows: 40})
	p.say("form")
	p.Wait("Who are you?", "Your name")
	p.Gone("Ctrl-G: answer")
	p.shows("form")
	p.Press("ctrl+x")
	p.answered("decline")
	p.quit()
}

func TestRunURL(t *testing.T) {
	p := ready(t, staging{})
	p.say("url")
	p.Wait("Please log in there.", "https://example.com/login?a=1")
	p.Gone("Ctrl-G: answer")
	p.shows("url")
	p.Press("y")
	p.answered("accept")
	p.quit()
}

func TestRunNotices(t *testing.T) {
	p := ready(t, staging{})
	p.say("notice")
	p.answered("Three notices.", "A note", "A warning", "The model is overloaded.")
	p.shows("notices")
	p.quit()
}

func TestRunCompaction(t *testing.T) {
	p := ready(t, staging{})
	p.say("compact")
	p.Wait("ompact", "working")
	p.shows("compaction")
	p.open()
	p.answered("Now there is room again.")
	p.shows("compacted")
	p.quit()
}

func TestRunSubagents(t *testing.T) {
	p := ready(t, staging{})
	p.say("subagent")
	p.Wait("Tester", "working")
	p.shows("subagent")
	p.open()
	p.answered("The helper is done.")
	p.shows("subagent-done")
	p.quit()
}

// Messages that the protocol does not define are shown as such.
func TestRunUnknown(t *testing.T) {
	p := ready(t, staging{})
	p.say("unknown")
	p.answered("You may not know these.", "hologram")
	p.shows("unknown")
	p.quit()
}

func TestRunTitle(t *testing.T) {
	p := ready(t, staging{})
	p.shows("start")
	p.say("title")
	p.answered("It has a title.")
	p.Until("the title", func(f *screen.Frame) bool { return strings.Contains(f.Title, "All about titles") })
	p.quit()
}

func TestRunMedia(t *testing.T) {
	p := ready(t, staging{})
	p.say("media")
	p.answered("That was media.")
	p.shows("media")
	p.quit()
}

func TestRunHelp(t *testing.T) {
	p := ready(t, staging{cols: 100, rows: 60})
	p.Press("?")
	p.Wait("cancel the turn; twice: quit")
	p.shows("help")
	p.back("cancel the turn; twice: quit")
	p.quit()
}

// Nothing is lost when the size of the terminal changes.
func TestRunResize(t *testing.T) {
	p := ready(t, staging{})
	p.say("think")
	p.answered("The answer is 42.")
	p.Type("not sent yet")
	p.Wait("not sent yet")
	for _, size := range [][2]int{{40, 12}, {20, 6}, {200, 60}, {1, 1}, {80, 24}} {
		p.Resize(size[0], size[1])
	}
	p.Wait("think", "The answer is 42.", "not sent yet")
	p.shows("resized")
	p.Press("ctrl+c", "ctrl+c")
	p.Clean(p.End())
}

// In plain mode there is no alternate screen, nothing is overwritten, and the whole conversation stays in the terminal.
func TestRunPlain(t *testing.T) {
	for name, s := range map[string]staging{
		"flag": {command: []string{"run", "--plain"}}, "TERM": {env: []string{"TERM=dumb"}}, "NO_COLOR": {env: []string{"NO_COLOR=1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.rows, s.cols = 40, 80
			p := begin(t, s)
			p.Wait("Type a prompt and press Enter.", "> ")
			for _, mode := range p.Frame().Changed() {
				t.Errorf("%s, in the plain mode", mode)
			}
			p.say("think")
			p.Wait("The answer is 42.")
			p.say("permission")
			p.Wait("kind edit", "apply-patch main.go", "allow once: Yes, once", "reject always: No, never", "Which one? ")
			time.Sleep(view.Delay)
			p.Type("1\r")
			p.Wait("Your answer: selected yes")
			p.say("outputs")
			p.Wait("It ended")
			if history := p.History(); !strings.Contains(history, "The answer is 42.") {
				t.Errorf("what was said is lost:\n%s", history)
			}
			p.Press("ctrl+d")
			p.Leave(0)
		})
	}
}

// Sessions are renamed, copied, written to files, closed and deleted.
func TestRunSessions(t *testing.T) {
	p := ready(t, staging{cols: 100, rows: 24})
	p.say("think")
	p.answered("The answer is 42.")
	p.Press("ctrl+s")
	p.Wait("Open sessions")
	p.Press("r")
	p.Wait("Title of the session")
	p.Press("ctrl+u")
	p.Type("My thoughts")
	p.Press("enter")
	p.Gone("Title of the session")
	p.Wait("Open sessions", "My thoughts")
	p.Press("e")
	p.Wait("Write the session to")
	p.Press("ctrl+u")
	p.Type(p.dir + "/export.txt")
	p.Press("enter")
	p.Gone("Write the session to")
	p.back("Open sessions")
	p.Wait("Written to " + p.dir + "/export.txt")
	if text, err := os.ReadFile(filepath.Join(p.dir, "export.txt")); err != nil || !strings.Contains(string(text), "The answer is 42.") {
		t.Errorf("%v\n%s", err, text)
	}
	p.Press("ctrl+s")
	p.Wait("Open sessions")
	p.Press("f")
	p.Wait("A copy of My thoughts", " ready ")
	p.say("hello")
	p.answered("You said: hello")
	p.Press("ctrl+s")
	p.Wait("Open sessions", "My thoughts", "hello")
	p.shows("sessions")
	p.Press("D")
	p.Wait("Delete ", "keep it")
	p.Press("down", "enter")
	p.Gone("keep it")
	p.Gone("hello")
	p.back("Open sessions")
	p.quit()
}

// The last session of the directory is opened with one flag, and a stored one by its id.
func TestRunContinue(t *testing.T) {
	for _, flags := range [][]string{{"run", "--continue"}, {"run", "--load", "old-1"}} {
		t.Run(flags[1], func(t *testing.T) {
			p := ready(t, staging{command: flags})
			p.Wait("Why does the build fail?", "Now it builds.")
			p.quit()
		})
	}
}

// Messages are recorded, judged, and shown.
func TestRunEvidence(t *testing.T) {
	p := ready(t, staging{command: []string{"run", "--record", "run.jsonl", "--check"}, cols: 100, rows: 30})
	p.say("unknown")
	p.answered("You may not know these.", "findings")
	p.Press("alt+v")
	p.Wait("MUST")
	p.back("MUST")
	p.Press("ctrl+d")
	p.Leave(statusFindings)
	check := exec.Command(acpPath(t), "check", "run.jsonl")
	check.Dir = p.dir
	out, err := check.CombinedOutput()
	if err != nil && check.ProcessState.ExitCode() != statusFindings || !strings.Contains(string(out), "hologram") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A file of rules decides without a question, and "always" decisions are saved to a file for the next time.
func TestRunPolicy(t *testing.T) {
	p := ready(t, staging{command: []string{"run", "--remember", "rules.json"}})
	p.say("bare-permission")
	p.Wait("Stage asks for permission")
	p.Gone("Ctrl-G: answer")
	p.decide("Y")
	p.answered("Your answer: selected always")
	p.quit()
	rules, err := os.ReadFile(filepath.Join(p.dir, "rules.json"))
	if err != nil {
		t.Fatal(err)
	}
	was := p.dir
	p = begin(t, staging{command: []string{"run", "--remember", "rules.json"}, prepare: func(p *play, _ *exec.Cmd) {
		text := strings.ReplaceAll(string(rules), was, p.dir) // a rule applies to a directory
		if err := os.WriteFile(filepath.Join(p.dir, "rules.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}})
	p.Wait(" ready ")
	p.say("bare-permission")
	p.answered("Decided by a rule")
	p.quit()
}
