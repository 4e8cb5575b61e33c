// Command victim is the target of the hostile agent in version 2: the smallest client. See package
// github.com/acpgo/sdk/internal/test/attack, which runs it.
//
//	victim [flags] client -- AGENT [arguments]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/internal/test/attack/hostile"
)

func main() {
	root := flag.String("root", ".", "the directory of the session")
	report := flag.String("report", "", "where to write the report; nowhere if it is empty")
	flag.Parse()
	err := errors.New("usage: victim [flags] client -- AGENT [arguments]")
	if flag.NArg() > 2 && flag.Arg(0) == "client" && flag.Arg(1) == "--" {
		err = hostile.Live(hostile.NewReport(*report), func() error { return client(*root, flag.Args()[2:]) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "victim:", err)
		os.Exit(1)
	}
}

// client has two turns with an agent, "attack" and "again". The second one must be an ordinary turn.
func client(root string, agent []string) (err error) {
	const kept = 1 << 10     // how much of what the agent says is kept, in bytes
	var said strings.Builder // the handlers of one session are called one after the other
	handlers := acpv2.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acpv2.ClientSession, n *acpv2.UpdateSessionNotification) error {
			if u, ok := n.Update.Variant.(*acpv2.SessionUpdateAgentMessageChunk); ok && said.Len() < kept {
				text := u.Content.Text()
				said.WriteString(text[:min(len(text), kept)])
			}
			return nil
		},
	}
	connecting, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	conn, err := acpv2.Connect(connecting, acpv2.Command(exec.Command(agent[0], agent[1:]...)), handlers,
		&acpv2.ClientOptions{Info: acpv2.Implementation{Name: "victim", Version: "1.0.0"}})
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	session, err := conn.NewSession(connecting, &acpv2.NewSessionRequest{Cwd: acpv2.AbsolutePath(root)})
	if err != nil {
		return fmt.Errorf("opening a session: %w", err)
	}
	for _, text := range []string{"attack", "again"} {
		said.Reset()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Hour) // the driver ends it earlier
		_, err := session.Prompt(ctx, acpv2.TextBlock(text))
		cancel()
		if err != nil {
			return fmt.Errorf("the turn %q: %w", text, err)
		}
	}
	if got, want := said.String(), "still here"; got != want {
		return fmt.Errorf("in the turn after the attack the agent said %.200q, want %q", got, want)
	}
	return nil
}
