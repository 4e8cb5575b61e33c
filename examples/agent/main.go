// Command agent is an agent without a model: it speaks the Agent Client Protocol over standard input and output, and
// plays turns selected by the words of a prompt. It is the project's reference agent: complete in the features that it
// implements, and the same on every run, so that clients can be tested against it.
//
// It is a fixture of this module's tests and imports internal packages. To start an agent of your own, copy
// examples/kit-agent.
//
//	agent [-state DIR] [-require-auth] [-command-time DURATION]
//
// # Words
//
// A prompt that begins with "Write a very long" streams text until it is cancelled, for two minutes at
// most. In any other prompt each of these words plays a scene, in this order:
//
//	plan            a plan of the following steps, updated at each step
//	think           thoughts, if the option "thoughts" shows them
//	read PATH       reads a file of the session (notes.txt if no path is named)
//	edit PATH       adds a line to a file (demo.txt if no path is named), after asking
//	run `COMMAND`   runs a command in a terminal of the client, after asking
//	permission      asks for permission regardless of the mode, and does nothing
//	form            asks the user to fill in a form
//	link            asks the user to open a page
//	mode            switches to the other mode
//	notice          sends a notice
//	compact         reports that the context was compacted
//	mcp             lists the tools of the session's MCP servers
//	fail            a tool call that fails
//
// At the end it repeats the prompt, says what was attached to it, and links what was linked. These words choose how a
// turn ends, which is with end_turn otherwise: max_tokens, max_turn_requests, refuse.
//
// If the client lacks a feature that a scene needs, files are read and written directly, within the directories of the
// session, and everything else is described in words.
//
// # State
//
// Sessions are kept in the directory that -state names, as package sessionstore does, so that another process can load
// them; by default in acp-example-agent within the user's cache directory. Without such a directory -state must name
// one. It is refused if everyone can write to it.
//
// A command that runs for longer than -command-time is killed.
//
// With -require-auth, only initialize and authenticate are served until the client has authenticated, or a user has run
// the program with -login; clients that can run this in a terminal are offered it as a login. Logout ends the turns in
// progress.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/internal/plain"
)

func main() {
	state := flag.String("state", "", "directory for sessions (default: in the user's cache directory)")
	requireAuth := flag.Bool("require-auth", false, "serve nothing before authentication")
	commandTime := flag.Duration("command-time", defaultCommandTime, "how long a command may run in a terminal")
	login := flag.Bool("login", false, "log in, in a terminal, and end")
	flag.Parse()

	// Standard output carries the protocol.
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	run := serve
	if *login {
		run = func(_ context.Context, c config) error { return logIn(c.state, os.Stdin, os.Stdout) }
	}
	err := withState(*state, logger, func(state string) error {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return run(ctx, config{state: state, requireAuth: *requireAuth, commandTime: *commandTime, log: logger})
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, plain.Sprintf("agent: %v", err))
		os.Exit(1)
	}
}

// serve serves the client until it ends the connection, or a signal does.
func serve(ctx context.Context, c config) error {
	a, err := newAgent(c)
	if err != nil {
		return err
	}
	opts := a.options()
	opts.Conn.Logger = c.log
	err = acp.ServeAgent(ctx, translate.Agent(acp.Stdio()), a.handlers(), opts) // clients of both versions
	if ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, a.close())
}

// withState calls run with the directory for sessions. The default is a directory of the user, because others could
// plant sessions in a shared one. Editors may start agents without HOME; then it is a temporary directory.
func withState(dir string, log *slog.Logger, run func(dir string) error) error {
	if dir != "" {
		return run(dir)
	}
	if cache, err := os.UserCacheDir(); err == nil {
		return run(filepath.Join(cache, "acp-example-agent"))
	}
	dir, err := os.MkdirTemp("", "acp-example-agent-")
	if err != nil {
		return fmt.Errorf("making a directory for sessions: %w", err)
	}
	log.Warn("no user cache directory: sessions end with this process; -state names a directory")
	return errors.Join(run(dir), os.RemoveAll(dir))
}
