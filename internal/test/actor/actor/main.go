// Command actor is the agent and the client of package actor as a program:
//
//	actor [flags]                         the agent, for clients of both versions
//	actor -login -state DIR               logs in, in a terminal
//	actor client [flags] -- AGENT [ARG…]  the client, which reads lines
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/internal/test/actor"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var err error
	if len(os.Args) > 1 && os.Args[1] == "client" {
		err = actor.ClientMain(ctx, os.Args[2:])
	} else {
		err = agent(ctx, os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "actor:", err)
		os.Exit(1)
	}
}

func agent(ctx context.Context, args []string) error {
	opts := actor.AgentOptions{Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	flags := flag.NewFlagSet("actor", flag.ExitOnError)
	flags.StringVar(&opts.State, "state", "", "directory for sessions")
	flags.BoolVar(&opts.RequireAuth, "require-auth", false, "refuse sessions before authentication")
	flags.DurationVar(&opts.CommandTime, "command-time", 0, "how long a command may run in a terminal")
	flags.IntVar(&opts.MaxBytes, "max-bytes", 0, "what the connection holds at most")
	login := flags.Bool("login", false, "log in, in a terminal, and end")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *login {
		return actor.Login(opts.State, os.Stdin, os.Stdout)
	}
	a, err := actor.NewAgent(opts)
	if err != nil {
		return err
	}
	err = a.Serve(ctx, translate.Agent(acp.Stdio()))
	if ctx.Err() != nil {
		err = nil // a signal has ended it
	}
	return errors.Join(err, a.Close())
}
