//go:build !race

package gentest

// Race says that the race detector is on, which makes tests of generated code ten times slower, and
// Values how many values of each definition a test of a package tries unless it is told otherwise, more
// than 200,000 for all of version 1, and Spoilt how many it spoils at every place.
const (
	Race   = false
	Values = 1300
	Spoilt = 2
)
