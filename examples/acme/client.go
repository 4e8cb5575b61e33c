package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"example.com/acme/vendoracp"
	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/view"
)

// ask is the client: it asks an agent to index a directory, and prints the agent's notifications about it.
func ask(ctx context.Context, folder string, out io.Writer) error {
	root, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	extensions := &acp.Extensions[acp.ClientConn]{}
	rpc.HandleNotificationMethod(extensions, vendoracp.IndexProgressMethod,
		func(_ context.Context, _ *acp.ClientConn, n *vendoracp.IndexProgressNotification) error {
			return show(out, n.Event)
		})
	agent, err := acp.Connect(ctx, acp.Command(exec.Command(self, "-agent")), acp.ClientHandlers{Extensions: extensions},
		nil)
	if err != nil {
		return err
	}
	defer agent.Close()
	var can vendoracp.Capability
	if _, err := agent.Capabilities().Meta.Get(capability, &can); err != nil || !can.Index {
		return errors.Join(errors.New("the agent cannot index folders"), err)
	}

	session, err := agent.NewSession(ctx, &acp.NewSessionRequest{Cwd: root})
	if err != nil {
		return err
	}
	_, err = vendoracp.IndexMethod.Call(ctx, agent, &vendoracp.IndexRequest{
		SessionID: vendoracp.SessionID(session.ID()), Root: root, MaxFiles: acp.Some[uint32](3),
	})
	if err != nil {
		return err
	}
	turn := session.Stream(ctx, acp.TextBlock("What is there?"))
	for update := range turn.Updates() {
		if text := update.AgentText(); text != "" {
			fmt.Fprintln(out, view.PrintableLine(text))
		}
	}
	if _, err := turn.Result(); err != nil {
		return err
	}
	return agent.Close()
}

// show prints an event of a known kind.
func show(out io.Writer, event vendoracp.IndexEvent) error {
	var err error
	switch e := event.Variant.(type) {
	case *vendoracp.IndexEventFile:
		_, err = fmt.Fprintln(out, "indexed", view.PrintableLine(e.Path), view.PrintableLine(string(e.Language)))
	case *vendoracp.IndexEventLimit:
		_, err = fmt.Fprintln(out, "that is enough")
	default: // events of newer versions are not shown
	}
	return err
}
