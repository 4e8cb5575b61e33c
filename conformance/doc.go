// Package conformance judges conversations of ACP, by the exact definitions of the published schema and by the rules
// that no schema can say: the order of messages, capabilities, ids, the states of sessions, turns and tool calls. It does not
// matter which programs are at the two ends.
//
// A [Schema] is one version of the protocol's JSON schema, compiled when it is needed. [V1], [V2] and the
// others are the schemas in this module; [Negotiated] is for connections that choose between two versions.
// A [Rule] is one requirement of the protocol's documents; [Rules] are all that a stream of messages can show to be broken. A
// [Judge] checks the messages of one connection by both and returns findings, each with the requirement, its level and
// the messages that prove it. A [Validator] is the schema's part of it. A [Monitor] wraps transports, so that every
// connection has a judge; [Tap] does this in a test, and fails the test for what it finds. A [Recording] keeps the
// messages in memory; package recording has files of them.
//
// # Rules
//
// The rules are in internal/rules: a page of the protocol's documents has its rules in the file that is named like it. A rule
// says which messages it looks at and what it makes of one, beside the history of the connection as it was before the
// message. Its level, side and text are in the table of requirements, internal/requirement, which also says what no rule can
// judge: what the schema does, what takes a scenario, and what only people can see. Package internal/judge applies the rules,
// and internal/schema is the part of the schema.
//
// A judge sees one order of messages, and a message that goes one way may cross one that goes the other way. A rule
// reports only what no order of a correct side explains: two messages of one side; or one that its sender could not send
// before it had read another; or one that proves what the other side had read. Where the history has forgotten something,
// the rules that need it are silent.
package conformance
