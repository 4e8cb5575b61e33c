package main

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/agentkit"
)

// prompt answers a prompt that is not a command.
func (a *agent) prompt(ctx context.Context, t *turn, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
	return a.converse(ctx, t, "")
}

// converse asks the model, and makes the calls of its answer, until an answer has none. more is added to the prompt.
func (a *agent) converse(ctx context.Context, t *turn, more string) (*acp.PromptResponse, error) {
	if _, err := t.State.files.Attach(ctx, t.Request()); err != nil {
		return nil, err
	}
	messages, err := t.Messages(ctx)
	if err != nil {
		return nil, err
	}
	if last := len(messages) - 1; more != "" {
		messages[last].Content = append(messages[last].Content, acp.TextBlock("\n"+more))
	}
	thoughts := map[acp.ToolCallID]any{}
	for range a.maxRequests {
		req, err := a.request(ctx, t, messages)
		if err != nil {
			return nil, err
		}
		req.thoughts = thoughts
		if a.fills(t, req, 0.7) && len(messages) > 1 { // there is no room for another answer
			if err := a.compact(ctx, t, req); err != nil {
				return nil, err
			}
		}
		res, err := a.ask(ctx, t, req, false)
		if err == nil {
			err = a.count(ctx, t, res, res.in+res.out)
		}
		if err != nil {
			return nil, err
		}
		if len(res.calls) == 0 {
			if res.text == "" && res.stop == "" {
				err = t.Sayf(ctx, "The model has answered nothing.")
			}
			return &acp.PromptResponse{StopReason: cmp.Or(res.stop, acp.StopReasonEndTurn)}, err
		}
		calls, err := t.State.tools.CallAll(ctx, t, res.calls[:min(len(res.calls), maxCalls)])
		if err != nil {
			return nil, err
		}
		thoughts[calls[0].ToolCallID] = res.thoughts
		said := message(agentkit.RoleAgent, res.text)
		said.ToolCalls = calls
		messages = append(req.messages, said)
		for more := t.NextPrompt(); more != nil; more = t.NextPrompt() { // prompts that have arrived in the meantime
			files, err := t.State.files.Attach(ctx, more)
			if err != nil {
				return nil, err
			}
			messages = append(messages, agentkit.Message{Role: agentkit.RoleUser, Content: slices.Concat(more.Prompt, files)})
		}
	}
	return &acp.PromptResponse{StopReason: acp.StopReasonMaxTurnRequests}, nil
}

const maxCalls = 128 // of one answer

// ask sends a request. The user sees the answer unless it is hidden.
func (a *agent) ask(ctx context.Context, t *turn, req *request, hidden bool) (*answer, error) {
	provider, err := a.connect()
	if err != nil {
		return nil, err
	}
	res := &answer{}
	stream := func(ctx context.Context) iter.Seq2[agentkit.Piece, error] { return provider.stream(ctx, req, res) }
	err = t.Stream(ctx, stream, &agentkit.StreamOptions{Hidden: hidden, MaxBytes: 8 * int(req.maxTokens),
		Silence: a.patience})
	if errors.Is(err, agentkit.ErrTooLarge) { // some servers ignore maxTokens
		res.stop, res.calls, err = acp.StopReasonMaxTokens, nil, nil
	}
	if res.in > 0 {
		t.State.density = float64(res.in) / float64(req.size())
	}
	return res, err
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
