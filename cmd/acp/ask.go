package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/term"

	"github.com/acpgo/sdk/cmd/acp/internal/agents"
	"github.com/acpgo/sdk/cmd/acp/internal/config"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/internal/await"
	"github.com/acpgo/sdk/internal/plain"
)

// isTerminal reports whether a file of the program is a terminal.
func isTerminal(file any) bool {
	f, ok := file.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// resolver returns a resolver for a loaded configuration. Before it installs an agent, it asks on the terminal, if
// there is one.
func (p *program) resolver(cfg *config.Config) *agents.Resolver {
	r := agents.New(cfg)
	r.Ask = p.asker()
	r.Registry.HTTP = p.downloading()
	r.Say = func(line string) { fmt.Fprintln(p.stderr, plain.Line(line)) }
	return r
}

// oneAgent returns the agent with a name or at a URL, or else of a command.
func oneAgent(ctx context.Context, r *agents.Resolver, name string, command []string) (*agents.Agent, error) {
	if name != "" {
		return r.Resolve(ctx, name)
	}
	return r.Command(command)
}

// asker returns a function that asks a yes-or-no question on the terminal; nil if there is no terminal.
func (p *program) asker() func(context.Context, string) (bool, error) {
	if !isTerminal(p.stdin) || !isTerminal(p.stderr) {
		return nil
	}
	return p.ask
}

// ask asks on standard error. Only y or yes counts as yes.
func (p *program) ask(ctx context.Context, question string) (bool, error) {
	answer, err := p.answer(ctx, question+" [y/N] ")
	return strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes"), err
}

// askName asks on standard error for one of names, which the user may give by its number or in full.
func (p *program) askName(ctx context.Context, names []string, question string) (string, error) {
	for i, name := range names {
		fmt.Fprintf(p.stderr, "%3d  %s\n", i+1, plain.Line(name))
	}
	answer, err := p.answer(ctx, question)
	if err != nil {
		return "", err
	}
	if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(names) {
		return names[n-1], nil
	}
	if slices.Contains(names, answer) {
		return answer, nil
	}
	return "", usagef("expected a number from 1 to %d", len(names))
}

// answer prints a question on standard error and reads a line. At the end of the input the line is "".
func (p *program) answer(ctx context.Context, question string) (string, error) {
	fmt.Fprint(p.stderr, plain.Text(question))
	text, err := await.Do(ctx, 0, func() (string, error) { return input.ReadLine(p.stdin, maxAnswer) })
	if err != nil {
		fmt.Fprintln(p.stderr) // the cursor is still after the question
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return strings.TrimSpace(text), err
}

// maxAnswer is the maximum length of an answer in bytes.
const maxAnswer = 4096
