// Package must ends tests at errors that are not what they test.
package must

import "testing"

// Do ends the test if err is not nil.
func Do(tb testing.TB, err error) {
	if err != nil {
		tb.Helper()
		tb.Fatal(err)
	}
}
