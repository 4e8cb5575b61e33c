package otelacp_test

import (
	"testing"

	"github.com/acpgo/sdk/internal/test/apitest"
)

func TestAPI(t *testing.T) { apitest.Check(t, "github.com/acpgo/sdk/contrib/otelacp", *update) }
