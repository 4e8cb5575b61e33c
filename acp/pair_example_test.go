package acp_test

import (
	"context"
	"log"

	"github.com/acpgo/sdk/acp"
)

// inMemory connects a client to an agent in one process, for examples and tests. The agent ends with the client's
// connection.
func inMemory(ctx context.Context, agent acp.AgentHandlers, client acp.ClientHandlers) *acp.ClientConn {
	agentEnd, clientEnd := acp.Pipe()
	if _, err := acp.StartAgent(ctx, agentEnd, agent, nil); err != nil {
		log.Fatal(err)
	}
	conn, err := acp.Connect(ctx, clientEnd, client, nil)
	if err != nil {
		log.Fatal(err)
	}
	return conn
}

// oneSession is a NewSession handler.
func oneSession(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
	return &acp.NewSessionResponse{SessionID: "session-1"}, nil
}

// openSession opens one.
func openSession(ctx context.Context, conn *acp.ClientConn) *acp.ClientSession {
	session, err := conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/home/ada"})
	if err != nil {
		log.Fatal(err)
	}
	return session
}
