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
		Schema: sdk.SchemaV1Unstable(), Definitions: definitions,
		Base:    "github.com/acpgo/sdk/acp",
		Version: 1, LeastTypes: 200, LeastMethods: 30,
		LeftOut:  []string{"ProxyNotification", "ProxyRequest", "ProxyResponse"},
		Handlers: map[string]string{"SessionNotification": "SessionUpdate"},
	}).Test(t)
}
