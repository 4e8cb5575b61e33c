package agentkit

import (
	"context"
	"slices"

	"github.com/acpgo/sdk/acp"
)

// The extension of existing agents and clients for messages into the turn that is running: a method, and a member of
// _meta that advertises it. The method is answered as soon as the message is taken.
const (
	methodSteer = "_session/steering"
	metaSteer   = "steering"
)

type steerRequest struct {
	SessionID acp.SessionID      `json:"sessionId"`
	Prompt    []acp.ContentBlock `json:"prompt"`
	Meta      acp.Meta           `json:"_meta"`
}

// promptRequired is what a client opts in to with its request: an answer that says that it must send the message as a
// prompt. Other clients expect that the message is taken, or an error.
const promptRequired = "promptRequired"

func (r *steerRequest) allowsPromptRequired() bool {
	var steering struct {
		IdleBehavior string `json:"idleBehavior"`
	}
	ok, err := r.Meta.Get(metaSteer, &steering)
	return ok && err == nil && steering.IdleBehavior == promptRequired
}

type steerResponse struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
}

// advertiseSteering extends the hook that edits the answer to initialize.
func advertiseSteering(
	edit func(context.Context, *acp.InitializeRequest, *acp.InitializeResponse) error,
) func(context.Context, *acp.InitializeRequest, *acp.InitializeResponse) error {
	return func(ctx context.Context, req *acp.InitializeRequest, res *acp.InitializeResponse) error {
		if err := res.Meta.Set(metaSteer, map[string]bool{"supported": true}); err != nil || edit == nil {
			return err
		}
		return edit(ctx, req, res)
	}
}

// steer offers a message to the running turn. If the turn ends before it takes the message, or none is running, nothing
// is done with it: a turn that no prompt has begun would have no answer that ends it.
func (ss *Sessions[S]) steer(ctx context.Context, conn *acp.AgentConn, req *steerRequest) (*steerResponse, error) {
	s, release, err := ss.open.Use(conn, req.SessionID)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, end := s.life.Within(ctx)
	defer end()
	p := &prompt[S]{req: &acp.PromptRequest{SessionID: req.SessionID, Prompt: req.Prompt}, ctx: ctx, steers: true, decided: make(chan struct{})}
	if err := s.enter(p); err != nil {
		return nil, err
	}
	if err := s.await(ctx, p); err != nil {
		return nil, err
	}
	if p.taken {
		return &steerResponse{Outcome: "injected"}, nil
	}
	if !req.allowsPromptRequired() {
		return nil, acp.ErrInvalidRequest.WithMessagef("Invalid request: no turn of the session takes the message")
	}
	return &steerResponse{Outcome: promptRequired, Reason: "noRunningTurn"}, nil
}

// sendBack decides the waiting messages that can only go into the turn that has just ended; mu is held.
func (s *Session[S]) sendBack() {
	s.waiting = slices.DeleteFunc(s.waiting, func(p *prompt[S]) bool {
		if p.steers {
			close(p.decided)
		}
		return p.steers
	})
}
