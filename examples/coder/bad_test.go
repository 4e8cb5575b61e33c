package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/modelstub"
)

// What the user sees of models, APIs and files that misbehave. A second prompt works after each.
func TestBadInput(t *testing.T) {
	first := func(a *modelstub.Answer) script { return steps(a) }
	once := func(a *modelstub.Answer) script { // a request that fails, and is then sent again
		return func(r modelstub.Request) *modelstub.Answer {
			if r.Served == 0 {
				return a
			}
			return say("Here I am.")
		}
	}
	always := func(a *modelstub.Answer) script { return func(modelstub.Request) *modelstub.Answer { return a } }
	many := &modelstub.Answer{}
	for i := range 50 {
		many.Calls = append(many.Calls, modelstub.Call{ID: fmt.Sprint(i), Name: "read", Args: `{"path": "a.txt"}`})
	}
	status := func(code int, body string, header ...string) *modelstub.Answer {
		a := &modelstub.Answer{Status: code, Body: body, Header: map[string]string{"Content-Type": "application/json"}}
		for i := 0; i+1 < len(header); i += 2 {
			a.Header[header[i]] = header[i+1]
		}
		return a
	}
	const page = "<html><body>Bad gateway</body></html>"
	for name, test := range map[string]struct {
		script script
		args   []string
		want   []string       // in what the client is told
		stop   acp.StopReason // "": an error
		err    string         // in the error
		count  int            // how often want[0] is there; 0: at least once
	}{
		"arguments that are not JSON": {script: first(use("read", `{"path": "a.t`)), stop: acp.StopReasonEndTurn,
			want: []string{"the input is not a JSON object: {\\\"path\\\": \\\"a.t", "agent: Result: error: the input is not a JSON object"}},
		"arguments of another type": {script: first(use("read", `{"path": 7}`)), stop: acp.StopReasonEndTurn,
			want: []string{"read: read, failed", "agent: Result: error: the input does not fit"}},
		"a missing argument": {script: first(use("edit", `{"path": "a.txt"}`)), stop: acp.StopReasonEndTurn,
			want: []string{"agent: Result: error: the input does not fit"}},
		"an unknown tool": {script: first(use("fly to/the moon", `{}`)), stop: acp.StopReasonEndTurn,
			want: []string{`other: fly_to_the_moon, failed "there is no tool \"fly_to_the_moon\""`}},
		"a tool without a name": {script: first(use("", `{}`)), stop: acp.StopReasonEndTurn, want: []string{`there is no tool \"unknown\"`}},
		"calls without an id": {stop: acp.StopReasonEndTurn, script: first(&modelstub.Answer{Calls: []modelstub.Call{
			{Name: "read", Args: `{"path": "a.txt"}`}, {Name: "read", Args: `{"path": "a.txt"}`},
		}}), want: []string{"read: Read a.txt, completed", "agent: Result: the text"}},
		"calls with equal ids": {stop: acp.StopReasonEndTurn, script: first(&modelstub.Answer{Calls: []modelstub.Call{
			{ID: "x", Name: "read", Args: `{"path": "a.txt"}`}, {ID: "x", Name: "read", Args: `{"path": "a.txt"}`},
		}}), want: []string{"read: Read a.txt, completed"}, count: 2},
		"an empty answer":    {script: always(&modelstub.Answer{}), stop: acp.StopReasonEndTurn, want: []string{"agent: The model has answered nothing."}},
		"a truncated answer": {script: always(&modelstub.Answer{Text: []string{"I was just"}, Full: true}), stop: acp.StopReasonMaxTokens, want: []string{"agent: I was just"}},
		"a truncated call":   {script: first(&modelstub.Answer{Calls: []modelstub.Call{{ID: "1", Name: "write", Args: `{"path": "b`}}, Full: true}), stop: acp.StopReasonEndTurn, want: []string{"is not a JSON object"}},
		"a refusal":          {script: always(&modelstub.Answer{Text: []string{"No."}, Refusal: true}), stop: acp.StopReasonRefusal, want: []string{"agent: No."}},
		"endless text":       {script: always(say(slices.Repeat([]string{"on and on "}, 20_000)...)), stop: acp.StopReasonMaxTokens, want: []string{"agent: on and on"}},
		"five tools at once": {stop: acp.StopReasonEndTurn, script: first(&modelstub.Answer{Calls: []modelstub.Call{
			{ID: "1", Name: "read", Args: `{"path": "a.txt"}`}, {ID: "2", Name: "fly", Args: `{}`}, {ID: "3", Name: "list", Args: `{`},
			{ID: "4", Name: "write", Args: `{"path": "b.txt", "content": "b"}`}, {ID: "5", Name: "read", Args: `{"path": "b.txt"}`},
		}}), want: []string{"read: Read a.txt, completed", "other: fly, failed", "read: list, failed", "edit: Write b.txt, completed", "agent: Result: b"}},
		"an empty file":       {script: first(use("read", `{"path": "empty"}`)), stop: acp.StopReasonEndTurn, want: []string{"agent: Result: (no output)"}},
		"an endless call":     {script: always(use("write", `{"path": "b.txt", "content": "`+strings.Repeat("on and on ", 20_000)+`"}`)), stop: acp.StopReasonMaxTokens},
		"50 calls at once":    {script: first(many), stop: acp.StopReasonEndTurn, want: []string{"read: Read a.txt, completed"}, count: 50},
		"a model in a loop":   {script: always(use("list", "{}")), args: []string{"-max-requests", "3"}, stop: acp.StopReasonMaxTurnRequests, want: []string{"read: List, completed"}, count: 3},
		"an answer that ends": {script: always(&modelstub.Answer{Text: []string{"I was"}, Cut: true}), want: []string{"agent: I was"}, err: "the model's API: "},
		"an API that resets":  {script: once(&modelstub.Answer{Cut: true}), stop: acp.StopReasonEndTurn, want: []string{"notice: the model's API: ", "Trying again in 500ms", "agent: Here I am."}},
		"an API that is silent": {script: once(&modelstub.Answer{Hang: true}), args: []string{"-patience", "200ms"}, stop: acp.StopReasonEndTurn,
			want: []string{"notice: the model's API: no answer for 200ms. Trying again in 500ms", "agent: Here I am."}},
		"silence in an answer": {script: always(&modelstub.Answer{Text: []string{"I was"}, Hang: true}), args: []string{"-patience", "200ms"},
			want: []string{"agent: I was"}, err: "the model's API: no answer for 200ms"},
		"401": {script: always(status(401, `{"error": {"message": "wrong key"}}`)), err: "wrong key"},
		"400": {script: always(status(400, `{"error": {"message": "what?"}}`)), err: "the model's API answers 400 Bad Request: what?"},
		"429": {script: once(status(429, `{"error": {"message": "slow down"}}`, "Retry-After", "0.1")), stop: acp.StopReasonEndTurn,
			want: []string{"notice: the model's API answers 429 Too Many Requests: slow down. Trying again in 100ms.\nagent: Here I am."}},
		"500": {script: once(status(500, `{"error": {"message": "oh"}}`)), stop: acp.StopReasonEndTurn,
			want: []string{"notice: the model's API answers 500 Internal Server Error: oh. Trying again in 500ms.\nagent: Here I am."}},
		"always 500": {script: always(status(500, "", "Retry-After", "0")), err: "the model's API answers 500 Internal Server Error", want: []string{"Trying again"}, count: 5},
		"HTML": {script: always(status(502, page, "Content-Type", "text/html", "Retry-After", "0")), err: "the model's API answers 502 Bad Gateway: no reason given",
			want: []string{"notice: the model's API answers 502 Bad Gateway"}, count: 5},
		"HTML as an answer": {script: once(status(200, page, "Content-Type", "text/html")), stop: acp.StopReasonEndTurn,
			want: []string{"notice: the model's API: the answer broke off. Trying again in 500ms.\nagent: Here I am."}},
		"a file of 1 GB":        {script: first(use("read", `{"path": "huge"}`)), stop: acp.StopReasonEndTurn, want: []string{"read: Read huge, failed"}},
		"a binary file":         {script: first(use("read", `{"path": "binary"}`)), stop: acp.StopReasonEndTurn, want: []string{"read: Read binary, failed"}},
		"a search in both":      {script: first(use("search", `{"pattern": "the text"}`)), stop: acp.StopReasonEndTurn, want: []string{"agent: Result: ", "a.txt:1:the text"}},
		"a directory":           {script: first(use("read", `{"path": "."}`)), stop: acp.StopReasonEndTurn, want: []string{"read: Read ., failed"}},
		"no such file":          {script: first(use("edit", `{"path": "none", "old_string": "a", "new_string": "b"}`)), stop: acp.StopReasonEndTurn, want: []string{"edit: Edit none, failed"}},
		"a file outside":        {script: first(use("read", `{"path": "../secret"}`)), stop: acp.StopReasonEndTurn, want: []string{"outside the directories of the session"}},
		"a link that leads out": {script: first(use("read", `{"path": "link/passwd"}`)), stop: acp.StopReasonEndTurn, want: []string{"outside the directories of the session"}},
		"writing through it":    {script: first(use("write", `{"path": "link/x", "content": ""}`)), stop: acp.StopReasonEndTurn, want: []string{"outside the directories of the session"}},
		"listing it":            {script: first(use("list", `{"path": "link"}`)), stop: acp.StopReasonEndTurn, want: []string{"outside the directories of the session"}},
		"a file without permission": {script: first(use("read", `{"path": "closed"}`)), stop: acp.StopReasonEndTurn,
			want: []string{"read: Read closed, failed"}},
		"an ambiguous edit": {script: first(use("edit", `{"path": "a.txt", "old_string": "t", "new_string": "b"}`)), stop: acp.StopReasonEndTurn,
			want: []string{"the text to replace is in the file 3 times"}},
		"an edit of nothing": {script: first(use("edit", `{"path": "a.txt", "old_string": "zzz", "new_string": "b"}`)), stop: acp.StopReasonEndTurn,
			want: []string{"the text to replace is not in the file"}},
		"a command that hangs": {script: first(use("run", `{"command": "sleep 100 & sleep 100", "seconds": 1}`)), stop: acp.StopReasonEndTurn,
			want: []string{"stopped after 1s"}},
		"a bad pattern": {script: first(use("search", `{"pattern": "("}`)), stop: acp.StopReasonEndTurn, want: []string{"search: Search (, failed"}},
		"a bad plan":    {script: first(use("plan", `{"steps": [{"step": "x", "status": "later"}]}`)), stop: acp.StopReasonEndTurn, want: []string{`there is no status`}},
	} {
		for _, api := range apis {
			for _, bare := range []bool{false, true} {
				if bare == (api == "openai") && !strings.HasPrefix(name, "a ") {
					continue // files and commands have both ways, the others one of each
				}
				t.Run(fmt.Sprintf("%s, %s, bare %v", name, api, bare), func(t *testing.T) {
					if name == "a file without permission" && (os.Getuid() == 0 || runtime.GOOS == "windows") {
						t.Skip("SKIPPED: this user may read everything")
					}
					t.Parallel()
					h := start(t, setup{api: api, bare: bare, args: test.args, script: func(r modelstub.Request) *modelstub.Answer {
						if strings.HasPrefix(r.Prompt[strings.LastIndexByte(r.Prompt, '\n')+1:], "Are you there?") {
							return say("Yes.")
						}
						return test.script(r)
					}})
					write(t, h.dir, "a.txt", "the text\n")
					write(t, h.dir, "binary", "a\x00\xff\xfe the text")
					write(t, h.dir, "closed", "x")
					write(t, h.dir, "huge", "")
					write(t, h.dir, "empty", "")
					for _, err := range []error{
						os.Truncate(filepath.Join(h.dir, "huge"), 1<<30), os.Chmod(filepath.Join(h.dir, "closed"), 0), os.Symlink("/etc", filepath.Join(h.dir, "link")),
					} {
						if err != nil {
							t.Fatal(err)
						}
					}
					s := h.session(t)
					res, err := s.Prompt(t.Context(), acp.TextBlock("Go on"))
					lines, _ := h.told()
					switch {
					case test.stop == "" && (err == nil || !strings.Contains(err.Error(), test.err)):
						t.Errorf("the prompt ended with %+v, %v; want an error with %q", res, err, test.err)
					case test.stop != "" && (err != nil || res.StopReason != test.stop):
						t.Errorf("the prompt ended with %+v, %v; want %s", res, err, test.stop)
					}
					for i, want := range test.want {
						if bare && strings.HasPrefix(want, "notice: ") {
							want = strings.TrimPrefix(want, "notice: ")
							want = strings.Replace(want, ".\nagent", ".\n\nagent", 1) // a thought that ends with a newline
						}
						if n := strings.Count(lines, want); n == 0 || i == 0 && test.count > 0 && n != test.count {
							t.Errorf("the client was told %q %d times:\n%.3000s", want, n, lines)
						}
					}
					same(t, "afterwards", h.prompt(t, s, "Are you there?"), "agent: Yes.")
				})
			}
		}
	}
}

// A prompt that arrives while one runs is taken into the turn.
func TestPromptWhileAnotherRuns(t *testing.T) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			running, sent := make(chan struct{}), make(chan struct{})
			h := start(t, setup{api: api, accept: map[string]string{"PRM-15": "the agent takes such a prompt into the turn"}, script: func(r modelstub.Request) *modelstub.Answer {
				switch {
				case r.Prompt == "First" && len(r.Results) == 0:
					close(running)
					<-sent
					return use("list", "{}")
				}
				return say(r.Prompt)
			}})
			s := h.session(t)
			var group errgroup.Group
			prompt := func(text string) {
				group.Go(func() error {
					res, err := s.Prompt(t.Context(), acp.TextBlock(text))
					if err == nil && res.StopReason != acp.StopReasonEndTurn {
						err = fmt.Errorf("%s ended with %s", text, res.StopReason)
					}
					return err
				})
			}
			prompt("First")
			<-running
			prompt("Second")
			_, err := h.recording.Await(t.Context(), 0, func(m conformance.Message) bool { return bytes.Contains(m.Line, []byte(`"Second"`)) })
			if err != nil {
				t.Fatal(err)
			}
			for range h.Sessions(t.Context(), h.dir) { // it is answered after the prompt has arrived
			}
			close(sent)
			if err := group.Wait(); err != nil {
				t.Error(err)
			}
			if lines, _ := h.told(); !strings.HasSuffix(lines, "agent: Second") {
				t.Errorf("the client was told %s", lines)
			}
		})
	}
}

// A directory that disappears costs its calls, and not the session.
func TestDirectoryDisappears(t *testing.T) {
	t.Parallel()
	h := start(t, setup{bare: true, script: steps(use("list", "{}"), use("run", `{"command": "pwd"}`), use("write", `{"path": "a/b", "content": "x"}`))})
	s := h.session(t)
	if err := os.RemoveAll(h.dir); err != nil {
		t.Fatal(err)
	}
	got := h.prompt(t, s, "Go on")
	for _, want := range []string{"read: List, failed", "execute: Run pwd, ", "edit: Write a/b, failed"} {
		if !strings.Contains(got, want) {
			t.Errorf("the client was not told %q, but %s", want, got)
		}
	}
	if _, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: h.dir}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a session in a directory that does not exist: %v", err)
	}
}

// A prompt that is longer than the model's context fails, and is forgotten by the next one.
func TestPromptTooLong(t *testing.T) {
	each(t, func(t *testing.T, s setup) {
		s.args = []string{"-context", "4000"}
		s.script = func(r modelstub.Request) *modelstub.Answer {
			switch {
			case len(r.Prompt) > 15_000:
				return &modelstub.Answer{Status: 400, Body: `{"error": {"message": "too long"}}`, Header: map[string]string{"Content-Type": "application/json"}}
			case strings.Contains(r.Prompt, "Summarize"):
				return say("Nothing has happened.")
			}
			return say("Here.")
		}
		h := start(t, s)
		session := h.session(t)
		if _, err := session.Prompt(t.Context(), acp.TextBlock(strings.Repeat("long ", 4000))); err == nil || !strings.Contains(err.Error(), "too long") {
			t.Errorf("a prompt that is too long: %v", err)
		}
		if got := h.prompt(t, session, "Are you there?"); !strings.HasSuffix(got, "agent: Here.") {
			t.Errorf("afterwards: %s", got)
		}
	})
}
