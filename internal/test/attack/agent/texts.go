package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/acpgo/sdk/internal/test/attack/hostile"
)

// spoof moves the cursor, sets the title, hides text and reverses it, and has lines that look like those of the
// client, to every client that the driver knows. Each of the lines has the word by which the driver finds it.
const spoof = "begin\x1b]0;FAKE\x07\x1b[2J\x1b[1;31m\x9b31m\u009b2J\u202e\u2066\u2028\u200f\a\b\x7f\rproxy: FAKE\r\n" +
	"client → FAKE\nagent → FAKE\nclient: FAKE\nproxy: FAKE\n"

func texts() map[string]attack {
	return map[string]attack{
		"texts": {run: spoofs, initialize: spoofInitialize, newSession: spoofNewSession},
	}
}

// spoofInitialize introduces itself so.
func spoofInitialize(a *agent, m *hostile.Message) error {
	q := hostile.Quote(spoof)
	fmt.Fprint(os.Stderr, spoof)
	return a.Result(m.ID, `{"protocolVersion":1,"agentInfo":{"name":`+q+`,"title":`+q+`,"version":`+q+`},"authMethods":[{"id":`+q+`,"name":`+q+`,"description":`+q+`}]}`)
}

// spoofNewSession has modes.
func spoofNewSession(a *agent, m *hostile.Message, id string) error {
	q := hostile.Quote(spoof)
	return a.Result(m.ID, `{"sessionId":`+hostile.Quote(id)+`,"modes":{"currentModeId":`+q+`,"availableModes":[{"id":`+q+`,"name":`+q+`}]}}`)
}

// spoofs puts the text wherever the protocol has one.
func spoofs(a *agent, s *session) error {
	q, id := hostile.Quote(spoof), hostile.Quote(s.id)
	content := `{"type":"text","text":` + q + `}`
	for _, block := range []string{
		content,
		`{"type":"image","data":"","mimeType":` + q + `}`,
		`{"type":"audio","data":"","mimeType":` + q + `}`,
		`{"type":"resource_link","name":` + q + `,"uri":` + q + `}`,
		`{"type":"resource","resource":{"uri":` + q + `,"text":` + q + `}}`,
		`{"type":"resource","resource":{"uri":` + q + `,"blob":""}}`,
		`{"type":` + q + `}`,
	} {
		for _, kind := range []string{"user_message_chunk", "agent_message_chunk", "agent_thought_chunk"} {
			if err := a.update(s, `{"sessionUpdate":"`+kind+`","content":`+block+`}`); err != nil {
				return err
			}
			if err := a.update(s, `{"sessionUpdate":"`+kind+`","messageId":`+q+`,"content":`+block+`}`); err != nil {
				return err
			}
		}
	}
	contents := `"content":[{"type":"content","content":` + content + `},{"type":"diff","path":` + q + `,"oldText":` + hostile.Quote("old\n"+spoof) +
		`,"newText":` + hostile.Quote(strings.ReplaceAll(spoof, "FAKE", "FAKE FAKE")) + `},{"type":"terminal","terminalId":` + q + `}]`
	for _, update := range []string{
		`{"sessionUpdate":"tool_call","toolCallId":` + q + `,"title":` + q + `,"kind":` + q + `,"status":` + q + `,"locations":[{"path":` + q + `},{"path":` + q + `,"line":1}],` + contents + `}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":` + q + `,"status":"in_progress"}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":` + q + `,"title":` + q + `,"status":"completed",` + contents + `}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":` + hostile.Quote("other"+spoof) + `,"status":` + q + `}`,
		`{"sessionUpdate":"plan","entries":[{"content":` + q + `,"priority":` + q + `,"status":` + q + `}]}`,
		`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":` + q + `,"description":` + q + `,"input":{"hint":` + q + `}}]}`,
		`{"sessionUpdate":"current_mode_update","currentModeId":` + q + `}`,
		`{"sessionUpdate":"config_option_update","configOptions":[{"type":"select","id":` + q + `,"name":` + q + `,"currentValue":` + q + `,"options":[{"value":` + q + `,"name":` + q + `}]},` +
			`{"type":"boolean","id":"b","name":` + q + `,"currentValue":true}]}`,
		`{"sessionUpdate":"session_info_update","title":` + q + `,"updatedAt":` + q + `}`,
		`{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":1,"currency":` + q + `}}`,
		`{"sessionUpdate":"notice","severity":` + q + `,"title":` + q + `,"description":` + q + `}`,
		`{"sessionUpdate":` + q + `}`,
		`{"sessionUpdate":"agent_message_chunk","content":` + q + `}`,
	} {
		if err := a.update(s, update); err != nil {
			return err
		}
	}
	permission := `{"sessionId":` + id + `,"toolCall":{"toolCallId":` + q + `,"title":` + q + `,"kind":` + q + `,` + contents + `},"options":[` +
		`{"optionId":` + q + `,"name":` + q + `,"kind":"reject_once"},{"optionId":"allow","name":` + q + `,"kind":"allow_once"},{"optionId":"x","name":"x","kind":` + q + `}]}`
	m, err := a.Call("session/request_permission", permission, hostile.Patience)
	if err != nil {
		return err
	}
	a.granted(m)
	// What is an error in the message goes into findings and logs.
	for _, request := range []struct{ method, params string }{
		{"_" + spoof, `{}`},
		{spoof, `{` + q + `:` + q + `}`},
		{"fs/read_text_file", `{"sessionId":` + id + `,"path":` + q + `}`},
		{"fs/read_text_file", `{"sessionId":` + id + `,"path":[` + q + `],` + q + `:1}`},
		{"session/request_permission", `{"sessionId":` + id + `,` + q + `:1}`},
		{"terminal/create", `{"sessionId":` + id + `,"command":` + q + `,"args":["x"]}`},
		{"terminal/output", `{"sessionId":` + q + `,"terminalId":` + q + `}`},
	} {
		if _, err := a.Call(request.method, request.params, hostile.Patience); err != nil {
			return fmt.Errorf("%.20q: %w", request.method, err)
		}
	}
	if err := a.Raw(spoof, "\n", `{"jsonrpc":"2.0","method":`, q, "}\n", `{"jsonrpc":"2.0","id":`, q, `,"result":{}}`, "\n"); err != nil {
		return err
	}
	// A command's output is bytes, which need not be text.
	m, err = a.Call("terminal/create", `{"sessionId":`+id+`,"command":"printf","args":["%s",`+hostile.Quote(spoof)+`]}`, hostile.Patience)
	if err != nil {
		return err
	}
	if m.Error == nil {
		if _, err := a.outputOf(s, m); err != nil {
			return err
		}
	}
	m, err = a.Call("terminal/create", `{"sessionId":`+id+`,"command":"printf","args":["\\033[2J\\2332J\\377\\n? FAKE\\n"]}`, hostile.Patience)
	if err != nil {
		return err
	}
	if m.Error == nil {
		if _, err := a.outputOf(s, m); err != nil {
			return err
		}
	}
	fmt.Fprint(os.Stderr, spoof)
	return nil
}
