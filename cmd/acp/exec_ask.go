package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/cmd/acp/internal/draw"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/internal/tty"
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
	file *os.File

	mu    sync.Mutex
	lines chan typed // what the user types; closed at the end
	once  sync.Once
}

// typed is a line, and when its first character arrived.
type typed struct {
	text string
	at   time.Time
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
	return &terminal{file: file, lines: make(chan typed, 100)}
}

// close closes the terminal. The goroutine that reads it ends with the next line, or with the program.
func (t *terminal) close() { _ = t.file.Close() }

// read reads lines, beginning with the first question.
func (t *terminal) read() {
	t.once.Do(func() {
		go func() {
			defer close(t.lines)
			for {
				first := make([]byte, 1)
				n, err := t.file.Read(first)
				at, line := time.Now(), ""
				if err == nil {
					line, err = readLine(io.MultiReader(bytes.NewReader(first[:n]), t.file))
				}
				if err != nil {
					return
				}
				t.lines <- typed{line, at}
			}
		}()
	})
}

// errNoAnswer says that the terminal is gone.
var errNoAnswer = errors.New("no answer on the terminal")

// ask shows everything that is known about a tool call, and asks the user to choose.
func (t *terminal) ask(ctx context.Context, s *section, q *talk.Question) (acp.PermissionOptionID, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	t.read()
	width := 80
	if columns, _, err := term.GetSize(int(t.file.Fd())); err == nil && columns > 0 {
		width = columns
	}
	question := q.View("")
	dialog := &view.LineDialog{Question: question, Option: "%d: %s", Prompt: "Which? ", Again: "1 to %d? ",
		Draw: func() ([]string, int, []string) {
			text := draw.Permission(question, draw.NoColor(), draw.DiffAuto, nil, width)
			return text.Head, text.Facts, text.Body
		}}
	s.endLine()
	defer s.x.out.answered()
	for lines := dialog.Show(time.Now()); ; {
		s.x.out.ask(strings.Join(append(lines, dialog.Asks()), "\n"), s.x.terminal)
		if len(lines) > 0 {
			tty.Discard(t.file)
		}
		select {
		case line, ok := <-t.lines:
			if !ok {
				return "", errNoAnswer
			}
			var option *acp.PermissionOption
			if option, lines = dialog.Answer(line.text, line.at, time.Now(), s.latest(q.Call.ToolCallID)); option != nil {
				return option.OptionID, nil
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// latest returns what is known of a tool call, or nil.
func (s *section) latest(id acp.ToolCallID) *acp.ToolCall {
	s.mu.Lock()
	state := s.state
	s.mu.Unlock()
	if state == nil {
		return nil
	}
	call, ok := state.ToolCall(id)
	if !ok {
		return nil
	}
	return &call
}
