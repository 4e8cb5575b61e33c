package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp/acpv2"
)

func (c config) clientV2() (err error) {
	var said strings.Builder // the handlers of one session are called one after the other
	handlers := v2draft.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *v2draft.ClientSession, n *v2draft.UpdateSessionNotification) error {
			if u, ok := n.Update.Variant.(*v2draft.SessionUpdateAgentMessageChunk); ok && said.Len() < kept {
				text, _ := u.Content.Text()
				said.WriteString(text[:min(len(text), kept)])
			}
			return nil
		},
	}
	connecting, cancel := context.WithTimeout(context.Background(), patienceAgain)
	defer cancel()
	conn, err := v2draft.Connect(connecting, v2draft.Command(exec.Command(c.agent[0], c.agent[1:]...)), handlers,
		&v2draft.ClientOptions{Info: v2draft.Implementation{Name: "victim", Version: "1.0.0"}})
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	session, err := conn.NewSession(connecting, &v2draft.NewSessionRequest{Cwd: v2draft.AbsolutePath(c.root)})
	if err != nil {
		return fmt.Errorf("opening a session: %w", err)
	}
	for _, turn := range []struct {
		text     string
		patience time.Duration
	}{{"attack", c.patience}, {"again", patienceAgain}} {
		said.Reset()
		ctx, cancel := context.WithTimeout(context.Background(), turn.patience)
		_, err := session.Prompt(ctx, v2draft.TextBlock(turn.text))
		cancel()
		if err != nil {
			return fmt.Errorf("the turn %q: %w", turn.text, err)
		}
	}
	if said.String() != textAgain {
		return fmt.Errorf("in the turn after the attack the agent said %.200q, want %q", said.String(), textAgain)
	}
	return nil
}
