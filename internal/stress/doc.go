// Package stress holds the tests of this module under load: an agent and a client in processes of their
// own, over stdio, with the public API. They show order, that nothing is lost, and that memory stays within
// what the options of a connection say. Every test prints its figures.
//
// The tests run at a small scale by default; flags, which make load and make soak pass, make them large.
// The messages are those that the tests of package acp send through conformance.Tap, so it is left out
// here, where it would be most of what is measured.
package stress
