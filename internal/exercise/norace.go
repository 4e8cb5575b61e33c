//go:build !race

package exercise

// Values is how many values of each definition a test of a package tries unless it is told otherwise:
// more than 200,000 for all of version 1.
const Values = 1300
