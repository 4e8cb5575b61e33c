package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"example.com/acme/vendoracp"
	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// capability is the key under which the agent advertises its methods beyond the protocol.
const capability = "acme.example.com"

// agent is an agent that can index the directories of its sessions.
type agent struct {
	mu       sync.Mutex
	sessions map[acp.SessionID]*session
}

// session is a session, with the files that were last indexed in it.
type session struct {
	cwd   string
	files map[string]vendoracp.FileCount
}

// maxSessions bounds the number of sessions, because the client opens them.
const maxSessions = 1000

// serve runs the agent until its client closes the connection.
func serve(ctx context.Context) error {
	a := &agent{sessions: map[acp.SessionID]*session{}}
	extensions := &acp.Extensions[acp.AgentConn]{}
	rpc.HandleMethod(extensions, vendoracp.IndexMethod, a.index)
	return acp.ServeAgent(ctx, acp.Stdio(), acp.AgentHandlers{
		NewSession: a.newSession,
		Prompt:     a.prompt,
		Extensions: extensions,
	}, &acp.AgentOptions{
		Info: acp.Implementation{Name: "acme", Version: "1.0"},
		// Features outside the protocol are advertised in _meta.
		Initialize: func(_ context.Context, _ *acp.InitializeRequest, res *acp.InitializeResponse) error {
			return res.AgentCapabilities.Meta.Set(capability, vendoracp.Capability{Index: true})
		},
	})
}

func (a *agent) newSession(_ context.Context, _ *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse,
	error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.sessions) == maxSessions {
		return nil, acp.ErrInvalidRequest.WithMessagef("%d sessions are open, the maximum", maxSessions)
	}
	id := acp.SessionID(rand.Text())
	a.sessions[id] = &session{cwd: req.Cwd}
	return &acp.NewSessionResponse{SessionID: id}, nil
}

// session finds a session. Its directory does not change; a.mu guards the rest.
func (a *agent) session(id acp.SessionID) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[id]; s != nil {
		return s, nil
	}
	return nil, acp.SessionNotFound(id)
}

// folder opens a directory for reading. It must be inside the directory of the session, even if links are followed.
func (s *session) folder(path string) (*os.Root, error) {
	rel, err := filepath.Rel(s.cwd, path)
	if err != nil || !filepath.IsAbs(path) || !filepath.IsLocal(rel) {
		return nil, acp.InvalidParamsf("root is not in the directory of the session")
	}
	cwd, err := os.OpenRoot(s.cwd)
	if err != nil {
		return nil, acp.Public(err)
	}
	defer cwd.Close()
	root, err := cwd.OpenRoot(rel)
	if err != nil {
		return nil, acp.Public(err)
	}
	return root, nil
}

// index serves _acme/index: it counts the files of each language, and notifies the client of each file.
func (a *agent) index(ctx context.Context, client *acp.AgentConn,
	req *vendoracp.IndexRequest) (*vendoracp.IndexResponse, error) {
	s, err := a.session(acp.SessionID(req.SessionID))
	if err != nil {
		return nil, err
	}
	root, err := s.folder(req.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	tell := func(event vendoracp.IndexEvent) error {
		return vendoracp.IndexProgressMethod.Notify(ctx, client,
			&vendoracp.IndexProgressNotification{SessionID: req.SessionID, Event: event})
	}
	files := map[string]vendoracp.FileCount{}
	left, limited := req.MaxFiles.Get()
	err = fs.WalkDir(root.FS(), ".", func(path string, _ fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		language, known := languages[filepath.Ext(path)]
		if err != nil || !known {
			return err
		}
		if limited && left == 0 {
			if err := tell(vendoracp.LimitReached()); err != nil {
				return err
			}
			return fs.SkipAll
		}
		left--
		files[string(language)]++
		return tell(vendoracp.FileIndexed(path, language))
	})
	if err != nil {
		return nil, acp.Public(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s.files = files
	return &vendoracp.IndexResponse{Files: files}, nil
}

// languages are the languages of the files that are indexed.
var languages = map[string]vendoracp.Language{".go": vendoracp.LanguageGo, ".ts": vendoracp.LanguageTypeScript,
	".json": "json"}

// prompt reports the session's index.
func (a *agent) prompt(ctx context.Context, client *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse,
	error) {
	s, err := a.session(client.ID())
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	files := s.files // this slice no longer changes
	a.mu.Unlock()
	var counts []string
	for _, language := range slices.Sorted(maps.Keys(files)) {
		counts = append(counts, fmt.Sprintf("%d in %s", files[language], language))
	}
	text := "There are files: " + strings.Join(counts, ", ")
	if err := client.Update(ctx, acp.AgentMessageText(text)); err != nil {
		return nil, err
	}
	return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}
