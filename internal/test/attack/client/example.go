package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/acpgo/sdk/internal/test/attack/hostile"
)

func exampleAttacks() map[string]attack {
	return map[string]attack{
		"no-login":    {run: noLogin, bare: true},
		"state-fifo":  {run: stateFIFO},
		"state-names": {run: stateNames},
		"cursors":     {run: cursors},
	}
}

const (
	loginID = "guest"
)

// noLogin uses the agent without having logged in, and after having logged out.
func noLogin(c *client) error {
	if m, err := c.Call("initialize", initialize, hostile.Patience); err != nil || m.Error != nil {
		return fmt.Errorf("initialize: %v, %v", m, err)
	}
	c.initialized = true
	cwd := hostile.Quote(c.cwd)
	try := func(when, session string) error {
		id := hostile.Quote(session)
		for _, request := range []struct{ method, params string }{
			{"session/new", c.newSession()},
			{"session/load", `{"sessionId":` + id + `,"cwd":` + cwd + `,"mcpServers":[]}`},
			{"session/resume", `{"sessionId":` + id + `,"cwd":` + cwd + `,"mcpServers":[]}`},
			{"session/list", `{}`},
			{"session/prompt", prompt(session, "hello")},
			{"session/set_mode", `{"sessionId":` + id + `,"modeId":"auto"}`},
			{"session/set_config_option", `{"sessionId":` + id + `,"configId":"thoughts","value":"hidden"}`},
			{"session/delete", `{"sessionId":` + id + `}`},
		} {
			m, err := c.Call(request.method, request.params, hostile.Patience)
			if err != nil {
				return fmt.Errorf("%s %s: %w", request.method, when, err)
			}
			// A session that is open stays so after a logout.
			if open := when == "after logout" && strings.Contains(request.params, id) && !strings.Contains(request.params, "cwd"); m.Error == nil && !open {
				c.Problem("%s %s succeeds", request.method, when)
			}
		}
		return nil
	}
	if err := try("without login", "sess_ABCDEFGH"); err != nil {
		return err
	}
	login := func() error {
		m, err := c.Call("authenticate", object("methodId", loginID), hostile.Patience)
		if err == nil && m.Error != nil {
			err = fmt.Errorf("authenticate: %s", m)
		}
		return err
	}
	if err := login(); err != nil {
		return err
	}
	session, err := c.open()
	if err != nil {
		return err
	}
	if m, err := c.Call("logout", `{}`, hostile.Patience); err != nil || m.Error != nil {
		return fmt.Errorf("logout: %v, %v", m, err)
	}
	if err := try("after logout", session); err != nil {
		return err
	}
	if err := login(); err != nil {
		return err
	}
	c.session, err = c.open()
	return err
}

// object is a JSON object with one member.
func object(name, value string) string {
	return `{` + hostile.Quote(name) + `:` + hostile.Quote(value) + `}`
}

// stateFile is where kit-agent keeps a session.
func (c *client) stateFile(id string) string {
	return filepath.Join(c.state, "s-"+id+".json")
}

// stateFIFO puts into the agent's state what is not a file.
func stateFIFO(c *client) error {
	const id = "sess_fifofifo"
	if err := fifo(c.stateFile(id)); err != nil {
		return err
	}
	if err := os.Mkdir(c.stateFile("sess_dirdirdir"), 0o700); err != nil {
		return err
	}
	if err := os.Symlink("/dev/zero", c.stateFile("sess_zerozero")); err != nil {
		return err
	}
	cwd := hostile.Quote(c.cwd)
	for _, id := range []string{id, "sess_dirdirdir", "sess_zerozero"} {
		for _, method := range []string{"session/load", "session/resume"} {
			m, err := c.Call(method, `{"sessionId":`+hostile.Quote(id)+`,"cwd":`+cwd+`,"mcpServers":[]}`, hostile.Patience/4)
			if err != nil {
				return fmt.Errorf("%s of %s: %w", method, id, err)
			}
			if m.Error == nil {
				c.Problem("%s of %s succeeds", method, id)
			}
		}
	}
	m, err := c.Call("session/list", `{}`, hostile.Patience/4)
	if err != nil {
		return fmt.Errorf("session/list: %w", err)
	}
	if m.Error != nil {
		c.Problem("one bad file spoils session/list: %s", m)
	}
	return nil
}

// stateNames has a file of a session that names another session, which must not be overwritten by it.
func stateNames(c *client) error {
	victim := c.stateFile(c.session)
	before, err := os.ReadFile(victim)
	if err != nil {
		return err
	}
	const thief = "sess_thiefthief"
	forged := strings.Replace(string(before), `"cwd":`, `"title":"forged","cwd":`, 1)
	if err := os.WriteFile(c.stateFile(thief), []byte(forged), 0o600); err != nil {
		return err
	}
	m, err := c.Call("session/load", `{"sessionId":"`+thief+`","cwd":`+hostile.Quote(os.TempDir())+`,"mcpServers":[]}`, hostile.Patience)
	if err != nil {
		return err
	}
	c.Note("loading it gives: %.100s", m)
	after, err := os.ReadFile(victim)
	if err != nil {
		return err
	}
	if string(after) != string(before) {
		c.Problem("a file of a session that names another session overwrites that one")
	}
	return nil
}

// cursors asks for pages of the list that there are not.
func cursors(c *client) error {
	for _, cursor := range []string{"", "x", strings.Repeat("A", 8*mib), "bnVsbA", "e30", "W10", "eyJ0IjoiIiwiaWQiOiIuLi8uLi8ifQ", "\x00", "eyJ0Ijp7fX0"} {
		m, err := c.Call("session/list", object("cursor", cursor), hostile.Patience)
		if err != nil {
			return fmt.Errorf("the cursor %.20q: %w", cursor, err)
		}
		if m.Size > 1<<16 {
			c.Problem("the cursor %.20q is answered with %d bytes", cursor, m.Size)
		}
	}
	return nil
}
