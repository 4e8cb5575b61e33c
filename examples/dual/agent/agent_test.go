package main

import (
	"errors"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/tier"
)

// A client can open any number of sessions: only so many are kept.
func TestSessionsAreBounded(t *testing.T) {
	tier.Need(t, tier.Normal)
	v1 := &agentV1{}
	for range maxSessions {
		if _, err := v1.newSession(t.Context(), nil, &acp.NewSessionRequest{Cwd: "/"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := v1.newSession(t.Context(), nil, &acp.NewSessionRequest{Cwd: "/"}); !errors.Is(err, acp.ErrInvalidRequest) {
		t.Errorf("version 1: got %v", err)
	}

	theirs, ours := acpv2.Pipe()
	served := make(chan error)
	go func() { served <- (&agentV2{t.TempDir()}).serve(t.Context(), theirs) }()
	client, err := acpv2.Connect(t.Context(), conformance.Tap(t, conformance.Client, ours, &conformance.TapOptions{Schema: conformance.V2()}), acpv2.ClientHandlers{}, &acpv2.ClientOptions{Info: acpv2.Implementation{Name: "test", Version: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	for range maxSessions {
		if _, err := client.NewSession(t.Context(), &acpv2.NewSessionRequest{Cwd: "/"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.NewSession(t.Context(), &acpv2.NewSessionRequest{Cwd: "/"}); !errors.Is(err, acpv2.ErrInvalidRequest) {
		t.Errorf("version 2: got %v", err)
	}
	if err := errors.Join(client.Close(), <-served); err != nil {
		t.Error(err)
	}
}
