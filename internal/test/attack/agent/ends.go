package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/acpgo/sdk/internal/test/attack/hostile"
)

func ends() map[string]attack {
	return map[string]attack{
		"unread":          {run: unread, fatal: true},
		"stubborn":        {run: stubborn, fatal: true},
		"half-closed-out": {run: halfClosedOut, fatal: true},
		"half-closed-in":  {run: halfClosedIn, prompted: closeInput, fatal: true},
		"dies":            {run: dies, fatal: true},
		"no-newline":      {run: noNewline, fatal: true},
		"error-text":      {run: errorText, fatal: true},
		"answer-id":       {initialize: answerID, run: func(*agent, *session) error { return nil }},
		"answer-form":     {initialize: answerForm, run: func(*agent, *session) error { return nil }},
		"no-answer":       {run: nothing, fatal: true},
		"chatter":         {run: chatter, fatal: true},
	}
}

// nothing does nothing: the prompt is not answered either.

func nothing(a *agent, s *session) error { return errGone }

// forever is longer than any client waits.
const forever = time.Hour

// unread stops reading and asks for much, so that answers wait in the pipe.
func unread(a *agent, s *session) error {
	a.Pause()
	if err := a.Ran(); err != nil {
		return err
	}
	var lines strings.Builder
	for i := range a.size(5000, 100_000) {
		fmt.Fprintf(&lines, `{"jsonrpc":"2.0","id":"unread-%d","method":"_attack/nothing","params":{}}`+"\n", i)
	}
	if err := a.Raw(lines.String()); err != nil {
		return err
	}
	time.Sleep(forever)
	return errGone
}

// stubborn does not want to end, and has children that do not either.
func stubborn(a *agent, s *session) error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := exec.Command("sh", "-c", bomb).Start(); err != nil {
		return err
	}
	if err := a.Ran(); err != nil {
		return err
	}
	time.Sleep(forever)
	return errGone
}

// halfClosedOut ends the agent's output; the agent continues reading.
func halfClosedOut(a *agent, s *session) error {
	if err := a.Ran(); err != nil {
		return err
	}
	os.Stdout.Close()
	time.Sleep(forever)
	return errGone
}

// closeInput ends the agent's input, by the goroutine that reads it.
func closeInput(*agent) { os.Stdin.Close() }

// halfClosedIn continues sending when the input has ended, and lives.
func halfClosedIn(a *agent, s *session) error {
	if err := a.Ran(); err != nil {
		return err
	}
	for {
		if err := a.update(s, chunk("x")); err != nil {
			return err
		}
		if _, _, err := a.Go("fs/read_text_file", object("sessionId", s.id, "path", "/x")); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// dies ends in the middle of a line, with much before it.
func dies(a *agent, s *session) error {
	if err := a.Ran(); err != nil {
		return err
	}
	for range 100 {
		if err := a.update(s, chunk(strings.Repeat("d", 10_000))); err != nil {
			return err
		}
	}
	if err := a.Raw(`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_`); err != nil {
		return err
	}
	os.Exit(3)
	return nil
}

// noNewline sends a line that has no end.
func noNewline(a *agent, s *session) error {
	if err := a.Ran(); err != nil {
		return err
	}
	for {
		if err := a.Raw(strings.Repeat("n", mib)); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// errorText answers the prompt with an error that is made to be shown.
func errorText(a *agent, s *session) error {
	if err := a.Ran(); err != nil {
		return err
	}
	fmt.Fprint(os.Stderr, spoof)
	a.mu.Lock()
	id := a.prompt
	a.mu.Unlock()
	return a.Raw(`{"jsonrpc":"2.0","id":`, string(id), `,"error":{"code":-32603,"message":`, hostile.Quote(spoof), `,"data":{"details":`, hostile.Quote(spoof), "}}}\n")
}

// answerID answers initialize with an id that is nearly the right one.
func answerID(a *agent, m *hostile.Message) error {
	if err := a.Ran(); err != nil {
		return err
	}
	id := string(m.ID) + ".0"
	if strings.HasPrefix(id, `"`) {
		id = hostile.Quote(strings.Trim(string(m.ID), `"`) + " ")
	}
	return a.Raw(`{"jsonrpc":"2.0","id":`, id, `,"result":{"protocolVersion":1}}`, "\n")
}

// answerForm answers initialize with what is not an answer.
func answerForm(a *agent, m *hostile.Message) error {
	if err := a.Ran(); err != nil {
		return err
	}
	for _, rest := range []string{`"result":[]`, `"result":{"protocolVersion":1},"error":{"code":1,"message":"x"}`, `"error":"x"`, `"x":1`} {
		if err := a.Raw(`{"jsonrpc":"2.0","id":`, string(m.ID), `,`, rest, "}\n"); err != nil {
			return err
		}
	}
	return nil
}

// chatter talks for ever and never answers.
func chatter(a *agent, s *session) error {
	if err := a.Ran(); err != nil {
		return err
	}
	for {
		if err := a.update(s, chunk("and on")); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}
