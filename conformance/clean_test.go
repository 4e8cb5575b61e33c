package conformance_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/cleantest"
)

// cleanDir holds the clean recordings, which contain the messages between agents and clients that follow the protocol.
// Programs with packages acp and acpv2 wrote them, and processes of the folders interop. mutants_test.go makes
// conversations that break rules from them. A name begins with the protocol version in use: v1, v1u (unstable), v2,
// v2u; or n1 or n2, if the client offers both.
const cleanDir = cleantest.Dir("testdata/clean")

// cleanSchema returns the schema that a clean recording follows.
func cleanSchema(name string) *conformance.Schema {
	version, _, _ := strings.Cut(name, "-")
	switch version {
	case "v1":
		return conformance.V1()
	case "v1u":
		return conformance.V1Unstable()
	case "v2":
		return conformance.V2()
	case "v2u":
		return conformance.V2Unstable()
	case "n1", "n2":
		return conformance.Negotiated(conformance.V1(), conformance.V2())
	}
	panic("a clean recording of no version: " + name)
}

// cleanNames returns the names of the recordings.
func cleanNames(tb testing.TB) (names []string) {
	tb.Helper()
	files := cleantest.Files(tb, string(cleanDir), "*.jsonl")
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".jsonl"))
	}
	return names
}

// readClean reads a recording, which must not be empty.
func readClean(tb testing.TB, name string) []conformance.Message {
	tb.Helper()
	lines := cleanDir.Read(tb, name)
	if len(lines) == 0 {
		tb.Fatalf("%s is empty", name)
	}
	return lines
}

// eachClean tests each recording.
func eachClean(t *testing.T, test func(t *testing.T, name string, lines []conformance.Message)) {
	t.Helper()
	for _, name := range cleanNames(t) {
		t.Run(name, func(t *testing.T) { test(t, name, readClean(t, name)) })
	}
}
