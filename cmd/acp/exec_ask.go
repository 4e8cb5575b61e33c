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

// allow is the answer of --allow: what a rule would have the user asked about, or may refuse, is rejected.
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
	lines chan typed // what is typed; closed at the end
	once  sync.Once
}

// typed is a line, and when it was typed.
type typed struct {
	text string
	at   time.Time
}

// askable opens the terminal if somebody sees it; nil if nobody is to be asked.
func (x *execution) askable() *terminal {
	if cfg := x.f.cfg; cfg.Allow || cfg.Deny || !isTerminal(x.p.stderr) {
		return nil
	}
	file, err := os.Open(ttyName)
	if err != nil {
		return nil // there is none
	}
	return &terminal{file: file, lines: make(chan typed, 100)}
}

// close closes the terminal. The goroutine that reads it ends with the program, if nothing is typed before.
func (t *terminal) close() { _ = t.file.Close() }

// read reads lines from when the first question is asked.
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

// ask shows everything that is known of a tool call, and has the user choose.
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
			if line.at.Before(asked) { // it is not an answer to what was not there
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
