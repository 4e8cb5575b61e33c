package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// prompt answers a prompt that is not a command.
func (a *agent) prompt(ctx context.Context, t *turn, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	if _, err := attach(ctx, t, req); err != nil {
		return nil, err
	}
	return a.converse(ctx, t, "")
}

// converse sends the conversation to the model, and makes the calls of its answer, until an answer has none. more is added to the prompt.
func (a *agent) converse(ctx context.Context, t *turn, more string) (*acp.PromptResponse, error) {
	messages, err := conversation(ctx, t)
	if err != nil {
		return nil, err
	}
	if more != "" {
		messages = append(messages, textMessage(true, more))
	}
	for range a.maxRequests {
		req, err := a.request(ctx, t, messages)
		if err != nil {
			return nil, err
		}
		text, thoughts := t.NewMessage(ctx), t.NewThought(ctx)
		res, err := a.ask(ctx, t, req, func(p piece) error {
			_, err1 := thoughts.WriteString(p.thought)
			_, err2 := text.WriteString(p.text)
			return errors.Join(err1, err2)
		})
		if err := errors.Join(err, thoughts.Close(), text.Close()); err != nil {
			return nil, err
		}
		if res.in > 0 {
			t.State.density = float64(res.in) / float64(req.size())
		}
		if err := a.count(ctx, t, res, res.in+res.out); err != nil {
			return nil, err
		}
		if len(res.calls) == 0 {
			if res.text == "" && res.stop == "" {
				err = t.Sayf(ctx, "The model has answered nothing.")
			}
			if res.stop == "" {
				res.stop = acp.StopReasonEndTurn
			}
			return &acp.PromptResponse{StopReason: res.stop}, err
		}
		if err := a.makeCalls(ctx, t, req, res.calls); err != nil {
			return nil, err
		}
		said := textMessage(false, res.text)
		said.calls, said.thoughts = res.calls, res.thoughts
		messages = append(req.messages, said)
		for more := t.Take(); more != nil; more = t.Take() { // prompts that have arrived in the meantime
			files, err := attach(ctx, t, more)
			if err != nil {
				return nil, err
			}
			messages = append(messages, message{user: true, content: slices.Concat(more.Prompt, files)})
		}
	}
	return &acp.PromptResponse{StopReason: acp.StopReasonMaxTurnRequests}, nil
}

// makeCalls makes the calls of an answer, and sets their results. Calls in a row that only read are made at the same time. It
// returns an error only if the turn should end.
func (a *agent) makeCalls(ctx context.Context, t *turn, req *request, calls []call) error {
	limit := max(2000, int(a.windowOf(t))/len(calls)) // all results together take about a quarter of the context
	for len(calls) > 0 {
		n := 1 // how many are made at the same time
		for n < len(calls) && find(req.tools, calls[n-1].name).reads() && find(req.tools, calls[n].name).reads() {
			n++
		}
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(8)
		for i := range n {
			group.Go(func() error { return a.makeCall(ctx, t, req, &calls[i], limit) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		calls = calls[n:]
	}
	return nil
}

func find(tools []tool, name string) *tool {
	i := slices.IndexFunc(tools, func(t tool) bool { return t.name == name })
	if i < 0 {
		return nil
	}
	return &tools[i]
}

var odd = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

func (a *agent) makeCall(ctx context.Context, t *turn, req *request, c *call, limit int) (err error) {
	tool := find(req.tools, c.name)
	args, ok := object(c.args)
	raw := c.args
	c.id, c.args = "call_"+newID(), args // the model's ids may be missing, or appear twice
	if c.name = odd.ReplaceAllString(c.name, "_"); len(c.name) > 64 || c.name == "" {
		c.name = "unknown"
	}
	if ok && tool != nil && tool.begin == nil {
		res, err := t.State.mcp.Call(ctx, t, c.name, []byte(args))
		if err == nil {
			c.result = clip(resultText(res), limit)
		}
		return err
	}
	title, kind := "Call "+c.name, acp.ToolKindOther
	var run runner
	switch {
	case !ok:
		err = fmt.Errorf("the arguments are no JSON object: %s", clip(raw, 500))
	case tool == nil:
		err = fmt.Errorf("there is no tool %q", c.name)
	default:
		kind = tool.kind
		var better string
		if better, run, err = tool.begin(args); err == nil {
			title = better
		}
	}
	return t.Tool(ctx, kind, clip(title, 200), func(shown *agentkit.ToolCall) error {
		if err == nil {
			c.result, err = run(ctx, &work{t, a, shown})
		}
		if err != nil {
			c.result = "error: " + err.Error()
		}
		c.result = clip(c.result, limit)
		options := []acp.ToolCallOption{acp.WithOutput(c.result)}
		if err == nil && tool.reads() {
			options = append(options, acp.WithContent(acp.ToolText(fence(c.result))))
		}
		if failed := shown.Update(options...); err == nil {
			err = failed
		}
		return err
	}, acp.WithName(c.name), acp.WithInput(jsonRaw(args)), agentkit.WithToolCallID(acp.ToolCallID(c.id)))
}

func resultText(res *mcp.CallToolResult) string {
	var texts []string
	for _, content := range res.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n")
}
