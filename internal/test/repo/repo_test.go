// Package repo_test tests the promises of the repository as a whole: the exports and imports of each package, the
// contents of the documents, and that connections in tests are judged.
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
