package agentkit_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

func wantLines(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q\nwant %q", what, got, want)
	}
}

func listed(t *testing.T, c *client, cwd string) (infos []acp.SessionInfo) {
	t.Helper()
	for info, err := range c.Sessions(t.Context(), cwd) {
		if err != nil {
			t.Fatal(err)
		}
		infos = append(infos, info)
	}
	return infos
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

// The functions of AtClose run once: before Config.Close, or when opening has failed, and at once when it is too late.
func TestAtClose(t *testing.T) {
	var ran []string
	var kept *agentkit.Session[state]
	sessions := agentkit.NewSessions(agentkit.Config[state]{
		Logger: slog.New(slog.DiscardHandler),
		Prompt: parrot(nil).Prompt,
		Open: func(_ context.Context, s *agentkit.Session[state], o *agentkit.Opening) error {
			kept = s
			for _, name := range []string{"first", "second"} {
				s.AtClose(func() {
					if s.Context().Err() == nil {
						t.Error("the context has not ended")
					}
					ran = append(ran, name)
					panic("others run all the same")
				})
			}
			if o.Meta != nil {
				return acp.InvalidParamsf("refused")
			}
			return nil
		},
		Close: func(*agentkit.Session[state]) { ran = append(ran, "Close") },
	})
	c := connect(t, sessions, nil, nil)
	s, err := c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	must.Do(t, s.Close(t.Context()))
	wantLines(t, "closed", ran, "second", "first", "Close")
	kept.AtClose(func() { ran = append(ran, "late") })
	ran = ran[3:]
	_, err = c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: t.TempDir(), Meta: acp.Meta{"refuse": []byte("true")}})
	if !errors.Is(err, acp.ErrInvalidParams) {
		t.Errorf("opening: %v", err)
	}
	wantLines(t, "too late, and not opened", ran, "late", "second", "first")
}

// Config.Extend adds to what Serve serves.
func TestExtend(t *testing.T) {
	sessions := agentkit.NewSessions(agentkit.Config[state]{
		Prompt: parrot(nil).Prompt,
		Extend: func(handlers *acp.AgentHandlers, opts *acp.AgentOptions) {
			opts.MCP.HTTP = true
			opts.Info.Version = "2"
			handlers.Logout = func(context.Context, *acp.AgentConn, *acp.LogoutRequest) (*acp.LogoutResponse, error) {
				return &acp.LogoutResponse{}, nil
			}
		},
	})
	theirs, ours := acp.Pipe()
	given := &acp.AgentOptions{Info: acp.Implementation{Name: "agent", Version: "1"}}
	served := make(chan error, 1)
	go func() { served <- sessions.Serve(context.Background(), theirs, given) }()
	c := dial(t, ours, nil)
	told := c.Initialized()
	if caps := told.AgentCapabilities; !caps.MCPCapabilities.HTTP || !caps.Auth.Logout.Present() || told.AgentInfo.Value().Version != "2" {
		t.Errorf("advertised %+v", told)
	}
	if given.MCP.HTTP || given.Info.Version != "1" {
		t.Errorf("Extend has changed the options of the caller: %+v", given)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
