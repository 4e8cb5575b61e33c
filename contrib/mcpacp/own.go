package mcpacp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
)

// ownTool is a tool of AddTool.
type ownTool struct {
	tool   *Tool
	kind   acp.ToolKind
	decode func(args json.RawMessage) (input any, err error)
	run    func(ctx context.Context, call *agentkit.ToolCall, input any) (string, error)
}

// AddTool adds a tool of the agent's own to a set: Tools lists it, and Call and CallAll call it. The schema of its
// input is made from the type In, a struct, as mcp.AddTool does it: the tag json of a field has its name and, with
// omitempty, that it is optional, and the tag jsonschema has its description. An input that does not fit fails the
// call.
//
// The title of a call is the text of its input if In is a fmt.Stringer, and otherwise the name. The call of a tool that
// reads, whose kind is read, search or fetch, is in progress when run is called. Other calls are pending: run asks the
// user, with agentkit.ToolCall.Ask, or calls agentkit.ToolCall.Begin. Options.Permit is not called.
//
// The result of run is for the model, at most 64 KiB of it: it is the raw output of the call, and the client shows it
// if the tool reads and the call shows nothing else. An error of run fails the call: the client shows its text, and the
// model gets both. AddTool panics if In is not a struct, or the name is taken or not valid.
func AddTool[In any](
	s *Set, name string, kind acp.ToolKind, description string,
	run func(ctx context.Context, call *agentkit.ToolCall, in In) (string, error),
) {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(fmt.Sprintf("mcpacp: AddTool %q: %v", name, err))
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		panic(fmt.Sprintf("mcpacp: AddTool %q: %v", name, err))
	}
	var members map[string]any
	text, err := json.Marshal(schema)
	if err = errors.Join(err, json.Unmarshal(text, &members)); err != nil || members["type"] != "object" {
		panic(fmt.Sprintf("mcpacp: AddTool %q: its input is not a struct", name))
	}
	if s.findOwn(name) != nil || name != validName(name) {
		panic(fmt.Sprintf("mcpacp: AddTool %q: the name is taken or not valid", name))
	}
	own := &ownTool{kind: kind}
	own.tool = &Tool{Name: name, Tool: &mcp.Tool{
		Name: name, Description: description, InputSchema: members,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: reads(kind)},
	}}
	own.decode = func(args json.RawMessage) (any, error) {
		var in In
		var members map[string]any
		err := json.Unmarshal(args, &members)
		if err == nil {
			err = resolved.Validate(members)
		}
		if err == nil {
			err = json.Unmarshal(args, &in)
		}
		if err != nil {
			return nil, acp.Public(fmt.Errorf("the input does not fit: %w", err))
		}
		return in, nil
	}
	own.run = func(ctx context.Context, call *agentkit.ToolCall, input any) (string, error) {
		return run(ctx, call, input.(In))
	}
	s.change(func() { s.own = append(s.own, own) })
}

const maxOwnOutput = 64 << 10 // bytes

// findOwn returns a tool of AddTool, or nil.
func (s *Set) findOwn(name string) *ownTool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, own := range s.own {
		if own.tool.Name == name {
			return own
		}
	}
	return nil
}

// title returns the title of a call.
func (o *ownTool) title(args json.RawMessage) string {
	if in, err := o.decode(args); err == nil {
		if text, ok := in.(fmt.Stringer); ok {
			return shorten(strings.Map(visible, text.String()), maxTitle)
		}
	}
	return o.tool.Name
}

// call runs the tool and ends the call, unless it fails.
func (o *ownTool) call(ctx context.Context, call *agentkit.ToolCall, args json.RawMessage) (*mcp.CallToolResult,
	error) {
	in, err := o.decode(args)
	if err != nil {
		return nil, err
	}
	if reads(o.kind) {
		if err := call.Begin(); err != nil {
			return nil, err
		}
	}
	text, err := o.run(ctx, call, in)
	if len(text) > maxOwnOutput {
		text = strings.ToValidUTF8(text[:maxOwnOutput], "") + "\n(cut off)"
	}
	if err != nil {
		err = acp.Public(err)
		if text != "" {
			text = "\n" + text
		}
		if ctx.Err() == nil {
			err = errors.Join(err, call.Update(acp.WithOutput(err.Error()+text)))
		}
		return nil, err
	}
	options := []acp.ToolCallOption{acp.WithOutput(text)}
	if reads(o.kind) && len(call.State().Content) == 0 {
		options = append(options, acp.WithContent(acp.ToolText(agentkit.CodeBlock(text))))
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, call.Done(options...)
}
