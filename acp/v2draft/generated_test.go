package v2draft

// This file owns the comparison of the package with the schema that it is generated from: nothing of the
// protocol is missing, and every definition survives decoding and encoding.

import (
	"flag"
	"testing"

	sdk "github.com/acpgo/sdk"
	"github.com/acpgo/sdk/internal/gentest"
)

var values = flag.Int("values", gentest.Values, "how many values of each definition round-trip")

// generated is this package, to be exercised.
func generated() *gentest.Package {
	return &gentest.Package{
		Schema: sdk.SchemaV2(), Definitions: definitions,
		LeftOut:  []string{"ErrorData", "SessionNotFoundErrorData", "UnsupportedProtocolVersionErrorData"},
		Names:    map[string]string{"Command": "SlashCommand"},
		Handlers: map[string]string{"UpdateSessionNotification": "SessionUpdate", "CancelSessionNotification": "Cancel"},
	}
}

func TestEveryDefinitionIsAType(t *testing.T) { generated().HasDefinitions(t, 150) }

func TestEveryMethodIsThere(t *testing.T) { generated().HasMethods(t, 15) }

func TestRoundTrip(t *testing.T) { generated().RoundTrips(t, *values) }

// What is sent is valid, and a zero value that the schema forbids is not sent.
func TestSends(t *testing.T) { generated().Sends(t, *values/10) }

// What the schema marks as lenient is lost and reported, all else is refused at its place.
func TestLeniency(t *testing.T) { generated().Mutations(t, gentest.Spoilt) }

// No text takes more memory than its length allows.
func TestMemory(t *testing.T) { generated().Memory(t) }

// Errors name the right place.
func TestPointers(t *testing.T) { generated().Pointers(t, 1) }
