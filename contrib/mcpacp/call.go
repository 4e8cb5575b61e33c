package mcpacp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/acpgo/sdk/internal/plain"
)

// Call calls a tool by its name in the set, as a tool call of the turn that ctx belongs to: turn is the *agentkit.Turn
// or another session. args is a JSON object; null or nothing is an empty one.
//
// The client shows the tool's title, the kind that follows from the server's annotations, the input, the progress, and
// the result as content. A result of up to 256 KiB is also the raw output. Options.Permit decides whether the tool is
// called. For a tool of the agent's own, see AddTool.
//
// A tool that fails does not end the turn: the result then has IsError set and the reason as its content, for the
// model. The same holds for a tool that does not exist or is not permitted, and for a server that has ended or does not
// answer. Call returns an error only if the turn should end, because it was cancelled or the user dismissed a question;
// see agentkit.ToolCall.End.
func (s *Set) Call(ctx context.Context, turn agentkit.Asker, name string, args json.RawMessage) (*mcp.CallToolResult,
	error) {
	res, _, err := s.call(ctx, turn, name, args)
	return res, err
}

// call is Call, and returns the tool call too.
func (s *Set) call(
	ctx context.Context, turn agentkit.Asker, name string, args json.RawMessage,
) (*mcp.CallToolResult, *agentkit.ToolCall, error) {
	s.say()
	defer s.say()
	own := s.findOwn(name)
	var v *server
	var session *mcp.ClientSession
	var tool *Tool
	title, kind := "", acp.ToolKindOther
	if own == nil {
		var err error
		if v, session, tool, err = s.find(ctx, name); err != nil {
			return nil, nil, err
		}
	}
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	switch {
	case own != nil:
		title, kind = own.title(args), own.kind
	case tool != nil:
		title, kind = v.title+": "+displayName(tool), v.kind(tool)
	default:
		name = validName(name)
		title = name
	}
	options := []acp.ToolCallOption{acp.WithName(name), acp.WithKind(kind)}
	if tool != nil {
		options = append(options, tool.mark)
	}
	object := json.Unmarshal(args, &map[string]json.RawMessage{}) == nil
	if object {
		options = append(options, acp.WithInput(args))
	}
	call, err := agentkit.StartToolCall(ctx, turn, title, options...)
	if err != nil {
		return nil, nil, err
	}
	res, err := func() (*mcp.CallToolResult, error) {
		switch {
		case own == nil && tool == nil:
			return nil, acp.Public(fmt.Errorf("there is no tool %q", name))
		case !object:
			return nil, acp.Public(fmt.Errorf("the input is not a JSON object: %s", shorten(string(args), maxTitle)))
		case own != nil:
			return own.call(ctx, call, args)
		}
		if err := s.opts.Permit(ctx, turn, tool, call); err != nil {
			return nil, err
		}
		if err := call.Begin(); err != nil {
			return nil, err
		}
		res, err := again(ctx, v, session,
			func(ctx context.Context, session *mcp.ClientSession) (*mcp.CallToolResult, error) {
				return v.call(ctx, session, call, tool, args)
			})
		if err != nil {
			return nil, mayHaveRun(ctx, err)
		}
		return res, show(call, res)
	}()
	if err == nil {
		return res, call, nil
	}
	if ends := call.End(err); ends != nil {
		return nil, nil, ends
	}
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}}, call, nil
}

// validName returns a name for a tool that does not exist: models refuse a conversation with a name that is not valid.
func validName(name string) string {
	clean := cleanName(name)
	return cmp.Or(clean[:min(len(clean), maxToolName)], "unknown")
}

// maxParallel is how many calls CallAll makes at the same time.
const maxParallel = 8

// CallAll calls the tools that one answer of a model names, in order, as Call does, except that calls in a row that
// only read are made at the same time: those of tools whose kind is read, search or fetch. It may call Options.Permit
// for these at the same time too. It returns the tool calls as the client knows them at the end, with the input and the
// result; agentkit.ToolResult returns the result as text. The error is that of Call.
func (s *Set) CallAll(ctx context.Context, turn agentkit.Asker, calls []mcp.CallToolParamsRaw) ([]acp.ToolCall, error) {
	made, errs := make([]acp.ToolCall, len(calls)), make([]error, len(calls))
	for i := 0; i < len(calls); {
		next := i + 1
		for next < len(calls) && next-i < maxParallel && s.reads(calls[next-1].Name) && s.reads(calls[next].Name) {
			next++
		}
		var group sync.WaitGroup
		var panicked atomic.Pointer[string]
		for j := i; j < next; j++ {
			group.Go(func() {
				defer func() {
					if v := recover(); v != nil {
						panicked.Store(new(fmt.Sprintf("%v\n%s", v, debug.Stack())))
					}
				}()
				_, call, err := s.call(ctx, turn, calls[j].Name, calls[j].Arguments)
				if errs[j] = err; err == nil {
					made[j] = call.State()
				}
			})
		}
		group.Wait()
		if what := panicked.Load(); what != nil {
			panic(*what) // in the goroutine of the turn, whose panics do not end the agent
		}
		i = next
		for _, err := range errs {
			if err != nil {
				return nil, err
			}
		}
	}
	return made, nil
}

// reads reports whether a tool is known to change nothing.
func (s *Set) reads(name string) bool {
	if own := s.findOwn(name); own != nil {
		return reads(own.kind)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.servers {
		for _, tool := range v.tools {
			if tool.Name == name {
				return reads(v.kind(tool))
			}
		}
	}
	return false
}

func reads(kind acp.ToolKind) bool {
	return kind == acp.ToolKindRead || kind == acp.ToolKindSearch || kind == acp.ToolKindFetch
}

// displayName is the name of a tool for people: one short line, because the user decides by it.
func displayName(tool *Tool) string {
	title := tool.Title
	if title == "" && tool.Annotations != nil {
		title = tool.Annotations.Title
	}
	return shorten(strings.Map(visible, cmp.Or(title, tool.Tool.Name)), maxTitle)
}

// maxTitle and maxProgress are how many bytes of the title of a tool and of a text about its progress are shown.
const (
	maxTitle    = 256
	maxProgress = 4 << 10
)

// visible replaces what could make a title look like more than a title, or like another one: ends of lines and all that
// cannot be seen.
func visible(r rune) rune {
	if plain.Visible(r) {
		return r
	}
	return ' '
}

// kindOf returns the kind of a tool that follows from its annotations. Hints with a default count only if they are
// present.
func kindOf(a *mcp.ToolAnnotations) acp.ToolKind {
	says := func(hint *bool) bool { return hint != nil && *hint }
	switch {
	case a == nil:
		return acp.ToolKindOther
	case a.ReadOnlyHint && says(a.OpenWorldHint):
		return acp.ToolKindFetch
	case a.ReadOnlyHint:
		return acp.ToolKindRead
	case says(a.DestructiveHint):
		return acp.ToolKindEdit
	}
	return acp.ToolKindOther
}

// progress is the last progress of a running call.
type progress struct {
	more chan struct{} // has a token if the text was not sent

	mu   sync.Mutex
	text string
}

// progressed handles a notification of progress. It does not wait for the client, because the MCP SDK meanwhile queues
// the server's messages without a bound.
func (v *server) progressed(params *mcp.ProgressNotificationParams) {
	token, _ := params.ProgressToken.(string)
	v.set.mu.Lock()
	p := v.calls[token]
	v.set.mu.Unlock()
	if p == nil {
		return
	}
	text := strconv.FormatFloat(params.Progress, 'g', -1, 64)
	if params.Total > 0 {
		text += "/" + strconv.FormatFloat(params.Total, 'g', -1, 64)
	}
	if params.Message != "" {
		text += " " + shorten(params.Message, maxProgress)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
	select {
	case p.more <- struct{}{}:
	default: // the older text was not shown
	}
}

func (p *progress) content() acp.ToolCallOption {
	p.mu.Lock()
	defer p.mu.Unlock()
	return acp.WithContent(acp.ToolText(p.text))
}

// progressTime is the shortest time between two updates with the progress of a call.
const progressTime = 100 * time.Millisecond

// postedKey is the key of an *atomic.Bool in the context of a request: whether it may have reached a server over HTTP.
type postedKey struct{}

// again makes a request on a session of the server, once more if it certainly has not been carried out because the
// server has forgotten the session, or the connection was lost before. It waits for a server that is connecting anew.
func again[R any](
	ctx context.Context, v *server, session *mcp.ClientSession, request func(context.Context, *mcp.ClientSession) (R,
		error),
) (res R, err error) {
	if session == nil {
		if session, err = v.running(ctx, nil); err != nil {
			return res, err
		}
	}
	posted := new(atomic.Bool)
	res, err = request(context.WithValue(ctx, postedKey{}, posted), session)
	unsent := v.overHTTP() && !posted.Load() && !errors.Is(err, errNotRun) && !errors.Is(err, errSlow) && ctx.Err() == nil
	if err != nil && (forgotten(err) || unsent) {
		if session, err = v.running(ctx, session); err != nil {
			return res, err
		}
		res, err = request(ctx, session)
	}
	if err == nil {
		v.set.mu.Lock()
		defer v.set.mu.Unlock()
		v.useful = true
	}
	return res, err
}

// mayHaveRun adds to the error of a call that the tool may have run, unless the server has answered or not accepted the
// call.
func mayHaveRun(ctx context.Context, err error) error {
	answer, answered := errors.AsType[*jsonrpc.Error](err)
	sent := !errors.Is(err, errNotRun) && !errors.Is(err, errGone) && !errors.Is(err, mcp.ErrConnectionClosed)
	if answered && answer.Code != codeRejected || !sent || ctx.Err() != nil {
		return err
	}
	return acp.Public(fmt.Errorf("%w; the tool may have run", err))
}

// call calls a tool, and shows its progress.
func (v *server) call(
	ctx context.Context, session *mcp.ClientSession, call *agentkit.ToolCall, tool *Tool, args json.RawMessage,
) (*mcp.CallToolResult, error) {
	p := &progress{more: make(chan struct{}, 1)}
	v.set.mu.Lock()
	v.tokens++
	token := strconv.Itoa(v.tokens)
	v.calls[token] = p
	v.set.mu.Unlock()
	defer func() {
		v.set.mu.Lock()
		defer v.set.mu.Unlock()
		delete(v.calls, token)
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slow := time.AfterFunc(v.set.opts.CallTime, func() { cancel(errSlow) })
	defer slow.Stop()
	params := &mcp.CallToolParams{Name: tool.Tool.Name, Arguments: args}
	params.SetProgressToken(token)
	type outcome struct {
		res *mcp.CallToolResult
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		res, err := session.CallTool(ctx, params)
		done <- outcome{res, err}
	}()
	more, pause := p.more, time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-more:
			more = nil
			pause.Reset(progressTime)
			slow.Reset(v.set.opts.CallTime)
			if err := call.Update(p.content()); err != nil && !errors.Is(err, agentkit.ErrNotStored) {
				cancel(err)
			}
		case <-pause.C:
			more = p.more
		case o := <-done:
			return o.res, v.public(ctx, o.err)
		}
	}
}

// public is the error of a request to the server, with a text for the client.
func (v *server) public(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); errors.Is(cause, errSlow) {
		return acp.Public(fmt.Errorf("the MCP server %q: %w", v.title, cause))
	} else if cause != nil {
		return cause
	}
	if answer, ok := errors.AsType[*jsonrpc.Error](err); ok && answer.Code != codeRejected {
		return acp.Public(&presentableError{fmt.Sprintf("the MCP server %q answered: %s", v.title,
			shorten(answer.Message, maxReason)), answer})
	}
	return acp.Public(fmt.Errorf("the MCP server %q: %w", v.title, v.presentable(err)))
}

// codeRejected is the code of an error that is not an answer: the MCP SDK could not send the request.
const codeRejected = -32005

// addresses matches what errors of HTTP and of the MCP SDK say about addresses and sessions, and other quoted text;
// methods are the quoted texts without secrets.
var (
	addresses = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\(session ID: [^)]*\)|\w+://\S+`)
	methods   = regexp.MustCompile(`^"[a-z]+(/[a-z_]+)*"$`)
)

// presentableError is an error with a text for models and users.
type presentableError struct {
	text string
	err  error
}

func (e *presentableError) Error() string { return e.text }
func (e *presentableError) Unwrap() error { return e.err }

// presentable returns an error for models and users: its text is short, and has no addresses of servers over HTTP,
// because their paths and queries may be secrets. The log has the whole text.
func (v *server) presentable(err error) error {
	text := err.Error()
	if v.overHTTP() { // others have no address that could contain a token
		text = addresses.ReplaceAllStringFunc(text, func(found string) string {
			if methods.MatchString(found) {
				return found
			}
			return "…"
		})
	}
	text = shorten(text, maxReason)
	if text == err.Error() {
		return err
	}
	v.set.opts.Logger.Warn("an MCP server failed", "server", v.title, "error", err)
	return &presentableError{text, err}
}

// shorten cuts a text that is longer than so many bytes.
func shorten(text string, most int) string {
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// maxOutput is the longest result, in bytes of JSON, that is sent as raw output in addition to the content.
const maxOutput = 256 << 10

// show ends a call with the result of its tool. A text takes the place of content that is not valid, also in the
// result: models refuse such content as well.
func show(call *agentkit.ToolCall, res *mcp.CallToolResult) error {
	content := make([]acp.ToolCallContent, 0, len(res.Content))
	for i, c := range res.Content {
		block, err := contentBlock(c)
		if err != nil {
			text := fmt.Sprintf("(A part of the result is left out: %s.)", shorten(err.Error(), maxReason))
			res.Content[i], block = &mcp.TextContent{Text: text}, acp.TextBlock(text)
		}
		content = append(content, acp.ToolContent(block))
	}
	options := []acp.ToolCallOption{acp.WithContent(content...)}
	if output, err := json.Marshal(res); err != nil {
		return err
	} else if len(output) <= maxOutput {
		options = append(options, acp.WithOutput(json.RawMessage(output)))
	}
	if res.IsError {
		return call.Update(append(options, acp.WithStatus(acp.ToolCallStatusFailed))...)
	}
	return call.Done(options...)
}

// contentBlock is the content of a result as a block of ACP, which has the same form.
func contentBlock(c mcp.Content) (block acp.ContentBlock, err error) {
	annotations := new(*mcp.Annotations)
	switch c := c.(type) {
	case *mcp.TextContent:
		annotations = &c.Annotations
	case *mcp.ResourceLink:
		annotations = &c.Annotations
	case *mcp.ImageContent:
		annotations, err = &c.Annotations, checkMedia("image", c.MIMEType, c.Data)
	case *mcp.AudioContent:
		annotations, err = &c.Annotations, checkMedia("audio", c.MIMEType, c.Data)
	case *mcp.EmbeddedResource:
		annotations = &c.Annotations
		if r := c.Resource; r != nil && r.Blob == nil && r.Text == "" {
			empty := &acp.TextResourceContents{URI: r.URI} // whose text the MCP SDK would leave out
			if r.MIMEType != "" {
				empty.MimeType = acp.Some(r.MIMEType)
			}
			return acp.ResourceBlock(acp.EmbeddedResourceResource{Variant: empty}), nil
		}
	}
	if err != nil {
		return block, err
	}
	if a := *annotations; a != nil && slices.ContainsFunc(a.Audience, unknownRole) {
		*annotations = nil
	}
	text, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(text, &block)
	}
	if other, unknown := block.Variant.(*acp.ContentBlockUnknown); err == nil && unknown {
		err = fmt.Errorf("the type %.64q", other.Tag)
	}
	return block, err
}

func unknownRole(role mcp.Role) bool { return !acp.Role(role).Known() }

// checkMedia refuses an image or audio without data, or whose media type is not one of its kind.
func checkMedia(kind, mediaType string, data []byte) error {
	if got, _, err := mime.ParseMediaType(mediaType); err != nil || !strings.HasPrefix(got, kind+"/") {
		return fmt.Errorf("%s with the media type %.64q", kind, mediaType)
	}
	if len(data) == 0 {
		return fmt.Errorf("%s without data", kind)
	}
	return nil
}
