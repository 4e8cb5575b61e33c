package acpv2

import (
	"testing"

	sdk "github.com/acpgo/sdk"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/sample"
	"github.com/acpgo/sdk/internal/test/tier"
)

var definitions = gentest.Types(sdk.SchemaV2Unstable(), types, openEnums)

// TestGenerated compares the package with the schema that it is generated from: nothing of the protocol is missing,
// and every definition survives decoding and encoding.
func TestGenerated(t *testing.T) {
	tier.Need(t, tier.Normal)
	(&gentest.Package{
		Schema: sdk.SchemaV2Unstable(), Definitions: definitions,
		Version: 2, LeastTypes: 200, LeastMethods: 25,
		LeftOut: []string{
			"ErrorData", "SessionNotFoundErrorData", "UnsupportedProtocolVersionErrorData",
			"ProxyNotification", "ProxyRequest", "ProxyResponse",
		},
		Handlers: map[string]string{"UpdateSessionNotification": "SessionUpdate", "CancelSessionNotification": "Cancel"},
		Sides: map[string]gentest.Side{
			"agent":  {Handlers: AgentHandlers{}, Calls: (*ClientConn)(nil)},
			"client": {Handlers: ClientHandlers{}, Calls: (*AgentConn)(nil)},
			"proxy":  {Handlers: ProxyHandlers{}, Calls: (*ProxyConn)(nil)},
		},
	}).Test(t)
}

// The libraries of other languages read some messages that this one refuses, and the other way round. The schema is right, or
// docs/reference/leniency.md says what is read.
func TestWhatOthersRead(t *testing.T) {
	s := must.Get(sample.Load(sdk.SchemaV2Unstable()))(t)
	gentest.Read(t, s, definitions, []gentest.Reading{
		{Definition: "RequestPermissionRequest", Text: `{"sessionId":"s","title":"T","options":[]}`},
		{Definition: "CreateElicitationResponse", Text: `{"action":"accept","content":{"a":{"b":1}}}`, Read: true},
		{Definition: "AuthMethod", Text: `{"type":"_x","methodId":"m"}`, Read: true, Lenient: true},
		{Definition: "PlanUpdateContent", Text: `{"type":"_x"}`, Read: true, Lenient: true},
	})
}
