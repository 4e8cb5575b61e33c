package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/ways"
)

func asError(err error) *acp.Error {
	e, _ := errors.AsType[*acp.Error](err)
	return e
}

func TestSES2_SessionIDsAreUnique(t *testing.T) {
	h := connect(t, setup{})
	var mu sync.Mutex
	ids := map[acp.SessionID]bool{}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			s, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: h.dir})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids[s.ID()] = true
		})
	}
	wg.Wait()
	if len(ids) != 20 || ids[""] {
		t.Errorf("got %d different ids, want 20", len(ids))
	}
}

// The history is replayed by an agent that starts with nothing but the state.
func TestSES6_SES7_LoadReplaysBeforeAnswer(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	put(t, dir, "notes.txt", "the notes")
	first := connect(t, setup{state: state, dir: dir})
	s := first.session(t)
	say(t, s, "plan: think, then read notes.txt, and run `echo from the terminal`", acp.StopReasonEndTurn)
	say(t, s, "second question", acp.StopReasonEndTurn)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	second := connect(t, setup{state: state, dir: dir})
	loaded, err := second.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: dir})
	if err != nil {
		t.Fatal(err)
	}
	replayed := second.seen(s.ID())
	answer := second.wire.answerTo(t, 0, acp.MethodLoadSession)
	if before := second.wire.all()[answer-1]; before.kind() != "available_commands_update" {
		t.Errorf("before the answer: %s, want the commands", before.line)
	}
	if late := second.wire.all()[answer+1:]; len(late) != 0 {
		t.Errorf("after the answer: %v", late)
	}

	var said []string
	for _, u := range replayed {
		if chunk, ok := u.Variant.(*acp.SessionUpdateUserMessageChunk); ok {
			text := chunk.Content.Text()
			said = append(said, text)
		}
	}
	if want := []string{"plan: think, then read notes.txt, and run `echo from the terminal`", "second question"}; !slices.Equal(said, want) {
		t.Errorf("the user said %q, want %q", said, want)
	}
	for _, want := range []string{"You said: plan", "You said: second question"} {
		if got := spoken(replayed); !strings.Contains(got, want) {
			t.Errorf("the agent said %q, which lacks %q", got, want)
		}
	}
	if n := len(variants[*acp.SessionUpdateToolCall](replayed)); n != 2 {
		t.Errorf("replayed %d tool calls, want 2", n)
	}
	if n := len(variants[*acp.SessionUpdatePlan](replayed)); n < 2 {
		t.Errorf("replayed %d plans, want at least 2", n)
	}
	// A terminal that is gone is replayed as what it showed (TOL-8).
	shown := false
	for _, u := range variants[*acp.SessionUpdateToolCallUpdate](replayed) {
		for _, c := range u.Content.Value() {
			if _, ok := c.Variant.(*acp.ToolCallContentTerminal); ok {
				t.Error("a terminal of another connection was replayed")
			}
			if text, ok := c.Variant.(*acp.ToolCallContentContent); ok {
				shown = shown || strings.Contains(fmt.Sprint(text.Content.Variant), "from the terminal")
			}
		}
	}
	if !shown {
		t.Error("the output of the terminal was not replayed")
	}
	if !loaded.Modes().Present() || !loaded.ConfigOptions().Present() {
		t.Error("the answer lacks modes or config options")
	}
	say(t, loaded, "third question", acp.StopReasonEndTurn)
}

// Chunks of one message share an id; that of the user's is not the agent's (PRM-3).
func TestPRM3_MessageIDs(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	say(t, s, "a first prompt that is long enough for some chunks", acp.StopReasonEndTurn)
	say(t, s, "think and answer", acp.StopReasonEndTurn)
	if _, err := h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: h.dir}); err != nil {
		t.Fatal(err)
	}
	owner, last := map[acp.MessageID]string{}, ""
	for i, u := range h.seen(s.ID()) {
		var id acp.MessageID
		var kind string
		switch v := u.Variant.(type) {
		case *acp.SessionUpdateUserMessageChunk:
			id, kind = v.MessageID.Value(), "user"
		case *acp.SessionUpdateAgentMessageChunk:
			id, kind = v.MessageID.Value(), "agent"
		case *acp.SessionUpdateAgentThoughtChunk:
			id, kind = v.MessageID.Value(), "thought"
		default:
			continue
		}
		if id == "" {
			t.Fatalf("update %d has no message id", i)
		}
		if was, ok := owner[id]; ok && was != kind {
			t.Errorf("message %s is by %s and by %s", id, was, kind)
		}
		owner[id] = kind
		last = kind
	}
	if len(owner) != 5 || last != "agent" { // two prompts, two answers, one thought
		t.Errorf("got %d messages, the last by %s, want 5, by the agent", len(owner), last)
	}
}

func TestSES11_ResumeReplaysNothing(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	first := connect(t, setup{state: state, dir: dir})
	s := first.session(t)
	say(t, s, "hello", acp.StopReasonEndTurn)
	if err := s.SetMode(t.Context(), modeAuto); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	h := connect(t, setup{state: state, dir: dir})
	resumed, err := h.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: s.ID(), Cwd: dir})
	if err != nil {
		t.Fatal(err)
	}
	answer := h.wire.answerTo(t, 0, acp.MethodResumeSession)
	for _, m := range h.wire.all()[:answer] {
		if m.kind() != "" {
			t.Errorf("before the answer: %s", m.line)
		}
	}
	if got := resumed.Modes().Value().CurrentModeID; got != modeAuto {
		t.Errorf("resumed in mode %s, want %s", got, modeAuto)
	}
	h.wire.await(t, answer, "the commands", isUpdate("available_commands_update"))
	say(t, resumed, "hello again", acp.StopReasonEndTurn)
}

func TestSES15_CloseCancelsTheTurn(t *testing.T) {
	for method, shut := range map[string]func(*testing.T, *acp.ClientSession) error{
		acp.MethodCloseSession:  func(t *testing.T, s *acp.ClientSession) error { return s.Close(t.Context()) },
		acp.MethodDeleteSession: func(t *testing.T, s *acp.ClientSession) error { return s.Delete(t.Context()) },
	} {
		t.Run(method, func(t *testing.T) {
			h := connect(t, setup{})
			s := h.session(t)
			turn := s.Stream(t.Context(), acp.TextBlock("Write a very long story"))
			running(t, turn)
			if err := shut(t, s); err != nil {
				t.Fatal(err)
			}
			res, err := turn.Result()
			if err != nil || res.StopReason != acp.StopReasonCancelled {
				t.Errorf("the turn ended with %v, %v, want cancelled", res, err)
			}
			if prompt, closed := h.wire.answerTo(t, 0, acp.MethodPrompt), h.wire.answerTo(t, 0, method); prompt > closed {
				t.Errorf("the prompt was answered after %s", method)
			}
			_, err = s.Prompt(t.Context(), acp.TextBlock("hello"))
			wantCode(t, err, acp.ErrResourceNotFound)
		})
	}
}

// A turn in progress is not disturbed by opening its session again.
func TestLoadOfABusySession(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	turn := s.Stream(t.Context(), acp.TextBlock("Write a very long story"))
	running(t, turn)
	_, err := h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: h.dir})
	wantCode(t, err, acp.ErrInvalidRequest)
	_, err = h.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: s.ID(), Cwd: h.dir})
	wantCode(t, err, acp.ErrInvalidRequest)
	turn.Cancel()
	if res, err := turn.Result(); err != nil || res.StopReason != acp.StopReasonCancelled {
		t.Errorf("the turn ended with %v, %v, want cancelled", res, err)
	}
	if _, err = h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: h.dir}); err != nil {
		t.Error(err)
	}
}

func TestERR5_UnknownSessions(t *testing.T) {
	h := connect(t, setup{breaks: map[string]string{"PRM-1": "what the agent must refuse"}})
	const id = "nope"
	requests := map[string]func() error{
		acp.MethodPrompt: func() error {
			_, err := h.Prompt(t.Context(), &acp.PromptRequest{SessionID: id})
			return err
		},
		acp.MethodSetSessionMode: func() error {
			_, err := h.SetSessionMode(t.Context(), &acp.SetSessionModeRequest{SessionID: id, ModeID: modeAsk})
			return err
		},
		acp.MethodSetSessionConfigOption: func() error {
			req := acp.NewSetSessionConfigOptionRequestValueID(id, optionMode, "ask")
			_, err := h.SetSessionConfigOption(t.Context(), &req)
			return err
		},
		acp.MethodLoadSession: func() error {
			_, err := h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: id, Cwd: h.dir})
			return err
		},
		acp.MethodResumeSession: func() error {
			_, err := h.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: id, Cwd: h.dir})
			return err
		},
		acp.MethodCloseSession: func() error {
			_, err := rpc.Call[struct{}](t.Context(), h, acp.MethodCloseSession, &acp.CloseSessionRequest{SessionID: id})
			return err
		},
	}
	for method, call := range requests {
		if got := string(wantCode(t, call(), acp.ErrResourceNotFound).Data); got != `{"sessionId":"nope"}` {
			t.Errorf("%s: got data %s", method, got)
		}
	}
}

// Sessions that are kept but not active are not there to be prompted (LST-14).
func TestLST14_ListRestoresNothing(t *testing.T) {
	state, dir := t.TempDir(), t.TempDir()
	first := connect(t, setup{state: state, dir: dir})
	s := first.session(t)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	h := connect(t, setup{state: state, dir: dir, breaks: map[string]string{"PRM-1": "what the agent must refuse"}})
	if got := list(t, h, ""); len(got) != 1 {
		t.Fatalf("listed %d sessions, want 1", len(got))
	}
	_, err := h.Prompt(t.Context(), &acp.PromptRequest{SessionID: s.ID(), Prompt: []acp.ContentBlock{acp.TextBlock("hello")}})
	wantCode(t, err, acp.ErrResourceNotFound)
}

// Ids are names of files, and come from the client.
func TestForeignIDsReachNoFile(t *testing.T) {
	ways.InMemory(t, "over HTTP, the id of a session stands in a header")
	state := t.TempDir()
	outside := put(t, filepath.Dir(state), "sess_a.json", "{}")
	h := connect(t, setup{state: state})
	for _, id := range []acp.SessionID{"../../sess_a", "../../../sess_a", "../login", "sess_", "login", "sess_../x", `..\sess_a`, "sess_a\x00"} {
		_, err := h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: id, Cwd: h.dir})
		wantCode(t, err, acp.ErrResourceNotFound)
		if _, err := h.DeleteSession(t.Context(), &acp.DeleteSessionRequest{SessionID: id}); err != nil {
			t.Errorf("deleting %q: %v", id, err)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

func TestSES17_SES20_PathsAreAbsolute(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	_, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "rel"})
	wantCode(t, err, acp.ErrInvalidParams)
	_, err = h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: h.dir, AdditionalDirectories: []string{"rel"}})
	wantCode(t, err, acp.ErrInvalidParams)
	_, err = h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: "rel"})
	wantCode(t, err, acp.ErrInvalidParams)
	_, err = h.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: s.ID(), Cwd: h.dir, AdditionalDirectories: []string{"rel"}})
	wantCode(t, err, acp.ErrInvalidParams)
	_, err = h.ListSessions(t.Context(), &acp.ListSessionsRequest{Cwd: acp.Some("rel")})
	wantCode(t, err, acp.ErrInvalidParams)
	say(t, s, "still there", acp.StopReasonEndTurn)
}

func TestSES18_RootsAreReplaced(t *testing.T) {
	h := connect(t, setup{})
	extra := t.TempDir()
	s := h.session(t, func(r *acp.NewSessionRequest) { r.AdditionalDirectories = []string{extra} })
	if got := list(t, h, "")[0].AdditionalDirectories; !slices.Equal(got, []string{extra}) {
		t.Errorf("listed %q, want %q", got, extra)
	}
	if _, err := h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: h.dir}); err != nil {
		t.Fatal(err)
	}
	if got := list(t, h, "")[0].AdditionalDirectories; len(got) != 0 {
		t.Errorf("listed %q after a load without, want none", got)
	}
	other := t.TempDir()
	if _, err := h.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: s.ID(), Cwd: h.dir, AdditionalDirectories: []string{other}}); err != nil {
		t.Fatal(err)
	}
	if got := list(t, h, "")[0].AdditionalDirectories; !slices.Equal(got, []string{other}) {
		t.Errorf("listed %q, want %q", got, other)
	}
}

func TestSES31_NothingPrecedesTheAnswer(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	naming := func(m message) bool { return strings.Contains(m.line, string(s.ID())) }
	first := h.wire.index(0, naming)
	if got := h.wire.answerTo(t, 0, acp.MethodNewSession); first != got {
		t.Errorf("the session was first named by %s", h.wire.all()[first].line)
	}
	h.wire.await(t, first+1, "the commands", isUpdate("available_commands_update")) // CMD-1
}

func TestCMD2_Commands(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	h.wire.await(t, 0, "the commands", isUpdate("available_commands_update"))
	say(t, s, "hello", acp.StopReasonEndTurn) // so that the update was handled
	got := variants[*acp.SessionUpdateAvailableCommandsUpdate](h.seen(s.ID()))
	if len(got) != 1 || len(got[0].AvailableCommands) < 5 {
		t.Fatalf("got %v", got)
	}
	for _, c := range got[0].AvailableCommands {
		if c.Name == "" || c.Description == "" || strings.HasPrefix(c.Name, "/") {
			t.Errorf("bad command %+v", c)
		}
	}
}

// list is the whole list of sessions.
func list(t *testing.T, h *host, cwd string) []acp.SessionInfo {
	t.Helper()
	var all []acp.SessionInfo
	for info, err := range h.Sessions(t.Context(), cwd) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, info)
	}
	return all
}

func TestLST4_LST8_FilterByDirectory(t *testing.T) {
	h := connect(t, setup{})
	other := t.TempDir()
	h.session(t)
	there := h.session(t, func(r *acp.NewSessionRequest) { r.Cwd = other })
	if got := list(t, h, other); len(got) != 1 || got[0].SessionID != there.ID() || got[0].Cwd != other {
		t.Errorf("in %s: got %v", other, got)
	}
	if got := list(t, h, ""); len(got) != 2 {
		t.Errorf("got %d sessions, want 2", len(got))
	}
	res, err := h.ListSessions(t.Context(), &acp.ListSessionsRequest{Cwd: acp.Some(t.TempDir())})
	if err != nil || res.Sessions == nil || len(res.Sessions) != 0 || res.NextCursor.Present() {
		t.Errorf("in an unused directory: got %+v, %v", res, err)
	}
}

func TestLST11_LST12_Pages(t *testing.T) {
	h := connect(t, setup{pageSize: 3, breaks: map[string]string{"LST-10": "what the agent must refuse"}})
	want := map[acp.SessionID]bool{}
	for range 8 {
		want[h.session(t).ID()] = true
	}
	res, err := h.ListSessions(t.Context(), &acp.ListSessionsRequest{})
	if err != nil || len(res.Sessions) != 3 || !res.NextCursor.Present() {
		t.Fatalf("the first page: %+v, %v", res, err)
	}
	all := list(t, h, "")
	for i, info := range all {
		delete(want, info.SessionID)
		if i > 0 && all[i-1].UpdatedAt.Value() < info.UpdatedAt.Value() {
			t.Errorf("session %d is not older than the one before", i)
		}
	}
	if len(all) != 8 || len(want) != 0 {
		t.Errorf("listed %d sessions, without %v", len(all), want)
	}
	for _, cursor := range []string{"", "bogus", "e30", "bnVsbA", res.NextCursor.Value() + "x"} {
		_, err := h.ListSessions(t.Context(), &acp.ListSessionsRequest{Cursor: acp.Some(cursor)})
		wantCode(t, err, acp.ErrInvalidParams)
	}
}

// fileOf is the file of a session in the state, with a suffix of its own.
func fileOf(state string, id acp.SessionID, suffix string) string {
	return filepath.Join(state, "sessions", "s-"+string(id)+suffix)
}

func TestListLeavesOutBrokenFiles(t *testing.T) {
	state := t.TempDir()
	h := connect(t, setup{state: state})
	s := h.session(t)
	put(t, state, "sessions/s-sess_broken.json", "{")
	if got := list(t, h, ""); len(got) != 1 || got[0].SessionID != s.ID() {
		t.Errorf("got %v", got)
	}
	_, err := h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: "sess_broken", Cwd: h.dir})
	if e := asError(err); e == nil || e.Code != rpc.ErrInternal {
		t.Errorf("loading a broken session: %v", err)
	}
}

// A file that says it is of another session is of none: saving it would replace the other's.
func TestFilesOfOtherSessions(t *testing.T) {
	state := t.TempDir()
	h := connect(t, setup{state: state})
	s := h.session(t)
	say(t, s, "hello", acp.StopReasonEndTurn)
	victim := fileOf(state, s.ID(), ".json")
	before := get(t, victim)
	put(t, state, "sessions/s-sess_other.json", strings.Replace(before, "hello", "forged", 1))
	for _, open := range []func() error{
		func() error {
			_, err := h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: "sess_other", Cwd: t.TempDir()})
			return err
		},
		func() error {
			_, err := h.ResumeSession(t.Context(), &acp.ResumeSessionRequest{SessionID: "sess_other", Cwd: t.TempDir()})
			return err
		},
	} {
		wantCode(t, open(), rpc.ErrInternal)
	}
	if got := get(t, victim); got != before {
		t.Errorf("the other session's file is\n%s", got)
	}
	if got := list(t, h, ""); len(got) != 1 || got[0].SessionID != s.ID() {
		t.Errorf("listed are %v", got)
	}
}

// What a process that died has left of a session goes with it.
func TestDeleteLeavesNothing(t *testing.T) {
	state := t.TempDir()
	h := connect(t, setup{state: state})
	s := h.session(t)
	say(t, s, "hello", acp.StopReasonEndTurn)
	put(t, state, "sessions/s-"+string(s.ID())+".new", "half of a session")
	if err := s.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Join(state, "sessions"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasPrefix(file.Name(), "lock-") {
			t.Errorf("left is %s", file.Name())
		}
	}
}

func TestTooManySessions(t *testing.T) {
	h := connect(t, setup{maxSessions: 3})
	first := h.session(t)
	for range 2 {
		h.session(t)
	}
	_, err := h.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: h.dir})
	wantCode(t, err, acp.ErrInvalidRequest)
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.session(t)
}

// Opening a session several times at once leaves one that works, and no MCP server of the others.
func TestOpenedAtOnce(t *testing.T) {
	h := connect(t, setup{maxServers: 2})
	s := h.session(t)
	servers := []acp.MCPServer{acp.NewMCPServerStdio(acp.MCPServerStdio{
		Name: "a", Command: self(t), Args: []string{filepath.Join(t.TempDir(), "notes")}, Env: []acp.EnvVariable{{Name: runAs, Value: "mcp"}},
	})}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: h.dir, MCPServers: servers})
			if e := asError(err); err != nil && (e == nil || e.Code != acp.ErrInvalidRequest) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	loaded, err := h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: h.dir, MCPServers: append(servers, servers...)})
	if err != nil {
		t.Fatal(err)
	}
	say(t, loaded, "mcp", acp.StopReasonEndTurn)
	if got := strings.Count(spoken(h.seen(s.ID())), "a: hammer, saw"); got != 2 {
		t.Errorf("%d servers run of 2", got)
	}
}

func TestDEL4_DEL5_Delete(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	for range 2 {
		if _, err := h.DeleteSession(t.Context(), &acp.DeleteSessionRequest{SessionID: s.ID()}); err != nil {
			t.Fatal(err)
		}
		if got := list(t, h, ""); len(got) != 0 {
			t.Errorf("still listed: %v", got)
		}
	}
	_, err := h.LoadSession(t.Context(), &acp.LoadSessionRequest{SessionID: s.ID(), Cwd: h.dir})
	wantCode(t, err, acp.ErrResourceNotFound)
}

func TestTitles(t *testing.T) {
	h := connect(t, setup{})
	s := h.session(t)
	say(t, s, "  What  is\nthe answer? ", acp.StopReasonEndTurn)
	say(t, s, "And another one", acp.StopReasonEndTurn)
	const want = "What is the answer?"
	if got := list(t, h, "")[0].Title.Value(); got != want {
		t.Errorf("listed as %q, want %q", got, want)
	}
	updates := variants[*acp.SessionUpdateSessionInfoUpdate](h.seen(s.ID()))
	if len(updates) != 2 || updates[0].Title.Value() != want || updates[1].Title.Present() || !updates[1].UpdatedAt.Present() {
		t.Errorf("got updates %+v", updates)
	}
	if got := title(strings.Repeat("word ", 100)); len([]rune(got)) != 60 {
		t.Errorf("got a title of %d characters", len([]rune(got)))
	}
}
