package v2draft

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
		Schema: sdk.SchemaV2(), Definitions: definitions,
		Version: 2, LeastTypes: 150, LeastMethods: 15,
		LeftOut:  []string{"ErrorData", "SessionNotFoundErrorData", "UnsupportedProtocolVersionErrorData"},
		Names:    map[string]string{"Command": "SlashCommand"},
		Handlers: map[string]string{"UpdateSessionNotification": "SessionUpdate", "CancelSessionNotification": "Cancel"},
	}).Test(t)
}
