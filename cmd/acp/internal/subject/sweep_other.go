//go:build !linux

package subject

// sweep has nothing to do: the group of the process is ended with it, and what has left it is out of reach.
func sweep(string) {}
