//go:build race

package gentest

// Race says whether the race detector is on, which makes tests of generated code ten times slower. Values is
// how many values of each definition the tests of a package try by default, and Spoilt how many they mutate.
const (
	Race   = true
	Values = 100
	Spoilt = 1
)
