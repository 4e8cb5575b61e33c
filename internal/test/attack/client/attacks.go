package main

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/acpgo/sdk/internal/test/attack/hostile"
)

const mib = 1 << 20

// attacks maps the name of each attack, as its flag has it, to its code.
func attacks() map[string]attack {
	all := map[string]attack{
		"none":               {run: func(*client) error { return nil }},
		"bad-lines":          {run: func(c *client) error { return c.BadLines(c.size(1, 20)) }},
		"garbage":            {run: func(c *client) error { return c.Garbage(c.size(4, 200)) }},
		"answers-to-nothing": {run: func(c *client) error { return c.AnswersToNothing(c.size(50_000, 1_000_000)) }},
		"many-ids":           {run: func(c *client) error { return c.ManyIDs(c.size(50_000, 500_000), c.size(30, 500)) }},
		"duplicate-ids":      {run: func(c *client) error { return c.DuplicateIDs(c.size(500, 4000)) }},
		"deep":               {run: deep},
		"long-lines":         {run: longLines},
		"cancellations":      {run: cancellations},
		"slow":               {run: slow, bare: true},
		"too-early":          {run: tooEarly, bare: true},
		"initialize-again":   {run: initializeAgain},
		"big-initialize":     {run: bigInitialize, bare: true},
		"prompt-flood":       {run: promptFlood},
		"big-prompts":        {run: bigPrompts},
		"session-flood":      {run: sessionFlood},
		"wide-prompt":        {run: widePrompt},
		"unread":             {run: unread, fatal: true},
		"vanishes":           {run: vanishes, fatal: true},
		"half-closed":        {run: halfClosed, fatal: true},
		"no-newline":         {run: noNewline, bare: true, fatal: true},
	}
	maps.Copy(all, exampleAttacks())
	return all
}

func deep(c *client) error {
	id := hostile.Quote(c.session)
	return c.Deep(c.size(200_000, 20_000_000), func(value string) []string {
		return []string{
			`{"jsonrpc":"2.0","id":"d1","method":"session/prompt","params":{"sessionId":` + id + `,"prompt":` + value + `}}`,
			`{"jsonrpc":"2.0","id":"d2","method":"session/set_mode","params":{"sessionId":` + id + `,"modeId":"x","_meta":{"m":` + value + `}}}`,
			`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":` + value + `}}`,
		}
	})
}

// longLines sends lines that are longer than a message may be, and lines that are just as long as they may be.
func longLines(c *client) error {
	if err := c.LongLine(c.size(100, 4096)); err != nil {
		return err
	}
	for range c.size(2, 40) {
		if err := c.Notify("session/cancel", `{"sessionId":"none","_meta":{"m":"`+strings.Repeat("m", 63*mib)+`"}}`); err != nil {
			return err
		}
	}
	return c.LongLine(65)
}

// cancellations cancels what there is not, and each of many turns several times as soon as it begins.
func cancellations(c *client) error {
	if err := c.Cancellations(c.size(50_000, 1_000_000)); err != nil {
		return err
	}
	for i := range c.size(100, 2000) {
		id, answer, err := c.Go("session/prompt", prompt(c.session, "hello"))
		if err != nil {
			return err
		}
		for range i % 4 {
			if err := c.Notify("session/cancel", `{"sessionId":`+hostile.Quote(c.session)+`}`); err != nil {
				return err
			}
			if err := c.Notify("$/cancel_request", `{"requestId":`+id+`}`); err != nil {
				return err
			}
		}
		if _, err := hostile.Await(answer, hostile.Patience); err != nil {
			return fmt.Errorf("turn %d, which was cancelled: %w", i, err)
		}
	}
	return nil
}

// slow begins byte by byte.
func slow(c *client) error {
	m, err := c.TrickleCall("initialize", initialize, time.Duration(c.size(100, 5000))*time.Microsecond)
	if err != nil {
		return err
	}
	if m.Error != nil {
		return fmt.Errorf("initialize that comes slowly: %s", m)
	}
	if m, err = c.TrickleCall("session/new", c.newSession(), time.Duration(c.size(100, 5000))*time.Microsecond); err != nil {
		return err
	}
	if c.session, err = sessionID(m); err != nil {
		return err
	}
	c.initialized = true
	return nil
}

// tooEarly asks for much before initialize. Everything must be refused.
func tooEarly(c *client) error {
	for _, method := range []string{"session/new", "session/load", "session/prompt", "session/list", "authenticate", "_attack/early"} {
		m, err := c.Call(method, `{"sessionId":"x","cwd":"/","mcpServers":[],"prompt":[],"methodId":"x"}`, hostile.Patience)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		if m.Error == nil {
			c.Problem("%s before initialize succeeds", method)
		}
	}
	var lines strings.Builder
	for range c.size(20_000, 200_000) {
		lines.WriteString(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"x"}}` + "\n")
	}
	return c.Raw(lines.String())
}

// initializeAgain does what may be done once again and again.
func initializeAgain(c *client) error {
	for range c.size(100, 10_000) {
		m, err := c.Call("initialize", initialize, hostile.Patience)
		if err != nil {
			return err
		}
		if m.Error == nil {
			c.Problem("a second initialize succeeds")
			return nil
		}
	}
	return nil
}

// bigInitialize introduces itself at very great length. It may be refused, but the agent must continue.
func bigInitialize(c *client) error {
	meta := strings.Repeat(`{"a":[1,2,3]},`, c.size(16, 60)*mib/14)
	m, err := c.Call("initialize", `{"protocolVersion":1,"_meta":{"m":[`+strings.TrimSuffix(meta, ",")+`]}}`, hostile.Patience)
	if err != nil {
		return err
	}
	if c.initialized = m.Error == nil; !c.initialized {
		c.Note("refused: %s", m)
	}
	return nil
}

// promptFlood sends very many prompts for one session at once.
func promptFlood(c *client) error {
	var answers []<-chan *hostile.Message
	text := strings.Repeat("p", 10_000)
	for range c.size(5000, 50_000) {
		_, answer, err := c.Go("session/prompt", prompt(c.session, text))
		if err != nil {
			return err
		}
		answers = append(answers, answer)
	}
	return c.answered(answers)
}

// bigPrompts has many turns at once, each with a very long prompt.
func bigPrompts(c *client) error {
	resource := `{"type":"resource","resource":{"uri":"file:///x","text":"` + strings.Repeat("t", c.size(20, 60)*mib) + `"}}`
	var answers []<-chan *hostile.Message
	for i := range c.size(15, 120) {
		id, err := c.open()
		if err != nil {
			return err
		}
		prompt := `{"type":"text","text":"x"}`
		if i > 0 { // the first one has no reason to be refused
			prompt += "," + resource
		}
		_, answer, err := c.Go("session/prompt", `{"sessionId":`+hostile.Quote(id)+`,"prompt":[`+prompt+`]}`)
		if err != nil {
			return err
		}
		answers = append(answers, answer)
	}
	return c.answered(answers)
}

// widePrompt has a prompt of very many small things, of which each takes more memory than bytes.
func widePrompt(c *client) error {
	const block = `{"type":"text","text":""},`
	for range c.size(1, 5) {
		m, err := c.Call("session/prompt", `{"sessionId":`+hostile.Quote(c.session)+`,"prompt":[`+
			strings.TrimSuffix(strings.Repeat(block, c.size(8, 60)*mib/len(block)), ",")+`]}`, 4*hostile.Patience)
		if err != nil {
			return err
		}
		c.Note("%s", m)
	}
	return nil
}

// sessionFlood opens very many sessions.
func sessionFlood(c *client) error {
	params := c.newSession()
	left := c.size(1000, 20_000)
	for left > 0 {
		n := min(left, 500)
		left -= n
		var answers []<-chan *hostile.Message
		for range n {
			_, answer, err := c.Go("session/new", params)
			if err != nil {
				return err
			}
			answers = append(answers, answer)
		}
		for i, answer := range answers {
			if _, err := hostile.Await(answer, hostile.Patience); err != nil {
				return fmt.Errorf("session %d: %w", i, err)
			}
		}
	}
	return nil
}

// unread does not read what the agent says, of which it asks for much.
func unread(c *client) error {
	c.Pause()
	if _, _, err := c.Go("session/prompt", prompt(c.session, "flood")); err != nil {
		return err
	}
	var lines strings.Builder
	for i := range c.size(5000, 100_000) {
		fmt.Fprintf(&lines, `{"jsonrpc":"2.0","id":"unread-%d","method":"_attack/nothing","params":{}}`+"\n", i)
	}
	written := make(chan error, 1)
	go func() { written <- c.Raw(lines.String()) }()
	select {
	case err := <-written:
		if err != nil {
			return err
		}
	case <-time.After(5 * time.Second): // the agent reads no more, which is its right
	}
	time.Sleep(time.Duration(c.size(1, 10)) * time.Second)
	return nil
}

// vanishes ends in the middle of a turn.
func vanishes(c *client) error {
	for range 3 {
		if _, _, err := c.Go("session/prompt", prompt(c.session, "Write a very long story")); err != nil {
			return err
		}
	}
	return c.Raw(`{"jsonrpc":"2.0","id":99,"method":"session/`)
}

// halfClosed ends its output in the middle of a turn, and reads on.
func halfClosed(c *client) error {
	if _, _, err := c.Go("session/prompt", prompt(c.session, "Write a very long story")); err != nil {
		return err
	}
	if err := c.Ran(); err != nil {
		return err
	}
	os.Stdout.Close()
	if !hostile.Within(c.Done(), hostile.Patience) {
		return fmt.Errorf("the agent does not end although its input has")
	}
	return nil
}

// noNewline sends a line that has no end.
func noNewline(c *client) error {
	piece := strings.Repeat("n", mib)
	for range c.size(200, 4000) {
		if err := c.Raw(piece); err != nil {
			return err
		}
	}
	return nil
}
