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

// capability is the key under which the agent says what it can do beyond the protocol.
const capability = "acme.example.com"

// agent is an agent that can index folders.
type agent struct {
	mu      sync.Mutex
	indexes map[acp.SessionID]map[string]vendoracp.FileCount
}

// serve is the agent, until its client closes the connection.
func serve(ctx context.Context) error {
	a := &agent{indexes: map[acp.SessionID]map[string]vendoracp.FileCount{}}
	extensions := &acp.Extensions[acp.AgentConn]{}
	rpc.HandleMethod(extensions, vendoracp.IndexMethod, a.index)
	return acp.ServeAgent(ctx, acp.Stdio(), acp.AgentHandlers{
		NewSession: a.newSession,
		Prompt:     a.prompt,
		Extensions: extensions,
	}, &acp.AgentOptions{
		Info: acp.Implementation{Name: "acme", Version: "1.0"},
		// What is not part of the protocol is advertised in _meta.
		Initialize: func(_ context.Context, _ *acp.InitializeRequest, res *acp.InitializeResponse) error {
			return res.AgentCapabilities.Meta.Set(capability, vendoracp.Capability{Index: true})
		},
	})
}

func (a *agent) newSession(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
	return &acp.NewSessionResponse{SessionID: acp.SessionID(rand.Text())}, nil
}

// index serves _acme/index: it counts the files of each language, and tells the client of each file.
func (a *agent) index(ctx context.Context, client *acp.AgentConn, req *vendoracp.IndexRequest) (*vendoracp.IndexResponse, error) {
	tell := func(event vendoracp.IndexEvent) error {
		return vendoracp.IndexProgressMethod.Notify(ctx, client, &vendoracp.IndexProgressNotification{SessionID: req.SessionID, Event: event})
	}
	files := map[string]vendoracp.FileCount{}
	left, limited := req.MaxFiles.Get()
	err := fs.WalkDir(os.DirFS(req.Root), ".", func(path string, _ fs.DirEntry, err error) error {
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
	a.indexes[acp.SessionID(req.SessionID)] = files
	return &vendoracp.IndexResponse{Files: files}, nil
}

// languages are the languages of the files that are indexed.
var languages = map[string]vendoracp.Language{".go": vendoracp.LanguageGo, ".ts": vendoracp.LanguageTypeScript, ".json": "json"}

// prompt says what is in the session's index.
func (a *agent) prompt(ctx context.Context, session *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
	a.mu.Lock()
	files := a.indexes[session.ID()]
	a.mu.Unlock()
	var counts []string
	for _, language := range slices.Sorted(maps.Keys(files)) {
		counts = append(counts, fmt.Sprintf("%d in %s", files[language], language))
	}
	text := "There are files: " + strings.Join(counts, ", ")
	if err := session.Update(ctx, acp.AgentMessageText(text)); err != nil {
		return nil, err
	}
	return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}
