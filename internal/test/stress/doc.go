// Package stress has load tests: an agent and a client in separate processes, over stdio, with the public API. They
// show that messages stay in order, that nothing is lost, and that memory stays within the limits in a connection's
// options. Every test prints its measurements.
//
// The tests are small by default; `make load` and `make soak` set flags for large ones. They do not use
// conformance.Tap, which would take most of the measured time; tests of package acp send the same kinds of messages
// through it.
package stress
