package natsacp_test

import (
	"flag"
	"testing"

	"github.com/acpgo/sdk/internal/test/apitest"
)

var update = flag.Bool("update", false, "write api.txt anew")

func TestAPI(t *testing.T) { apitest.Check(t, "github.com/acpgo/sdk/contrib/natsacp", *update) }
