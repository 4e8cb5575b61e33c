// Command agent is an agent without a model that speaks version 1 and version 2 of the Agent Client Protocol over
// standard input and output, depending on the client's request.
//
//	agent [-version N] [-state FOLDER]
//
// It answers a prompt with a plan, asks whether it may list the session's directory, and shows the listing. A prompt
// that begins with "Write a very long" streams text until it is cancelled. With -version it speaks only one version.
// With -state, clients of version 2 may resume its sessions even after it has been restarted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/acpgo/sdk/acp/negotiate"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/view"
)

func main() {
	version := flag.Int("version", 0, "the only version to speak; 0 is both, 1 and 2")
	dir := flag.String("state", "", "folder for the sessions of version 2 (default: one that is removed at the end)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, *version, *dir)
	if ctx.Err() != nil {
		err = nil
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", view.PrintableLine(err.Error()))
		os.Exit(1)
	}
}

// serve serves the client until it ends the connection, or a signal does.
func serve(ctx context.Context, version int, dir string) error {
	agent := negotiate.Agent{V1: (&agentV1{}).serve, V2: (&agentV2{dir}).serve}
	switch version {
	case 0:
	case 1:
		agent.V2 = nil
	case 2:
		agent.V1 = nil
	default:
		return fmt.Errorf("no version %d", version)
	}
	return agent.Serve(ctx, rpc.Stdio())
}
