// Package conformance validates ACP messages: it checks every message of a connection against the exact
// definition of the published schema. It does not matter which programs are at the two ends.
//
// A [Schema] is one version of the protocol's JSON schema, compiled when it is needed. [V1], [V2] and the
// others are the schemas in this module; [Negotiated] is for connections that choose between two versions.
// A [Validator] checks the messages of one connection and returns findings; it knows from the ids which
// method a response answers. A [Monitor] wraps transports, so that every connection has a validator; [Tap]
// does this in a test, and fails the test for each finding. A [Recording] keeps the messages in memory;
// package recording has files of them.
//
// Rules that a schema cannot express (the order of messages, capabilities) are not checked here.
package conformance
