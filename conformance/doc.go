// Package conformance judges ACP conversations by the definitions of the published schema and by rules that no schema
// can express: the order of messages, capabilities, ids, and the states of sessions, turns and tool calls. It does not
// matter which programs are at the two ends.
//
// A [Schema] is one version of the protocol's JSON schema, compiled on demand. [V1], [V2] and their variants return the
// schemas in this module; [Negotiated] is for connections that choose between two versions. A [Rule] is one requirement
// of the protocol's documents; [Rules] returns those whose violation can be seen in a stream of messages. A [Judge]
// checks the messages of one connection by the schema and the rules, and returns findings, each with the requirement,
// its level and the messages that prove it. A [Validator] checks by the schema alone. A [Monitor] wraps transports, so
// that every connection has a judge; [Tap] does this in a test, and fails the test if there are findings. A [Recording]
// keeps the messages in memory; package recording reads and writes files of them.
//
// # Rules
//
// The rules are in internal/rules, in one file for each page of the protocol's documents. A rule selects messages and
// has a function that checks one of them, given the history of the connection before that message. Its level, side and
// text are in the table of requirements, internal/requirement. The table also has the requirements that no rule can
// judge: those for the schema, those that need a scenario, and those that only people can judge. Package internal/judge
// applies the rules, and internal/schema applies the schema.
//
// A judge sees the messages in one order, but two messages that travel in opposite directions may cross. A rule reports
// only faults that no other order explains: by two messages from the same side, by a message that its sender could send
// only after it had read another one, or by a message that proves what the other side had read. If the history has
// forgotten something, the rules that need it report nothing.
package conformance
