package acp_test

import (
	"context"
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // passing tests print nothing
	goleak.VerifyTestMain(m)
}

func options(yes, no string) []acp.PermissionOption {
	return []acp.PermissionOption{
		{OptionID: "yes", Name: yes, Kind: acp.PermissionOptionKindAllowOnce},
		{OptionID: "no", Name: no, Kind: acp.PermissionOptionKindRejectOnce},
	}
}

// choose answers permission requests with an option.
func choose(option acp.PermissionOptionID) func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
	return func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
		return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(option)}, nil
	}
}

// say sends updates until one fails.
func say(ctx context.Context, s *acp.AgentSession, updates ...acp.SessionUpdate) error {
	for _, u := range updates {
		if err := s.Update(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

func status(s acp.ToolCallStatus, content ...acp.ToolCallContent) acp.SessionUpdate {
	u := acp.ToolCallUpdate{ToolCallID: "call_1", Status: acp.Some(s)}
	if content != nil {
		u.Content = acp.Some(content)
	}
	return acp.NewSessionUpdateToolCallUpdate(u)
}

// holds is a client's handler that leaves a question open until its turn ends.
func holds(asked chan<- struct{}) func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
	return func(ctx context.Context, _ *acp.ClientSession, _ *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

// nothing is a handler that answers with nothing.
func nothing[Of, P, R any](context.Context, Of, P) (res R, err error) { return res, nil }
