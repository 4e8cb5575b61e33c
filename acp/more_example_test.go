package acp_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// An agent as editors start it: over standard input and output.
func ExampleServeAgent() {
	err := acp.ServeAgent(context.Background(), acp.Stdio(), acp.AgentHandlers{
		NewSession: oneSession,
		Prompt: func(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			if err := session.Update(ctx, acp.AgentMessageText("Hello.")); err != nil {
				return nil, err
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}, &acp.AgentOptions{Info: acp.Implementation{Name: "my-agent", Version: "1.0"}})
	if err != nil {
		log.Fatal(err)
	}
}

// A client that starts an agent as a subprocess, prompts it once and prints its answer.
func ExampleConnect() {
	ctx := context.Background()
	conn, err := acp.Connect(ctx, acp.Command(exec.Command("my-agent")), acp.ClientHandlers{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	dir, err := os.Getwd()
	if err != nil {
		log.Fatal(err)
	}
	session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: dir})
	if err != nil {
		log.Fatal(err)
	}
	turn := session.Stream(ctx, acp.TextBlock("What is in this folder?"))
	for update := range turn.Updates() {
		if text := update.AgentText(); text != "" {
			fmt.Print(text)
		}
	}
	if _, err := turn.Result(); err != nil {
		log.Fatal(err)
	}
}

// An agent announces a tool call, asks the user, and reports how the call ended; the client shows the question and
// follows the tool call.
func Example_permission() {
	ctx := context.Background()
	conn := inMemory(ctx, acp.AgentHandlers{
		NewSession: oneSession,
		Prompt: func(ctx context.Context, session *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			const id, path = "call-1", "/home/ada/notes.txt"
			err := session.Update(ctx, acp.StartToolCall(id, "Delete notes.txt",
				acp.WithKind(acp.ToolKindDelete), acp.WithLocation(path, 0), acp.WithInput(map[string]string{"path": path})))
			if err != nil {
				return nil, err
			}
			outcome, err := session.RequestPermission(ctx,
				acp.ToolCallRef(id, acp.WithTitle("Delete notes.txt")),
				acp.AllowOnce("yes", "Delete it"), acp.RejectOnce("no", "Keep it"))
			if err != nil {
				return nil, err // when the turn was cancelled, too
			}
			status := acp.ToolCallStatusFailed
			if option, _ := outcome.Selected(); option == "yes" {
				status = acp.ToolCallStatusCompleted // here the file would be deleted
			}
			if err := session.Update(ctx, acp.UpdateToolCall(id, acp.WithStatus(status))); err != nil {
				return nil, err
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}, acp.ClientHandlers{
		RequestPermission: func(_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			fmt.Println(req.ToolCall.Title.Or("?"))
			for _, option := range req.Options {
				fmt.Printf("  [%s] %s\n", option.OptionID, option.Name)
			}
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("no")}, nil
		},
	})
	defer conn.Close()

	var call acp.ToolCall
	turn := openSession(ctx, conn).Stream(ctx, acp.TextBlock("tidy up"))
	for update := range turn.Updates() {
		switch u := update.Variant.(type) {
		case *acp.SessionUpdateToolCall:
			call = acp.ToolCall(*u)
		case *acp.SessionUpdateToolCallUpdate:
			call.Apply(acp.ToolCallUpdate(*u))
		}
	}
	fmt.Println(call.Title, call.Status)
	// Output:
	// Delete notes.txt
	//   [yes] Delete it
	//   [no] Keep it
	// Delete notes.txt failed
}

// A client cancels a turn. The agent's handler looks at its context, and may return its error: it is answered as
// cancelled all the same.
func Example_cancellation() {
	ctx := context.Background()
	conn := inMemory(ctx, acp.AgentHandlers{
		NewSession: oneSession,
		Prompt: func(ctx context.Context, session *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			if err := session.Update(ctx, acp.AgentMessageText("This takes long.")); err != nil {
				return nil, err
			}
			<-ctx.Done() // in place of work that ends with its context
			fmt.Println("agent:", context.Cause(ctx))
			return nil, ctx.Err()
		},
	}, acp.ClientHandlers{})
	defer conn.Close()

	turn := openSession(ctx, conn).Stream(ctx, acp.TextBlock("hello"))
	for update := range turn.Updates() {
		if text := update.AgentText(); text != "" {
			fmt.Println(text)
			turn.Cancel()
		}
	}
	res, err := turn.Result()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("client:", res.StopReason)
	// Output:
	// This takes long.
	// agent: acp: turn cancelled
	// client: cancelled
}

// An agent that keeps sessions replays a session's history when a client loads it. The updates arrive before
// LoadSession returns.
func Example_load() {
	ctx := context.Background()
	history := map[acp.SessionID][]acp.SessionUpdate{
		"yesterday": {acp.UserMessageText("What is 6 × 7?"), acp.AgentMessageText("42.")},
	}
	conn := inMemory(ctx, acp.AgentHandlers{
		NewSession: oneSession,
		LoadSession: func(ctx context.Context, session *acp.AgentSession, req *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error) {
			updates, ok := history[req.SessionID]
			if !ok {
				return nil, acp.SessionNotFound(req.SessionID)
			}
			for _, update := range updates {
				if err := session.Update(ctx, update); err != nil {
					return nil, err
				}
			}
			return &acp.LoadSessionResponse{}, nil
		},
		Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}, acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, session *acp.ClientSession, n *acp.SessionNotification) error {
			switch u := n.Update.Variant.(type) {
			case *acp.SessionUpdateUserMessageChunk:
				text := u.Content.Text()
				fmt.Println("user: ", text)
			case *acp.SessionUpdateAgentMessageChunk:
				text := u.Content.Text()
				fmt.Println("agent:", text)
			}
			return nil
		},
	})
	defer conn.Close()

	session, err := conn.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: "yesterday", Cwd: "/home/ada"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("loaded", session.ID())
	_, err = conn.LoadSession(ctx, &acp.LoadSessionRequest{SessionID: "never", Cwd: "/home/ada"})
	fmt.Println(errors.Is(err, acp.ErrResourceNotFound))
	// Output:
	// user:  What is 6 × 7?
	// agent: 42.
	// loaded yesterday
	// true
}

// An agent runs a command in a terminal of the client's, if the client has terminals. Package acp/local has the
// handlers of a client that runs them on this machine; here they only pretend to.
func Example_terminal() {
	ctx := context.Background()
	conn := inMemory(ctx, acp.AgentHandlers{
		NewSession: oneSession,
		Prompt: func(ctx context.Context, session *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
			terminal, err := session.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "go", Args: []string{"version"}})
			if err != nil { // ErrUnsupported if the client has no terminals
				return nil, err
			}
			defer terminal.Close(ctx) // also when the turn was cancelled
			exit, err := terminal.Wait(ctx)
			if err != nil {
				return nil, err
			}
			output, err := terminal.Output(ctx)
			if err != nil {
				return nil, err
			}
			text := fmt.Sprintf("%q, exit status %d", output.Output, exit.ExitCode.Or(0))
			if err := session.Update(ctx, acp.AgentMessageText(text)); err != nil {
				return nil, err
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}, acp.ClientHandlers{
		CreateTerminal: func(_ context.Context, _ *acp.ClientSession, req *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
			fmt.Println("running", req.Command, req.Args)
			return &acp.CreateTerminalResponse{TerminalID: "term-1"}, nil
		},
		WaitForTerminalExit: func(context.Context, *acp.ClientSession, *acp.WaitForTerminalExitRequest) (*acp.WaitForTerminalExitResponse, error) {
			return &acp.WaitForTerminalExitResponse{ExitCode: acp.Some[uint32](0)}, nil
		},
		TerminalOutput: func(context.Context, *acp.ClientSession, *acp.TerminalOutputRequest) (*acp.TerminalOutputResponse, error) {
			return &acp.TerminalOutputResponse{Output: "go version go1.26"}, nil
		},
		KillTerminal: func(context.Context, *acp.ClientSession, *acp.KillTerminalRequest) (*acp.KillTerminalResponse, error) {
			return nil, nil
		},
		ReleaseTerminal: func(_ context.Context, _ *acp.ClientSession, req *acp.ReleaseTerminalRequest) (*acp.ReleaseTerminalResponse, error) {
			fmt.Println("released", req.TerminalID)
			return nil, nil
		},
	})
	defer conn.Close()

	turn := openSession(ctx, conn).Stream(ctx, acp.TextBlock("which Go is this?"))
	var answer strings.Builder
	for update := range turn.Updates() {
		if text := update.AgentText(); text != "" {
			answer.WriteString(text)
		}
	}
	if _, err := turn.Result(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.String())
	// Output:
	// running go [version]
	// released term-1
	// "go version go1.26", exit status 0
}

// A method outside the protocol, whose name begins with an underscore, is served by Extensions and called by the raw
// connection.
func Example_extension() {
	type question struct {
		Word string `json:"word"`
	}
	type answer struct {
		Letters int `json:"letters"`
	}
	var ext rpc.Extensions[acp.AgentConn]
	rpc.Handle(&ext, "_example.com/count", func(_ context.Context, _ *acp.AgentConn, q *question) (*answer, error) {
		if q.Word == "" {
			return nil, acp.InvalidParamsf("no word")
		}
		return &answer{Letters: len(q.Word)}, nil
	})
	ctx := context.Background()
	conn := inMemory(ctx, acp.AgentHandlers{
		NewSession: oneSession,
		Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
		Extensions: &ext,
	}, acp.ClientHandlers{})
	defer conn.Close()

	res, err := rpc.Call[answer](ctx, conn.RPC(), "_example.com/count", question{Word: "underscore"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Letters)
	_, err = rpc.Call[answer](ctx, conn.RPC(), "_example.com/count", question{})
	fmt.Println(err)
	// Output:
	// 10
	// _example.com/count: Invalid params: no word (-32602)
}
