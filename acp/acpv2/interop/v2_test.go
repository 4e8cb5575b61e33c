// Package interop drives the official TypeScript SDK's agents with the client of version 2. The programs are those of
// conformance/interop.
package interop

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/cleantest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/npmtest"
)

var update = flag.Bool("update", false, "rewrite the clean recordings of processes")

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // passing tests print nothing
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		installed.Remove()
		os.Exit(code)
	}))
}

const programs = "../../../conformance/interop/"

// installed is a copy of the TypeScript programs together with the SDK.
var installed = npmtest.Folder{Files: []string{programs + "*.mjs", programs + "package.json", programs + "package-lock.json"}}

// keepClean writes messages as the clean recording with the given name if -update is set.
func keepClean(t *testing.T, name, root string, messages []conformance.Message) {
	t.Helper()
	if *update {
		cleantest.Dir("../../../conformance/testdata/clean").WriteProcesses(t, name, root, messages)
	}
}

const greeting = "Good morning ✓\n"

// greetingRoot returns a directory that contains only a greeting.
func greetingRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(root, "greeting.txt"), []byte(greeting), 0o600))
	return root
}

// goClient is the state of this module's client of version 2.
type goClient struct {
	mu      sync.Mutex
	choose  string        // the option
	asked   chan struct{} // if set, a question closes it and is left open
	updates []acpv2.SessionUpdate
}

func (c *goClient) handlers() acpv2.ClientHandlers {
	return acpv2.ClientHandlers{RequestPermission: c.requestPermission, SessionUpdate: c.sessionUpdate}
}

func (c *goClient) requestPermission(
	ctx context.Context, _ *acpv2.ClientSession, req *acpv2.RequestPermissionRequest,
) (*acpv2.RequestPermissionResponse, error) {
	c.mu.Lock()
	asked, chosen := c.asked, acpv2.PermissionOptionID(c.choose)
	c.mu.Unlock()
	if asked != nil {
		close(asked)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &acpv2.RequestPermissionResponse{Outcome: acpv2.PermissionSelected(chosen)}, nil
}

func (c *goClient) sessionUpdate(_ context.Context, _ *acpv2.ClientSession, n *acpv2.UpdateSessionNotification) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.updates = append(c.updates, n.Update)
	return nil
}

// take returns the updates since the last call, with # for the numbers in ids and / for the root.
func (c *goClient) take(t *testing.T, root string) (lines []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.updates {
		line := strings.ReplaceAll(string(must.Get(json.Marshal(u))(t)), root, "/")
		lines = append(lines, numbered.ReplaceAllString(line, `-#"`))
	}
	c.updates = nil
	return lines
}

var numbered = regexp.MustCompile(`-\d+"`)

// set sets how questions are answered.
func (c *goClient) set(choose string, asked chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.choose, c.asked = choose, asked
}

// allowed is the turn of an agent that may read the greeting, and rejected the end of one that may not.
var (
	allowed = []string{
		`{"sessionUpdate":"user_message","messageId":"message-#","content":[{"type":"text","text":"Read it."}]}`,
		`{"sessionUpdate":"state_update","state":"running"}`,
		`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"plan-#","entries":[{"content":"Read the greeting","priority":"high","status":"in_progress"},{"content":"Say it","priority":"low","status":"pending"}]}}`,
		`{"sessionUpdate":"agent_thought","messageId":"thought-#","content":[{"type":"text","text":"It must be in the file."}]}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"message-#","content":{"type":"text","text":"I read "}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"message-#","content":{"type":"text","text":"the greeting."}}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"call-#","title":"cat greeting.txt","kind":"execute","status":"pending","rawInput":{"file":"greeting.txt"}}`,
		`{"sessionUpdate":"state_update","state":"requires_action"}`,
		`{"sessionUpdate":"state_update","state":"running"}`,
		`{"sessionUpdate":"terminal_update","terminalId":"terminal-#","command":"cat greeting.txt","cwd":"/"}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"call-#","status":"in_progress","content":[{"type":"terminal","terminalId":"terminal-#"}]}`,
		`{"sessionUpdate":"terminal_output_chunk","terminalId":"terminal-#","data":"R29vZCA="}`,
		`{"sessionUpdate":"terminal_output_chunk","terminalId":"terminal-#","data":"bW9ybmk="}`,
		`{"sessionUpdate":"terminal_output_chunk","terminalId":"terminal-#","data":"bmcg4pw="}`,
		`{"sessionUpdate":"terminal_output_chunk","terminalId":"terminal-#","data":"kwo="}`,
		`{"sessionUpdate":"terminal_update","terminalId":"terminal-#","exitStatus":{"exitCode":0}}`,
		`{"sessionUpdate":"tool_call_content_chunk","toolCallId":"call-#","content":{"type":"content","content":{"type":"text","text":"17 bytes"}}}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"call-#","title":null,"status":"completed"}`,
		`{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"plan-#","entries":[{"content":"Read the greeting","priority":"high","status":"completed"},{"content":"Say it","priority":"low","status":"completed"}]}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"message-#","content":{"type":"text","text":" Done."}}`,
		`{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}`,
	}
	rejected = []string{
		`{"sessionUpdate":"tool_call_update","toolCallId":"call-#","status":"failed"}`,
		`{"sessionUpdate":"agent_message","messageId":"message-#","content":[{"type":"text","text":"Then I do not."}]}`,
		`{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}`,
	}
)

// TestTypeScriptAgent drives the TypeScript agent of version 2 with this module's client.
func TestTypeScriptAgent(t *testing.T) {
	dir := installed.Dir(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	root := greetingRoot(t)
	c := &goClient{}
	command := exec.Command("node", filepath.Join(dir, "v2-agent.mjs"))
	command.Stderr = t.Output()
	var messages conformance.Recording
	defer func() { keepClean(t, "v2-typescript-agent", root, messages.Messages()) }()
	tap := conformance.Tap(t, conformance.Client, acpv2.Command(command), &conformance.TapOptions{
		Schema: conformance.V2(), OnMessage: messages.Add,
	})
	agent := must.Get(acpv2.Connect(ctx, tap, c.handlers(), &acpv2.ClientOptions{
		Info: acpv2.Implementation{Name: "go-client", Version: "1.0.0"},
	}))(t)
	defer func() {
		must.Do(t, agent.Close())
	}()
	session := must.Get(agent.NewSession(ctx, &acpv2.NewSessionRequest{Cwd: acpv2.AbsolutePath(root)}))(t)
	var history []string
	t.Run("allowed", func(t *testing.T) {
		c.set("allow", nil)
		ask(t, ctx, session, "Read it.", "end_turn")
		history = c.take(t, root)
		if diff := cmp.Diff(allowed, history); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("rejected", func(t *testing.T) {
		c.set("reject", nil)
		ask(t, ctx, session, "Read it.", "end_turn")
		got := c.take(t, root)
		history = append(history, got...)
		if diff := cmp.Diff(rejected, got[len(got)-3:]); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("cancelled", func(t *testing.T) { cancelled(t, ctx, c, session) })
	t.Run("lifecycle", func(t *testing.T) { lifecycle(t, ctx, c, agent, session, root, history) })
}

func ask(t *testing.T, ctx context.Context, session *acpv2.ClientSession, prompt, want string) {
	t.Helper()
	res := must.Get(session.Prompt(ctx, acpv2.TextBlock(prompt)))(t)
	if got := res.Idle.StopReason(); got != want {
		t.Errorf("got stop reason %q, want %q", got, want)
	}
}

// cancelled ends turns in the middle: with the turn, with a context, and while a question is open.
func cancelled(t *testing.T, ctx context.Context, c *goClient, session *acpv2.ClientSession) {
	ended := func(turn *acpv2.Turn) {
		t.Helper()
		res := must.Get(turn.Result())(t)
		if got := res.Idle.StopReason(); got != "cancelled" {
			t.Errorf("got stop reason %q", got)
		}
	}
	turn := session.Stream(ctx, acpv2.TextBlock("Write a very long story."))
	chunks := 0
	for u := range turn.Updates() {
		if _, ok := u.Variant.(*acpv2.SessionUpdateAgentMessageChunk); !ok {
			continue
		}
		if chunks++; chunks == 3 {
			turn.Cancel()
		}
	}
	ended(turn)
	if chunks < 3 {
		t.Errorf("got %d chunks", chunks)
	}

	short, cancel := context.WithCancel(ctx)
	defer cancel()
	turn = session.Stream(short, acpv2.TextBlock("Write a very long story."))
	for u := range turn.Updates() {
		if _, ok := u.Variant.(*acpv2.SessionUpdateAgentMessageChunk); ok {
			cancel()
		}
	}
	ended(turn)

	asked := make(chan struct{})
	c.set("", asked)
	turn = session.Stream(ctx, acpv2.TextBlock("Ask me."))
	<-asked
	turn.Cancel()
	ended(turn)

	c.set("reject", nil)
	ask(t, ctx, session, "And the next turn?", "end_turn")
}

// lifecycle lists, closes, resumes and deletes a session.
func lifecycle(t *testing.T, ctx context.Context, c *goClient, agent *acpv2.ClientConn, session *acpv2.ClientSession, root string, history []string) {
	listed := func() bool {
		for info, err := range agent.Sessions(ctx, "") {
			if err != nil {
				t.Fatal(err)
			}
			if info.SessionID == session.ID() {
				return info.Cwd == acpv2.AbsolutePath(root)
			}
		}
		return false
	}
	if !listed() {
		t.Error("the session is not listed")
	}
	must.Do(t, session.Close(ctx))
	c.take(t, root)
	req := &acpv2.ResumeSessionRequest{SessionID: session.ID(), Cwd: acpv2.AbsolutePath(root)}
	must.Get(agent.ResumeSession(ctx, req))(t)
	if diff := cmp.Diff([]string{`{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}`}, c.take(t, root)); diff != "" {
		t.Errorf("without a replay: %s", diff)
	}
	req.ReplayFrom = acpv2.Some(acpv2.NewReplayFromStart(acpv2.ReplayFromStart{}))
	again := must.Get(agent.ResumeSession(ctx, req))(t)
	// States are not replayed, and messages in chunks begin as whole ones.
	own := func(line string) bool {
		return strings.Contains(line, `"state_update"`) || strings.Contains(line, `"content":[]`)
	}
	history, replayed := slices.DeleteFunc(history, own), slices.DeleteFunc(c.take(t, root), own)
	if diff := cmp.Diff(history, replayed[:min(len(history), len(replayed))]); diff != "" {
		t.Errorf("with a replay: %s", diff)
	}
	must.Do(t, again.Delete(ctx))
	if listed() {
		t.Error("a deleted session is listed")
	}
	if _, err := agent.ResumeSession(ctx, req); !errors.Is(err, acpv2.ErrResourceNotFound) {
		t.Errorf("got %v for a deleted session, want %v", err, acpv2.ErrResourceNotFound)
	}
}

// TestTypeScriptNegotiation connects a client of version 1 to TypeScript agents of both versions, which it asks for version
// 2 first. The agent of version 1 learns from the same request which files and terminals the client serves.
func TestTypeScriptNegotiation(t *testing.T) {
	dir := installed.Dir(t)
	for script, want := range map[string]int{"agent.mjs": 1, "v2-agent.mjs": 2} {
		t.Run(script, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			root := greetingRoot(t)
			reads := make(chan string, 1)
			command := exec.Command("node", filepath.Join(dir, script))
			command.Stderr = t.Output()
			var messages conformance.Recording
			defer func() {
				keepClean(t, fmt.Sprintf("n%d-typescript-agent", want), root, messages.Messages())
			}()
			tap := conformance.Tap(t, conformance.Client, acp.Command(command), &conformance.TapOptions{
				Schema: conformance.Negotiated(conformance.V1(), conformance.V2()), OnMessage: messages.Add,
			})
			version := 0
			v1, err := acp.Connect(ctx, translate.Transport(tap, translate.ClientSide, 1, &translate.Options{
				Chosen: func(v int) { version = v },
			}), filesV1(reads), nil)
			if err != nil || version != want {
				t.Fatalf("got version %d, %v, want %d", version, err, want)
			}
			session := must.Get(v1.NewSession(ctx, &acp.NewSessionRequest{Cwd: root}))(t)
			// Its request for permission gets no answer.
			if res, err := session.Prompt(ctx, acp.TextBlock("Now edit notes.txt.")); err != nil || res.StopReason != acp.StopReasonCancelled {
				t.Errorf("got %+v, %v", res, err)
			}
			if version == 2 { // it reads files itself
				reads <- filepath.Join(root, "greeting.txt")
			}
			if got := <-reads; got != filepath.Join(root, "greeting.txt") {
				t.Errorf("the agent has read %q", got)
			}
			must.Do(t, v1.Close())
		})
	}
}

// filesV1 returns handlers of version 1 that serve a missing file and refuse everything.
func filesV1(reads chan<- string) acp.ClientHandlers {
	return acp.ClientHandlers{
		ReadTextFile: func(_ context.Context, _ *acp.ClientSession, req *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
			reads <- req.Path
			return nil, acp.ErrResourceNotFound.WithData(map[string]string{"uri": "file://" + req.Path})
		},
		RequestPermission: func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
		},
	}
}
