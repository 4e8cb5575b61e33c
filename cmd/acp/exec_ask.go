package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"

	"golang.org/x/term"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/draw"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
)

// allow answers for --allow: with the only option that allows once, or else with one that rejects once; "" if there is
// none. It rejects a request about which a rule wants the user asked, or which a rule may reject. why says which
// questions it rejects because only a person can answer them.
func allow(d *policy.Decision, options []acp.PermissionOption) (id acp.PermissionOptionID, why string) {
	once, n := acp.OptionOfKind(options, acp.PermissionOptionKindAllowOnce)
	matches := func(v policy.Verdict) bool { return v.Matches && v.Rule.Effect != policy.Allow }
	switch {
	case slices.ContainsFunc(d.Verdicts, matches):
	case n == 1:
		return once.OptionID, ""
	case n == 0:
		why = "no option allows it only once"
	default:
		why = "several options allow it, and only a person can choose"
	}
	if reject, n := acp.OptionOfKind(options, acp.PermissionOptionKindRejectOnce); n > 0 {
		id = reject.OptionID
	}
	return id, why
}

// terminal is the user's terminal, on which one question is asked at a time.
type terminal struct {
	*os.File
	mu      sync.Mutex
	console *view.Console
}

// askable opens the terminal, if a user can see it; nil if no user is to be asked.
func (x *execution) askable() *terminal {
	if cfg := x.f.cfg; cfg.Allow || cfg.Deny || !isTerminal(x.p.stderr) {
		return nil
	}
	file, err := os.Open(ttyName)
	if err != nil {
		return nil // there is no terminal
	}
	t := &terminal{File: file, console: view.NewConsole(file, asking{x})}
	t.console.DrawQuestion = func(q *view.Question) ([]string, int, []string) {
		width := 80
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			width = columns
		}
		text := draw.Permission(q, draw.NoColor(), nil, width)
		return text.Head, text.Facts, text.Body
	}
	return t
}

// asking writes questions to standard error.
type asking struct{ x *execution }

func (a asking) Write(p []byte) (int, error) {
	a.x.out.ask(string(p), a.x.terminal)
	return len(p), nil
}

// errNoAnswer says that the terminal is gone.
var errNoAnswer = errors.New("no answer on the terminal")

// ask shows everything that is known about a tool call, and asks the user to choose.
func (t *terminal) ask(ctx context.Context, x *execution, q *talk.Question) (acp.PermissionOptionID, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x.endLine()
	defer x.out.answered()
	option, err := t.console.AskPermission(ctx, "", q.View(""))
	switch {
	case errors.Is(err, io.EOF):
		return "", errNoAnswer
	case err != nil:
		return "", err
	}
	return option.OptionID, nil
}
