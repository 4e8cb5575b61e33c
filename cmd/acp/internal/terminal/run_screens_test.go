//go:build linux || darwin

package terminal

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/test/screen"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestRunScripts runs the scripts of testdata/run, which press keys in acp run and say what the screen then shows.
func TestRunScripts(t *testing.T) {
	tier.Need(t, tier.Full)
	type key struct{}
	commands := map[string]func(*testscript.TestScript, bool, []string){}
	for name, does := range verbs {
		commands[name] = func(ts *testscript.TestScript, neg bool, args []string) { does(ts.Value(key{}).(*play), neg, args) }
	}
	testscript.Run(t, testscript.Params{Dir: "testdata/run", Cmds: commands, Setup: func(env *testscript.Env) error {
		p := newPlay(env.T().(testing.TB))
		env.Values[key{}] = p
		env.Setenv("DIR", p.dir)
		return nil
	}})
}

// verbs are the commands of the scripts besides those of package testscript. Texts may be broken at the ends of lines.
var verbs = map[string]func(p *play, neg bool, args []string){
	// play COLUMNSxROWS [NAME=VALUE ...] COMMAND ... starts acp, in the directory $DIR.
	"play": func(p *play, _ bool, args []string) {
		s := staging{}
		p.scan(args[0], &s.cols, &s.rows)
		for s.command = args[1:]; strings.Contains(s.command[0], "="); s.command = s.command[1:] {
			s.env = append(s.env, s.command[0])
		}
		p.start(s)
	},
	"say":      func(p *play, _ bool, args []string) { p.say(args[0]) },
	"answered": func(p *play, _ bool, args []string) { p.answered(args...) },
	// see TEXT ... waits until the screen shows the texts; "! see" waits until it does not show one.
	"see": func(p *play, neg bool, args []string) {
		if neg {
			p.Gone(args[0])
		} else {
			p.Wait(args...)
		}
	},
	"shows":  func(p *play, _ bool, args []string) { p.shows(args[0]) },
	"press":  func(p *play, _ bool, args []string) { p.Press(args...) },
	"type":   func(p *play, _ bool, args []string) { p.Type(args[0]) },
	"decide": func(p *play, _ bool, args []string) { p.decide(args[0]) },
	"open":   func(p *play, _ bool, _ []string) { p.open() },
	"back":   func(p *play, _ bool, args []string) { p.back(args[0]) },
	"resize": func(p *play, _ bool, args []string) {
		var cols, rows int
		p.scan(args[0], &cols, &rows)
		p.Resize(cols, rows)
	},
	// quit quits the program, interrupt ends it in whatever it does, and leave waits for its end with an exit status. It
	// must leave nothing behind.
	"quit": func(p *play, _ bool, _ []string) { p.quit() },
	"interrupt": func(p *play, _ bool, _ []string) {
		p.Press("ctrl+c", "ctrl+c")
		p.Clean(p.End())
	},
	"leave": func(p *play, _ bool, args []string) {
		var status int
		must.Get(fmt.Sscan(args[0], &status))(p.t)
		p.Leave(status)
	},
	"title": func(p *play, _ bool, args []string) {
		p.Until("the title", func(f *screen.Frame) bool { return strings.Contains(f.Title, args[0]) })
	},
	// history TEXT: the text is on the screen or was scrolled out of it.
	"history": func(p *play, _ bool, args []string) {
		if history := p.History(); !strings.Contains(history, args[0]) {
			p.t.Errorf("%q is lost:\n%s", args[0], history)
		}
	},
	// ! mode TEXT: the terminal has no mode that begins with the text.
	"mode": func(p *play, _ bool, args []string) {
		for _, mode := range p.Frame().Changed() {
			if strings.HasPrefix(mode, args[0]) {
				p.t.Errorf("the terminal has the mode %s", mode)
			}
		}
	},
	// style TEXT WORD ...: the style of the text has the words.
	"style": func(p *play, _ bool, args []string) {
		style, _ := p.Frame().Style(args[0])
		for _, word := range args[1:] {
			if !slices.Contains(strings.Fields(style), word) {
				p.t.Errorf("the style of %q is %q", args[0], style)
			}
		}
	},
	// ! strange: no character that is not text has reached the terminal.
	"strange": func(p *play, _ bool, _ []string) {
		for _, c := range screen.Strange(p.Raw()) {
			p.t.Errorf("the character %s reaches the terminal", c)
		}
	},
}

// scan reads a size such as 80x24.
func (p *play) scan(size string, cols, rows *int) {
	if _, err := fmt.Sscanf(size, "%dx%d", cols, rows); err != nil {
		p.t.Fatalf("%s: %v", size, err)
	}
}

// back leaves a screen that shows a text. A key that follows Esc immediately would be the same key with Alt.
func (p *play) back(shown string) {
	p.t.Helper()
	p.Press("esc")
	p.Gone(shown)
}

// decide answers a question, which has been visible for some time then.
func (p *play) decide(key string) {
	p.t.Helper()
	time.Sleep(view.Delay + 100*time.Millisecond) // a person's time to read, which the program requires
	p.Press(key)
}
