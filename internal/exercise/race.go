//go:build race

package exercise

// Values is how many values of each definition a test of a package tries unless it is told otherwise. The
// race detector makes that ten times slower, so they are fewer here.
const Values = 100
