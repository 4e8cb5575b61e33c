package conformance_test

import (
	"testing"

	"github.com/acpgo/sdk/conformance"
)

func recorded(direction conformance.Direction, line string) conformance.Message {
	return conformance.Message{Direction: direction, Line: []byte(line)}
}

// Sent returns the bytes that one side has written.
func TestSent(t *testing.T) {
	var r conformance.Recording
	r.Add(recorded(conformance.ToAgent, "a"))
	r.Add(recorded(conformance.ToClient, "b"))
	r.Add(recorded(conformance.ToAgent, ""))
	if got := string(r.Sent(conformance.Client)); got != "a\n\n" {
		t.Errorf("the client sent %q", got)
	}
}
