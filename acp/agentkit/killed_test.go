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
