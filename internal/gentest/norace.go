//go:build !race

package gentest

// Race says whether the race detector is on, which makes tests of generated code ten times slower. Values is
// how many values of each definition the tests of a package try by default (-values 1300
// are more than 200,000 for all of version 1), and Spoilt how many they mutate: the tests of version 1 take five
// seconds of processor time.
const (
	Race   = false
	Values = 200
	Spoilt = 1
)
