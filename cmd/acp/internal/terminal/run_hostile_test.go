//go:build linux || darwin

package terminal

import (
	"slices"
	"strings"
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
		{"alt+o", "filter:"}, {"alt+n", "stderr"}, {"?", "cancel the turn; twice: quit"},
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
