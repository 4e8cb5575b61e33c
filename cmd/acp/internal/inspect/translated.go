package inspect

import (
	"time"

	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/cmd/acp/internal/show"
	"github.com/acpgo/sdk/conformance"
)

// translated makes version 1 of what passes in version 2, for the conversations.
type translated struct {
	state   *translate.State
	joiner  *show.Joiner
	message show.Message
	count   int
}

func newTranslated() *translated {
	t := &translated{state: translate.New(translate.ClientSide, 1, nil), joiner: show.NewJoiner()}
	t.state.Message(translate.ClientSide, []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":`+
		`{"plan":{},"subagents":{},"session":{"notices":{},"compaction":{},"configOptions":{"boolean":{}}}}}}`))
	t.state.Message(translate.AgentSide, []byte(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"","version":""},"capabilities":{"session":{}}}}`))
	return t
}

// add passes on a message as a client of version 1 would have sent or received it. The client's own are the same in
// both versions, as far as a conversation shows them.
func (t *translated) add(d conformance.Direction, line []byte, at time.Time, to *conversations) {
	from := translate.AgentSide
	if d == conformance.ToAgent {
		from = translate.ClientSide
		t.pass(d, line, at, to)
	}
	for _, m := range t.state.Message(from, line) {
		if m.To == translate.ClientSide {
			t.pass(conformance.ToClient, m.Line, at, to)
		}
	}
}

func (t *translated) pass(d conformance.Direction, line []byte, at time.Time, to *conversations) {
	t.count++
	t.message = show.Message{Number: t.count, Direction: d, Text: line}
	t.joiner.Join(&t.message, at)
	to.add(&t.message)
}
