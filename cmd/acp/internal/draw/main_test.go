package draw

import (
	"testing"
	"time"
)

// TestMain lets highlighting take its time, so that what is drawn does not depend on how busy the machine is.
func TestMain(m *testing.M) {
	maxLexing = time.Minute
	m.Run()
}
