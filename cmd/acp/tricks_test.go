package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/test/tricks"
)

// trickster is an agent that plays the trick with the name that the prompt has, and writes the answer to the address
// that is its argument.
func trickster() {
	var told sync.WaitGroup
	err := acp.ServeAgent(context.Background(), acp.Stdio(), tricksterHandlers(&told, os.Args[len(os.Args)-1]), nil)
	told.Wait()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func tricksterHandlers(told *sync.WaitGroup, address string) acp.AgentHandlers {
	return acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			name := req.Prompt[0].Text()
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
				told.Go(func() {
					if conn, err := net.Dial("tcp", address); err == nil {
						_, _ = io.WriteString(conn, string(<-played)) // the test misses it
						_ = conn.Close()
					}
				})
				return k.Prompt(&played)(ctx, s, req)
			}
			return nil, fmt.Errorf("there is no trick %q", name)
		},
	}
}

// consoleClient is a client with a view.Console, whose agent plays the trick of its argument.
func consoleClient() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var told sync.WaitGroup
	here, there := acp.Pipe()
	// It ends with the program.
	go func() { _ = acp.ServeAgent(context.Background(), there, tricksterHandlers(&told, os.Args[2]), nil) }()
	console := view.NewConsole(os.Stdin, os.Stdout)
	conn, err := acp.Connect(context.Background(), here, acp.ClientHandlers{
		SessionUpdate: console.SessionUpdate, RequestPermission: view.TrackPermissions(console.Sessions, console.RequestPermission),
	}, nil)
	if err == nil {
		var s *acp.ClientSession
		if s, err = conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/"}); err == nil {
			_, err = view.Prompt(ctx, console.Sessions.Of(s.ID()), s, acp.TextBlock(os.Args[1]))
		}
	}
	told.Wait()
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
