// Package stress has the tests under load: an agent and a client in processes of their own, over stdio, with
// the public API. They show that order holds, that nothing is lost, and that memory stays within the limits
// of a connection's options. Every test prints what it measured.
//
// The tests are small by default; `make load` and `make soak` set flags that make them large. They do not
// use conformance.Tap, which would take most of the time measured; tests of package acp send the same kinds
// of messages through it.
package stress
