package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/tricks"
)

// trickster is an agent that plays the trick with the name that the prompt has, and says what was answered.
func trickster() {
	err := acp.ServeAgent(context.Background(), acp.Stdio(), tricksterHandlers(), nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func tricksterHandlers() acp.AgentHandlers {
	return acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			name, _ := req.Prompt[0].Text()
			if name == "workflow" {
				for _, text := range []string{"a\n :", ":add-mask::x\n#", "#err", "or]y ##vso[z]\n", "::debug::b::c"} {
					if err := s.Update(ctx, acp.AgentMessageText(text)); err != nil {
						return nil, err
					}
				}
				return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
			}
			for _, k := range tricks.All() {
				if k.Name != name {
					continue
				}
				played := make(tricks.Played, 1)
				res, err := k.Prompt(&played)(ctx, s, req)
				if err == nil {
					err = s.Update(ctx, acp.AgentMessageText(fmt.Sprintf("\nanswer <%s>\n", <-played)))
				}
				return res, err
			}
			return nil, fmt.Errorf("there is no trick %q", name)
		},
	}
}

// consoleClient is a client with a view.Console, whose agent plays the trick of its argument.
func consoleClient() {
	ctx := context.Background()
	here, there := acp.Pipe()
	go func() { _ = acp.ServeAgent(ctx, there, tricksterHandlers(), nil) }() // it ends with the program
	console := view.NewConsole(os.Stdin, os.Stdout)
	conn, err := acp.Connect(ctx, here, acp.ClientHandlers{
		SessionUpdate: console.SessionUpdate, RequestPermission: view.Asking(&console.Sessions, console.RequestPermission),
	}, nil)
	if err == nil {
		var s *acp.ClientSession
		if s, err = conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/"}); err == nil {
			_, err = view.Prompt(ctx, console.Sessions.Of(s.ID()), s, acp.TextBlock(os.Args[1]))
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// Nothing that an agent says is a command for a CI server that reads the output, in any format and however it is split.
func TestExecWorkflow(t *testing.T) {
	command := regexp.MustCompile(`(?m)^\s*::|##\pL*\[`)
	for _, format := range []string{formatText, formatQuiet, formatJSON} {
		out, err := exec.CommandContext(t.Context(), "acp", "exec", "--format", format, "workflow", "--", "trickster").Output()
		if err != nil || command.Match(out) || !strings.Contains(string(out), "b::c") {
			t.Errorf("%s: %v\n%s", format, err, out)
		}
	}
}
