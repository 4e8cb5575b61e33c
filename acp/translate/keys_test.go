package translate_test

import (
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/translate"
)

// TestSentAgain sends a prompt again, on another connection to an agent of version 2 whose answer to the first one was
// lost. What the client gets is how that turn ended, or that nobody knows.
func TestSentAgain(t *testing.T) {
	const (
		prompt  = `{"id":5,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hi"}],"_meta":{"github.com/acpgo/sdk/idempotencyKey":"k"}}}`
		user    = `u {"sessionUpdate":"user_message","messageId":"m1","content":[{"type":"text","text":"hi"}]}`
		other   = `u {"sessionUpdate":"user_message_chunk","messageId":"m2","content":{"type":"text","text":"ho"}}`
		text    = `u {"sessionUpdate":"agent_message_chunk","messageId":"a","content":{"type":"text","text":"x"}}`
		end     = `u {"sessionUpdate":"replay_complete"}`
		idle    = `u {"sessionUpdate":"state_update","state":"idle","stopReason":"max_tokens"}`
		silent  = `u {"sessionUpdate":"state_update","state":"idle"}`
		running = `u {"sessionUpdate":"state_update","state":"running"}`
		loaded  = `{"id":4,"result":{}}`
		m1      = `{"id":5,"result":{"messageId":"m1"}}`
		known   = `"stopReason":"max_tokens"`
		unknown = `idempotencyKey":"unknown"`
	)
	for _, c := range []struct {
		name, first, method string
		agent               []string // its messages from session/load on, with the prompt at ""
		want                string
	}{
		{"it is over", "", "load", []string{user, text, end, idle, loaded, "", m1}, known},
		{"it is over, and its end is not known", "", "load", []string{user, text, end, silent, loaded, "", m1}, unknown},
		{"its turn has not begun, and the state is that of an earlier one", "", "load", []string{text, user, end, idle, loaded, "", m1}, unknown},
		{"there was another one after it", "", "load", []string{user, text, other, text, end, idle, loaded, "", m1}, unknown},
		{"another one runs", "", "load", []string{user, text, other, end, running, loaded, "", m1}, unknown},
		{"it runs", "", "load", []string{user, end, running, loaded, "", m1, text, idle}, known},
		{"it was never inserted", "", "load", []string{other, text, end, silent, loaded, "", m1, user, running, text, idle}, known},
		{"it is inserted, and its message repeats one", "", "load", []string{other, end, silent, loaded, "", user, m1, running, idle}, known},
		{"the replay is not complete", "", "load", []string{user, text, idle, loaded, ""}, unknown},
		{"the replay fails", "", "load", []string{user, end, `{"id":4,"error":{"code":-32603,"message":"no"}}`, ""}, unknown},
		{"no replay", "", "resume", []string{idle, loaded, ""}, unknown},
		{"the replay does not have it, and the user cancels", "", "load", []string{end, silent, loaded, "", m1, "cancel"}, `"stopReason":"cancelled"`},
		{"its message was known", m1, "resume", []string{running, loaded, "", idle}, known},
		{"its end was known", m1 + "\n" + running + "\n" + idle, "resume", []string{silent, loaded, ""}, known},
		{"it was refused", `{"id":5,"error":{"code":-32000,"message":"log in"}}`, "resume", []string{silent, loaded, "", m1, running, idle}, known},
	} {
		t.Run(c.name, func(t *testing.T) {
			var keys translate.Keys
			connect := func() *translate.State {
				s := translate.New(translate.ClientSide, 1, &translate.Options{Keys: &keys})
				s.Message(translate.ClientSide, message(`{"id":0,"method":"initialize","params":{"protocolVersion":1}}`))
				got := s.Message(translate.AgentSide, message(`{"id":0,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}}}}`))
				if !strings.Contains(string(got[0].Line), `"_meta":{"github.com/acpgo/sdk/idempotencyKey":{"replay":true}}`) {
					t.Fatalf("got %s", got[0].Line)
				}
				return s
			}
			s := connect()
			s.Message(translate.ClientSide, message(prompt))
			for line := range strings.Lines(c.first) {
				s.Message(translate.AgentSide, message(strings.TrimSpace(line)))
			}
			s = connect()
			s.Message(translate.ClientSide, message(`{"id":4,"method":"session/`+c.method+`","params":{"sessionId":"s","cwd":"/w","mcpServers":[]}}`))
			var answer strings.Builder
			for i, line := range c.agent {
				from, text := translate.AgentSide, line
				switch line {
				case "":
					from, text = translate.ClientSide, prompt
				case "cancel":
					from, text = translate.ClientSide, `{"method":"session/cancel","params":{"sessionId":"s"}}`
				}
				for _, m := range s.Message(from, message(text)) {
					if strings.HasPrefix(string(m.Line), `{"jsonrpc":"2.0","id":5,`) && m.To == translate.ClientSide {
						if answer.Write(m.Line); i+1 < len(c.agent) {
							t.Errorf("too early: %s", m.Line)
						}
					}
				}
			}
			if !strings.Contains(answer.String(), c.want) {
				t.Errorf("got %s, want %s", answer.String(), c.want)
			}
		})
	}
}
