package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// hosted is a separate program: an agent of version 1 that does with its client's files and terminals what the words of
// a prompt say, and says what comes of it.
func hosted() {
	var fs acp.ClientCapabilities
	beAgent(acp.AgentHandlers{
		NewSession: func(_ context.Context, conn *acp.AgentConn, _ *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			fs = conn.Initialized().ClientCapabilities
			return &acp.NewSessionResponse{SessionID: "one"}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			word := strings.SplitN(req.Prompt[0].Text(), " ", 3)
			var said string
			var err error
			switch word[0] {
			case "offered":
				said = fmt.Sprint(fs.FS.ReadTextFile, fs.FS.WriteTextFile, fs.Terminal)
			case "write":
				_, err = s.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: word[1], Content: word[2]})
			case "read":
				var res *acp.ReadTextFileResponse
				if res, err = s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: word[1]}); err == nil {
					said = res.Content
				}
			case "run":
				said, err = hostedRun(ctx, s, []string{"-c", req.Prompt[0].Text()[len("run "):]})
			case "unknown":
				for _, method := range []string{"output", "kill", "release", "wait_for_exit"} {
					_, err := rpc.Call[json.RawMessage](ctx, s, "terminal/"+method, map[string]string{"sessionId": "one", "terminalId": "term_x"})
					said += fmt.Sprintln(errors.Is(err, acp.ErrResourceNotFound))
				}
			case "many":
				var calls sync.WaitGroup
				var mu sync.Mutex
				for range 10_000 {
					calls.Go(func() {
						_, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "true"})
						mu.Lock()
						defer mu.Unlock()
						if err == nil {
							said = "a command ran"
						}
					})
				}
				calls.Wait()
			}
			if err != nil {
				said = "error: " + err.Error()
			}
			if ctx.Err() != nil {
				return &acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, s.Update(ctx, acp.AgentMessageText(said))
		},
	}, &acp.AgentOptions{Info: acp.Implementation{Name: "hosted", Version: "1"}})
}

// hostedRun runs a command of the shell in a terminal that a tool call shows.
func hostedRun(ctx context.Context, s *acp.AgentSession, args []string) (string, error) {
	if err := s.Update(ctx, acp.StartToolCall("t", "Run", acp.WithStatus(acp.ToolCallStatusInProgress))); err != nil {
		return "", err
	}
	terminal, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "sh", Args: args})
	if err != nil {
		return "", err
	}
	if err := s.Update(ctx, acp.UpdateToolCall("t", acp.WithContent(acp.ToolTerminal(terminal.ID())))); err != nil {
		return "", err
	}
	exit, err := terminal.Wait(ctx)
	if err != nil {
		return "", err
	}
	output, err := terminal.Output(ctx)
	if err != nil {
		return "", err
	}
	code, _ := exit.ExitCode.Get()
	return fmt.Sprintf("%d: %s", code, output.Output), terminal.Close(ctx)
}
