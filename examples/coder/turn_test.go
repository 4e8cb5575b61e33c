package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/internal/modelstub"
	"github.com/acpgo/sdk/internal/test/actor"
	"github.com/acpgo/sdk/internal/test/dialogue"
)

// A turn may be cancelled whatever it waits for, and the conversation continues: the model's API refuses one that is not
// complete.
func TestCancel(t *testing.T) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			hang := &modelstub.Answer{Hang: true}
			models := []*model{
				{prompt: "Silence", answers: []*modelstub.Answer{hang}},
				{prompt: "Half", answers: []*modelstub.Answer{{Text: []string{"Well"}, Hang: true}}},
				{prompt: "Busy", answers: []*modelstub.Answer{{Status: 429, Header: map[string]string{"Retry-After": "100"}}}},
				{prompt: "Command", answers: []*modelstub.Answer{{Calls: []modelstub.Call{{ID: "1", Name: "run", Args: `{"command": "sleep 100"}`}}}}},
			}
			url := serveModel(t, func() []*model { return models })
			dir := t.TempDir()
			conn := connect(t, command(t, api, url, t.TempDir()), dir, func(acp.SessionUpdate) {})
			s, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir})
			if err != nil {
				t.Fatal(err)
			}
			for _, prompt := range []string{"Silence", "Half", "Busy", "Command"} {
				turn := s.Stream(t.Context(), acp.TextBlock(prompt))
				if prompt == "Silence" {
					turn.Cancel()
				}
				for u := range turn.Updates() {
					_, notice := u.Variant.(*acp.SessionUpdateNotice)
					_, thought := u.Variant.(*acp.SessionUpdateAgentThoughtChunk)
					call, _ := u.Variant.(*acp.SessionUpdateToolCallUpdate)
					if u.AgentText() == "Well" || notice || thought || call != nil && call.Status.Value() == acp.ToolCallStatusInProgress {
						turn.Cancel()
					}
				}
				if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonCancelled {
					t.Errorf("%s: %+v, %v", prompt, res, err)
				}
				if res, err := s.Prompt(t.Context(), acp.TextBlock("Are you there?")); err != nil || res.StopReason != acp.StopReasonEndTurn {
					t.Errorf("after %s: %+v, %v", prompt, res, err)
				}
			}
		})
	}
}

// A prompt that arrives while one runs is taken into the turn, before the next request to the model.
func TestPromptWhileAnotherRuns(t *testing.T) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			running, sent := make(chan struct{}), make(chan struct{})
			url := serve(t, func(r modelstub.Request) *modelstub.Answer {
				if r.Prompt != "First" || len(r.Results) > 0 {
					return &modelstub.Answer{Text: []string{"It was " + r.Prompt}}
				}
				close(running)
				<-sent
				return &modelstub.Answer{Calls: []modelstub.Call{{ID: "1", Name: "list", Args: "{}"}}}
			})
			dir := t.TempDir()
			conn := connect(t, command(t, api, url, t.TempDir()), dir, func(acp.SessionUpdate) {}, "PRM-15")
			s, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir})
			if err != nil {
				t.Fatal(err)
			}
			first := s.Stream(t.Context(), acp.TextBlock("First"))
			<-running
			second := s.Stream(t.Context(), acp.TextBlock("Second"))
			for range conn.Sessions(t.Context(), dir) { // it is answered after the prompt has arrived
			}
			close(sent)
			var said strings.Builder
			for _, turn := range []*acp.Turn{first, second} {
				for u := range turn.Updates() {
					text := u.AgentText()
					said.WriteString(text)
				}
				if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonEndTurn {
					t.Errorf("a turn ended with %+v, %v", res, err)
				}
			}
			if said.String() != "It was Second" {
				t.Errorf("the answer is %q", said.String())
			}
		})
	}
}

// An agent that is killed in a call leaves a conversation that continues in another process, and in a fork: the model's
// API refuses one that is not complete.
func TestKilled(t *testing.T) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			models := []*model{{prompt: "Go on", answers: []*modelstub.Answer{{Calls: []modelstub.Call{{ID: "1", Name: "run", Args: `{"command": "sleep 1"}`}}}}}}
			url, dir, state := serveModel(t, func() []*model { return models }), t.TempDir(), t.TempDir()
			agent := command(t, api, url, state)
			conn := connect(t, agent, dir, func(acp.SessionUpdate) {}, "PRM-5", "TRM-7")
			s, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir})
			if err != nil {
				t.Fatal(err)
			}
			turn := s.Stream(t.Context(), acp.TextBlock("Go on"))
			for u := range turn.Updates() {
				call, ok := u.Variant.(*acp.SessionUpdateToolCallUpdate)
				if ok && call.Status.Value() == acp.ToolCallStatusInProgress {
					if err := agent.Process.Kill(); err != nil {
						t.Error(err)
					}
				}
			}
			if _, err := turn.Result(); err == nil {
				t.Error("the turn of an agent that was killed has ended")
			}
			conn = connect(t, command(t, api, url, state), dir, func(acp.SessionUpdate) {})
			if s, err = conn.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: dir}); err != nil {
				t.Fatal(err)
			}
			fork, err := s.Fork(t.Context(), &acp.ForkSessionRequest{Cwd: dir})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []*acp.ClientSession{s, fork} {
				if res, err := s.Prompt(t.Context(), acp.TextBlock("Are you there?")); err != nil || res.StopReason != acp.StopReasonEndTurn {
					t.Errorf("afterwards: %+v, %v", res, err)
				}
			}
		})
	}
}

// What is in a prompt beside text, AGENTS.md, the commands, and what things cost.
func TestPrompts(t *testing.T) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range map[string]string{"AGENTS.md": "Use tabs.", "a.txt": "the text of a"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var got atomic.Pointer[modelstub.Request]
			url := serveRequests(t, &got)
			var usage atomic.Pointer[acp.UsageUpdate]
			agent := command(t, api, url, t.TempDir(), "-price-in", "1000", "-price-out", "1000", "-model", "other")
			conn := connect(t, agent, dir, func(u acp.SessionUpdate) {
				if u, ok := u.Variant.(*acp.SessionUpdateUsageUpdate); ok {
					usage.Store((*acp.UsageUpdate)(u))
				}
			})
			s, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir})
			if err != nil {
				t.Fatal(err)
			}
			prompt := func(blocks ...acp.ContentBlock) *modelstub.Request {
				if _, err := s.Prompt(t.Context(), blocks...); err != nil {
					t.Fatal(err)
				}
				return got.Load()
			}
			png := "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
			resource := acp.ResourceBlock(acp.EmbeddedResourceResource{Variant: &acp.TextResourceContents{URI: "file:///b.txt", Text: "the text of b"}})
			r := prompt(acp.TextBlock("Look at @a.txt, me@example.com"), acp.ImageBlock(png, "image/png"), resource, acp.ResourceLinkBlock("c", "file:///c"))
			for _, want := range []string{"the text of a", "the text of b", "[c](file:///c)"} {
				if !strings.Contains(r.Prompt, want) {
					t.Errorf("the prompt %q does not have %q", r.Prompt, want)
				}
			}
			if r.Images != 1 || !strings.Contains(r.System, "Use tabs.") || r.Model != "other" {
				t.Errorf("the model is %s, got %d images, told %q", r.Model, r.Images, r.System)
			}
			if used := usage.Load(); used == nil || used.Cost.Value().Amount == 0 || used.Used == 0 || used.Size != 128_000 {
				t.Errorf("the usage is %+v", used)
			}
			prompt(acp.TextBlock("/model fake-model"))
			r = prompt(acp.TextBlock("/review @a.txt and the parser"))
			if r.Model != "fake-model" || !strings.Contains(r.Prompt, "the text of a") || !strings.Contains(r.Prompt, "the parser") || !strings.HasSuffix(r.Prompt, review) {
				t.Errorf("/review was %q for %s", r.Prompt, r.Model)
			}
			if r = prompt(acp.TextBlock("/init")); !strings.HasSuffix(r.Prompt, initialize) {
				t.Errorf("/init was %q", r.Prompt)
			}
		})
	}
}

// Without a key the client is told to log in, and may do so in a terminal.
func TestLogin(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), t.TempDir()
	conn := connect(t, command(t, "openai", "", state), dir, func(acp.SessionUpdate) {})
	if _, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir}); !errors.Is(err, acp.ErrAuthRequired) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := conn.Authenticate(t.Context(), &acp.AuthenticateRequest{MethodID: "environment"}); err == nil || !strings.Contains(err.Error(), "OPENAI_API_KEY is not set") {
		t.Errorf("the method environment: %v", err)
	}
	cmd := command(t, "openai", "", state, "-login")
	cmd.Stdin = strings.NewReader("the key\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if info, err := os.Stat(filepath.Join(state, "openai.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info, err)
	}
	agent := command(t, "openai", "", state)
	agent.Env = append(agent.Env, "OPENAI_BASE_URL=http://127.0.0.1:1", "OPENAI_MODEL=some")
	conn = connect(t, agent, dir, func(acp.SessionUpdate) {})
	if _, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir}); err != nil {
		t.Error(err)
	}
	if _, err := conn.Logout(t.Context(), &acp.LogoutRequest{}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(state, "openai.key")); !os.IsNotExist(err) {
		t.Errorf("after the logout: %v", err)
	}
}

// Some clients start agents with an empty environment: the agent warns, keeps sessions and rules in memory, and works.
func TestNoHome(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: no program starts with an empty environment")
	}
	url := serveModel(t, func() []*model { return []*model{newModel(t, []string{"model"}, `run {"command": "ls /"}`)} })
	var log bytes.Buffer
	printed := dialogue.Talk(t, t.TempDir(), "Go on\n2\nGo on\n:sessions\n", func(client *actor.Client) *exec.Cmd {
		client.Bare = true
		cmd := command(t, "anthropic", url, "")
		cmd.Env, cmd.Stderr = []string{runAs + "=agent", "ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=key"}, &log
		return cmd
	})
	if strings.Count(printed, "completed") < 2 || !strings.Contains(printed, "session ") {
		t.Errorf("the client prints:\n%s", printed)
	}
	if !strings.Contains(log.String(), "sessions are kept in memory") {
		t.Errorf("standard error has %q", &log)
	}
}
