package mcpacp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
)

// Call calls a tool by its name in the set, as a tool call of the turn that ctx belongs to: turn is the *agentkit.Turn
// or another session. args is a JSON object; null or nothing is an empty one.
//
// The client shows the tool's title, the kind that follows from the server's annotations, the input, the progress, and the
// result as content. A result of up to 256 KiB is also the raw output. Options.Permit decides whether the tool is called.
//
// A tool that fails does not end the turn: the result then has IsError set and the reason as its content, for the model.
// The same holds for a tool that does not exist or is not permitted, and for a server that has ended or does not answer.
// Call returns an error only if the turn should end, because it was cancelled or the user dismissed a question; see
// agentkit.ToolCall.End.
func (s *Set) Call(ctx context.Context, turn agentkit.Asker, name string, args json.RawMessage) (*mcp.CallToolResult, error) {
	v, session, tool, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	title, kind := name, acp.ToolKindOther
	if tool != nil {
		title, kind = v.title+": "+displayName(tool), kindOf(tool.Annotations)
	}
	if len(args) == 0 || string(args) == "null" {
		args = json.RawMessage("{}")
	}
	options := []acp.ToolCallOption{acp.WithName(name), acp.WithKind(kind)}
	if json.Valid(args) {
		options = append(options, acp.WithInput(args))
	}
	call, err := agentkit.StartToolCall(ctx, turn, title, options...)
	if err != nil {
		return nil, err
	}
	res, err := func() (*mcp.CallToolResult, error) {
		if tool == nil {
			return nil, acp.Public(fmt.Errorf("no MCP server has a tool %.100q", name))
		}
		if json.Unmarshal(args, &map[string]json.RawMessage{}) != nil {
			return nil, acp.Public(errors.New("the input is not a JSON object"))
		}
		if err := s.opts.Permit(ctx, turn, tool, call); err != nil {
			return nil, err
		}
		if err := call.Begin(); err != nil {
			return nil, err
		}
		res, err := v.call(ctx, session, call, tool, args)
		if err != nil {
			return nil, err
		}
		return res, show(call, res)
	}()
	if err == nil {
		return res, nil
	}
	if ends := call.End(err); ends != nil {
		return nil, ends
	}
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: err.Error()}}}, nil
}

// displayName is the name of a tool for people.
func displayName(tool *Tool) string {
	title := tool.Title
	if title == "" && tool.Annotations != nil {
		title = tool.Annotations.Title
	}
	return cmp.Or(title, tool.Tool.Name)
}

// kindOf returns the kind of a tool that follows from its annotations. Hints with a default count only if they are present.
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
		text += " " + params.Message
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
			if err := call.Update(p.content()); err != nil {
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
	if answer, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return acp.Public(fmt.Errorf("the MCP server %q answered: %s", v.title, answer.Message))
	}
	return acp.Public(fmt.Errorf("the MCP server %q: %w", v.title, err))
}

// maxOutput is the longest result, in bytes of JSON, that is sent as raw output in addition to the content.
const maxOutput = 256 << 10

// show ends a call with the result of its tool.
func show(call *agentkit.ToolCall, res *mcp.CallToolResult) error {
	content := make([]acp.ToolCallContent, 0, len(res.Content))
	for _, c := range res.Content {
		block, err := contentBlock(c)
		if err != nil {
			return err
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
	if r, ok := c.(*mcp.EmbeddedResource); ok && r.Resource != nil && r.Resource.Blob == nil && r.Resource.Text == "" {
		return acp.ResourceBlock(acp.EmbeddedResourceResource{ // whose text the MCP SDK would leave out
			Variant: &acp.TextResourceContents{URI: r.Resource.URI, MimeType: acp.Some(r.Resource.MIMEType)},
		}), nil
	}
	text, err := json.Marshal(c)
	if err != nil {
		return block, err
	}
	if err := json.Unmarshal(text, &block); err != nil {
		return block, acp.Public(fmt.Errorf("the tool returned content that is not valid: %w", err))
	}
	return block, nil
}
