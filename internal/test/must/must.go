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

// Get returns what a call has returned, as in must.Get(os.ReadFile(name))(t), and ends the test if err is not nil.
func Get[T any](value T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		if err != nil { // Helper takes long in a benchmark
			tb.Helper()
			tb.Fatal(err)
		}
		return value
	}
}
