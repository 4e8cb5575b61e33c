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

func run(ctx context.Context, dir string) error {
	var handlers acp.ClientHandlers
	machine, err := local.Serve(&handlers, local.Trusted(), dir)
	if err != nil {
		return err
	}
	defer machine.Close()
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

// A client whose sessions have directories of their own, which runs whole command lines and shows what
// commands print.
func ExampleRoots_SetSession() {
	err := func(ctx context.Context, projects ...string) (err error) {
		roots, err := local.OpenRoots()
		if err != nil {
			return err
		}
		terminals := local.NewTerminals(roots, local.Trusted(), &local.TerminalsOptions{
			Shell: local.DefaultShell(),
			OnOutput: func(session local.Session, terminal acp.TerminalID, output []byte) {
				log.Printf("%s %s: %q", session.ID(), terminal, output)
			},
		})
		defer func() { err = errors.Join(err, terminals.Close(), roots.Close()) }()

		var handlers acp.ClientHandlers
		terminals.Register(&handlers)
		local.NewFiles(roots, nil, nil).Register(&handlers)
		agent, err := acp.Connect(ctx, acp.Command(exec.Command("my-agent")), handlers, nil)
		if err != nil {
			return err
		}
		defer agent.Close()
		for _, dir := range projects {
			session, err := agent.NewSession(ctx, &acp.NewSessionRequest{Cwd: dir})
			if err != nil {
				return err
			}
			if err := roots.SetSession(session, dir); err != nil {
				return err
			}
			if _, err := session.Prompt(ctx, acp.TextBlock("What is this project about?")); err != nil {
				return err
			}
		}
		return nil
	}(context.Background(), "/home/me/one", "/home/me/two")
	if err != nil {
		log.Fatal(err)
	}
}
