// Package unstable is the Agent Client Protocol, version 2, which is a draft, with the features that are
// not a part even of that yet. All of it may change at any time, outside any compatibility promise.
//
// It has everything that package v2draft has, under the same names, and more; see there for how it is used.
package unstable

//go:generate go run ../../../cmd/acpgen
