// Package unstable is the Agent Client Protocol, version 1, with the features that are not a part of the
// standard yet. They may change and go at any time, outside any compatibility promise.
//
// It has everything that package acp has, under the same names, and more; package acp says how it is used. What is the
// same in both is one type. A program that needs an unstable feature changes one import:
//
//	import acp "github.com/acpgo/sdk/acp/unstable"
//
// When the feature has become a part of the standard, the program changes the import back.
package unstable

//go:generate go run ../../cmd/acpgen
