package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/acpgo/sdk/internal/test/attack/hostile"
)

func terminals() map[string]attack {
	return map[string]attack{
		"fork-bomb":      {run: forkBomb},
		"setsid":         {run: moveOut},
		"endless-output": {run: endlessOutput},
		"close-session":  {run: func(*agent, *session) error { return nil }},
	}
}

func terminalID(m *hostile.Message) (string, error) {
	if m.Error != nil {
		return "", fmt.Errorf("no terminal: %s", m)
	}
	var r struct {
		TerminalID string `json:"terminalId"`
	}
	return r.TerminalID, json.Unmarshal(m.Result, &r)
}

// outputOf waits for the command whose creation was answered, and returns its output.
func (a *agent) outputOf(s *session, created *hostile.Message) (string, error) {
	id, err := terminalID(created)
	if err != nil {
		return "", err
	}
	if _, err := a.Call("terminal/wait_for_exit", object("sessionId", s.id, "terminalId", id), hostile.Patience); err != nil {
		return "", err
	}
	m, err := a.Call("terminal/output", object("sessionId", s.id, "terminalId", id), hostile.Patience)
	if err != nil {
		return "", err
	}
	var r struct {
		Output string `json:"output"`
	}
	return r.Output, json.Unmarshal(m.Result, &r)
}

// bomb starts processes that do not want to end, each of which starts some more. Their number is bounded, because
// the machine is somebody's.
const bomb = `trap "" TERM HUP INT; for i in 1 2 3 4 5; do (trap "" TERM HUP INT; sleep 1000 & sleep 1000) & done; wait`

// forkBomb creates as many terminals as it gets, and leaves them all.
func forkBomb(a *agent, s *session) error {
	var answers []<-chan *hostile.Message
	for range a.size(40, 400) {
		_, answer, err := a.Go("terminal/create", `{"sessionId":`+hostile.Quote(s.id)+`,"command":"sh","args":["-c",`+hostile.Quote(bomb)+`]}`)
		if err != nil {
			return err
		}
		answers = append(answers, answer)
	}
	return a.collect(answers, hostile.Patience)
}

// moveOut starts a process that leaves the group that is ended with its terminal.
func moveOut(a *agent, s *session) error {
	m, err := a.Call("terminal/create", `{"sessionId":`+hostile.Quote(s.id)+`,"command":"sh","args":["-c","setsid sleep 1000 & sleep 0.2"]}`, hostile.Patience)
	if err != nil {
		return err
	}
	_, err = a.outputOf(s, m)
	return err
}

// endlessOutput has commands write as fast as they can, and asks for the output again and again.
func endlessOutput(a *agent, s *session) error {
	var ids []string
	for range a.size(8, 60) {
		m, err := a.Call("terminal/create", `{"sessionId":`+hostile.Quote(s.id)+
			`,"command":"sh","args":["-c","trap \"\" TERM; while :; do head -c 1000000 /dev/zero | tr '\\000' '\\033'; done"],"outputByteLimit":18446744073709551615}`, hostile.Patience)
		if err != nil {
			return err
		}
		id, err := terminalID(m)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	for end := time.Now().Add(time.Duration(a.size(1, 20)) * time.Second); time.Now().Before(end); {
		for _, id := range ids {
			if _, err := a.Call("terminal/output", object("sessionId", s.id, "terminalId", id), hostile.Patience); err != nil {
				return err
			}
		}
	}
	for _, id := range ids {
		m, err := a.Call("terminal/release", object("sessionId", s.id, "terminalId", id), hostile.Patience)
		if err != nil {
			return err
		}
		if m.Error != nil {
			return fmt.Errorf("releasing a terminal: %s", m)
		}
	}
	return nil
}
