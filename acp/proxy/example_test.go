package proxy_test

import (
	"context"
	"fmt"
	"log"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/proxy"
	"github.com/acpgo/sdk/acp/rpc"
)

// A proxy that logs the commands that an agent runs, and blocks one of them.
func Example() {
	hooks := proxy.Hooks{CreateTerminal: func(ctx context.Context, req *acp.CreateTerminalRequest,
		next func(context.Context, *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error),
	) (*acp.CreateTerminalResponse, error) {
		fmt.Println("run", req.Command, req.Args)
		if req.Command == "rm" {
			return nil, rpc.ErrInvalidParams.WithMessagef("rm is not allowed")
		}
		return next(ctx, req)
	}}

	// In a program, up is rpc.Stdio() and down is rpc.Command(exec.Command("agent")).
	client, up := rpc.Pipe()
	down, agent := rpc.Pipe()
	ended := make(chan error)
	go func() { ended <- proxy.Serve(context.Background(), up, down, hooks, nil) }()

	play(client, agent)
	fmt.Println(<-ended)
	// Output:
	// run ls [-l]
	// the agent got terminal 1
	// run rm [-r x]
	// the agent got terminal/create: rm is not allowed (-32602)
	// <nil>
}

// play is a client that creates terminals, and an agent that asks for two.
func play(near, far rpc.Transport) {
	ctx := context.Background()
	var terminals rpc.Extensions[rpc.Conn]
	rpc.Handle(&terminals, acp.MethodCreateTerminal, func(context.Context, *rpc.Conn, *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error) {
		return &acp.CreateTerminalResponse{TerminalID: "1"}, nil
	})
	client, err := rpc.Connect(ctx, near, &terminals, nil)
	if err != nil {
		log.Fatal(err)
	}
	agent, err := rpc.Connect(ctx, far, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, command := range [][]string{{"ls", "-l"}, {"rm", "-r", "x"}} {
		res, err := rpc.Call[acp.CreateTerminalResponse](ctx, agent, acp.MethodCreateTerminal, &acp.CreateTerminalRequest{
			SessionID: "s", Command: command[0], Args: command[1:],
		})
		if err != nil {
			fmt.Println("the agent got", err)
		} else {
			fmt.Println("the agent got terminal", res.TerminalID)
		}
	}
	client.Close()
	<-agent.Done() // the proxy has passed the end on
	agent.Close()
}
