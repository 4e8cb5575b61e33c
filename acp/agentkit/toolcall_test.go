package agentkit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
	"github.com/acpgo/sdk/internal/test/ways"
)

type prompt = func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error)

// conversation is a session between an agent whose prompts are handled by a function of the test, and a client.
type conversation struct {
	*acp.ClientSession
	*conformance.Recording
	t *testing.T
}

// converse connects the two, and judges what they say, advice included.
func converse(t *testing.T, handle prompt, client acp.ClientHandlers) *conversation {
	t.Helper()
	agentEnd, clientEnd := ways.Pipe(t)
	served := make(chan error, 1)
	go func() {
		served <- acp.ServeAgent(context.WithoutCancel(t.Context()), agentEnd, acp.AgentHandlers{
			NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
				return &acp.NewSessionResponse{SessionID: "s"}, nil
			},
			Prompt: agentkit.HandlePrompt(handle),
		}, &acp.AgentOptions{
			Info: acp.Implementation{Name: "agent", Version: "0"},
			Conn: acp.ConnOptions{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))},
		})
	}()
	recording := &conformance.Recording{}
	options := &conformance.TapOptions{Level: conformance.Advice, OnMessage: recording.Add}
	conn := must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, clientEnd, options), client,
		&acp.ClientOptions{Info: acp.Implementation{Name: "client", Version: "0"}}))(t)
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	session := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/work"}))(t)
	return &conversation{session, recording, t}
}

// turn runs a turn that is to end for a reason, and returns what the client knows of the tool calls after it, in the
// order of their beginning.
func (c *conversation) turn(want acp.StopReason) []acp.ToolCall {
	c.t.Helper()
	res, err := c.Prompt(c.t.Context(), acp.TextBlock("go"))
	if err != nil || res.StopReason != want {
		c.t.Fatalf("the turn ended with %v, %v", res, err)
	}
	return c.calls()
}

func (c *conversation) calls() []acp.ToolCall {
	var calls []acp.ToolCall
	for _, u := range c.sent() {
		switch u := u.Variant.(type) {
		case *acp.SessionUpdateToolCall:
			calls = append(calls, acp.ToolCall(*u))
		case *acp.SessionUpdateToolCallUpdate:
			i := slices.IndexFunc(calls, func(call acp.ToolCall) bool { return call.ToolCallID == u.ToolCallID })
			calls[i].Apply(acp.ToolCallUpdate(*u))
		}
	}
	return calls
}

// sent are the updates that were sent up to the last answer to a prompt.
func (c *conversation) sent() []acp.SessionUpdate {
	var updates []acp.SessionUpdate
	for _, m := range c.Messages() {
		var message struct {
			Method string
			Params json.RawMessage
		}
		if err := json.Unmarshal(m.Line, &message); err != nil {
			c.t.Fatal(err)
		}
		if message.Method == acp.MethodSessionUpdate {
			var n acp.SessionNotification
			if err := json.Unmarshal(message.Params, &n); err != nil {
				c.t.Fatal(err)
			}
			updates = append(updates, n.Update)
		}
	}
	return updates
}

var endTurn = &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}

// shows are the texts of content, with names for what is not text.
func shows(call acp.ToolCall) []string {
	var all []string
	for _, content := range call.Content {
		switch v := content.Variant.(type) {
		case *acp.ToolCallContentContent:
			text := v.Content.Text()
			all = append(all, text)
		case *acp.ToolCallContentDiff:
			old := "new"
			if text, ok := v.OldText.Get(); ok {
				old = text
			}
			all = append(all, fmt.Sprintf("diff %s %s>%s", v.Path, old, v.NewText))
		case *acp.ToolCallContentTerminal:
			all = append(all, "terminal "+string(v.TerminalID))
		}
	}
	return all
}

func wantShows(t *testing.T, call acp.ToolCall, status acp.ToolCallStatus, want ...string) {
	t.Helper()
	if call.Status != status {
		t.Errorf("%s is %s, want %s", call.Title, call.Status, status)
	}
	if diff := cmp.Diff(want, shows(call)); diff != "" {
		t.Errorf("%s shows (-want +got):\n%s", call.Title, diff)
	}
}

type terminal acp.TerminalID

func (t terminal) ID() acp.TerminalID { return acp.TerminalID(t) }

// The life of a call: what each method does to what the client knows, and that the value knows the same.
func TestToolCall(t *testing.T) {
	var states []acp.ToolCall
	c := converse(t, func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		call, err := agentkit.StartToolCall(ctx, s, "Edit", acp.WithKind(acp.ToolKindEdit), acp.WithName("edit"),
			acp.WithInput(map[string]any{"path": "/work/a", "n": 1}), acp.WithLocation("/work/a", 3))
		if err != nil {
			return nil, err
		}
		steps := []func() error{
			func() error { return call.Diff("/work/a", "old", "new") },
			func() error { return call.Diff("/work/b", "", "created") },
			func() error { return call.Progress("one") },
			func() error { return call.Diff("/work/a", "old", "newer") },
			func() error { return call.Progress("two") },
			func() error { return call.Update(acp.WithTitle("Edit two files")) },
			func() error { return call.Done(acp.WithOutput([]int{2})) },
		}
		states = append(states, call.State())
		for _, step := range steps {
			if err := step(); err != nil {
				return nil, err
			}
			states = append(states, call.State())
		}
		return endTurn, nil
	}, acp.ClientHandlers{})
	call := c.turn(acp.StopReasonEndTurn)[0]
	wantShows(t, call, acp.ToolCallStatusCompleted, "diff /work/a old>newer", "diff /work/b new>created", "one", "two")
	if diff := cmp.Diff(call, states[len(states)-1]); diff != "" {
		t.Errorf("the client knows another call (-client +agent):\n%s", diff)
	}
	var statuses []acp.ToolCallStatus
	for _, s := range states {
		statuses = append(statuses, s.Status)
	}
	p, i, d := acp.ToolCallStatusPending, acp.ToolCallStatusInProgress, acp.ToolCallStatusCompleted
	if want := []acp.ToolCallStatus{p, p, p, i, i, i, i, d}; !slices.Equal(statuses, want) {
		t.Errorf("the statuses were %v, want %v", statuses, want)
	}
	if call.Title != "Edit two files" || call.Name.Value() != "edit" || string(call.RawInput) != `{"n":1,"path":"/work/a"}` || string(call.RawOutput) != "[2]" {
		t.Errorf("got %+v", call)
	}
	if len(call.Locations) != 2 || call.Locations[0].Line.Value() != 3 || call.Locations[1].Path != "/work/b" {
		t.Errorf("got locations %+v", call.Locations)
	}
	if len(c.sent()) != len(states) {
		t.Errorf("%d updates were sent, want %d", len(c.sent()), len(states))
	}
}

// A question carries the whole call, and only an option that allows is not an error.
func TestToolCallAsk(t *testing.T) {
	options := []acp.PermissionOption{
		acp.AllowOnce("once", "Once"), acp.AllowAlways("always", "Always"), acp.RejectOnce("no", "No"), acp.RejectAlways("never", "Never"),
	}
	for _, test := range []struct {
		answer acp.RequestPermissionOutcome
		chosen acp.PermissionOptionID
		want   error
		status acp.ToolCallStatus
		text   string
	}{
		{acp.PermissionSelected("once"), "once", nil, acp.ToolCallStatusInProgress, ""},
		{acp.PermissionSelected("always"), "always", nil, acp.ToolCallStatusInProgress, ""},
		{acp.PermissionSelected("no"), "no", agentkit.ErrRejected, acp.ToolCallStatusPending, "the user did not allow it"},
		{acp.PermissionSelected("never"), "never", agentkit.ErrRejected, acp.ToolCallStatusPending, "the user did not allow it"},
		{acp.RequestPermissionOutcome{Variant: &acp.RequestPermissionOutcomeCancelled{}}, "", agentkit.ErrDismissed, acp.ToolCallStatusPending, "the question was dismissed"},
	} {
		t.Run(string(test.chosen), func(t *testing.T) {
			var asked acp.ToolCallUpdate
			c := converse(t, func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
				call, err := agentkit.StartToolCall(ctx, s, "Run make", acp.WithKind(acp.ToolKindExecute), acp.WithInput("make"), acp.WithLocation("/work", 0))
				if err != nil {
					return nil, err
				}
				if err := call.Diff("/work/a", "b", "c"); err != nil {
					return nil, err
				}
				chosen, err := call.Ask(ctx, options...)
				if !errors.Is(err, test.want) || (err != nil) != (test.want != nil) || chosen.OptionID != test.chosen {
					t.Errorf("got option %q and %v", chosen.OptionID, err)
				}
				if got := call.State().Status; got != test.status {
					t.Errorf("the call is %s, want %s", got, test.status)
				}
				if err != nil {
					return endTurn, call.Fail(err)
				}
				return endTurn, call.Done()
			}, acp.ClientHandlers{
				RequestPermission: func(_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
					asked = req.ToolCall
					return &acp.RequestPermissionResponse{Outcome: test.answer}, nil
				},
			})
			call := c.turn(acp.StopReasonEndTurn)[0]
			if test.want == nil {
				wantShows(t, call, acp.ToolCallStatusCompleted, "diff /work/a b>c")
			} else {
				wantShows(t, call, acp.ToolCallStatusFailed, "diff /work/a b>c", test.text)
			}
			whole := acp.ToolCall{ToolCallID: asked.ToolCallID}
			whole.Apply(asked)
			wantShows(t, whole, acp.ToolCallStatusPending, "diff /work/a b>c")
			if whole.Title != "Run make" || whole.Kind != acp.ToolKindExecute || string(whole.RawInput) != `"make"` || len(whole.Locations) != 2 {
				t.Errorf("asked about %+v", whole)
			}
		})
	}
}

// stranger answers questions with what nobody offered.
type stranger struct {
	sink
	outcome acp.RequestPermissionOutcome
}

func (s *stranger) RequestPermission(context.Context, acp.ToolCallUpdate, ...acp.PermissionOption) (acp.RequestPermissionOutcome, error) {
	return s.outcome, nil
}

// What was not offered, what has a kind that nobody knows, and an answer of an unknown kind allow nothing.
func TestToolCallStrangeAnswers(t *testing.T) {
	odd := acp.PermissionOption{OptionID: "odd", Name: "Odd", Kind: "allow_sometimes"}
	for _, outcome := range []acp.RequestPermissionOutcome{
		acp.PermissionSelected("other"), acp.PermissionSelected("odd"), acp.PermissionSelected(""), {},
		{Variant: &acp.RequestPermissionOutcomeUnknown{Tag: "allowed", Raw: []byte(`{"outcome":"allowed","optionId":"yes"}`)}},
	} {
		s := &stranger{outcome: outcome}
		call := must.Get(agentkit.StartToolCall(t.Context(), s, "Run"))(t)
		if _, err := call.Ask(t.Context(), acp.AllowOnce("yes", "Yes"), odd); !errors.Is(err, agentkit.ErrRejected) {
			t.Errorf("%+v: got %v", outcome, err)
		}
		if got := call.State().Status; got != acp.ToolCallStatusPending {
			t.Errorf("%+v: the call is %s", outcome, got)
		}
		must.Do(t, call.Close())
	}
}

// What Fail shows of an error is what a client would see if a handler returned it.
func TestToolCallFailShows(t *testing.T) {
	secret := errors.New("open /home/ada/.token: permission denied")
	s := &sink{}
	for _, test := range []struct {
		err  error
		want []string
	}{
		{nil, nil},
		{secret, []string{"The tool failed."}},
		{fmt.Errorf("reading: %w", secret), []string{"The tool failed."}},
		{acp.Public(errors.New("no such page")), []string{"no such page"}},
		{fmt.Errorf("secret: %w", acp.Public(errors.New("no such page"))), []string{"no such page"}},
		{acp.ErrResourceNotFound, []string{"Resource not found"}},
		{&acp.CallError{Method: "fs/read_text_file", Err: acp.ErrResourceNotFound.WithMessagef("/home/ada")}, []string{"/home/ada"}},
		{&acp.CallError{Method: "session/prompt", Err: acp.ErrResourceNotFound.WithMessagef("/home/ada")}, []string{"The tool failed."}},
		{fmt.Errorf("run: %w", acp.ErrTurnCancelled), []string{"cancelled"}},
		{agentkit.ErrRejected, []string{"the user did not allow it"}},
	} {
		call := must.Get(agentkit.StartToolCall(t.Context(), s, "Tool"))(t)
		must.Do(t, call.Fail(test.err))
		wantShows(t, call.State(), acp.ToolCallStatusFailed, test.want...)
	}
}

// A call that has ended says nothing more.
func TestToolCallAfterItsEnd(t *testing.T) {
	for name, end := range map[string]func(*agentkit.ToolCall) error{
		"done":   func(c *agentkit.ToolCall) error { return c.Done() },
		"fail":   func(c *agentkit.ToolCall) error { return c.Fail(nil) },
		"update": func(c *agentkit.ToolCall) error { return c.Update(acp.WithStatus(acp.ToolCallStatusCompleted)) },
		"close":  func(c *agentkit.ToolCall) error { return c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			s := &sink{}
			call := must.Get(agentkit.StartToolCall(t.Context(), s, "Tool"))(t)
			must.Do(t, end(call))
			sent := len(s.sent())
			_, asked := call.Ask(t.Context())
			for i, err := range []error{
				asked, call.Progress("x"), call.Diff("/a", "", "b"), call.Terminal(terminal("t")), call.Update(), call.Done(), call.Fail(nil),
			} {
				if !errors.Is(err, agentkit.ErrEnded) {
					t.Errorf("method %d: %v", i, err)
				}
			}
			if err := call.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if len(s.sent()) != sent {
				t.Error("something was sent")
			}
		})
	}
}

// What is open at the end of a turn is closed before the answer: texts, then calls as failed.
func TestOpenAtTheEndOfATurn(t *testing.T) {
	for name, handle := range map[string]prompt{
		"answer": func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			leaveOpen(t, ctx, s)
			return endTurn, nil
		},
		"derived context": func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			leaveOpen(t, ctx, s)
			return endTurn, nil
		},
		"error": func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			leaveOpen(t, ctx, s)
			return nil, acp.InvalidParamsf("no")
		},
		"panic": func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			leaveOpen(t, ctx, s)
			panic("a test")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := converse(t, handle, acp.ClientHandlers{})
			_, err := c.Prompt(t.Context(), acp.TextBlock("go"))
			want := map[string]error{"error": acp.ErrInvalidParams, "panic": acp.Code(-32603)}[name]
			if !errors.Is(err, want) {
				t.Errorf("the turn ended with %v", err)
			}
			wantClosed(t, c, "this did not end")
		})
	}
}

// leaveOpen leaves a text and two calls open, and ends a third.
func leaveOpen(t *testing.T, ctx context.Context, s *acp.AgentSession) {
	message := agentkit.NewMessage(ctx, s)
	if _, err := message.WriteString("half a character: \xe2\x82"); err != nil {
		t.Error(err)
	}
	for _, title := range []string{"one", "two", "three"} {
		call, err := agentkit.StartToolCall(ctx, s, title)
		if err == nil && title == "two" {
			err = call.Done()
		} else if err == nil {
			err = call.Progress("begun")
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// wantClosed checks what came of that before the answer, which is the last message.
func wantClosed(t *testing.T, c *conversation, why string) {
	t.Helper()
	calls := c.calls()
	if len(calls) != 3 {
		t.Fatalf("got %d calls", len(calls))
	}
	wantShows(t, calls[0], acp.ToolCallStatusFailed, "begun", why)
	wantShows(t, calls[1], acp.ToolCallStatusCompleted)
	wantShows(t, calls[2], acp.ToolCallStatusFailed, "begun", why)
	var text strings.Builder
	for _, u := range c.sent() {
		more := u.AgentText()
		text.WriteString(more)
	}
	if text.String() != "half a character: \uFFFD\uFFFD" {
		t.Errorf("the message was %q", text.String())
	}
	messages := c.Messages()
	if last := messages[len(messages)-1]; bytes.Contains(last.Line, []byte(`"method"`)) {
		t.Errorf("the last message is %s", last.Line)
	}
}

// The same when the turn is cancelled, in which nothing can be started then.
func TestOpenWhenATurnIsCancelled(t *testing.T) {
	late := make(chan error, 2)
	c := converse(t, func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		leaveOpen(t, ctx, s)
		<-ctx.Done()
		_, err := agentkit.StartToolCall(ctx, s, "late")
		late <- err
		_, err = agentkit.NewMessage(ctx, s).WriteString("late")
		late <- err
		return nil, errors.New("it does not matter why")
	}, acp.ClientHandlers{})
	turn := c.Stream(t.Context(), acp.TextBlock("go"))
	n := 0
	for u := range turn.Updates() {
		if _, ok := u.Variant.(*acp.SessionUpdateToolCallUpdate); ok {
			if n++; n == 3 {
				turn.Cancel()
			}
		}
	}
	if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonCancelled {
		t.Fatalf("the turn ended with %v, %v", res, err)
	}
	for range 2 {
		if err := <-late; !errors.Is(err, acp.ErrTurnCancelled) {
			t.Errorf("starting something: %v", err)
		}
	}
	wantClosed(t, c, "cancelled")
}

// A call that waits for the user is closed when the turn is cancelled.
func TestAskInACancelledTurn(t *testing.T) {
	asked := make(chan struct{})
	c := converse(t, func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		call, err := agentkit.StartToolCall(ctx, s, "Run")
		if err != nil {
			return nil, err
		}
		_, err = call.Ask(ctx)
		if !errors.Is(err, acp.ErrTurnCancelled) {
			t.Errorf("Ask: %v", err)
		}
		return nil, err
	}, acp.ClientHandlers{
		RequestPermission: func(ctx context.Context, _ *acp.ClientSession, _ *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			close(asked)
			<-ctx.Done()
			return nil, ctx.Err()
		},
	})
	turn := c.Stream(t.Context(), acp.TextBlock("go"))
	<-asked
	turn.Cancel()
	if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonCancelled {
		t.Fatalf("the turn ended with %v, %v", res, err)
	}
	wantShows(t, c.calls()[0], acp.ToolCallStatusFailed, "cancelled")
}

// After the end of its turn nothing can be started with its context, and what a goroutine still holds has ended.
func TestAfterTheTurn(t *testing.T) {
	var ctx context.Context
	var session *acp.AgentSession
	var call *agentkit.ToolCall
	var message *agentkit.Text
	c := converse(t, func(turn context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (res *acp.PromptResponse, err error) {
		ctx, session = context.WithoutCancel(turn), s
		message = agentkit.NewMessage(ctx, s)
		call, err = agentkit.StartToolCall(ctx, s, "Tool")
		return endTurn, err
	}, acp.ClientHandlers{})
	wantShows(t, c.turn(acp.StopReasonEndTurn)[0], acp.ToolCallStatusFailed, "this did not end")
	_, started := agentkit.StartToolCall(ctx, session, "late")
	_, written := agentkit.NewMessage(ctx, session).WriteString("late")
	_, more := message.WriteString("late")
	for i, err := range []error{started, written, more, call.Progress("late")} {
		if !errors.Is(err, agentkit.ErrEnded) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// Texts and calls of a turn keep the order in which they were said, without a Flush.
func TestOrderWithinATurn(t *testing.T) {
	const rounds = 200
	c := converse(t, func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		thought, message := agentkit.NewThought(ctx, s), agentkit.NewMessage(ctx, s)
		for i := range rounds {
			fmt.Fprintf(thought, "thought %d", i)
			fmt.Fprintf(message, "message %d", i)
			call, err := agentkit.StartToolCall(ctx, s, fmt.Sprintf("call %d", i))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(message, "while %d", i)
			if err := call.Done(); err != nil {
				return nil, err
			}
		}
		return endTurn, nil
	}, acp.ClientHandlers{})
	c.turn(acp.StopReasonEndTurn)
	var got, want []string
	for _, u := range c.sent() {
		switch u := u.Variant.(type) {
		case *acp.SessionUpdateAgentThoughtChunk:
			text := u.Content.Text()
			got = append(got, text)
		case *acp.SessionUpdateAgentMessageChunk:
			text := u.Content.Text()
			got = append(got, text)
		case *acp.SessionUpdateToolCall:
			got = append(got, u.Title)
		case *acp.SessionUpdateToolCallUpdate:
			got = append(got, "done")
		}
	}
	for i := range rounds {
		want = append(want, fmt.Sprintf("thought %d", i), fmt.Sprintf("message %d", i), fmt.Sprintf("call %d", i), fmt.Sprintf("while %d", i), "done")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}

// What is shown stays bounded: the last texts stay, and diffs are never cut.
func TestToolCallIsBounded(t *testing.T) {
	s := &sink{}
	start := func() *agentkit.ToolCall {
		call := must.Get(agentkit.StartToolCall(t.Context(), s, "Tool"))(t)
		return call
	}
	size := func(texts []string) (n int) {
		for _, text := range texts {
			n += len(text)
		}
		return n
	}
	call := start()
	must.Do(t, call.Diff("/a", "old", "new"))
	for i := range 1000 {
		must.Do(t, call.Progress(fmt.Sprint(i)))
	}
	texts := shows(call.State())
	if texts[0] != "diff /a old>new" || !strings.Contains(texts[1], "not shown") || texts[len(texts)-1] != "999" || len(texts) > 202 || len(texts) < 150 {
		t.Errorf("%d texts: %q", len(texts), texts)
	}
	for i, text := range texts[2:] {
		if want := fmt.Sprint(1000 - len(texts[2:]) + i); text != want {
			t.Fatalf("text %d is %s, want %s", i, text, want)
		}
	}
	call = start()
	for i := range 100 {
		must.Do(t, call.Progress(strings.Repeat("é", 5000)+fmt.Sprint(i)))
	}
	if n := size(shows(call.State())); n > 65<<10 || n < 40<<10 {
		t.Errorf("%d bytes are shown", n)
	}
	must.Do(t, call.Progress("begin"+strings.Repeat("é", 50_000)+"end"))
	texts = shows(call.State())
	if len(texts) != 2 || !strings.HasPrefix(texts[1], "…é") || !strings.HasSuffix(texts[1], "end") || len(texts[1]) > 65<<10 {
		t.Errorf("%d texts are shown, the last of %d bytes", len(texts), len(texts[len(texts)-1]))
	}

	call = start()
	large := strings.Repeat("x", 5<<20)
	must.Do(t, call.Diff("/a", "", large))
	before := len(s.sent())
	for _, err := range []error{call.Diff("/b", large, ""), call.Update(acp.WithContent(acp.ToolText(large), acp.ToolText(large)))} {
		if !errors.Is(err, agentkit.ErrTooLarge) {
			t.Errorf("got %v", err)
		}
	}
	if len(s.sent()) != before || len(call.State().Content) != 1 {
		t.Error("what was refused has changed something")
	}
	if err := call.Fail(acp.Public(errors.New(large))); err != nil {
		t.Errorf("Fail: %v", err)
	}
}

// Many goroutines use many calls at once: every update that was sent says what the one before it has left.
func TestToolCallsAtOnce(t *testing.T) {
	tier.Need(t, tier.Normal)
	goroutines, steps := 8, tier.Pick(0, 15, 50, 50)
	c := converse(t, func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		shared, err := agentkit.StartToolCall(ctx, s, "shared")
		if err != nil {
			return nil, err
		}
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				own, err := agentkit.StartToolCall(ctx, s, fmt.Sprint(g))
				if err != nil {
					t.Error(err)
					return
				}
				message := agentkit.NewMessage(ctx, s)
				for i := range steps {
					if _, err := fmt.Fprintf(message, "%d ", i); err != nil {
						t.Error(err)
					}
					if err := errors.Join(shared.Diff(fmt.Sprintf("/%d", g), "", fmt.Sprint(i)), own.Progress(fmt.Sprint(i))); err != nil {
						t.Error(err)
					}
				}
				if g%2 == 0 {
					if err := own.Done(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		return endTurn, shared.Done()
	}, acp.ClientHandlers{})
	calls := c.turn(acp.StopReasonEndTurn)
	ids := map[acp.ToolCallID]bool{}
	for _, call := range calls {
		ids[call.ToolCallID] = true
		switch {
		case call.Title == "shared":
			if len(call.Content) != goroutines || call.Status != acp.ToolCallStatusCompleted {
				t.Errorf("shared is %s and shows %q", call.Status, shows(call))
			}
			for _, text := range shows(call) {
				if !strings.HasSuffix(text, fmt.Sprintf(">%d", steps-1)) {
					t.Errorf("shared shows %q", text)
				}
			}
		case call.Title[0]%2 == 0:
			if len(call.Content) != steps || call.Status != acp.ToolCallStatusCompleted {
				t.Errorf("%s is %s and shows %q", call.Title, call.Status, shows(call))
			}
		default:
			if len(call.Content) != steps+1 || call.Status != acp.ToolCallStatusFailed {
				t.Errorf("%s is %s and shows %q", call.Title, call.Status, shows(call))
			}
		}
	}
	if len(ids) != goroutines+1 {
		t.Errorf("got %d ids", len(ids))
	}
}

// What cannot be sent is an error that says so, changes nothing, and leaves the call to be ended.
func TestToolCallErrors(t *testing.T) {
	c := converse(t, func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		if _, err := agentkit.StartToolCall(ctx, s, "no", acp.WithInput(math.NaN())); err == nil || !strings.Contains(err.Error(), "NaN") {
			t.Errorf("an input that is not JSON: %v", err)
		}
		call, err := agentkit.StartToolCall(ctx, s, "yes", acp.WithInput(struct{ N []int }{[]int{1}}), agentkit.WithToolCallID("mine"))
		if err != nil {
			return nil, err
		}
		if call.ID() != "mine" {
			t.Errorf("the id is %s", call.ID())
		}
		if err := call.Diff("relative", "", "x"); !errors.Is(err, acp.ErrInvalidParams) {
			t.Errorf("a relative path: %v", err)
		}
		if err := call.Done(acp.WithOutput(func() {})); err == nil {
			t.Error("an output that is not JSON was sent")
		}
		if state := call.State(); len(state.Content) != 0 || len(state.Locations) != 0 || state.Status != acp.ToolCallStatusPending {
			t.Errorf("the call is %+v", state)
		}
		return endTurn, call.Done(acp.WithOutput(1.5))
	}, acp.ClientHandlers{})
	call := c.turn(acp.StopReasonEndTurn)[0]
	wantShows(t, call, acp.ToolCallStatusCompleted)
	if string(call.RawInput) != `{"N":[1]}` || string(call.RawOutput) != "1.5" {
		t.Errorf("got %s and %s", call.RawInput, call.RawOutput)
	}
}

// A call whose context has ended for another reason than the turn's is still ended, and nothing else is said.
func TestToolCallAfterItsContext(t *testing.T) {
	c := converse(t, func(turn context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		for _, title := range []string{"done", "failed", "left"} {
			ctx, cancel := context.WithCancelCause(turn)
			defer cancel(nil)
			call, err := agentkit.StartToolCall(ctx, s, title)
			if err != nil {
				return nil, err
			}
			why := errors.New("too slow")
			cancel(why)
			if err := call.Progress("late"); !errors.Is(err, why) {
				t.Errorf("Progress: %v", err)
			}
			switch title {
			case "done":
				err = call.Done()
			case "failed":
				err = call.Fail(why)
			}
			if err != nil {
				return nil, err
			}
		}
		return endTurn, nil
	}, acp.ClientHandlers{})
	calls := c.turn(acp.StopReasonEndTurn)
	wantShows(t, calls[0], acp.ToolCallStatusCompleted)
	wantShows(t, calls[1], acp.ToolCallStatusFailed, "The tool failed.")
	wantShows(t, calls[2], acp.ToolCallStatusFailed, "this did not end")
}

// BenchmarkToolCall tells the client of a call, of ten texts, and of its end.
func BenchmarkToolCall(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		call := must.Get(agentkit.StartToolCall(b.Context(), mute{}, "Run make", acp.WithKind(acp.ToolKindExecute)))(b)
		for range 10 {
			must.Do(b, call.Progress("a line of output"))
		}
		must.Do(b, call.Done())
	}
}

// mute is a session whose user is never asked.
type mute struct{ agentkit.Asker }

func (mute) Update(context.Context, acp.SessionUpdate) error { return nil }
