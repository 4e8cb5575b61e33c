//go:build race

package gentest

// Race says that the race detector is on, which makes tests of generated code ten times slower, and
// Values how many values of each definition a test of a package tries unless it is told otherwise, and
// Spoilt how many it spoils at every place.
const (
	Race   = true
	Values = 100
	Spoilt = 1
)
