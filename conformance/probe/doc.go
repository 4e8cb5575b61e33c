// Package probe tests live programs against the protocol. It plays a client to any agent, or an agent to any client, in
// scenarios that each get a fresh launch, and reports for each requirement what the program does.
//
// A scenario checks only what an observer cannot know: that an answer was due, that an id was returned unchanged, that
// a process ended in time. In all scenarios, a [conformance.Judge] judges all messages as well.
//
// The package itself starts no processes; a [Launch] does, and returns the streams. The package writes only to the
// scratch directory of each scenario, where it also serves the agent's requests for files and terminals with package
// [github.com/acpgo/sdk/acp/local].
package probe
