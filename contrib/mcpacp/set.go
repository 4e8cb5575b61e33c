package mcpacp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
)

// Tool is a tool of one of the servers.
type Tool struct {
	// Name is the name of the tool in the set, such as files__read_file for read_file of the server "files". It has at
	// most 64 letters, digits, hyphens and underscores, and begins with a letter, as all models accept it. It depends only
	// on the declarations of the servers and on the server's own name of the tool, Tool.Name. Two servers of one name
	// become files and files_2.
	Name string
	// Server is the server's name in the set.
	Server string
	// Declaration identifies what the server's declaration starts or calls: the program or host, and a digest of the
	// command, the arguments and the variables, or of the URL and the headers. It is another one when a token among them
	// is renewed. A decision that outlives a question should be bound to it, because another program may have the same
	// name. It is "" for tools of AddTool.
	Declaration string
	// Tool is the tool as the server lists it.
	*mcp.Tool
}

// Resource is a resource of one of the servers.
type Resource struct {
	Server string // the server's name in the set
	*mcp.Resource
}

// Prompt is a prompt of one of the servers.
type Prompt struct {
	Server string // the server's name in the set
	*mcp.Prompt
}

// Tools returns the tools of AddTool, and those of all servers in the order of the declarations and of each server's
// list. The InputSchema of each is a map[string]any. Tools waits for servers that are starting, until Options.WaitTime
// after Connect, and for up to two seconds for lists that have changed. It fails only if ctx or the session ends.
func (s *Set) Tools(ctx context.Context) ([]*Tool, error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	s.say()
	s.mu.Lock()
	defer s.mu.Unlock()
	var tools []*Tool
	for _, own := range s.own {
		tools = append(tools, own.tool)
	}
	for _, v := range s.servers {
		tools = append(tools, v.tools...)
	}
	return tools, nil
}

// Changed returns a channel that is closed when the tools, or the servers, have changed since the call.
func (s *Set) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// settle waits until no server is starting or listing its tools again, within the limits that Tools documents.
func (s *Set) settle(ctx context.Context) error {
	latest := time.Now().Add(2 * pauseTime) // for changed lists, also if servers change theirs again and again
	for {
		s.mu.Lock()
		changed := s.changed
		var until time.Time
		for _, v := range s.servers {
			due := v.stale.Add(2 * pauseTime)
			if due.After(latest) {
				due = latest
			}
			if v.state == starting {
				due = s.patience
			}
			if due.After(until) {
				until = due
			}
		}
		s.mu.Unlock()
		left := time.Until(until)
		if left <= 0 {
			return nil
		}
		timer := time.NewTimer(left)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		case <-s.ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s.ctx.Err() != nil {
			return context.Cause(s.ctx)
		}
	}
}

// errGone says that a server has ended for good.
var errGone = errors.New("it has ended")

// running returns the session of a server, which may be connecting anew: then it waits, but not longer than a start may
// take. It is not the given one, which the server has forgotten.
func (v *server) running(ctx context.Context, lost *mcp.ClientSession) (*mcp.ClientSession, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, v.set.opts.StartTime, errSlow)
	defer cancel()
	for {
		v.set.mu.Lock()
		changed, session, state := v.set.changed, v.session, v.state
		v.set.mu.Unlock()
		var report chan<- *mcp.ClientSession
		switch {
		case state == gone:
			return nil, acp.Public(fmt.Errorf("the MCP server %q: %w", v.title, errGone))
		case session != nil && session != lost:
			return session, nil
		case session != nil:
			report = v.lost
		}
		select {
		case report <- lost:
		case <-changed:
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, errSlow) {
				return nil, cause
			}
			return nil, acp.Public(fmt.Errorf("the MCP server %q: %w: %w", v.title, errNotRun, errSlow))
		case <-v.set.ctx.Done():
			return nil, context.Cause(v.set.ctx)
		}
	}
}

// connected reports whether the server is ready, and not connecting anew.
func (v *server) connected() bool {
	v.set.mu.Lock()
	defer v.set.mu.Unlock()
	return v.session != nil
}

// find returns a tool with its server and session, or nil if there is none.
func (s *Set) find(ctx context.Context, name string) (*server, *mcp.ClientSession, *Tool, error) {
	lookup := func(settled bool) (*server, *mcp.ClientSession, *Tool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, v := range s.servers {
			for _, tool := range v.tools {
				if tool.Name == name && (settled || v.stale.IsZero()) {
					return v, v.session, tool
				}
			}
		}
		return nil, nil, nil
	}
	if v, session, tool := lookup(false); tool != nil { // other servers may still be starting
		return v, session, tool, nil
	}
	err := s.settle(ctx)
	v, session, tool := lookup(true)
	return v, session, tool, err
}

// sessions returns the servers that are ready, with their sessions.
func (s *Set) sessions(ctx context.Context) (map[*server]*mcp.ClientSession, error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sessions := map[*server]*mcp.ClientSession{}
	for _, v := range s.servers {
		if v.session != nil {
			sessions[v] = v.session
		}
	}
	return sessions, nil
}

// Resources lists the resources of all servers, as Tools lists the tools. If a server fails, the result has those of
// the others, and the error says which one.
func (s *Set) Resources(ctx context.Context) ([]*Resource, error) {
	sessions, err := s.sessions(ctx)
	var all []*Resource
	for _, v := range s.servers {
		session := sessions[v]
		if session == nil || capabilities(session).Resources == nil {
			continue
		}
		list, failed := pages(ctx, v, func(ctx context.Context, cursor string) ([]*mcp.Resource, string, error) {
			res, err := session.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return res.Resources, res.NextCursor, nil
		})
		for _, r := range list {
			all = append(all, &Resource{v.name, r})
		}
		err = errors.Join(err, v.public(ctx, failed))
	}
	return all, err
}

// ReadResource reads a resource of the server with this name in the set.
func (s *Set) ReadResource(ctx context.Context, server, uri string) (*mcp.ReadResourceResult, error) {
	v, session, err := s.server(ctx, server)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.CallTime, errSlow)
	defer cancel()
	res, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return nil, v.public(ctx, err)
	}
	res.Contents = slices.DeleteFunc(res.Contents, func(c *mcp.ResourceContents) bool { return c == nil })
	return res, nil
}

// Prompts lists the prompts of all servers, as Resources lists the resources.
func (s *Set) Prompts(ctx context.Context) ([]*Prompt, error) {
	sessions, err := s.sessions(ctx)
	var all []*Prompt
	for _, v := range s.servers {
		session := sessions[v]
		if session == nil || capabilities(session).Prompts == nil {
			continue
		}
		list, failed := pages(ctx, v, func(ctx context.Context, cursor string) ([]*mcp.Prompt, string, error) {
			res, err := session.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return res.Prompts, res.NextCursor, nil
		})
		for _, p := range list {
			all = append(all, &Prompt{v.name, p})
		}
		err = errors.Join(err, v.public(ctx, failed))
	}
	return all, err
}

// GetPrompt gets a prompt of the server with this name in the set.
func (s *Set) GetPrompt(ctx context.Context, server, name string, args map[string]string) (*mcp.GetPromptResult,
	error) {
	v, session, err := s.server(ctx, server)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.CallTime, errSlow)
	defer cancel()
	res, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: args})
	if err != nil {
		return nil, v.public(ctx, err)
	}
	res.Messages = slices.DeleteFunc(res.Messages, func(m *mcp.PromptMessage) bool { return m == nil || m.Content == nil })
	return res, nil
}

func (s *Set) server(ctx context.Context, name string) (*server, *mcp.ClientSession, error) {
	sessions, err := s.sessions(ctx)
	if err != nil {
		return nil, nil, err
	}
	for v, session := range sessions {
		if v.name == name {
			return v, session, nil
		}
	}
	return nil, nil, fmt.Errorf("no MCP server %q is running", name)
}

// capabilities returns the capabilities of a server, which may have sent none.
func capabilities(session *mcp.ClientSession) mcp.ServerCapabilities {
	if caps := session.InitializeResult().Capabilities; caps != nil {
		return *caps
	}
	return mcp.ServerCapabilities{}
}

// maxPages is how many pages a list may have.
const maxPages = 100

// errCut reports that only a part of a list was read.
var errCut = errors.New("the rest of its list was left out")

// pages fetches a list by its pages. It takes at most MaxTools items, as many bytes of JSON as a message may have, and
// maxPages pages. If it fails, it returns what it has fetched before.
func pages[T any](ctx context.Context, v *server,
	fetch func(ctx context.Context, cursor string) ([]*T, string, error)) ([]*T, error) {
	opts := &v.set.opts
	ctx, cancel := context.WithTimeoutCause(ctx, opts.StartTime, errSlow)
	defer cancel()
	var list []*T
	seen := map[string]bool{} // cursors
	cursor, size := "", 0
	for {
		items, next, err := fetch(ctx, cursor)
		if err != nil && ctx.Err() != nil {
			return list, context.Cause(ctx)
		}
		if err != nil {
			return list, err
		}
		for _, item := range items {
			if item == nil {
				continue
			}
			text, err := json.Marshal(item)
			if err != nil {
				return list, err
			}
			size += len(text)
			switch {
			case len(list) == opts.MaxTools:
				return list, fmt.Errorf("%w: it has more than %d items", errCut, opts.MaxTools)
			case size > opts.MaxMessage:
				return list, fmt.Errorf("%w: it is longer than %d bytes", errCut, opts.MaxMessage)
			}
			list = append(list, item)
		}
		switch {
		case next == "":
			return list, nil
		case seen[next]:
			return list, fmt.Errorf("%w: its pages go in a circle", errCut)
		case len(seen) == maxPages:
			return list, fmt.Errorf("%w: it has more than %d pages", errCut, maxPages)
		case len(list) == opts.MaxTools:
			return list, fmt.Errorf("%w: it has more than %d items", errCut, opts.MaxTools)
		}
		cursor = next
		seen[next] = true
	}
}

// list lists the tools, and makes the server ready.
func (v *server) list(ctx context.Context, session *mcp.ClientSession) error {
	var tools []*Tool
	var problems []error
	if capabilities(session).Tools != nil {
		listed, err := pages(ctx, v, func(ctx context.Context, cursor string) ([]*mcp.Tool, string, error) {
			res, err := session.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return res.Tools, res.NextCursor, nil
		})
		if err != nil && !errors.Is(err, errCut) {
			return err
		}
		taken := map[string]bool{}
		for _, tool := range listed {
			t := &Tool{toolName(v.name, tool.Name), v.name, identify(v.config), tool}
			if err := checkTool(tool); err != nil {
				problems = append(problems, fmt.Errorf("the tool %.64q is left out: %w", tool.Name, err))
			} else if taken[t.Name] {
				problems = append(problems, fmt.Errorf("the tool %.64q is left out: it is listed twice", tool.Name))
			} else {
				taken[t.Name] = true
				tools = append(tools, t)
			}
		}
		v.set.mu.Lock()
		for _, name := range v.tasks {
			problems = append(problems, fmt.Errorf("the tool %.64q is left out: it can only be called as a task", name))
		}
		v.tasks = nil
		v.set.mu.Unlock()
		if err != nil {
			problems = append(problems, err)
		}
	}
	v.set.change(func() {
		v.state, v.session, v.tools = ready, session, tools
		if len(v.dirty) == 0 {
			v.stale = time.Time{}
		}
	})
	if len(problems) > 0 {
		v.tell("Some tools of the MCP server %q are missing", errors.Join(problems...))
	}
	return nil
}

// checkTool refuses a tool that no model could use. Models refuse a request with one such tool as a whole.
func checkTool(tool *mcp.Tool) error {
	if tool.Name == "" {
		return errors.New("it has no name")
	}
	schema, ok := tool.InputSchema.(map[string]any)
	if !ok || schema["type"] != "object" {
		return errors.New("the schema of its input is not that of an object")
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, new(jsonschema.Schema)); err != nil {
		return fmt.Errorf("the schema of its input is not valid: %w", err)
	}
	return nil
}

// toolName returns the name of a tool in the set. A name that has to be changed gets a part of its hash as a suffix, so
// that different tools have different names.
func toolName(server, tool string) string {
	clean := cleanName(tool)
	name := server + "__" + clean
	if clean == tool && len(name) <= maxToolName {
		return name
	}
	hash := sha256.Sum256([]byte(tool))
	suffix := "_" + hex.EncodeToString(hash[:4])
	return name[:min(len(name), maxToolName-len(suffix))] + suffix
}

// cleanName replaces what models do not accept in the name of a tool.
func cleanName(name string) string {
	return strings.Map(func(r rune) rune {
		if nameRune(r) {
			return r
		}
		return '_'
	}, name)
}
