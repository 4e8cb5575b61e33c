package interop

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

// goClient is the state of this module's client in a conversation with the TypeScript agent.
type goClient struct {
	mu          sync.Mutex
	choice      string // the prefix of the kind of option to choose
	permissions []acp.PermissionOptionKind
	updates     []acp.SessionUpdate
	history     int           // updates that the agent keeps for session/load
	more        chan struct{} // has a value when there are updates
}

func (c *goClient) choose(choice string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.choice = choice
}

func (c *goClient) requestPermission(
	_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest,
) (*acp.RequestPermissionResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, option := range req.Options {
		if strings.HasPrefix(string(option.Kind), c.choice) {
			c.permissions = append(c.permissions, option.Kind)
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(option.OptionID)}, nil
		}
	}
	return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
}

func (c *goClient) sessionUpdate(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.updates = append(c.updates, n.Update)
	switch n.Update.Variant.(type) {
	case *acp.SessionUpdatePlan, *acp.SessionUpdateCurrentModeUpdate, *acp.SessionUpdateConfigOptionUpdate:
	default:
		c.history++
	}
	select {
	case c.more <- struct{}{}:
	default:
	}
	return nil
}

// keep counts updates that the agent keeps but that do not reach sessionUpdate: prompts, and those read by a loop over
// a turn.
func (c *goClient) keep(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history += n
}

// kept returns the number of updates that the agent has kept.
func (c *goClient) kept() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.history
}

// replay returns the updates for a session/load that has been answered. With late, they may arrive after the answer.
func (c *goClient) replay(t *testing.T, kept int, late bool) []acp.SessionUpdate {
	t.Helper()
	replayed := c.take()
	for timer := time.After(time.Minute); late && len(replayed) < kept; replayed = append(replayed, c.take()...) {
		select {
		case <-c.more:
		case <-timer:
			late = false
		}
	}
	if len(replayed) != kept {
		t.Errorf("%d updates were replayed, want %d", len(replayed), kept)
	}
	return replayed
}

// take returns the updates since the last call.
func (c *goClient) take() []acp.SessionUpdate {
	c.mu.Lock()
	defer c.mu.Unlock()
	updates := c.updates
	c.updates = nil
	return updates
}

// TestTypeScriptAgent drives the TypeScript agent with this module's client.
func TestTypeScriptAgent(t *testing.T) {
	command := exec.Command("node", filepath.Join(installed.Dir(t), "agent.mjs"))
	command.Stderr = t.Output()
	root := greetingRoot(t)
	keepClean(t, "v1-typescript-agent", root, driveTypeScriptAgent(t, acp.Command(command), root, false))
}

// driveTypeScriptAgent uses everything that the agent of turns.mjs does, and returns the messages. With late, a replay
// may arrive after the answer to session/load.
func driveTypeScriptAgent(t *testing.T, transport acp.Transport, root string, late bool) []conformance.Message {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := &goClient{choice: "allow", more: make(chan struct{}, 1)}
	handlers := acp.ClientHandlers{RequestPermission: c.requestPermission, SessionUpdate: c.sessionUpdate}
	machine := must.Get(local.Serve(&handlers, local.Trusted(), root))(t)
	defer func() {
		if err := machine.Close(); err != nil {
			t.Error(err)
		}
	}()
	var messages conformance.Recording
	options := &conformance.TapOptions{OnMessage: messages.Add}
	if late {
		const why = "the TypeScript server sends the replay on one stream and the answer on another"
		options.Accept = map[string]string{"SES-6": why, "SES-7": why}
	}
	tap := conformance.Tap(t, conformance.Client, transport, options)
	agent := must.Get(acp.Connect(ctx, tap, handlers, &acp.ClientOptions{
		Info: acp.Implementation{Name: "go-client", Version: "1.0.0"},
		Session: acp.ClientSessionCapabilities{ConfigOptions: acp.Some(acp.SessionConfigOptionsCapabilities{
			Boolean: acp.Some(acp.BooleanConfigOptionCapabilities{}),
		})},
	}))(t)
	defer agent.Close() // if the test has failed
	if got := agent.Initialized().AgentInfo.Value().Name; got != "interop-agent" {
		t.Errorf("got agent %q", got)
	}
	if _, err := agent.Authenticate(ctx, &acp.AuthenticateRequest{MethodID: "none"}); err != nil {
		t.Error(err)
	}
	session := must.Get(agent.NewSession(ctx, &acp.NewSessionRequest{Cwd: root}))(t)
	t.Run("settings", func(t *testing.T) { settings(t, ctx, c, session) })
	t.Run("allowed", func(t *testing.T) {
		turn(t, ctx, c, session, "allow", acp.StopReasonEndTurn)
		text, err := os.ReadFile(filepath.Join(root, "greeting.txt"))
		if want := greeting + "Hello, world ✓\n"; err != nil || string(text) != want {
			t.Errorf("got file %q, %v, want %q", text, err, want)
		}
		checkTurn(t, c.take(), acp.ToolCallStatusCompleted)
	})
	t.Run("rejected", func(t *testing.T) {
		c.choose("reject")
		turn(t, ctx, c, session, "reject", acp.StopReasonEndTurn)
		checkTurn(t, c.take(), acp.ToolCallStatusFailed)
		want := []acp.PermissionOptionKind{acp.PermissionOptionKindAllowOnce, acp.PermissionOptionKindRejectOnce}
		if !slices.Equal(c.permissions, want) {
			t.Errorf("got permissions %q, want %q", c.permissions, want)
		}
	})
	t.Run("cancelled", func(t *testing.T) { cancelled(t, ctx, c, session) })
	t.Run("lifecycle", func(t *testing.T) { lifecycle(t, ctx, c, agent, session.ID(), root, late) })
	if _, err := agent.Logout(ctx, &acp.LogoutRequest{}); err != nil {
		t.Error(err)
	}
	must.Do(t, agent.Close())
	return messages.Messages()
}

// settings changes the mode and back, and every config option.
func settings(t *testing.T, ctx context.Context, c *goClient, session *acp.ClientSession) {
	c.take()
	must.Do(t, session.SetMode(ctx, "auto"))
	updates := c.take()
	if len(updates) != 2 { // of the mode, and of the equivalent config option
		t.Fatalf("got %d updates before the answer to set_mode, want 2", len(updates))
	}
	if u, ok := updates[0].Variant.(*acp.SessionUpdateCurrentModeUpdate); !ok || u.CurrentModeID != "auto" {
		t.Errorf("got %+v, want mode auto", updates[0].Variant)
	}
	must.Do(t, session.SetMode(ctx, "ask"))
	req := acp.NewSetSessionConfigOptionRequestValueID(session.ID(), "tone", "warm")
	if _, err := session.Conn().SetSessionConfigOption(ctx, &req); err != nil {
		t.Error(err)
	}
	req = acp.NewSetSessionConfigOptionRequestBoolean(session.ID(), "brief", true)
	res := must.Get(session.Conn().SetSessionConfigOption(ctx, &req))(t)
	brief, ok := res.ConfigOptions[1].Variant.(*acp.SessionConfigOptionBoolean)
	if !ok || !brief.CurrentValue {
		t.Errorf("got %+v, want brief set", res.ConfigOptions)
	}
	req = acp.NewSetSessionConfigOptionRequestValueID(session.ID(), "tone", "icy")
	if _, err := session.Conn().SetSessionConfigOption(ctx, &req); !errors.Is(err, acp.ErrInvalidParams) {
		t.Errorf("got %v for an invalid value, want %v", err, acp.ErrInvalidParams)
	}
}

func turn(t *testing.T, ctx context.Context, c *goClient, session *acp.ClientSession, prompt string, want acp.StopReason) {
	t.Helper()
	c.keep(1)
	res := must.Get(session.Prompt(ctx, acp.TextBlock(prompts[prompt])))(t)
	if res.StopReason != want {
		t.Errorf("got stop reason %q, want %q", res.StopReason, want)
	}
}

// checkTurn looks for a plan, a thought, text, and a tool call that ends with the status.
func checkTurn(t *testing.T, updates []acp.SessionUpdate, status acp.ToolCallStatus) {
	t.Helper()
	var plan, thought, text, diff, location, ended bool
	for _, u := range updates {
		switch u := u.Variant.(type) {
		case *acp.SessionUpdatePlan:
			plan = true
		case *acp.SessionUpdateAgentThoughtChunk:
			thought = true
		case *acp.SessionUpdateAgentMessageChunk:
			text = true
		case *acp.SessionUpdateToolCall:
			location = location || len(u.Locations) > 0
			for _, content := range u.Content {
				_, is := content.Variant.(*acp.ToolCallContentDiff)
				diff = diff || is
			}
		case *acp.SessionUpdateToolCallUpdate:
			ended = ended || u.Status.Value() == status
		}
	}
	if !plan || !thought || !text || !diff || !location || !ended {
		t.Errorf("plan %v, thought %v, text %v, diff %v, location %v, %s %v", plan, thought, text, diff, location, status, ended)
	}
}

// cancelled ends turns in the middle, with the turn and with a context, and shows that the next turn is complete.
func cancelled(t *testing.T, ctx context.Context, c *goClient, session *acp.ClientSession) {
	c.keep(1)
	turn := session.Stream(ctx, acp.TextBlock(prompts["long"]))
	chunks := 0
	for range turn.Updates() {
		if chunks++; chunks == 3 {
			turn.Cancel()
		}
	}
	res := must.Get(turn.Result())(t)
	if res.StopReason != acp.StopReasonCancelled || chunks < 3 {
		t.Errorf("got stop reason %q after %d chunks", res.StopReason, chunks)
	}
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	c.keep(1)
	turn = session.Stream(short, acp.TextBlock(prompts["long"]))
	for range turn.Updates() {
		chunks++
		cancel()
	}
	c.keep(chunks)
	if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonCancelled {
		t.Errorf("got %+v, %v for a turn whose context ended, want %q", res, err, acp.StopReasonCancelled)
	}
	c.keep(1)
	again, err := session.Prompt(ctx, acp.TextBlock(prompts["reject"]))
	if err != nil || again.StopReason != acp.StopReasonEndTurn {
		t.Errorf("got %+v, %v for the next turn", again, err)
	}
}

// lifecycle lists, closes, loads, resumes and deletes a session.
func lifecycle(t *testing.T, ctx context.Context, c *goClient, agent *acp.ClientConn, id acp.SessionID, root string, late bool) {
	listed := func() bool {
		for info, err := range agent.Sessions(ctx, "") {
			if err != nil {
				t.Fatal(err)
			}
			if info.SessionID == id {
				return info.Cwd == root
			}
		}
		return false
	}
	if !listed() {
		t.Error("the session is not listed")
	}
	must.Do(t, agent.Session(id).Close(ctx))
	if _, err := agent.Session(id).Prompt(ctx, acp.TextBlock("anybody?")); !errors.Is(err, acp.ErrResourceNotFound) {
		t.Errorf("got %v from a closed session, want %v", err, acp.ErrResourceNotFound)
	}
	c.take()
	kept := c.kept()
	must.Get(agent.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: id, Cwd: root}))(t)
	history := c.replay(t, kept, late)
	if _, ok := history[0].Variant.(*acp.SessionUpdateUserMessageChunk); !ok {
		t.Errorf("the history begins with %T", history[0].Variant)
	}
	must.Do(t, agent.Session(id).Close(ctx))
	session := must.Get(agent.ResumeSession(ctx, &acp.ResumeSessionRequest{SessionID: id, Cwd: root}))(t)
	if updates := c.take(); len(updates) > 0 {
		t.Errorf("%d updates arrived with session/resume", len(updates))
	}
	must.Do(t, session.Delete(ctx))
	if listed() {
		t.Error("a deleted session is listed")
	}
}
