package talk

// Prompts in a running turn. They are not part of the protocol, but an extension that claude-agent-acp, codex-acp and
// other agents share.

import (
	"context"
	"fmt"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/plain"
)

// Steered is what the agent did with a prompt for a running turn.
type Steered string

// The values of Steered. An agent may send others.
const (
	// SteeredIn: the running turn has the prompt.
	SteeredIn Steered = "injected"
	// SteeredAnew: the agent began a new turn; no session/prompt response will report its end.
	SteeredAnew Steered = "startedNewTurn"
	// SteeredLate: no turn is running, and nothing was done: the prompt has to be sent as a new turn.
	SteeredLate Steered = "promptRequired"
)

// CanSteer reports whether the agent accepts prompts in a running turn.
func (c *Client) CanSteer() bool {
	var s struct {
		Supported bool `json:"supported"`
	}
	ok, err := c.Initialized().Meta.Get(plain.SteerKey, &s)
	return ok && err == nil && s.Supported
}

// Steer sends a prompt into the running turn. It fails with acp.ErrUnsupported if the agent does not accept that.
func (s *Session) Steer(ctx context.Context, prompt ...acp.ContentBlock) (Steered, error) {
	if !s.client.CanSteer() {
		return "", fmt.Errorf("%w: the agent accepts no messages in a running turn", acp.ErrUnsupported)
	}
	agent, err := s.client.agentConn(ctx)
	if err != nil {
		return "", err
	}
	type idle struct {
		Behavior string `json:"idleBehavior"`
	}
	// A turn that no prompt call waits for is never started.
	params := struct {
		SessionID acp.SessionID      `json:"sessionId"`
		Prompt    []acp.ContentBlock `json:"prompt"`
		Meta      map[string]idle    `json:"_meta"`
	}{s.ID(), prompt, map[string]idle{plain.SteerKey: {string(SteeredLate)}}}
	res, err := rpc.Call[struct {
		Outcome Steered `json:"outcome"`
	}](ctx, agent.RPC(), plain.SteerMethod, params)
	if err != nil {
		return "", err
	}
	return res.Outcome, nil
}
