package conformance

import "testing"

// decode reads a text that is right.
func decode(tb testing.TB, text []byte) *node {
	tb.Helper()
	var d document
	if err := d.read(text); err != nil {
		tb.Fatal(err)
	}
	return d.root()
}
