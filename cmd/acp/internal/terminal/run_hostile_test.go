//go:build linux || darwin

package terminal

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/acpgo/sdk/cmd/acp/internal/test/screen"
)

// drawing are the control sequences that a program uses for drawing, whatever their arguments; which of them it uses
// depends on what was on the screen before.
var drawing = []string{
	"\n", "\r", "\b", "\t",
	"\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[E", "\x1b[F", "\x1b[G", "\x1b[H", "\x1b[J", "\x1b[K", "\x1b[L", "\x1b[M", "\x1b[P", "\x1b[S", "\x1b[T",
	"\x1b[X", "\x1b[Z", "\x1b[@", "\x1b[I", "\x1b[`", "\x1b[a", "\x1b[b", "\x1b[d", "\x1b[e", "\x1b[f", "\x1b[m", "\x1b[r", "\x1bM",
}

// converse plays the conversation with every kind of message, hostile or harmless, and opens every screen.
func converse(t *testing.T, prompt string) (*play, *screen.End) {
	t.Helper()
	p := begin(t, staging{cols: 100, rows: 40})
	p.Wait(" ready ")
	p.say(prompt)
	answer := func(title string, keys ...string) {
		p.Wait(title)
		p.Press("ctrl+g")
		p.Gone("Ctrl-G: answer")
		p.Press(keys[:len(keys)-1]...)
		p.decide(keys[len(keys)-1])
	}
	answer("asks for permission", "pgdown", "pgdown", "1")
	answer("Form ", "ctrl+x")
	answer("Page ", "n")
	p.answered("The end of all.")
	for _, look := range []struct{ key, shows string }{
		{"ctrl+p", "filter:"}, {"ctrl+s", "Open sessions"}, {"ctrl+r", "Stored sessions"}, {"alt+m", "filter:"}, {"ctrl+l", "filter:"},
		{"alt+o", "filter:"}, {"alt+c", "filter:"}, {"alt+n", "stderr"}, {"?", "cancel the turn; twice: quit"},
	} {
		p.Press(look.key)
		p.Wait(look.shows)
		p.back(look.shows)
	}
	for range 40 { // every item is unfolded once
		p.Press("alt+up", "ctrl+o", "pgup")
	}
	p.Press("ctrl+end")
	p.Wait("The end of all.")
	p.Press("ctrl+d")
	return p, p.End()
}

// Nothing that an agent sends in any field affects the terminal: the only sequences that reach it are those that the
// program draws with, and they are the same as for a harmless agent.
func TestRunControlSequences(t *testing.T) {
	t.Parallel()
	p, benign := converse(t, "benign")
	known := append(screen.Sequences(p.Raw(), true), drawing...)
	p, evil := converse(t, "evil")
	for _, s := range screen.Sequences(p.Raw(), true) {
		if !slices.Contains(known, s) {
			t.Errorf("the sequence %q reaches the terminal", s)
		}
	}
	for _, c := range screen.Strange(p.Raw()) {
		t.Errorf("the character %s reaches the terminal", c)
	}
	if !strings.Contains(string(p.Raw()), "pwned") {
		t.Error("nothing of the attacks is shown, also not as text")
	}
	for _, c := range evil.Frame.Commands {
		kind, _, _ := strings.Cut(c, " ")
		if !slices.ContainsFunc(benign.Frame.Commands, func(b string) bool { return strings.HasPrefix(b, kind) }) {
			t.Errorf("the terminal was made to do: %s", c)
		}
	}
	for mode := range evil.Frame.Modes {
		if _, is := benign.Frame.Modes[mode]; !is {
			t.Errorf("the terminal was given the mode %s", mode)
		}
	}
	p.Clean(evil)
}

// The last output of an agent that dies in a turn is shown, and the agent can be restarted.
func TestRunAgentDies(t *testing.T) {
	p := ready(t, staging{})
	p.say("die")
	p.Wait("I feel")
	p.open()
	p.Wait("Stage has ended", "stage: fatal: out of memory", "exit status 7")
	p.Gone("Ctrl-G: answer")
	p.shows("agent-died")
	p.Press("r")
	p.Wait(" ready ")
	p.say("hello")
	p.answered("You said: hello")
	p.quit()
}

// The last output of an agent that does not start is shown too.
func TestRunAgentDoesNotStart(t *testing.T) {
	t.Parallel()
	p := begin(t, staging{agent: []string{"-broken", "stage: no license found"}})
	p.Wait("stage: no license found")
	end := p.End()
	if end.State.Success() {
		t.Errorf("it ended with %v", end.State)
	}
	p.Clean(end)
}

// The user can quit while an agent does not respond.
func TestRunAgentIsDeaf(t *testing.T) {
	t.Parallel()
	p := begin(t, staging{agent: []string{"-deaf"}})
	p.Wait("starting")
	p.shows("starting")
	p.Press("ctrl+c", "ctrl+c")
	p.Clean(p.End())
}

// The error of a failed turn is shown, and the next one begins.
func TestRunTurnFails(t *testing.T) {
	p := ready(t, staging{})
	p.say("error")
	p.Wait("the model has no quota left", "failed")
	p.shows("turn-failed")
	p.say("refuse")
	p.Wait("refus")
	p.say("hello")
	p.answered("You said: hello")
	p.quit()
}

// While an agent floods the client, keys are handled, and typed text is shown.
func TestRunFlood(t *testing.T) {
	p := ready(t, staging{})
	p.say("flood 100000")
	p.Wait("working")
	p.Type("typed meanwhile")
	p.Wait("typed meanwhile")
	p.Press("pgup", "pgup")
	p.Press("ctrl+end")
	p.answered("The last of 100000.", "typed meanwhile")
	p.Press("ctrl+c", "ctrl+c")
	p.Clean(p.End())
}

// A flood is cancelled like any turn.
func TestRunFloodCancelled(t *testing.T) {
	p := ready(t, staging{})
	p.say("flood 100000000")
	p.Wait("working", "word")
	p.Press("ctrl+c")
	p.answered("word")
	p.say("hello")
	p.answered("You said: hello")
	p.quit()
}

// Lines of two megabytes are shown in part, and neither the program nor the screen is damaged.
func TestRunLongLines(t *testing.T) {
	p := ready(t, staging{})
	p.say("long")
	p.answered("That was long.")
	p.Resize(100, 30)
	p.say("hello")
	p.answered("You said: hello")
	p.quit()
}

// Bytes that are not text are shown as such.
func TestRunInvalidUTF8(t *testing.T) {
	p := ready(t, staging{})
	p.say("utf8")
	p.answered("That was no text.")
	for _, c := range screen.Strange(p.Raw()) {
		t.Errorf("the character %s reaches the terminal", c)
	}
	p.quit()
}

// Lines that are not messages do not end the conversation.
func TestRunGarbage(t *testing.T) {
	p := ready(t, staging{})
	p.say("garbage")
	p.answered("That was no protocol.")
	p.quit()
}

// The user can talk to an agent without any capabilities; a message says what it does not support.
func TestRunBareAgent(t *testing.T) {
	p := ready(t, staging{agent: []string{"-bare"}})
	p.say("hello")
	p.answered("You said: hello")
	for _, key := range []string{"alt+m", "ctrl+l", "alt+o", "alt+c", "ctrl+r"} {
		p.Press(key)
	}
	p.Wait("cannot list its sessions")
	p.say("again")
	p.answered("You said: again")
	p.quit()
}

// Everything works in 20 columns, and in very few rows.
func TestRunNarrow(t *testing.T) {
	p := ready(t, staging{cols: 20, rows: 10})
	p.say("bare-permission")
	p.Wait("$ rm -rf build")
	p.Gone("Ctrl-G: answer")
	p.shows("narrow-permission")
	p.decide("y")
	p.Wait("selected yes", "ready")
	p.shows("narrow")
	p.Resize(20, 3)
	p.Type("hi")
	p.Wait("hi")
	p.Press("enter")
	p.Wait("ready")
	p.Resize(20, 12)
	p.Wait("You said: hi")
	p.quit()
}

// Pasted text is one prompt, whatever it contains.
func TestRunPaste(t *testing.T) {
	p := ready(t, staging{})
	p.Paste("first line\nsecond \x1b[31mline\x03\x1b]0;pwned\a\n")
	p.Wait("first line")
	p.Press("enter")
	p.answered("You said: first line")
	for _, c := range screen.Strange(p.Raw()) {
		t.Errorf("the character %s reaches the terminal", c)
	}
	p.Until("its own title", func(f *screen.Frame) bool { return !strings.HasPrefix(f.Title, "pwned") })
	p.quit()
}

// A recording is written to a pipe that has a reader; otherwise the program reports that there is none.
func TestRunRecordPipeOfNobody(t *testing.T) {
	t.Parallel()
	pipe := t.TempDir() + "/pipe"
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	p := begin(t, staging{command: []string{"run", "--record", pipe}, cols: 200, rows: 24})
	p.Wait("is a pipe without a reader")
	p.Leave(statusFailed)
}
