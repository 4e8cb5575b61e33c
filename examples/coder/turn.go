package main

import (
	"context"
	"errors"
	"slices"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
)

// prompt answers a prompt that is not a command.
func (a *agent) prompt(ctx context.Context, t *turn, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	if _, err := attach(ctx, t, req); err != nil {
		return nil, err
	}
	return a.converse(ctx, t, "")
}

// attach stores the files that a prompt names with @ as part of the prompt, and returns them.
func attach(ctx context.Context, t *turn, req *acp.PromptRequest) ([]acp.ContentBlock, error) {
	files, err := t.State.files.Mentions(ctx, agentkit.PromptText(req))
	for _, file := range files {
		err = errors.Join(err, t.Record(ctx, acp.NewSessionUpdateUserMessageChunk(acp.ContentChunk{Content: file})))
	}
	return files, err
}

// converse sends the conversation to the model, and makes the calls of its answer, until an answer has none. more is added to the prompt.
func (a *agent) converse(ctx context.Context, t *turn, more string) (*acp.PromptResponse, error) {
	messages, err := conversation(ctx, t)
	if err != nil {
		return nil, err
	}
	if more != "" {
		messages = append(messages, agentkit.Message{Role: agentkit.RoleUser, Content: textContent(more)})
	}
	thoughts := map[acp.ToolCallID]any{}
	for range a.maxRequests {
		req, err := a.request(ctx, t, messages)
		if err != nil {
			return nil, err
		}
		req.thoughts = thoughts
		used := float64(req.size()) * t.State.density
		if used > 0.7*float64(a.windowOf(t)) && len(messages) > 1 { // there is no room for another answer
			if err := a.compact(ctx, t, req); err != nil {
				return nil, err
			}
		}
		res, err := a.answer(ctx, t, req)
		if err != nil {
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
		calls, err := t.State.tools.CallAll(ctx, t, res.calls)
		if err != nil {
			return nil, err
		}
		thoughts[calls[0].ToolCallID] = res.thoughts
		messages = append(req.messages, agentkit.Message{Role: agentkit.RoleAgent, Content: textContent(res.text), ToolCalls: calls})
		for more := t.Take(); more != nil; more = t.Take() { // prompts that have arrived in the meantime
			files, err := attach(ctx, t, more)
			if err != nil {
				return nil, err
			}
			messages = append(messages, agentkit.Message{Role: agentkit.RoleUser, Content: slices.Concat(more.Prompt, files)})
		}
	}
	return &acp.PromptResponse{StopReason: acp.StopReasonMaxTurnRequests}, nil
}

// answer sends a request, and shows the answer and what it has used.
func (a *agent) answer(ctx context.Context, t *turn, req *request) (*answer, error) {
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
	return res, a.count(ctx, t, res, res.in+res.out)
}

// count shows how full the context is, and what the session has cost.
func (a *agent) count(ctx context.Context, t *turn, res *answer, used int64) error {
	var cost *acp.Cost
	if a.priceIn+a.priceOut > 0 {
		t.State.Cost += (float64(res.in)*a.priceIn + float64(res.out)*a.priceOut) / 1e6
		cost = &acp.Cost{Amount: t.State.Cost, Currency: "USD"}
	}
	return errors.Join(t.SaveState(ctx), t.Update(ctx, acp.ContextUsage(uint64(used), uint64(a.windowOf(t)), cost)))
}
