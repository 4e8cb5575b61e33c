package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/cmd/acp/internal/draw"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
)

// allow answers for --allow: it rejects a request for which a rule would ask the user, or which a rule may reject.
func allow(_ context.Context, q *talk.Question) (acp.PermissionOptionID, error) {
	for _, v := range q.Decision.Verdicts {
		if v.Matches && v.Rule.Effect != policy.Allow {
			return q.Option(acp.PermissionOptionKindRejectOnce, acp.PermissionOptionKindRejectAlways), nil
		}
	}
	return q.Option(acp.PermissionOptionKindAllowOnce, acp.PermissionOptionKindAllowAlways), nil
}

// terminal is the user's terminal, on which one question is asked at a time.
type terminal struct {
	file *os.File

	mu    sync.Mutex
	lines chan typed // what the user types; closed at the end
	once  sync.Once
}

// typed is a line, and when it was typed.
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
				line, err := readLine(t.file)
				if err != nil {
					return
				}
				t.lines <- typed{line, time.Now()}
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
	about := q.Permission()
	drawn := about.Draw(draw.NoColor(), draw.DiffAuto, nil, width)
	var b strings.Builder
	for _, line := range drawn.Lines() {
		b.WriteString(line + "\n")
	}
	for i, option := range q.Options {
		text, _ := draw.OptionText(option)
		fmt.Fprintf(&b, "%d: %s\n", i+1, text)
	}
	s.endLine()
	discardInput(t.file)
	asked := time.Now()
	for text := b.String() + "Which? "; ; {
		s.x.out.write(true, []byte(text))
		select {
		case line, ok := <-t.lines:
			if !ok {
				return "", errNoAnswer
			}
			if line.at.Before(asked) { // typed before the question was shown
				text = ""
				continue
			}
			text = fmt.Sprintf("1 to %d? ", len(q.Options))
			if n, err := strconv.Atoi(strings.TrimSpace(line.text)); err == nil && n >= 1 && n <= len(q.Options) {
				return q.Options[n-1].OptionID, nil
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}
