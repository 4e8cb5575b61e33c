package interop

// The clean recordings of processes, which the judge's tests read. The flag -update writes them again. They are
// different each time, so the tests do not compare them; their messages are validated when they are made.

import (
	"flag"
	"testing"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/cleantest"
)

var update = flag.Bool("update", false, "rewrite the clean recordings of processes")

// keepClean writes messages as the clean recording with the given name if -update is set.
func keepClean(t *testing.T, name, root string, messages []conformance.Message) {
	t.Helper()
	if *update {
		cleantest.Dir("../testdata/clean").WriteProcesses(t, name, root, messages)
	}
}
