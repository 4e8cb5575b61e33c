// Package repo_test holds the tests of what this repository promises as a whole: what each package exports and imports,
// what the documents say, and that connections in tests are judged.
package repo_test

import (
	"log"
	"os"
	"testing"
)

// All paths are from the root of the module.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}
