// Command tools gives any agent a tool, the user's list of things to do: tools -- AGENT [arguments]. It adds an MCP
// server to every session, which is this program again: all agents start servers on standard input and output.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/proxy"
	"github.com/acpgo/sdk/acp/rpc"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("tools: ")
	serve := flag.Bool("serve", false, "be the MCP server")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *serve, flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, serve bool, args []string) error {
	if serve {
		return server().Run(ctx, &mcp.StdioTransport{})
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var agent rpc.Transport // without one, this is a component that a conductor starts
	if len(args) > 0 {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stderr = os.Stderr
		agent = rpc.Command(cmd)
	}
	todo := acp.NewMCPServerStdio(acp.MCPServerStdio{Name: "todo", Command: self, Args: []string{"-serve"}})
	return proxy.Serve(ctx, rpc.Stdio(), agent, adding(todo), nil)
}

// adding adds a server to every session that is created, loaded or resumed.
func adding(server acp.MCPServer) proxy.Hooks {
	return proxy.Hooks{
		NewSession: func(ctx context.Context, req *acp.NewSessionRequest,
			next func(context.Context, *acp.NewSessionRequest) (*acp.NewSessionResponse, error),
		) (*acp.NewSessionResponse, error) {
			req.MCPServers = append(req.MCPServers, server)
			return next(ctx, req)
		},
		LoadSession: func(ctx context.Context, req *acp.LoadSessionRequest,
			next func(context.Context, *acp.LoadSessionRequest) (*acp.LoadSessionResponse, error),
		) (*acp.LoadSessionResponse, error) {
			req.MCPServers = append(req.MCPServers, server)
			return next(ctx, req)
		},
		ResumeSession: func(ctx context.Context, req *acp.ResumeSessionRequest,
			next func(context.Context, *acp.ResumeSessionRequest) (*acp.ResumeSessionResponse, error),
		) (*acp.ResumeSessionResponse, error) {
			req.MCPServers = append(req.MCPServers, server)
			return next(ctx, req)
		},
	}
}

// server returns the MCP server. It writes the list to TODO.md in its directory, which is that of the session with most
// agents.
func server() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "todo", Version: "1.0"}, nil)
	type entry struct {
		Text string `json:"text" jsonschema:"what to do, on one line"`
	}
	add := func(_ context.Context, _ *mcp.CallToolRequest, in entry) (*mcp.CallToolResult, any, error) {
		file, err := os.OpenFile("TODO.md", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, nil, err
		}
		if _, err := file.WriteString("- [ ] " + in.Text + "\n"); err != nil {
			file.Close()
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "added to " + filepath.Base(file.Name())}}},
			nil, file.Close()
	}
	mcp.AddTool(s, &mcp.Tool{Name: "add", Description: "Add an entry to the user's list of things to do."}, add)
	return s
}
