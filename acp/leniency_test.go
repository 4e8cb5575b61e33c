package acp

import (
	"testing"

	"github.com/acpgo/sdk/internal/gentest"
)

// Each place of a valid value is spoilt in turn. What the schema marks is lost and reported, all else is
// refused at that place.
func TestLeniency(t *testing.T) { generated().Mutations(t, gentest.Spoilt) }
