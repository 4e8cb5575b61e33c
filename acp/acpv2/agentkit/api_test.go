package agentkit_test

import (
	"testing"

	"github.com/acpgo/sdk/internal/test/apitest"
)

func TestAPI(t *testing.T) { apitest.Check(t, "github.com/acpgo/sdk/acp/acpv2/agentkit", false) }
