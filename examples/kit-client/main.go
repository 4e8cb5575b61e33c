// Command kit-client talks to an agent in the terminal, with the building blocks for clients: acp/view folds the updates,
// acp/policy decides about permissions, acp/reconnect starts an agent again that has died and brings the session back,
// acp/local serves files and terminals. Each line of standard input is a prompt. Ctrl-C cancels the turn, or quits.
//
//	kit-client RULES AGENT [arguments]
//
// RULES is a file of rules, as acp/policy reads it; what they leave open, the user is asked. The agent works right here.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/reconnect"
	"github.com/acpgo/sdk/acp/view"
)

// client is a conversation in a terminal.
type client struct {
	typed      chan string // closed at the end of the input
	sessions   view.Sessions
	asking, mu sync.Mutex // one question at a time; of what the user sees
	drawn      *view.Snapshot
	last       int // the item that was drawn last
}

func main() {
	c := &client{typed: make(chan string)}
	if err := c.run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "\nkit-client:", view.PrintableLine(err.Error()))
		os.Exit(1)
	}
}

func (c *client) run(ctx context.Context, args []string) (err error) {
	if len(args) < 2 {
		return errors.New("usage: kit-client RULES AGENT [arguments]")
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	rules, err := policy.Load(args[0], &policy.Options{Resolve: policy.ResolveLinks})
	if err != nil {
		return err
	}
	handlers := acp.ClientHandlers{SessionUpdate: c.update}
	handlers.RequestPermission = view.Asking(&c.sessions, policy.Handler(rules, c.ask, &policy.HandlerOptions{
		Cwd:    func(*acp.ClientSession) string { return dir },
		Memory: policy.NewFile(args[0] + ".always"),
		Failed: func(_ *acp.ClientSession, err error) { c.print("%v", err) },
	}))
	files, err := local.Serve(&handlers, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	supervised, err := reconnect.Connect(ctx, func(context.Context) (acp.Transport, error) {
		return acp.Command(exec.Command(args[1], args[2:]...)), nil
	}, handlers, &acp.ClientOptions{Info: acp.Implementation{Name: "kit-client", Version: "1"}}, &reconnect.Options{Notify: func(e reconnect.Event) {
		if e.Kind == reconnect.Replaying {
			c.sessions.Of(e.Session).Reset()
		}
		c.print("[%s %s %v]", e.Kind, e.Session, e.Err)
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, supervised.Close()) }()
	session, err := supervised.NewSession(ctx, &acp.NewSessionRequest{Cwd: dir})
	if err != nil {
		return err
	}
	go func() { // it ends with the input: nothing ends a read from a terminal
		defer close(c.typed)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			c.typed <- lines.Text()
		}
	}()
	for text := range c.typed {
		turn, stop := signal.NotifyContext(ctx, os.Interrupt)
		res, err := view.Prompt(turn, c.sessions.Of(session.ID()), session, acp.TextBlock(text))
		if stop(); err != nil { // the agent may have died: the next turn is with another
			c.print("error: %v", err)
		} else {
			c.print("(%s)", res.StopReason)
		}
	}
	return session.Close(ctx)
}

// update shows what is new: of a message what was added, of anything else all.
func (c *client) update(ctx context.Context, s *acp.ClientSession, n *acp.SessionNotification) error {
	defer c.draw(c.sessions.Of(s.ID()))
	return c.sessions.Update(ctx, s, n)
}

func (c *client) draw(state *view.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := state.Snapshot()
	for item := range now.Changed(c.drawn) {
		if added, ok := item.Added(c.drawn); ok && item.Index == c.last {
			fmt.Print(view.Printable(added))
		} else {
			fmt.Print("\n", view.Printable(item.String()))
		}
		c.last = item.Index
	}
	c.drawn = now
}

func (c *client) print(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Print("\n", view.PrintableLine(fmt.Sprintf(format, args...)))
}

// ask has the user choose, after the whole of the tool call was drawn.
func (c *client) ask(ctx context.Context, s *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
	c.asking.Lock()
	defer c.asking.Unlock()
	c.draw(c.sessions.Of(s.ID()))
	for i, option := range req.Options {
		c.print("%d: %s", i+1, option.Name)
	}
	n := 0
	for n < 1 || n > len(req.Options) {
		select {
		case <-ctx.Done(): // the turn was cancelled
			return nil, context.Cause(ctx)
		case text, ok := <-c.typed:
			if n, _ = strconv.Atoi(text); !ok {
				return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
			}
		}
	}
	return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(req.Options[n-1].OptionID)}, nil
}
