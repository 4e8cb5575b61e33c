package agentkit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/sessionstore"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// house is an agent that notes which of its sessions are opened and closed, and whose turns do what the text of their
// prompts says.
type house struct {
	mu     sync.Mutex
	notes  []string
	refuse error // of Open
	logged bytes.Buffer
	gate   chan struct{} // a turn "wait" waits for it
	begun  chan struct{} // has a token for each turn that has begun
}

func newHouse() *house { return &house{gate: make(chan struct{}), begun: make(chan struct{}, 100)} }

func (h *house) note(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, fmt.Sprintf(format, args...))
}

// noted returns the notes since the last call.
func (h *house) noted() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	notes := h.notes
	h.notes = nil
	return notes
}

func (h *house) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.logged.Write(p)
}

func (h *house) log() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.logged.String()
}

func (h *house) config(store sessionstore.Store) agentkit.Config[state] {
	return agentkit.Config[state]{
		Store:  store,
		Logger: slog.New(slog.NewTextHandler(h, nil)),
		Open: func(_ context.Context, s *agentkit.Session[state], o *agentkit.Opening) error {
			h.mu.Lock()
			refuse := h.refuse
			h.mu.Unlock()
			if refuse != nil {
				return refuse
			}
			h.note("open %d %s %v, %d prompts, mode %s", o.Reason, o.Cwd, o.AdditionalDirectories, s.State.Prompts, o.Mode)
			s.State.secret = "of " + o.Cwd
			o.Modes = []acp.SessionMode{{ID: "a", Name: "A"}, {ID: "b", Name: "B"}}
			return nil
		},
		Close: func(s *agentkit.Session[state]) { h.note("close %s", s.State.secret) },
		Prompt: func(ctx context.Context, t *agentkit.Turn[state], req *acp.PromptRequest) (*acp.PromptResponse, error) {
			t.State.Prompts++
			h.begun <- struct{}{}
			text := promptText(req)
			if text == "wait" {
				select {
				case <-h.gate:
				case <-ctx.Done():
					h.note("turn ended: %v", context.Cause(ctx))
					return nil, context.Cause(ctx)
				}
			}
			if err := t.SaveState(ctx); err != nil {
				return nil, err
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, t.Update(ctx, acp.AgentMessageText("did "+text))
		},
	}
}

// tapped has the rules that these tests break.
var tapped = &conformance.TapOptions{Accept: map[string]string{
	"PRM-1":  "sessions that are not open are what is tested, or were opened in another way",
	"PRM-15": "prompts that come while one runs are what is tested",
	"LST-10": "cursors that the agent has not made are what is tested",
}}

func (h *house) connect(t *testing.T, store sessionstore.Store) *client {
	t.Helper()
	return connect(t, agentkit.NewSessions(h.config(store)), nil, tapped)
}

func begin(t *testing.T, c *client, cwd string) *acp.ClientSession {
	t.Helper()
	s := must.Get(c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: cwd}))(t)
	return s
}

func ask(t *testing.T, s *acp.ClientSession, text string) {
	t.Helper()
	must.Get(s.Prompt(t.Context(), acp.TextBlock(text)))(t)
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got the error %v, want %v", what, err, want)
	}
}

// What is asked for a session that is not open is refused by the library, in words that tell nothing else.
func TestUnknownSessions(t *testing.T) {
	for name, store := range map[string]sessionstore.Store{"stored": open(t, t.TempDir()), "not stored": nil} {
		t.Run(name, func(t *testing.T) {
			h := newHouse()
			c := h.connect(t, store)
			closed := begin(t, c, "/w")
			must.Do(t, closed.Close(t.Context()))
			h.noted()
			for _, id := range []acp.SessionID{"none", "../x", closed.ID()} {
				s := c.Session(id)
				_, err := s.Prompt(t.Context(), acp.TextBlock("hello"))
				errs := []error{err, s.SetMode(t.Context(), "a")}
				_, err = rpc.Call[struct{}](t.Context(), c, acp.MethodCloseSession, &acp.CloseSessionRequest{SessionID: id})
				errs = append(errs, err)
				if store != nil && id != closed.ID() {
					_, err = c.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: id, Cwd: "/w"})
					errs = append(errs, err)
					_, err = c.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: id, Cwd: "/w"})
					errs = append(errs, err)
				}
				for _, err := range errs {
					wantError(t, string(id), err, acp.ErrResourceNotFound)
					if e, ok := errors.AsType[*acp.Error](err); !ok || e.Message != "Session not found" {
						t.Errorf("%q: the error says %v", id, err)
					}
				}
			}
			if notes := h.noted(); len(notes) != 0 {
				t.Errorf("the author was asked: %q", notes)
			}
			if caps := c.Capabilities(); caps.LoadSession != (store != nil) || caps.SessionCapabilities.List.Present() != (store != nil) {
				t.Errorf("advertised: %+v", caps)
			}
		})
	}
}

// A session that Open refuses is not there, and the client is told why.
func TestOpenFails(t *testing.T) {
	ctx, h, store := t.Context(), newHouse(), open(t, t.TempDir())
	c := h.connect(t, store)
	s := begin(t, c, "/w")
	ask(t, s, "hello")
	h.noted()
	h.refuse = acp.ErrAuthRequired
	_, err := c.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/w"})
	wantError(t, "session/new", err, acp.ErrAuthRequired)
	if infos := listed(t, c, ""); len(infos) != 1 {
		t.Errorf("listed: %+v", infos)
	}
	_, err = c.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"})
	wantError(t, "session/load", err, acp.ErrAuthRequired)
	// The load has closed the session that was open.
	_, err = s.Prompt(ctx, acp.TextBlock("hello"))
	wantError(t, "a prompt afterwards", err, acp.ErrResourceNotFound)
	wantLines(t, "notes", h.noted(), "close of /w")
	h.mu.Lock()
	h.refuse = nil
	h.mu.Unlock()
	must.Get(c.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}))(t)
	wantLines(t, "notes", h.noted(), "open 1 /w [], 1 prompts, mode ")
}

// A session that is open is closed when it is loaded or resumed, and opened with what the request says.
func TestLoadWhileOpen(t *testing.T) {
	tier.Need(t, tier.Normal)
	ctx, h, store := t.Context(), newHouse(), open(t, t.TempDir())
	config := h.config(store)
	sessions := agentkit.NewSessions(config)
	c := connect(t, sessions, &acp.AgentOptions{AdditionalDirectories: true}, tapped)
	s := must.Get(c.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/one", AdditionalDirectories: []string{"/extra"}}))(t)
	ask(t, s, "hello")
	must.Do(t, s.SetMode(ctx, "b"))
	must.Get(c.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/two"}))(t)
	ask(t, s, "again")
	must.Get(c.ResumeSession(ctx, &acp.ResumeSessionRequest{SessionID: s.ID(), Cwd: "/three"}))(t)
	wantLines(t, "notes", h.noted(), "open 0 /one [/extra], 0 prompts, mode ", "close of /one", "open 1 /two [], 1 prompts, mode b",
		"close of /two", "open 2 /three [], 2 prompts, mode b")
	infos := listed(t, c, "/three")
	if len(infos) != 1 || len(infos[0].AdditionalDirectories) != 0 {
		t.Errorf("listed: %+v", infos)
	}
}

// A session with a turn is neither loaded nor resumed; deleting and closing it cancels the turn.
func TestChangesWhileBusy(t *testing.T) {
	ctx, h, store := t.Context(), newHouse(), open(t, t.TempDir())
	c := h.connect(t, store)
	for _, end := range []string{"close", "delete"} {
		s := begin(t, c, "/w")
		turn := s.Stream(ctx, acp.TextBlock("wait"))
		turn.Discard()
		<-h.begun
		_, err := c.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"})
		wantError(t, "loading", err, acp.ErrInvalidRequest)
		if !strings.Contains(err.Error(), "busy") {
			t.Errorf("loading: %v", err)
		}
		_, err = c.ResumeSession(ctx, &acp.ResumeSessionRequest{SessionID: s.ID(), Cwd: "/w"})
		wantError(t, "resuming", err, acp.ErrInvalidRequest)
		h.noted()
		if end == "close" {
			err = s.Close(ctx)
		} else {
			err = s.Delete(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		res, err := turn.Result()
		if err != nil || res.StopReason != acp.StopReasonCancelled {
			t.Errorf("%s: the turn is answered with %v, %v", end, res, err)
		}
		wantLines(t, "notes", h.noted(), "turn ended: "+acp.ErrTurnCancelled.Error(), "close of /w")
	}
	if infos := listed(t, c, ""); len(infos) != 1 {
		t.Errorf("listed: %+v", infos)
	}
}

// slowStore blocks Get until the test releases it.
type slowStore struct {
	sessionstore.Store
	asked, free chan struct{}
}

func (s *slowStore) Get(ctx context.Context, id acp.SessionID) (sessionstore.Record, error) {
	select {
	case s.asked <- struct{}{}:
		<-s.free
	case <-s.free:
	}
	return s.Store.Get(ctx, id)
}

// While a session is being opened, everything else about it is refused.
func TestRequestsWhileOpening(t *testing.T) {
	ctx, h := t.Context(), newHouse()
	store := &slowStore{open(t, t.TempDir()), make(chan struct{}), make(chan struct{})}
	c := h.connect(t, store)
	s := begin(t, c, "/w")
	loaded := make(chan error)
	go func() {
		_, err := c.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"})
		loaded <- err
	}()
	<-store.asked
	_, err := c.ResumeSession(ctx, &acp.ResumeSessionRequest{SessionID: s.ID(), Cwd: "/w"})
	errs := []error{err, s.SetMode(ctx, "a"), s.Delete(ctx), s.Close(ctx)}
	_, err = s.Prompt(ctx, acp.TextBlock("hello"))
	for i, err := range append(errs, err) {
		if !errors.Is(err, acp.ErrInvalidRequest) || !strings.Contains(err.Error(), "being opened") {
			t.Errorf("request %d: %v", i, err)
		}
	}
	close(store.free)
	if err := <-loaded; err != nil {
		t.Fatal(err)
	}
	ask(t, c.Session(s.ID()), "hello")
}

// When a connection ends its sessions are closed, after their turns.
func TestConnectionEnds(t *testing.T) {
	h, store := newHouse(), open(t, t.TempDir())
	sessions := agentkit.NewSessions(h.config(store))
	theirs, ours := acp.Pipe()
	served := make(chan error)
	go func() { served <- acp.ServeAgent(t.Context(), theirs, sessions.Handlers(), sessions.Options(nil)) }()
	c := dial(t, ours, tapped)
	idle, busy := begin(t, c, "/idle"), begin(t, c, "/busy")
	ask(t, idle, "hello")
	<-h.begun
	turn := busy.Stream(t.Context(), acp.TextBlock("wait"))
	turn.Discard()
	<-h.begun
	h.noted()
	must.Do(t, c.Close())
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	sessions.Close()
	notes := h.noted()
	if len(notes) != 3 || !strings.HasPrefix(notes[0], "turn ended: ") {
		t.Errorf("notes: %q", notes)
	}
	slices.Sort(notes)
	if notes[0] != "close of /busy" || notes[1] != "close of /idle" {
		t.Errorf("notes: %q", notes)
	}
	// The agent may have answered the cancelled turn before its connection ended.
	if res, err := turn.Result(); err == nil && res.StopReason != acp.StopReasonCancelled {
		t.Errorf("the turn had the answer %+v", res)
	}
	// What the turn had stored is there for the next connection.
	c = h.connect(t, store)
	for _, id := range []acp.SessionID{idle.ID(), busy.ID()} {
		must.Get(c.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: id, Cwd: "/w"}))(t)
	}
	heard := c.heard()
	wantLines(t, "replayed", heard, "user: hello", "agent: did hello", "title: hello", "user: wait", "title: wait") // of two sessions
}

// Sessions that are closed for good refuse new ones.
func TestClosedSessions(t *testing.T) {
	h := newHouse()
	sessions := agentkit.NewSessions(h.config(nil))
	c := connect(t, sessions, nil, tapped)
	s := begin(t, c, "/w")
	sessions.Close()
	wantLines(t, "notes", h.noted(), "open 0 /w [], 0 prompts, mode ", "close of /w")
	_, err := s.Prompt(t.Context(), acp.TextBlock("hello"))
	wantError(t, "a prompt", err, acp.ErrResourceNotFound)
	if _, err := c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}); err == nil {
		t.Error("a session was opened")
	}
}

func TestMaxSessions(t *testing.T) {
	h := newHouse()
	config := h.config(nil)
	config.MaxSessions = 3
	c := connect(t, agentkit.NewSessions(config), nil, tapped)
	s := begin(t, c, "/w")
	begin(t, c, "/w")
	begin(t, c, "/w")
	_, err := c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"})
	if !errors.Is(err, acp.ErrInvalidRequest) || !strings.Contains(err.Error(), "3 sessions are open") {
		t.Errorf("one too many: %v", err)
	}
	must.Do(t, s.Close(t.Context()))
	begin(t, c, "/w")
}

// Sessions of two connections do not meet, also if they have the same id.
func TestTwoConnections(t *testing.T) {
	ctx, h, store := t.Context(), newHouse(), open(t, t.TempDir())
	sessions := agentkit.NewSessions(h.config(store))
	one, two := connect(t, sessions, nil, tapped), connect(t, sessions, nil, tapped)
	s := begin(t, one, "/w")
	ask(t, s, "one")
	_, err := two.Session(s.ID()).Prompt(ctx, acp.TextBlock("two"))
	wantError(t, "a session of the other connection", err, acp.ErrResourceNotFound)
	other := must.Get(two.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}))(t)
	ask(t, other, "two")
	ask(t, s, "three")
	two.heard()
	must.Get(two.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}))(t)
	wantLines(t, "replayed", two.heard(), "user: one", "agent: did one", "user: two", "agent: did two", "user: three", "agent: did three",
		"title: one")
}

func TestModes(t *testing.T) {
	ctx, h, store := t.Context(), newHouse(), open(t, t.TempDir())
	config := h.config(store)
	modes := []acp.SessionMode{{ID: "a", Name: "A"}, {ID: "b", Name: "B"}}
	config.Open = func(_ context.Context, _ *agentkit.Session[state], o *agentkit.Opening) error {
		o.Modes = modes
		return nil
	}
	config.Close = nil
	config.SetMode = func(_ context.Context, s *agentkit.Session[state], mode acp.SessionModeID) error {
		h.note("from %s to %s", s.Mode(), mode)
		if mode == "a" {
			return acp.InvalidParamsf("not back")
		}
		return nil
	}
	config.Prompt = func(ctx context.Context, t *agentkit.Turn[state], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		err := t.Update(ctx, acp.ModeUpdate("c"))
		h.note("now %s", t.Mode())
		return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
	}
	c := connect(t, agentkit.NewSessions(config), nil, tapped)
	s := begin(t, c, "/w")
	if got := s.Modes().Value(); got.CurrentModeID != "a" || len(got.AvailableModes) != 2 {
		t.Errorf("the modes are %+v", got)
	}
	_, err := rpc.Call[acp.SetSessionModeResponse](ctx, c, acp.MethodSetSessionMode, &acp.SetSessionModeRequest{SessionID: s.ID(), ModeID: "z"})
	wantError(t, "an unknown mode", err, acp.ErrInvalidParams)
	must.Do(t, s.SetMode(ctx, "b"))
	wantError(t, "a mode that the author refuses", s.SetMode(ctx, "a"), acp.ErrInvalidParams)
	wantLines(t, "notes", h.noted(), "from a to b", "from b to a")
	load := func(want acp.SessionModeID) {
		t.Helper()
		s := must.Get(c.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}))(t)
		if got := s.Modes().Value().CurrentModeID; got != want {
			t.Errorf("the mode is %s, want %s", got, want)
		}
	}
	load("b")
	modes = append(modes, acp.SessionMode{ID: "c", Name: "C"})
	load("b")
	ask(t, s, "change the mode")
	wantLines(t, "notes", h.noted(), "now c")
	load("c")
	modes = modes[:2] // the mode that was stored is gone
	load("a")
}

// A session with modes shows them as a config option too, before the author's, and tells of a change in both ways.
func TestModesAsOption(t *testing.T) {
	ctx, h, store := t.Context(), newHouse(), open(t, t.TempDir())
	config := h.config(store)
	size := func(value acp.SessionConfigValueID) acp.SessionConfigOption {
		return acp.SelectOption("size", "Size", value, acp.SelectValue("s", "Small"), acp.SelectValue("l", "Large"))
	}
	prepare := config.Open
	config.Open = func(ctx context.Context, s *agentkit.Session[state], o *agentkit.Opening) error {
		o.ConfigOptions = []acp.SessionConfigOption{size("s")}
		return prepare(ctx, s, o)
	}
	config.SetMode = func(_ context.Context, _ *agentkit.Session[state], mode acp.SessionModeID) error {
		h.note("to %s", mode)
		return nil
	}
	config.SetOption = func(_ context.Context, _ *agentkit.Session[state], req *acp.SetSessionConfigOptionRequest) ([]acp.SessionConfigOption, error) {
		h.note("set %s", req.ConfigID)
		return []acp.SessionConfigOption{size(req.Variant.(*acp.SetSessionConfigOptionRequestValueID).Value)}, nil
	}
	config.Prompt = func(ctx context.Context, t *agentkit.Turn[state], req *acp.PromptRequest) (*acp.PromptResponse, error) {
		update := acp.ModeUpdate("a")
		if promptText(req) == "options" {
			update = acp.ConfigUpdate(size("s"))
		}
		return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, t.Update(ctx, update)
	}
	config.Title = func([]acp.ContentBlock) string { return "" }
	c := connect(t, agentkit.NewSessions(config), nil, &conformance.TapOptions{Level: conformance.Should, Accept: map[string]string{
		"INI-3": "not what is tested", "INI-5": "not what is tested", "CFG-16": "a mode that is none is what is tested",
	}})
	s := begin(t, c, "/w")
	now := func(want string) {
		t.Helper()
		var got []string
		for _, option := range s.ConfigOptions().Value() {
			got = append(got, fmt.Sprint(option.ID, "=", option.Variant.(*acp.SessionConfigOptionSelect).CurrentValue))
		}
		mode := fmt.Sprint("mode=", s.Modes().Value().CurrentModeID)
		if text := strings.Join(got, " "); text != want || got[0] != mode {
			t.Errorf("the client has the options %s and the %s, want %s", text, mode, want)
		}
	}
	now("mode=a size=s")
	must.Do(t, s.SetMode(ctx, "b"))
	now("mode=b size=s")
	wantLines(t, "told", c.heard(), "options: mode=b size=s")
	must.Do(t, s.SetConfigOption(ctx, "size", "l"))
	now("mode=b size=l")
	must.Do(t, s.SetConfigOption(ctx, "mode", "a"))
	now("mode=a size=l")
	wantLines(t, "told", c.heard(), "mode: a")
	must.Do(t, s.SetConfigOption(ctx, "mode", "b"))
	c.heard()
	ask(t, s, "mode")
	now("mode=a size=l")
	wantLines(t, "told", c.heard(), "mode: a", "options: mode=a size=l")
	ask(t, s, "options")
	now("mode=a size=s")
	wantLines(t, "notes", h.noted()[1:], "to b", "set size", "to a", "to b")
	for _, req := range []acp.SetSessionConfigOptionRequest{
		acp.NewSetSessionConfigOptionRequestValueID(s.ID(), "mode", "z"), acp.NewSetSessionConfigOptionRequestBoolean(s.ID(), "mode", true),
	} {
		_, err := rpc.Call[acp.SetSessionConfigOptionResponse](ctx, c, acp.MethodSetSessionConfigOption, &req)
		wantError(t, "a mode that is none", err, acp.ErrInvalidParams)
	}
	must.Do(t, s.SetMode(ctx, "b"))
	var err error
	if s, err = c.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}); err != nil {
		t.Fatal(err)
	}
	now("mode=b size=s")
}

// Bind gives the author's own handlers the session with its state, and ends them with it.
func TestBind(t *testing.T) {
	ctx, h := t.Context(), newHouse()
	config := h.config(nil)
	prepare := config.Open
	config.Open = func(ctx context.Context, s *agentkit.Session[state], o *agentkit.Opening) error {
		o.ConfigOptions = []acp.SessionConfigOption{acp.SelectOption("x", "X", "y", acp.SelectValue("y", "Y"))}
		return prepare(ctx, s, o)
	}
	sessions := agentkit.NewSessions(config)
	handlers := sessions.Handlers()
	handlers.SetSessionConfigOption = agentkit.Bind(sessions,
		func(ctx context.Context, s *agentkit.Session[state], req *acp.SetSessionConfigOptionRequest) (*acp.SetSessionConfigOptionResponse, error) {
			h.note("set in the session %s", s.State.secret)
			h.begun <- struct{}{}
			<-ctx.Done()
			h.note("ended: %v", context.Cause(ctx))
			return nil, context.Cause(ctx)
		})
	theirs, ours := acp.Pipe()
	agent, err := acp.StartAgent(ctx, theirs, handlers, sessions.Options(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Wait() })
	c := dial(t, ours, tapped)
	s := begin(t, c, "/w")
	h.noted()
	req := acp.NewSetSessionConfigOptionRequestValueID(s.ID(), "x", "y")
	failed := make(chan error)
	go func() {
		_, err := c.SetSessionConfigOption(ctx, &req)
		failed <- err
	}()
	<-h.begun
	must.Do(t, s.Close(ctx))
	if err := <-failed; err == nil {
		t.Error("the handler had a result")
	}
	wantLines(t, "notes", h.noted(), "set in the session of /w", "ended: "+agentkit.ErrSessionClosed.Error(), "close of /w")
	_, err = c.SetSessionConfigOption(ctx, &req)
	wantError(t, "in a closed session", err, acp.ErrResourceNotFound)
}

// Without the options that Queue needs no session is opened, and the owner learns why.
func TestOptionsForgotten(t *testing.T) {
	h := newHouse()
	config := h.config(nil)
	config.WhileBusy = agentkit.Queue
	sessions := agentkit.NewSessions(config)
	defer sessions.Close()
	theirs, ours := acp.Pipe()
	agent := must.Get(acp.StartAgent(t.Context(), theirs, sessions.Handlers(), &acp.AgentOptions{Conn: acp.ConnOptions{Logger: config.Logger}}))(t)
	t.Cleanup(func() { _ = agent.Wait() })
	c := dial(t, ours, tapped)
	if _, err := c.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/w"}); !errors.Is(err, rpc.ErrInternal) {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(h.log(), "Sessions.Options") {
		t.Errorf("the log says %s", h.log())
	}
}

func TestPages(t *testing.T) {
	ctx, h, store := t.Context(), newHouse(), open(t, t.TempDir())
	config := h.config(store)
	config.PageSize = 4
	c := connect(t, agentkit.NewSessions(config), nil, tapped)
	for i := range 11 {
		begin(t, c, []string{"/w0", "/w1", "/w0/", "/x/../w1", "/w0/.", "//w1"}[i%6])
	}
	first, err := c.ListSessions(ctx, &acp.ListSessionsRequest{})
	if err != nil || len(first.Sessions) != 4 || !first.NextCursor.Present() {
		t.Fatal(first, err)
	}
	if all, some := listed(t, c, ""), listed(t, c, "/w1"); len(all) != 11 || len(some) != 5 {
		t.Errorf("listed: %d, of a folder %d", len(all), len(some))
	}
	if some := listed(t, c, "/w0/"); len(some) != 6 {
		t.Errorf("listed of another spelling of a folder: %d", len(some))
	}
	for _, cursor := range []string{"bogus", ""} {
		_, err := c.ListSessions(ctx, &acp.ListSessionsRequest{Cursor: acp.Some(cursor)})
		wantError(t, "a bad cursor", err, acp.ErrInvalidParams)
	}
	if none := listed(t, c, "/none"); none != nil {
		t.Errorf("listed: %+v", none)
	}
}

// Titles come from the first prompt, or from the author, and are stored.
func TestTitles(t *testing.T) {
	ctx, h, store := t.Context(), newHouse(), open(t, t.TempDir())
	config := h.config(store)
	config.Prompt = func(ctx context.Context, t *agentkit.Turn[state], req *acp.PromptRequest) (*acp.PromptResponse, error) {
		var err error
		if title, ok := strings.CutPrefix(promptText(req), "title "); ok {
			err = t.Update(ctx, acp.TitleUpdate(title))
		}
		return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, err
	}
	c := connect(t, agentkit.NewSessions(config), nil, tapped)
	for _, test := range []struct{ prompts, want []string }{
		{[]string{"  Fix\n the  bug ", "and more"}, []string{"title: Fix the bug"}},
		{[]string{strings.Repeat("é", 200)}, []string{"title: " + strings.Repeat("é", 59) + "…"}},
		{[]string{" ", "second"}, []string{"title: second"}},
		{[]string{"title Mine", "more"}, []string{"title: Mine"}},
		{[]string{"title " + strings.Repeat("long ", 500)}, []string{"title: " + strings.Repeat("long ", 500)}},
	} {
		s := begin(t, c, "/w")
		for _, prompt := range test.prompts {
			ask(t, s, prompt)
		}
		wantLines(t, test.prompts[0], c.heard(), test.want...)
		want := strings.TrimPrefix(test.want[0], "title: ")
		if got := listed(t, c, "")[0]; got.SessionID != s.ID() || !strings.HasPrefix(want, strings.TrimSuffix(got.Title.Value(), "…")) {
			t.Errorf("listed is %+v", got)
		}
	}
	s := begin(t, c, "/w")
	must.Do(t, s.Close(ctx))
	if got := listed(t, c, "")[0]; got.Title.Present() {
		t.Errorf("listed is %+v", got)
	}
}

// What is stored of a conversation is what a client must see again, in order, with chunks joined.
func TestWhatIsStored(t *testing.T) {
	tier.Need(t, tier.Normal)
	ctx, store := t.Context(), open(t, t.TempDir())
	message := func(id acp.MessageID, text string) acp.SessionUpdate {
		return acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: acp.TextBlock(text), MessageID: acp.Some(id)})
	}
	var future acp.SessionUpdate
	must.Do(t, json.Unmarshal([]byte(`{"sessionUpdate":"_of_the_future","x":1}`), &future))
	sessions := agentkit.NewSessions(agentkit.Config[state]{
		Store: store,
		Prompt: func(ctx context.Context, t *agentkit.Turn[state], req *acp.PromptRequest) (*acp.PromptResponse, error) {
			for _, update := range []acp.SessionUpdate{
				message("1", "a"), message("1", "b"), message("2", "c"), acp.AgentMessageText("d"), acp.AgentMessageText("e"),
				acp.AgentThoughtText("f"), acp.AgentThoughtText("g"),
				acp.CommandsUpdate(acp.AvailableCommand{Name: "x", Description: "X"}),
				acp.AgentThoughtText("h"), // behind what is not stored, still the same thought
				acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: acp.ImageBlock("QUJD", "image/png")}),
				acp.AgentMessageText("i"), acp.NewSessionUpdateUsageUpdate(acp.UsageUpdate{Used: 1, Size: 2}), acp.AgentMessageText("j"),
				acp.StartToolCall("c", "Run"),
				acp.UpdateToolCall("c", acp.WithContent(acp.ToolTerminal("term"), acp.ToolText("text"))),
				acp.UpdatePlan(), future,
				acp.AgentMessageText(strings.Repeat("k", 50_000)), acp.AgentMessageText(strings.Repeat("k", 50_000)),
			} {
				if err := t.Update(ctx, update); err != nil {
					return nil, err
				}
			}
			if err := t.Record(ctx, acp.UpdateToolCall("c", acp.WithContent(acp.ToolText("what the terminal showed")))); err != nil {
				return nil, err
			}
			n := 0
			for update, err := range t.History(ctx) {
				if err != nil {
					return nil, err
				}
				n++
				_ = update
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, t.Update(ctx, acp.AgentMessageText(fmt.Sprint("history of ", n)))
		},
	})
	accept := &conformance.TapOptions{Level: conformance.MustNot, Ignore: func(f conformance.Finding) bool { return true }}
	c := connect(t, sessions, &acp.AgentOptions{Prompt: acp.PromptCapabilities{Image: true}}, accept)
	s := begin(t, c, "/w")
	must.Get(s.Prompt(ctx, acp.TextBlock("hello"), acp.TextBlock(" you"), acp.ImageBlock("QUJD", "image/png")))(t)
	var got []string
	for update, err := range store.Updates(ctx, s.ID()) {
		if err != nil {
			t.Fatal(err)
		}
		text := line(update)
		if u, ok := update.Variant.(*acp.SessionUpdateToolCallUpdate); ok {
			text += fmt.Sprint(" ", len(u.Content.Value()))
		}
		got = append(got, strings.ReplaceAll(text, "kkkkk", ""))
	}
	wantLines(t, "stored", got,
		"user: hello", "user:  you", "user: *acp.ContentBlockImage",
		"agent: ab", "agent: c", "agent: de", "thought: fgh", "agent: *acp.ContentBlockImage", "agent: ij",
		"call: c Run pending", "*acp.SessionUpdatePlan", "*acp.SessionUpdateUnknown", "agent: ", "agent: ", "call: c  1", "call: c  1",
		"agent: history of 16")
}

// Text that waits to be joined is stored after a second, and when the session ends.
func TestJoinedTextIsStored(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), open(t, dir)
		next := make(chan struct{})
		sessions := agentkit.NewSessions(agentkit.Config[state]{
			Store: store,
			Prompt: func(ctx context.Context, t *agentkit.Turn[state], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
				for _, word := range []string{"one ", "two ", "three ", "four "} {
					if err := t.Update(ctx, acp.AgentMessageText(word)); err != nil {
						return nil, err
					}
					<-next
				}
				return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
			},
		})
		c := connect(t, sessions, nil, tapped)
		s := begin(t, c, "/w")
		turn := s.Stream(ctx, acp.TextBlock("hello"))
		turn.Discard()
		want := func(lines ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for update, err := range store.Updates(ctx, s.ID()) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, line(update))
			}
			wantLines(t, "stored", got, append([]string{"user: hello"}, lines...)...)
		}
		want()
		time.Sleep(500 * time.Millisecond) // of the bubble
		next <- struct{}{}
		want()
		time.Sleep(500 * time.Millisecond)
		want("agent: one two ")
		time.Sleep(5 * time.Second)
		next <- struct{}{}
		want("agent: one two ")
		time.Sleep(time.Second)
		want("agent: one two ", "agent: three ")
		next <- struct{}{}
		want("agent: one two ", "agent: three ")
		next <- struct{}{}
		must.Get(turn.Result())(t)
		want("agent: one two ", "agent: three ", "agent: four ")
	})
}

// brokenStore fails when the test says so.
type brokenStore struct {
	sessionstore.Store
	mu   sync.Mutex
	fail error
}

func (s *brokenStore) broken(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

func (s *brokenStore) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fail
}

func (s *brokenStore) Append(ctx context.Context, id acp.SessionID, updates ...acp.SessionUpdate) error {
	if err := s.failure(); err != nil {
		return err
	}
	return s.Store.Append(ctx, id, updates...)
}

func (s *brokenStore) Updates(ctx context.Context, id acp.SessionID) iter.Seq2[acp.SessionUpdate, error] {
	return func(yield func(acp.SessionUpdate, error) bool) {
		for update, err := range s.Store.Updates(ctx, id) {
			if fail := s.failure(); fail != nil {
				update, err = acp.SessionUpdate{}, fail
			}
			if !yield(update, err) || err != nil {
				return
			}
		}
	}
}

// What cannot be stored is sent all the same, and said; a prompt that cannot be stored is refused, without telling why
// in the store's words.
func TestStoreFails(t *testing.T) {
	ctx, h := t.Context(), newHouse()
	store := &brokenStore{Store: open(t, t.TempDir())}
	config := h.config(store)
	secret := errors.New("/home/ada: no space left on device")
	config.Prompt = func(ctx context.Context, t *agentkit.Turn[state], _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		store.broken(secret)
		err := errors.Join(t.Update(ctx, acp.AgentMessageText("a")), t.Update(ctx, acp.AgentThoughtText("b")))
		if !errors.Is(err, agentkit.ErrNotStored) || !errors.Is(err, secret) {
			h.note("the update's error is %v", err)
		}
		return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
	}
	c := connect(t, agentkit.NewSessions(config), nil, &conformance.TapOptions{Accept: map[string]string{"SES-6": "what could not be stored is not replayed"}})
	s := begin(t, c, "/w")
	h.noted()
	ask(t, s, "hello")
	wantLines(t, "sent", c.heard(), "agent: a", "thought: b", "title: hello")
	wantLines(t, "notes", h.noted())
	if !strings.Contains(h.log(), "no space left") {
		t.Errorf("the log says %q", h.log())
	}
	for fail, want := range map[error]acp.Code{secret: rpc.ErrInternal, fmt.Errorf("%w: %w", sessionstore.ErrTooLarge, secret): acp.ErrInvalidRequest} {
		store.broken(fail)
		_, err := s.Prompt(ctx, acp.TextBlock("more"))
		if !errors.Is(err, want) || strings.Contains(err.Error(), "ada") || !strings.Contains(err.Error(), "stored") {
			t.Errorf("a prompt that cannot be stored: %v", err)
		}
		_, err = c.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"})
		if err == nil || strings.Contains(err.Error(), "ada") {
			t.Errorf("loading: %v", err)
		}
		store.broken(nil)
		if _, err = c.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}); err != nil {
			t.Errorf("loading: %v", err)
		}
	}
}

func TestFork(t *testing.T) {
	ctx, h, store := t.Context(), newHouse(), open(t, t.TempDir())
	config := h.config(store)
	prompt := config.Prompt
	var sessions *agentkit.Sessions[state]
	config.Prompt = func(ctx context.Context, t *agentkit.Turn[state], req *acp.PromptRequest) (*acp.PromptResponse, error) {
		if promptText(req) != "fork" {
			return prompt(ctx, t, req)
		}
		if err := t.Update(ctx, acp.AgentMessageText("forking")); err != nil {
			return nil, err
		}
		res, err := sessions.Fork(ctx, t.Conn(), t.ID(), &acp.NewSessionRequest{Cwd: "/fork"})
		if err != nil {
			return nil, err
		}
		return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, t.Update(ctx, acp.AgentMessageText(string(res.SessionID)))
	}
	sessions = agentkit.NewSessions(config)
	c := connect(t, sessions, nil, tapped)
	s := begin(t, c, "/w")
	ask(t, s, "one")
	ask(t, s, "fork")
	infos := listed(t, c, "/fork")
	if len(infos) != 1 || infos[0].Title.Value() != "one" {
		t.Fatalf("listed: %+v", infos)
	}
	fork := c.Session(infos[0].SessionID)
	ask(t, fork, "two")
	c.heard()
	for id, want := range map[acp.SessionID][]string{
		fork.ID(): {"user: one", "agent: did one", "user: fork", "agent: forking", "user: two", "agent: did two", "title: one"},
		s.ID():    {"user: one", "agent: did one", "user: fork", "agent: forking", "agent: " + string(fork.ID()), "title: one"},
	} {
		must.Get(c.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: id, Cwd: "/w"}))(t)
		wantLines(t, "replayed", c.heard(), want...)
	}
	if _, err := sessions.Fork(ctx, (&acp.AgentSession{}).Conn(), "none", &acp.NewSessionRequest{}); err == nil {
		t.Error("forked nothing")
	}
}

// Prompts, modes and openings of many sessions at once.
func TestManyAtOnce(t *testing.T) {
	tier.Need(t, tier.Normal)
	ctx, h, store := t.Context(), newHouse(), open(t, filepath.Join(t.TempDir(), "store"))
	config := h.config(store)
	config.WhileBusy = agentkit.Queue
	c := connect(t, agentkit.NewSessions(config), nil, tapped)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			s, err := c.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/w"})
			if err != nil {
				t.Error(err)
				return
			}
			var prompts sync.WaitGroup
			for i := range 5 {
				prompts.Go(func() {
					if _, err := s.Prompt(ctx, acp.TextBlock(fmt.Sprint(i))); err != nil {
						t.Error(err)
					}
				})
				prompts.Go(func() {
					if err := s.SetMode(ctx, "b"); err != nil {
						t.Error(err)
					}
				})
			}
			prompts.Wait()
			if _, err := c.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "/w"}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	opened := 0
	for _, note := range h.noted() {
		if strings.HasPrefix(note, "open 1") {
			opened++
			if note != "open 1 /w [], 5 prompts, mode b" {
				t.Errorf("note: %s", note)
			}
		}
	}
	if opened != 8 {
		t.Errorf("%d sessions were loaded", opened)
	}
}
