package local_test

import (
	"context"
	"errors"
	"log"
	"os/exec"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
)

// A client that gives an agent one directory, lets it read and write there and run commands.
func Example() {
	if err := run(context.Background(), "/home/me/project"); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string) (err error) {
	roots, err := local.OpenRoots(dir)
	if err != nil {
		return err
	}
	terminals := local.NewTerminals(roots, nil)
	defer func() { err = errors.Join(err, terminals.Close(), roots.Close()) }()

	var handlers acp.ClientHandlers
	terminals.Register(&handlers)
	local.NewFiles(roots, nil).Register(&handlers)

	agent, err := acp.Connect(ctx, acp.Command(exec.Command("my-agent")), handlers, nil)
	if err != nil {
		return err
	}
	defer agent.Close()
	session, err := agent.NewSession(ctx, &acp.NewSessionRequest{Cwd: dir})
	if err != nil {
		return err
	}
	_, err = session.Prompt(ctx, acp.TextBlock("Make the tests pass."))
	return err
}
