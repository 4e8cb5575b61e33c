package acpv2_test

import (
	"testing"

	"github.com/acpgo/sdk/internal/test/apitest"
	"github.com/acpgo/sdk/internal/test/tier"
)

func TestAPI(t *testing.T) {
	tier.Need(t, tier.Normal)
	apitest.Check(t, "github.com/acpgo/sdk/acp/acpv2", *update)
}
