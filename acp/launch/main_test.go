package launch_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
)

// TestMain is the agent too, in the process that has ACP_TEST_AGENT.
func TestMain(m *testing.M) {
	if kind := os.Getenv("ACP_TEST_AGENT"); kind != "" {
		os.Exit(agent(kind))
	}
	goleak.VerifyTestMain(m)
}

// readRequest reads the client's first message.
func readRequest() { _, _ = bufio.NewReader(os.Stdin).ReadString('\n') } // without one there is nobody to answer

// agent plays an agent of some kind.
func agent(kind string) int {
	switch kind {
	case "dies":
		fmt.Fprintln(os.Stderr, "reading the configuration\nno configuration in /home/x")
		return 3
	case "dies without a word":
		return 7
	case "silent":
		fmt.Fprintln(os.Stderr, "waiting for the browser")
		time.Sleep(time.Hour)
	case "old":
		readRequest()
		fmt.Println(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":9,"agentCapabilities":{}}}`)
		time.Sleep(time.Hour)
	case "no agent":
		readRequest()
		fmt.Println(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`)
		time.Sleep(time.Hour)
	case "refuses":
		readRequest()
		fmt.Println(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no licence"}}`)
		time.Sleep(time.Hour)
	case "offline":
		fmt.Fprintln(os.Stderr, "npm error code ENOTFOUND")
		return 1
	case "login": // the login itself
		line, env := strings.Join(os.Args[1:], " "), os.Getenv("ACP_TEST_WHO")
		fmt.Print("password: ")
		input, _ := io.ReadAll(os.Stdin) // until it ends
		answer := strings.TrimSpace(string(input))
		fmt.Printf("%s|%s|%s\n", line, env, answer)
		if answer != "secret" {
			return 4
		}
		return 0
	}
	h := acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			switch kind {
			case "locked":
				return nil, acp.ErrAuthRequired
			case "broken":
				return nil, rpc.ErrInternal.WithMessagef("the disk is full")
			case "crashes":
				fmt.Fprintln(os.Stderr, "panic: nil map")
				os.Exit(2)
			}
			return &acp.NewSessionResponse{SessionID: "s"}, nil
		},
		Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
		CloseSession: func(context.Context, *acp.AgentSession, *acp.CloseSessionRequest) (*acp.CloseSessionResponse, error) {
			return &acp.CloseSessionResponse{}, nil
		},
	}
	if kind == "banner" {
		fmt.Println("Welcome to my agent!")
		json.NewEncoder(os.Stdout).Encode(map[string]string{"level": "info"})
	}
	err := acp.ServeAgent(context.Background(), acp.Stdio(), h, &acp.AgentOptions{
		Info: acp.Implementation{Name: "test-agent", Version: "1.2.3"},
		AuthMethods: []acp.AuthMethod{
			acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "browser", Name: "Browser"}),
			acp.NewAuthMethodTerminal(acp.AuthMethodTerminal{ID: "shell", Name: "Shell", Args: []string{"--log", "in"}, Env: map[string]string{"A": "b"}}),
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
