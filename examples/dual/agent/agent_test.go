package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/v2draft"
)

// A client can open any number of sessions: only so many are kept.
func TestSessionsAreBounded(t *testing.T) {
	v1, v2 := &agentV1{}, &agentV2{}
	for range maxSessions {
		if _, err := v1.newSession(t.Context(), nil, &acp.NewSessionRequest{Cwd: "/"}); err != nil {
			t.Fatal(err)
		}
		if _, err := v2.newSession(t.Context(), nil, &v2draft.NewSessionRequest{Cwd: "/"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := v1.newSession(t.Context(), nil, &acp.NewSessionRequest{Cwd: "/"}); !errors.Is(err, acp.ErrInvalidRequest) {
		t.Errorf("version 1: got %v", err)
	}
	if _, err := v2.newSession(t.Context(), nil, &v2draft.NewSessionRequest{Cwd: "/"}); !errors.Is(err, v2draft.ErrInvalidRequest) {
		t.Errorf("version 2: got %v", err)
	}
}

// A session does not grow without end.
func TestFullSessions(t *testing.T) {
	agent := &agentV2{}
	s := &sessionV2{id: "s"}
	agent.sessions = map[v2draft.SessionID]*sessionV2{"s": s}
	if err := s.remember(v2draft.AgentMessageText("1", strings.Repeat("x", maxHistory))); err != nil {
		t.Fatal(err)
	}
	_, err := agent.prompt(t.Context(), nil, &v2draft.PromptRequest{SessionID: "s", Prompt: []v2draft.ContentBlock{v2draft.TextBlock("more")}})
	if !errors.Is(err, v2draft.ErrInvalidRequest) {
		t.Errorf("got %v", err)
	}
}
