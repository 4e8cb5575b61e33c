// Package conformance judges ACP traffic: it checks every message on a connection against the
// exact definition of the published schema, whoever wrote the two ends.
//
// A [Schema] holds one version of the protocol's JSON schema; it is compiled on demand and shared.
// [V1], [V2] and the others are those of this module, and [Negotiated] is for connections that settle
// between two of them.
// A [Validator] follows one connection and turns each of its messages into findings; it knows by
// the ids which method a response answers. A [Monitor] puts a validator on every connection of a
// transport, and a [Tap] does that in a test and fails it.
//
// What no schema can say (the order of messages, the gating by capabilities) is not judged here.
package conformance
