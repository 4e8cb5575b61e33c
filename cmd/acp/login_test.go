package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/acpgo/sdk/acp"
)

// locked is an agent that opens sessions only if the file $LOCKED exists, which its logins write. $LOCKED_METHODS are
// the methods that it offers.
func locked() {
	file := os.Getenv("LOCKED")
	if len(os.Args) > 1 && os.Args[1] == "--login" {
		fmt.Print("Key: ")
		key, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		if strings.TrimSpace(key) != "open sesame" {
			fmt.Fprintln(os.Stderr, "wrong key")
			os.Exit(4)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			panic(err)
		}
		return
	}
	offered := map[string]acp.AuthMethod{
		"browser": acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "browser", Name: "In the browser", Description: acp.Some("It opens\x1b[2J one.")}),
		"console": acp.NewAuthMethodTerminal(acp.AuthMethodTerminal{ID: "console", Name: "With a key", Args: []string{"--login"}}),
		"env": {Variant: &acp.AuthMethodUnknown{Tag: "env_var", Raw: json.RawMessage(
			`{"type":"env_var","id":"env","name":"A key","vars":[{"name":"LOCKED_KEY","label":"Key"},{"name":"LOCKED_REGION","optional":true}],"link":"https://keys.example"}`)}},
	}
	options := &acp.AgentOptions{}
	for name := range strings.FieldsSeq(os.Getenv("LOCKED_METHODS")) {
		options.AuthMethods = append(options.AuthMethods, offered[name])
	}
	handlers := acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			if _, err := os.Stat(file); err != nil {
				return nil, acp.ErrAuthRequired
			}
			return &acp.NewSessionResponse{SessionID: "one"}, nil
		},
		Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
		Authenticate: func(_ context.Context, _ *acp.AgentConn, req *acp.AuthenticateRequest) (*acp.AuthenticateResponse, error) {
			if req.MethodID != "browser" {
				return nil, acp.InvalidParamsf("no method %q", req.MethodID)
			}
			fmt.Fprintln(os.Stderr, "open https://login.example/\x1b]0;x\a")
			return &acp.AuthenticateResponse{}, os.WriteFile(file, nil, 0o600)
		},
	}
	if os.Getenv("LOCKED_LOGOUT") != "" {
		handlers.Logout = func(context.Context, *acp.AgentConn, *acp.LogoutRequest) (*acp.LogoutResponse, error) {
			return &acp.LogoutResponse{}, os.Remove(file)
		}
	}
	beAgent(handlers, options)
}
