package agentkit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/acpv2/agentkit"
	"github.com/acpgo/sdk/acp/sessionstore"
)

// A client that resumes a session has afterwards what the first one had, whether it knows the session or not.
func TestResume(t *testing.T) {
	dir := t.TempDir()
	first, end := connect(t, parrot(open(t, dir, nil)), acpv2.AgentOptions{})
	s := first.create(t, "/w")
	prompt(t, s, "Hello my friend")
	prompt(t, s, "Hello again")
	told, live := first.heard()
	if len(live.Items) != 2*9 {
		t.Fatalf("the turns showed %v", live)
	}
	if _, err := first.resume(t, s.ID()); err != nil {
		t.Fatal(err)
	}
	if _, again := first.heard(); !cmp.Equal(again, live) {
		t.Errorf("who knows the session has (-want +got):\n%s", cmp.Diff(live, again))
	}
	end()

	// In another process there is nothing but the store.
	config := parrot(open(t, dir, nil))
	var restored []int
	config.Open = func(ctx context.Context, s *session, o *agentkit.Opening) error {
		var n int
		for _, err := range s.History(ctx) {
			if err != nil {
				return err
			}
			n++
		}
		if !o.Resumed || n == 0 {
			return fmt.Errorf("resumed: %v, with %d updates", o.Resumed, n)
		}
		restored = append(restored, s.State.Prompts)
		o.Commands = []acpv2.AvailableCommand{acpv2.NewAvailableCommandCommand(acpv2.SlashCommand{Name: "shout", Description: "Shouts"})}
		return nil
	}
	second, _ := connect(t, config, acpv2.AgentOptions{})
	resumed, err := second.resume(t, s.ID())
	if err != nil {
		t.Fatal(err)
	}
	replayed, later := second.heard()
	if diff := cmp.Diff(live, later); diff != "" {
		t.Errorf("who does not know the session has (-want +got):\n%s", diff)
	}
	if !slices.Equal(restored, []int{2}) || len(resumed.AvailableCommands()) != 1 {
		t.Errorf("the state was restored as %v, and there are the commands %v", restored, resumed.AvailableCommands())
	}
	if _, ok := replayed[len(replayed)-1].Variant.(*acpv2.SessionUpdateStateUpdate); !ok {
		t.Errorf("the last update is %v", replayed[len(replayed)-1])
	}
	if len(replayed) >= len(told) {
		t.Errorf("%d updates were replayed of %d: chunks are not joined", len(replayed), len(told))
	}
	begun := map[acpv2.MessageID]bool{}
	for i, update := range replayed {
		switch u := update.Variant.(type) {
		case *acpv2.SessionUpdateAgentMessage:
			begun[u.MessageID] = true
			if content, ok := u.Content.Get(); !ok || len(content) != 0 {
				t.Errorf("update %d is %v", i, update)
			}
		case *acpv2.SessionUpdateAgentMessageChunk:
			if !begun[u.MessageID] {
				t.Errorf("update %d comes before its message: %v", i, update)
			}
		}
	}
	prompt(t, resumed, "Third")
	if _, now := second.heard(); now.Items["agent answer-3"] != "Third!" {
		t.Errorf("going on shows %v", now.Items)
	}

	// Without replay there is nothing but the state.
	third, _ := connect(t, parrot(open(t, dir, nil)), acpv2.AgentOptions{})
	if _, err := third.ResumeSession(t.Context(), &acpv2.ResumeSessionRequest{SessionID: s.ID(), Cwd: "/w"}); err != nil {
		t.Fatal(err)
	}
	if told, _ := third.heard(); len(told) != 1 {
		t.Errorf("without replay the client was told %v", told)
	}
	if _, err := third.resume(t, "sess_none"); !errors.Is(err, acpv2.SessionNotFound("sess_none")) {
		t.Errorf("an unknown session: %v", err)
	}
}

// What a killed process has left torn is left out, and what it has left open is shown as ended.
func TestResumeAfterKill(t *testing.T) {
	dir := t.TempDir()
	config := parrot(open(t, dir, nil))
	config.Prompt = func(ctx context.Context, s *session, _ *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
		return acpv2.EndTurn(), errors.Join(
			s.Update(ctx, acpv2.StartToolCall("open", "Open")),
			s.Update(ctx, acpv2.NewSessionUpdateTerminalUpdate(acpv2.TerminalUpdate{TerminalID: "open", Command: acpv2.Some("sleep")})),
			s.Update(ctx, acpv2.AgentMessageText("m", "torn")),
		)
	}
	c, end := connect(t, config, acpv2.AgentOptions{})
	s := c.create(t, "/w")
	prompt(t, s, "x")
	end()
	path := filepath.Join(dir, "s2-"+string(s.ID())+".jsonl")
	data, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(data, []byte(`"torn"`)) {
		t.Fatalf("%s, %v", data, err)
	}
	if err := os.WriteFile(path, data[:len(data)-5], 0o600); err != nil {
		t.Fatal(err)
	}
	var reports []sessionstore.Damage
	store := open(t, dir, &sessionstore.Options{Damaged: func(d sessionstore.Damage) { reports = append(reports, d) }})
	c, _ = connect(t, parrot(store), acpv2.AgentOptions{})
	if _, err := c.resume(t, s.ID()); err != nil {
		t.Fatal(err)
	}
	_, got := c.heard()
	if got.Items["status open"] != "failed" || got.Items["exit open"] != "0 false" {
		t.Errorf("there is %v", got)
	}
	if _, ok := got.Items["agent m"]; ok || len(reports) != 1 || !reports[0].Torn {
		t.Errorf("there is %v, and reported are %v", got, reports)
	}
}

// The list has the sessions of a directory, page by page, with titles; deleted ones are gone.
func TestList(t *testing.T) {
	config := parrot(open(t, t.TempDir(), nil))
	config.PageSize = 2
	c, _ := connect(t, config, acpv2.AgentOptions{})
	var ids []acpv2.SessionID
	for i := range 5 {
		s := c.create(t, "/a")
		prompt(t, s, fmt.Sprint("Title ", i))
		ids = append(ids, s.ID())
	}
	c.create(t, "/b")
	list := func(cwd acpv2.AbsolutePath) (all []string) {
		t.Helper()
		for info, err := range c.Sessions(t.Context(), cwd) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, info.Title.Value())
		}
		return all
	}
	want := []string{"Title 4", "Title 3", "Title 2", "Title 1", "Title 0"}
	if got := list("/a"); !slices.Equal(got, want) {
		t.Errorf("listed are %q", got)
	}
	if got := list(""); len(got) != 6 {
		t.Errorf("all are %q", got)
	}
	for _, id := range []acpv2.SessionID{ids[3], ids[3], "sess_none"} { // deleting is not asked twice
		if _, err := c.DeleteSession(t.Context(), &acpv2.DeleteSessionRequest{SessionID: id}); err != nil {
			t.Errorf("deleting %s: %v", id, err)
		}
	}
	if got := list("/a"); !slices.Equal(got, slices.Delete(want, 1, 2)) {
		t.Errorf("listed are %q", got)
	}
	if _, err := c.resume(t, ids[3]); err == nil {
		t.Error("a session that was deleted was resumed")
	}
}

// A cursor that the agent has not made is refused.
func TestForeignCursor(t *testing.T) {
	handlers := agentkit.NewSessions(parrot(open(t, t.TempDir(), nil))).Handlers()
	for _, cursor := range []acpv2.SessionListCursor{"?", ""} {
		res, err := handlers.ListSessions(t.Context(), nil, &acpv2.ListSessionsRequest{Cursor: acpv2.Some(cursor)})
		if !errors.Is(err, acpv2.ErrInvalidParams) {
			t.Errorf("%q: %v, %v", cursor, res, err)
		}
	}
}

// Prompts of a session run one after the other, so many wait, and a session that is busy is not resumed.
func TestPromptsAtOnce(t *testing.T) {
	begun, goOn := make(chan string, 10), make(chan struct{})
	config := parrot(open(t, t.TempDir(), nil))
	config.MaxWaiting = 2
	var mu sync.Mutex
	running, most := 0, 0
	config.Prompt = func(ctx context.Context, s *session, req *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
		mu.Lock()
		running++
		most = max(most, running)
		mu.Unlock()
		defer func() { mu.Lock(); running--; mu.Unlock() }()
		text, _ := req.Prompt[0].Text()
		begun <- text
		select {
		case <-goOn:
		case <-ctx.Done():
			return acpv2.IdleStateUpdate{}, context.Cause(ctx)
		}
		return acpv2.EndTurn(), s.Update(ctx, acpv2.AgentMessageText(acpv2.MessageID("to "+text), "done"))
	}
	c, _ := connect(t, config, acpv2.AgentOptions{})
	s := c.create(t, "/w")
	results := make(chan error, 10)
	var calls sync.WaitGroup
	defer calls.Wait()
	for i := range 5 {
		if i == 1 { // the first one runs
			<-begun
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		calls.Go(func() {
			_, err := c.Prompt(t.Context(), &acpv2.PromptRequest{SessionID: s.ID(), Prompt: []acpv2.ContentBlock{acpv2.TextBlock(fmt.Sprint(i))}})
			results <- err
		})
	}
	refused := 0
	for range 2 { // two are too many
		if err := <-results; err != nil {
			refused++
			if !errors.Is(err, acpv2.ErrInvalidRequest) {
				t.Error(err)
			}
		}
	}
	if refused != 2 {
		t.Errorf("%d were refused", refused)
	}
	if _, err := c.resume(t, s.ID()); !errors.Is(err, acpv2.ErrInvalidRequest) {
		t.Errorf("a busy session was resumed: %v", err)
	}
	for range 2 {
		goOn <- struct{}{}
		<-begun
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if most != 1 {
		t.Errorf("%d ran at once", most)
	}

	// Closing cancels the one that runs.
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Prompt(t.Context(), &acpv2.PromptRequest{SessionID: s.ID(), Prompt: []acpv2.ContentBlock{acpv2.TextBlock("x")}}); err == nil {
		t.Error("a prompt in a closed session was taken")
	}
}

// What Open has prepared is freed once: by closing, deleting, resuming again, and by the end of the connection.
func TestClose(t *testing.T) {
	var mu sync.Mutex
	opened, closed := 0, 0
	config := parrot(open(t, t.TempDir(), nil))
	config.MaxSessions = 2
	config.Open = func(ctx context.Context, s *session, _ *agentkit.Opening) error {
		if err := s.Update(ctx, acpv2.TitleUpdate("x")); err == nil {
			t.Error("an update of a session was sent that is not open")
		}
		mu.Lock()
		defer mu.Unlock()
		opened++
		return nil
	}
	var last *session
	config.Close = func(s *session) {
		if err := s.Update(context.Background(), acpv2.TitleUpdate("x")); !errors.Is(err, agentkit.ErrSessionClosed) {
			t.Errorf("updating a closed session: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		closed++
		last = s
	}
	counts := func(wantOpened, wantClosed int) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if opened != wantOpened || closed != wantClosed {
			t.Errorf("%d were opened and %d closed, want %d and %d", opened, closed, wantOpened, wantClosed)
		}
	}
	c, end := connect(t, config, acpv2.AgentOptions{})
	one, two := c.create(t, "/w"), c.create(t, "/w")
	if _, err := c.NewSession(t.Context(), &acpv2.NewSessionRequest{Cwd: "/w"}); !errors.Is(err, acpv2.ErrInvalidRequest) {
		t.Errorf("one too many: %v", err)
	}
	if _, err := c.resume(t, one.ID()); err != nil {
		t.Fatal(err)
	}
	counts(3, 1)
	if err := one.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CloseSession(t.Context(), &acpv2.CloseSessionRequest{SessionID: one.ID()}); err == nil {
		t.Error("closed twice")
	}
	counts(3, 2)
	if err := two.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	counts(3, 3)
	if _, err := c.resume(t, one.ID()); err != nil {
		t.Fatal(err)
	}
	end()
	counts(4, 4)
	if last.ID() != acpv2.SessionID(one.ID()) || !errors.Is(context.Cause(last.Context()), agentkit.ErrSessionClosed) {
		t.Errorf("the last one is %s, whose context has ended with %v", last.ID(), context.Cause(last.Context()))
	}
}

// A session that is full refuses a prompt, which does not become a part of the conversation.
func TestFull(t *testing.T) {
	config := parrot(open(t, t.TempDir(), &sessionstore.Options{MaxSession: 3000}))
	config.Logger = slog.New(slog.DiscardHandler)
	c, _ := connect(t, config, acpv2.AgentOptions{})
	s := c.create(t, "/w")
	_, err := s.Prompt(t.Context(), acpv2.TextBlock(strings.Repeat("x", 3000)))
	if !errors.Is(err, acpv2.ErrInvalidRequest) || !strings.Contains(err.Error(), "too large") {
		t.Errorf("the prompt was answered with %v", err)
	}
	if told, _ := c.heard(); len(told) != 0 {
		t.Errorf("the client was told %v", told)
	}
	prompt(t, s, "short")
}

// What waits to be joined is stored after a second, although the turn says nothing more.
func TestStoredInTime(t *testing.T) {
	dir := t.TempDir()
	store := open(t, dir, nil)
	synctest.Test(t, func(t *testing.T) {
		config := parrot(store)
		said := make(chan struct{})
		config.Prompt = func(ctx context.Context, s *session, _ *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
			err := errors.Join(s.Update(ctx, acpv2.AgentMessageText("m", "Hel")), s.Update(ctx, acpv2.AgentMessageText("m", "lo")), s.Update(ctx, output("t", "out")))
			close(said)
			<-ctx.Done()
			return acpv2.IdleStateUpdate{}, errors.Join(err, context.Cause(ctx))
		}
		c, end := connect(t, config, acpv2.AgentOptions{})
		s := c.create(t, "/w")
		if _, err := c.Prompt(t.Context(), &acpv2.PromptRequest{SessionID: s.ID(), Prompt: []acpv2.ContentBlock{acpv2.TextBlock("x")}}); err != nil {
			t.Fatal(err)
		}
		<-said
		stored := func() (all []string) {
			for update, err := range store.Updates(t.Context(), acp.SessionID(s.ID())) {
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, fmt.Sprintf("%T", update.Variant))
			}
			return all
		}
		synctest.Wait()
		if got := stored(); len(got) != 1 {
			t.Errorf("at once %q is stored", got)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		want := []string{"*acpv2.SessionUpdateUserMessage", "*acpv2.SessionUpdateAgentMessageChunk", "*acpv2.SessionUpdateTerminalOutputChunk"}
		if got := stored(); !slices.Equal(got, want) {
			t.Errorf("after a while %q is stored", got)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		end()
	})
}

// Closing a session ends the prompt that runs and those that wait, and does not wait for them in vain.
func TestCloseWhileBusy(t *testing.T) {
	for name, end := range map[string]func(*acpv2.ClientSession, context.Context) error{
		"close": (*acpv2.ClientSession).Close, "delete": (*acpv2.ClientSession).Delete,
	} {
		t.Run(name, func(t *testing.T) {
			store := open(t, t.TempDir(), nil)
			synctest.Test(t, func(t *testing.T) {
				config := parrot(store)
				closed := 0
				config.Close = func(*session) { closed++ }
				config.Prompt = func(ctx context.Context, _ *session, _ *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
					<-ctx.Done()
					return acpv2.IdleStateUpdate{}, context.Cause(ctx)
				}
				c, over := connect(t, config, acpv2.AgentOptions{})
				s := c.create(t, "/w")
				var calls sync.WaitGroup
				refused := make([]error, 3)
				for i := range refused {
					calls.Go(func() {
						_, refused[i] = c.Prompt(t.Context(), &acpv2.PromptRequest{SessionID: s.ID(), Prompt: []acpv2.ContentBlock{acpv2.TextBlock("x")}})
					})
				}
				synctest.Wait()
				if err := end(s, t.Context()); err != nil {
					t.Error(err)
				}
				calls.Wait()
				taken := 0
				for _, err := range refused {
					if err == nil {
						taken++
					}
				}
				if closed != 1 || taken != 1 {
					t.Errorf("%d were closed, and %d prompts taken", closed, taken)
				}
				over()
			})
		})
	}
}
