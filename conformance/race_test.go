//go:build race

package conformance

import "testing"

// SkipUnderRace ends a test of one goroutine that takes far longer with the race detector.
func SkipUnderRace(t *testing.T) { t.Skip("runs without the race detector") }
