package agentkit_test

import (
	"context"
	"fmt"
	"os/exec"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/acp/acpv2/agentkit"
)

// The work of a prompt that says something, asks the user, and runs a command that the client shows as it goes.
func ExampleSession_StartToolCall() {
	type session = agentkit.Session[struct{}]
	prompt := func(ctx context.Context, s *session, _ *acpv2.PromptRequest) (acpv2.IdleStateUpdate, error) {
		fmt.Fprint(s.NewMessage(ctx), "I shall test it.") // closed at the end of the turn, as all that follows
		call, err := s.StartToolCall(ctx, "Test", acpv2.WithKind(acpv2.ToolKindExecute))
		if err != nil {
			return acpv2.IdleStateUpdate{}, err
		}
		run := func() error {
			if _, err := call.Ask(ctx); err != nil {
				return err
			}
			terminal, err := s.StartTerminal(ctx, "go test ./...", s.Cwd())
			if err != nil {
				return err
			}
			if err := call.Terminal(terminal); err != nil {
				return err
			}
			cmd := exec.CommandContext(ctx, "go", "test", "./...")
			cmd.Dir, cmd.Stdout, cmd.Stderr = string(s.Cwd()), terminal, terminal
			if err := cmd.Run(); cmd.ProcessState == nil {
				return err // it was not started
			}
			return terminal.Exited(cmd.ProcessState.ExitCode())
		}
		return acpv2.EndTurn(), call.End(run())
	}
	_ = agentkit.Config[struct{}]{Prompt: prompt} // and a Store
}
