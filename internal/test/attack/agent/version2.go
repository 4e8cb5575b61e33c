package main

import (
	"fmt"
	"strings"

	"github.com/acpgo/sdk/internal/test/attack/hostile"
)

func version2() map[string]attack {
	return map[string]attack{
		"v2-ids":        {run: longIDs, initialize: initializeV2, ordinary: ordinaryV2, v2: true},
		"v2-sessions":   {run: workingSessions, initialize: initializeV2, ordinary: ordinaryV2, v2: true},
		"many-sessions": {run: manySessions},
	}
}

func initializeV2(a *agent, m *hostile.Message) error {
	return a.Result(m.ID, `{"protocolVersion":2,"info":{"name":"hostile","version":"1"},"capabilities":{"session":{}}}`)
}

func chunkV2(text string) string {
	return `{"sessionUpdate":"agent_message_chunk","messageId":"said","content":{"type":"text","text":` + hostile.Quote(text) + `}}`
}

func ordinaryV2(a *agent, s *session) error { return a.update(s, chunkV2("still here")) }

// endV2 answers a prompt in version 2, and reports that the session is idle.
func (a *agent) endV2(m *hostile.Message, s *session) error {
	if err := a.update(s, `{"sessionUpdate":"user_message","messageId":"prompt","content":[]}`); err != nil {
		return err
	}
	if err := a.Result(m.ID, `{"messageId":"prompt"}`); err != nil {
		return err
	}
	if err := a.update(s, `{"sessionUpdate":"state_update","state":"running"}`); err != nil {
		return err
	}
	return a.update(s, `{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"}`)
}

// longIDs sends messages and states with very long ids, which a client may want to remember.
func longIDs(a *agent, s *session) error {
	text := strings.Repeat("i", a.size(8, 32)*mib)
	for i := range a.size(32, 100) {
		if err := a.update(s, fmt.Sprintf(`{"sessionUpdate":"user_message","messageId":"%d%s","content":[]}`, i, text)); err != nil {
			return err
		}
		if err := a.update(&session{id: fmt.Sprint(i, text)}, `{"sessionUpdate":"state_update","state":"running"}`); err != nil {
			return err
		}
	}
	return a.update(s, `{"sessionUpdate":"state_update","state":"running"}`)
}

// workingSessions reports that very many sessions work.
func workingSessions(a *agent, s *session) error {
	for i := range a.size(100_000, 1_000_000) {
		if err := a.update(&session{id: fmt.Sprint("w-", i)}, `{"sessionUpdate":"state_update","state":"running"}`); err != nil {
			return err
		}
	}
	return a.update(s, `{"sessionUpdate":"state_update","state":"running"}`)
}

// manySessions sends updates for several sessions at once, as if the client had opened them.
func manySessions(a *agent, s *session) error {
	for i := range a.size(60_000, 500_000) {
		other := &session{id: fmt.Sprint("m-", i%64)}
		err := a.update(other, fmt.Sprintf(`{"sessionUpdate":"tool_call_update","toolCallId":"call-%d","status":"completed","content":[`+
			`{"type":"content","content":{"type":"text","text":"output %d\n"}}]}`, i%1000, i))
		if err != nil {
			return err
		}
	}
	return nil
}
