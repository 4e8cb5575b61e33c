package tui

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

// world is a running program.
type world struct {
	t       *testing.T
	m       *Model
	msgs    chan tea.Msg
	ended   chan struct{}
	running sync.WaitGroup
	quit    bool
	updates int
	bells   int
}

// inWorld runs a test with a program whose agent has the given handlers.
func inWorld(t *testing.T, handlers acp.AgentHandlers, setup func(*Options), test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		opts := &Options{Talk: talk.Options{Agent: talk.Agent{Name: "tester", Trusted: true}, Cwd: t.TempDir()}}
		serving, stop := context.WithCancel(t.Context())
		agents := connects(t, serving, opts, handlers)
		if setup != nil {
			setup(opts)
		}
		w := &world{t: t, msgs: make(chan tea.Msg), ended: make(chan struct{})}
		w.m = newModel(t.Context(), opts, w.send)
		defer func() {
			close(w.ended)
			if err := w.m.end(); err != nil {
				t.Errorf("end: %v", err)
			}
			stop()
			w.running.Wait()
			agents.Wait()
			time.Sleep(10 * time.Minute) // a package that highlights code keeps a timer running until the latest time of all bubbles
		}()
		w.do(w.m.Init())
		w.update(tea.WindowSizeMsg{Width: 80, Height: 24})
		test(w)
	})
}

// connects makes the program's agent one with the given handlers, whose connections are judged. What it returns waits
// for the end of the agents.
func connects(t *testing.T, serving context.Context, o *Options, handlers acp.AgentHandlers) *sync.WaitGroup {
	agents := &sync.WaitGroup{}
	o.Talk.Agent.Connect = func(context.Context) (acp.Transport, error) {
		client, agent := acp.Pipe()
		agents.Go(func() {
			// The program shows how it ends.
			_ = acp.ServeAgent(serving, agent, complete(handlers), &acp.AgentOptions{
				Info: acp.Implementation{Name: "tester", Version: "1"}, AuthMethods: authMethods, Experimental: acp.AllFeatures,
				Initialize: func(_ context.Context, _ *acp.InitializeRequest, res *acp.InitializeResponse) error {
					if handlers.Extensions == nil {
						return nil
					}
					return res.Meta.Set("steering", map[string]bool{"supported": true})
				},
			})
		})
		return conformance.Tap(t, conformance.Client, client, &conformance.TapOptions{
			Schema: conformance.Negotiated(conformance.V1Unstable(), conformance.V2Unstable()),
			Accept: map[string]string{"ADD-2": "agents of tricks name unknown sessions", "INI-6": "and unknown kinds"},
		}), nil
	}
	return agents
}

var authMethods = []acp.AuthMethod{acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "browser", Name: "In the browser"})}

// complete adds handlers that every agent has.
func complete(h acp.AgentHandlers) acp.AgentHandlers {
	every := (&cast{}).handlers()
	if h.NewSession == nil {
		h.NewSession = every.NewSession
	}
	if h.Prompt == nil {
		h.Prompt = every.Prompt
	}
	if h.Authenticate == nil {
		h.Authenticate = every.Authenticate
	}
	return h
}

func (w *world) send(msg tea.Msg) {
	select {
	case w.msgs <- msg:
	case <-w.ended:
	}
}

func (w *world) update(msg tea.Msg) {
	w.updates++
	_, cmd := w.m.Update(msg)
	w.m.View()
	w.do(cmd)
}

func (w *world) do(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	w.running.Go(func() {
		msg := cmd()
		cmds := commandsIn(msg)
		for _, c := range cmds {
			w.do(c)
		}
		if msg != nil && cmds == nil {
			w.send(msg)
		}
	})
}

// settle handles messages until nothing more happens at this time.
func (w *world) settle() {
	for {
		synctest.Wait()
		select {
		case msg := <-w.msgs:
			switch msg := msg.(type) {
			case tea.QuitMsg:
				w.quit = true
			case tea.RawMsg:
				if msg.Msg != "\a" {
					w.t.Errorf("%q is written past the screen", msg.Msg)
				}
				w.bells++
			}
			w.update(msg)
		default:
			return
		}
	}
}

// sleep lets time pass.
func (w *world) sleep(d time.Duration) {
	for end := time.Now().Add(d); ; {
		w.settle()
		left := time.Until(end)
		if left <= 0 {
			return
		}
		time.Sleep(min(left, frame))
	}
}

// key presses keys, each by its name.
func (w *world) key(names ...string) {
	for _, name := range names {
		w.update(pressed(name))
		w.settle()
	}
}

// typ types a text, one key after the other.
func (w *world) typ(text string) {
	for _, r := range text {
		w.update(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
	w.settle()
}

// say types a prompt and sends it.
func (w *world) say(text string) {
	w.typ(text)
	w.key("enter")
}

// pressed returns a key by its name.
func pressed(name string) tea.KeyPressMsg {
	k := tea.KeyPressMsg{}
	for {
		mod, rest, ok := strings.Cut(name, "+")
		if !ok || rest == "" {
			break
		}
		k.Mod |= map[string]tea.KeyMod{"ctrl": tea.ModCtrl, "alt": tea.ModAlt, "shift": tea.ModShift}[mod]
		name = rest
	}
	codes := map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft,
		"right": tea.KeyRight, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "backspace": tea.KeyBackspace, "space": tea.KeySpace,
		"end": tea.KeyEnd, "home": tea.KeyHome, "f1": tea.KeyF1,
	}
	if code, ok := codes[name]; ok {
		k.Code = code
		if name == "space" {
			k.Text = " "
		}
		return k
	}
	k.Code, _ = utf8.DecodeRuneInString(name)
	if k.Mod&^tea.ModShift == 0 {
		k.Text = name
	}
	return k
}

// screen returns what is shown, without styles. It checks that no line is wider than the screen, that there are not
// more lines than it has, and that they contain no control sequences except styles.
func (w *world) screen() string {
	w.t.Helper()
	content := w.m.View().Content
	for l := range strings.SplitSeq(content, "\n") {
		if n := ansi.StringWidth(l); n > w.m.width {
			w.t.Errorf("a line is %d columns wide, the screen %d: %q", n, w.m.width, l)
		}
	}
	if n := strings.Count(content, "\n") + 1; n > w.m.height {
		w.t.Errorf("%d lines on a screen of %d", n, w.m.height)
	}
	checkHarmless(w.t, content)
	return ansi.Strip(content)
}

// checkHarmless checks that a text has no control characters except those of styles.
func checkHarmless(t *testing.T, content string) {
	t.Helper()
	if strings.ContainsAny(content, "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c") {
		t.Errorf("a character that turns the order of others around reaches the terminal: %q", content)
	}
	p := ansi.NewParser()
	var state byte
	for rest := content; rest != ""; {
		seq, _, n, next := ansi.DecodeSequence(rest, state, p)
		if n <= 0 {
			break
		}
		if first := seq[0]; first < ' ' && seq != "\n" || first == 0x7f || first >= 0x80 && !utf8.ValidString(seq) {
			if !strings.HasPrefix(seq, "\x1b[") || !strings.HasSuffix(seq, "m") {
				t.Errorf("a control sequence reaches the terminal: %q", seq)
			}
		}
		rest, state = rest[n:], next
	}
}

// want checks that texts are on the screen.
func (w *world) want(texts ...string) {
	w.t.Helper()
	screen := w.screen()
	for _, text := range texts {
		if !strings.Contains(screen, text) {
			w.t.Fatalf("%q is not on the screen:\n%s", text, screen)
		}
	}
}

// wantNot checks that texts are not on the screen.
func (w *world) wantNot(texts ...string) {
	w.t.Helper()
	screen := w.screen()
	for _, text := range texts {
		if strings.Contains(screen, text) {
			w.t.Fatalf("%q is on the screen:\n%s", text, screen)
		}
	}
}

// status returns the last line of the screen.
func (w *world) status() string {
	lines := strings.Split(w.screen(), "\n")
	return lines[len(lines)-1]
}

var update = flag.Bool("update", false, "write docs/reference/keys.md anew")

// TestDocs: the tables of keys in docs/reference/keys.md are up to date.
func TestDocs(t *testing.T) {
	const path = "../../../../docs/reference/keys.md"
	text := must.Get(os.ReadFile(path))(t)
	var b strings.Builder
	for _, s := range allKeys() {
		fmt.Fprintf(&b, "\n### %s\n\n| key | name | what it does |\n|---|---|---|\n", s.screen)
		for _, k := range s.keys {
			keys, name := "", ""
			if len(k.keys) > 0 {
				keys = "`" + strings.ReplaceAll(keyNames(k.keys), ", ", "`, `") + "`"
			}
			if k.name != "" && s.screen == "Conversation" {
				name = "`" + k.name + "`"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", keys, name, k.about)
		}
	}
	const begin, end = "<!-- keys -->\n", "\n<!-- end of keys -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, strings.TrimPrefix(end, "\n"))
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the keys", path)
	}
	want := before + begin + b.String() + end + after
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("the keys in %s are not those of the program: run this test with -update", path)
	}
	must.Do(t, os.WriteFile(path, []byte(want), 0o644))
}

// releaser is a program that runs a command while the terminal is released.
type releaser struct {
	t    *testing.T
	runs bool
}

func (r *releaser) Init() tea.Cmd {
	if !rendering() {
		r.t.Error("the goroutine of the renderer is not found")
	}
	return tea.Exec(released{r}, func(error) tea.Msg { return tea.QuitMsg{} })
}

func (r *releaser) Update(tea.Msg) (tea.Model, tea.Cmd) { return r, nil }
func (r *releaser) View() tea.View                      { return tea.NewView("") }
func (r *releaser) SetStdin(io.Reader)                  {}
func (r *releaser) SetStdout(io.Writer)                 {}
func (r *releaser) SetStderr(io.Writer)                 {}

func (r *releaser) Run() error {
	r.runs = true
	if rendering() {
		r.t.Error("the renderer has not stopped")
	}
	return nil
}

// A command for the released terminal begins when the renderer has stopped.
func TestReleased(t *testing.T) {
	r := &releaser{t: t}
	if _, err := tea.NewProgram(r, tea.WithInput(nil), tea.WithOutput(io.Discard)).Run(); err != nil || !r.runs {
		t.Errorf("%v, run: %v", err, r.runs)
	}
}
