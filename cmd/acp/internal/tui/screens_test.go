package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/tools/txtar"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/internal/test/must"
)

// TestKeysAndScreens plays the sections of testdata/*.txtar, which say what a user does and sees. The agent is a cast.
// Lines with these words come first:
//
//	agent WORD ...            what it can do and how; see cast.handlers
//	run WORD ...              how the program is run: continue, watching, without-reconnecting, or with an agent elsewhere
//	bell WHEN                 when it rings the bell
//	steering OUTCOME          how the agent takes a prompt in a running turn
//	update JSON, call JSON    what it sends before it asks for permission, and the tool call of that
//	option KIND ID [NAME]     an option of that; "options N" makes many
//	form JSON                 the schema of its forms
//
// Then follow the steps, of which the verbs are below. Words are quoted by apostrophes, or as in Go. $DIR is the
// user's directory. A conversation is played for each line "each WORD ...", with its words in place of <1>, <2>, and so on.
func TestKeysAndScreens(t *testing.T) {
	for _, file := range must.Get(filepath.Glob("testdata/*.txtar"))(t) {
		archive := must.Get(txtar.ParseFile(file))(t)
		subject := strings.TrimSuffix(filepath.Base(file), ".txtar")
		for _, section := range archive.Files {
			t.Run(subject+"/"+section.Name, func(t *testing.T) {
				for _, steps := range expand(read(t, string(section.Data))) {
					converse(t, steps, subject == "plain")
				}
			})
		}
	}
}

func converse(t *testing.T, steps []step, plain bool) {
	c, setup, steps := begin(t, steps)
	if plain {
		c.gate = make(chan struct{})
		s := plainly(t, c.handlers(), setup)
		play(t, s.opts, steps, plainVerbs(s, c))
		return
	}
	inWorld(t, c.handlers(), func(o *Options) {
		c.gate = make(chan struct{})
		setup(o)
	}, func(w *world) {
		if !c.is["slow-to-start"] {
			w.settle()
		}
		play(t, w.m.opts, steps, verbs(w, c))
	})
}

// expand returns the conversations that a section stands for.
func expand(steps []step) (all [][]step) {
	n := slices.IndexFunc(steps, func(s step) bool { return s.words[0] != "each" })
	for _, each := range steps[:n] {
		var played []step
		for _, s := range steps[n:] {
			s.words = slices.Clone(s.words)
			for i := range s.words {
				for value := range each.words {
					s.words[i] = strings.ReplaceAll(s.words[i], fmt.Sprintf("<%d>", value), each.words[value])
				}
			}
			played = append(played, s)
		}
		all = append(all, played)
	}
	if n == 0 {
		all = [][]step{steps}
	}
	return all
}

// step is a line of a conversation.
type step struct {
	text  string
	not   bool
	words []string
}

// read splits lines into words. Comments and empty lines are left out.
func read(t *testing.T, text string) (steps []step) {
	t.Helper()
	for line := range strings.Lines(text) {
		s := step{text: strings.TrimSpace(line)}
		if s.text == "" || s.text[0] == '#' {
			continue
		}
		rest, not := strings.CutPrefix(s.text, "! ")
		s.not = not
		for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
			var word string
			var err error
			switch rest[0] {
			case '\'':
				word, rest, _ = strings.Cut(rest[1:], "'")
			case '"':
				quoted, failed := strconv.QuotedPrefix(rest)
				rest = rest[len(quoted):]
				word, err = strconv.Unquote(quoted)
				err = errors.Join(failed, err)
			case '{':
				word, rest = rest, ""
			default:
				word, rest, _ = strings.Cut(rest, " ")
			}
			if err != nil {
				t.Fatalf("%s: %v", s.text, err)
			}
			s.words = append(s.words, word)
		}
		steps = append(steps, s)
	}
	return steps
}

// begin takes the first lines of a conversation, about the agent and the program.
func begin(t *testing.T, steps []step) (c *cast, setup func(*Options), _ []step) {
	t.Helper()
	c = &cast{is: map[string]bool{}}
	runs := map[string]bool{}
	notify := Notify("")
	for ; len(steps) > 0; steps = steps[1:] {
		verb, args := steps[0].words[0], steps[0].words[1:]
		switch verb {
		case "agent":
			for _, word := range args {
				c.is[word] = true
			}
			c.broken = c.is["broken"]
		case "run":
			for _, word := range args {
				runs[word] = true
			}
		case "bell":
			notify = Notify(args[0])
		case "steering":
			c.steers = args[0]
		case "update":
			var u acp.SessionUpdate
			must.Do(t, json.Unmarshal([]byte(args[0]), &u))
			c.before = append(c.before, u)
		case "call":
			c.call = &acp.ToolCallUpdate{}
			must.Do(t, json.Unmarshal([]byte(args[0]), c.call))
		case "option":
			c.options = append(c.options, acp.PermissionOption{Kind: acp.PermissionOptionKind(args[0]), OptionID: acp.PermissionOptionID(args[1]), Name: args[2]})
		case "options":
			for i := range must.Get(strconv.Atoi(args[0]))(t) {
				c.options = append(c.options, acp.AllowOnce(acp.PermissionOptionID(fmt.Sprint("o", i+1)), fmt.Sprintf("Answer %d.", i+1)))
			}
		case "form":
			c.form = args[0]
		default:
			return c, func(o *Options) {
				c.connect(o)
				if c.is["stored"] {
					c.store(o.Talk.Cwd)
				}
				o.Notify = notify
				o.Start.Continue, o.Talk.NoReconnect = runs["continue"], runs["without-reconnecting"]
				if runs["watching"] {
					o.Watch = o.Talk.Cwd
				}
				if runs["elsewhere"] {
					o.Talk.Agent.Trusted, o.Talk.RemoteFiles = false, true
				}
				o.OpenURL = func(address string) error { c.note("opened %s", address); return nil }
			}, steps
		}
	}
	t.Fatal("the conversation has no steps")
	return nil, nil, nil
}

// play does the steps of a conversation.
func play(t *testing.T, o *Options, steps []step, verbs map[string]func(not bool, args []string)) {
	t.Helper()
	for _, s := range steps {
		do := verbs[s.words[0]]
		if do == nil {
			t.Fatalf("%s: no such verb", s.text)
		}
		if s.not && (verbs["press"] == nil || !slices.Contains([]string{"see", "focus", "quits", "file"}, s.words[0])) {
			t.Fatalf("%s: the verb has no negation", s.text)
		}
		args := s.words[1:]
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "$DIR", o.Talk.Cwd)
		}
		t.Log(s.text) // what failed comes behind it
		do(s.not, args)
	}
}

// verbs are what a user does at the screen, and what happens meanwhile.
func verbs(w *world, c *cast) map[string]func(not bool, args []string) {
	duration := func(text string) time.Duration { return must.Get(time.ParseDuration(text))(w.t) }
	press := func(_ bool, args []string) {
		for _, arg := range args { // KEY, or KEY*TIMES
			name, times, _ := strings.Cut(arg, "*")
			n, _ := strconv.Atoi(times)
			for range max(n, 1) {
				w.key(name)
			}
		}
	}
	broken := func(is bool) func(bool, []string) {
		return func(bool, []string) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.broken = is
		}
	}
	return map[string]func(not bool, args []string){
		"say":   func(_ bool, args []string) { w.say(args[0]) },
		"type":  func(_ bool, args []string) { w.typ(args[0]) },
		"press": press,
		"type-slowly": func(_ bool, args []string) {
			for _, r := range args[0] {
				w.typ(string(r))
				w.sleep(50 * time.Millisecond)
			}
		},
		// fill TEXT SHOWN fills in a field, and sees what comes then.
		"fill": func(_ bool, args []string) {
			w.say(args[0])
			w.sleep(100 * time.Millisecond)
			w.want(args[1])
		},
		// look KEY ... opens each screen, and leaves it.
		"look": func(_ bool, args []string) {
			for _, name := range args {
				w.key(name)
				w.screen()
				w.key("esc")
			}
		},
		"paste": func(_ bool, args []string) {
			w.update(tea.PasteMsg{Content: args[0]})
			w.settle()
		},
		"wheel": func(bool, []string) { w.update(tea.MouseWheelMsg{Button: tea.MouseWheelDown}) },
		// size COLUMNSxROWS
		"size": func(_ bool, args []string) {
			var msg tea.WindowSizeMsg
			must.Get(fmt.Sscanf(args[0], "%dx%d", &msg.Width, &msg.Height))(w.t)
			w.update(msg)
			w.screen()
		},
		"wait": func(_ bool, args []string) { w.sleep(duration(args[0])) },
		// until TEXT waits until it is on the screen.
		"until": func(_ bool, args []string) {
			for !strings.Contains(w.screen(), args[0]) {
				w.sleep(frame)
			}
		},
		"see": func(not bool, args []string) {
			if not {
				w.wantNot(args...)
			} else {
				w.want(args...)
			}
		},
		"status": func(_ bool, args []string) {
			if !strings.Contains(w.status(), args[0]) {
				w.t.Errorf("status: %s", w.status())
			}
		},
		// chats N: so many sessions are open.
		"chats": func(_ bool, args []string) {
			if n := strconv.Itoa(len(w.m.chats)); n != args[0] {
				w.t.Errorf("%s sessions are open", n)
			}
		},
		"focus": func(not bool, _ []string) {
			if not {
				w.update(tea.BlurMsg{})
			} else {
				w.update(tea.FocusMsg{})
			}
		},
		// bells N: so many since the last time.
		"bells": func(_ bool, args []string) {
			if n := strconv.Itoa(w.bells); n != args[0] {
				w.t.Errorf("%s bells, want %s", n, args[0])
			}
			w.bells = 0
		},
		// reports-focus yes: the terminal is asked to tell whether it has the focus.
		"reports-focus": func(_ bool, args []string) {
			if got := w.m.View().ReportFocus; got != (args[0] == "yes") {
				w.t.Errorf("focus is reported: %v", got)
			}
		},
		"quits": func(not bool, _ []string) {
			if w.quit == not {
				w.t.Errorf("the program ends: %v", w.quit)
			}
		},
		// got NOTE ...: what the agent has got since the last time.
		"got": func(_ bool, args []string) {
			w.settle()
			c.want(w.t, args...)
		},
		"open": func(bool, []string) {
			c.gate <- struct{}{}
			w.settle()
		},
		// cut ends the connection to the agent.
		"cut": func(bool, []string) {
			c.mu.Lock()
			defer c.mu.Unlock()
			conn := c.conn
			w.running.Go(func() { _ = conn.Close() })
		},
		"stderr": func(_ bool, args []string) { w.m.mail.put(eventMsg{Kind: talk.Stderr, Text: args[0]}) },
		// file PATTERN TEXT: there is one such file, and it has the text; "! file PATTERN": there is none.
		"file": func(not bool, args []string) {
			files := must.Get(filepath.Glob(filepath.Join(w.m.opts.Talk.Cwd, args[0])))(w.t)
			switch {
			case not && len(files) == 0:
			case not || len(files) != 1:
				w.t.Fatalf("the files %q", files)
			default:
				if text := must.Get(os.ReadFile(files[0]))(w.t); !strings.Contains(string(text), args[1]) {
					w.t.Errorf("%s has %q", files[0], text)
				}
			}
		},
		// write NAME TEXT writes a file.
		"write": func(_ bool, args []string) { write(w.t, w.m.opts.Talk.Cwd, args[0], args[1]) },
		"break": broken(true), "mend": broken(false),
	}
}

// plainVerbs are what a user does in plain mode.
func plainVerbs(s *script, c *cast) map[string]func(not bool, args []string) {
	return map[string]func(not bool, args []string){
		"say":  func(_ bool, args []string) { s.typ(args[0]) },
		"see":  func(_ bool, args []string) { s.want(args...) },
		"got":  func(_ bool, args []string) { c.want(s.t, args...) },
		"open": func(bool, []string) { c.gate <- struct{}{} },
	}
}
