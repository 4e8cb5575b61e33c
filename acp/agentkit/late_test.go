package agentkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/internal/test/must"
)

// quoted is stored as a string, by methods of its pointer.
type quoted int

func (q *quoted) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(int(*q))) }
func (q *quoted) UnmarshalJSON(data []byte) error {
	_, err := fmt.Sscanf(string(data), `"%d"`, (*int)(q))
	return err
}

// With AutoSave the state is stored at the end of a turn, however it ends.
func TestAutoSave(t *testing.T) {
	for _, save := range []bool{true, false} {
		store, state := open(t, t.TempDir()), ""
		serve := func(set string) agentkit.Config[string] {
			return agentkit.Config[string]{
				Store: store, AutoSave: save, Logger: slog.New(slog.DiscardHandler),
				Open: func(_ context.Context, s *agentkit.Session[string], _ *agentkit.Opening) error {
					state = s.State
					return nil
				},
				Prompt: func(_ context.Context, t *agentkit.Turn[string], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
					t.State = set
					return nil, acp.ErrInvalidRequest
				},
			}
		}
		c := connect(t, agentkit.NewSessions(serve("changed")), &acp.AgentOptions{Conn: acp.ConnOptions{Logger: slog.New(slog.DiscardHandler)}}, tapped)
		s := begin(t, c, "/w")
		if _, err := s.Prompt(t.Context(), acp.TextBlock("go")); !errors.Is(err, acp.ErrInvalidRequest) {
			t.Errorf("got %v", err)
		}
		again := connect(t, agentkit.NewSessions(serve("")), nil, tapped)
		must.Get(again.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}))(t)
		if (state == "changed") != save {
			t.Errorf("AutoSave %v: the state is %q", save, state)
		}
	}
}

// Open may save the state of a session that it has just made, and the state's methods for JSON are used both ways.
func TestSaveStateInOpen(t *testing.T) {
	store, h := open(t, t.TempDir()), newHouse()
	config := h.config(store)
	var loaded state
	config.Open = func(ctx context.Context, s *agentkit.Session[state], o *agentkit.Opening) error {
		if o.Reason != agentkit.Created {
			loaded = s.State
			return nil
		}
		s.State.Prompts, s.State.Quoted = 7, 8
		return s.SaveState(ctx)
	}
	c := connect(t, agentkit.NewSessions(config), nil, tapped)
	s := begin(t, c, "/w")
	must.Get(c.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}))(t)
	if loaded.Prompts != 7 || loaded.Quoted != 8 {
		t.Errorf("loaded: %+v", loaded)
	}
}

// What still has a session that is closed neither sends nor stores anything for it.
func TestUpdateAfterClose(t *testing.T) {
	ctx, store, h := t.Context(), open(t, t.TempDir()), newHouse()
	config := h.config(store)
	var kept *agentkit.Session[state]
	config.Open = func(_ context.Context, s *agentkit.Session[state], _ *agentkit.Opening) error {
		kept = s
		return nil
	}
	c := connect(t, agentkit.NewSessions(config), nil, tapped)
	s := begin(t, c, "/w")
	must.Do(t, s.Close(ctx))
	wantError(t, "Update", kept.Update(ctx, acp.AgentMessageText("late")), agentkit.ErrSessionClosed)
	wantError(t, "Record", kept.Record(ctx, acp.AgentMessageText("late")), agentkit.ErrSessionClosed)
	for update := range store.Updates(ctx, s.ID()) {
		t.Errorf("stored: %s", line(update))
	}
	begin(t, c, "/w") // whose answer comes after everything that was sent
	wantLines(t, "the client was told", c.heard())
}

// A title is made of any prompt, and what cannot be a folder is the client's mistake.
func TestZeroBytes(t *testing.T) {
	store, h := open(t, t.TempDir()), newHouse()
	c := h.connect(t, store)
	s := begin(t, c, "/w")
	ask(t, s, "one\x00two")
	if infos := listed(t, c, ""); len(infos) != 1 || infos[0].Title.Value() != "onetwo" {
		t.Errorf("listed: %+v", infos)
	}
	if log := h.log(); strings.Contains(log, "ERROR") {
		t.Errorf("logged: %s", log)
	}
	_, err := c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/a\x00b"})
	wantError(t, "session/new", err, acp.ErrInvalidParams)
}

// deaf is a store that keeps no messages of the agent.
type deaf struct{ sessionstore.Store }

func (d deaf) Append(ctx context.Context, id acp.SessionID, updates ...acp.SessionUpdate) error {
	if slices.ContainsFunc(updates, func(u acp.SessionUpdate) bool {
		_, ok := u.Variant.(*acp.SessionUpdateAgentMessageChunk)
		return ok
	}) {
		return errDisk
	}
	return d.Store.Append(ctx, id, updates...)
}

// That a text could not be stored does not keep what comes after it from being stored.
func TestStoredBehindAFailure(t *testing.T) {
	store, h := open(t, t.TempDir()), newHouse()
	config := h.config(deaf{store})
	config.Prompt = func(ctx context.Context, turn *agentkit.Turn[state], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		if err := turn.Update(ctx, acp.AgentMessageText("lost")); err != nil {
			t.Error(err)
		}
		if err := turn.Update(ctx, acp.StartToolCall("c", "Tool")); !errors.Is(err, agentkit.ErrNotStored) || !errors.Is(err, errDisk) {
			t.Errorf("got the error %v", err)
		}
		return endTurn, nil
	}
	c := connect(t, agentkit.NewSessions(config), nil, tapped)
	s := begin(t, c, "/w")
	ask(t, s, "go")
	var lines []string
	for update := range store.Updates(t.Context(), s.ID()) {
		lines = append(lines, line(update))
	}
	wantLines(t, "stored", lines, "user: go", "call: c Tool pending")
}

// What a turn has left open is closed also when a function of AtEnd panics.
func TestAtEndPanics(t *testing.T) {
	h := newHouse()
	config := h.config(open(t, t.TempDir()))
	config.Prompt = func(ctx context.Context, turn *agentkit.Turn[state], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		turn.AtEnd(func(context.Context) error { panic("at the end") })
		_, err := turn.StartToolCall(ctx, "Tool", agentkit.WithToolCallID("c"))
		return endTurn, err
	}
	c := connect(t, agentkit.NewSessions(config), nil, tapped)
	s := begin(t, c, "/w")
	_, err := s.Prompt(t.Context(), acp.TextBlock("go"))
	wantError(t, "the prompt", err, rpc.ErrInternal)
	wantLines(t, "the client was told", c.heard(), "call: c Tool pending", "call: c failed", "title: go")
}
