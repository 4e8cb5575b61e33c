// Package probe puts live programs through the protocol: it plays a client to any agent, in scenarios that each get a
// fresh launch, and reports requirement by requirement what the program does.
//
// A scenario says only what a watcher cannot know: that an answer was due, that an id came back as it was, that a process
// ended in time. Everything that passes is judged by a [conformance.Judge] as well, in all scenarios.
//
// The package starts no processes: a [Launch] does, and gives the streams. What it touches itself is the scratch folder
// of each scenario, in which it also serves the agent's requests for files and terminals, by package
// [github.com/acpgo/sdk/acp/local].
package probe
