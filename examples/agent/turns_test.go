package main

import (
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

func TestPRM5_PRM7_StopReasons(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	say(t, s, "hello", acp.StopReasonEndTurn)
	say(t, s, "stop with max_tokens", acp.StopReasonMaxTokens)
	say(t, s, "stop with max_turn_requests", acp.StopReasonMaxTurnRequests)
	say(t, s, "refuse this", acp.StopReasonRefusal)
}

// What was refused is not part of the conversation any more.
func TestRefusedPromptsAreForgotten(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	say(t, s, "refuse my secret", acp.StopReasonRefusal)
	say(t, s, "hello", acp.StopReasonEndTurn)
	before := len(h.seen(s.ID()))
	if _, err := h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: h.dir}); err != nil {
		t.Fatal(err)
	}
	chunks := variants[*acp.SessionUpdateUserMessageChunk](h.seen(s.ID())[before:])
	if len(chunks) != 1 {
		t.Fatalf("replayed %d chunks of the user, want 1", len(chunks))
	}
	if got := chunks[0].Content.Text(); got != "hello" {
		t.Errorf("replayed %q", got)
	}
}

func TestPRM10_PRM11_CancelWhileStreaming(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	turn := s.Stream(t.Context(), acp.TextBlock("Write a very long story about nothing"))
	n := 0
	for range turn.Updates() {
		if n++; n == 3 {
			turn.Cancel()
		}
	}
	res, err := turn.Result()
	if err != nil || res.StopReason != acp.StopReasonCancelled {
		t.Fatalf("got %v, %v, want cancelled", res, err)
	}
	if n < 3 {
		t.Errorf("got %d updates", n)
	}
	say(t, s, "hello", acp.StopReasonEndTurn)
}

// The longest text has an end, too.
func TestVeryLongIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := connect(t, setup{})
		s := h.session(t)
		before := time.Now()
		say(t, s, "Write a very long story", acp.StopReasonEndTurn)
		if took := time.Since(before); took < time.Minute || took > 3*time.Minute {
			t.Errorf("took %v", took)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// PRM-13: whatever belongs to a turn comes before its answer.
func TestPRM13_UpdatesPrecedeTheAnswer(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	say(t, s, "plan and think, run and edit", acp.StopReasonEndTurn)
	answer := h.wire.answerTo(t, 0, acp.MethodPrompt)
	// Nothing of this turn follows up to the answer of a later request.
	list(t, h, "")
	for _, m := range h.wire.all()[answer+1:] {
		if m.kind() != "" {
			t.Errorf("after the answer: %s", m.line)
		}
	}
}

func TestPRM16_CancelWithoutATurn(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	if err := s.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.Cancel(t.Context(), &acp.CancelNotification{SessionID: "nope"}); err != nil {
		t.Fatal(err)
	}
	say(t, s, "hello", acp.StopReasonEndTurn)
}

// A request that is cancelled as such is answered with its code, and takes along what it waits for.
func TestCAN1_CAN5_CancelRequest(t *testing.T) {
	asked := make(chan struct{})
	released := make(chan error, 1)
	h := connect(t, setup{handlers: func(h *acp.ClientHandlers) {
		h.RequestPermission = func(ctx context.Context, _ *acp.ClientSession, _ *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			close(asked)
			<-ctx.Done()
			released <- context.Cause(ctx)
			return nil, ctx.Err()
		}
	}})
	s := h.session(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := rpc.Call[acp.PromptResponse](ctx, h.RPC(), acp.MethodPrompt,
			&acp.PromptRequest{SessionID: s.ID(), Prompt: []acp.ContentBlock{acp.TextBlock("permission please")}})
		done <- err
	}()
	<-asked
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := <-released; !errors.Is(err, acp.ErrRequestCancelled) {
		t.Errorf("the permission request ended with %v", err)
	}
	answer := h.wire.answerTo(t, 0, acp.MethodPrompt)
	if m := h.wire.all()[answer]; m.Error == nil || acp.Code(m.Error.Code) != rpc.ErrRequestCancelled {
		t.Errorf("the prompt was answered %s", m.line)
	}
	say(t, s, "hello", acp.StopReasonEndTurn)
}

// TRN-1: what was said comes back as it was.
func TestTRN1_Echo(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	const text = "tabs\tand\r\nlines,   spaces, ümläute, 日本語, 😀, \u2028, \x01, \"quotes\" and \\ %d %s"
	say(t, s, text, acp.StopReasonEndTurn)
	if got := spoken(h.seen(s.ID())); got != "You said: "+text {
		t.Errorf("got %q", got)
	}
}

func TestINI15_CON1_Attachments(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	data := base64.StdEncoding.EncodeToString([]byte("12345"))
	for _, test := range []struct {
		block acp.ContentBlock
		want  string
	}{
		{acp.TextBlock("just text"), "You said: just text"},
		{acp.ResourceLinkBlock("main.go", "file:///main.go"), "a link to main.go (file:///main.go)"},
		{acp.ImageBlock(data, "image/png"), "an image (image/png, 5 bytes)"},
		{acp.AudioBlock(data, "audio/wav"), "a sound (audio/wav, 5 bytes)"},
		{acp.ResourceBlock(acp.TextResource("some text", "file:///a.txt")), "the text of file:///a.txt (9 bytes)"},
		{acp.ResourceBlock(acp.BlobResource(data, "file:///a.bin")), "the content of file:///a.bin (5 bytes)"},
		{acp.ResourceBlock(acp.BlobResource("???", "file:///b.bin")), "the content of file:///b.bin (not base64)"},
	} {
		before := len(h.seen(s.ID()))
		res, err := s.Prompt(t.Context(), test.block)
		if err != nil || res.StopReason != acp.StopReasonEndTurn {
			t.Errorf("%T: got %v, %v", test.block.Variant, res, err)
		}
		if got := spoken(h.seen(s.ID())[before:]); !strings.Contains(got, test.want) {
			t.Errorf("got %q, want %q in it", got, test.want)
		}
		links := 0
		for _, c := range variants[*acp.SessionUpdateAgentMessageChunk](h.seen(s.ID())[before:]) {
			if reflect.DeepEqual(c.Content, test.block) {
				links++
			}
		}
		if _, link := test.block.Variant.(*acp.ContentBlockResourceLink); link != (links == 1) {
			t.Errorf("%T: %d links to it", test.block.Variant, links)
		}
	}
}

func TestPLN3_PlansAreWhole(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	say(t, s, "plan to think and to fail", acp.StopReasonEndTurn)
	plans := variants[*acp.SessionUpdatePlan](h.seen(s.ID()))
	if len(plans) != 4 { // three steps, and the end
		t.Fatalf("got %d plans, want 4", len(plans))
	}
	for i, p := range plans {
		for j, entry := range p.Entries {
			want := acp.PlanEntryStatusPending
			if j < i {
				want = acp.PlanEntryStatusCompleted
			} else if j == i {
				want = acp.PlanEntryStatusInProgress
			}
			if entry.Content != plans[0].Entries[j].Content || entry.Status != want {
				t.Errorf("plan %d, entry %d: got %+v, want %s", i, j, entry, want)
			}
		}
	}
}

// statuses are the states that each tool call went through.
func statuses(t *testing.T, updates []acp.SessionUpdate) map[acp.ToolCallID][]acp.ToolCallStatus {
	t.Helper()
	states := map[acp.ToolCallID][]acp.ToolCallStatus{}
	for _, u := range updates {
		switch v := u.Variant.(type) {
		case *acp.SessionUpdateToolCall:
			if states[v.ToolCallID] != nil {
				t.Errorf("tool call %s twice", v.ToolCallID) // TOL-2
			}
			states[v.ToolCallID] = []acp.ToolCallStatus{v.Status}
			for _, l := range v.Locations {
				if !filepath.IsAbs(l.Path) { // TOL-7
					t.Errorf("location %q", l.Path)
				}
			}
		case *acp.SessionUpdateToolCallUpdate:
			if states[v.ToolCallID] == nil {
				t.Errorf("update of the unknown tool call %s", v.ToolCallID) // TOL-1
			}
			if status, ok := v.Status.Get(); ok {
				states[v.ToolCallID] = append(states[v.ToolCallID], status)
			}
		}
	}
	return states
}

// wantStatuses checks the states of the only tool call.
func wantStatuses(t *testing.T, updates []acp.SessionUpdate, want ...acp.ToolCallStatus) {
	t.Helper()
	states := statuses(t, updates)
	for id, got := range states {
		if !slices.Equal(got, want) || len(states) != 1 {
			t.Errorf("tool call %s: got %v, want %v", id, got, want)
		}
	}
	if len(states) == 0 {
		t.Errorf("no tool call")
	}
}

func TestTOL9_PRM6_EditAllowed(t *testing.T) {
	h := connect(t, setup{})
	path := put(t, h.dir, "demo.txt", "old\n")
	s := h.session(t)
	say(t, s, "edit demo.txt", acp.StopReasonEndTurn)
	wantStatuses(t, h.seen(s.ID()), acp.ToolCallStatusPending, acp.ToolCallStatusInProgress, acp.ToolCallStatusCompleted)
	if got := get(t, path); got != "old\nThe agent was here.\n" {
		t.Errorf("the file holds %q", got)
	}
	asked := h.wire.index(0, calls(acp.MethodRequestPermission))
	announced := h.wire.index(0, isUpdate("tool_call"))
	answered := h.wire.answerTo(t, 0, acp.MethodRequestPermission)
	running := h.wire.index(0, func(m message) bool {
		return m.kind() == "tool_call_update" && strings.Contains(m.line, `"in_progress"`)
	})
	written := h.wire.index(0, calls(acp.MethodWriteTextFile))
	if order := []int{announced, asked, answered, running, written}; !slices.IsSorted(order) || announced < 0 {
		t.Errorf("announced, asked, answered, running, written: %v", order)
	}
	diffs := 0
	for _, u := range variants[*acp.SessionUpdateToolCallUpdate](h.seen(s.ID())) {
		for _, c := range u.Content.Value() {
			if d, ok := c.Variant.(*acp.ToolCallContentDiff); ok && d.Path == path && d.OldText.Value() == "old\n" {
				diffs++
			}
		}
	}
	if diffs != 1 {
		t.Errorf("got %d diffs, want 1", diffs)
	}
}

func TestEditCreatesAFile(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	say(t, s, "/edit new/file.md", acp.StopReasonEndTurn)
	if got := get(t, filepath.Join(h.dir, "new", "file.md")); got != "The agent was here.\n" {
		t.Errorf("the file holds %q", got)
	}
}

func TestPermissionOutcomes(t *testing.T) {
	type handler = func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error)
	answerWith := func(outcome acp.RequestPermissionOutcome) handler {
		return func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return &acp.RequestPermissionResponse{Outcome: outcome}, nil
		}
	}
	for name, test := range map[string]struct {
		handler handler
		stop    acp.StopReason
		last    acp.ToolCallStatus
		expect  []string
	}{
		"allow":   {choose("allow"), acp.StopReasonEndTurn, acp.ToolCallStatusCompleted, nil},
		"always":  {choose("always"), acp.StopReasonEndTurn, acp.ToolCallStatusCompleted, nil},
		"reject":  {choose("reject"), acp.StopReasonEndTurn, acp.ToolCallStatusFailed, nil},
		"unknown": {choose("whatever"), acp.StopReasonEndTurn, acp.ToolCallStatusFailed, nil},
		"cancelled": {
			answerWith(acp.PermissionCancelled()), acp.StopReasonCancelled, acp.ToolCallStatusFailed, nil,
		},
		"outcome of an unknown kind": {
			answerWith(acp.RequestPermissionOutcome{Variant: &acp.RequestPermissionOutcomeUnknown{
				Tag: "_later", Raw: []byte(`{"outcome":"_later"}`),
			}}),
			acp.StopReasonEndTurn, acp.ToolCallStatusFailed,
			[]string{"/outcome"},
		},
		"error": {
			func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
				return nil, errors.New("no idea")
			},
			acp.StopReasonEndTurn, acp.ToolCallStatusFailed, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := connect(t, setup{expect: test.expect, handlers: func(h *acp.ClientHandlers) { h.RequestPermission = test.handler }})
			s := h.session(t)
			say(t, s, "edit demo.txt", test.stop)
			for id, states := range statuses(t, h.seen(s.ID())) {
				if got := states[len(states)-1]; got != test.last {
					t.Errorf("tool call %s: got %v, want %s at last", id, states, test.last)
				}
			}
			_, err := os.Stat(filepath.Join(h.dir, "demo.txt"))
			if written := err == nil; written != (test.last == acp.ToolCallStatusCompleted) {
				t.Errorf("the file was written: %t", written)
			}
		})
	}
}

func TestAlwaysIsRemembered(t *testing.T) {
	asked := 0
	h := connect(t, setup{handlers: func(h *acp.ClientHandlers) {
		h.RequestPermission = func(_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			asked++
			ids := map[acp.PermissionOptionID]bool{}
			for _, o := range req.Options { // TOL-6
				ids[o.OptionID] = true
				if o.Name == "" || !o.Kind.Known() {
					t.Errorf("bad option %+v", o)
				}
			}
			if len(ids) != len(req.Options) {
				t.Errorf("options share ids: %+v", req.Options)
			}
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("always")}, nil
		}
	}})
	s := h.session(t)
	say(t, s, "edit a.txt", acp.StopReasonEndTurn)
	say(t, s, "edit b.txt", acp.StopReasonEndTurn)
	if asked != 1 {
		t.Errorf("asked %d times, want once", asked)
	}
	say(t, s, "run something", acp.StopReasonEndTurn)
	if asked != 2 {
		t.Errorf("asked %d times, want again for another kind of tool", asked)
	}
}

// TOL-4, PRM-9, PRM-12: a turn that is cancelled while it asks ends as cancelled, and so does the call.
func TestPRM12_CancelWhileAsking(t *testing.T) {
	asked := make(chan struct{})
	h := connect(t, setup{handlers: func(h *acp.ClientHandlers) {
		h.RequestPermission = func(ctx context.Context, _ *acp.ClientSession, _ *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			close(asked)
			<-ctx.Done()
			return nil, ctx.Err()
		}
	}})
	s := h.session(t)
	turn := s.Stream(t.Context(), acp.TextBlock("edit demo.txt"))
	<-asked
	turn.Cancel()
	updates := slices.Collect(turn.Updates())
	res, err := turn.Result()
	if err != nil || res.StopReason != acp.StopReasonCancelled {
		t.Fatalf("got %v, %v, want cancelled", res, err)
	}
	wantStatuses(t, updates, acp.ToolCallStatusPending, acp.ToolCallStatusFailed)
	if _, err := os.Stat(filepath.Join(h.dir, "demo.txt")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file was written: %v", err)
	}
}

// SES-21, SES-22, SES-23: relative paths are relative to the session's directory, always.
func TestSES21_RelativePaths(t *testing.T) {
	h := connect(t, setup{})
	put(t, h.dir, "marker.txt", "found me")
	s := h.session(t, func(r *acp.NewSessionRequest) { r.AdditionalDirectories = []string{t.TempDir()} })
	for range 2 {
		before := len(h.seen(s.ID()))
		say(t, s, "Please read `marker.txt`.", acp.StopReasonEndTurn)
		if got := shown(h.seen(s.ID())[before:]); !strings.Contains(got, "found me") {
			t.Errorf("got %q", got)
		}
	}
}

// shown is the text that tool calls showed.
func shown(updates []acp.SessionUpdate) string {
	var all strings.Builder
	for _, u := range variants[*acp.SessionUpdateToolCallUpdate](updates) {
		for _, c := range u.Content.Value() {
			if block, ok := c.Variant.(*acp.ToolCallContentContent); ok {
				text := block.Content.Text()
				all.WriteString(text)
			}
		}
	}
	return all.String()
}

func TestSES24_NothingOutside(t *testing.T) {
	for name, s := range map[string]setup{"through the client": {}, "directly": {handlers: bare}} {
		t.Run(name, func(t *testing.T) {
			h := connect(t, s)
			outside := put(t, t.TempDir(), "secret.txt", "secret")
			if err := os.Symlink(outside, filepath.Join(h.dir, "link.txt")); err != nil {
				t.Fatal(err)
			}
			s := h.session(t)
			for _, prompt := range []string{"read " + outside, "edit " + outside, "read link.txt", "edit link.txt", "read ../secret.txt"} {
				before := len(h.seen(s.ID()))
				say(t, s, prompt, acp.StopReasonEndTurn)
				for _, states := range statuses(t, h.seen(s.ID())[before:]) {
					if states[len(states)-1] != acp.ToolCallStatusFailed {
						t.Errorf("%s: got %v", prompt, states)
					}
				}
			}
			if got := get(t, outside); got != "secret" {
				t.Errorf("the file outside holds %q", got)
			}
		})
	}
}

// FS-1, FS-2: what the client does not offer is not asked of it, and the work is done all the same.
func TestFS1_FS2_WithoutTheClient(t *testing.T) {
	for name, change := range map[string]func(*acp.ClientHandlers){
		"neither":  bare,
		"no read":  func(h *acp.ClientHandlers) { h.ReadTextFile = nil },
		"no write": func(h *acp.ClientHandlers) { h.WriteTextFile = nil },
		"both":     nil,
	} {
		t.Run(name, func(t *testing.T) {
			h := connect(t, setup{handlers: change})
			caps := acp.ClientHandlers{}
			if change == nil {
				change = func(*acp.ClientHandlers) {}
			}
			caps.ReadTextFile = func(context.Context, *acp.ClientSession, *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
				return nil, nil
			}
			caps.WriteTextFile = func(context.Context, *acp.ClientSession, *acp.WriteTextFileRequest) (*acp.WriteTextFileResponse, error) {
				return nil, nil
			}
			change(&caps)
			path := put(t, h.dir, "demo.txt", "old\n")
			s := h.session(t)
			say(t, s, "read demo.txt and edit demo.txt", acp.StopReasonEndTurn)
			if got := shown(h.seen(s.ID())); !strings.Contains(got, "old") {
				t.Errorf("read %q", got)
			}
			if got := get(t, path); got != "old\nThe agent was here.\n" {
				t.Errorf("the file holds %q", got)
			}
			if read := h.wire.index(0, calls(acp.MethodReadTextFile)) >= 0; read != (caps.ReadTextFile != nil) {
				t.Errorf("read through the client: %t", read)
			}
			if wrote := h.wire.index(0, calls(acp.MethodWriteTextFile)) >= 0; wrote != (caps.WriteTextFile != nil) {
				t.Errorf("wrote through the client: %t", wrote)
			}
		})
	}
}

func TestReadOfAMissingFileFails(t *testing.T) {
	for name, s := range map[string]setup{"through the client": {}, "directly": {handlers: bare}} {
		t.Run(name, func(t *testing.T) {
			h := connect(t, s)
			s := h.session(t)
			say(t, s, "read", acp.StopReasonEndTurn)
			wantStatuses(t, h.seen(s.ID()), acp.ToolCallStatusPending, acp.ToolCallStatusInProgress, acp.ToolCallStatusFailed)
		})
	}
}

// ledger checks that every terminal that was created was shown before it was released, and released
// (TRM-7, TRM-8, SCH-14, TOL-8).
func ledger(t *testing.T, h *host, want int) {
	t.Helper()
	all := h.wire.all()
	created := 0
	for i, m := range all {
		if m.Method != acp.MethodCreateTerminal {
			continue
		}
		answer := all[h.wire.answerTo(t, i, acp.MethodCreateTerminal)]
		if answer.Error != nil {
			continue
		}
		created++
		_, id, _ := strings.Cut(string(answer.Result), `"terminalId":"`)
		id, _, _ = strings.Cut(id, `"`)
		naming := func(method string) func(message) bool {
			return func(m message) bool { return m.Method == method && strings.Contains(m.line, id) }
		}
		released := h.wire.index(i, naming(acp.MethodReleaseTerminal))
		if released < 0 {
			t.Errorf("terminal %s was not released", id)
			continue
		}
		if at := h.wire.index(i, naming(acp.MethodSessionUpdate)); at < 0 || at > released {
			t.Errorf("terminal %s was not shown before it was released", id)
		}
		if at := h.wire.index(released, naming(acp.MethodSessionUpdate)); at >= 0 {
			t.Errorf("terminal %s was shown after it was released", id)
		}
	}
	if created != want {
		t.Errorf("%d terminals were created, want %d", created, want)
	}
}

func TestTRM7_RunACommand(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	say(t, s, "run `echo hello there`", acp.StopReasonEndTurn)
	wantStatuses(t, h.seen(s.ID()), acp.ToolCallStatusPending, acp.ToolCallStatusInProgress, acp.ToolCallStatusCompleted)
	ledger(t, h, 1)
	create := h.wire.all()[h.wire.index(0, calls(acp.MethodCreateTerminal))]
	if !strings.Contains(string(create.Params), `"args":["hello","there"]`) || !strings.Contains(string(create.Params), h.dir) {
		t.Errorf("created with %s", create.Params)
	}
}

func TestTRM7_CommandsThatFail(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	say(t, s, "run `false`", acp.StopReasonEndTurn)
	wantStatuses(t, h.seen(s.ID()), acp.ToolCallStatusPending, acp.ToolCallStatusInProgress, acp.ToolCallStatusFailed)
	say(t, s, "run `no-such-command-anywhere`", acp.StopReasonEndTurn)
	ledger(t, h, 1)
}

func TestTRM7_CancelledCommandsAreReleased(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	turn := s.Stream(t.Context(), acp.TextBlock("run `sleep 100`"))
	h.wire.await(t, 0, "the wait", calls(acp.MethodWaitForTerminalExit))
	turn.Cancel()
	updates := slices.Collect(turn.Updates())
	res, err := turn.Result()
	if err != nil || res.StopReason != acp.StopReasonCancelled {
		t.Fatalf("got %v, %v, want cancelled", res, err)
	}
	ledger(t, h, 1)
	wantStatuses(t, updates, acp.ToolCallStatusPending, acp.ToolCallStatusInProgress, acp.ToolCallStatusFailed)
	if released, answered := h.wire.index(0, calls(acp.MethodReleaseTerminal)), h.wire.answerTo(t, 0, acp.MethodPrompt); released > answered {
		t.Error("released after the answer")
	}
}

// TRM-8, TRM-10: a command that takes too long is killed, its output read, its terminal released.
func TestTRM8_CommandsThatTakeTooLong(t *testing.T) {
	h := connect(t, setup{commandTime: time.Second}) // in which the terminal is created
	s := h.session(t)
	say(t, s, "run `sleep 100`", acp.StopReasonEndTurn)
	ledger(t, h, 1)
	wantStatuses(t, h.seen(s.ID()), acp.ToolCallStatusPending, acp.ToolCallStatusInProgress, acp.ToolCallStatusFailed)
	killed, read := h.wire.index(0, calls(acp.MethodKillTerminal)), h.wire.index(0, calls(acp.MethodTerminalOutput))
	if killed < 0 || read < killed {
		t.Errorf("killed at %d, read at %d", killed, read)
	}
	if got := shown(h.seen(s.ID())); !strings.Contains(got, "was ended by SIG") {
		t.Errorf("showed %q", got)
	}
}

// The cancellation comes while the client is still starting the command: the terminal is released.
func TestTRM7_CancelWhileCreating(t *testing.T) {
	creating := make(chan struct{})
	h := connect(t, setup{handlers: func(h *acp.ClientHandlers) {
		create := h.CreateTerminal
		h.CreateTerminal = func(ctx context.Context, session *acp.ClientSession, req *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
			close(creating)
			if err := session.Conn().Cancel(ctx, &acp.CancelNotification{SessionID: req.SessionID}); err != nil {
				return nil, err
			}
			return create(context.WithoutCancel(ctx), session, req)
		}
	}})
	s := h.session(t)
	turn := s.Stream(t.Context(), acp.TextBlock("run `sleep 100`"))
	<-creating
	if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonCancelled {
		t.Fatalf("got %v, %v, want cancelled", res, err)
	}
	// The turn does not wait for the terminal, which is released once its id is known.
	if created := h.wire.answerTo(t, 0, acp.MethodCreateTerminal); h.wire.all()[created].Error == nil {
		h.wire.await(t, created, "the release of the terminal", calls(acp.MethodReleaseTerminal))
	}
}

func TestTRM1_TRM2_WithoutTerminals(t *testing.T) {
	h := connect(t, setup{handlers: bare})
	s := h.session(t)
	say(t, s, "run something", acp.StopReasonEndTurn)
	if at := h.wire.index(0, func(m message) bool { return strings.HasPrefix(m.Method, "terminal/") }); at >= 0 {
		t.Errorf("sent %s", h.wire.all()[at].line)
	}
	if got := spoken(h.seen(s.ID())); !strings.Contains(got, "no terminals") {
		t.Errorf("said %q", got)
	}
}

func TestFailingToolsDoNotEndTheTurn(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	say(t, s, "fail and go on", acp.StopReasonEndTurn)
	wantStatuses(t, h.seen(s.ID()), acp.ToolCallStatusPending, acp.ToolCallStatusInProgress, acp.ToolCallStatusFailed)
	if got := spoken(h.seen(s.ID())); !strings.Contains(got, "You said") {
		t.Errorf("said %q", got)
	}
}

// SCH-12, SCH-13, ELI-5, ELI-6, CFG-3: what the client did not advertise is not sent.
func TestSCH12_SCH13_ELI5_PlainClients(t *testing.T) {
	h := connect(t, setup{handlers: bare, options: modest})
	s := h.session(t)
	say(t, s, "notice, compact, form, link, mode", acp.StopReasonEndTurn)
	for _, m := range h.wire.all() {
		switch kind := m.kind(); {
		case kind == "notice", strings.HasPrefix(kind, "compaction"), strings.HasPrefix(m.Method, "elicitation"),
			strings.Contains(m.line, `"boolean"`):
			t.Errorf("sent %s", m.line)
		}
	}
	if got := spoken(h.seen(s.ID())); strings.Count(got, "\n\n") != 4 {
		t.Errorf("said %q", got)
	}
}

func TestNoticesAndCompaction(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	say(t, s, "notice and compact", acp.StopReasonEndTurn)
	got := h.seen(s.ID())
	if n := len(variants[*acp.SessionUpdateNotice](got)); n != 1 {
		t.Errorf("got %d notices, want 1", n)
	}
	if n := len(variants[*acp.SessionUpdateCompactionUpdate](got)); n != 2 {
		t.Errorf("got %d compaction updates, want 2", n)
	}
	if n := len(variants[*acp.SessionUpdateCompactionSummaryChunk](got)); n != 1 {
		t.Errorf("got %d compaction summaries, want 1", n)
	}
}

func TestPRM4_Usage(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	say(t, s, "hello", acp.StopReasonEndTurn)
	usage := variants[*acp.SessionUpdateUsageUpdate](h.seen(s.ID()))
	if len(usage) != 1 || usage[0].Used == 0 || usage[0].Used > usage[0].Size {
		t.Errorf("got %+v", usage)
	}
	req := acp.NewSetSessionConfigOptionRequestBoolean(s.ID(), optionUsage, false)
	if _, err := h.SetSessionConfigOption(t.Context(), &req); err != nil {
		t.Fatal(err)
	}
	say(t, s, "hello", acp.StopReasonEndTurn)
	if n := len(variants[*acp.SessionUpdateUsageUpdate](h.seen(s.ID()))); n != 1 {
		t.Errorf("got %d usage updates after they were switched off, want 1", n)
	}
}
