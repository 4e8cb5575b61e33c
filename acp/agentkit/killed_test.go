package agentkit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// killed is how many agents are killed in a turn.
func killed() int { return tier.Pick(1, 2, 5, 50) }

// killable starts the agent as a process, and connects a client to it that tells told of each update.
func killable(t *testing.T, dir string, told func(acp.SessionUpdate)) (*acp.ClientConn, *exec.Cmd) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "ACP_TEST_STORE="+dir)
	conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, acp.Command(cmd), &conformance.TapOptions{
		Accept: map[string]string{"PRM-5": "the agent is killed before it answers"},
	}), acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			told(n.Update)
			return nil
		},
	}, &acp.ClientOptions{Conn: acp.ConnOptions{Logger: quiet}})
	if err != nil {
		t.Fatal(err)
	}
	return conn, cmd
}

// Agents are killed one after the other in the turns of one session. The next one has every prompt whose turn had begun,
// and no tool call that does not end.
func TestKilledInATurn(t *testing.T) {
	tier.Need(t, tier.Normal)
	ctx, dir := t.Context(), t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	var id acp.SessionID
	begun := 0
	for run := range killed() + 1 {
		var mu sync.Mutex
		var lines []string
		open := map[acp.ToolCallID]acp.ToolCallStatus{}
		left := -1 // updates until it is killed
		dead := make(chan struct{})
		conn, cmd := killable(t, dir, func(u acp.SessionUpdate) {
			mu.Lock()
			defer mu.Unlock()
			lines = append(lines, line(u))
			switch u := u.Variant.(type) {
			case *acp.SessionUpdateToolCall:
				open[u.ToolCallID] = u.Status
			case *acp.SessionUpdateToolCallUpdate:
				if status, ok := u.Status.Get(); ok {
					open[u.ToolCallID] = status
				}
			}
			if left--; left == 0 {
				close(dead)
			}
		})
		if id == "" {
			s := must.Get(conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/w"}))(t)
			id = s.ID()
		} else if _, err := conn.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: id, Cwd: "/w"}); err != nil {
			t.Fatalf("run %d: %v", run, err)
		}
		mu.Lock()
		if prompts := strings.Count(strings.Join(lines, "\n"), "user: "); prompts != begun {
			t.Errorf("run %d: there are %d prompts of %d", run, prompts, begun)
		}
		for call, status := range open {
			if status != acp.ToolCallStatusCompleted && status != acp.ToolCallStatusFailed {
				t.Errorf("run %d: %s is %s", run, call, status)
			}
		}
		left = 1 + random.IntN(7) // of the seven of a turn
		mu.Unlock()
		answered := make(chan error, 1)
		go func() {
			_, err := conn.Session(id).Prompt(ctx, acp.TextBlock(fmt.Sprintf("%d of some words", run)))
			answered <- err
		}()
		<-dead
		begun++
		if run == killed() {
			if err := errors.Join(<-answered, conn.Close()); err != nil {
				t.Error(err)
			}
			return
		}
		must.Do(t, cmd.Process.Kill())
		_ = conn.Wait() // it was killed
		_ = conn.Close()
		<-answered
	}
}

// The whole life of a session, over pipes of processes, the second half of it in another process.
func TestLife(t *testing.T) {
	tier.Need(t, tier.Normal)
	ctx, dir, cwd := t.Context(), t.TempDir(), t.TempDir()
	c := process(t, dir)
	s := must.Get(c.NewSession(ctx, &acp.NewSessionRequest{Cwd: cwd}))(t)
	for _, words := range []string{"one two", "three"} {
		res, err := s.Prompt(ctx, acp.TextBlock(words))
		if err != nil || res.StopReason != acp.StopReasonEndTurn {
			t.Fatal(res, err)
		}
	}
	wantLines(t, "live", c.heard(), "commands: 1",
		"thought: hm", "agent: one ", "agent: two", "call: call-1 Count pending", "call: call-1 completed", "title: one two",
		"thought: hm", "agent: three", "call: call-2 Count pending", "call: call-2 completed")
	must.Do(t, s.SetMode(ctx, "loud"))
	wantLines(t, "told of the mode", c.heard(), "options: mode=loud")
	infos := listed(t, c, cwd)
	if len(infos) != 1 || infos[0].SessionID != s.ID() || infos[0].Title.Value() != "one two" || infos[0].Cwd != cwd || !infos[0].UpdatedAt.Present() {
		t.Errorf("listed: %+v", infos)
	}
	if others := listed(t, c, t.TempDir()); len(others) != 0 {
		t.Errorf("listed for another folder: %+v", others)
	}
	must.Do(t, s.Close(ctx))
	if _, err := s.Prompt(ctx, acp.TextBlock("closed")); !errors.Is(err, acp.ErrResourceNotFound) {
		t.Errorf("prompting a closed session: %v", err)
	}

	c2 := process(t, dir)
	loaded := must.Get(c2.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: cwd}))(t)
	replayed := []string{
		"user: one two", "thought: hm", "agent: one two", "call: call-1 Count pending", "call: call-1 completed",
		"user: three", "thought: hm", "agent: three", "call: call-2 Count pending", "call: call-2 completed",
		"title: one two", "commands: 1",
	}
	wantLines(t, "replayed before the answer", c2.heard(), replayed...)
	if mode := loaded.Modes().Value().CurrentModeID; mode != "loud" {
		t.Errorf("the mode is %q", mode)
	}
	must.Get(loaded.Prompt(ctx, acp.TextBlock("four")))(t)
	wantLines(t, "in the loaded session", c2.heard(), "thought: hm", "agent: FOUR", "call: call-3 Count pending", "call: call-3 completed")

	resumed, err := c.ResumeSession(ctx, &acp.ResumeSessionRequest{SessionID: s.ID(), Cwd: cwd})
	if err != nil {
		t.Fatal(err)
	}
	must.Get(resumed.Prompt(ctx, acp.TextBlock("five")))(t)
	wantLines(t, "in the resumed session", c.heard(), "title: one two", "commands: 1", "thought: hm", "agent: FIVE", "call: call-4 Count pending", "call: call-4 completed")

	for range 2 {
		must.Get(c.DeleteSession(ctx, &acp.DeleteSessionRequest{SessionID: s.ID()}))(t)
	}
	if infos := listed(t, c2, ""); len(infos) != 0 {
		t.Errorf("after deleting, listed: %+v", infos)
	}
	_, err = c.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: cwd})
	if !errors.Is(err, acp.ErrResourceNotFound) {
		t.Errorf("loading a deleted session: %v", err)
	}
}
