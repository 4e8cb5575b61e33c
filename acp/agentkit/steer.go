package agentkit

import (
	"context"
	"slices"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/plain"
)

// steerRequest is the request of plain.SteerMethod.
type steerRequest struct {
	SessionID acp.SessionID      `json:"sessionId"`
	Prompt    []acp.ContentBlock `json:"prompt"`
	Meta      acp.Meta           `json:"_meta"`
}

// promptRequired is an answer that clients opt in to in their request: it says that the client must send the message as
// a prompt. Other clients expect the message to be taken, or an error.
const promptRequired = "promptRequired"

// EntersTurn implements engine.Enterer: it marks the request as part of the running turn.
func (*steerRequest) EntersTurn() {}

func (r *steerRequest) allowsPromptRequired() bool {
	var steering struct {
		IdleBehavior string `json:"idleBehavior"`
	}
	ok, err := r.Meta.Get(plain.SteerKey, &steering)
	return ok && err == nil && steering.IdleBehavior == promptRequired
}

type steerResponse struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
}

// advertise extends the hook that edits the answer to initialize with extensions, and with those for cancelling one
// tool call and for idempotency keys if the client has them.
func advertise(
	edit func(context.Context, *acp.InitializeRequest, *acp.InitializeResponse) error, extensions []string,
) func(context.Context, *acp.InitializeRequest, *acp.InitializeResponse) error {
	return func(ctx context.Context, req *acp.InitializeRequest, res *acp.InitializeResponse) error {
		all := extensions
		for _, key := range []string{plain.CancelKey, translate.MetaIdempotencyKey} {
			if advertises(req, key) {
				all = append(slices.Clip(all), key)
			}
		}
		for _, key := range all {
			if err := res.Meta.Set(key, map[string]bool{"supported": true}); err != nil {
				return err
			}
		}
		if edit == nil {
			return nil
		}
		return edit(ctx, req, res)
	}
}

// steer offers a message to the running turn. If no turn is running, or it ends without taking the message, the message
// is dropped: a turn that no prompt has begun would have no answer to end it. Messages are answered in their order: a
// client may send those that were dropped as prompts.
func (ss *sessions) steer(ctx context.Context, conn *acp.AgentConn, req *steerRequest) (*steerResponse, error) {
	s, release, err := ss.open.Use(conn, req.SessionID)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, end := s.life.Within(ctx)
	defer end()
	p := &prompt{
		req: &acp.PromptRequest{SessionID: req.SessionID, Prompt: req.Prompt}, ctx: ctx, decided: make(chan struct{}),
		answered: make(chan struct{}),
	}
	engine.AfterResponse(ctx, func(context.Context) { close(p.answered) })
	if err := s.join(ctx, p); err != nil {
		return nil, err
	}
	if p.before != nil {
		select {
		case <-p.before:
		case <-ctx.Done():
		}
	}
	if p.taken {
		return &steerResponse{Outcome: "injected"}, nil
	}
	if !req.allowsPromptRequired() {
		return nil, acp.ErrInvalidRequest.WithMessagef("Invalid request: no turn of the session takes the message")
	}
	return &steerResponse{Outcome: promptRequired, Reason: "noRunningTurn"}, nil
}

// sendBack decides the waiting messages that can only go to the turn that has just ended; mu is held.
func (s *session) sendBack() {
	s.waiting = slices.DeleteFunc(s.waiting, func(p *prompt) bool {
		if p.steers() {
			close(p.decided)
		}
		return p.steers()
	})
}
