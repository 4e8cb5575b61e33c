package agentkit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/acpv2/agentkit"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/tier"
)

// faulty is a store one of whose methods fails, as long as fails says so.
type faulty struct {
	agentkit.Store
	fails atomic.Pointer[string]
}

const secret = "disk sda1 is broken"

func (f *faulty) set(method string) { f.fails.Store(&method) }

func (f *faulty) err(method string) error {
	if m := f.fails.Load(); m != nil && *m == method {
		return errors.New(secret)
	}
	return nil
}

func (f *faulty) Create(ctx context.Context, r sessionstore.Record) error {
	return errors.Join(f.err("Create"), f.Store.Create(ctx, r))
}

func (f *faulty) Get(ctx context.Context, id acp.SessionID) (sessionstore.Record, error) {
	r, err := f.Store.Get(ctx, id)
	return r, errors.Join(f.err("Get"), err)
}

func (f *faulty) Change(ctx context.Context, id acp.SessionID, change func(*sessionstore.Record) error) error {
	if err := f.err("Change"); err != nil {
		return err
	}
	return f.Store.Change(ctx, id, change)
}

func (f *faulty) Append(ctx context.Context, id acp.SessionID, updates ...acpv2.SessionUpdate) error {
	if err := f.err("Append"); err != nil {
		return err
	}
	return f.Store.Append(ctx, id, updates...)
}

func (f *faulty) Updates(ctx context.Context, id acp.SessionID) iter.Seq2[acpv2.SessionUpdate, error] {
	return func(yield func(acpv2.SessionUpdate, error) bool) {
		for update, err := range f.Store.Updates(ctx, id) {
			if !yield(update, err) {
				return
			}
			if err := f.err("Updates"); err != nil { // in the middle
				yield(acpv2.SessionUpdate{}, err)
				return
			}
		}
	}
}

func (f *faulty) List(ctx context.Context, q sessionstore.Query) (sessionstore.Page, error) {
	page, err := f.Store.List(ctx, q)
	return page, errors.Join(f.err("List"), err)
}

func (f *faulty) Delete(ctx context.Context, id acp.SessionID) error {
	if err := f.err("Delete"); err != nil {
		return err
	}
	return f.Store.Delete(ctx, id)
}

// A store that fails is no reason to lose a session that is open, or to keep one open that the client was not told of, and
// the client hears nothing of what is wrong inside.
func TestStoreFails(t *testing.T) {
	store := &faulty{Store: open(t, t.TempDir(), nil)}
	config := parrot(store)
	config.Logger = slog.New(slog.DiscardHandler)
	config.MaxSessions = 2
	var opened, closed atomic.Int32
	var unsaid, unstored error
	config.Open = func(context.Context, *session, *agentkit.Opening) error { opened.Add(1); return nil }
	config.Close = func(*session) { closed.Add(1) }
	config.Prompt = func(ctx context.Context, s *session, req *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
		if text, _ := req.Prompt[0].Text(); text != "" {
			store.set(text)
		}
		unstored = s.Update(ctx, acpv2.StartToolCall("c", "Call", acpv2.WithStatus(acpv2.ToolCallStatusCompleted)))
		unsaid = s.SaveState(ctx)
		return acpv2.EndTurn(), nil
	}
	c, end := connect(t, config, acpv2.AgentOptions{Conn: acpv2.ConnOptions{Logger: config.Logger}})
	hidden := func(what string, err error) {
		t.Helper()
		if err == nil || strings.Contains(err.Error(), "disk") || strings.Contains(err.Error(), "sess_") {
			t.Errorf("%s: %v", what, err)
		}
	}
	s := c.create(t, "/w")
	prompt(t, s, "Nothing")
	if unstored != nil || unsaid != nil {
		t.Fatal(unstored, unsaid)
	}
	prompt(t, s, "Append")
	if !errors.Is(unstored, agentkit.ErrNotStored) || unsaid != nil {
		t.Errorf("an update that is not stored: %v; the state: %v", unstored, unsaid)
	}
	if _, shown := c.heard(); shown.Items["status c"] != "completed" {
		t.Errorf("shown is %v", shown)
	}
	_, err := s.Prompt(t.Context(), acpv2.TextBlock("x"))
	hidden("a prompt that is not stored", err)
	if err != nil && !strings.Contains(err.Error(), "could not be stored") {
		t.Errorf("a prompt that is not stored: %v", err)
	}
	store.set("")
	prompt(t, s, "Change")
	if unstored != nil || unsaid == nil {
		t.Errorf("%v, and the state: %v", unstored, unsaid)
	}
	store.set("List")
	for _, err := range c.Sessions(t.Context(), "") {
		hidden("list", err)
	}
	store.set("Create")
	_, err = c.NewSession(t.Context(), &acpv2.NewSessionRequest{Cwd: "/w"})
	hidden("new", err)
	for _, method := range []string{"Get", "Change", "Updates"} {
		store.set("")
		if _, err := c.resume(t, s.ID()); err != nil {
			t.Fatal(err)
		}
		store.set(method)
		_, err := c.resume(t, s.ID())
		hidden("resume with "+method, err)
		if _, err := s.Prompt(t.Context(), acpv2.TextBlock("x")); !errors.Is(err, acpv2.SessionNotFound(s.ID())) {
			t.Errorf("after a resume that failed the session is there: %v", err)
		}
	}
	store.set("Delete")
	_, err = c.DeleteSession(t.Context(), &acpv2.DeleteSessionRequest{SessionID: s.ID()})
	hidden("delete", err)
	store.set("")
	if _, err := c.resume(t, s.ID()); err != nil {
		t.Errorf("after all that: %v", err)
	}
	c.create(t, "/w") // there is room
	end()
	if opened.Load() != closed.Load() || opened.Load() < 5 {
		t.Errorf("%d were opened, and %d closed", opened.Load(), closed.Load())
	}
}

// That an update is too large to be stored is no reason to lose the text before it.
func TestTooLargeAlone(t *testing.T) {
	store := open(t, t.TempDir(), &sessionstore.Options{MaxUpdate: 1000})
	config := parrot(store)
	var unstored error
	config.Prompt = func(ctx context.Context, s *session, _ *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
		err := s.Update(ctx, acpv2.AgentMessageText("m", "before"))
		unstored = s.Update(ctx, acpv2.StartToolCall("c", strings.Repeat("x", 2000)))
		return acpv2.EndTurn(), errors.Join(err, s.Update(ctx, acpv2.AgentMessageText("m", " after")))
	}
	c, _ := connect(t, config, acpv2.AgentOptions{})
	s := c.create(t, "/w")
	prompt(t, s, "x")
	if !errors.Is(unstored, agentkit.ErrNotStored) || !errors.Is(unstored, sessionstore.ErrTooLarge) {
		t.Errorf("too large: %v", unstored)
	}
	var said strings.Builder
	for update, err := range store.Updates(t.Context(), acp.SessionID(s.ID())) {
		if err != nil {
			t.Fatal(err)
		}
		if chunk, ok := update.Variant.(*acpv2.SessionUpdateAgentMessageChunk); ok {
			text, _ := chunk.Content.Text()
			said.WriteString(text)
		}
	}
	if said.String() != "before after" {
		t.Errorf("stored is %q", said.String())
	}
}

// A session is busy from when a prompt comes until its turn is over, also between its answer and its work.
func TestResumeBetweenAnswerAndWork(t *testing.T) {
	answered, goOn := make(chan struct{}), make(chan struct{})
	var opts acpv2.AgentOptions
	opts.Conn.Hooks.Serve = func(ctx context.Context, call *acpv2.CallInfo, next func(context.Context) error) error {
		err := next(ctx)
		if call.Method == acpv2.MethodPrompt {
			close(answered)
			<-goOn
		}
		return err
	}
	var closed atomic.Int32
	config := parrot(open(t, t.TempDir(), nil))
	config.Close = func(*session) { closed.Add(1) }
	c, _ := connect(t, config, opts)
	s := c.create(t, "/w")
	var calls sync.WaitGroup
	calls.Go(func() {
		res, err := s.Prompt(t.Context(), acpv2.TextBlock("x"))
		if err != nil || res.Idle.StopReason() != "end_turn" {
			t.Errorf("the turn: %v, %v", res, err)
		}
	})
	<-answered
	if _, err := c.resume(t, s.ID()); !errors.Is(err, acpv2.ErrInvalidRequest) || closed.Load() != 0 {
		t.Errorf("a session with a prompt was resumed: %v, and %d were closed", err, closed.Load())
	}
	close(goOn)
	calls.Wait()
	if _, err := c.resume(t, s.ID()); err != nil || closed.Load() != 1 {
		t.Errorf("a session whose turn is over: %v, and %d were closed", err, closed.Load())
	}
}

// A prompt whose answer is an error of the author's, or of a hook, leaves nothing behind that keeps its session busy.
func TestPromptGivenUp(t *testing.T) {
	var opts acpv2.AgentOptions
	opts.Conn.Hooks.Serve = func(ctx context.Context, call *acpv2.CallInfo, next func(context.Context) error) error {
		err := next(ctx)
		if call.Method == acpv2.MethodPrompt {
			return acpv2.ErrInvalidRequest.WithMessagef("not now")
		}
		return err
	}
	config := parrot(open(t, t.TempDir(), nil))
	config.Prompt = func(context.Context, *session, *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
		t.Error("a prompt was worked off that was refused")
		return acpv2.EndTurn(), nil
	}
	var closed atomic.Int32
	config.Close = func(*session) { closed.Add(1) }
	c, _ := connect(t, config, opts)
	s := c.create(t, "/w")
	if res, err := s.Prompt(t.Context(), acpv2.TextBlock("x")); err == nil {
		t.Errorf("taken: %v", res)
	}
	if err := s.Close(t.Context()); err != nil { // which waits until the prompt is over
		t.Fatal(err)
	}
	if closed.Load() != 1 {
		t.Errorf("%d were closed", closed.Load())
	}
}

// Of prompts that come at once just as many are refused as are too many, and not those that came first.
func TestMaxWaitingAtOnce(t *testing.T) {
	for range 20 {
		store := open(t, t.TempDir(), nil)
		synctest.Test(t, func(t *testing.T) {
			config := parrot(store)
			config.MaxWaiting = 3
			config.Prompt = func(ctx context.Context, _ *session, _ *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
				<-ctx.Done()
				return acpv2.IdleStateUpdate{}, context.Cause(ctx)
			}
			c, end := connect(t, config, acpv2.AgentOptions{})
			s := c.create(t, "/w")
			var calls sync.WaitGroup
			var refused atomic.Int32
			for range 12 {
				calls.Go(func() {
					_, err := c.Prompt(t.Context(), &acpv2.PromptRequest{SessionID: s.ID(), Prompt: []acpv2.ContentBlock{acpv2.TextBlock("x")}})
					if err != nil && strings.Contains(err.Error(), "prompts are waiting") {
						refused.Add(1)
					}
				})
			}
			synctest.Wait()
			if refused.Load() != 12-4 {
				t.Errorf("%d were refused", refused.Load())
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
			calls.Wait()
			end()
		})
	}
}

// What the store has of another program, or of one that was killed, is shown as it is, and what has not ended is ended.
func TestReplayForeignHistory(t *testing.T) {
	dir := t.TempDir()
	store := open(t, dir, nil)
	now := time.Now()
	if err := store.Create(t.Context(), sessionstore.Record{Info: sessionstore.Info{ID: "ÄÖ/../\x00\n", Cwd: "/w", Created: now, Updated: now}}); err != nil {
		t.Fatal(err)
	}
	call := func(id acpv2.ToolCallID, status ...acpv2.ToolCallStatus) acpv2.SessionUpdate {
		u := acpv2.ToolCallUpdate{ToolCallID: id, Title: acpv2.Some("Call")}
		if len(status) > 0 {
			u.Status = acpv2.Some(status[0])
		}
		return acpv2.NewSessionUpdateToolCallUpdate(u)
	}
	compaction := func(id acpv2.CompactionID, status acpv2.CompactionStatus) acpv2.SessionUpdate {
		return acpv2.NewSessionUpdateCompactionUpdate(acpv2.CompactionUpdate{CompactionID: id, Status: status})
	}
	summary := func(id acpv2.CompactionID, text string) acpv2.SessionUpdate {
		return acpv2.NewSessionUpdateCompactionSummaryChunk(acpv2.CompactionSummaryChunk{CompactionID: id, Content: acpv2.TextBlock(text)})
	}
	history := []acpv2.SessionUpdate{
		acpv2.NewSessionUpdateUserMessageChunk(acpv2.ContentChunk{MessageID: "u", Content: acpv2.TextBlock("chunk")}),
		acpv2.AgentMessageText("m", "one"),
		acpv2.NewSessionUpdateAgentMessage(acpv2.AgentMessage{MessageID: "m", Content: acpv2.Null[[]acpv2.ContentBlock]()}),
		acpv2.AgentMessageText("m", "two"),
		acpv2.NewSessionUpdateToolCallContentChunk(acpv2.ToolCallContentChunk{ToolCallID: "headless", Content: acpv2.ToolText("x")}),
		call("silent"),
		call("paused", acpv2.ToolCallStatusPaused),
		call("strange", "_strange"),
		call("cancelled", acpv2.ToolCallStatusCancelled),
		call("again", acpv2.ToolCallStatusCompleted),
		acpv2.NewSessionUpdateToolCallUpdate(acpv2.ToolCallUpdate{ToolCallID: "again", Status: acpv2.Null[acpv2.ToolCallStatus]()}),
		output("headless", "x"),
		acpv2.NewSessionUpdateTerminalUpdate(acpv2.TerminalUpdate{TerminalID: "ended", ExitStatus: acpv2.Some(acpv2.TerminalExitStatus{ExitCode: acpv2.Some(int64(1))})}),
		output("ended", "late"),
		summary("headless", "x"),
		compaction("killed", acpv2.CompactionStatusInProgress),
		compaction("done", acpv2.CompactionStatusCompleted),
		summary("done", "short"),
	}
	if err := store.Append(t.Context(), "ÄÖ/../\x00\n", history...); err != nil {
		t.Fatal(err)
	}
	c, _ := connect(t, parrot(store), acpv2.AgentOptions{})
	for range 2 {
		if _, err := c.resume(t, "ÄÖ/../\x00\n"); err != nil {
			t.Fatal(err)
		}
		_, got := c.heard()
		want := map[string]string{
			"user u": "chunk", "agent m": "two",
			"call headless": "x,", "status headless": "failed",
			"status silent": "failed", "status paused": "failed", "status strange": "failed", "status cancelled": "cancelled", "status again": "failed",
			"terminal headless": "x", "exit headless": "0 false", "terminal ended": "late", "exit ended": "1 true",
			"compaction headless": "x", "compaction status headless": "failed",
			"compaction status killed": "failed", "compaction done": "short", "compaction status done": "completed",
		}
		if diff := cmp.Diff(want, got.Items); diff != "" {
			t.Errorf("shown (-want +got):\n%s", diff)
		}
	}
}

// Sessions that a client asks for by ids that cannot be are not there.
func TestHostileIDs(t *testing.T) {
	c, _ := connect(t, parrot(open(t, t.TempDir(), nil)), acpv2.AgentOptions{})
	for _, id := range []acpv2.SessionID{"..", "../../etc/passwd", "con", "a\x00b", acpv2.SessionID(strings.Repeat("x", 1<<20))} {
		_, err := c.resume(t, id)
		if !errors.Is(err, acpv2.ErrResourceNotFound) && !errors.Is(err, acpv2.ErrInvalidParams) {
			t.Errorf("%.20q: %.200v", id, err)
		}
		if _, err := c.CloseSession(t.Context(), &acpv2.CloseSessionRequest{SessionID: id}); err == nil {
			t.Errorf("%.20q was closed", id)
		}
		if _, err := c.DeleteSession(t.Context(), &acpv2.DeleteSessionRequest{SessionID: id}); err != nil {
			t.Errorf("%.20q: %.200v", id, err)
		}
	}
}

// The client's view and the store's are the same when several goroutines speak, and the history can be read meanwhile.
func TestManyVoices(t *testing.T) {
	tier.Need(t, tier.Normal)
	config := parrot(open(t, t.TempDir(), nil))
	config.Prompt = func(ctx context.Context, s *session, _ *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
		var voices sync.WaitGroup
		for i := range 8 {
			voices.Go(func() {
				id := fmt.Sprint("v", i)
				for range 50 {
					err := errors.Join(
						s.Update(ctx, acpv2.AgentMessageText(acpv2.MessageID(id), "x")),
						s.Update(ctx, output(acpv2.TerminalID(id), "y")),
						s.Update(ctx, acpv2.UpdateToolCall(acpv2.ToolCallID(id), acpv2.WithContent(acpv2.ToolText("z")))),
					)
					if err != nil {
						t.Error(err)
					}
				}
				said := 0
				for update, err := range s.History(ctx) {
					if err != nil {
						t.Error(err)
					}
					if chunk, ok := update.Variant.(*acpv2.SessionUpdateAgentMessageChunk); ok && string(chunk.MessageID) == id {
						text, _ := chunk.Content.Text()
						said += len(text)
					}
				}
				if said != 50 {
					t.Errorf("%s has said %d of 50", id, said)
				}
			})
		}
		voices.Wait()
		for i := range 8 {
			err := errors.Join(
				s.Update(ctx, acpv2.UpdateToolCall(acpv2.ToolCallID(fmt.Sprint("v", i)), acpv2.WithStatus(acpv2.ToolCallStatusCompleted))),
				s.Update(ctx, acpv2.NewSessionUpdateTerminalUpdate(acpv2.TerminalUpdate{
					TerminalID: acpv2.TerminalID(fmt.Sprint("v", i)), ExitStatus: acpv2.Some(acpv2.TerminalExitStatus{}),
				})),
			)
			if err != nil {
				return acpv2.IdleStateUpdate{}, err
			}
		}
		return acpv2.EndTurn(), nil
	}
	c, _ := connect(t, config, acpv2.AgentOptions{})
	s := c.create(t, "/w")
	prompt(t, s, "x")
	_, live := c.heard()
	if _, err := c.resume(t, s.ID()); err != nil {
		t.Fatal(err)
	}
	if _, again := c.heard(); !cmp.Equal(live.Items, again.Items) {
		t.Errorf("(-live +again):\n%s", cmp.Diff(live.Items, again.Items))
	}
}

// A connection that ends in the middle of a turn is no failure of the session: all is stored, and nothing is logged.
func TestConnectionEndsInTurn(t *testing.T) {
	store := open(t, t.TempDir(), nil)
	var log bytes.Buffer
	config := parrot(store)
	config.Logger = slog.New(slog.NewTextHandler(&log, nil))
	said := make(chan struct{})
	config.Prompt = func(ctx context.Context, s *session, _ *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
		err := s.Update(ctx, acpv2.AgentMessageText("m", "Hello"))
		close(said)
		<-ctx.Done()
		return acpv2.IdleStateUpdate{}, errors.Join(err, context.Cause(ctx))
	}
	c, end := connect(t, config, acpv2.AgentOptions{Conn: acpv2.ConnOptions{DrainTime: time.Millisecond}})
	s := c.create(t, "/w")
	if _, err := c.Prompt(t.Context(), &acpv2.PromptRequest{SessionID: s.ID(), Prompt: []acpv2.ContentBlock{acpv2.TextBlock("My title")}}); err != nil {
		t.Fatal(err)
	}
	<-said
	end()
	if log.Len() > 0 {
		t.Errorf("logged is %s", log.String())
	}
	r, err := store.Get(t.Context(), acp.SessionID(s.ID()))
	if err != nil || r.Title != "My title" {
		t.Errorf("stored is %+v, %v", r, err)
	}
	n := 0
	for _, err := range store.Updates(t.Context(), acp.SessionID(s.ID())) {
		if n++; err != nil {
			t.Error(err)
		}
	}
	if n != 2 {
		t.Errorf("%d updates are stored", n)
	}
}

// A handler that ends because its session was closed can say so: the client reads why.
func TestClosedUnderHandler(t *testing.T) {
	begun := make(chan struct{})
	config := parrot(open(t, t.TempDir(), nil))
	config.Open = func(_ context.Context, _ *session, o *agentkit.Opening) error {
		o.ConfigOptions = []acpv2.SessionConfigOption{acpv2.BooleanOption("x", "X", false)}
		return nil
	}
	sessions := agentkit.NewSessions(config)
	handlers := sessions.Handlers()
	handlers.SetSessionConfigOption = agentkit.Bind(sessions, func(ctx context.Context, _ *session, _ *acpv2.SetSessionConfigOptionRequest) (*acpv2.SetSessionConfigOptionResponse, error) {
		close(begun)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	client, agent := acpv2.Pipe()
	served, err := acpv2.StartAgent(t.Context(), agent, handlers, &acpv2.AgentOptions{Info: acpv2.Implementation{Name: "a", Version: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	tapped := conformance.Tap(t, conformance.Client, client, &conformance.TapOptions{Schema: conformance.V2()})
	c, err := acpv2.Connect(t.Context(), tapped, acpv2.ClientHandlers{
		SessionUpdate: func(context.Context, *acpv2.ClientSession, *acpv2.UpdateSessionNotification) error { return nil },
	}, &acpv2.ClientOptions{Info: acpv2.Implementation{Name: "c", Version: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.NewSession(t.Context(), &acpv2.NewSessionRequest{Cwd: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	calls.Go(func() {
		err := s.SetBooleanConfigOption(t.Context(), "x", true)
		if err == nil || !strings.Contains(err.Error(), "the session was closed") {
			t.Errorf("the handler's answer: %v", err)
		}
	})
	<-begun
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	calls.Wait()
	if err := errors.Join(c.Close(), served.Wait()); err != nil {
		t.Error(err)
	}
	sessions.Close()
}

// An author's function that panics takes nobody else with it, and leaves nothing behind.
func TestHooksPanic(t *testing.T) {
	var log bytes.Buffer
	config := parrot(open(t, t.TempDir(), nil))
	config.Logger = slog.New(slog.NewTextHandler(&log, nil))
	config.MaxSessions = 1
	var first *session
	config.Open = func(_ context.Context, s *session, _ *agentkit.Opening) error {
		if first == nil {
			first = s
			panic("Open")
		}
		return nil
	}
	config.Close = func(*session) { panic("Close") }
	config.Title = func([]acpv2.ContentBlock) string { panic("Title") }
	c, end := connect(t, config, acpv2.AgentOptions{Conn: acpv2.ConnOptions{Logger: slog.New(slog.DiscardHandler)}})
	if _, err := c.NewSession(t.Context(), &acpv2.NewSessionRequest{Cwd: "/w"}); err == nil {
		t.Error("a session was opened whose Open has panicked")
	}
	if first.Context().Err() == nil {
		t.Error("the context of the session goes on that was not opened")
	}
	s := c.create(t, "/w") // there is room
	res, err := s.Prompt(t.Context(), acpv2.TextBlock("x"))
	if err != nil || res.Idle.StopReason() != "error" {
		t.Errorf("a turn whose title panics: %v, %v", res, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Errorf("closing: %v", err)
	}
	c.create(t, "/w")
	end() // which closes it
	if n := strings.Count(log.String(), "Config.Close panicked"); n != 2 {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
}

// With MaxWaiting -1 one prompt runs, and none waits.
func TestNoneWaits(t *testing.T) {
	config := parrot(open(t, t.TempDir(), nil))
	config.MaxWaiting = -1
	begun := make(chan struct{})
	config.Prompt = func(ctx context.Context, _ *session, _ *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
		close(begun)
		<-ctx.Done()
		return acpv2.IdleStateUpdate{}, context.Cause(ctx)
	}
	c, _ := connect(t, config, acpv2.AgentOptions{})
	s := c.create(t, "/w")
	prompt := &acpv2.PromptRequest{SessionID: s.ID(), Prompt: []acpv2.ContentBlock{acpv2.TextBlock("x")}}
	if _, err := c.Prompt(t.Context(), prompt); err != nil {
		t.Fatal(err)
	}
	<-begun
	if _, err := c.Prompt(t.Context(), prompt); !errors.Is(err, acpv2.ErrInvalidRequest) {
		t.Errorf("a second prompt: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// When all sessions are closed, the prompt that runs ends, and the one that waits is not begun and not stored.
func TestCloseAll(t *testing.T) {
	store := open(t, t.TempDir(), nil)
	config := parrot(store)
	begun := make(chan struct{}, 2)
	config.Prompt = func(ctx context.Context, _ *session, _ *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return acpv2.IdleStateUpdate{}, context.Cause(ctx)
	}
	sessions := agentkit.NewSessions(config)
	var waits sync.WaitGroup
	waits.Add(2)
	var opts acpv2.AgentOptions
	opts.Conn.Hooks.Serve = func(ctx context.Context, call *acpv2.CallInfo, next func(context.Context) error) error {
		if call.Method == acpv2.MethodPrompt {
			waits.Done()
		}
		return next(ctx)
	}
	c, _ := connectTo(t, sessions, opts)
	s := c.create(t, "/w")
	prompt := &acpv2.PromptRequest{SessionID: s.ID(), Prompt: []acpv2.ContentBlock{acpv2.TextBlock("x")}}
	if _, err := c.Prompt(t.Context(), prompt); err != nil {
		t.Fatal(err)
	}
	<-begun
	var calls sync.WaitGroup
	calls.Go(func() {
		if _, err := c.Prompt(t.Context(), prompt); !errors.Is(err, acpv2.ErrResourceNotFound) {
			t.Errorf("the prompt that waits: %v", err)
		}
	})
	waits.Wait()
	sessions.Close()
	calls.Wait()
	stored := 0
	for _, err := range store.Updates(t.Context(), acp.SessionID(s.ID())) {
		if stored++; err != nil {
			t.Error(err)
		}
	}
	if stored != 1 || len(begun) != 0 {
		t.Errorf("%d prompts are stored, and %d more were begun", stored, len(begun))
	}
}
