//go:build !race

package gentest

// Race says whether the race detector is on, which makes code ten times slower and allocates.
const Race = false
