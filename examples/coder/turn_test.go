package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/internal/modelstub"
	"github.com/acpgo/sdk/internal/test/tier"
)

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// sorted returns lines in order, for those of calls that run at the same time.
func sorted(lines string) string {
	return strings.Join(slices.Sorted(strings.SplitSeq(lines, "\n")), "\n")
}

// each runs a test with both APIs, and with a client that has files and terminals or neither.
func each(t *testing.T, test func(t *testing.T, s setup)) {
	t.Helper()
	for _, api := range apis {
		for _, bare := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, bare %v", api, bare), func(t *testing.T) {
				t.Parallel()
				test(t, setup{api: api, bare: bare})
			})
		}
	}
}

var everyTool = []*modelstub.Answer{
	{Thought: "I look first.", Text: []string{"I ", "look."}, Calls: []modelstub.Call{
		{ID: "1", Name: "read", Args: `{"path": "main.txt", "line": 2, "limit": 1}`}, {ID: "2", Name: "list", Args: `{}`},
		{ID: "3", Name: "search", Args: `{"pattern": "t[h]ree"}`},
	}},
	3: use("plan", `{"steps": [{"step": "Edit", "status": "completed"}, {"step": "Test", "status": "pending"}]}`),
	4: use("edit", `{"path": "main.txt", "old_string": "two", "new_string": "2"}`),
	5: use("write", `{"path": "new/file.txt", "content": "new\n"}`),
	6: use("run", `{"command": "cat main.txt; exit 3"}`),
}

func TestEveryTool(t *testing.T) {
	each(t, func(t *testing.T, s setup) {
		s.script = steps(everyTool...)
		h := start(t, s)
		write(t, h.dir, "main.txt", "one\ntwo\nthree\n")
		got := h.prompt(t, h.session(t), "Do it")
		ran := `"` + "```" + `\none\n2\nthree\n` + "```" + `"`
		if !h.bare {
			ran = "terminal"
		}
		found := "main.txt:3:three"
		same(t, "the turn", sorted(got), sorted("thought: I look first.\nagent: I look.\n"+
			"read: Read main.txt, completed \"```\\ntwo\\n```\"\nread: List, completed \"```\\nmain.txt\\n```\"\n"+
			"search: Search t[h]ree, completed \"```\\n"+found+"\\n```\"\n"+
			"think: Update the plan, completed\nplan: Edit (completed) Test (pending)\n"+
			`edit: Edit main.txt, completed diff main.txt from "one\ntwo\nthree\n" to "one\n2\nthree\n"`+"\n"+
			`edit: Write new/file.txt, completed diff file.txt from "" to "new\n"`+"\n"+
			"execute: Run cat main.txt; exit 3, failed "+ran+" \"exit status 3\"\n"+
			"agent: Result: error: exit status 3\none\n2\nthree\n"))
		if text := read(t, h.dir, "new/file.txt"); text != "new\n" {
			t.Errorf("the new file has %q", text)
		}
		if h.usage == nil || h.usage.Used == 0 || h.usage.Size != 128_000 {
			t.Errorf("the usage is %+v", h.usage)
		}
	})
}

// What the user answers, and the mode, decide. "Always" is remembered, by another process too.
func TestPermission(t *testing.T) {
	t.Parallel()
	state, dir := t.TempDir(), t.TempDir()
	h := start(t, setup{state: state, dir: dir, script: func(r modelstub.Request) *modelstub.Answer {
		if len(r.Results) == 0 {
			return use("run", `{"command": "echo hello"}`)
		}
		return say("It said: " + r.Results[0])
	}})
	s := h.session(t)
	try := func(answer acp.PermissionOptionID, want string, wantAsked int) {
		t.Helper()
		h.answers(answer)
		h.told()
		if _, err := s.Prompt(t.Context(), acp.TextBlock("Run it")); err != nil {
			t.Fatal(err)
		}
		lines, asked := h.told()
		if !strings.Contains(lines, want) || len(asked) != wantAsked {
			t.Errorf("answered %q: told %q and asked %d times, want %q and %d", answer, lines, len(asked), want, wantAsked)
		}
	}
	try("no", "agent: It said: error: the user did not allow it", 1)
	try("", `execute: Run echo hello, failed "the question was dismissed"`, 1)
	try("once", "agent: It said: hello", 1)
	try("always", "agent: It said: hello", 1)
	try("no", "agent: It said: hello", 0)
	if err := s.SetMode(t.Context(), policy.ModeReadOnly); err != nil {
		t.Fatal(err)
	}
	try("once", "agent: It said: error: not allowed: the mode is read only", 0)
	h.stop(t)
	h = start(t, setup{state: state, dir: dir, script: h.script})
	s = h.session(t)
	try("no", "agent: It said: hello", 0)
}

func TestModes(t *testing.T) {
	t.Parallel()
	h := start(t, setup{script: steps(use("write", `{"path": "a", "content": "x"}`), use("run", `{"command": "echo y"}`))})
	s := h.session(t)
	for mode, want := range map[acp.SessionModeID]int{policy.ModeAsk: 2, policy.ModeEdits: 1, policy.ModeAll: 0} {
		if err := s.SetMode(t.Context(), mode); err != nil {
			t.Fatal(err)
		}
		h.told()
		if _, err := s.Prompt(t.Context(), acp.TextBlock("Do it")); err != nil {
			t.Fatal(err)
		}
		if lines, asked := h.told(); len(asked) != want || !strings.HasSuffix(lines, "agent: Result: y\n") {
			t.Errorf("in the mode %s asked %d times, want %d: %s", mode, len(asked), want, lines)
		}
	}
}

// A session continues in another process: listed, loaded, forked, deleted.
func TestSessions(t *testing.T) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			last := 0
			script := func(r modelstub.Request) *modelstub.Answer {
				last = r.Messages
				return steps(everyTool...)(r)
			}
			h := start(t, setup{api: api, script: script})
			write(t, h.dir, "main.txt", "one\ntwo\nthree\n")
			s := h.session(t)
			first := h.prompt(t, s, "Do it")
			messages := last
			h.stop(t)
			h2 := start(t, setup{api: api, state: h.state, dir: h.dir, script: func(r modelstub.Request) *modelstub.Answer {
				last = r.Messages
				return say("Again.")
			}})
			for info, err := range h2.Sessions(t.Context(), h.dir) {
				if err != nil || info.SessionID != s.ID() || info.Title.Value() != "Do it" {
					t.Errorf("listed %+v, %v", info, err)
				}
			}
			loaded, err := h2.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: h.dir})
			if err != nil {
				t.Fatal(err)
			}
			replay, _ := h2.told()
			if !strings.HasPrefix(replay, "user: Do it\nthought: I look first.\nagent: I look.\n") || strings.Count(replay, "completed") < strings.Count(first, "completed") {
				t.Errorf("replayed %s", replay)
			}
			same(t, "the loaded session", h2.prompt(t, loaded, "More"), "agent: Again.")
			if last < messages/2 || last <= 1 {
				t.Errorf("the model got %d messages, and %d before it was loaded", last, messages)
			}
			forked, err := loaded.Fork(t.Context(), &acp.ForkSessionRequest{Cwd: h.dir})
			if err != nil {
				t.Fatal(err)
			}
			before := last
			same(t, "the forked session", h2.prompt(t, forked, "More"), "agent: Again.")
			if last <= before {
				t.Errorf("the model got %d messages of the forked session, and %d of the first", last, before)
			}
			resumed, err := h2.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: s.ID(), Cwd: h.dir})
			if err != nil {
				t.Fatal(err)
			}
			if got := h2.prompt(t, resumed, "More"); got != "agent: Again." || last <= before {
				t.Errorf("the resumed session: %s, with %d messages", got, last)
			}
			if err := loaded.Delete(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := h2.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: h.dir}); err == nil {
				t.Error("a deleted session was loaded")
			}
		})
	}
}

// A turn may be cancelled at any event, and the conversation continues: the model's API refuses one that is not complete.
func TestCancelAnywhere(t *testing.T) {
	each(t, func(t *testing.T, s setup) {
		s.script = func(r modelstub.Request) *modelstub.Answer {
			if strings.Contains(r.Prompt, "Again") { // after a prompt that was cancelled before there was an answer
				return say("Still here.")
			}
			return steps(everyTool...)(r)
		}
		h := start(t, s)
		session := h.session(t)
		step := tier.Pick(7, 7, 1, 1)
		for at := 0; ; at += step {
			write(t, h.dir, "main.txt", "one\ntwo\nthree\n")
			h.answers("once")
			turn := session.Stream(t.Context(), acp.TextBlock("Do it"))
			n := 0
			if at == 0 {
				turn.Cancel()
			}
			for range turn.Updates() {
				if n++; n == at {
					turn.Cancel()
				}
			}
			res, err := turn.Result()
			if err != nil {
				t.Fatalf("cancelled at event %d: %v", at, err)
			}
			same(t, fmt.Sprintf("after event %d", at), h.prompt(t, session, fmt.Sprint("Again ", at)), "agent: Still here.")
			if n < at && res.StopReason == acp.StopReasonEndTurn {
				if at < 20 {
					t.Errorf("a turn has %d events only", n)
				}
				break
			}
		}
	})
}

// A turn may be cancelled whatever it waits for.
func TestCancelWhileWaiting(t *testing.T) {
	each(t, func(t *testing.T, s setup) {
		waiting := make(chan struct{}, 100) // the turn waits now
		s.args = []string{"-context", "4000"}
		s.script = func(r modelstub.Request) *modelstub.Answer {
			hang := &modelstub.Answer{Hang: true}
			switch {
			case strings.HasSuffix(r.Prompt, "Silence"):
				waiting <- struct{}{}
				return hang
			case strings.HasSuffix(r.Prompt, "Silence in an answer"):
				hang.Text = []string{"Well"}
				return hang
			case strings.HasSuffix(r.Prompt, "Busy"):
				return &modelstub.Answer{Status: 429, Header: map[string]string{"Retry-After": "100"}}
			case strings.HasSuffix(r.Prompt, "Command"), strings.HasSuffix(r.Prompt, "Permission"):
				return use("run", `{"command": "sleep 100"}`)
			case strings.HasPrefix(r.Prompt, "Summarize"):
				waiting <- struct{}{}
				return hang
			}
			return say("Here.")
		}
		h := start(t, s)
		session := h.session(t)
		for _, prompt := range []string{"Silence", "Silence in an answer", "Busy", "Command", "Permission", "/compact"} {
			h.answers("once")
			h.told()
			if prompt == "Permission" {
				h.mu.Lock()
				h.waiting = waiting
				h.mu.Unlock()
			}
			turn := session.Stream(t.Context(), acp.TextBlock(prompt))
			stop := make(chan struct{})
			go func() {
				select {
				case <-waiting:
					turn.Cancel()
				case <-stop:
				}
			}()
			for u := range turn.Updates() {
				text := u.AgentText()
				_, notice := u.Variant.(*acp.SessionUpdateNotice)
				_, thought := u.Variant.(*acp.SessionUpdateAgentThoughtChunk)
				call, _ := u.Variant.(*acp.SessionUpdateToolCallUpdate)
				runs := call != nil && call.Status.Value() == acp.ToolCallStatusInProgress
				if text == "Well" || prompt == "Busy" && (notice || thought) || runs && prompt == "Command" {
					turn.Cancel()
				}
			}
			close(stop)
			if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonCancelled {
				t.Errorf("%s: %+v, %v", prompt, res, err)
			}
			h.mu.Lock()
			h.waiting = nil
			h.mu.Unlock()
			same(t, "after "+prompt, h.prompt(t, session, "Hello"), "agent: Here.")
		}
	})
}

func TestCompaction(t *testing.T) {
	each(t, func(t *testing.T, s setup) {
		s.args = []string{"-context", "4000"}
		s.script = func(r modelstub.Request) *modelstub.Answer {
			switch {
			case strings.HasPrefix(r.Prompt, "Summarize"):
				return say("They want a long file read.")
			case r.Prompt == "Long" && len(r.Results) < 4:
				return use("read", `{"path": "long.txt"}`)
			}
			return say(fmt.Sprintf("%d messages", r.Messages))
		}
		h := start(t, s)
		write(t, h.dir, "long.txt", strings.Repeat("All work and no play. ", 1000))
		session := h.session(t)
		got := h.prompt(t, session, "Long")
		want := "compaction: completed"
		if h.bare {
			want = "Summarizing the conversation: completed"
		}
		if !strings.Contains(got, want) {
			t.Errorf("the client was told %.2000s", got)
		}
		same(t, "after it", h.prompt(t, session, "And now?"), "agent: 3 messages")
		if got := h.prompt(t, session, "/compact"); !strings.Contains(got, want) {
			t.Errorf("of the command, the client was told %s", got)
		}
		same(t, "after the command", h.prompt(t, session, "And now?"), "agent: 2 messages")
		if h.usage.Size != 4000 {
			t.Errorf("the usage is %+v", h.usage)
		}
	})
}

// What is in a prompt beside text, AGENTS.md, the commands, and what things cost.
func TestPrompts(t *testing.T) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			var got modelstub.Request
			h := start(t, setup{api: api, args: []string{"-price-in", "1000", "-price-out", "1000", "-model", "other"}, script: func(r modelstub.Request) *modelstub.Answer {
				got = r
				return say("OK")
			}})
			write(t, h.dir, "AGENTS.md", "Use tabs.")
			write(t, h.dir, "a.txt", "the text of a")
			s := h.session(t)
			prompt := func(blocks ...acp.ContentBlock) {
				if _, err := s.Prompt(t.Context(), blocks...); err != nil {
					t.Fatal(err)
				}
			}
			png := "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
			resource := acp.ResourceBlock(acp.EmbeddedResourceResource{Variant: &acp.TextResourceContents{URI: "file:///b.txt", Text: "the text of b"}})
			prompt(acp.TextBlock("Look at @a.txt, me@example.com"), acp.ImageBlock(png, "image/png"), resource, acp.ResourceLinkBlock("c", "file:///c"))
			for _, want := range []string{"the text of a", "the text of b", "[c](file:///c)"} {
				if !strings.Contains(got.Prompt, want) {
					t.Errorf("the prompt %q does not have %q", got.Prompt, want)
				}
			}
			if got.Images != 1 {
				t.Errorf("the model got %d images", got.Images)
			}
			if !strings.Contains(got.System, "Use tabs.") || got.Model != "other" {
				t.Errorf("the model is %s, told %q", got.Model, got.System)
			}
			if h.usage == nil || h.usage.Cost.Value().Amount == 0 {
				t.Errorf("the usage is %+v", h.usage)
			}
			same(t, "/model", h.prompt(t, s, "/model"), "agent: The model is other. There are: other, fake-model.")
			same(t, "/model fake-model", h.prompt(t, s, "/model fake-model"), "agent: The model is now fake-model.")
			prompt(acp.TextBlock("/review @a.txt and the parser"))
			if got.Model != "fake-model" || !strings.Contains(got.Prompt, "the text of a") || !strings.Contains(got.Prompt, "the parser") || !strings.HasSuffix(got.Prompt, review) {
				t.Errorf("/review was %q for %s", got.Prompt, got.Model)
			}
			prompt(acp.TextBlock("/init"))
			if !strings.HasSuffix(got.Prompt, initialize) {
				t.Errorf("/init was %q", got.Prompt)
			}
		})
	}
}

// Without a key the client is told to log in, and may do so in a terminal.
func TestLogin(t *testing.T) {
	t.Parallel()
	h := start(t, setup{env: []string{"NOTHING=1"}})
	if _, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: h.dir}); !errors.Is(err, acp.ErrAuthRequired) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := h.Authenticate(t.Context(), &acp.AuthenticateRequest{MethodID: "environment"}); err == nil || !strings.Contains(err.Error(), "OPENAI_API_KEY is not set") {
		t.Errorf("the method environment: %v", err)
	}
	cmd := h.command(t, "")
	cmd.Args = append(cmd.Args, "-login")
	cmd.Stdin = strings.NewReader("the key\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if info, err := os.Stat(filepath.Join(h.state, "openai.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
	h2 := start(t, setup{state: h.state, env: []string{"OPENAI_BASE_URL=http://127.0.0.1:1", "OPENAI_MODEL=some"}})
	s := h2.session(t)
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := h2.Logout(t.Context(), &acp.LogoutRequest{}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(h.state, "openai.key")); !os.IsNotExist(err) {
		t.Errorf("after the logout: %v", err)
	}
}

// Some clients start agents with an empty environment: the agent warns, keeps sessions and rules in memory, and works.
func TestNoHome(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: no program starts with an empty environment")
	}
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			only := `exec /usr/bin/env -i "$0=agent" "OPENAI_BASE_URL=$OPENAI_BASE_URL" "ANTHROPIC_BASE_URL=$ANTHROPIC_BASE_URL" ANTHROPIC_API_KEY=key "$@"`
			h := start(t, setup{
				api: api, bare: true, within: []string{"/bin/sh", "-c", only, runAs}, args: []string{"-state", ""},
				script: steps(use("run", `{"command": "ls /"}`)),
			})
			h.answers("always")
			s := h.session(t)
			for range 2 {
				if got := h.prompt(t, s, "Go on"); !strings.Contains(got, "completed") {
					t.Errorf("the client was told %s", got)
				}
				h.answers("")
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: h.dir}); err != nil {
				t.Error(err)
			}
			h.stop(t)
			if !strings.Contains(h.stderr.String(), "sessions are kept in memory") {
				t.Errorf("standard error has %q", h.stderr.String())
			}
		})
	}
}
