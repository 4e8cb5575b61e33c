package unstable

import (
	"testing"

	sdk "github.com/acpgo/sdk"
	"github.com/acpgo/sdk/internal/gentest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestGenerated compares the package with the schema that it is generated from: nothing of the protocol is missing,
// and every definition survives decoding and encoding.
func TestGenerated(t *testing.T) {
	tier.Need(t, tier.Normal)
	(&gentest.Package{
		Schema: sdk.SchemaV2Unstable(), Definitions: definitions,
		Base:    "github.com/acpgo/sdk/acp/v2draft",
		Version: 2, LeastTypes: 200, LeastMethods: 25,
		LeftOut: []string{
			"ErrorData", "SessionNotFoundErrorData", "UnsupportedProtocolVersionErrorData",
			"ProxyNotification", "ProxyRequest", "ProxyResponse",
		},
		Names:    map[string]string{"Command": "SlashCommand"},
		Handlers: map[string]string{"UpdateSessionNotification": "SessionUpdate", "CancelSessionNotification": "Cancel"},
	}).Test(t)
}
