package conformance_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance"
)

// TestReplays judges what session/load replays of a conversation (SES-6). In both, ">x" is the user's text x, "<x" the
// agent's, "*x" a tool call, and "~x" a thought. In the conversation, "+" separates two texts of a prompt; "." ends a
// turn, "c" a cancelled one, "r" one that was refused, and "e" one that failed.
func TestReplays(t *testing.T) {
	const two = ">x <one . >y <two ."
	for _, row := range []struct{ talk, replay, want string }{
		{two, ">x <one >y <two", ""},
		{two, ">old <before >x <o *c <ne >y ~hm <t <wo", ""},
		{two, ">X <one >Y <two", ""},   // with other texts of the user
		{two, ">x <One. >y <Two.", ""}, // of the agent
		{two, ">x >context <one >y <two", ""},
		{">x <one . >x <one .", ">x <one >x <one", ""},
		{">go <1 . >go <2 .", ">go <1 >go <2", ""},
		{">x <one r >y <two .", ">y <two", ""},
		{">x <one e >y <two .", ">y <two", ""},
		{">x <one c >y <two .", ">y <two", ""},
		{">x <one . >/clear <ok . >y <two .", ">y <two", ""},
		{">x . >y <two .", ">x >y <two", ""},
		{">x <one >y . <two .", ">x <one >y <two", ""}, // overlapping prompts
		{">x >y <one . .", ">x <one >y", ""},
		{">a+b <one . >y <two .", ">a >b <one >y <two", ""},
		{"<hello >x <one . >y <two .", "<hello >x <one >y <two", ""},
		{">x <one *c . >y *d <two .", ">x *c <one >y <two *d", ""},
		{">x <one . <late >y <two .", ">x <one <late >y <two", ""},
		{">x *c <one .", ">x <one *c", ""},
		{">x <a <b . >y <a .", ">x <a <b >y <a", ""},

		{two, ">y <two >x <one", "order"},
		{two, ">x >y <one <two", "order"},
		{two, ">x <one <two >y", "order"},
		{two, "<one >x >y <two", "order"},
		{two, "<one >x <two >y", "order"},
		{two, ">x <two >y <one", "order"},
		{two, "<one <two >x >y", "order"},
		{two, "<two <one >y >x", "order"},
		{"<hello >x <one . >y <two .", "<hello <one >x >y <two", "order"},
		{">x <one . <late >y <two .", ">x >y <one <two", "order"},
		{">x <one *c . >y <two .", ">x <one >y *c <two", "order"},
		{">x *c *d . >y *e .", ">x *d >y *c *e", "order"},
		{">x <one . >go <2 . >go <3 . >z <four .", ">go <2 >go <3 >x <one >z <four", "order"},
		{">x <one c >y <two .", ">y <two >x <one", "order"},
		{">x *c .", "*c >x", "order"},
		{two, ">y <two", "turns"},
		{two, ">x <one", "turns"},
		{two, ">old <before >y <two", "turns"},
		{">x <one .", ">old <before", "turns"},
		{">x <one . >y <two . >z <three .", ">x <one >z <three", "turns"},
		{">a+b <one . >y <two .", ">y+c <two", "turns"},
		{two, ">x >y <two", "answers"},
		{two, ">x <one >y", "answers"},
		{two, ">x >y", "answers"},
		{two, ">x *c ~one >y <two", "answers"},
		{two, ">x <one <two", "questions"},
		{two, "<one >y <two", "questions"},
		{">x . >y <two .", ">y <two", "questions"},
		{">a+b <one . >y <two .", ">a >b <one <two", "questions"},
		{">a <1 . >a <1 . >a <1 .", ">a <1 >a <1", "questions"},
	} {
		t.Run(strings.NewReplacer(">", "", "<", "").Replace(row.talk+"|"+row.replay), func(t *testing.T) {
			j := conformance.NewJudge(nil, nil)
			var got []string
			send := func(line string) {
				direction := conformance.ToAgent
				if line[0] == '<' {
					direction = conformance.ToClient
				}
				for _, f := range j.Message(conformance.Message{Direction: direction, Line: []byte(`{"jsonrpc":"2.0",` + line[2:] + `}`)}) {
					if f.Rule == "SES-6" {
						got = append(got, f.Message)
					}
				}
			}
			kinds := map[byte]string{'>': "user_message_chunk", '<': "agent_message_chunk", '~': "agent_thought_chunk"}
			say := func(part string) {
				update := fmt.Sprintf(`"sessionUpdate":%q,"content":{"type":"text","text":%q}`, kinds[part[0]], part[1:])
				if part[0] == '*' {
					update = fmt.Sprintf(`"sessionUpdate":"tool_call","toolCallId":%q,"title":"t","status":"completed"`, part[1:])
				}
				send(fmt.Sprintf(`< "method":"session/update","params":{"sessionId":"s","update":{%s}}`, update))
			}
			send(`> "id":"i","method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
			send(`< "id":"i","result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true},"agentInfo":{"name":"a","version":"1"}}`)
			send(`> "id":"n","method":"session/new","params":{"cwd":"/w","mcpServers":[]}`)
			send(`< "id":"n","result":{"sessionId":"s"}`)
			asked, ended := 0, 0
			ends := map[string]string{
				".": `"result":{"stopReason":"end_turn"}`, "c": `"result":{"stopReason":"cancelled"}`,
				"r": `"result":{"stopReason":"refusal"}`, "e": `"error":{"code":-32603,"message":"m"}`,
			}
			for part := range strings.FieldsSeq(row.talk) {
				if part[0] == '>' {
					asked++
					blocks := strings.ReplaceAll(part[1:], "+", `"},{"type":"text","text":"`)
					send(fmt.Sprintf(`> "id":%d,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"%s"}]}`, asked, blocks))
				} else if end := ends[part]; end != "" {
					ended++
					send(fmt.Sprintf(`< "id":%d,%s`, ended, end))
				} else {
					say(part)
				}
			}
			send(`> "id":"l","method":"session/load","params":{"sessionId":"s","cwd":"/w","mcpServers":[]}`)
			for part := range strings.FieldsSeq(row.replay) {
				say(part)
			}
			send(`< "id":"l","result":{}`)
			if len(got) > 1 || (len(got) == 1) != (row.want != "") || row.want != "" && !strings.HasSuffix(got[0], row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}
