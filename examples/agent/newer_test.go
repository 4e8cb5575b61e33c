//go:build acp_newer

package main

import (
	"testing"

	"github.com/acpgo/sdk/acp"
)

// TestNewer is run by TestNewerSchema, with a package acp that has a variant for which this program has no case.
func TestNewer(t *testing.T) {
	var prompt turn
	prompt.take(acp.NewContentBlockHologram(acp.Hologram{}))
	if len(prompt.attached) != 1 {
		t.Errorf("attached: %q", prompt.attached)
	}
}
