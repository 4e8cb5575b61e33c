// Command user is a program of somebody who uses package acp. It was written for the schemas of release
// 2.0.0 and is not changed: the tests compile it with what those become and with what the present ones do.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"

	"github.com/acpgo/sdk/acp"
)

func main() {
	ctx := context.Background()
	err := errors.New("usage: user agent | user client AGENT")
	switch {
	case len(os.Args) == 2 && os.Args[1] == "agent":
		err = agent(ctx)
	case len(os.Args) == 3 && os.Args[1] == "client":
		err = client(ctx, os.Args[2])
	}
	if err != nil {
		log.Fatal(err)
	}
}

func agent(ctx context.Context) error {
	return acp.ServeAgent(ctx, acp.Stdio(), acp.AgentHandlers{
		NewSession: func(_ context.Context, _ *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			for _, server := range req.MCPServers {
				switch s := server.Variant.(type) {
				case *acp.MCPServerStdio:
					log.Println(s.Name, s.Command, len(s.Args), len(s.Env))
				case *acp.MCPServerHTTP:
					log.Println(s.Name, s.URL, len(s.Headers))
				}
			}
			return &acp.NewSessionResponse{SessionID: "1", Meta: acp.Meta{"dirs": json.RawMessage("2")}}, nil
		},
		Prompt: prompt,
		SetSessionMode: func(context.Context, *acp.AgentSession, *acp.SetSessionModeRequest) (*acp.SetSessionModeResponse, error) {
			return nil, nil
		},
	}, &acp.AgentOptions{Info: acp.Implementation{Name: "user", Version: "1", Title: acp.Some("A user's agent")}})
}

func prompt(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
	for _, block := range req.Prompt {
		switch b := block.Variant.(type) {
		case *acp.ContentBlockText:
			if err := session.Update(ctx, acp.AgentMessageText(b.Text)); err != nil {
				return nil, err
			}
		case *acp.ContentBlockResource:
			_, text := b.Resource.Variant.(*acp.TextResourceContents)
			log.Println("a resource", text)
		case *acp.ContentBlockUnknown:
			log.Println(b.Tag, string(b.Raw))
		}
	}
	call := acp.ToolCall{ToolCallID: "c", Title: "edit", Kind: acp.ToolKindEdit, Status: acp.ToolCallStatusPending}
	if err := session.Update(ctx, acp.NewSessionUpdateToolCall(call)); err != nil {
		return nil, err
	}
	file, err := session.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: "/notes.txt", Limit: acp.Some[uint32](10)})
	if errors.Is(err, acp.ErrUnsupported) {
		return &acp.PromptResponse{StopReason: acp.StopReasonRefusal}, nil
	} else if err != nil {
		return nil, err
	}
	changed := acp.ToolCallUpdate{ToolCallID: "c", Status: acp.Some(acp.ToolCallStatusCompleted),
		Content: acp.Some([]acp.ToolCallContent{acp.ToolDiff("/notes.txt", file.Content)})}
	if err := session.Update(ctx, acp.NewSessionUpdateToolCallUpdate(changed)); err != nil {
		return nil, err
	}
	return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}

func client(ctx context.Context, program string) error {
	agent, err := acp.Connect(ctx, acp.Command(exec.Command(program, "agent")), acp.ClientHandlers{
		RequestPermission: func(_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			for _, option := range req.Options {
				if option.Kind == acp.PermissionOptionKindAllowOnce {
					return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(option.OptionID)}, nil
				}
			}
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
		},
	}, nil)
	if err != nil {
		return err
	}
	defer agent.Close()
	session, err := agent.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/tmp", MCPServers: []acp.MCPServer{
		acp.NewMCPServerStdio(acp.MCPServerStdio{Name: "tools", Command: "/bin/tools", Args: []string{"-v"}, Env: []acp.EnvVariable{{Name: "A", Value: "1"}}}),
	}})
	if err != nil {
		return err
	}
	turn := session.Stream(ctx, acp.TextBlock("hello"))
	for update := range turn.Updates() {
		switch u := update.Variant.(type) {
		case *acp.SessionUpdateAgentMessageChunk:
			text := u.Content.Text()
			fmt.Print(text)
		case *acp.SessionUpdateToolCallUpdate:
			fmt.Println(u.ToolCallID, u.Status.Or(acp.ToolCallStatusPending))
		case *acp.SessionUpdatePlan:
			for _, entry := range u.Entries {
				fmt.Println(entry.Priority, entry.Content)
			}
		}
	}
	res, err := turn.Result()
	if err != nil {
		return err
	}
	switch res.StopReason {
	case acp.StopReasonEndTurn, acp.StopReasonMaxTokens, acp.StopReasonCancelled:
		fmt.Println(res.StopReason)
	}
	return nil
}
