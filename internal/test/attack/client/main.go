// Command client is a hostile client. The driver, package attack, connects its output to the agent's input and its
// input to the agent's output. It carries out the attack that -case names, and then has an ordinary turn.
//
//	client -case NAME [-full] [-report FILE] [-cwd DIR]
//	client -list
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/acpgo/sdk/internal/test/attack/hostile"
)

// An attack is what the client does.
type attack struct {
	run   func(c *client) error
	bare  bool // there is no initialize and no session before it
	fatal bool // the connection is not expected to live
}

type client struct {
	*hostile.Conn
	*hostile.Report
	full    bool
	cwd     string // of sessions
	state   string // the directory in which the agent keeps its state, or ""
	answer  string
	session string
	// initialized says that the attack has initialized the connection.
	initialized bool

	mu    sync.Mutex
	said  strings.Builder // the end of what the agent said, in the session
	serve func(*hostile.Message)
}

func main() {
	c := &client{}
	flag.BoolVar(&c.full, "full", false, "attack in full")
	flag.StringVar(&c.cwd, "cwd", os.TempDir(), "the directory of the sessions")
	flag.StringVar(&c.state, "state", "", "the directory of the agent's state")
	flag.StringVar(&c.answer, "said", "You said: again", "what the agent says first in an ordinary turn")
	a, report := hostile.Flags(attacks())
	c.Report = report
	c.Conn = hostile.New(os.Stdout)
	reading := make(chan error, 1)
	go func() { reading <- c.Run(os.Stdin, c.handle) }()
	if err := c.play(a); err != nil {
		c.Problem("%v", err)
	}
	if err := c.Ran(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Stdout.Close()
	if a.fatal {
		return // what the agent still says nobody reads
	}
	if err := <-reading; err != nil {
		c.Problem("reading: %v", err)
		if err := c.Write(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}

// play makes the attack, and shows that the agent still works.
func (c *client) play(a attack) error {
	if !a.bare {
		if err := c.begin(); err != nil {
			return err
		}
	}
	if err := a.run(c); err != nil {
		return err
	}
	if a.fatal {
		return nil
	}
	if a.bare {
		if err := c.begin(); err != nil {
			return fmt.Errorf("after the attack: %w", err)
		}
	}
	return c.ordinary()
}

// size is how much of an attack is made.
func (c *client) size(small, full int) int {
	if c.full {
		return full
	}
	return small
}

const initialize = `{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false}}`

// begin initializes the connection and opens a session, unless the attack has done so.
func (c *client) begin() (err error) {
	if !c.initialized {
		m, err := c.Call("initialize", initialize, hostile.Patience)
		if err != nil {
			return fmt.Errorf("initialize: %w", err)
		}
		if m.Error != nil {
			return fmt.Errorf("initialize: %s", m)
		}
	}
	if c.session == "" {
		c.session, err = c.open()
	}
	return err
}

// open opens a session.
func (c *client) open() (string, error) {
	m, err := c.Call("session/new", c.newSession(), hostile.Patience)
	if err != nil {
		return "", fmt.Errorf("session/new: %w", err)
	}
	return sessionID(m)
}

func (c *client) newSession() string { return `{"cwd":` + hostile.Quote(c.cwd) + `,"mcpServers":[]}` }

func sessionID(m *hostile.Message) (string, error) {
	if m.Error != nil {
		return "", fmt.Errorf("no session: %s", m)
	}
	var r struct {
		SessionID string `json:"sessionId"`
	}
	err := json.Unmarshal(m.Result, &r)
	return r.SessionID, err
}

// prompt is the parameters of a prompt with some text.
func prompt(session, text string) string {
	return `{"sessionId":` + hostile.Quote(session) + `,"prompt":[{"type":"text","text":` + hostile.Quote(text) + `}]}`
}

// handle handles what the agent sends, but answers.
func (c *client) handle(m *hostile.Message) {
	c.mu.Lock()
	serve := c.serve
	c.mu.Unlock()
	if serve != nil {
		serve(m)
		return
	}
	var err error
	switch {
	case m.Method == "session/update" && !m.Long:
		var p struct {
			SessionID string `json:"sessionId"`
			Update    struct {
				Kind    string `json:"sessionUpdate"`
				Content struct {
					Text string `json:"text"`
				} `json:"content"`
			} `json:"update"`
		}
		if json.Unmarshal(m.Params, &p) == nil && p.Update.Kind == "agent_message_chunk" && p.SessionID == c.session {
			c.mu.Lock()
			if c.said.Len() < 1<<16 {
				c.said.WriteString(p.Update.Content.Text)
			}
			c.mu.Unlock()
		}
	case m.Method == "session/request_permission":
		err = c.Result(m.ID, `{"outcome":{"outcome":"selected","optionId":"reject"}}`)
	case m.Method != "" && len(m.ID) > 0:
		err = c.Refuse(m.ID, -32601, "Method not found")
	}
	if err != nil {
		c.Problem("answering %s: %v", m.Method, err)
	}
}

// ordinary has a turn as without an attack.
func (c *client) ordinary() error {
	c.mu.Lock()
	c.said.Reset()
	c.serve = nil
	c.mu.Unlock()
	m, err := c.Call("session/prompt", prompt(c.session, "again"), hostile.Patience)
	if err != nil {
		return fmt.Errorf("the turn after the attack: %w", err)
	}
	if m.Error != nil || !strings.Contains(string(m.Result), `"end_turn"`) {
		return fmt.Errorf("the turn after the attack ends with: %s", m)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if said := c.said.String(); !strings.HasPrefix(said, c.answer) {
		return fmt.Errorf("in the turn after the attack the agent said %.200q", said)
	}
	return nil
}

// answered waits for all answers, and requires that at least one is not an error.
func (c *client) answered(answers []<-chan *hostile.Message) error {
	fine, refused := 0, map[string]int{}
	for i, answer := range answers {
		m, err := hostile.Await(answer, 4*hostile.Patience)
		if err != nil {
			return fmt.Errorf("answer %d of %d: %w", i+1, len(answers), err)
		}
		if m.Error == nil {
			fine++
		} else {
			refused[fmt.Sprintf("%d %.60s", m.Error.Code, m.Error.Message)]++
		}
	}
	c.Note("%d of %d answered", fine, len(answers))
	for why, n := range refused {
		c.Note("%d refused: %s", n, why)
	}
	if fine == 0 {
		return errors.New("all requests were refused")
	}
	return nil
}
