package acp_test

import (
	"testing"

	"github.com/acpgo/sdk/internal/test/script"
)

// TestRequirements plays testdata/requirements.
func TestRequirements(t *testing.T) { script.Run(t, "testdata/requirements") }
