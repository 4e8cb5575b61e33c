// This file owns the life of a session: new, load, resume, list, close and delete.

package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/acpgo/sdk/acp"
)

// defaultPageSize is how many sessions session/list gives at once (LST-12).
const defaultPageSize = 50

// session is an active session.
type session struct {
	id     acp.SessionID
	log    *slog.Logger
	store  *store
	broken []error // MCP servers that did not start

	mu      sync.Mutex
	servers []*mcpServer
	record  *record
	kept    *atomic.Int64         // of the agent
	bytes   int                   // its part of kept: of the record as it was saved last, and of the prompt in progress
	allowed map[acp.ToolKind]bool // what the user allowed for good
	turn    *turn                 // in progress, or nil
	ended   bool
}

// defaultMaxHistory is how many bytes of conversations there may be in memory: those of all active sessions, with the
// prompts in progress. What a turn itself adds may go beyond it; the next prompt is then refused.
const defaultMaxHistory = 16 << 20

var errFull = acp.ErrInvalidRequest.WithMessagef("the conversations of the open sessions are too long: close one")

// workspace is what a client says of a session's surroundings when it opens one.
type workspace struct {
	cwd        string
	additional []string
	servers    []acp.MCPServer
}

// check refuses relative paths (SES-17, SES-20), and MCP servers that initialize did not offer (SES-27,
// SES-30).
func (w *workspace) check() error {
	for _, dir := range append([]string{w.cwd}, w.additional...) {
		if !filepath.IsAbs(dir) {
			return acp.InvalidParamsf("%q is not an absolute path", dir)
		}
	}
	for _, server := range w.servers {
		switch server.Variant.(type) {
		case *acp.MCPServerStdio, *acp.MCPServerHTTP:
		default:
			return acp.InvalidParamsf("MCP servers are supported on stdio and over HTTP")
		}
	}
	return nil
}

func (a *agent) newSession(ctx context.Context, client *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
	w := &workspace{req.Cwd, req.AdditionalDirectories, req.MCPServers}
	if err := w.check(); err != nil {
		return nil, err
	}
	id := newSessionID()
	done, err := a.change(id)
	if err != nil {
		return nil, err
	}
	defer done()
	s, err := a.open(ctx, &record{Info: acp.SessionInfo{SessionID: id}, Settings: defaultSettings}, w)
	if err != nil {
		return nil, err
	}
	greetLater(ctx, client.Session(s.id), s)
	now := s.settings()
	return &acp.NewSessionResponse{
		SessionID:     s.id,
		Modes:         acp.Some(now.modeState()),
		ConfigOptions: acp.Some(now.options(client)),
	}, nil
}

// loadSession replays the whole conversation before it answers (SES-6, SES-7), and says what the session has: the
// client named it, and knows it already.
func (a *agent) loadSession(ctx context.Context, session *acp.AgentSession, req *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
	s, err := a.reopen(ctx, req.SessionID, &workspace{req.Cwd, req.AdditionalDirectories, req.MCPServers})
	if err != nil {
		return nil, err
	}
	for _, update := range s.history() {
		if err := session.Update(ctx, update); err != nil {
			return nil, errors.Join(err, a.shut(s))
		}
	}
	if err := greet(ctx, session, s); err != nil {
		return nil, errors.Join(err, a.shut(s))
	}
	now := s.settings()
	return &acp.LoadSessionResponse{
		Modes:         acp.Some(now.modeState()),
		ConfigOptions: acp.Some(now.options(session.Conn())),
	}, nil
}

// resumeSession replays nothing (SES-11).
func (a *agent) resumeSession(ctx context.Context, session *acp.AgentSession, req *acp.ResumeSessionRequest) (*acp.ResumeSessionResponse, error) {
	s, err := a.reopen(ctx, req.SessionID, &workspace{req.Cwd, req.AdditionalDirectories, req.MCPServers})
	if err != nil {
		return nil, err
	}
	greetLater(ctx, session, s)
	now := s.settings()
	return &acp.ResumeSessionResponse{
		Modes:         acp.Some(now.modeState()),
		ConfigOptions: acp.Some(now.options(session.Conn())),
	}, nil
}

// reopen makes a session active that is kept. One that is active already takes its new workspace, but
// not in the middle of a turn.
func (a *agent) reopen(ctx context.Context, id acp.SessionID, w *workspace) (*session, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	done, err := a.change(id)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := a.shutID(id); err != nil {
		return nil, err
	}
	r, err := a.store.load(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, acp.SessionNotFound(id)
	}
	if err != nil {
		return nil, err
	}
	return a.open(ctx, r, w)
}

// open makes a session active. The roots given replace those that it had (SES-18), and its MCP servers
// are started and initialized. The caller keeps others off the session by change.
func (a *agent) open(ctx context.Context, r *record, w *workspace) (*session, error) {
	if err := a.room(); err != nil {
		return nil, err
	}
	r.Info.Cwd, r.Info.AdditionalDirectories = w.cwd, w.additional
	s := &session{id: r.Info.SessionID, store: a.store, kept: &a.kept, record: r, allowed: map[acp.ToolKind]bool{}}
	s.log = a.log.With("session", s.id)
	if _, err := s.save(); err != nil {
		return nil, err
	}
	s.servers, s.broken = a.startServers(ctx, w)
	for _, err := range s.broken {
		s.log.Warn("MCP server did not start", "error", err)
	}
	a.put(s)
	return s, nil
}

// greetLater greets strictly after the answer that opens the session: clients drop updates of a session that they do
// not know yet (SES-31), and expect none before session/resume is answered (SES-11).
func greetLater(ctx context.Context, client *acp.AgentSession, s *session) {
	acp.AfterResponse(ctx, func(ctx context.Context) {
		if err := greet(ctx, client, s); err != nil {
			s.log.Warn("commands not sent", "error", err)
		}
	})
}

// greet sends what the client of an opened session should know: its commands, and what went wrong.
func greet(ctx context.Context, client *acp.AgentSession, s *session) error {
	if err := client.Update(ctx, acp.CommandsUpdate(commands()...)); err != nil {
		return err
	}
	for _, broken := range s.broken {
		err := client.Update(ctx, acp.NewSessionUpdateNotice(acp.Notice{
			Severity: acp.NoticeSeverityWarning, Title: "An MCP server did not start", Description: acp.Some(broken.Error()),
		}))
		if errors.Is(err, acp.ErrUnsupported) {
			return nil // this client shows no notices
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// listSessions gives the sessions that are kept, a page at a time, the one used last first.
func (a *agent) listSessions(_ context.Context, _ *acp.AgentConn, req *acp.ListSessionsRequest) (*acp.ListSessionsResponse, error) {
	cwd, filtered := req.Cwd.Get()
	if filtered && !filepath.IsAbs(cwd) {
		return nil, acp.InvalidParamsf("%q is not an absolute path", cwd)
	}
	cursor, next := req.Cursor.Get()
	after, err := parseCursor(cursor)
	if next && err != nil {
		return nil, acp.InvalidParamsf("no such cursor")
	}
	infos, err := a.store.list(func(name string, err error) {
		a.log.Warn("left out of the list", "file", name, "error", err)
	})
	if err != nil {
		return nil, err
	}
	infos = slices.DeleteFunc(infos, func(info acp.SessionInfo) bool {
		return filtered && filepath.Clean(info.Cwd) != filepath.Clean(cwd) ||
			next && comparePosition(positionOf(info), after) >= 0
	})
	res := &acp.ListSessionsResponse{Sessions: infos}
	if len(infos) > a.pageSize {
		res.Sessions = infos[:a.pageSize]
		res.NextCursor = acp.Some(formatCursor(positionOf(infos[a.pageSize-1])))
	}
	return res, nil
}

// A cursor names the last session of its page, so that what changes meanwhile is neither repeated nor
// skipped.
func formatCursor(p position) string {
	text, _ := json.Marshal(p) // two strings
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseCursor(cursor string) (p position, err error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, err
	}
	if p.ID == "" {
		err = errors.New("names no session")
	}
	return p, err
}

func (a *agent) closeSession(_ context.Context, _ *acp.AgentSession, req *acp.CloseSessionRequest) (*acp.CloseSessionResponse, error) {
	done, err := a.change(req.SessionID)
	if err != nil {
		return nil, err
	}
	defer done()
	s, err := a.session(req.SessionID)
	if err != nil {
		return nil, err
	}
	return &acp.CloseSessionResponse{}, a.shut(s)
}

// deleteSession succeeds whether there was a session or not (DEL-5).
func (a *agent) deleteSession(_ context.Context, _ *acp.AgentSession, req *acp.DeleteSessionRequest) (*acp.DeleteSessionResponse, error) {
	done, err := a.change(req.SessionID)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := a.shutID(req.SessionID); err != nil {
		return nil, err
	}
	return &acp.DeleteSessionResponse{}, a.store.remove(req.SessionID)
}

// shutID ends a session if it is active.
func (a *agent) shutID(id acp.SessionID) error {
	s, err := a.session(id)
	if err != nil {
		return nil // it is not
	}
	return a.shut(s)
}

// shut ends a session.
func (a *agent) shut(s *session) error {
	if err := s.end(); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.active[s.id] == s {
		delete(a.active, s.id)
	}
	return nil
}

// end lets go of what the session holds, unless a turn is in progress. That is not so when session/close
// or session/delete is handled: the runtime has cancelled it and has seen it answered (SES-15).
func (s *session) end() error {
	s.mu.Lock()
	busy := s.turn != nil
	var servers []*mcpServer
	if !busy {
		s.ended, servers, s.servers = true, s.servers, nil
		s.count(0)
	}
	s.mu.Unlock()
	if busy {
		return acp.ErrInvalidRequest.WithMessagef("the session is busy with a turn")
	}
	if err := stopServers(servers); err != nil {
		s.log.Warn("MCP servers did not end", "error", err)
	}
	return nil
}

func (s *session) mcpServers() []*mcpServer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.servers
}

// playing is the turn in progress, or nil.
func (s *session) playing() *turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn
}

// begin starts a turn, and history with what the user said.
func (s *session) begin(t *turn, prompt []acp.ContentBlock, maxHistory int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	bytes := length(prompt)
	switch {
	case s.ended:
		return acp.SessionNotFound(s.id)
	case s.turn != nil:
		return acp.ErrInvalidRequest.WithMessagef("the session is busy with a turn")
	case s.kept.Load()+int64(bytes) > maxHistory:
		return errFull
	}
	s.count(s.bytes + bytes)
	s.turn = t
	t.start = len(s.record.History)
	message := acp.Some(newMessageID())
	for _, block := range prompt {
		s.record.History = append(s.record.History,
			acp.NewSessionUpdateUserMessageChunk(acp.ContentChunk{Content: block, MessageID: message}))
	}
	return nil
}

// remember adds an update to the history.
func (s *session) remember(update acp.SessionUpdate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.History = append(s.record.History, update)
}

// configure changes the settings, and returns them as they are now.
func (s *session) configure(change func(*settings) error) (settings, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return settings{}, acp.SessionNotFound(s.id)
	}
	if err := change(&s.record.Settings); err != nil {
		return settings{}, err
	}
	_, err := s.save()
	return s.record.Settings, err
}

func (s *session) settings() settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.Settings
}

func (s *session) history() []acp.SessionUpdate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.record.History)
}

// save keeps the session as it is, and returns its size in bytes. s.mu is held, or nobody else knows s.
func (s *session) save() (int, error) {
	s.record.Info.UpdatedAt = acp.Some(timestamp())
	bytes, err := s.store.save(s.record)
	if err == nil {
		s.count(bytes)
	}
	return bytes, err
}

// count says how many bytes of the conversation are in memory. s.mu is held, or nobody else knows s.
func (s *session) count(bytes int) {
	s.kept.Add(int64(bytes - s.bytes))
	s.bytes = bytes
}

// length is how many bytes a prompt takes, about.
func length(prompt []acp.ContentBlock) int {
	const block = 256 // its names and short members
	n := len(prompt) * block
	for _, b := range prompt {
		switch b := b.Variant.(type) {
		case *acp.ContentBlockText:
			n += len(b.Text)
		case *acp.ContentBlockImage:
			n += len(b.Data)
		case *acp.ContentBlockAudio:
			n += len(b.Data)
		case *acp.ContentBlockResource:
			switch r := b.Resource.Variant.(type) {
			case *acp.TextResourceContents:
				n += len(r.Text)
			case *acp.BlobResourceContents:
				n += len(r.Blob)
			}
		case *acp.ContentBlockUnknown:
			n += len(b.Raw)
		}
	}
	return n
}

// cwd is the session's directory. It does not change while the session is active.
func (s *session) cwd() string { return s.record.Info.Cwd }

// absolute makes a path absolute: it is relative to the session's directory (SES-22).
func (s *session) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(s.cwd(), path)
}

// within finds the directory of the session that bounds an absolute path (SES-24), and the path in there.
// There is none for a path outside of them all.
func (s *session) within(path string) (root, rel string, ok bool) {
	for _, root := range append([]string{s.cwd()}, s.record.Info.AdditionalDirectories...) {
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			return root, rel, true
		}
	}
	return "", "", false
}
